"""Seeding: the default way of filling a state from the universe, by the semantic types of its fields."""

from __future__ import annotations

import random
from datetime import datetime

import networkx as nx

from compoworld_core.errors import ToolError
from compoworld_core.services.drawing import Drawing
from compoworld_core.services.schema import TableSchema
from compoworld_core.services.state import State
from compoworld_core.services.universe import Universe

ROWS = 10
"""Rows that each table gets."""


def populate(state: State, universe: Universe, rng: random.Random, start: datetime) -> None:
    """Fill every table, referred-to tables first.

    A row that breaks a constraint is left out; a table whose rows can't be drawn stays empty, as in a new account.
    """
    ids: dict[str, list[str]] = {}
    source = Drawing(universe, rng, start, ids)
    for name in seeding_order(state):
        table = state.tables[name]
        own = ids.setdefault(table.schema.entity, [])
        for _ in range(ROWS):
            try:
                row = source.fresh().object(
                    {**table.schema.row, "properties": _drawn(table.schema, bool(own))}, optional=1
                )
                own.append(table.type.field(table.insert(**row), "id"))
            except (ToolError, ValueError):
                continue


def seeding_order(state: State) -> list[str]:
    """Tables such that each comes after those it refers to, as far as there are no cycles."""
    graph = nx.DiGraph()
    graph.add_nodes_from(state.tables)
    for name, table in state.tables.items():
        graph.add_edges_from((key.table, name) for key in table.schema.foreign_keys if key.table != name)
    components = nx.condensation(graph)
    order: list[str] = []
    for component in nx.lexicographical_topological_sort(
        components, key=lambda node: min(components.nodes[node]["members"])
    ):
        order += sorted(components.nodes[component]["members"])
    return order


def _drawn(schema: TableSchema, has_rows: bool) -> dict[str, object]:
    """Properties to draw: not the id, and no reference to the table itself before it has rows."""
    own = f"id:{schema.entity}"
    return {
        name: {"type": "null"} if schema.semantics.get(name) == own and not has_rows else part
        for name, part in schema.row.get("properties", {}).items()
        if name != "id"
    }
