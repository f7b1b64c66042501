"""Stages: what a step of the pipeline reads and makes, said once for every engine.

A stage is a pure function from its config and its input datasets to rows, cut into shards. How many shards there are
follows from config and inputs, never from who runs them. Everything that decides the content of a stage's outputs goes
into one key, so a key that is committed never needs to be made again.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pydantic import BaseModel

from compoworld_core.errors import CompoWorldError, StorageError
from compoworld_core.pipeline.code import code_digest
from compoworld_core.storage import (
    DatasetCommit,
    DatasetLocation,
    DatasetType,
    Store,
    digest,
    read_commit,
    read_dataset,
)

Config = TypeVar("Config", bound=BaseModel)
Row = TypeVar("Row", bound=BaseModel)

MAX_SHARDS = 200
"""Most shards of a stage: each reads its inputs from the start, and engines have limits of their own."""


@dataclass(frozen=True)
class Shard:
    """One of a stage's shards.

    Attributes:
        key: The stage's key.
        store: Where to keep what is paid for before it is used: answers of models, finished sessions, checkpoints.
        notes: Evidence (durations, costs) for the sidecar; never content.
    """

    index: int
    count: int
    key: str
    store: Store
    notes: dict[str, Any] = field(default_factory=dict)

    def part_of(self, total: int) -> range:
        """This shard's part of so many things: shards follow each other and differ by one thing at most."""
        return range(self.index * total // self.count, (self.index + 1) * total // self.count)


def shards_for(things: int, per_shard: int) -> int:
    """How many shards so many things are cut into."""
    return max(1, min(-(-things // per_shard), MAX_SHARDS))


class Input(Generic[Row]):
    """A committed dataset that a stage reads."""

    def __init__(self, store: Store, location: DatasetLocation, type: DatasetType[Row]) -> None:
        commit = read_commit(store, location)
        if commit is None:
            raise StorageError(f"{store.uri}/{location.path}: not committed; run the stage that makes it")
        self.commit: DatasetCommit = commit
        self.location = location
        self._store = store
        self._type = type

    def __len__(self) -> int:
        return self.commit.rows

    def __iter__(self) -> Iterator[Row]:
        return read_dataset(self._store, self.location, self._type)

    def part(self, shard: Shard) -> Iterator[Row]:
        """The rows of one shard."""
        wanted = shard.part_of(len(self))
        for number, row in enumerate(self):
            if number >= wanted.stop:
                return
            if number >= wanted.start:
                yield row


class Inputs:
    """The datasets that a stage reads, by their type."""

    def __init__(self, store: Store, locations: Mapping[str, DatasetLocation]) -> None:
        self._store = store
        self._locations = locations
        self._opened: dict[str, Input[Any]] = {}

    def __getitem__(self, type: DatasetType[Row]) -> Input[Row]:
        if type.name not in self._opened:
            self._opened[type.name] = Input(self._store, self._locations[type.name], type)
        return self._opened[type.name]

    def find(self, type: DatasetType[Row]) -> Input[Row] | None:
        """A dataset that may not have been made."""
        return self[type] if type.name in self._locations else None


def _nothing(config: Any) -> None:
    return None


@dataclass(frozen=True)
class Stage(Generic[Config]):
    """A step of the pipeline.

    Attributes:
        inputs: Datasets that it may read; they decide its place in the order.
        outputs: Datasets that it makes; each row that `run` yields goes to the one whose row model it is.
        plan: The number of shards.
        run: The rows of one shard. What fails for one item is a row with its reason, not an exception.
        rooms: Rooms whose sources decide the content, with those below them.
        outside: JSON that stands for what it reads beside its inputs, such as the digest of a file.
        deterministic: Whether every attempt makes the same rows. Otherwise there must be one output only: two could
            come from different attempts.
        extra: The optional dependencies that it needs; a run of everything leaves such a stage out, unless a stage that
            it runs reads what this one makes.
        reads: Which of the inputs it reads with a config; all of them if left out.
        optional: Datasets that it reads where they have been made; it comes after those that make them.
        check: Refuses what can't work on this machine; asked before the first stage begins.
    """

    name: str
    config: type[Config]
    inputs: tuple[DatasetType[Any], ...]
    outputs: tuple[DatasetType[Any], ...]
    plan: Callable[[Config, Inputs], int]
    run: Callable[[Config, Inputs, Shard], Iterator[BaseModel]]
    rooms: tuple[str, ...]
    outside: Callable[[Config], Any] = _nothing
    deterministic: bool = True
    extra: str = ""
    reads: Callable[[Config], tuple[DatasetType[Any], ...]] | None = None
    optional: tuple[DatasetType[Any], ...] = ()
    check: Callable[[Config], None] = _nothing

    def __post_init__(self) -> None:
        if len({item.row for item in self.outputs}) < len(self.outputs) or not self.outputs:
            raise CompoWorldError(f"stage {self.name}: needs outputs whose row models differ")
        if not self.deterministic and len(self.outputs) > 1:
            raise CompoWorldError(f"stage {self.name}: is not deterministic, so it may have one output only")

    def needs(self, config: Config) -> tuple[DatasetType[Any], ...]:
        """The inputs that it reads with this config."""
        return self.inputs if self.reads is None else self.reads(config)

    @property
    def code(self) -> str:
        """Digest of the sources that decide its content."""
        return code_digest(self.rooms, inspect.getfile(self.run))


@dataclass(frozen=True)
class StagePlan:
    """A stage with everything that decides what it makes.

    Attributes:
        inputs: Locations of the input datasets.
        key: Digest of stage, config, code and inputs; the outputs lie under it.
    """

    stage: Stage[Any]
    config: BaseModel
    inputs: Mapping[str, DatasetLocation]
    key: str
    shards: int

    def location(self, output: DatasetType[Any]) -> DatasetLocation:
        """Where an output lies."""
        return DatasetLocation(dataset=output.name, key=self.key)

    @property
    def outputs(self) -> dict[str, DatasetLocation]:
        """Locations of the outputs, by dataset."""
        return {output.name: self.location(output) for output in self.stage.outputs}


def plan_stage(store: Store, stage: Stage[Any], config: BaseModel, inputs: Mapping[str, DatasetLocation]) -> StagePlan:
    """Work out the key and the number of shards.

    Raises:
        StorageError: An input is not committed.
    """
    opened = Inputs(store, inputs)
    shards = stage.plan(config, opened)
    content = {
        "stage": stage.name,
        "config": config,
        "outside": stage.outside(config),
        "code": stage.code,
        "inputs": {
            item.name: opened[item].commit.digest
            for item in (*stage.needs(config), *stage.optional)
            if item.name in inputs
        },
        "outputs": {item.name: item.version for item in stage.outputs},
        "shards": shards,
    }
    return StagePlan(stage, config, inputs, digest(content)[:24], shards)
