"""The dependency graph: which services can pass which kinds of values to which others.

It is read off the schemas alone, so it costs nothing to draw for hundreds of services. An edge from A to B says that
rows of A carry values of a meaning by which rows of B are found, or that a tool of B stores.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import networkx as nx

from compoworld_core.services.package import ServicePackage
from compoworld_core.services.schema import TableSchema, semantic_of
from compoworld_core.tasks.planner.lookup import ANCHORS
from compoworld_core.tasks.planner.matching import JOINING, NAMING, is_plain_text, kinds

_HEADING = "title"
_ANY_TEXT = "text"


@dataclass(frozen=True)
class Exchange:
    """What a service can give to others and take from them.

    Attributes:
        offers: Meanings of the values that its readable rows carry.
        takes: Meanings by which its rows are found or that its tools store; `title` takes any name, `text` any value.
        openings: Tables whose rows can be found, and tools that store what others know: how much a plan can do here.
        is_start: Whether an instruction can name one of its rows outright.
    """

    name: str
    offers: frozenset[str]
    takes: frozenset[str]
    openings: int
    is_start: bool

    def accepts(self, offers: frozenset[str]) -> frozenset[str]:
        """The meanings of some values that this service can use."""
        if _ANY_TEXT in self.takes:
            return offers
        return (offers & self.takes) | (offers & NAMING if _HEADING in self.takes else frozenset())


def exchange_of(package: ServicePackage, tools: Sequence[str]) -> Exchange:
    """What a service's admitted tools and its tables' schemas allow."""
    specs = [package.tool(name) for name in tools]
    shown = {word for spec in specs if spec.effect == "read" for word in _words(spec.returns)}
    readable = [table for table in package.tables.tables.values() if f"id:{table.entity}" in shown]
    offers = frozenset(word for table in readable for word in table.semantics.values())
    found_by = [frozenset(table.semantics.values()) & (JOINING | {_HEADING}) for table in readable if _tells(table)]
    stored = [_stored(spec.parameters) for spec in specs if spec.effect == "write"]
    takes = frozenset[str]().union(*found_by, *stored)
    openings = sum(map(bool, (*found_by, *stored)))
    return Exchange(package.name, offers, takes, openings, not ANCHORS.isdisjoint(offers))


def dependency_graph(services: Iterable[Exchange]) -> nx.DiGraph[str]:
    """Services by name, with an edge `words` (sorted meanings) for each pair that can pass values on."""
    known = sorted(services, key=lambda service: service.name)
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(service.name for service in known)
    for source in known:
        for target in known:
            words = target.accepts(source.offers)
            if source is not target and words:
                graph.add_edge(source.name, target.name, words=sorted(words))
    return graph


def step_weights(graph: nx.DiGraph[str], services: Iterable[str]) -> Mapping[tuple[str, str], int]:
    """Weights that prefer steps along which values can flow: 1 where none can, 1 + 2 per meaning elsewhere."""
    chosen = list(services)
    return {(a, b): 1 + 2 * len(graph[a][b]["words"]) if b in graph[a] else 1 for a in chosen for b in chosen if a != b}


def _tells(table: TableSchema) -> bool:
    """Whether who finds a row by one field learns something from another."""
    telling = [
        name
        for name, part in table.properties.items()
        if not table.semantics.get(name, "").startswith("id:")
        and table.semantics.get(name) != _ANY_TEXT
        and not kinds(part).isdisjoint({"string", "integer", "number"})
    ]
    return len(telling) > 1


def _stored(parameters: Mapping[str, Any]) -> frozenset[str]:
    """Meanings of what a write tool's arguments can be filled with."""
    properties: Mapping[str, Any] = parameters.get("properties", {})
    words = {word for part in properties.values() if (word := semantic_of(part)) in JOINING}
    required = (properties[name] for name in parameters.get("required", ()) if name in properties)
    if any(is_plain_text(part) and semantic_of(part) in (None, _ANY_TEXT) for part in required):
        words.add(_ANY_TEXT)
    return frozenset(word for word in words if word)


def _words(schema: Any) -> Iterator[str]:
    """Every semantic word inside a schema."""
    if isinstance(schema, dict):
        word = semantic_of(schema)
        if word is not None:
            yield word
        for part in schema.values():
            yield from _words(part)
    elif isinstance(schema, list):
        for part in schema:
            yield from _words(part)
