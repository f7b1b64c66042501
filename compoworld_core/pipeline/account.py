"""The account of an export: how many trajectories there were, and why those without a record have none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from compoworld_core.pipeline.wording import counted
from compoworld_core.rollouts.export import TRAINING_SPLITS
from compoworld_core.rollouts.trajectory import Trajectory
from compoworld_core.tasks.task import Split, Task

HELD_OUT: Mapping[Split, str] = {
    "eval_combo": "combinations of services that no training task has",
    "eval_service": "services that no training task visits",
}
"""What each split that is never exported keeps for evaluation."""


class Account:
    """Counts trajectories by what became of them while they pass by."""

    def __init__(self, tasks: Iterable[Task], split: str, *, only_successes: bool) -> None:
        self._splits: dict[str, Split] = {task.id: task.split for task in tasks}
        self._split = split
        self._only_successes = only_successes
        self.trajectories = 0
        self._other_splits: Counter[Split] = Counter()
        self._in_split: Counter[str] = Counter()

    def watch(self, trajectories: Iterable[Trajectory]) -> Iterator[Trajectory]:
        """The same trajectories, counted."""
        for trajectory in trajectories:
            self.trajectories += 1
            split = self._splits.get(trajectory.task_id)
            if split is not None and split != self._split:
                self._other_splits[split] += 1
            elif not trajectory.is_well_formed:
                self._in_split["not_well_formed"] += 1
            elif self._only_successes and not trajectory.succeeded:
                self._in_split["failed"] += 1
            yield trajectory

    @property
    def left_out(self) -> dict[str, int]:
        """Trajectories without a record, by reason: another split's name, `not_well_formed` or `failed`."""
        return {**dict(sorted(self._other_splits.items())), **dict(sorted(self._in_split.items()))}

    def sentences(self) -> Iterator[str]:
        """The account for people, a line per reason."""
        words = {
            "not_well_formed": "have a call whose arguments are no JSON object",
            "failed": "were not verified; --failures includes them",
        }
        for reason, count in self.left_out.items():
            if reason in HELD_OUT:
                why = f"{reason}: held out for evaluation ({HELD_OUT[reason]}), never exported"  # type: ignore[index]
            elif reason in TRAINING_SPLITS:
                why = f"{reason}: the other training split; --split {reason} writes them"
            else:
                why = words[reason]
            yield f"  {counted(count, 'trajectories')} left out  {why}"
