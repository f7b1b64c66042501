"""How often a task succeeds when it is tried several times: Avg@n, pass@k and pass^k, as their authors define them."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from statistics import fmean

from compoworld_core.evaluation.collection import Metric
from compoworld_core.evaluation.trial import Trial


def pass_hat(trials: int, successes: int, k: int) -> float:
    """Chance that k trials, drawn from those there are, all succeed: C(c, k) / C(n, k) (arXiv 2406.12045)."""
    return math.comb(successes, k) / math.comb(trials, k)


def pass_at(trials: int, successes: int, k: int) -> float:
    """Chance that one of k trials, drawn from those there are, succeeds: 1 − C(n − c, k) / C(n, k)."""
    return 1 - math.comb(trials - successes, k) / math.comb(trials, k)


def outcomes(rows: Iterable[Trial]) -> dict[str, list[bool]]:
    """Of each task the trials that were scored, in the order of tasks."""
    found: dict[str, list[bool]] = defaultdict(list)
    for row in rows:
        if row.passed is not None:
            found[row.task].append(row.passed)
    return dict(sorted(found.items()))


def pass_hats(tasks: Sequence[Sequence[bool]], unit: str = "task") -> tuple[Metric, ...]:
    """pass^k for each k up to the fewest trials of a task; pass^1 without a value where there is no task."""
    return tuple(
        Metric(
            name=f"pass^{k}",
            value=fmean(pass_hat(len(tried), sum(tried), k) for tried in tasks) if tasks else None,
            definition=f"mean over {unit}s of C(passed trials, {k}) / C(trials, {k})",
            units=len(tasks),
        )
        for k in range(1, _fewest(tasks) + 1)
    )


def pass_ats(tasks: Sequence[Sequence[bool]], unit: str = "task") -> tuple[Metric, ...]:
    """pass@k for each k up to the fewest trials of a task."""
    return tuple(
        Metric(
            name=f"pass@{k}",
            value=fmean(pass_at(len(tried), sum(tried), k) for tried in tasks) if tasks else None,
            definition=f"mean over {unit}s of 1 − C(failed trials, {k}) / C(trials, {k})",
            units=len(tasks),
        )
        for k in range(1, _fewest(tasks) + 1)
    )


def average(tasks: Sequence[Sequence[bool]], trials: int, unit: str = "task") -> Metric:
    """Avg@n: the share of trials that passed, averaged over tasks."""
    return Metric(
        name=f"Avg@{trials}",
        value=fmean(fmean(tried) for tried in tasks) if tasks else None,
        definition=f"mean over {unit}s of the share of their trials that passed",
        units=len(tasks),
    )


def _fewest(tasks: Sequence[Sequence[bool]]) -> int:
    return min((len(tried) for tried in tasks), default=1)
