"""Runs beside published figures and beside each other, and whether the two may be compared at all.

A score means something only with how it was made: which metric, how many tasks, how many trials of each, and the
conditions that the benchmark leaves to whoever runs it. Two scores are comparable where these agree. What a publication
does not tell cannot be said to agree; it is named, and the pair is comparable as far as is told.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from itertools import combinations
from math import isclose
from statistics import fmean
from typing import Any, Final, Literal

from compoworld_core.data import Data
from compoworld_core.evaluation.collection import Collection, Metric
from compoworld_core.evaluation.figures import gained
from compoworld_core.evaluation.published import Published
from compoworld_core.evaluation.statistics import Interval, Paired, wilson
from compoworld_core.storage import DatasetType

Answer = Literal["yes", "as far as told", "no", ""]
"""Whether two scores are comparable; nothing where there is just one."""

_NUMBERS: Final = {"tasks", "trials", "subtasks"}
"""Settings that metric and rows tell, too."""


class Run(Data):
    """One collection and how it is called in a table.

    Attributes:
        interval: Of the headline.
    """

    name: str
    collection: Collection
    interval: Interval | None = None


class Compared(Data):
    """One line of a comparison: a run beside a published figure or another run.

    Attributes:
        title: What is compared.
        run: None where no run is of this benchmark, so the figure stands alone.
        other: Who the other score is of.
        source: Where it was published; empty for a run.
        basis: How it is known what the other score is.
        unit: Of all scores and differences: percent, or a reward from 0 to 1.
        difference: Of the run to the other.
        reasons: Why the two are not comparable.
        untold: What might differ and is not told by the publication; with the run's own value where it has one. Of two
            runs, what neither tells.
        dropped: Trials of the run that its harness leaves out.
        missing: Trials that were expected of the run and have no result.
        shared: Tasks that both runs were scored on; what follows is worked out from these.
        p_value: Two-sided, of the exact sign test over them.
    """

    benchmark: str
    title: str
    metric: str
    unit: str
    run: str | None = None
    run_score: float | None = None
    run_low: float | None = None
    run_high: float | None = None
    run_tasks: int | None = None
    run_trials: int | None = None
    errors: int | None = None
    dropped: int | None = None
    missing: int | None = None
    other: str
    other_score: float | None
    other_low: float | None = None
    other_high: float | None = None
    other_tasks: int | None = None
    other_trials: int | None = None
    source: str = ""
    basis: str = ""
    difference: float | None = None
    comparable: Answer = ""
    reasons: tuple[str, ...] = ()
    untold: tuple[str, ...] = ()
    shared: int | None = None
    gained: float | None = None
    gained_low: float | None = None
    gained_high: float | None = None
    p_value: float | None = None


COMPARISONS = DatasetType("comparisons", 1, Compared)


def compare(runs: Sequence[Run], figures: Iterable[Published]) -> tuple[Compared, ...]:
    """Every published figure beside every run of its benchmark, then every two runs of one benchmark."""
    figures = tuple(figures)
    return (*_with_published(runs, figures), *_with_each_other(runs, figures))


@dataclass(frozen=True)
class _Side:
    """One of two scores: of whom, how sure it is, and of how many tasks and trials of each."""

    name: str
    score: float | None
    low: float | None = None
    high: float | None = None
    tasks: int | None = None
    trials: int | None = None

    def fields(self, side: str) -> dict[str, Any]:
        """The fields of a comparison that tell it."""
        about = {"score": self.score, "low": self.low, "high": self.high, "tasks": self.tasks, "trials": self.trials}
        return {side: self.name, **{f"{side}_{name}": value for name, value in about.items()}}


def _with_published(runs: Sequence[Run], figures: Iterable[Published]) -> Iterator[Compared]:
    for figure in figures:
        own = [run for run in runs if run.collection.benchmark == figure.benchmark]
        for model, score in figure.scores.items():
            if not own:
                yield Compared(**_about(figure), **_published_side(figure, model, score).fields("other"))
            for run in own:
                yield _beside_published(run, figure, _published_side(figure, model, score))


def _about(figure: Published) -> dict[str, Any]:
    told = figure.model_dump(include={"benchmark", "title", "metric", "unit", "source", "basis"})
    return dict(told)


def _published_side(figure: Published, model: str, score: float) -> _Side:
    sure = wilson(score / 100, figure.tasks) if figure.is_share and figure.tasks else None
    return _Side(
        name=model,
        score=score,
        low=None if sure is None else 100 * sure.low,
        high=None if sure is None else 100 * sure.high,
        tasks=figure.tasks,
        trials=figure.trials,
    )


def _run_side(run: Run, metric: Metric | None, scale: int) -> _Side:
    is_headline = metric is not None and metric.name == run.collection.headline.name
    sure = run.interval if is_headline else None
    return _Side(
        name=run.name,
        score=None if metric is None or metric.value is None else scale * metric.value,
        low=None if sure is None else scale * sure.low,
        high=None if sure is None else scale * sure.high,
        tasks=None if metric is None else metric.units,
        trials=_trials(run.collection),
    )


def _lost(collection: Collection) -> dict[str, Any]:
    return {
        "errors": len(collection.errors),
        "dropped": len(collection.drops),
        "missing": len(collection.missing),
    }


def _less(mine: _Side, other: _Side) -> float | None:
    return None if mine.score is None or other.score is None else mine.score - other.score


def _beside_published(run: Run, figure: Published, other: _Side) -> Compared:
    metric = _metric(run.collection, figure.metric)
    mine = _run_side(run, metric, 100 if figure.unit == "percent" else 1)
    reasons = tuple(_differences(run.collection, metric, figure))
    untold = tuple(_untold(run.collection, figure))
    return Compared(
        **_about(figure),
        **mine.fields("run"),
        **other.fields("other"),
        **_lost(run.collection),
        difference=None if figure.is_change else _less(mine, other),
        comparable="no" if reasons else "as far as told" if untold else "yes",
        reasons=reasons,
        untold=untold,
    )


def _metric(collection: Collection, name: str) -> Metric | None:
    return next((metric for metric in (collection.headline, *collection.metrics) if metric.name == name), None)


def _trials(collection: Collection) -> int:
    """Most trials of a task: as the run was set up, or as there are."""
    set_up = collection.setting.get("trials")
    return set_up if isinstance(set_up, int) else 1 + max((row.trial for row in collection.rows), default=-1)


def _counted(collection: Collection) -> Counter[str]:
    """Of each task the trials that were scored."""
    return Counter(row.task for row in collection.rows if row.passed is not None)


def _uncounted(collection: Collection) -> int:
    """Trials of its tasks that are in no figure: they were not scored, or the task was tried less than others."""
    counted, trials = _counted(collection), _trials(collection)
    return sum(max(0, trials - counted[task]) for task in {row.task for row in collection.rows})


def _told(collection: Collection, condition: str) -> str | None:
    found = collection.setting.get(condition, collection.versions.get(condition))
    return None if found is None or found == "unknown" else str(found)


def _differences(collection: Collection, metric: Metric | None, figure: Published) -> Iterator[str]:
    if figure.is_change:
        yield "published is a change against a base model, not a score"
    if metric is None:
        yield f"the run's figure is {collection.headline.name}, published is {figure.metric}"
    elif metric.value is None:
        yield "no trial of the run counts"
    elif figure.tasks is not None and metric.units != figure.tasks:
        yield f"{metric.units:,} {collection.unit}s, published {figure.tasks:,}"
    if figure.trials is not None and _trials(collection) != figure.trials:
        yield f"{_trials(collection)} trials of each, published {figure.trials}"
    if collection.missing:
        yield f"the run is not whole: {len(collection.missing)} gaps"
    if figure.trials is not None and (lost := _uncounted(collection)):
        yield f"{lost:,} trials of its tasks are in no figure"
    for condition, accepted in figure.states.items():
        value = _told(collection, condition)
        if value is None:
            yield f"{condition}: the run does not tell, published {accepted[0]}"
        elif value not in accepted:
            yield f"{condition}: {value}, published {accepted[0]}"


def _untold(collection: Collection, figure: Published) -> Iterator[str]:
    for condition in figure.leaves_open:
        value = _told(collection, condition)
        yield condition if value is None else f"{condition} (here {value})"

    if figure.trials is None and (lost := _uncounted(collection)):
        yield f"whether trials are left out (here {lost:,})"


def _with_each_other(runs: Sequence[Run], figures: Sequence[Published]) -> Iterator[Compared]:
    for first, second in combinations(runs, 2):
        if first.collection.benchmark == second.collection.benchmark:
            own = [figure for figure in figures if figure.benchmark == first.collection.benchmark]
            yield _beside_run(first, second, {name for figure in own for name in (*figure.states, *figure.leaves_open)})


def _beside_run(earlier: Run, later: Run, conditions: Set[str]) -> Compared:
    """A later run beside an earlier one, and what it gained on the tasks that both have.

    Args:
        conditions: Those that decide about the benchmark's scores, whether or not a run tells them.
    """
    one, two = earlier.collection, later.collection
    mine = _run_side(later, two.headline, 100)
    other = _run_side(earlier, _metric(one, two.headline.name), 100)
    found = _paired(one, two)
    gained = {
        "gained": 100 * found.difference,
        "gained_low": 100 * found.interval.low,
        "gained_high": 100 * found.interval.high,
        "p_value": found.p_value,
    }
    conditions = {"harness", *conditions, *one.setting, *two.setting, *one.versions, *two.versions} - _NUMBERS
    reasons = tuple(_between(one, two, conditions))
    untold = tuple(name for name in sorted(conditions) if _told(one, name) is None and _told(two, name) is None)
    return Compared(
        benchmark=two.benchmark,
        title=f"{two.benchmark}, two runs",
        metric=two.headline.name,
        unit="percent",
        **mine.fields("run"),
        **other.fields("other"),
        **_lost(two),
        difference=_less(mine, other),
        comparable="no" if reasons else "as far as told" if untold else "yes",
        reasons=reasons,
        untold=untold,
        shared=found.tasks,
        **(gained if found.tasks else {}),
    )


def _paired(one: Collection, two: Collection) -> Paired:
    """Over the tasks that both were scored on: of scores where the figure is their mean, else of passed trials."""
    return gained(one.rows, two.rows)["partial" if _is_of_scores(two) else "passed"]


def _is_of_scores(collection: Collection) -> bool:
    scored = [row for row in collection.rows if row.score is not None]
    value = collection.headline.value
    if value is None or not scored:
        return False
    share = fmean(bool(row.passed) for row in scored)
    return not isclose(value, share, abs_tol=1e-9) and isclose(
        value, fmean(row.score or 0.0 for row in scored), abs_tol=1e-9
    )


def _between(one: Collection, two: Collection, conditions: Set[str]) -> Iterator[str]:
    if one.headline.name != two.headline.name:
        yield f"figure: {two.headline.name}, the other {one.headline.name}"
    if _trials(one) != _trials(two):
        yield f"{_trials(two)} trials of each, the other {_trials(one)}"
    tasks, others = {row.task for row in two.rows}, {row.task for row in one.rows}
    if tasks != others:
        yield f"{len(tasks):,} {two.unit}s, the other {len(others):,}, {len(tasks & others):,} are the same"
    counts, other_counts = _counted(two), _counted(one)
    uneven = sum(counts[task] != other_counts[task] for task in tasks & others)
    if uneven and _trials(one) == _trials(two):
        yield f"{uneven:,} of the same {two.unit}s have more trials in one run than in the other"
    for condition in sorted(conditions):
        mine, theirs = _told(two, condition), _told(one, condition)
        if mine != theirs:
            yield f"{condition}: {mine or 'not told'}, the other {theirs or 'not told'}"
