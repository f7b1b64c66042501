"""A reinforcement run that is killed goes on as if nothing had happened: tasks, rollouts, replays and losses."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compoworld_core.storage import canonical_json, open_store
from compoworld_core.training.checkpoints import newest
from compoworld_core.training.config import GrpoSettings, Layout
from compoworld_core.training.grpo import GrpoJob, train
from compoworld_core.training.history import METRICS, ROLLOUTS, JudgedRollout, file_of, read_table
from compoworld_core.training.successes import stored_successes, write_successes
from tests.rollouts.complaint import open_catalogue
from tests.training.stack.scripted import short_task, success

MODULE = "tests.training.stack.grpo_job"
TASKS = [short_task(seed) for seed in (1, 2, 3)]
SETTINGS = GrpoSettings(
    steps=4,
    rollouts=2,
    tasks_per_step=2,
    updates=2,
    completion_tokens=512,
    learning_rate=1e-3,
    sampling="need",
    replay=True,
)


def job_of(folder: Path, base: Path) -> GrpoJob:
    folder.mkdir()
    (folder / "tasks.jsonl").write_text("\n".join(map(canonical_json, TASKS)))
    write_successes(
        stored_successes([success(task) for task in TASKS], [task.id for task in TASKS]), folder / "successes.jsonl"
    )
    job = GrpoJob(
        model=str(base),
        tasks=str(folder / "tasks.jsonl"),
        successes=str(folder / "successes.jsonl"),
        out=str(folder / "out"),
        store=str(folder / "store"),
        run="run",
        settings=SETTINGS,
        layout=Layout(device="cpu", gradient_checkpointing=False, save_every=1),
    )
    (folder / "job.json").write_text(job.model_dump_json())
    return job


def reported(folder: Path) -> dict[tuple[int, str], float | None]:
    """Every number that was reported of a step; the trainer's mean loss is over those of the last process alone."""
    metrics = read_table(folder / "out" / "model" / file_of(METRICS), METRICS)
    return {(item.step, item.name): item.value for item in metrics if item.name != "train_loss"}


def rollouts(folder: Path) -> list[JudgedRollout]:
    return list(read_table(folder / "out" / "model" / file_of(ROLLOUTS), ROLLOUTS))


def test_a_killed_run_goes_on_to_the_same_rollouts_and_losses(tmp_path: Path, base: Path) -> None:
    import torch

    train(job_of(tmp_path / "whole", base), TASKS, open_catalogue())
    killed = job_of(tmp_path / "killed", base)
    process = subprocess.Popen(
        [sys.executable, "-m", MODULE, str(tmp_path / "killed" / "job.json")],
        env={**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    store = open_store(tmp_path / "killed" / "store")
    deadline = time.monotonic() + 900
    while newest(store, "run") is None:
        assert process.poll() is None, "it ended before it was killed"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    begun = newest(store, "run")
    assert begun is not None
    assert begun.step % SETTINGS.updates == 0, "rollouts are not kept, so no checkpoint lies between two updates"
    assert begun.step < SETTINGS.steps

    train(killed, TASKS, open_catalogue())

    metrics = reported(tmp_path / "whole")
    assert reported(tmp_path / "killed") == pytest.approx(metrics, rel=1e-5, abs=1e-6)
    assert rollouts(tmp_path / "killed") == rollouts(tmp_path / "whole")
    assert {rollout.step for rollout in rollouts(tmp_path / "killed")} == {0, 2}
    assert any(value for (_, name), value in metrics.items() if name == "replay/groups"), "there is something to learn"
    assert any(value for (_, name), value in metrics.items() if name == "loss")
