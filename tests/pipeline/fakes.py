"""Two tiny stages over the real store, with ways to fail on demand.

`python -m tests.pipeline.fakes STORE WORKERS` runs both and prints a line for every shard that is committed.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from compoworld_core.errors import InputError, TransientError
from compoworld_core.pipeline.graph import StageGraph
from compoworld_core.pipeline.runner import Progress, StageResult, run_stages
from compoworld_core.pipeline.stage import Inputs, Shard, Stage, shards_for
from compoworld_core.pipeline.workers import Workers
from compoworld_core.storage import DatasetType, open_store


class Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Number(Frozen):
    value: int


class Remark(Frozen):
    about: int
    text: str


class Square(Frozen):
    value: int
    square: int


class Tally(Frozen):
    numbers: int
    squares: int | None


NUMBERS = DatasetType("numbers", 1, Number)
REMARKS = DatasetType("remarks", 1, Remark)
SQUARES = DatasetType("squares", 1, Square)
TALLIES = DatasetType("tallies", 1, Tally)


class CountConfig(Frozen):
    """How far to count, and which misfortune befalls number 5 while the file `trap` is there."""

    count: int = 12
    misfortune: str = ""
    trap: str = ""
    is_springing_once: bool = True


class SquareConfig(Frozen):
    pass


def plan_count(config: CountConfig, inputs: Inputs) -> int:
    return shards_for(config.count, 3)


def count(config: CountConfig, inputs: Inputs, shard: Shard) -> Iterator[BaseModel]:
    for number in shard.part_of(config.count):
        if number == 5 and config.misfortune and Path(config.trap).exists():
            spring(config)
        yield Number(value=number)
        if number % 2:
            yield Remark(about=number, text="odd")


def spring(config: CountConfig) -> None:
    if config.is_springing_once:
        Path(config.trap).unlink()
    if config.misfortune == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    raise {"transient": TransientError, "input": InputError, "bug": ZeroDivisionError}[config.misfortune]("bad luck")


def plan_squares(config: SquareConfig, inputs: Inputs) -> int:
    return shards_for(len(inputs[NUMBERS]), 4)


def squares(config: SquareConfig, inputs: Inputs, shard: Shard) -> Iterator[BaseModel]:
    for number in inputs[NUMBERS].part(shard):
        yield Square(value=number.value, square=number.value**2)


def tally(config: SquareConfig, inputs: Inputs, shard: Shard) -> Iterator[BaseModel]:
    squared = inputs.find(SQUARES)
    yield Tally(numbers=len(inputs[NUMBERS]), squares=None if squared is None else len(squared))


COUNT = Stage("count", CountConfig, (), (NUMBERS, REMARKS), plan_count, count, rooms=())
SQUARE = Stage("square", SquareConfig, (NUMBERS,), (SQUARES,), plan_squares, squares, rooms=())
TALLY = Stage(
    "tally", SquareConfig, (NUMBERS,), (TALLIES,), lambda config, inputs: 1, tally, rooms=(), optional=(SQUARES,)
)
GRAPH = StageGraph((SQUARE, COUNT))


class Diary:
    """Progress that can be read afterwards, or by whoever watches standard output."""

    def __init__(self, *, is_aloud: bool = False) -> None:
        self.made: list[str] = []
        self._is_aloud = is_aloud

    def begin(self, stage: str, shards: int, done: int) -> None:
        pass

    def advance(self, stage: str) -> None:
        self.made.append(stage)
        if self._is_aloud:
            sys.stdout.write(f"{stage}\n")
            sys.stdout.flush()

    def end(self, stage: str, result: StageResult) -> None:
        pass


def run_fakes(
    uri: str, *, workers: int = 1, config: CountConfig | None = None, progress: Progress | None = None
) -> list[StageResult]:
    configs = {"count": config or CountConfig(), "square": SquareConfig()}
    with Workers(workers) as crew:
        return run_stages(open_store(uri), GRAPH, configs, GRAPH.order, crew, progress or Diary())


def digests(results: list[StageResult]) -> dict[str, str]:
    return {name: commit.digest for result in results for name, commit in result.commits.items()}


if __name__ == "__main__":
    from tests.pipeline import fakes  # not as `__main__`: workers look the stages up by module

    fakes.run_fakes(sys.argv[1], workers=int(sys.argv[2]), progress=fakes.Diary(is_aloud=True))
