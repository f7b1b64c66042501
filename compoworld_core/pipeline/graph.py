"""The graph of stages: which stage makes what another reads, and thereby their order."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import networkx as nx

from compoworld_core.errors import CompoWorldError, InputError
from compoworld_core.pipeline.stage import Stage


class StageGraph:
    """Stages and the datasets that tie them."""

    def __init__(self, stages: Iterable[Stage[Any]]) -> None:
        """Connect every input to the stage that makes it.

        Raises:
            CompoWorldError: A dataset is made twice or by no stage, or the stages form a circle.
        """
        self.graph: nx.DiGraph[str] = nx.DiGraph()
        self._producers: dict[str, str] = {}
        for stage in stages:
            self.graph.add_node(stage.name, stage=stage)
            for output in stage.outputs:
                if output.name in self._producers:
                    raise CompoWorldError(f"both {self._producers[output.name]} and {stage.name} make {output.name}")
                self._producers[output.name] = stage.name
        for name in list(self.graph):
            for needed in (*self[name].inputs, *self[name].optional):
                if needed.name not in self._producers:
                    raise CompoWorldError(f"stage {name} reads {needed.name}, which no stage makes")
                source = self._producers[needed.name]
                datasets = self.graph.edges.get((source, name), {}).get("datasets", ())
                self.graph.add_edge(source, name, datasets=(*datasets, needed.name))
        if circles := list(nx.simple_cycles(self.graph)):
            raise CompoWorldError(f"the stages {', '.join(circles[0])} wait for each other")

    def __getitem__(self, name: str) -> Stage[Any]:
        stage: Stage[Any] = self.graph.nodes[name]["stage"]
        return stage

    @cached_property
    def order(self) -> tuple[str, ...]:
        """Names of all stages, each after those that it needs."""
        ordered: tuple[str, ...] = tuple(nx.topological_sort(self.graph))
        return ordered

    def between(self, start: str = "", end: str = "") -> tuple[str, ...]:
        """The stages of the order from one to another, both included; an empty name stands for the order's end.

        Raises:
            InputError: There is no such stage, or the first comes after the last.
        """
        for name in (start, end):
            if name and name not in self.order:
                raise InputError(f"there is no stage {name!r}; there are {', '.join(self.order)}")
        first = self.order.index(start) if start else 0
        last = self.order.index(end) if end else len(self.order) - 1
        if first > last:
            raise InputError(f"from {start} until {end}: {end} comes before {start}")
        return self.order[first : last + 1]

    def producer(self, dataset: str) -> str:
        """The stage that makes a dataset."""
        return self._producers[dataset]
