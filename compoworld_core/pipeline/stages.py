"""The stages and their order; the only place that knows them.

    crawl ─► synthesize ─► validate ─► sample-tasks ─► distill ─► report
                                          │             └─────► sft ─► grpo   (with the extra `train`)
                                          └─────► evaluate ◄─────┴──────┘

The order is not written down: a stage comes after those that make what it reads. What `evaluate` reads depends on who
is evaluated, so a run trains only where what it trains is to be evaluated. A stage is added by declaring it here and
naming it where people meet it: a section in `config.py`, a verb in `cli.py`, an entry point in `jobs/`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import BaseModel

from compoworld_core.evaluation.trial import EVALUATIONS
from compoworld_core.pipeline.graph import StageGraph
from compoworld_core.pipeline.stage import Stage
from compoworld_core.pipeline.work import crawl, distill, evaluate, report, sample_tasks, synthesize, training, validate
from compoworld_core.rollouts.trajectory import TRAJECTORIES
from compoworld_core.services.datasets import SERVICES
from compoworld_core.specs.datasets import REJECTIONS, SPECS
from compoworld_core.synthesis.datasets import OMISSIONS, VERIFICATIONS
from compoworld_core.tasks.datasets import ATTEMPTS, TASKS
from compoworld_core.training.datasets import GRPO_MODELS, SFT_MODELS

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
        config=sample_tasks.SampleTasksConfig,
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
        deterministic=False,  # an endpoint may fail one attempt and answer another
    ),
    Stage(
        name="sft",
        config=training.SftConfig,
        inputs=(TRAJECTORIES, TASKS),
        outputs=(SFT_MODELS,),
        plan=training.plan,
        run=training.fine_tune,
        check=training.require,
        rooms=("training", "library"),
        deterministic=False,
        extra="train",
    ),
    Stage(
        name="grpo",
        config=training.GrpoConfig,
        inputs=(SERVICES, TASKS, TRAJECTORIES, SFT_MODELS),
        outputs=(GRPO_MODELS,),
        plan=training.plan,
        run=training.reinforce,
        check=training.require_for_rollouts,
        rooms=("training", "library"),
        deterministic=False,
        extra="train",
        reads=training.reads,
    ),
    Stage(
        name="evaluate",
        config=evaluate.EvaluateConfig,
        inputs=(SERVICES, TASKS, SFT_MODELS, GRPO_MODELS),
        outputs=(EVALUATIONS,),
        plan=evaluate.plan,
        run=evaluate.run,
        rooms=("evaluation", "training", "library"),
        deterministic=False,  # an endpoint may fail one attempt and answer another
        reads=evaluate.reads,
    ),
    Stage(
        name="report",
        config=report.ReportConfig,
        inputs=report.READ,
        outputs=(report.PAGES,),
        plan=report.plan,
        run=report.run,
        rooms=("viewer", "training", "evaluation", "library"),
        outside=report.outside,
        optional=report.MAY_READ,
    ),
)

GRAPH: Final = StageGraph(STAGES)


def everything(configs: Mapping[str, BaseModel]) -> tuple[str, ...]:
    """What a run of everything runs: the stages that need no optional dependencies, and those that make what they read.

    Args:
        configs: Of each stage, by name.
    """
    wanted = {name for name in GRAPH.order if not GRAPH[name].extra}
    for name in reversed(GRAPH.order):
        if name in wanted:
            wanted |= {GRAPH.producer(item.name) for item in GRAPH[name].needs(configs[name])}
    return tuple(name for name in GRAPH.order if name in wanted)
