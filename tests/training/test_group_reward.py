"""Groups are judged as a whole, wherever their rollouts were made, and failed rollouts do not count."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from compoworld_core.rollouts.trajectory import EpisodeError
from compoworld_core.tasks.rubric import Verdict
from compoworld_core.training import group_reward
from compoworld_core.training.group_reward import GroupReward, Outcome, group_rewards, pass_rates
from compoworld_core.training.reward import completion_focused_reward

FAILED = EpisodeError.saying("world", "no such package")

Judged = Verdict | EpisodeError


def verdict(*passed: bool) -> Verdict:
    return Verdict(criteria=tuple(f"c{index}" for index in range(len(passed))), passed=passed)


def judge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let a rollout's environment be what it is judged as."""
    monkeypatch.setattr(group_reward, "verdict_of", lambda environment, completion: environment)


def reward_of(judged: list[Judged], tasks: list[str], size: int, **how: Any) -> list[float]:
    alone = {"gather": lambda mine: [mine], "rank": lambda: 0}
    return GroupReward(size, **{**alone, **how})(completions=[[] for _ in judged], environments=judged, task_id=tasks)


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


def test_rewards_over_two_processes_equal_those_of_one(monkeypatch: pytest.MonkeyPatch) -> None:
    judge(monkeypatch)
    alone = reward_of(ROLLOUTS, TASKS, 4)
    cut = 3  # the first group spans both

    def together(rank: int) -> list[float]:
        parts = [_part(ROLLOUTS[:cut], TASKS[:cut]), _part(ROLLOUTS[cut:], TASKS[cut:])]
        own = slice(0, cut) if rank == 0 else slice(cut, None)
        return reward_of(ROLLOUTS[own], TASKS[own], 4, gather=lambda mine: parts, rank=lambda: rank)

    assert together(0) + together(1) == alone


def _part(judged: list[Judged], tasks: list[str]) -> list[Any]:
    outcomes: list[Outcome] = [
        (task, item.passed if isinstance(item, Verdict) else None) for task, item in zip(tasks, judged, strict=True)
    ]
    return [outcomes, [item for item in judged if isinstance(item, EpisodeError)]]


def test_a_failed_rollout_gets_the_mean_and_changes_nothing_for_the_others() -> None:
    others: list[Outcome] = [("a", (True, False)), ("a", (True, True)), ("a", (False, False))]

    rewards = group_rewards([*others[:1], ("a", None), *others[1:]], 4)

    expected = completion_focused_reward(np.array([[True, False], [True, True], [False, False]]))
    assert [rewards[0], *rewards[2:]] == pytest.approx(expected)
    assert rewards[1] == pytest.approx(expected.mean())


def test_a_group_that_failed_as_a_whole_gets_nothing() -> None:
    assert group_rewards([("a", None)] * 3, 3) == [0.0] * 3


@pytest.mark.parametrize("tasks", [["a", "a", "b"], ["a", "a"]], ids=["two tasks", "too few"])
def test_what_is_no_group_is_a_bug(tasks: list[str]) -> None:
    with pytest.raises(ValueError, match="not one group of 3"):
        group_rewards([(task, (True,)) for task in tasks], 3)


def test_raw_pass_rates_and_errors_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    judge(monkeypatch)
    told: list[Any] = []

    reward_of(ROLLOUTS, TASKS, 4, on_outcomes=lambda outcomes, errors: told.append((pass_rates(outcomes), errors)))

    rates, errors = told[0]
    assert rates == pytest.approx(
        {"full": 2 / 7, "criteria": (0.5 + 1 + 0 + 0.5 + 2 / 3 + 1 + 1 / 3) / 7, "failed": 1 / 8}
    )
    assert errors == [FAILED]
