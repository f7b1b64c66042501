"""The curriculum: which tasks each step is about, and the outcomes that it remembers for that.

The tasks of a step follow from the seed, the step and the outcomes before it, and from nothing else. Every process has
all outcomes, so every process comes to the same tasks; and checkpoints have them, so a run that was killed goes on with
the tasks that it would have had.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from compoworld_core.tasks.task import Task
from compoworld_core.training.config import Sampling
from compoworld_core.training.replay import Judged
from compoworld_core.training.sampling import GroupOutcome, draw_tasks, pass_over_tasks, task_weights

Outcome = tuple[str, Judged]
"""(task id, which criteria hold); None where the rollout failed."""


class Curriculum:
    """Draws tasks.

    Args:
        tasks: To draw from.
        count: Different tasks of a step.
        rollouts: N, rollouts of a task that are judged together.
    """

    def __init__(self, tasks: Iterable[Task], sampling: Sampling, *, count: int, rollouts: int, seed: int) -> None:
        self._demands = {task.id: task.capabilities for task in tasks}
        self._sampling = sampling
        self._count = count
        self._rollouts = rollouts
        self._seed = seed
        self._history: list[GroupOutcome] = []

    def tasks(self, step: int) -> list[str]:
        """The tasks of a step of rollouts; the first has number 0.

        Raises:
            InputError: There are fewer tasks than a step needs.
        """
        if self._sampling == "uniform":
            return pass_over_tasks(self._demands, self._count, seed=self._seed, step=step)
        weights = task_weights(self._demands, self._history)
        return draw_tasks(weights, self._count, seed=self._seed, step=step)

    def note(self, outcomes: Sequence[Outcome]) -> None:
        """Remember what a step's rollouts did, all processes' in the order of the batch."""
        for start in range(0, len(outcomes), self._rollouts):
            group = outcomes[start : start + self._rollouts]
            judged = tuple(passed for _, passed in group if passed is not None)
            self._history.append(GroupOutcome(task=group[0][0], passed=judged))
