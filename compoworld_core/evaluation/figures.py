"""Figures of trials: what a model reaches, how sure that is, and on which kinds of tasks.

Every figure is a mean over tasks of what a task's trials have, so that a task counts once however often it was tried;
`valid_calls` alone is a share of all calls. Trials that were not scored are in no figure and are counted beside them.

    passed       share of trials that pass all criteria, which is pass@1 and pass^1
    pass@k       chance that one of k trials passes (arXiv 2107.03374)
    pass^k       chance that all of k trials pass (arXiv 2406.12045)
    partial      the benchmark's own partial score, for the held-out suite the share of criteria that hold
    earned       share of criteria that hold among those that doing nothing does not satisfy
    valid_calls  share of calls that are well formed and that their tool's schema allows; a trial without any call
                 counts as one that is not, for nothing can be done without
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from statistics import fmean
from typing import Final

from compoworld_core.data import Data
from compoworld_core.evaluation.repeats import pass_at, pass_hat
from compoworld_core.evaluation.statistics import Interval, Paired, bootstrap, paired, wilson
from compoworld_core.evaluation.trial import Trial

_SUCCESSORS: Final = ("base", "sft", "grpo")
"""Models of a run of which each is made of the one before, so that they are compared."""


class Figure(Data):
    """A value with its interval; both None where there is nothing that it could be worked out from."""

    value: float | None
    interval: Interval | None


NOTHING: Final = Figure(value=None, interval=None)


class Figures(Data):
    """What some trials of one model come to.

    Attributes:
        tasks: With at least one trial that was scored.
        trials: All of them.
        unscored: Those that were not scored, each for an error.
        errors: Those with an error, scored or not.
        pass_at: pass@k for k = 1, 2 … up to the fewest scored trials of a task.
        pass_hat: pass^k likewise.
    """

    tasks: int
    trials: int
    unscored: int
    errors: int
    passed: Figure
    pass_at: tuple[Figure, ...]
    pass_hat: tuple[Figure, ...]
    partial: Figure
    earned: Figure
    valid_calls: Figure
    steps: float | None
    tokens: int
    usd: float | None


class Scores(Data):
    """One model on one benchmark: all of its trials, and those of each kind of task.

    Attributes:
        kinds: Figures by `domain`, `difficulty` or `capability` and its name.
    """

    benchmark: str
    model: str
    overall: Figures
    kinds: dict[str, dict[str, Figures]]


class Gain(Data):
    """What one model has more than another on the tasks that both were scored on, by measure."""

    benchmark: str
    first: str
    second: str
    measures: dict[str, Paired]


def _passed(trials: Sequence[Trial]) -> float | None:
    return fmean(bool(trial.passed) for trial in trials)


def _partial(trials: Sequence[Trial]) -> float | None:
    return fmean(trial.score or 0.0 for trial in trials)


def _earned(trials: Sequence[Trial]) -> float | None:
    shares = []
    for trial in trials:
        open_ones = [holds for holds, idle in zip(trial.criteria, trial.idle, strict=False) if not idle]
        if open_ones:
            shares.append(fmean(open_ones))
    return fmean(shares) if shares else None


MEASURES: Final[Mapping[str, Callable[[Sequence[Trial]], float | None]]] = {
    "passed": _passed,
    "partial": _partial,
    "earned": _earned,
}
"""What a task's scored trials have, by the figure's name."""


def scores(trials: Iterable[Trial]) -> tuple[Scores, ...]:
    """The scores of every model on every benchmark, in the order in which they first occur."""
    return tuple(
        Scores(benchmark=benchmark, model=model, overall=figures(found), kinds=_by_kind(found))
        for (benchmark, model), found in _by_model(trials).items()
    )


def _by_model(trials: Iterable[Trial]) -> dict[tuple[str, str], list[Trial]]:
    """Trials by benchmark and model, in the order in which these first occur."""
    by_model: dict[tuple[str, str], list[Trial]] = defaultdict(list)
    for trial in trials:
        by_model[trial.benchmark, trial.model].append(trial)
    return dict(by_model)


def _by_kind(trials: Sequence[Trial]) -> dict[str, dict[str, Figures]]:
    kinds: dict[str, dict[str, list[Trial]]] = {"domain": {}, "difficulty": {}, "capability": {}}
    for trial in trials:
        for kind, names in (
            ("domain", (trial.domain,)),
            ("difficulty", (trial.difficulty,)),
            ("capability", trial.capabilities),
        ):
            for name in filter(None, names):
                kinds[kind].setdefault(name, []).append(trial)
    return {
        kind: {name: figures(found) for name, found in sorted(names.items())} for kind, names in kinds.items() if names
    }


def figures(trials: Sequence[Trial]) -> Figures:
    """What trials of one model come to."""
    tasks = _scored(trials)
    fewest = min(map(len, tasks.values()), default=0)
    paid = [trial.usd for trial in trials if trial.usd is not None]
    steps = [trial.steps for trial in trials if trial.steps is not None and trial.passed is not None]
    share = fmean(_passed(found) or 0.0 for found in tasks.values()) if tasks else None
    return Figures(
        tasks=len(tasks),
        trials=len(trials),
        unscored=sum(trial.passed is None for trial in trials),
        errors=sum(trial.error is not None for trial in trials),
        passed=NOTHING if share is None else Figure(value=share, interval=wilson(share, len(tasks))),
        pass_at=tuple(_repeated(tasks, pass_at, k) for k in range(1, fewest + 1)),
        pass_hat=tuple(_repeated(tasks, pass_hat, k) for k in range(1, fewest + 1)),
        partial=_mean(_values(tasks, _partial).values()),
        earned=_mean(_values(tasks, _earned).values()),
        valid_calls=_valid_calls(trials),
        steps=fmean(steps) if steps else None,
        tokens=sum((trial.prompt_tokens or 0) + (trial.completion_tokens or 0) for trial in trials),
        usd=sum(paid) if paid else None,
    )


def gained(first: Iterable[Trial], second: Iterable[Trial]) -> dict[str, Paired]:
    """What the second of two models, or of two runs, has more on the tasks that both were scored on, by measure."""
    before, after = _scored(first), _scored(second)
    measures = {}
    for name, measure in MEASURES.items():
        one, other = _values(before, measure), _values(after, measure)
        shared = sorted(one.keys() & other.keys())
        measures[name] = paired([one[task] for task in shared], [other[task] for task in shared])
    return measures


def gains(trials: Iterable[Trial]) -> tuple[Gain, ...]:
    """What each phase of training has brought, as far as the models before and after it were evaluated."""
    by_model = _by_model(trials)
    found = []
    for benchmark in sorted({benchmark for benchmark, _ in by_model}):
        present = [name for name in _SUCCESSORS if (benchmark, name) in by_model]
        for first, second in pairwise(present):
            measures = gained(by_model[benchmark, first], by_model[benchmark, second])
            found.append(Gain(benchmark=benchmark, first=first, second=second, measures=measures))
    return tuple(found)


def _scored(trials: Iterable[Trial]) -> dict[str, list[Trial]]:
    """Trials that were scored, by task."""
    tasks: dict[str, list[Trial]] = defaultdict(list)
    for trial in trials:
        if trial.passed is not None:
            tasks[trial.task].append(trial)
    return dict(tasks)


def _values(
    tasks: Mapping[str, Sequence[Trial]], measure: Callable[[Sequence[Trial]], float | None]
) -> dict[str, float]:
    """What each task has of a measure, if it has any."""
    return {task: value for task, found in tasks.items() if (value := measure(found)) is not None}


def _mean(values: Iterable[float]) -> Figure:
    values = list(values)
    return Figure(value=fmean(values), interval=bootstrap(values)) if values else NOTHING


def _repeated(tasks: Mapping[str, Sequence[Trial]], chance: Callable[[int, int, int], float], k: int) -> Figure:
    return _mean([chance(len(found), sum(bool(item.passed) for item in found), k) for found in tasks.values()])


def _valid_calls(trials: Iterable[Trial]) -> Figure:
    made: dict[str, int] = defaultdict(int)
    valid: dict[str, int] = defaultdict(int)
    for trial in trials:
        if trial.calls is not None and trial.passed is not None:
            made[trial.task] += max(trial.calls, 1)
            valid[trial.task] += trial.valid_calls or 0
    if not made:
        return NOTHING
    interval = bootstrap([valid[task] for task in made], list(made.values()))
    return Figure(value=sum(valid.values()) / sum(made.values()), interval=interval)
