"""Authors: whoever turns a spec into the source of a service.

An author promises nothing but text. What it hands over is a draft: source that is still to be checked, tests that it
believes in, and the tools that it leaves to others. Whether a tool may be used is decided by admission alone.
"""

from __future__ import annotations

from typing import Any, Literal, Protocol

from pydantic import BaseModel, ConfigDict

from compoworld_core.services.schema import semantic_of
from compoworld_core.services.semantics import SEMANTIC_KEY
from compoworld_core.specs.model import JsonObject, ServiceSpec, ToolSpec
from compoworld_core.synthesis.selftest import SelfTest


class LeftOut(BaseModel):
    """A tool that a draft does not implement.

    Attributes:
        candidate_for: `world_model` where the effect lies outside stored rows; `nobody` where its meaning is unclear.
        reason: A sentence for people.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    tool: str
    candidate_for: Literal["world_model", "nobody"]
    reason: str


class Draft(BaseModel):
    """What an author hands over for one spec.

    Attributes:
        source: Text of the service module; empty where no tool could be written.
        implemented: Names of the tools that the module has.
        left_out: All other tools of the spec, with the reason.
        tests: Self-tests of the implemented tools.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    author: str
    service: str
    source: str
    implemented: tuple[str, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    tests: tuple[SelfTest, ...] = ()


class Author(Protocol):
    """Writes services."""

    @property
    def name(self) -> str:
        """The word that packages record as their author."""
        ...

    def write(self, spec: ServiceSpec) -> Draft:
        """The draft of a service for a normalised spec."""
        ...


def annotate(spec: ServiceSpec, exported: ServiceSpec) -> ServiceSpec:
    """The spec that a package carries: the source's own schemas, with what the module knows about them.

    Only implemented tools are kept. Properties get the semantic types of the module's parameters, tools the module's
    effect and result schema. Ids are the service's own, so what the source says about their shape is dropped.

    Args:
        spec: The normalised spec that the module was written for.
        exported: What the module itself promises.

    Raises:
        ValueError: The module implements none of the spec's tools.
    """
    implemented = {tool.name: tool for tool in exported.tools}
    tools = tuple(_annotated(tool, implemented[tool.name]) for tool in spec.tools if tool.name in implemented)
    return ServiceSpec.model_validate({**dict(spec), "tools": tools})


def _annotated(tool: ToolSpec, exported: ToolSpec) -> ToolSpec:
    known = exported.parameters.get("properties", {})
    properties = {
        name: _property(part, known[name]) if name in known else part
        for name, part in tool.parameters.get("properties", {}).items()
    }
    parameters = {**tool.parameters, **({"properties": properties} if properties else {})}
    return ToolSpec.model_validate(
        {**dict(tool), "parameters": parameters, "returns": exported.returns, "effect": exported.effect}
    )


def _property(source: Any, exported: JsonObject) -> Any:
    word = semantic_of(exported)
    if not isinstance(source, dict) or word is None:
        return source
    kept = dict(source)
    if word.startswith("id:"):
        kept = {key: value for key, value in kept.items() if key not in ("pattern", "format", "minLength", "maxLength")}
    for part in (exported, *exported.get("anyOf", ())):
        if isinstance(part, dict) and "format" in part and kept.get("type") == "string":
            kept.setdefault("format", part["format"])
    return {**kept, SEMANTIC_KEY: word}
