"""Seeding: the default way of filling a state from the universe, by the semantic types of its fields."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence, Set
from datetime import datetime
from typing import Any

import networkx as nx

from compoworld_core.errors import ToolError
from compoworld_core.services.drawing import Drawing
from compoworld_core.services.schema import TableSchema
from compoworld_core.services.state import State
from compoworld_core.services.universe import Universe
from compoworld_core.specs.model import JsonObject

ROWS = 10
"""Rows that each table gets."""
_ATTEMPTS = 25
"""How often a row is drawn for them at most; one that is there already is no use."""
_NAMES = ("name", "title")
"""What two rows of a table have in common only where there are not enough names for all."""


def populate(state: State, universe: Universe, rng: random.Random, start: datetime) -> None:
    """Fill every table, referred-to tables first.

    A row that breaks a constraint is left out; a table whose rows can't be drawn stays empty, as in a new account.
    """
    ids: dict[str, list[str]] = {}
    source = Drawing(universe, rng, start, ids)
    for name in seeding_order(state):
        table = state.tables[name]
        own = ids.setdefault(table.schema.entity, [])
        schema = _drawn(table.schema, _without_rows(state, ids))
        called: set[Any] = set()
        for attempt in range(_ATTEMPTS):
            if len(own) == ROWS:
                break
            try:
                row = source.fresh(table.schema.entity).object(schema, optional=1)
                names = {row[field] for field in _NAMES if isinstance(row.get(field), str)}
                if names & called and attempt < _ATTEMPTS - ROWS:
                    continue
                own.append(table.type.field(table.insert(**row), "id"))
                called |= names
            except (ToolError, ValueError):
                continue


def seeding_order(state: State) -> list[str]:
    """Tables such that each comes after those it refers to; in a cycle, after those that its rows can't do without."""
    order: list[str] = []
    for members in _sorted_components(_references(state, list(state.tables), only_required=False)):
        for part in _sorted_components(_references(state, members, only_required=True)):
            order += part
    return order


def _sorted_components(graph: nx.DiGraph[str]) -> list[list[str]]:
    components = nx.condensation(graph)
    members = components.nodes
    order = nx.lexicographical_topological_sort(components, key=lambda node: min(members[node]["members"]))
    return [sorted(members[node]["members"]) for node in order]


def _references(state: State, members: Sequence[str], *, only_required: bool) -> nx.DiGraph[str]:
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(members)
    for name in members:
        table = state.tables[name]
        properties = table.schema.properties
        for key in table.schema.foreign_keys:
            if (
                key.table in members
                and key.table != name
                and not (only_required and _empty(properties.get(key.field)) is not None)
            ):
                graph.add_edge(key.table, name)
    return graph


def _empty(schema: Any) -> JsonObject | None:
    """The schema of a reference to nothing, where a field may hold one."""
    if not isinstance(schema, dict):
        return None
    if schema.get("type") == "array":
        return {"const": []}
    is_nullable = any(isinstance(part, dict) and part.get("type") == "null" for part in schema.get("anyOf", ()))
    return {"type": "null"} if is_nullable else None


def _without_rows(state: State, ids: Mapping[str, Sequence[str]]) -> set[str]:
    """Words of the ids that no row has yet."""
    return {f"id:{table.schema.entity}" for table in state.tables.values() if not ids.get(table.schema.entity)}


def _drawn(schema: TableSchema, missing: Set[str]) -> JsonObject:
    """The schema of what is to be drawn of a row: not the id, and no reference to a table that has no rows yet."""
    properties = {
        name: (_empty(part) or part) if schema.semantics.get(name) in missing else part
        for name, part in schema.properties.items()
        if name != "id"
    }
    required = [name for name in schema.row.get("required", ()) if name != "id"]
    return {**schema.row, "properties": properties, "required": required}
