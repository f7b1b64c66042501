"""Groups of rollouts in real worlds: what the model says is scripted, all else is as in training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from compoworld_core.storage import canonical_json
from compoworld_core.tasks.task import Task
from compoworld_core.training.config import GrpoSettings, Layout
from compoworld_core.training.grpo import GrpoJob
from compoworld_core.training.history import METRICS, ROLLOUTS, JudgedRollout, file_of, read_table
from compoworld_core.training.launch import launch
from compoworld_core.training.reward import completion_focused_reward
from compoworld_core.training.sampling import pass_over_tasks
from compoworld_core.training.successes import Successes, stored_successes, write_successes
from tests.training.stack.scripted import BEGIN, HALF, IDLE, SLOW, SOLVED, Script, scripted, short_task, success

MODULE = "tests.training.stack.scripted_job"
COMPLETION = 2048
TASKS = [short_task(seed) for seed in (1, 2, 3)]
FIRST, SECOND, THIRD = pass_over_tasks([task.id for task in TASKS], 3, seed=0, step=0)
"""As the first step has them."""


class Run:
    """A scripted job in a folder; several processes are launched, one works right here.

    Args:
        script: What the rollouts of each task say.
        broken: The task whose world fails.
        replay: Whether a success of each task is stored.
        layout: Of the job.
        settings: Beside the sizes of groups and steps.
    """

    def __init__(
        self,
        folder: Path,
        base: Path,
        script: Script,
        *,
        broken: str | None = None,
        replay: bool = False,
        layout: dict[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        folder.mkdir()
        self.folder = folder
        tasks = [task for task in TASKS if task.id in script]
        (folder / "tasks.jsonl").write_text("\n".join(map(canonical_json, tasks)))
        (folder / "script.json").write_text(json.dumps(script))
        if replay:
            write_successes(stored_successes([success(task) for task in tasks], script), folder / "successes.jsonl")
        if broken:
            (folder / "broken").write_text(broken)
        sizes = {"steps": 1, "rollouts": 4, "tasks_per_step": len(tasks), "updates": 1}
        limits = {"completion_tokens": COMPLETION, "learning_rate": 1e-3}
        self.layout = Layout(device="cpu", gradient_checkpointing=False, **(layout or {}))
        job = GrpoJob(
            model=str(base),
            tasks=str(folder / "tasks.jsonl"),
            successes=str(folder / "successes.jsonl") if replay else None,
            out=str(folder / "out"),
            store=str(folder / "store"),
            run="run",
            settings=GrpoSettings(**{**sizes, **limits, **settings}),
            layout=self.layout,
        )
        (folder / "job.json").write_text(job.model_dump_json())
        if self.layout.processes > 1:
            launch(self.layout, MODULE, folder / "job.json")
        else:
            from tests.training.stack.scripted_job import run

            run(folder / "job.json")

    def step(self, number: int = 0) -> dict[str, list[Any]]:
        """What all processes trained on in a step of rollouts, in the order of the batch."""
        parts = [
            json.loads((self.folder / f"steps-{rank}.jsonl").read_text().splitlines()[number])
            for rank in range(self.layout.processes)
        ]
        return {name: [item for part in parts for item in part[name]] for name in parts[0]}

    def metrics(self, name: str) -> list[float | None]:
        """A number that the trainer reported, step by step."""
        table = read_table(self.folder / "out" / "model" / file_of(METRICS), METRICS)
        return [metric.value for metric in table if metric.name == name]

    def rollouts(self) -> list[JudgedRollout]:
        """What is told of the rollouts."""
        return list(read_table(self.folder / "out" / "model" / file_of(ROLLOUTS), ROLLOUTS))


STUCK = scripted(
    {FIRST: [SOLVED, IDLE, HALF, SLOW], SECOND: [IDLE, SLOW, HALF, HALF], THIRD: [HALF, IDLE, SOLVED, HALF]}
)
"""Nobody opens a case in the second task, whose group is on both of two processes. The third's end sooner."""


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, base: Path) -> Run:
    """A step in one process, with successes to replay."""
    return Run(tmp_path_factory.mktemp("alone") / "run", base, STUCK, replay=True)


def own_tokens(tokenizer: Any, task: Task) -> list[int]:
    """The tokens of a task's stored success that the policy writes."""
    ids, mask = rendered(tokenizer, task)
    return [token for token, mine in zip(ids, mask, strict=True) if mine]


def rendered(tokenizer: Any, task: Task) -> tuple[list[int], list[int]]:
    """A task's stored success as a rollout: tokens, and which of them the policy writes."""
    from compoworld_core.training.environment import prompt_rows
    from compoworld_core.training.world_trainer import rendering
    from tests.rollouts.complaint import open_catalogue

    (row,) = prompt_rows([task], open_catalogue())
    successes = Successes(
        stored_successes([success(task)], [task.id]),
        {task.id: row["prompt"]},
        rendering(tokenizer),
        end_of_turn=tokenizer.eos_token_id,
        longest=COMPLETION,
    )
    ids, mask, _ = successes.rollout(successes.of(task.id)[0])
    return ids, mask


def task_of(name: str) -> Task:
    return next(task for task in TASKS if task.id == name)


def test_a_stored_success_has_the_tokens_that_the_rollout_had(alone: Run, tokenizer: Any) -> None:
    step = alone.step()

    ids, mask = rendered(tokenizer, task_of(FIRST))

    assert step["completions"][0] == ids, "the first rollout solved it with the same words"
    assert step["trained"][0] == own_tokens(tokenizer, task_of(FIRST))
    assert 0 < sum(mask) < len(mask) / 2, "most is what tools answer"
    assert BEGIN not in tokenizer.decode(step["trained"][0])


def test_a_success_joins_a_group_that_fails_a_criterion_and_makes_a_difference(alone: Run, tokenizer: Any) -> None:
    step = alone.step()

    assert step["tasks"][4:8] == [SECOND] * 4
    assert step["trained"][7] == own_tokens(tokenizer, task_of(SECOND)), "in the last place"
    assert step["advantages"][7] == max(step["advantages"][4:8]) > 0
    assert step["rewards"][7] == 1
    assert alone.metrics("replay/groups") == [pytest.approx(1 / 3)]


def test_what_is_told_is_what_the_policy_did(alone: Run) -> None:
    told = [rollout.passed for rollout in alone.rollouts()]

    assert told[4:8] == [(False, False, True), (False, True, True), (False, True, True), (False, True, True)]
    assert alone.metrics("rubric/full") == [pytest.approx(2 / 12)]
    assert alone.metrics("rubric/criteria") == [pytest.approx(sum(map(sum, told)) / 36)]


def test_the_model_is_not_asked_for_more_than_what_is_left_of_a_rollout(alone: Run) -> None:
    rows, limits = zip(*alone.step()["asked"], strict=True)

    assert rows == (12, 9, 4, 2, 2), "those that still call tools"
    assert limits[0] == COMPLETION
    assert sorted(limits, reverse=True) == list(limits)
    assert limits[-1] < COMPLETION


@pytest.mark.usefixtures("kernels")
def test_groups_over_two_processes_are_rewarded_as_in_one(alone: Run, tmp_path: Path, base: Path) -> None:
    spread = Run(tmp_path / "run", base, STUCK, replay=True, layout={"processes_per_node": 2, "zero_stage": 3})

    here, there = alone.step(), spread.step()
    assert there["tasks"] == here["tasks"] == [FIRST] * 4 + [SECOND] * 4 + [THIRD] * 4
    for what in ("completions", "trained", "rewards"):
        assert there[what] == here[what], what
    assert there["advantages"] == pytest.approx(here["advantages"], abs=1e-6)
    assert spread.metrics("loss") == pytest.approx(alone.metrics("loss"), abs=1e-6)
    assert spread.metrics("grad_norm") == pytest.approx(alone.metrics("grad_norm"), rel=1e-4)
    turns = [len(json.loads((spread.folder / f"steps-{rank}.jsonl").read_text())["asked"]) for rank in (0, 1)]
    assert turns == [5, 5], "the second process, whose rollouts end sooner, asks as often"


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory, base: Path) -> Run:
    """Two updates, far too large, on the same rollouts; a case cannot be opened in the first task's world."""
    script = scripted({FIRST: [SOLVED, HALF, IDLE, IDLE], SECOND: [SOLVED, HALF, IDLE, SOLVED]})
    folder = tmp_path_factory.mktemp("broken") / "run"
    return Run(folder, base, script, broken=FIRST, steps=2, updates=2, learning_rate=0.05)


def test_a_rollout_whose_world_fails_is_masked_and_the_others_count_as_if_it_had_never_been(broken: Run) -> None:
    step = broken.step()

    begin = step["tasks"].index(FIRST)
    judged = completion_focused_reward(np.array([[False, True, True], [False, False, True], [False, False, True]]))
    standardised = (judged - judged.mean()) / judged.std(ddof=1)
    assert step["rewards"][begin : begin + 4] == [None, *judged]
    assert step["advantages"][begin] == 0
    assert step["advantages"][begin + 1 : begin + 4] == pytest.approx(standardised, rel=1e-3)
    assert [rollout.error for rollout in broken.rollouts() if rollout.error] == [
        "world: InputError: the package of crm is gone"
    ]
    assert broken.metrics("rubric/failed") == [1 / 8]


def test_the_clip_acts_on_the_second_update_and_is_told(broken: Run) -> None:
    clipped = broken.metrics("clip_ratio/region_mean")

    assert clipped[0] == 0, "old and new policy are the same"
    assert clipped[1] is not None
    assert clipped[1] > 0
    assert len(broken.metrics("clip_ratio/low_mean")) == len(broken.metrics("clip_ratio/high_mean")) == 2
