"""Tasks whose criteria groups fail are drawn more, solved ones less, and none never."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compoworld_core.errors import InputError
from compoworld_core.training.sampling import FLOOR, GroupOutcome, draw_tasks, task_weights

TASKS: dict[str, tuple[str, ...]] = {"a": ("join",), "b": ("guard",), "c": ("join", "guard"), "d": ()}


def outcome(task: str, *passed: str) -> GroupOutcome:
    """Each word is a rollout, with a 1 for each criterion that holds."""
    return GroupOutcome(task=task, passed=tuple(tuple(held == "1" for held in word) for word in passed))


outcomes = st.builds(
    outcome,
    st.sampled_from(sorted(TASKS)),
    st.text("01", min_size=3, max_size=3),
    st.text("01", min_size=3, max_size=3),
)


def test_all_tasks_weigh_the_same_while_nothing_is_known() -> None:
    assert task_weights(TASKS, []) == dict.fromkeys(TASKS, 1.0)


def test_what_a_group_fails_as_a_whole_is_drawn_more_than_what_it_passes_partly_or_solves() -> None:
    history = [outcome("a", "10", "10"), outcome("b", "10", "11"), outcome("d", "11", "11")]

    weights = task_weights(dict.fromkeys("abd", ()), history)

    assert weights["a"] > weights["b"] > weights["d"] > FLOOR


@given(st.lists(outcomes, max_size=20))
def test_failing_once_more_never_lowers_a_weight_and_passing_never_raises_it(history: list[GroupOutcome]) -> None:
    middle = task_weights(TASKS, [*history, GroupOutcome(task="a")])  # nobody was judged: the same age, no outcome

    worse = task_weights(TASKS, [*history, outcome("a", "000", "000")])
    better = task_weights(TASKS, [*history, outcome("a", "111", "111")])

    for task in TASKS:
        assert better[task] <= middle[task] + 1e-12
        assert middle[task] <= worse[task] + 1e-12


@given(st.lists(outcomes, max_size=40))
def test_no_task_starves(history: list[GroupOutcome]) -> None:
    weights = task_weights(TASKS, history)

    assert all(FLOOR <= weight <= 1 for weight in weights.values())


def test_an_old_outcome_counts_less_than_a_new_one() -> None:
    solved, failed = outcome("a", "11"), outcome("a", "00")

    improving = task_weights(TASKS, [failed, solved], half_life=1)
    worsening = task_weights(TASKS, [solved, failed], half_life=1)

    assert improving["a"] < worsening["a"]


def test_what_a_failed_task_demands_is_sought_in_tasks_that_were_never_drawn() -> None:
    weights = task_weights(
        {"seen": ("join",), "solved": ("guard",), "unseen join": ("join",), "unseen guard": ("guard",)},
        [outcome("seen", "00", "00"), outcome("solved", "11", "11")],
    )

    assert weights["unseen join"] > weights["unseen guard"]


@given(st.integers(0, 99), st.integers(0, 99), st.integers(0, 4))
def test_a_draw_follows_from_seed_and_step_alone(seed: int, step: int, count: int) -> None:
    weights = {"a": 1.0, "b": 0.5, "c": 0.1, "d": 0.7}
    backwards = dict(reversed(weights.items()))

    drawn = draw_tasks(weights, count, seed=seed, step=step)

    assert len(set(drawn)) == count
    assert drawn == draw_tasks(backwards, count, seed=seed, step=step)


def test_tasks_are_drawn_as_often_as_they_weigh() -> None:
    weights = {"a": 1.0, "b": 0.5, "c": 0.1}

    drawn = Counter(task for step in range(4000) for task in draw_tasks(weights, 1, seed=0, step=step))

    assert [drawn[task] / 4000 for task in "abc"] == pytest.approx([1 / 1.6, 0.5 / 1.6, 0.1 / 1.6], abs=0.03)


def test_more_tasks_than_there_are_cannot_be_drawn() -> None:
    with pytest.raises(InputError, match="3 different tasks are wanted for a step, there are 2"):
        draw_tasks({"a": 1.0, "b": 1.0}, 3, seed=0, step=0)


def test_a_floor_out_of_range_is_refused() -> None:
    with pytest.raises(InputError, match="floor"):
        task_weights(TASKS, [], floor=0)
