"""Questions: a call that no code can answer, with all that its answer may depend on."""

from __future__ import annotations

import hashlib
import json
from functools import cached_property
from typing import Any, Final

from compoworld_core.services.context import Context
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.schema import ServiceSchema
from compoworld_core.services.state import State
from compoworld_core.services.table import Table
from compoworld_core.services.world_model.excerpt import Excerpt, shortened
from compoworld_core.specs.model import JsonObject
from compoworld_core.storage.digest import digest, dump_plain

MAX_ARGUMENT: Final = 8_000
"""Characters of a text among the arguments that are told."""

MAX_SCHEMAS: Final = 24_000
"""Characters of all rows' schemas, beyond which only the names of fields are told."""


class Question:
    """A call of a modelled tool.

    Attributes:
        service: The service's own name.
        tool: The tool's own name.
        arguments: Plain JSON that satisfies the tool's parameters.
    """

    def __init__(
        self, package: ServicePackage, tool: str, arguments: JsonObject, state: State, context: Context
    ) -> None:
        self.service = package.name
        self.tool = tool
        self.arguments = arguments
        self._package = package
        self._state = state
        self._context = context

    @cached_property
    def content(self) -> JsonObject:
        """All that the answer may depend on, large parts by their digests; the same in every process."""
        return {
            "package": self._package.digest,
            "tool": self.tool,
            "arguments": self.arguments,
            "state": state_digest(self._state),
            "start": self._context.start.isoformat(),
            "user": [self._context.user.name, self._context.user.email],
        }

    @cached_property
    def digest(self) -> str:
        """sha256 of the content."""
        return digest(self.content)

    def document(self) -> JsonObject:
        """What is told to whoever predicts, what many calls share first."""
        package, spec, state = self._package, self._package.tool(self.tool), self._state
        excerpt = Excerpt.of(state, self.arguments)
        return {
            "service": {"name": package.name, "description": package.spec.description},
            "tables": _told(package.tables),
            "tool": {
                "name": spec.name,
                "description": spec.description,
                "effect": spec.effect,
                "parameters": spec.parameters,
                "returns": spec.returns,
            },
            "rows": excerpt.rows,
            "rows_not_shown": excerpt.left_out,
            "next_ids": {name: item.next_id() for name, item in state.tables.items()},
            "call": {
                "time": self._context.now(state.writes).isoformat(),
                "user": {"name": self._context.user.name, "email": self._context.user.email},
                "arguments": shortened(self.arguments, MAX_ARGUMENT),
            },
        }


def state_digest(state: State) -> str:
    """sha256 of a state's rows, ids and clock; the bases, which forks share, are digested once."""
    content = {
        "bases": state.base_digests(),
        "changed": {name: _changed(item) for name, item in state.tables.items()},
        "counters": {name: item.counter for name, item in state.tables.items()},
        "writes": state.writes,
    }
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _changed(table: Table[Any]) -> list[tuple[str, Any]]:
    return [(key, None if row is None else table.type.view(row)) for key, _, row in table.changed()]


def _told(schema: ServiceSchema) -> JsonObject:
    size = sum(len(dump_plain(item.row)) for item in schema.tables.values())
    return {
        name: {
            "row": item.row if size <= MAX_SCHEMAS else {"fields": sorted(item.properties)},
            "unique": [list(fields) for fields in item.unique],
            "foreign_keys": {foreign.field: foreign.table for foreign in item.foreign_keys},
            "rules": [rule.message for rule in item.rules],
        }
        for name, item in schema.tables.items()
    }
