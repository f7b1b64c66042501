from __future__ import annotations

import random

import pytest

from compoworld_core.services.conditions import Rows
from compoworld_core.tasks.held_out import HARMLESS, SLIPS, Subject
from compoworld_core.tasks.quality import verifier_quality
from compoworld_core.tasks.sampler import ServiceTools, TaskSettings, sample_tasks
from compoworld_core.tasks.task import Task
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.world import open_world
from tests.tasks.crafted import changed

Services = tuple[Catalogue, list[ServiceTools]]


@pytest.fixture(scope="module")
def easy(services: Services) -> list[Task]:
    """Tasks of one service and few steps."""
    catalogue, tools = services
    attempts = sample_tasks(TaskSettings(profile="easy", count=30, seed=3), tools, catalogue, 0, 1)
    return [item.task for item in attempts if item.task is not None]


def test_rubrics_notice_slips_and_nothing_else(tasks: list[Task], services: Services) -> None:
    quality = verifier_quality(tasks[:10], services[0], seed=1)

    assert quality.tasks == 10
    assert quality.kill_rate >= 0.99, quality.misjudged
    assert quality.false_reject_rate <= 0.01, quality.misjudged


def test_every_operator_finds_something_to_edit(tasks: list[Task], services: Services) -> None:
    quality = verifier_quality(tasks, services[0], seed=2)

    for count in (*quality.slips, *quality.harmless):
        assert count.made > 0, count.operator


def test_a_lax_rubric_is_found_out(tasks: list[Task], services: Services) -> None:
    task = tasks[0]
    lax = changed(task.rubric, criteria=task.rubric.criteria[-1:])

    quality = verifier_quality([changed(task, rubric=lax)], services[0])

    assert quality.kill_rate < 0.7
    assert {item.operator for item in quality.misjudged} <= set(SLIPS)


def test_a_petty_rubric_is_found_out(tasks: list[Task], services: Services) -> None:
    task = tasks[0]
    service, table = task.core[0], next(iter(open_world(task.recipe, services[0]).services[task.core[0]].state.tables))
    never = changed(
        task.rubric.criteria[0],
        id="never",
        condition=Rows(service=service, table=table, change="created", at_least=99),
    )

    quality = verifier_quality([changed(task, rubric=changed(task.rubric, criteria=(never,)))], services[0])

    assert quality.false_reject_rate == 1
    assert {item.criterion for item in quality.misjudged} == {"never"}


def test_the_same_seed_measures_the_same(tasks: list[Task], services: Services) -> None:
    assert verifier_quality(tasks[:3], services[0], 5) == verifier_quality(tasks[:3], services[0], 5)


def test_edits_start_from_what_the_reference_did(tasks: list[Task], services: Services) -> None:
    world = open_world(tasks[0].recipe, services[0])
    subject = Subject.of(tasks[0], world, random.Random(0))

    assert subject.stage.play(subject.literal).answer == subject.reference.answer
    for operator in SLIPS.values():
        for edit in operator(subject):
            assert edit.answer is not None or edit.solution != subject.literal


def test_no_tasks_have_nothing_to_misjudge(services: Services) -> None:
    quality = verifier_quality([], services[0])

    assert (quality.kill_rate, quality.false_reject_rate) == (1.0, 0.0)
    assert len(quality.slips) == len(SLIPS)
    assert len(quality.harmless) == len(HARMLESS)


def test_rubrics_of_easy_tasks_notice_slips_and_nothing_else(easy: list[Task], services: Services) -> None:
    quality = verifier_quality(easy, services[0], seed=1)

    assert quality.tasks == len(easy) >= 20
    assert (quality.kill_rate, quality.false_reject_rate) == (1.0, 0.0), quality.misjudged


def test_a_task_that_reads_with_the_only_tool_there_is_can_be_judged(easy: list[Task], services: Services) -> None:
    asking = [task for task in easy if len({(step.tool, step.effect) for step in task.solution.steps}) == 1]
    assert asking
    assert {step.effect for task in asking for step in task.solution.steps} == {"read"}

    quality = verifier_quality(map(_bare, asking), services[0], seed=1)

    made = {item.operator: item.made for item in quality.harmless}
    assert made["other_readings"] == 0
    assert made["reworded_answer"] > 0
    assert quality.false_reject_rate == 0.0, quality.misjudged


def _bare(task: Task) -> Task:
    """The task in a world that has the tools of its solution only."""
    used = {(step.service, step.tool) for step in task.solution.steps}
    pins = tuple(
        changed(pin, tools=tuple(tool for tool in pin.tools if (pin.name, tool) in used))
        for pin in task.recipe.services
    )
    return changed(task, recipe=changed(task.recipe, services=pins))


@pytest.mark.slow
def test_rubrics_of_many_tasks_notice_slips_and_nothing_else(services: Services) -> None:
    catalogue, tools = services
    made = [
        item.task
        for seed in (31, 32, 33)
        for item in sample_tasks(TaskSettings(count=25, seed=seed), tools, catalogue, 0, 1)
        if item.task
    ]

    quality = verifier_quality(made, catalogue, seed=3)

    assert quality.tasks == 75
    assert quality.kill_rate >= 0.99, quality.misjudged
    assert quality.false_reject_rate <= 0.01, quality.misjudged
