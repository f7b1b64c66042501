"""The promises of the rewards, for every group of rollouts."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from compoworld_core.errors import InputError
from compoworld_core.training.reward import (
    REWARDS,
    Passed,
    completion_focused_reward,
    criterion_weights,
    group_advantages,
)

CLOSE = 1e-12

groups = arrays.arrays(np.bool_, st.tuples(st.integers(1, 16), st.integers(1, 12)))
floors = st.floats(0.001, 1)


@st.composite
def places(draw: st.DrawFn) -> tuple[Passed, int, int]:
    """A group with one of its rollouts and one of its criteria."""
    passed = draw(groups)
    return passed, draw(st.integers(0, passed.shape[0] - 1)), draw(st.integers(0, passed.shape[1] - 1))


def test_a_rare_criterion_weighs_most() -> None:
    passed = np.array([[True, True], [True, False], [True, False], [True, False]])

    weights = criterion_weights(passed)

    assert weights == pytest.approx([0.01 / 0.76, 0.75 / 0.76])
    assert completion_focused_reward(passed) == pytest.approx([1, 0.01 / 0.76, 0.01 / 0.76, 0.01 / 0.76])


@given(groups, floors)
def test_weights_sum_to_one_and_none_is_zero(passed: Passed, floor: float) -> None:
    weights = criterion_weights(passed, floor)

    assert weights.sum() == pytest.approx(1)
    assert (weights > 0).all()


@given(groups)
@pytest.mark.parametrize("name", REWARDS)
def test_one_is_for_a_full_pass_and_for_nothing_else(name: str, passed: Passed) -> None:
    rewards = REWARDS[name](passed)  # type: ignore[index]

    assert ((rewards == 1) == passed.all(axis=1)).all()
    assert ((rewards >= 0) & (rewards <= 1)).all()


@given(groups, floors)
def test_who_passes_a_superset_never_scores_less_in_the_group(passed: Passed, floor: float) -> None:
    rewards = completion_focused_reward(passed, floor)

    for one, mine in enumerate(passed):
        for other, theirs in enumerate(passed):
            if (mine >= theirs).all():
                assert rewards[one] >= rewards[other] - CLOSE


@given(places(), floors)
def test_passing_one_more_criterion_never_lowers_the_own_reward(place: tuple[Passed, int, int], floor: float) -> None:
    passed, rollout, criterion = place
    better = passed.copy()
    better[rollout, criterion] = True

    before, after = completion_focused_reward(passed, floor), completion_focused_reward(better, floor)

    assert after[rollout] >= before[rollout] - CLOSE


@given(groups, st.randoms(use_true_random=False))
def test_order_of_rollouts_and_criteria_does_not_matter(passed: Passed, random: object) -> None:
    rng = np.random.default_rng(random.randrange(2**32))  # type: ignore[attr-defined]
    rollouts, criteria = rng.permutation(passed.shape[0]), rng.permutation(passed.shape[1])

    shuffled = completion_focused_reward(passed[rollouts][:, criteria])

    assert shuffled == pytest.approx(completion_focused_reward(passed)[rollouts])


def test_the_floor_keeps_what_all_pass_from_counting_nothing() -> None:
    passed = np.array([[True, True], [True, False]])

    assert criterion_weights(passed, floor=0.5) == pytest.approx([0.5, 0.5])
    assert criterion_weights(passed, floor=0.01)[0] == pytest.approx(0.01 / 0.51)


@pytest.mark.parametrize(("value", "expected"), [(True, 1.0), (False, 0.0)])
@pytest.mark.parametrize("name", REWARDS)
def test_groups_in_which_all_pass_or_all_fail_give_no_advantage(name: str, value: bool, expected: float) -> None:
    rewards = REWARDS[name](np.full((8, 5), value))  # type: ignore[index]

    assert (rewards == expected).all()
    assert (group_advantages(rewards) == 0).all()


@pytest.mark.parametrize(
    "passed",
    [np.zeros((0, 3), bool), np.zeros((3, 0), bool), np.zeros(3, bool), np.zeros((2, 2))],
    ids=["no rollout", "no criterion", "one dimension", "no bools"],
)
def test_what_is_no_group_is_refused(passed: Passed) -> None:
    with pytest.raises(InputError, match=r"bool array \[N rollouts, C criteria\]"):
        completion_focused_reward(passed)


@pytest.mark.parametrize("floor", [0, -1, 1.5])
def test_a_floor_out_of_range_is_refused(floor: float) -> None:
    with pytest.raises(InputError, match="floor"):
        completion_focused_reward(np.ones((2, 2), bool), floor)
