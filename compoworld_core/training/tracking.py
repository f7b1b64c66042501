"""Tracking: what a trainer saves goes to the store before it counts, and what it reported lies beside the model.

Reports are part of a checkpoint, so a run that was killed keeps those of all its steps. Times are evidence, not
content: the same training reports the same on any machine.
"""

from __future__ import annotations

import math
import os
import re
import shutil
import time
import uuid
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import torch.distributed
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from compoworld_core.rollouts.trajectory import EpisodeError
from compoworld_core.storage import open_store
from compoworld_core.training.checkpoints import CheckpointFile, commit, fetch, newest, sweep, upload
from compoworld_core.training.curriculum import Outcome
from compoworld_core.training.distributed import gathered, is_spread
from compoworld_core.training.history import (
    METRICS,
    PACE,
    ROLLOUTS,
    JudgedRollout,
    Metric,
    Pace,
    Phase,
    file_of,
    read_table,
    write_table,
)

_IS_TIME: Final = re.compile(r"(_runtime|_per_second|step_time)$")


class Tracking(TrainerCallback):  # type: ignore[misc]  # transformers is untyped here
    """Commits checkpoints, and keeps what is to be told about the training.

    Args:
        store: URI of the store that keeps checkpoints.
        run: The training run's name there.
        phase: Whose reports these are.
    """

    def __init__(self, store: str, run: str, phase: Phase) -> None:
        self._store = open_store(store)
        self._run = run
        self._phase = phase
        self._rollouts: list[JudgedRollout] = []
        self._step = 0
        self._began = 0.0
        self._seconds = 0.0
        self._steps = 0
        self._tokens_before = self._tokens = 0

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
        rollouts = target / file_of(ROLLOUTS)
        if rollouts.exists():
            self._rollouts = list(read_table(rollouts, ROLLOUTS))
        return str(target)

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: Any
    ) -> None:
        """Note where this job begins."""
        self._step = state.global_step
        self._tokens_before = self._tokens = state.num_input_tokens_seen

    def on_step_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: Any
    ) -> None:
        """Start the clock."""
        self._step = state.global_step
        self._began = time.monotonic()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: Any) -> None:
        """Stop the clock."""
        self._seconds += time.monotonic() - self._began
        self._steps += 1

    def on_log(
        self,
        args: TrainingArguments,
        state: TrainerState,
        control: TrainerControl,
        logs: dict[str, Any] | None = None,
        **others: Any,
    ) -> None:
        """Note how many tokens there have been."""
        self._tokens = (logs or {}).get("num_tokens", self._tokens)

    def note_rollouts(self, outcomes: Sequence[Outcome], errors: Sequence[EpisodeError]) -> None:
        """Note a step's rollouts.

        Args:
            outcomes: Of all processes.
            errors: Of those that could not be judged, in the same order.
        """
        reasons = iter(errors)
        for task, passed in outcomes:
            error = next(reasons, None) if passed is None else None
            self._rollouts.append(
                JudgedRollout(
                    step=self._step,
                    task_id=task,
                    passed=passed or (),
                    error=f"{error.kind}: {error.message}" if error else None,
                )
            )

    @property
    def outcomes(self) -> list[Outcome]:
        """Of all rollouts so far, those before a kill among them."""
        return [(rollout.task_id, rollout.passed or None) for rollout in self._rollouts]

    def on_save(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: Any) -> None:
        """Upload what this machine holds of the checkpoint, and commit it once every machine has."""
        _wait()
        files: tuple[CheckpointFile, ...] = ()
        if _is_first_here():
            folder = Path(str(args.output_dir)) / f"checkpoint-{state.global_step}"
            if state.is_world_process_zero and self._rollouts:
                write_table(folder, ROLLOUTS, self._rollouts)
            files = upload(self._store, self._run, state.global_step, uuid.uuid4().hex, folder)
        everything = [file for part in gathered(files) for file in part]
        if state.is_world_process_zero:
            sweep(self._store, self._run, commit(self._store, self._run, state.global_step, everything))
        _wait()
        if _is_first_here() and not state.is_world_process_zero:  # the trainer clears away on the first machine alone
            for done in Path(str(args.output_dir)).glob("checkpoint-*"):
                shutil.rmtree(done)

    def leave(self, state: TrainerState, out: Path, padding: float | None = None) -> None:
        """Lay the history into the model's folder, and how quickly it went beside it.

        Args:
            state: What the trainer has reported.
            out: Folder of the job, with the model's in it.
            padding: See `Pace`.
        """
        if not state.is_world_process_zero:
            return
        write_table(out / "model", METRICS, _metrics(self._phase, state))
        if self._rollouts:
            write_table(out / "model", ROLLOUTS, self._rollouts)
        pace = Pace(
            seconds=self._seconds, tokens=int(self._tokens - self._tokens_before), steps=self._steps, padding=padding
        )
        (out / PACE).write_text(pace.model_dump_json(), encoding="utf-8")


def _metrics(phase: Phase, state: TrainerState) -> Iterator[Metric]:
    for report in state.log_history:
        for name, value in sorted(report.items()):
            if name != "step" and not _IS_TIME.search(name) and isinstance(value, int | float):
                yield Metric(
                    phase=phase, step=report["step"], name=name, value=float(value) if math.isfinite(value) else None
                )


def _is_first_here() -> bool:
    return os.environ.get("LOCAL_RANK", "0") == "0"


def _wait() -> None:
    if is_spread():
        torch.distributed.barrier()
