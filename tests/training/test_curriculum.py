"""The tasks of a step follow from the seed, the step and the outcomes before it."""

from __future__ import annotations

from collections import Counter

import pytest

from compoworld_core.errors import InputError
from compoworld_core.training.config import Sampling
from compoworld_core.training.curriculum import Curriculum, Outcome
from tests.rollouts.complaint import complaint_task

TASKS = [complaint_task(seed=seed, split="rl") for seed in range(5)]
IDS = [task.id for task in TASKS]


def curriculum(sampling: Sampling, count: int = 2, seed: int = 0) -> Curriculum:
    return Curriculum(TASKS, sampling, count=count, rollouts=2, seed=seed)


def group(task: str, *, solved: bool) -> list[Outcome]:
    return [(task, (solved, solved)), (task, (solved, True))]


def test_every_pass_has_each_task_at_most_once_in_an_order_of_its_own() -> None:
    drawn = [curriculum("uniform").tasks(step) for step in range(20)]

    passes = [tuple(drawn[place] + drawn[place + 1]) for place in range(0, 20, 2)]
    assert all(len(set(tasks)) == 4 for tasks in passes)
    assert len(set(passes)) > 5
    assert set(Counter(task for tasks in passes for task in tasks)) == set(IDS)


def test_what_groups_fail_is_drawn_more() -> None:
    need = curriculum("need", count=1)
    for _ in range(4):
        for task in IDS[:4]:
            need.note(group(task, solved=True))
        need.note(group(IDS[4], solved=False))

    drawn = Counter(need.tasks(step)[0] for step in range(400))

    assert drawn[IDS[4]] > 2 * max(drawn[task] for task in IDS[:4])
    assert min(drawn[task] for task in IDS) > 0


@pytest.mark.parametrize("sampling", ["uniform", "need"])
def test_who_goes_on_with_the_same_outcomes_draws_the_same(sampling: Sampling) -> None:
    begun, resumed = curriculum(sampling), curriculum(sampling)
    outcomes = [*group(IDS[0], solved=False), *group(IDS[1], solved=True), (IDS[2], None), (IDS[2], (True, True))]
    begun.note(outcomes[:2])
    begun.note(outcomes[2:])

    resumed.note(outcomes)

    assert [resumed.tasks(step) for step in range(30)] == [begun.tasks(step) for step in range(30)]
    assert [curriculum(sampling, seed=1).tasks(step) for step in range(30)] != [begun.tasks(s) for s in range(30)]


def test_a_step_needs_as_many_tasks_as_it_has_groups() -> None:
    with pytest.raises(InputError, match="6 different tasks are wanted for a step, there are 5"):
        curriculum("uniform", count=6).tasks(0)
