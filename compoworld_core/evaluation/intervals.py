"""How sure the figure of a benchmark is: tasks are what is drawn at random, and a task brings all its trials along."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence
from random import Random
from statistics import fmean, quantiles
from typing import Final

from compoworld_core.errors import InputError
from compoworld_core.evaluation.benchmark import Benchmark
from compoworld_core.evaluation.collection import Collection
from compoworld_core.evaluation.repeats import outcomes
from compoworld_core.evaluation.statistics import Interval, alike, wilson
from compoworld_core.evaluation.trial import Trial

_RESAMPLES: Final = 1000
_PARTS: Final = 40
"""Parts of the distribution of which the outer two are cut off: 95 % stay."""


def headline_interval(benchmark: Benchmark, collection: Collection) -> Interval | None:
    """Wilson's interval where the figure is a pass rate; else tasks are drawn again, within each domain.

    None where there is nothing to draw: no row counts, or just one task does.
    """
    value = collection.headline.value
    if value is None or collection.headline.units < 2:
        return None
    passed = outcomes(collection.rows)
    if passed and math.isclose(value, fmean(fmean(tried) for tried in passed.values()), abs_tol=1e-12):
        return wilson(value, collection.headline.units)
    drawn = _drawn_again(benchmark, collection.rows)
    if len(drawn) < 2:
        return None
    if math.isclose(min(drawn), max(drawn), abs_tol=1e-12):
        return alike(value, collection.headline.units)
    cuts = quantiles(drawn, n=_PARTS, method="inclusive")
    return Interval(low=cuts[0], high=cuts[-1])


def _drawn_again(benchmark: Benchmark, rows: Sequence[Trial]) -> list[float]:
    domains: dict[str, dict[str, list[list[Trial]]]] = defaultdict(lambda: defaultdict(lambda: [[]]))
    for row in rows:
        domains[row.domain][row.task][0].append(row)
    random = Random(0)
    values = []
    for _ in range(_RESAMPLES):
        sample: list[Trial] = []
        for tasks in domains.values():
            drawn: Counter[str] = Counter()
            for name in random.choices(list(tasks), k=len(tasks)):
                if drawn[name] == len(tasks[name]):
                    tasks[name].append([_renamed(row, drawn[name]) for row in tasks[name][0]])
                sample += tasks[name][drawn[name]]
                drawn[name] += 1
        try:
            value = benchmark.measure(sample)[0].value
        except InputError:  # a part of a composite has no scored trial in this draw
            continue
        if value is not None:
            values.append(value)
    return values


def _renamed(row: Trial, number: int) -> Trial:
    """A trial of a task that has been drawn so often already."""
    return Trial.model_construct(**{**row.__dict__, "task": f"{row.task}\n{number}"})
