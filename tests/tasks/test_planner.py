from __future__ import annotations

import asyncio
import os
import random
import re
import subprocess
import sys
from collections import Counter
from itertools import groupby, islice

import pytest

from compoworld_core.rollouts.episode import run_episode
from compoworld_core.rollouts.oracle import oracles
from compoworld_core.services.arguments import Arguments, Vocabulary
from compoworld_core.tasks.gates import alternative_orders
from compoworld_core.tasks.mutation import mutants
from compoworld_core.tasks.planner.writes import _restyled
from compoworld_core.tasks.play import Stage
from compoworld_core.tasks.rubric import verify
from compoworld_core.tasks.sampler import ServiceTools, TaskSettings, sample_tasks
from compoworld_core.tasks.task import Solution, Task
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.world import open_world

Services = tuple[Catalogue, list[ServiceTools]]

SAMPLE = """
from compoworld_core.tasks.sampler import TaskSettings, sample_tasks
from tests.tasks.crafted import catalogue_of

catalogue, tools = catalogue_of(3)
settings = TaskSettings(count=2, seed=21, held_out_services=0)
print(" ".join(item.task.id for item in sample_tasks(settings, tools, catalogue, 0, 1) if item.task))
"""


def test_the_same_seed_makes_the_same_tasks_in_any_process() -> None:
    def ids(hash_seed: str) -> str:
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(["", *sys.path])}
        command = [sys.executable, "-c", SAMPLE]
        return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout

    one = ids("1")

    assert len(one.split()) == 2
    assert one == ids("2")


def test_another_seed_makes_other_tasks(services: Services, tasks: list[Task]) -> None:
    catalogue, tools = services
    others = [item.task for item in sample_tasks(TaskSettings(count=2, seed=12), tools, catalogue, 0, 1) if item.task]

    assert not {task.id for task in others} & {task.id for task in tasks}


def test_the_oracle_solves_every_task_through_the_meta_tools(tasks: list[Task], services: Services) -> None:
    catalogue, _ = services
    factory = oracles(catalogue)

    for task in tasks:
        trajectory = asyncio.run(run_episode(task, catalogue, factory(task, 0)))
        assert trajectory.error is None
        assert trajectory.verdict is not None
        assert trajectory.verdict.success, trajectory.verdict.failed


def test_accepted_tasks_keep_what_the_gates_promise(tasks: list[Task], services: Services) -> None:
    for task in tasks:
        world = open_world(task.recipe, services[0])
        stage = Stage(world)
        reference = stage.play(task.solution)
        idle = verify(task.rubric, world, "")
        assert verify(task.rubric, reference.world, reference.answer).success
        assert not idle.success
        assert idle.passed == tuple(item.holds_initially for item in task.rubric.criteria)
        for mutant in mutants(task.solution, reference, world):
            played = stage.play(mutant.solution)
            assert not verify(task.rubric, played.world, played.answer).success
        for steps in alternative_orders(task.solution, random.Random(task.id), 6):
            played = stage.play(Solution(values=task.solution.values, steps=steps, answer=task.solution.answer))
            assert played.refused == ()
            assert verify(task.rubric, played.world, played.answer).success


def test_the_solution_follows_the_walk(tasks: list[Task]) -> None:
    for task in tasks:
        assert task.walk == tuple(name for name, _ in groupby(step.service for step in task.solution.steps))


def test_tasks_demand_what_makes_work_across_applications_hard(tasks: list[Task]) -> None:
    demanded = Counter(name for task in tasks for name in task.capabilities)

    for capability in ("join", "near_duplicate", "stale_reread", "policy_branch"):
        assert demanded[capability] >= 2, demanded


def test_tasks_are_varied(tasks: list[Task]) -> None:
    shapes = Counter(task.shape for task in tasks)
    assert len(shapes) >= 8
    assert max(shapes.values()) <= 0.2 * len(tasks)
    assert len({task.instruction for task in tasks}) == len(tasks)
    assert all(sum(step.effect == "write" for step in task.solution.steps) >= 2 for task in tasks)


def test_instructions_read_like_requests(tasks: list[Task]) -> None:
    for task in tasks:
        text = task.instruction
        assert text.endswith(".")
        assert not re.search(r"[{}$]|_id\b|\bNone\b|\.\.|  ", text), text
        assert not re.search(r" (for|that|with) it\b", text), text
        for sentence in re.split(r"\. (?=[A-Z])", text):
            assert sentence[0].isupper(), sentence


def test_every_row_has_a_name_of_its_own(tasks: list[Task]) -> None:
    for task in tasks:
        found = re.findall(
            r"(?:find|look up|start with|begin with|about) the ([a-z ]+?) (?:whose|that|in|\")", task.instruction, re.I
        )
        assert len(found) == len(set(found)), task.instruction


def test_what_the_agent_must_find_is_not_told(tasks: list[Task], services: Services) -> None:
    for task in tasks:
        stage = Stage(open_world(task.recipe, services[0]))
        reference = stage.play(task.solution)
        for fact in reference.facts:
            words = rf"(?<!\w){re.escape(str(fact))}(?!\w)"
            assert len(str(fact)) < 4 or not re.search(words, task.instruction), (fact, task.instruction)


@pytest.mark.slow
def test_many_seeds_keep_the_promises(services: Services) -> None:
    catalogue, tools = services
    for seed in range(5):
        made = [
            item.task for item in sample_tasks(TaskSettings(count=20, seed=seed), tools, catalogue, 0, 1) if item.task
        ]
        assert len(made) == 20
        test_accepted_tasks_keep_what_the_gates_promise(made, services)


def test_what_was_created_is_not_to_be_cancelled_or_settled_afterwards(tasks: list[Task], services: Services) -> None:
    noticed: Counter[bool] = Counter()
    for task in tasks:
        world = open_world(task.recipe, services[0])
        done = Stage(world).play(task.solution)
        asked: dict[str, set[str]] = {}
        for step in task.solution.steps:
            if step.effect == "write":
                parameters = world.services[step.service].package.tool(step.tool).parameters
                asked.setdefault(step.service, set()).update(parameters.get("properties", {}))
        made = {
            (name, key): table.schema.choices - asked[name]
            for name in asked
            for table in done.world.services[name].state.tables.values()
            for key, before, after in table.changed()
            if before is None and after is not None
        }
        for tool in done.world.tools.values():
            if tool.spec.effect == "read" or not any(name == tool.service for name, _ in made):
                continue
            running = done.world.services[tool.service]
            drawn = Arguments(tool.spec, Vocabulary(running, world.universe), random.Random(1))
            for arguments in islice(drawn.candidates(), 8):
                twin = done.world.fork()
                changes = twin.call(tool.name, arguments).changes
                if any(
                    (before := change.before_row) is not None
                    and (after := change.after_row) is not None
                    and any(before[name] != after[name] for name in made.get((tool.service, change.key), ()))
                    for change in changes
                ):
                    verdict = verify(task.rubric, twin, done.answer)
                    noticed[not verdict.success] += 1
    assert noticed[True] > 10 * noticed[False], "only what depends on arguments that are left open may pass"
    assert noticed[True] >= 3


def test_a_written_title_is_no_part_of_another(tasks: list[Task]) -> None:
    text = " ".join(task.rubric.model_dump_json() for task in tasks)

    assert '"mentions"' in text
    assert '"op":"contains","value":"' not in text.replace('"value":""', "")


def test_names_that_a_service_keeps_in_its_own_style_are_checked() -> None:
    row = {"id": "chn_1", "name": "site-visit-12", "title": "Site visit 12", "topic": "", "size": 12}

    assert [*_restyled({"name": "Site visit 12"}, (), row, ("title",))] == ["name"]
    assert not [*_restyled({"name": "Site visit 12"}, ("name",), row, ())]
    assert not [*_restyled({"name": "Site visit 1", "topic": "", "size": 12, "lead": {"$value": "x"}}, (), row, ())]
