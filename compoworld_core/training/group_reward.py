"""The reward function of a training step: groups are judged as a whole, wherever their rollouts were made.

A trainer hands each process its own rows. A group may span processes, so verdicts are gathered first; each process then
works out all rewards and keeps its own. A rollout that failed for a reason that is not the model's gets no reward: it
is masked, and the others count as if it had never been.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from compoworld_core.rollouts.trajectory import EpisodeError
from compoworld_core.tasks.rubric import Verdict
from compoworld_core.training.curriculum import Outcome
from compoworld_core.training.distributed import gathered
from compoworld_core.training.replay import Success, plan_replay, with_replay
from compoworld_core.training.reward import Passed, Rewards, completion_focused_reward

Reward = Callable[[Passed], Rewards]
Gather = Callable[[list[Any]], list[list[Any]]]
Stored = Callable[[str], Sequence[Success]]
"""The successes of a task that may be replayed."""
OnOutcomes = Callable[[Sequence[Outcome], Sequence[EpisodeError]], None]
"""Told all outcomes of a step, with the errors of failed rollouts."""


def group_rewards(
    outcomes: Sequence[Outcome], size: int, reward: Reward = completion_focused_reward
) -> list[float | None]:
    """Rewards of whole groups; None for rollouts that could not be judged, which are no part of their group.

    Args:
        outcomes: Contiguous blocks of `size` rollouts of one task.
        size: N.
        reward: Of a bool array [N, C].
    """
    rewards: list[float | None] = []
    for group in _groups(outcomes, size):
        passed = [verdict for _, verdict in group if verdict is not None]
        values = iter(reward(np.array(passed, dtype=np.bool_))) if passed else iter(())
        rewards += [None if verdict is None else float(next(values)) for _, verdict in group]
    return rewards


def _groups(outcomes: Sequence[Outcome], size: int) -> list[Sequence[Outcome]]:
    groups = [outcomes[start : start + size] for start in range(0, len(outcomes), size)]
    for number, group in enumerate(groups):
        if len({task for task, _ in group}) != 1 or len(group) != size:
            start = number * size
            raise ValueError(f"rollouts {start} to {start + len(group) - 1} are not one group of {size}")
    return groups


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


def _nothing(task_id: str) -> Sequence[Success]:
    return ()


class GroupReward:
    """A reward function for TRL, which is told the verdicts before it is asked.

    Args:
        size: N, rollouts of a task.
        reward: Of a group.
        stored: What may be replayed where a whole group fails; nothing if left out.
        gather: Exchanges lists between processes.
        rank: This process's place among them.
        on_outcomes: Told on every process what the policy did, whatever is replayed.
    """

    __name__ = "rubric"

    def __init__(
        self,
        size: int,
        reward: Reward = completion_focused_reward,
        *,
        stored: Stored = _nothing,
        gather: Gather = gathered,
        rank: Callable[[], int] = own_rank,
        on_outcomes: OnOutcomes | None = None,
    ) -> None:
        self._size = size
        self._reward = reward
        self._stored = stored
        self._gather = gather
        self._rank = rank
        self._on_outcomes = on_outcomes
        self._rewards: list[float | None] = []
        self._rates: dict[str, float] = {}

    def judge(self, task_ids: Sequence[str], judged: Sequence[Verdict | EpisodeError]) -> dict[int, Success]:
        """Work out the rewards of a step from the verdicts of all processes.

        Args:
            task_ids: Of this process's rollouts.
            judged: What became of them.

        Returns:
            What is to be trained on in the place of a rollout, by its place among this process's.
        """
        mine = [(task, _outcome(verdict)) for task, verdict in zip(task_ids, judged, strict=True)]
        errors = [item for item in judged if isinstance(item, EpisodeError)]
        parts = self._gather([mine, errors])
        outcomes = [outcome for part in parts for outcome in part[0]]
        joined, replayed = self._with_replays(outcomes)
        begin = sum(len(part[0]) for part in parts[: self._rank()])
        self._rewards = group_rewards(joined, self._size, self._reward)[begin : begin + len(mine)]
        self._rates = {
            **{f"rubric/{name}": rate for name, rate in pass_rates(outcomes).items()},
            "replay/groups": len(replayed) * self._size / len(outcomes),
        }
        if self._on_outcomes is not None:
            self._on_outcomes(outcomes, [error for part in parts for error in part[1]])
        return {place - begin: success for place, success in replayed.items() if 0 <= place - begin < len(mine)}

    def _with_replays(self, outcomes: Sequence[Outcome]) -> tuple[list[Outcome], dict[int, Success]]:
        joined: list[Outcome] = []
        replayed: dict[int, Success] = {}
        for group in _groups(outcomes, self._size):
            task = group[0][0]
            verdicts = [verdict for _, verdict in group]
            replay = plan_replay(verdicts, self._stored(task))
            if replay is not None:
                replayed[len(joined) + replay.place] = replay.success
            joined += [(task, verdict) for verdict in with_replay(verdicts, replay)]
        return joined, replayed

    def __call__(self, *, completions: Sequence[Any], log_metric: Callable[[str, float], None], **others: Any) -> Any:
        """Rewards of this process's rollouts, as they were judged."""
        for name, rate in self._rates.items():
            log_metric(name, rate)
        return self._rewards


def _outcome(verdict: Verdict | EpisodeError) -> tuple[bool, ...] | None:
    return verdict.passed if isinstance(verdict, Verdict) else None
