"""The oracle solves its task through the four meta-tools, from nothing but the conversation."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from compoworld_core.rollouts.episode import run_episode
from compoworld_core.rollouts.oracle import OraclePolicy, oracles
from compoworld_core.rollouts.trajectory import Trajectory
from compoworld_core.tasks.play import planted_facts
from compoworld_core.tasks.task import AnswerFact, Task
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.world import open_world
from tests.rollouts.complaint import SERVICES, complaint_task, pin


def solve(task: Task, catalogue: Catalogue) -> Trajectory:
    return asyncio.run(run_episode(task, catalogue, oracles(catalogue)(task, 0)))


def edited(task: Task, **changes: Any) -> Task:
    return Task.model_validate({**task.model_dump(), **changes})


def with_step(task: Task, index: int, **changes: Any) -> Task:
    steps = [step.model_dump() for step in task.solution.steps]
    steps[index] |= changes
    return edited(task, solution={**task.solution.model_dump(), "steps": steps})


@pytest.mark.parametrize("seed", [1, 2, 8141])
def test_oracle_passes_every_criterion(seed: int, catalogue: Catalogue) -> None:
    trajectory = solve(complaint_task(seed=seed), catalogue)

    assert trajectory.succeeded, (trajectory.error, trajectory.verdict)
    assert trajectory.finish_reason == "stop"
    assert trajectory.score == 1.0


def test_oracle_discovers_before_it_acts(task: Task, catalogue: Catalogue) -> None:
    trajectory = solve(task, catalogue)

    listed: set[str] = set()
    described: set[str] = set()
    assert trajectory.calls[0].name == "list_services"
    for call in trajectory.calls:
        arguments = call.arguments or {}
        if call.name == "list_tools":
            listed.add(arguments["service"])
        elif call.name == "describe_tool":
            assert arguments["tool"] not in described
            described.add(arguments["tool"])
        elif call.name == "call_tool":
            assert call.service in listed
            assert arguments["tool_name"] in described
    assert listed == set(task.core)
    assert trajectory.n_real_tool_calls == len(task.solution.steps)
    assert trajectory.n_tool_calls == len(trajectory.calls)
    assert trajectory.n_steps == len(trajectory.calls) + 1


def test_what_the_world_does_in_reaction_is_told_apart_from_the_agents_work(task: Task, catalogue: Catalogue) -> None:
    trajectory = solve(task, catalogue)

    case = next(call for call in trajectory.calls if call.tool == "create_case")
    assert [(change.table, change.cause, change.before is None) for change in case.changes] == [
        ("cases", "agent", True),
        ("accounts", "reaction", False),
    ]


def test_oracle_follows_names_that_a_clash_has_changed(catalogue: Catalogue) -> None:
    task = complaint_task(services=(*(pin(name) for name in SERVICES), pin("crm", "archive")))

    trajectory = solve(task, catalogue)

    assert trajectory.succeeded, trajectory.error
    names = {str((call.arguments or {}).get("tool_name")) for call in trajectory.calls if call.service == "crm"}
    assert names == {"crm__find_contact_by_email", "crm__create_case", "crm__get_account"}


def test_answer_states_every_fact_by_its_label(task: Task, catalogue: Catalogue) -> None:
    facts = [*task.solution.answer, AnswerFact(label="Who", value=["Ada", "Bo"])]
    solution = {**task.solution.model_dump(), "answer": [fact.model_dump() for fact in facts]}

    trajectory = solve(edited(task, solution=solution), catalogue)

    assert trajectory.answer is not None
    assert [line.split(":")[0] for line in trajectory.answer.splitlines()[1:]] == ["- Case", "- Account owner", "- Who"]
    assert trajectory.answer.endswith("Who: Ada, Bo")


@pytest.mark.parametrize(
    ("index", "change", "says"),
    [
        (1, {"arguments": {"email": {"$ref": "s1.data.items.9.sender"}}}, "step s2: nothing at s1.data.items.9.sender"),
        (1, {"arguments": {"email": "nobody@nowhere.example"}}, r"step s2 \(crm.find_contact_by_email\) was refused"),
        (1, {"service": "hr"}, "list_tools of hr was refused: not_found"),
        (1, {"tool": "erase"}, "step s2: service 'crm' lists no tool 'erase'"),
        (4, {"arguments": {"kind": {"$fact": {"step": "s4", "name": "colour"}}}}, "step s5: .*'colour'"),
    ],
    ids=["unresolved", "refused", "service", "tool", "fact"],
)
def test_broken_reference_solution_ends_in_a_typed_failure(
    index: int, change: dict[str, Any], says: str, task: Task, catalogue: Catalogue
) -> None:
    trajectory = solve(with_step(task, index, **change), catalogue)

    assert trajectory.error is not None
    assert trajectory.error.kind == "policy"
    assert re.search(says, trajectory.error.message)
    assert not trajectory.succeeded


def test_one_oracle_serves_one_conversation_after_another(task: Task, catalogue: Catalogue) -> None:
    policy = OraclePolicy(task, planted_facts(open_world(task.recipe, catalogue)))

    first, second = (asyncio.run(run_episode(task, catalogue, policy)) for _ in range(2))

    assert first.succeeded
    assert first == second
