"""Tracking: what a trainer reports goes to a file as it comes, what it saves goes to the store before it counts."""

from __future__ import annotations

import json
import os
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch.distributed
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from compoworld_core.rollouts.trajectory import EpisodeError
from compoworld_core.storage import open_store
from compoworld_core.training.checkpoints import CheckpointFile, commit, fetch, newest, sweep, upload
from compoworld_core.training.distributed import gathered, is_spread
from compoworld_core.training.group_reward import Outcome, own_rank

METRICS = "metrics.jsonl"
ROLLOUTS = "rollouts.jsonl"


class Tracking(TrainerCallback):  # type: ignore[misc]  # transformers is untyped here
    """Writes metrics and commits checkpoints.

    Args:
        store: URI of the store that keeps checkpoints.
        run: The training run's name there.
        out: Folder of the job on this machine. `metrics.jsonl` in it gets a line for every report, `rollouts.jsonl` one
            for every step of rollouts: which criteria each passed, and why any could not be judged.
    """

    def __init__(self, store: str, run: str, out: Path) -> None:
        self._store = open_store(store)
        self._run = run
        self._metrics = out / METRICS
        self._rollouts = out / ROLLOUTS
        out.mkdir(parents=True, exist_ok=True)

    def resume(self, folder: Path) -> str | None:
        """Fetch the newest checkpoint to this machine; the folder to go on from, if there is any."""
        found = newest(self._store, self._run)
        if found is None:
            return None
        target = folder / f"checkpoint-{found.step}"
        if _is_first_here():
            target.parent.mkdir(parents=True, exist_ok=True)
            fetch(self._store, found, target)
        _wait()
        return str(target)

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **others: Any,
    ) -> None:
        """Add a line of metrics."""
        if state.is_world_process_zero and logs:
            with self._metrics.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"step": state.global_step, **logs}, sort_keys=True) + "\n")

    def note_rollouts(self, outcomes: Sequence[Outcome], errors: Sequence[EpisodeError]) -> None:
        """Add a line about a step's rollouts; the first process of the job does."""
        if own_rank() == 0:
            line = {
                "rollouts": [{"task_id": task, "passed": passed} for task, passed in outcomes],
                "errors": [error.model_dump() for error in errors],
            }
            with self._rollouts.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: Any) -> None:
        """Upload what this machine holds of the checkpoint, and commit it once every machine has."""
        _wait()
        files: tuple[CheckpointFile, ...] = ()
        if _is_first_here():
            folder = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
            files = upload(self._store, self._run, state.global_step, uuid.uuid4().hex, folder)
        everything = [file for part in gathered(files) for file in part]
        if state.is_world_process_zero:
            sweep(self._store, self._run, commit(self._store, self._run, state.global_step, everything))
        _wait()


def _is_first_here() -> bool:
    return os.environ.get("LOCAL_RANK", "0") == "0"


def _wait() -> None:
    if is_spread():
        torch.distributed.barrier()
