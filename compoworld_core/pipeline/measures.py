"""How good a run is, in shares that can be compared with those of another run, and where it is worse."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from pydantic import Field

from compoworld_core.data import Data
from compoworld_core.evaluation.references import REFERENCES
from compoworld_core.evaluation.trial import EVALUATIONS
from compoworld_core.pipeline.work.report import PAGES
from compoworld_core.storage import DatasetLocation, Store, read_dataset

_NAMES: Final = {
    "task_yield": "accepted share of the attempts at tasks",
    "success_rate": "share of trajectories that are verified successes",
    "kill_rate": "share of held-out slips that rubrics notice",
}


class Measures(Data):
    """Shares, each in [0, 1] and the higher the better.

    Attributes:
        task_yield: Of the attempts at tasks, those that were accepted.
        success_rate: Of the trajectories, those that are verified successes.
        kill_rate: Of held-out slips, those that rubrics notice; None where none were tried.
        scores: Of the scored trials on held-out tasks, those that passed, by model; references are left out.
        benchmarks: Headline figures of benchmarks of others, such as `tau3-banking of sft`.
    """

    task_yield: float
    success_rate: float
    kill_rate: float | None = None
    scores: dict[str, float] = Field(default_factory=dict)
    benchmarks: dict[str, float] = Field(default_factory=dict)


def measure(
    store: Store,
    locations: Mapping[str, DatasetLocation],
    *,
    attempts: int,
    tasks: int,
    trajectories: int,
    successes: int,
    benchmarks: Mapping[str, float] | None = None,
) -> Measures:
    """Work them out from a run's datasets.

    Args:
        locations: Of the datasets that the run has, by name.
        benchmarks: Headline figures, which no dataset of a run has.
    """
    pages = read_dataset(store, locations[PAGES.name], PAGES) if PAGES.name in locations else ()
    trials = read_dataset(store, locations[EVALUATIONS.name], EVALUATIONS) if EVALUATIONS.name in locations else ()
    outcomes: dict[str, list[bool]] = {}
    for trial in trials:
        if trial.passed is not None and trial.model not in REFERENCES:
            outcomes.setdefault(trial.model, []).append(trial.passed)
    return Measures(
        task_yield=_share(tasks, attempts),
        success_rate=_share(successes, trajectories),
        kill_rate=next((page.kill_rate for page in pages), None),
        scores={model: _share(sum(passed), len(passed)) for model, passed in sorted(outcomes.items())},
        benchmarks=dict(sorted((benchmarks or {}).items())),
    )


def drops(now: Measures, before: Measures, most: float) -> Iterator[str]:
    """A sentence for each measure that fell by more than that; one that is no longer there has fallen.

    But for benchmarks of others: who starts a run decides for each whether to pay for it.
    """
    for name, meaning in _NAMES.items():
        yield from _drop(meaning, getattr(now, name), getattr(before, name), most)
    for model, score in sorted(before.scores.items()):
        yield from _drop(f"score of {model} on held-out tasks", now.scores.get(model), score, most)
    for name in sorted(before.benchmarks.keys() & now.benchmarks.keys()):
        yield from _drop(f"figure of {name}", now.benchmarks[name], before.benchmarks[name], most)


def _drop(meaning: str, now: float | None, before: float | None, most: float) -> Iterator[str]:
    if before is None:
        return
    if now is None:
        yield f"the {meaning} was not measured, and it was {before:.3f}"
    elif now < before - most - 1e-9:  # what is equal but for rounding did not fall
        yield f"the {meaning} fell from {before:.3f} to {now:.3f}"


def _share(part: int, whole: int) -> float:
    return round(part / whole, 6) if whole else 0.0
