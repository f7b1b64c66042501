"""Statistics of trials: how sure a figure is, and whether two runs differ.

Tasks are what is drawn at random; trials of one task resemble each other. So intervals and tests take the task as their
unit: a task that is drawn again brings all its trials along, and twice as many trials of the same tasks claim no more.

    figure                          interval
    share of tasks, or of trials    Wilson's score interval (J. Am. Stat. Assoc. 22, 1927) over tasks
    any ratio of sums over tasks    percentile bootstrap over tasks (Efron 1979)
    difference between two runs     the same bootstrap over tasks that both have; exact sign test over them, which is
                                    McNemar's exact test (Psychometrika 12, 1947) where a task has one trial

Where all tasks are alike, drawing them again tells nothing, and a bootstrap claims to be certain, of one task as of a
hundred. There the interval is what Wilson's is at 0 and at 1: so many tasks as could well have been missed may differ.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import Final

import numpy as np
import numpy.typing as npt

from compoworld_core.data import Data

RESAMPLES: Final = 10_000
"""Bootstrap samples: the ends of an interval vary by about a fiftieth of its width from seed to seed."""

CONFIDENCE: Final = 0.95
"""How often an interval is to hold what it is for."""

_SAME: Final = 1e-12

_AT_ONCE: Final = 2_000_000
"""Drawn tasks that are held in memory at a time."""


class Interval(Data):
    """A confidence interval."""

    low: float
    high: float


def wilson(share: float, units: int) -> Interval:
    """Wilson's score interval of a proportion; it stays within [0, 1] and tells something at 0 and at 1, too.

    Args:
        share: What was observed.
        units: Of how many that are independent of each other.
    """
    if units == 0:
        return Interval(low=0.0, high=1.0)
    z = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
    scale = 1 + z * z / units
    middle = (share + z * z / (2 * units)) / scale
    reach = z * math.sqrt(share * (1 - share) / units + z * z / (4 * units * units)) / scale
    return Interval(low=max(0.0, middle - reach), high=min(1.0, middle + reach))


def bootstrap(
    sums: Sequence[float],
    counts: Sequence[float] | None = None,
    *,
    bounds: tuple[float, float] = (0.0, 1.0),
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Interval:
    """Percentile interval of Σ sums / Σ counts over tasks that are drawn with replacement.

    Args:
        sums: Of each task, such as its passed trials.
        counts: Of each task, such as its trials; 1 each if left out, which makes the ratio a mean.
        bounds: Of what a task can have.
        seed: Of the draws.
        resamples: How often as many tasks as there are are drawn.
    """
    ratios = _resampled(np.asarray(sums, float), None if counts is None else np.asarray(counts, float), seed, resamples)
    ratios = ratios[~np.isnan(ratios)]
    if not len(ratios):
        return Interval(low=-math.inf, high=math.inf)
    if np.ptp(ratios) <= _SAME:
        return alike(float(ratios[0]), len(sums), bounds)
    low, high = np.quantile(ratios, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2])
    return Interval(low=float(low), high=float(high))


def alike(value: float, units: int, bounds: tuple[float, float] = (0.0, 1.0)) -> Interval:
    """Interval of a mean of which all units are the same.

    Args:
        value: Of each.
        units: How many were seen.
        bounds: Of what others could have.
    """
    missed = wilson(0.0, units).high
    return Interval(low=value - missed * (value - bounds[0]), high=value + missed * (bounds[1] - value))


def _resampled(
    sums: npt.NDArray[np.float64], counts: npt.NDArray[np.float64] | None, seed: int, resamples: int
) -> npt.NDArray[np.float64]:
    """The ratio in each resample; not a number where nothing was counted in it."""
    tasks = len(sums)
    if tasks == 0:
        return np.empty(0)
    rng = np.random.default_rng(seed)
    parts = []
    rows = max(1, _AT_ONCE // tasks)
    for begun in range(0, resamples, rows):
        drawn = rng.integers(0, tasks, (min(rows, resamples - begun), tasks))
        total = sums[drawn].sum(axis=1)
        with np.errstate(invalid="ignore", divide="ignore"):
            parts.append(total / tasks if counts is None else total / counts[drawn].sum(axis=1))
    return np.concatenate(parts)


class Paired(Data):
    """What two runs on the same tasks differ by.

    Attributes:
        difference: Mean over tasks of what the second has more than the first.
        interval: Of the difference, by bootstrap over tasks.
        wins: Tasks on which the second is better.
        losses: Tasks on which the first is.
        p_value: Two-sided, of the exact sign test.
    """

    tasks: int
    difference: float
    interval: Interval
    wins: int
    losses: int
    p_value: float


def paired(
    first: Sequence[float],
    second: Sequence[float],
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Paired:
    """Compare two runs.

    Args:
        first: What one run has on each task, in [0, 1], as the mean of its trials or seeds there.
        second: What the other has on the same tasks, in the same order.
        seed: Of the bootstrap.
        resamples: Of the bootstrap.
    """
    differences = [after - before for before, after in zip(first, second, strict=True)]
    wins = sum(value > 0 for value in differences)
    losses = sum(value < 0 for value in differences)
    return Paired(
        tasks=len(differences),
        difference=math.fsum(differences) / len(differences) if differences else 0.0,
        interval=bootstrap(differences, bounds=(-1.0, 1.0), seed=seed, resamples=resamples),
        wins=wins,
        losses=losses,
        p_value=sign_test(wins, losses),
    )


def sign_test(wins: int, losses: int) -> float:
    """Chance of a split at least so uneven if either were as likely; two-sided and exact.

    Where each task has one trial that passes or fails, this is McNemar's exact test: what counts is the tasks that only
    one of the runs passes.
    """
    decided = wins + losses
    tail = sum(math.comb(decided, count) for count in range(min(wins, losses) + 1))
    return float(min(1, 2 * tail / 2**decided))
