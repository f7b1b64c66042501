"""What a service promises: the normalised form that every source is brought to."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from compoworld_core.data import Data
from compoworld_core.storage.digest import JsonObject as JsonObject

Effect = Literal["read", "write", "unknown"]
"""`read` never changes state, `write` may; `unknown` is decided by the author from the schema and the description."""

Domain = Literal[
    "communication",
    "calendar",
    "documents",
    "knowledge",
    "crm",
    "support",
    "finance",
    "hr",
    "commerce",
    "logistics",
    "marketing",
    "devops",
    "data",
    "security",
    "analytics",
    "travel",
]


class Spec(Data):
    """Frozen base of everything in this room."""


class ToolSpec(Spec):
    """One tool as an agent sees it.

    Attributes:
        name: Legal function name, `^[a-zA-Z0-9_-]{1,64}$`, unique in its service.
        description: What the tool does; never empty.
        parameters: JSON Schema 2020-12 of an object. Properties may carry `x-semantic` (see `services/semantics.py`).
        returns: JSON Schema of the data of a successful call, where the source declares one.
        effect: Whether a call may change state.
        original_name: The name on the source's wire.
        repairs: Names of the repairs that normalisation made, in order.
    """

    name: str
    description: str
    parameters: JsonObject
    returns: JsonObject | None = None
    effect: Effect = "unknown"
    original_name: str = ""
    repairs: tuple[str, ...] = ()

    @property
    def properties(self) -> JsonObject:
        """Schemas of the single parameters, by name."""
        found: JsonObject = self.parameters.get("properties", {})
        return found


class ServiceSpec(Spec):
    """A service's tools and where they were found.

    Attributes:
        name: Identifier, `^[a-z][a-z0-9_]{0,47}$`, unique in its dataset.
        source: Where it came from, for people (`bundled`, a file's name, a registry id).
        original_name: The name at the source.
    """

    name: str
    title: str = ""
    description: str = ""
    domain: Domain
    source: str
    original_name: str = ""
    tools: tuple[ToolSpec, ...] = Field(min_length=1)


class Rejection(Spec):
    """A server or tool that cannot be brought to the normalised form, and why.

    Attributes:
        subject: `server` or `tool`.
        origin: File and line, or URL, that the subject was read from.
        reason: Short machine-readable word (`not_json`, `no_tools`, `duplicate_name`, `schema_invalid` …).
        detail: A sentence for people.
    """

    subject: Literal["server", "tool"]
    origin: str
    server: str = ""
    tool: str = ""
    reason: str
    detail: str
