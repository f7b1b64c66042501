"""Row models and small helpers that several storage tests share."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from compoworld_core.storage import DatasetLocation, DatasetType


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Level(StrEnum):
    LOW = "low"
    HIGH = "high"


class Step(Frozen):
    tool: str
    arguments: dict[str, Any]
    before: tuple[int, ...] = ()


class Everything(Frozen):
    """A row with every kind of column."""

    name: Annotated[str, Field(max_length=1000)]
    count: int
    share: float
    done: bool
    level: Level
    split: Literal["sft", "rl"]
    price: Decimal
    at: datetime
    tags: tuple[str, ...]
    steps: tuple[Step, ...]
    data: Any
    maybe: str | None
    maybe_count: int | None
    maybe_step: Step | None
    either: int | str
    from_: str = Field(alias="from")


class Note(Frozen):
    id: str
    body: str = ""


EVERYTHING = DatasetType("everything", 1, Everything)
NOTES = DatasetType("notes", 1, Note, ordered_by="id")
PLAIN_NOTES = DatasetType("notes", 1, Note)
HERE = DatasetLocation(dataset="notes", key="k1")


def notes(count: int, body: str = "text") -> list[Note]:
    return [Note(id=f"n{number:05d}", body=f"{body} {number}") for number in range(count)]
