"""Throughput: tokens per second of fine-tuning, beside a bare torch loop over the same batches.

Both train a model of their own, step by step in turns: whatever else the machine does then hits both. The trainer's
share of a step is all from the end of the bare loop's step to the end of its own, so batching and reports count.
"""

from __future__ import annotations

import copy
import math
import statistics
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, Final

import torch
from torch.nn.functional import cross_entropy
from transformers import TrainerCallback, TrainerControl, TrainerState, TrainingArguments

from compoworld_core.data import Data
from compoworld_core.errors import CompoWorldError
from compoworld_core.training import distributed
from compoworld_core.training.sft import SftJob, trainer_of

_IGNORED: Final = -100
_SAME: Final = 1e-3


class Throughput(Data):
    """What was measured.

    Attributes:
        steps: That were compared; the first of all is not.
        tokens: Of an average step, without padding.
        tokens_per_s: Of the trainer, by its median step.
        bare_tokens_per_s: Of the bare loop: forward, backward, AdamW.
        ratio: The former by the latter.
        padding: Share of what was computed that was padding.
    """

    steps: int
    tokens: float
    tokens_per_s: float
    bare_tokens_per_s: float
    ratio: float
    padding: float


def measure(job: SftJob) -> Throughput:
    """Fine-tune as a job says, in this process, beside a bare loop; nothing is kept.

    Raises:
        CompoWorldError: The first losses differ, so the two do not do the same work.
    """
    distributed.prepare(job.layout, job.model, f"bench-{job.run}")
    trainer = trainer_of(job)
    beside = _Beside(trainer, job)
    trainer.add_callback(beside)
    trainer.train()
    first = next(report["loss"] for report in trainer.state.log_history if "loss" in report)
    if not math.isclose(first, beside.first_loss, rel_tol=_SAME):
        raise CompoWorldError(f"the trainer's first loss is {first}, the bare loop's {beside.first_loss}")
    ours, bare = statistics.median(beside.ours[1:]), statistics.median(beside.bare[1:])
    tokens = statistics.fmean(beside.tokens[1:])
    return Throughput(
        steps=len(beside.ours) - 1,
        tokens=tokens,
        tokens_per_s=tokens / ours,
        bare_tokens_per_s=tokens / bare,
        ratio=bare / ours,
        padding=trainer.padding(),
    )


class _Beside(TrainerCallback):  # type: ignore[misc]  # transformers is untyped here
    """Makes a step of the bare loop after each of the trainer's."""

    def __init__(self, trainer: Any, job: SftJob) -> None:
        self.ours: list[float] = []
        self.bare: list[float] = []
        self.tokens: list[int] = []
        self.first_loss = math.nan
        self._model = copy.deepcopy(trainer.model).train()
        self._optimizer = torch.optim.AdamW(self._model.parameters(), lr=job.settings.learning_rate)
        self._steps = _steps(trainer, job.layout.accumulation(job.settings.global_batch))
        self._since = 0.0

    def on_train_begin(
        self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: Any
    ) -> None:
        """Start the clock."""
        self._since = time.perf_counter()

    def on_step_end(self, args: TrainingArguments, state: TrainerState, control: TrainerControl, **others: Any) -> None:
        """Stop the clock, and let the bare loop go."""
        self.ours.append(time.perf_counter() - self._since)
        batches = next(self._steps)
        self.tokens.append(sum(int(batch["attention_mask"].sum()) for batch in batches))
        begun = time.perf_counter()
        loss = self._step(batches)
        self._since = time.perf_counter()
        self.bare.append(self._since - begun)
        if math.isnan(self.first_loss):
            self.first_loss = loss

    def _step(self, batches: Sequence[Any]) -> float:
        total = 0.0
        labelled = sum(int((batch["labels"][:, 1:] != _IGNORED).sum()) for batch in batches)
        for batch in batches:
            logits = self._model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits
            loss = cross_entropy(
                logits[:, :-1].flatten(0, 1), batch["labels"][:, 1:].flatten(), ignore_index=_IGNORED, reduction="sum"
            )
            (loss / labelled).backward()
            total += loss.item() / labelled
        self._optimizer.step()
        self._optimizer.zero_grad()
        return total


def _steps(trainer: Any, accumulation: int) -> Iterator[list[Any]]:
    """The trainer's batches, step by step."""
    batches = trainer.get_train_dataloader()
    while True:
        epoch = iter(batches)
        while step := list(islice(epoch, accumulation)):
            yield step
