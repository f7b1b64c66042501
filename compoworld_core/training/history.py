"""History: how a training went, as typed tables that lie in the model's folder as Parquet files.

What was reported belongs to the weights that it led to, so it is stored with them. Times are evidence about a machine
and no part of it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal, TypeVar

from pydantic import BaseModel

from compoworld_core.data import Data
from compoworld_core.storage import DatasetType
from compoworld_core.storage.parts import read_part

Phase = Literal["sft", "grpo"]
Row = TypeVar("Row", bound=BaseModel)


class Metric(Data):
    """One number that a trainer reported.

    Attributes:
        step: Optimiser steps that were made before it.
        name: As the trainer calls it: `loss`, `eval_loss`, `rubric/full`, `clip_ratio/high_mean` …
        value: None where it was not a finite number.
    """

    phase: Phase
    step: int
    name: str
    value: float | None


class JudgedRollout(Data):
    """What became of one rollout.

    Attributes:
        step: Optimiser steps that were made before it.
        passed: Which of the task's criteria hold, in the rubric's order; empty where that could not be judged.
        error: Why it could not.
    """

    step: int
    task_id: str
    passed: tuple[bool, ...]
    error: str | None = None


class Epoch(Data):
    """What one epoch reads.

    Attributes:
        tokens: Of the conversations, whole.
        taught: Those of the assistant, which the loss is of.
    """

    conversations: int
    tokens: int
    taught: int


class Fitted(Data):
    """What became of conversations that had to fit the context.

    Attributes:
        whole: They fit as they are.
        cut: They fit up to one of the assistant's messages.
        dropped: Not even the first of those fits.
        tokens: Of all that fit.
        longest: Tokens of the longest of them.
        epoch: Those that were learnt from.
    """

    whole: int
    cut: int
    dropped: int
    tokens: int
    longest: int
    epoch: Epoch


class Pace(Data):
    """How quickly a training went: evidence, which depends on the machine.

    Attributes:
        seconds: Time in optimiser steps, without measuring and saving; rollouts are part of a step.
        tokens: Read and written in those steps, without padding.
        steps: Steps that this job made; a job that went on from a checkpoint made fewer than the training has.
        padding: Share of what was computed that was padding, where rows are padded to each other.
    """

    seconds: float
    tokens: int
    steps: int
    padding: float | None = None

    @property
    def tokens_per_s(self) -> float:
        """Over all processes."""
        return self.tokens / self.seconds if self.seconds else 0.0


METRICS: Final = DatasetType("training_metrics", 1, Metric)
ROLLOUTS: Final = DatasetType("training_rollouts", 1, JudgedRollout)
FITTED: Final = "training_data.json"
"""Name of the file with `Fitted` in a fine-tuned model's folder."""
PACE: Final = "pace.json"
"""Name of the file with `Pace`, beside a model's folder."""


def file_of(kind: DatasetType[Any]) -> str:
    """Name of a table's file in a model's folder."""
    return f"{kind.name}.parquet"


def write_table(folder: Path, kind: DatasetType[Row], rows: Iterable[Row]) -> None:
    """Write a table of the history into a model's folder."""
    import pyarrow.parquet as pq

    pq.write_table(kind.table(map(kind.plain, rows)), folder / file_of(kind))


def read_table(source: Path | BinaryIO, kind: DatasetType[Row]) -> Iterator[Row]:
    """The rows of a table that `write_table` wrote."""
    with source.open("rb") if isinstance(source, Path) else source as file:
        yield from read_part(file, kind, file_of(kind))
