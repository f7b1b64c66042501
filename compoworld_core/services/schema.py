"""A service's tables as data: what the world needs to hold, check and seed a state without the service's code."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from pydantic import Field

from compoworld_core.data import Data
from compoworld_core.services.conditions import Rule
from compoworld_core.services.record import SchemaRecords
from compoworld_core.services.semantics import SEMANTIC_KEY
from compoworld_core.specs.model import JsonObject


class ForeignKey(Data):
    """Values of `field` (one id, a list of ids, or null) are keys of `table` in the same service."""

    field: str
    table: str


class TableSchema(Data):
    """One table.

    Attributes:
        entity: Singular name of what a row is (`ticket`); its key's semantic type is `id:<entity>`.
        row: JSON Schema 2020-12 of a row's JSON view; properties carry `x-semantic`.
        id_prefix: Start of the ids that the table hands out.
        unique: Field tuples whose values no two rows share.
        rules: Cross-field rules that every row keeps.
    """

    entity: str
    row: JsonObject
    id_prefix: str
    unique: tuple[tuple[str, ...], ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    rules: tuple[Rule, ...] = ()

    @cached_property
    def records(self) -> SchemaRecords:
        """Record type that validates rows by the JSON Schema."""
        return SchemaRecords(self.entity, self.row)

    @property
    def properties(self) -> JsonObject:
        """Schemas of the fields, by name."""
        found: JsonObject = self.row.get("properties", {})
        return found

    @cached_property
    def choices(self) -> frozenset[str]:
        """Fields with a small set of values: enumerations and booleans."""
        return frozenset(name for name, part in self.properties.items() if _is_choice(part))

    @cached_property
    def semantics(self) -> dict[str, str]:
        """Semantic word by field, for the fields that have one."""
        found = {}
        for name, schema in self.properties.items():
            word = semantic_of(schema)
            if word is not None:
                found[name] = word
        return found


class ServiceSchema(Data):
    """All tables of a service, by name, in declaration order."""

    tables: dict[str, TableSchema] = Field(default_factory=dict)


def semantic_of(schema: Any) -> str | None:
    """The semantic word of a property schema, also where it is nullable or a list of such values."""
    if not isinstance(schema, dict):
        return None
    word = schema.get(SEMANTIC_KEY)
    if isinstance(word, str):
        return word
    for part in (*schema.get("anyOf", ()), schema.get("items")):
        found = semantic_of(part)
        if found is not None:
            return found
    return None


def _is_choice(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    return "enum" in schema or schema.get("type") == "boolean" or any(map(_is_choice, schema.get("anyOf", ())))
