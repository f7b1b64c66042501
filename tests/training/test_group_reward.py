"""Groups are judged as a whole, wherever their rollouts were made, and failed rollouts do not count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compoworld_core.rollouts.trajectory import EpisodeError
from compoworld_core.tasks.rubric import Verdict
from compoworld_core.training.curriculum import Outcome
from compoworld_core.training.group_reward import GroupReward, group_rewards, pass_rates
from compoworld_core.training.replay import Success
from compoworld_core.training.reward import completion_focused_reward

FAILED = EpisodeError.saying("world", "no such package")

Judged = Verdict | EpisodeError


def verdict(*passed: bool) -> Verdict:
    return Verdict(criteria=tuple(f"c{index}" for index in range(len(passed))), passed=passed)


def rewards_of(judged: list[Judged], tasks: list[str], size: int, **how: Any) -> list[float | None]:
    alone = {"gather": lambda mine: [mine], "rank": lambda: 0}
    reward = GroupReward(size, **{**alone, **how})
    reward.judge(tasks, judged)
    rewards: list[float | None] = reward(completions=[[] for _ in judged], log_metric=lambda name, value: None)
    return rewards


ROLLOUTS: list[Judged] = [
    verdict(True, False),
    verdict(True, True),
    verdict(False, False),
    verdict(True, False),
    verdict(False, True, True),
    verdict(True, True, True),
    FAILED,
    verdict(False, False, True),
]
TASKS = ["a"] * 4 + ["b"] * 4


def part(judged: list[Judged], tasks: list[str]) -> list[Any]:
    """What a process hands to the others."""
    outcomes: list[Outcome] = [
        (task, item.passed if isinstance(item, Verdict) else None) for task, item in zip(tasks, judged, strict=True)
    ]
    return [outcomes, [item for item in judged if isinstance(item, EpisodeError)]]


def test_rewards_over_two_processes_equal_those_of_one() -> None:
    alone = rewards_of(ROLLOUTS, TASKS, 4)
    cut = 3  # the first group spans both
    parts = [part(ROLLOUTS[:cut], TASKS[:cut]), part(ROLLOUTS[cut:], TASKS[cut:])]

    def together(rank: int) -> list[float | None]:
        own = slice(0, cut) if rank == 0 else slice(cut, None)
        return rewards_of(ROLLOUTS[own], TASKS[own], 4, gather=lambda mine: parts, rank=lambda: rank)

    assert together(0) + together(1) == alone


def test_a_failed_rollout_gets_nothing_and_changes_nothing_for_the_others() -> None:
    others: list[Outcome] = [("a", (True, False)), ("a", (True, True)), ("a", (False, False))]

    rewards = group_rewards([*others[:1], ("a", None), *others[1:]], 4)

    expected = completion_focused_reward(np.array([[True, False], [True, True], [False, False]]))
    assert [rewards[0], *rewards[2:]] == pytest.approx(expected)
    assert rewards[1] is None


def test_a_group_that_failed_as_a_whole_gets_nothing() -> None:
    assert group_rewards([("a", None)] * 3, 3) == [None] * 3


@pytest.mark.parametrize("tasks", [["a", "a", "b"], ["a", "a"]], ids=["two tasks", "too few"])
def test_what_is_no_group_is_a_bug(tasks: list[str]) -> None:
    with pytest.raises(ValueError, match="not one group of 3"):
        group_rewards([(task, (True,)) for task in tasks], 3)


def test_raw_pass_rates_and_errors_are_told() -> None:
    told: list[Any] = []

    rewards_of(ROLLOUTS, TASKS, 4, on_outcomes=lambda outcomes, errors: told.append((pass_rates(outcomes), errors)))

    rates, errors = told[0]
    assert rates == pytest.approx(
        {"full": 2 / 7, "criteria": (0.5 + 1 + 0 + 0.5 + 2 / 3 + 1 + 1 / 3) / 7, "failed": 1 / 8}
    )
    assert errors == [FAILED]


def test_a_success_joins_on_the_process_that_has_its_place_and_all_agree_on_the_rewards() -> None:
    stuck, solving = verdict(True, False), verdict(True, True)
    failing: list[Judged] = [stuck, stuck, stuck, stuck, solving, stuck, solving, stuck]
    parts = [part(failing[:3], TASKS[:3]), part(failing[3:], TASKS[3:])]
    success = Success(trajectory="stored", passed=(True, True))
    told: list[Any] = []
    rewards: list[float | None] = []
    replayed = []
    for rank, own in enumerate([slice(0, 3), slice(3, 8)]):
        reward = GroupReward(
            4,
            stored=lambda task: [success],
            gather=lambda mine: parts,
            rank=lambda rank=rank: rank,  # type: ignore[misc]
            on_outcomes=lambda outcomes, errors: told.append(outcomes),
        )
        replayed.append(reward.judge(TASKS[own], failing[own]))
        rewards += reward(completions=[], log_metric=lambda name, value: told.append((name, value)))

    assert replayed == [{}, {0: success}], "the last place of the group that fails a criterion as a whole"
    assert rewards[:4] == [rewards[0]] * 3 + [1]
    assert rewards[0] != 1
    assert told[0] == parts[0][0] + parts[1][0], "what is told is what the policy did"
    assert ("rubric/full", 2 / 8) in told
    assert ("replay/groups", 1 / 2) in told
