"""Fine-tuning runs end to end: alone, over processes, and after a kill."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.storage import open_store
from compoworld_core.storage.digest import JsonObject
from compoworld_core.training.checkpoints import newest
from compoworld_core.training.config import Layout, SftSettings
from compoworld_core.training.conversations import fit, write_rows
from compoworld_core.training.history import METRICS, Pace, file_of, read_table
from compoworld_core.training.launch import launch
from compoworld_core.training.sft import SftJob

MODULE = "compoworld_core.training.sft"
SETTINGS = SftSettings(epochs=4, global_batch=2, learning_rate=1e-3, context_tokens=1024, warmup=0.1)


def job_of(folder: Path, base: Path, records: list[JsonObject], tokenizer: Any, **layout: Any) -> Path:
    """A job's file; conversations are cut to what fits the settings' context."""
    folder.mkdir()
    rows = fit([_short(record) for record in records], tokenizer, SETTINGS.context_tokens).rows
    write_rows(rows, folder / "rows.jsonl")
    job = SftJob(
        model=str(base),
        rows=str(folder / "rows.jsonl"),
        held_out=str(folder / "rows.jsonl"),
        out=str(folder / "out"),
        store=str(folder / "store"),
        run="run",
        settings=SETTINGS,
        layout=Layout(device="cpu", gradient_checkpointing=False, save_every=4, **layout),
    )
    (folder / "job.json").write_text(job.model_dump_json())
    return folder / "job.json"


def _short(record: JsonObject) -> JsonObject:
    """The record without tools and the long first messages, so that it fits a small context."""
    system, *rest = record["messages"]
    return {**record, "tools": record["tools"][:1], "messages": [{**system, "content": "Work."}, *rest[:6]]}


def reported(folder: Path, name: str) -> dict[int, float]:
    """What a run's history says of a number, by step."""
    rows = read_table(folder / "out" / "model" / file_of(METRICS), METRICS)
    return {row.step: row.value for row in rows if row.name == name and row.value is not None}


def losses(folder: Path) -> dict[int, float]:
    return reported(folder, "loss")


def held_out(folder: Path) -> list[float]:
    return list(reported(folder, "eval_loss").values())


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, base: Path, records: list[JsonObject], tokenizer: Any) -> Path:
    """Folder of a run in one process."""
    folder = tmp_path_factory.mktemp("alone") / "run"
    launch(Layout(device="cpu"), MODULE, job_of(folder, base, records, tokenizer))
    return folder


def test_loss_falls_and_the_model_can_be_served(alone: Path, tokenizer: Any) -> None:
    from compoworld_core.training.local_model import LocalModel

    assert held_out(alone)[-1] < 0.9 * held_out(alone)[0]
    model = LocalModel(alone / "out" / "model", name="tuned")
    assert model._tokenizer.chat_template == tokenizer.chat_template, "not the trainer's own"
    assert model._tokenizer.response_template is not None


def test_a_killed_run_goes_on_to_the_same_losses(
    alone: Path, tmp_path: Path, base: Path, records: list[JsonObject], tokenizer: Any
) -> None:
    folder = tmp_path / "killed"
    job = job_of(folder, base, records, tokenizer)
    process = subprocess.Popen(
        [sys.executable, "-m", MODULE, str(job)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    store = open_store(folder / "store")
    deadline = time.monotonic() + 300
    while newest(store, "run") is None:
        assert process.poll() is None, "it ended before it was killed"
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()

    launch(Layout(device="cpu"), MODULE, job)

    assert losses(folder) == pytest.approx(losses(alone), rel=1e-6)
    assert reported(folder, "eval_loss") == pytest.approx(reported(alone, "eval_loss"), rel=1e-6)


def test_a_history_tells_every_step_and_no_time(alone: Path) -> None:
    rows = list(read_table(alone / "out" / "model" / file_of(METRICS), METRICS))
    pace = Pace.model_validate_json((alone / "out" / "pace.json").read_text())

    assert sorted(losses(alone)) == list(range(1, pace.steps + 1))
    assert {row.phase for row in rows} == {"sft"}
    assert not [row.name for row in rows if "second" in row.name or "runtime" in row.name]
    assert pace.tokens == reported(alone, "num_tokens")[pace.steps]
    assert pace.seconds > 0


def test_tensorboard_shows_what_the_history_tells(
    alone: Path, tmp_path: Path, base: Path, records: list[JsonObject], tokenizer: Any
) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    layout = {"tensorboard": str(tmp_path / "watched")}
    launch(Layout(device="cpu", **layout), MODULE, job_of(tmp_path / "run", base, records, tokenizer, **layout))

    events = EventAccumulator(str(tmp_path / "watched" / "sft-run"))
    events.Reload()
    shown = {event.step: event.value for event in events.Scalars("train/loss")}
    assert shown == pytest.approx(losses(alone), rel=1e-5)


@pytest.mark.usefixtures("kernels")
def test_two_processes_agree_whatever_is_divided_between_them(
    tmp_path: Path, base: Path, records: list[JsonObject], tokenizer: Any
) -> None:
    found = {}
    for stage in (1, 2, 3):
        layout = {"zero_stage": stage, "processes_per_node": 2}
        folder = tmp_path / f"zero{stage}"
        launch(Layout(device="cpu", **layout), MODULE, job_of(folder, base, records, tokenizer, **layout))
        found[stage] = losses(folder)
        assert (folder / "out" / "model" / "model.safetensors").exists()

    assert found[2] == pytest.approx(found[1], rel=1e-5)
    assert found[3] == pytest.approx(found[1], rel=1e-5)


@pytest.mark.parametrize(("experts", "expected"), [(0, {}), (4, {"router_aux_loss_coef": 0.0})])
def test_a_model_with_experts_gets_no_loss_for_balancing_them(
    experts: int, expected: dict[str, float], tmp_path: Path
) -> None:
    from transformers import Qwen3Config, Qwen3MoeConfig

    from compoworld_core.training.sft import _router

    config = Qwen3MoeConfig(num_experts=experts) if experts else Qwen3Config()
    config.save_pretrained(tmp_path)

    assert _router(str(tmp_path)) == expected
