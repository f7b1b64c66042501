"""Every trajectory is kept or has the reason why not, and nothing that says the same twice is kept."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TypeVar

import pytest
from pydantic import BaseModel

from compoworld_core.errors import InputError
from compoworld_core.llm.messages import AssistantMessage, ToolCall, Usage
from compoworld_core.rollouts.episode import run_episode
from compoworld_core.rollouts.oracle import oracles
from compoworld_core.rollouts.policy import Policy
from compoworld_core.rollouts.selection import Outcome, SelectionRules, select
from compoworld_core.rollouts.trajectory import Call, Trajectory
from compoworld_core.tasks.task import Split, Task
from compoworld_core.worlds.catalogue import Catalogue
from tests.rollouts.complaint import complaint_task
from tests.rollouts.policies import DONE, Scripted, calls

Model = TypeVar("Model", bound=BaseModel)


@pytest.fixture(scope="module")
def success(task: Task, catalogue: Catalogue) -> Trajectory:
    return rollout(task, catalogue)


def rollout(task: Task, catalogue: Catalogue, policy: Policy | None = None) -> Trajectory:
    return asyncio.run(run_episode(task, catalogue, policy or oracles(catalogue)(task, 0)))


def changed(trajectory: Trajectory, rollout_idx: int, **fields: object) -> Trajectory:
    """The same as another rollout, with some fields changed."""
    return other(trajectory, rollout_idx=rollout_idx, **fields)


def other(model: Model, **fields: object) -> Model:
    """The same with some fields changed."""
    return type(model).model_validate({**{name: getattr(model, name) for name in type(model).model_fields}, **fields})


def with_more_calls(trajectory: Trajectory, rollout_idx: int, more: int) -> Trajectory:
    """The same with calls before that make a difference to whoever reads it."""
    extra = [("list_tools", {"service": f"service-{number}"}) for number in range(more)]
    asked = AssistantMessage(tool_calls=tuple(ToolCall.of(f"x{i}", *call) for i, call in enumerate(extra)))
    first = tuple(
        Call(index=index, name=name, arguments=arguments, envelope={}) for index, (name, arguments) in enumerate(extra)
    )
    return changed(
        trajectory,
        rollout_idx,
        calls=(*first, *trajectory.calls),
        messages=(*trajectory.messages[:2], asked, *trajectory.messages[2:]),
    )


def outcomes(rows: list[Trajectory], task: Task, rules: SelectionRules | None = None) -> list[Outcome]:
    selection = select(rows, [task], rules or SelectionRules())
    assert [(row.task_id, row.rollout_idx) for row in rows] == list(selection.outcomes)
    assert sum(selection.counts.values()) == len(rows)
    assert [row for row in rows if selection.outcomes[row.task_id, row.rollout_idx].reason == "kept"] == list(
        selection.kept(rows)
    )
    return list(selection.outcomes.values())


def reasons(rows: list[Trajectory], task: Task, rules: SelectionRules | None = None) -> list[str]:
    return [outcome.reason for outcome in outcomes(rows, task, rules)]


def test_only_verified_and_well_formed_conversations_are_kept(
    task: Task, success: Trajectory, catalogue: Catalogue
) -> None:
    failed = changed(rollout(task, catalogue, Scripted(DONE)), 1)
    malformed = changed(rollout(task, catalogue, Scripted(calls(("list_tools", "crm")), DONE)), 2)

    assert reasons([success, failed, malformed], task) == ["kept", "failed", "not_well_formed"]
    with_failures = SelectionRules(failures=True)
    assert reasons([success, failed, malformed], task, with_failures) == ["kept", "kept", "not_well_formed"]


@pytest.mark.parametrize("split", ["rl", "eval_task", "eval_combo", "eval_service"])
def test_other_splits_are_left_out_by_name(split: Split, catalogue: Catalogue) -> None:
    task = complaint_task(split=split)

    assert reasons([rollout(task, catalogue)], task) == [split]


@pytest.mark.parametrize("split", ["eval_task", "eval_combo", "eval_service"])
def test_evaluation_cannot_be_selected(split: Split) -> None:
    with pytest.raises(ValueError, match="never exported"):
        SelectionRules(split=split)


def test_world_model_answers_are_kept_or_left_out_as_the_rules_say(task: Task, success: Trajectory) -> None:
    predicted = other(success.calls[-1], world_model=True)
    touched = changed(success, 0, calls=(*success.calls[:-1], predicted))

    assert reasons([touched], task) == ["kept"]
    assert reasons([touched], task, SelectionRules(world_model=False)) == ["world_model"]


@pytest.mark.parametrize(
    ("more", "reason"), [(0, "duplicate"), (1, "duplicate"), (9, "kept")], ids=["same", "nearly the same", "different"]
)
def test_of_rollouts_with_nearly_the_same_calls_the_first_is_kept(
    more: int, reason: str, task: Task, success: Trajectory
) -> None:
    rows = [success, with_more_calls(success, 1, more)]

    first, second = outcomes(rows, task)

    assert (first.reason, second.reason) == ("kept", reason)
    assert second.detail == (f"{task.id}/0" if reason == "duplicate" else "")
    assert reasons(rows, task, SelectionRules(similarity=None)) == ["kept", "kept"]


def test_same_conversation_about_another_task_is_a_near_duplicate(task: Task, success: Trajectory) -> None:
    twin = other(task, shape="twin")
    assert twin.id != task.id
    rows = [success, changed(success, 0, task_id=twin.id)]

    selection = select(rows, [task, twin], SelectionRules())

    assert selection.outcomes[twin.id, 0] == Outcome("near_duplicate", f"{task.id}/0")


def test_same_plan_about_other_people_is_no_duplicate(catalogue: Catalogue) -> None:
    tasks = [complaint_task(seed=seed) for seed in (1, 2, 3)]
    rows = [rollout(task, catalogue) for task in tasks]

    assert select(rows, tasks, SelectionRules()).counts == {"kept": 3}


def test_task_has_no_more_trajectories_than_wanted(task: Task, success: Trajectory) -> None:
    rows = [success, *(with_more_calls(success, number, 8 * number) for number in (1, 2))]
    rows.append(changed(success, 3))

    assert reasons(rows, task, SelectionRules(per_task=2)) == ["kept", "kept", "over_cap", "duplicate"]


@pytest.mark.parametrize(
    ("count", "kept"),
    [
        pytest.param(2, ["a/0", "b/1"], id="fewer than tasks"),
        pytest.param(4, ["a/0", "a/1", "b/1", "c/0"], id="seconds by the order of tasks"),
        pytest.param(9, ["a/0", "a/1", "a/2", "b/1", "b/2", "c/0"], id="more than there are"),
    ],
)
def test_a_total_covers_every_task_before_it_takes_a_second_of_any(
    count: int, kept: list[str], task: Task, success: Trajectory, catalogue: Catalogue
) -> None:
    tasks = [other(task, shape=name) for name in "abc"]
    failed = rollout(task, catalogue, Scripted(AssistantMessage(content="Done.")))
    places = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (2, 0)]
    rows = [changed(failed if (at, index) == (1, 0) else success, index, task_id=tasks[at].id) for at, index in places]

    selection = select(rows, tasks, SelectionRules(count=count, similarity=None))

    names = {item.id: name for item, name in zip(tasks, "abc", strict=True)}
    assert [f"{names[row.task_id]}/{row.rollout_idx}" for row in selection.kept(rows)] == kept
    assert selection.counts == {"kept": len(kept), "failed": 1} | (
        {"over_count": 6 - len(kept)} if len(kept) < 6 else {}
    )


@pytest.mark.parametrize("part", ["instruction", "answer"])
def test_what_stands_in_a_folder_of_texts_is_left_out(
    part: str, task: Task, success: Trajectory, tmp_path: Path
) -> None:
    idle = other(task, instruction="Do nothing.")
    rows = [success, changed(success, 0, task_id=idle.id, answer="Nothing is done.")]
    rules = SelectionRules(decontaminate=str(tmp_path), similarity=None)
    text = task.instruction if part == "instruction" else success.answer
    (tmp_path / "benchmark.md").write_text(f"> {text}\n")

    selection = select(rows, [task, idle], rules)

    assert list(selection.outcomes.values()) == [Outcome("contaminated", "benchmark.md"), Outcome("kept")]
    assert selection.overlaps is not None
    assert selection.overlaps.files == 1


def test_what_the_others_took_counts_too(task: Task, success: Trajectory) -> None:
    def answer(tokens: int) -> AssistantMessage:
        return AssistantMessage(content="Done.", usage=Usage(prompt_tokens=tokens, completion_tokens=1))

    rows = [changed(success, index, messages=(*success.messages, answer(10 + index))) for index in (0, 1)]

    selection = select(rows, [task], SelectionRules())

    assert selection.counts == {"kept": 1, "duplicate": 1}
    assert selection.usage == Usage(prompt_tokens=21, completion_tokens=2)


def test_trajectory_of_an_unknown_task_is_bad_input(success: Trajectory) -> None:
    with pytest.raises(InputError, match=success.task_id):
        select([success], [], SelectionRules())
