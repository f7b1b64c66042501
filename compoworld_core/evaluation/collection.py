"""What came out of a benchmark: its rows, the figures worked out from them, and all that does not count."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import Field

from compoworld_core.data import Data
from compoworld_core.evaluation.trial import Trial


class Gap(Data):
    """A trial that should be there and does not count.

    Attributes:
        trial: None where all trials of the task are meant.
        reason: In the harness's words where it has some.
    """

    task: str
    trial: int | None = None
    reason: str


def unscored(rows: Iterable[Trial]) -> list[Gap]:
    """The trials among rows that were not scored, with the reason."""
    return [Gap(task=row.task, trial=row.trial, reason=row.error or "") for row in rows if row.passed is None]


class Metric(Data):
    """A figure that was worked out from rows.

    Attributes:
        name: As its authors call it: `pass^1`, `Avg@4`.
        value: In [0, 1]; None where no row counts.
        definition: How it is worked out, in a sentence.
        units: How many things it is a mean of (tasks, subtasks …).
    """

    name: str
    value: float | None
    definition: str
    units: int


class Collection(Data):
    """The results of one model in one benchmark.

    Attributes:
        unit: What a row's `task` names.
        rows: All trials that there is a result for, whether it counts or not, and those that count although there is
            none because the benchmark says so.
        headline: The figure that is published.
        metrics: Other figures that the harness prints.
        drops: Trials that the harness leaves out of its figures.
        missing: Trials that were expected and have no result.
        setting: What decides whether two results are comparable: `trials`, `tasks`, retrieval mode, skill mode ….
        versions: Of harness, data, grader, judge …, by name.
        warnings: What else a reader should know.
    """

    benchmark: str
    model: str
    unit: str
    rows: tuple[Trial, ...]
    headline: Metric
    metrics: tuple[Metric, ...] = ()
    drops: tuple[Gap, ...] = ()
    missing: tuple[Gap, ...] = ()
    setting: dict[str, str | int] = Field(default={})
    versions: dict[str, str] = Field(default={})
    warnings: tuple[str, ...] = ()

    @property
    def errors(self) -> tuple[Trial, ...]:
        """Rows in which something went wrong."""
        return tuple(row for row in self.rows if row.error is not None)
