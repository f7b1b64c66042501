"""Report: everything that was made, on one page."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, Field

from compoworld_core import __version__
from compoworld_core.data import Data
from compoworld_core.evaluation.trial import EVALUATIONS
from compoworld_core.pipeline.stage import Inputs, Shard
from compoworld_core.pipeline.work.learning import phases, standings
from compoworld_core.pipeline.work.opening import open_catalogue
from compoworld_core.rollouts.contamination import fingerprint
from compoworld_core.rollouts.selection import SelectionRules, select
from compoworld_core.rollouts.trajectory import TRAJECTORIES
from compoworld_core.services.datasets import SERVICES
from compoworld_core.services.world_model.prediction import NO_PREDICTIONS
from compoworld_core.specs.datasets import REJECTIONS, SPECS
from compoworld_core.storage import DatasetType
from compoworld_core.synthesis.datasets import OMISSIONS, VERIFICATIONS
from compoworld_core.tasks.datasets import ATTEMPTS, TASKS
from compoworld_core.tasks.quality import verifier_quality
from compoworld_core.training.datasets import GRPO_MODELS, SFT_MODELS
from compoworld_core.viewer.report import ReportData, render_report

REPORT: Final = "report.html"

READ: Final[tuple[DatasetType[Any], ...]] = (
    SPECS,
    REJECTIONS,
    SERVICES,
    OMISSIONS,
    VERIFICATIONS,
    TASKS,
    ATTEMPTS,
    TRAJECTORIES,
)
MAY_READ: Final[tuple[DatasetType[Any], ...]] = (SFT_MODELS, GRPO_MODELS, EVALUATIONS)


class ReportConfig(Data):
    """What the report looks into."""

    quality_tasks: int = Field(default=40, ge=0, description="Tasks whose rubrics are tried with held-out slips.")
    selection: SelectionRules = Field(default=SelectionRules(), description="Taken from export.")


class Page(Data):
    """A self-contained HTML page.

    Attributes:
        kill_rate: Of held-out slips, the share that rubrics noticed; None where none were tried.
    """

    name: str
    html: str
    kill_rate: float | None = None


PAGES = DatasetType("reports", 2, Page)


def outside(config: ReportConfig) -> str | None:
    """Digest of the texts that training data stays clear of, if there are any.

    Raises:
        InputError: They can't be read.
    """
    folder = config.selection.decontaminate
    return None if folder is None else fingerprint(Path(folder))


def plan(config: ReportConfig, inputs: Inputs) -> int:
    """One: a page shows everything."""
    return 1


def run(config: ReportConfig, inputs: Inputs, shard: Shard) -> Iterator[BaseModel]:
    """The page."""
    tasks = tuple(inputs[TASKS])
    tried = tasks[: config.quality_tasks]
    made = [item for item in (*READ, *MAY_READ) if inputs.find(item) is not None]
    standing, gained = standings(inputs.find(EVALUATIONS) or ())
    quality = verifier_quality(tried, open_catalogue(inputs[SERVICES], NO_PREDICTIONS)) if tried else None
    data = ReportData(
        created_from={item.name: inputs[item].location.key for item in made},
        version=__version__,
        specs=inputs[SPECS],
        rejections=inputs[REJECTIONS],
        packages=inputs[SERVICES],
        omissions=inputs[OMISSIONS],
        admissions=inputs[VERIFICATIONS],
        tasks=tasks,
        quality=quality,
        attempts=inputs[ATTEMPTS],
        trajectories=inputs[TRAJECTORIES],
        selection=select(inputs[TRAJECTORIES], tasks, config.selection),
        phases=phases(shard.store, inputs),
        standings=standing,
        gains=gained,
    )
    yield Page(name=REPORT, html=render_report(data), kill_rate=quality.kill_rate if quality else None)
