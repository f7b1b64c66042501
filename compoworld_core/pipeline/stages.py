"""The stages and their order; the only place that knows them.

    crawl ─► synthesize ─► validate ─► sample-tasks ─► distill ─► report

The order is not written down: a stage comes after those that make what it reads. A stage is added by declaring it here.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any, Final

import networkx as nx

from compoworld_core.errors import CompoWorldError
from compoworld_core.pipeline.stage import Stage
from compoworld_core.pipeline.work import crawl, distill, report, sample_tasks, synthesize, validate
from compoworld_core.rollouts.trajectory import TRAJECTORIES
from compoworld_core.services.datasets import SERVICES
from compoworld_core.specs.datasets import REJECTIONS, SPECS
from compoworld_core.synthesis.datasets import OMISSIONS, VERIFICATIONS
from compoworld_core.tasks.datasets import ATTEMPTS, TASKS
from compoworld_core.tasks.sampler import TaskSettings

STAGES: Final[tuple[Stage[Any], ...]] = (
    Stage(
        name="crawl",
        config=crawl.CrawlConfig,
        inputs=(),
        outputs=(SPECS, REJECTIONS),
        plan=crawl.plan,
        run=crawl.run,
        rooms=("specs",),
        outside=crawl.outside,
    ),
    Stage(
        name="synthesize",
        config=synthesize.SynthesizeConfig,
        inputs=(SPECS,),
        outputs=(SERVICES, OMISSIONS),
        plan=synthesize.plan,
        run=synthesize.run,
        rooms=("synthesis", "library"),
    ),
    Stage(
        name="validate",
        config=validate.ValidateConfig,
        inputs=(SERVICES, OMISSIONS),
        outputs=(VERIFICATIONS,),
        plan=validate.plan,
        run=validate.run,
        rooms=("synthesis", "library"),
    ),
    Stage(
        name="sample-tasks",
        config=TaskSettings,
        inputs=(SERVICES, VERIFICATIONS),
        outputs=(TASKS, ATTEMPTS),
        plan=sample_tasks.plan,
        run=sample_tasks.run,
        rooms=("tasks", "library"),
    ),
    Stage(
        name="distill",
        config=distill.DistillConfig,
        inputs=(SERVICES, TASKS),
        outputs=(TRAJECTORIES,),
        plan=distill.plan,
        run=distill.run,
        rooms=("rollouts", "library"),
    ),
    Stage(
        name="report",
        config=report.ReportConfig,
        inputs=report.READ,
        outputs=(report.PAGES,),
        plan=report.plan,
        run=report.run,
        rooms=("viewer",),
    ),
)


class StageGraph:
    """Stages and the datasets that tie them."""

    def __init__(self, stages: Iterable[Stage[Any]]) -> None:
        """Connect every input to the stage that makes it.

        Raises:
            CompoWorldError: A dataset is made twice or by no stage, or the stages form a circle.
        """
        self.graph = nx.DiGraph()
        self._producers: dict[str, str] = {}
        for stage in stages:
            self.graph.add_node(stage.name, stage=stage)
            for output in stage.outputs:
                if output.name in self._producers:
                    raise CompoWorldError(f"both {self._producers[output.name]} and {stage.name} make {output.name}")
                self._producers[output.name] = stage.name
        for name in list(self.graph):
            for needed in self[name].inputs:
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
        ordered: tuple[str, ...] = tuple(nx.topological_sort(self.graph))  # type: ignore[func-returns-value,arg-type]  # the stubs are wrong
        return ordered

    def producer(self, dataset: str) -> str:
        """The stage that makes a dataset."""
        return self._producers[dataset]
