"""Reinforcement runs in real worlds, alone and over processes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compoworld_core.storage import canonical_json
from compoworld_core.tasks.task import Task
from compoworld_core.training.config import GrpoSettings, Layout
from compoworld_core.training.environment import WorldEnvironment, verdict_of
from compoworld_core.training.grpo import GrpoJob
from compoworld_core.training.history import METRICS, ROLLOUTS, file_of, read_table
from compoworld_core.training.launch import launch
from tests.rollouts.complaint import complaint_task, open_catalogue

MODULE = "tests.training.stack.grpo_job"
SETTINGS = GrpoSettings(
    steps=2, rollouts=4, tasks_per_step=2, updates=2, completion_tokens=64, learning_rate=1e-4, context_tokens=4096
)


def job_of(folder: Path, base: Path, **layout: Any) -> Path:
    folder.mkdir()
    tasks = [complaint_task(seed=seed, split="rl") for seed in (1, 2)]
    (folder / "tasks.jsonl").write_text("\n".join(map(canonical_json, tasks)))
    job = GrpoJob(
        model=str(base),
        tasks=str(folder / "tasks.jsonl"),
        out=str(folder / "out"),
        store=str(folder / "store"),
        run="run",
        settings=SETTINGS,
        layout=Layout(device="cpu", gradient_checkpointing=False, save_every=1, **layout),
    )
    (folder / "job.json").write_text(job.model_dump_json())
    return folder / "job.json"


def reported(folder: Path, name: str) -> list[float | None]:
    """What a run's history says of a number, step by step."""
    rows = read_table(folder / "out" / "model" / file_of(METRICS), METRICS)
    return [row.value for row in rows if row.name == name]


@pytest.mark.parametrize(
    "layout",
    [{}, {"zero_stage": 3, "processes_per_node": 2}],
    ids=["alone", "two processes with ZeRO-3"],
)
def test_a_run_reports_raw_pass_rates_and_leaves_a_model(layout: dict[str, Any], tmp_path: Path, base: Path) -> None:
    folder = tmp_path / "run"

    launch(Layout(device="cpu", **layout), MODULE, job_of(folder, base, **layout))

    criteria = reported(folder, "rubric/criteria")
    assert criteria
    assert all(0 < rate < 1 for rate in criteria if rate is not None), "some hold although nothing was done"
    assert set(reported(folder, "rubric/failed")) == set(reported(folder, "rubric/full")) == {0.0}
    made = list(read_table(folder / "out" / "model" / file_of(ROLLOUTS), ROLLOUTS))
    assert len(made) == len(criteria) * SETTINGS.tasks_per_step * SETTINGS.rollouts, "every process's, once"
    assert all(any(rollout.passed) and not all(rollout.passed) for rollout in made)
    assert (folder / "out" / "model" / "model.safetensors").exists()
    assert (folder / "out" / "model" / "tokenizer.json").exists()


def solved(environment: WorldEnvironment, task: Task) -> list[dict[str, Any]]:
    """Let the oracle's conversation run through the environment."""
    from tests.training.stack.episodes import played

    (trajectory,) = played([task], open_catalogue())
    for call in trajectory.calls:
        assert call.arguments is not None
        getattr(environment, call.name)(**call.arguments)
    return [{"role": "assistant", "content": trajectory.answer}]


def test_the_environment_judges_as_an_episode_does() -> None:
    task = complaint_task(seed=3, split="rl")
    environment = WorldEnvironment({task.id: task}, open_catalogue())
    environment.reset(task_id=task.id)

    verdict = verdict_of(environment, solved(environment, task))

    assert getattr(verdict, "success", False), verdict
    environment.reset(task_id=task.id)
    fresh = verdict_of(environment, [{"role": "assistant", "content": "Done."}])
    assert not getattr(fresh, "success", True), "nothing of the rollout before is left"


def test_a_world_that_does_not_open_fails_its_rollout_only() -> None:
    task = complaint_task(seed=3)
    missing = task.recipe.services[0].model_copy(update={"package": "0" * 64})
    broken = complaint_task(seed=3, services=(missing, *task.recipe.services[1:]))
    environment = WorldEnvironment({task.id: task, broken.id: broken}, open_catalogue())

    environment.reset(task_id=broken.id)
    assert environment.list_services() == "{}"
    failed = verdict_of(environment, [{"role": "assistant", "content": "Done."}])
    environment.reset(task_id=task.id)

    assert getattr(failed, "kind", "") == "world"
    assert "crm" in environment.list_services()
