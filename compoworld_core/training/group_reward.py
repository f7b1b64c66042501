"""The reward function of a training step: groups are judged as a whole, wherever their rollouts were made.

A trainer hands each process its own rows. A group may span processes, so verdicts are gathered first; each process then
works out all rewards and keeps its own. A rollout that failed for a reason that is not the model's gets the mean of its
group, which is no advantage and no disadvantage: it is masked, and the others count as if it had not been.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compoworld_core.rollouts.trajectory import EpisodeError
from compoworld_core.tasks.rubric import Verdict
from compoworld_core.training.distributed import gathered
from compoworld_core.training.environment import verdict_of
from compoworld_core.training.reward import Passed, Rewards, completion_focused_reward

Outcome = tuple[str, tuple[bool, ...] | None]
"""(task id, which criteria hold); None where the rollout failed."""

Reward = Callable[[Passed], Rewards]
Gather = Callable[[list[Any]], list[list[Any]]]


def group_rewards(outcomes: Sequence[Outcome], size: int, reward: Reward = completion_focused_reward) -> list[float]:
    """Rewards of whole groups.

    Args:
        outcomes: Contiguous blocks of `size` rollouts of one task.
        size: N.
        reward: Of a bool array [N, C].
    """
    rewards: list[float] = []
    for start in range(0, len(outcomes), size):
        group = outcomes[start : start + size]
        if len({task for task, _ in group}) != 1 or len(group) != size:
            raise ValueError(f"rollouts {start} to {start + len(group) - 1} are not one group of {size}")
        passed = [verdict for _, verdict in group if verdict is not None]
        values = iter(reward(np.array(passed, dtype=np.bool_))) if passed else iter(())
        judged = [None if verdict is None else float(next(values)) for _, verdict in group]
        known = [value for value in judged if value is not None]
        mean = sum(known) / len(known) if known else 0.0
        rewards += [mean if value is None else value for value in judged]
    return rewards


def pass_rates(outcomes: Sequence[Outcome]) -> dict[str, float]:
    """Raw rates of a step, which rise when the policy improves whatever the weights do.

    Returns:
        `full`: share of rollouts that pass everything; `criteria`: mean share of criteria; `failed`: share of rollouts
        that could not be judged.
    """
    judged = [verdict for _, verdict in outcomes if verdict is not None]
    return {
        "full": sum(all(verdict) for verdict in judged) / max(1, len(judged)),
        "criteria": sum(sum(verdict) / len(verdict) for verdict in judged) / max(1, len(judged)),
        "failed": 1 - len(judged) / max(1, len(outcomes)),
    }


def own_rank() -> int:
    """This process's place among those of the job."""
    return int(os.environ.get("RANK", "0"))


class GroupReward:
    """A reward function for TRL.

    Args:
        size: N, rollouts of a task.
        reward: Of a group.
        gather: Exchanges lists between processes.
        rank: This process's place among them.
        on_outcomes: Told all outcomes of a step, with the errors of failed rollouts, on every process.
    """

    __name__ = "rubric"

    def __init__(
        self,
        size: int,
        reward: Reward = completion_focused_reward,
        gather: Gather = gathered,
        rank: Callable[[], int] = own_rank,
        on_outcomes: Callable[[Sequence[Outcome], Sequence[EpisodeError]], None] | None = None,
    ) -> None:
        self._size = size
        self._reward = reward
        self._gather = gather
        self._rank = rank
        self._on_outcomes = on_outcomes

    def __call__(
        self, *, completions: list[list[dict[str, Any]]], environments: list[Any], task_id: list[str], **others: Any
    ) -> list[float]:
        """Rewards of this process's rollouts."""
        judged = [verdict_of(*pair) for pair in zip(environments, completions, strict=True)]
        mine = [(task, _outcome(verdict)) for task, verdict in zip(task_id, judged, strict=True)]
        errors = [item for item in judged if isinstance(item, EpisodeError)]
        parts = self._gather([mine, errors])
        outcomes = [outcome for part in parts for outcome in part[0]]
        begin = sum(len(part[0]) for part in parts[: self._rank()])
        rewards = group_rewards(outcomes, self._size, self._reward)
        log = others.get("log_metric")
        if log is not None:
            for name, rate in pass_rates(outcomes).items():
                log(f"rubric/{name}", rate)
        if self._on_outcomes is not None:
            self._on_outcomes(outcomes, [error for part in parts for error in part[1]])
        return rewards[begin : begin + len(mine)]


def _outcome(verdict: Verdict | EpisodeError) -> tuple[bool, ...] | None:
    return verdict.passed if isinstance(verdict, Verdict) else None
