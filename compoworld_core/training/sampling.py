"""Which tasks are drawn next: those whose criteria groups have failed lately, and those that demand the same.

The need of a group is the mean share of its rollouts that fail a criterion: 1 where all fail everything, 0 where all
pass everything. A task's need is what its own groups have shown, newer ones counting more. With many tasks most are
never drawn twice, so it starts from the need of what the task demands, over all groups of tasks that demand it. Every
task keeps a least weight: what is solved may be forgotten, and what is hopeless now may not stay so.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Final

from pydantic import Field

from compoworld_core.data import Data
from compoworld_core.errors import InputError

FLOOR: Final = 0.1
"""Weight of a solved task; one that needs most has 1."""
HALF_LIFE: Final = 128
"""After so many groups an outcome counts half."""


class GroupOutcome(Data):
    """What the judged rollouts of a task did.

    Attributes:
        passed: [rollouts, criteria]; empty where none could be judged, which tells nothing.
    """

    task: str
    passed: tuple[tuple[bool, ...], ...] = Field(default=())

    @property
    def need(self) -> float:
        """Mean share of rollouts that fail a criterion."""
        verdicts = [held for rollout in self.passed for held in rollout]
        return 1 - sum(verdicts) / len(verdicts)


class _Mean:
    """A weighted mean that starts from a guess of weight 1."""

    def __init__(self) -> None:
        self.total = 0.0
        self.weight = 0.0

    def add(self, value: float, weight: float) -> None:
        self.total += value * weight
        self.weight += weight

    def starting_from(self, guess: float) -> float:
        return (self.total + guess) / (self.weight + 1)


def task_weights(
    tasks: Mapping[str, Collection[str]],
    history: Sequence[GroupOutcome],
    floor: float = FLOOR,
    half_life: float = HALF_LIFE,
) -> dict[str, float]:
    """How much each task should be drawn.

    Args:
        tasks: Id of each task, with what it demands (its capabilities).
        history: Outcomes, oldest first.
        floor: Least weight, above 0 and at most 1.
        half_life: In groups.

    Returns:
        Weights in [floor, 1]; 1 for all while nothing is known.
    """
    if not 0 < floor <= 1:
        raise InputError(f"floor={floor}: needs to be above 0 and at most 1")
    own: defaultdict[str, _Mean] = defaultdict(_Mean)
    shared: defaultdict[str, _Mean] = defaultdict(_Mean)
    for age, outcome in enumerate(reversed(history)):
        if not outcome.passed or outcome.task not in tasks:
            continue
        weight = 0.5 ** (age / half_life)
        own[outcome.task].add(outcome.need, weight)
        for demand in tasks[outcome.task]:
            shared[demand].add(outcome.need, weight)

    def need(task: str, demands: Collection[str]) -> float:
        guesses = [shared[demand].starting_from(1.0) for demand in demands]
        return own[task].starting_from(_mean(guesses) if guesses else 1.0)

    return {task: floor + (1 - floor) * need(task, demands) for task, demands in tasks.items()}


def draw_tasks(weights: Mapping[str, float], count: int, *, seed: int, step: int) -> list[str]:
    """Draw different tasks by weight; the same arguments always give the same tasks.

    Each task waits for an exponential time with its weight as rate, and the first ones are drawn: the same as drawing
    one after the other without putting back.

    Raises:
        InputError: There are fewer tasks than that.
    """
    _check_enough(count, len(weights))
    rng = random.Random(f"{seed}/{step}")
    waits = {task: -math.log(1 - rng.random()) / weights[task] for task in sorted(weights)}
    return sorted(waits, key=lambda task: (waits[task], task))[:count]


def pass_over_tasks(tasks: Collection[str], count: int, *, seed: int, step: int) -> list[str]:
    """The tasks of a step where all are drawn equally often, in passes over all of them.

    Every pass has an order of its own. Tasks that do not fill a step are left out of their pass.

    Raises:
        InputError: There are fewer tasks than that.
    """
    _check_enough(count, len(tasks))
    number, place = divmod(step, len(tasks) // count)
    order = sorted(tasks)
    random.Random(f"{seed}/{number}").shuffle(order)
    return order[place * count : (place + 1) * count]


def _check_enough(wanted: int, tasks: int) -> None:
    if wanted > tasks:
        raise InputError(f"{wanted} different tasks are wanted for a step, there are {tasks}")


def _mean(values: Iterable[float]) -> float:
    values = list(values)
    return sum(values) / len(values)
