"""What a whole group fails makes no difference without replay, and does with it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from compoworld_core.errors import InputError
from compoworld_core.training.replay import Judged, Replay, Success, failed_by_all, plan_replay, with_replay
from compoworld_core.training.reward import REWARDS, Passed, completion_focused_reward, group_advantages

T, F = True, False
FULL = Success(trajectory="stored", passed=(T, T, T))
STUCK: list[Judged] = [(T, T, F), (T, F, F), (F, F, F), (T, F, F)]
"""Nobody passes the last criterion."""

groups = arrays.arrays(np.bool_, st.tuples(st.integers(2, 9), st.integers(1, 6)))


def advantages(group: list[Judged]) -> list[float]:
    return [float(item) for item in group_advantages(completion_focused_reward(np.array(group, dtype=np.bool_)))]


def rows(passed: Passed) -> list[Judged]:
    return [tuple(row) for row in passed.tolist()]


@given(groups)
def test_without_replay_a_criterion_that_all_fail_adds_nothing_to_any_advantage(passed: Passed) -> None:
    stuck = np.concatenate([passed, np.zeros((len(passed), 1), dtype=np.bool_)], axis=1)

    assert advantages(rows(stuck)) == pytest.approx(advantages(rows(passed)), abs=1e-6)


@given(groups)
def test_with_replay_the_success_has_the_highest_advantage_and_it_is_positive(passed: Passed) -> None:
    assume(not passed.any(axis=0).all())
    group = rows(passed)
    replay = plan_replay(group, [Success(trajectory="stored", passed=(True,) * passed.shape[1])])
    assert replay is not None

    after = advantages(with_replay(group, replay))

    others = after[: replay.place] + after[replay.place + 1 :]
    assert after[replay.place] > 0
    assert after[replay.place] > max(others)
    assert sum(after) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("name", REWARDS)
def test_a_group_that_fails_everything_gets_a_signal_under_every_reward(name: str) -> None:
    group: list[Judged] = [(F, F, F)] * 4
    reward = REWARDS[name]  # type: ignore[index]

    before = group_advantages(reward(np.array(group)))
    joined = with_replay(group, plan_replay(group, [FULL]))
    after = group_advantages(reward(np.array(joined)))

    assert before.tolist() == [0, 0, 0, 0]
    assert after[3] > 0 > after[0] == after[1] == after[2]


def test_the_missing_criterion_weighs_most_once_the_success_is_there() -> None:
    joined = with_replay(STUCK, plan_replay(STUCK, [FULL]))
    without_it = [passed[:2] for passed in joined if passed is not None]

    assert advantages(joined)[3] > advantages(list(without_it))[3]


def test_the_success_takes_the_last_place_or_that_of_a_rollout_that_was_not_judged() -> None:
    assert plan_replay(STUCK, [FULL]) == Replay(place=3, success=FULL, criteria=(2,))
    assert plan_replay([STUCK[0], None, *STUCK[1:]], [FULL]) == Replay(place=1, success=FULL, criteria=(2,))


def test_the_place_does_not_depend_on_how_well_rollouts_did() -> None:
    plans = [plan_replay([*STUCK[turn:], *STUCK[:turn]], [FULL]) for turn in range(4)]

    assert {plan and plan.place for plan in plans} == {3}


def test_of_several_successes_the_one_that_passes_most_of_what_is_missing_is_replayed() -> None:
    group: list[Judged] = [(T, F, F), (T, F, F)]
    partly = Success(trajectory="partly", passed=(F, T, F))
    twin = Success(trajectory="twin", passed=(T, T, T))

    plan = plan_replay(group, [partly, FULL, twin])

    assert plan is not None
    assert (plan.success, plan.criteria) == (FULL, (1, 2))


@pytest.mark.parametrize(
    ("group", "stored"),
    [
        ([(T, F), (F, T)], [Success(trajectory="a", passed=(T, T))]),
        ([(T, F), (T, F)], []),
        ([(T, F), (T, F)], [Success(trajectory="a", passed=(T, F))]),
        ([None, None], [Success(trajectory="a", passed=(T, T))]),
    ],
    ids=["each is passed by someone", "nothing is stored", "what is stored does not help", "nobody was judged"],
)
def test_nothing_is_replayed_where_it_would_not_help(group: list[Judged], stored: list[Success]) -> None:
    assert plan_replay(group, stored) is None
    assert with_replay(group, None) == group


def test_other_criteria_are_refused() -> None:
    with pytest.raises(InputError, match="trajectory stored: was judged by 3 criteria, the group by 2"):
        plan_replay([(T, F), (T, F)], [FULL])
    with pytest.raises(InputError, match=r"\[1, 2\] criteria"):
        failed_by_all([(T, F), (T,)])
