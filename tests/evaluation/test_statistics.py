"""Intervals and tests, held against SciPy and statsmodels."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.proportion import proportion_confint

from compoworld_core.evaluation.repeats import pass_at, pass_hat
from compoworld_core.evaluation.statistics import CONFIDENCE, bootstrap, paired, sign_test, wilson

counts = st.integers(1, 400).flatmap(lambda units: st.tuples(st.integers(0, units), st.just(units)))


@given(counts)
def test_wilsons_interval_is_that_of_statsmodels(observed: tuple[int, int]) -> None:
    passed, units = observed

    interval = wilson(passed / units, units)

    expected = proportion_confint(passed, units, alpha=1 - CONFIDENCE, method="wilson")
    assert (interval.low, interval.high) == pytest.approx(expected, abs=1e-12)


def test_nothing_observed_leaves_everything_possible() -> None:
    assert (wilson(0.0, 0).low, wilson(0.0, 0).high) == (0, 1)


@pytest.mark.parametrize("tasks", [5, 60, 700])
def test_the_bootstrap_of_a_mean_is_that_of_scipy(tasks: int) -> None:
    values = np.random.default_rng(1).beta(2, 5, tasks)

    interval = bootstrap(values.tolist(), seed=3, resamples=2000)

    expected = stats.bootstrap(
        (values,), np.mean, n_resamples=2000, method="percentile", rng=np.random.default_rng(3), vectorized=True
    ).confidence_interval
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_the_bootstrap_of_a_ratio_keeps_trials_of_a_task_together() -> None:
    rng = np.random.default_rng(2)
    trials = rng.integers(1, 6, 80)
    passed = rng.binomial(trials, 0.3)

    interval = bootstrap(passed.tolist(), trials.tolist(), seed=5, resamples=3000)

    expected = stats.bootstrap(
        (passed, trials),
        lambda some, of, axis: some.sum(axis=axis) / of.sum(axis=axis),
        n_resamples=3000,
        paired=True,
        method="percentile",
        rng=np.random.default_rng(5),
    ).confidence_interval
    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high), abs=1e-12)


def test_more_trials_of_the_same_tasks_claim_no_more() -> None:
    passed = [random.Random(task).random() < 0.4 for task in range(50)]

    once = bootstrap(passed, [1] * 50)
    five_times = bootstrap([5 * value for value in passed], [5] * 50)

    assert five_times == once


def test_as_many_resamples_as_memory_does_not_hold_at_once_are_drawn_in_parts() -> None:
    values = np.random.default_rng(1).random(3000)

    interval = bootstrap(values.tolist(), resamples=1500)

    spread = values.std() / np.sqrt(3000)
    assert (interval.low, interval.high) == pytest.approx(
        (values.mean() - 1.96 * spread, values.mean() + 1.96 * spread), abs=0.15 * spread
    )


@given(st.integers(0, 60), st.integers(0, 60))
def test_the_sign_test_is_mcnemars(wins: int, losses: int) -> None:
    expected = mcnemar([[7, wins], [losses, 11]], exact=True).pvalue

    assert sign_test(wins, losses) == pytest.approx(expected, abs=1e-12)
    if wins + losses:
        assert sign_test(wins, losses) == pytest.approx(stats.binomtest(wins, wins + losses).pvalue, abs=1e-12)


def test_a_difference_is_that_of_pairs_and_not_of_groups() -> None:
    rng = np.random.default_rng(4)
    hardness = rng.uniform(0, 1, 120)
    before, after = 0.9 * hardness, np.minimum(1, 0.9 * hardness + 0.03 + rng.normal(0, 0.01, 120))

    gain = paired(before.tolist(), after.tolist(), seed=6, resamples=2000)

    expected = stats.bootstrap(
        (after - before,), np.mean, n_resamples=2000, method="percentile", rng=np.random.default_rng(6)
    ).confidence_interval
    assert (gain.interval.low, gain.interval.high) == pytest.approx((expected.low, expected.high), abs=1e-12)
    assert gain.difference == pytest.approx((after - before).mean())
    assert (gain.wins, gain.losses) == (int((after > before).sum()), int((after < before).sum()))
    unpaired = stats.ttest_ind(before, after)
    assert unpaired.pvalue > 0.05 > gain.p_value, "what groups cannot tell apart, pairs do"


def test_runs_of_different_tasks_are_not_compared() -> None:
    with pytest.raises(ValueError, match="shorter"):
        paired([1.0, 0.0], [1.0])


@given(counts, st.integers(1, 8))
def test_chances_of_repeated_trials_are_those_of_drawing_without_replacement(
    observed: tuple[int, int], drawn: int
) -> None:
    passed, trials = observed
    k = min(drawn, trials)
    urn = stats.hypergeom(trials, passed, k)

    assert pass_hat(trials, passed, k) == pytest.approx(urn.pmf(k), abs=1e-9)
    assert pass_at(trials, passed, k) == pytest.approx(1 - urn.pmf(0), abs=1e-9)


@pytest.mark.parametrize("tasks", [1, 2, 100])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_tasks_that_are_all_alike_make_nothing_certain(tasks: int, value: float) -> None:
    interval, expected = bootstrap([value] * tasks), wilson(value, tasks)

    assert (interval.low, interval.high) == pytest.approx((expected.low, expected.high))
    assert bootstrap([3 * value] * tasks, [3] * tasks) == interval


def test_one_task_shows_no_gain_and_many_do() -> None:
    assert paired([0.0], [1.0]).interval.low < 0 < paired([0.0] * 50, [1.0] * 50).interval.low
    same = paired([0.5] * 50, [0.5] * 50)
    assert -0.1 < same.interval.low < 0 < same.interval.high < 0.1
