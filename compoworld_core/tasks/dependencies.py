"""The dependency graph: which services can pass which kinds of values to which others.

An edge from A to B says that rows read in A carry values of a meaning by which B finds rows or that B stores.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import networkx as nx

from compoworld_core.services.schema import semantic_of
from compoworld_core.tasks.affordances import Affordances
from compoworld_core.tasks.planner.matching import JOINING, NAMING

_NAMED = "title"


def dependency_graph(services: Iterable[Affordances]) -> nx.DiGraph[str]:
    """Services by name, with an edge `words` (sorted meanings) for each pair that can pass values on."""
    offers: dict[str, frozenset[str]] = {}
    takes: dict[str, frozenset[str]] = {}
    for service in services:
        offers[service.package.name] = _offered(service)
        takes[service.package.name] = _taken(service)
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(sorted(offers))
    for source, given in sorted(offers.items()):
        for target, wanted in sorted(takes.items()):
            words = given & wanted
            if _NAMED in wanted:
                words |= given & NAMING
            if source != target and words:
                graph.add_edge(source, target, words=sorted(words))
    return graph


def step_weights(graph: nx.DiGraph[str], services: Iterable[str]) -> Mapping[tuple[str, str], int]:
    """Weights that prefer steps along which values can flow: 1 where none can, 1 + 2 per meaning elsewhere."""
    chosen = list(services)
    return {(a, b): 1 + 2 * len(graph[a][b]["words"]) if b in graph[a] else 1 for a in chosen for b in chosen if a != b}


def _offered(service: Affordances) -> frozenset[str]:
    """Meanings of the values that readings show."""
    return frozenset(
        word
        for reading in service.readings
        for name in reading.shows
        if (word := service.tables[reading.table].semantics.get(name)) in JOINING | NAMING
    )


def _taken(service: Affordances) -> frozenset[str]:
    """Meanings that rows are found by, or that writes store."""
    found = {
        service.tables[reading.table].semantics.get(name)
        for reading in service.readings
        for name in (reading.by.values() or reading.shows)
    }
    stored = {
        semantic_of(service.tools[writing.tool].parameters.get("properties", {}).get(name))
        for writing in service.writings
        for name in writing.copies
    }
    return frozenset(word for word in found | stored if word is not None and word in JOINING | {_NAMED})
