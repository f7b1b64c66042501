"""The commit protocol: killing a job at any instant loses nothing committed and shows nothing that was not.

    <dataset>/<key>/shard=K/attempt=<id>/part-*.parquet    written first, invisible to readers
    <dataset>/<key>/shard=K/attempt=<id>/_SIDECAR.json     durations and costs: evidence, never content
    <dataset>/<key>/shard=K/_COMMIT.json                   conditional create: one attempt wins the shard
    <dataset>/<key>/_DATASET.json                          created by the merge; readers open only this

A shard's digest is the sha256 of its rows as lines of canonical JSON, so it does not depend on attempts, paths, part
or row-group limits, or the Parquet library. Readers check the sha256 of each part before they trust a row of it.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from os import SEEK_END
from types import TracebackType
from typing import Any, BinaryIO, Generic, Self, TypeVar

from pydantic import Field, ValidationError

from compoworld_core.data import Data
from compoworld_core.errors import StorageError
from compoworld_core.storage.dataset import DatasetType, Row
from compoworld_core.storage.digest import canonical_json, digest, dump_plain
from compoworld_core.storage.parts import PartWriter, read_part
from compoworld_core.storage.store import Store

PART_BYTES = 256 * 2**20
"""Size of a part's rows as JSON text at which the next part begins; bounds what a reader of S3 keeps on disk."""

_COMMIT = "_COMMIT.json"
_DATASET = "_DATASET.json"
_SIDECAR = "_SIDECAR.json"

_AnyRecord = TypeVar("_AnyRecord", bound=Data)


class DatasetLocation(Data):
    """Where a dataset lies in its store; `key` is the digest of everything that decides its content."""

    dataset: str = Field(pattern=r"^[a-z0-9][a-z0-9_-]*$")
    key: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]*$")

    @property
    def path(self) -> str:
        """The dataset's directory in the store."""
        return f"{self.dataset}/{self.key}"

    def shard(self, shard: int) -> str:
        """The directory of one shard."""
        return f"{self.path}/shard={shard}"


class PartFile(Data):
    """One part, by its path below the shard's directory."""

    path: str
    rows: int
    bytes: int
    sha256: str


class ShardCommit(Data):
    """What one shard holds: the content of `_COMMIT.json`. `digest` covers the rows only."""

    type: str
    schema_version: int
    shard: int
    attempt: str
    files: tuple[PartFile, ...]
    rows: int
    digest: str


class DatasetCommit(Data):
    """What a dataset holds: the content of `_DATASET.json`. `digest` covers type and rows only."""

    type: str
    schema_version: int
    shards: tuple[ShardCommit, ...]
    rows: int
    digest: str


class DatasetWriter(Generic[Row]):
    """One attempt at one shard, fed row by row; not for use by several threads.

    Leaving the block without `commit` leaves the shard as it was; parts that were full stay unseen until `sweep`.

    Args:
        deterministic: Whether every attempt must produce the same rows; then losing to different content is an error.
    """

    def __init__(
        self, store: Store, location: DatasetLocation, type: DatasetType[Row], shard: int, *, deterministic: bool
    ) -> None:
        self.attempt = secrets.token_hex(8)
        self._store = store
        self._location = location
        self._type = type
        self._shard = shard
        self._deterministic = deterministic
        self._files: list[PartFile] = []
        self._rows = 0
        self._digest = hashlib.sha256()
        self._last_key: Any = None
        self._is_sound = True
        self._part: _OpenPart[Row] | None = None
        self._resources = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._part:
            with suppress(Exception):  # Parquet lets go of the file by writing its end, which goes with the rest
                self._part.writer.close()
            self._resources.__exit__(_Abandoned, _Abandoned(), None)

    def add(self, row: Row) -> None:
        """Add a row.

        Raises:
            InputError: A value of the row cannot be stored. The row is left out and the next may be added.
            StorageError: The disk is full, or the row is out of the declared order.
        """
        plain = self._type.plain(row)
        self._check_order(plain)
        line = dump_plain(plain).encode() + b"\n"
        self._is_sound = False  # until the row is wholly in: half a row must never be committed
        self._digest.update(line)
        self._rows += 1
        part = self._part = self._part or self._open_part()
        part.writer.add(plain, len(line))
        if part.writer.size >= PART_BYTES:
            self._finish_part(part)
        self._is_sound = True

    def commit(self, sidecar: Mapping[str, Any] | None = None) -> ShardCommit:
        """Make the rows the shard's content, or adopt the attempt that was first.

        Raises:
            StorageError: A deterministic stage lost to different content, or writing a row failed before.
        """
        if not self._is_sound:
            raise StorageError(f"{self._store.uri}/{self._path}: writing a row failed, so this attempt cannot commit")
        if self._part:
            self._finish_part(self._part)
        if sidecar is not None:
            with self._store.write(f"{self._path}/attempt={self.attempt}/{_SIDECAR}") as file:
                file.write(canonical_json(sidecar).encode())
        mine = ShardCommit(
            type=self._type.name,
            schema_version=self._type.version,
            shard=self._shard,
            attempt=self.attempt,
            files=tuple(self._files),
            rows=self._rows,
            digest=self._digest.hexdigest(),
        )
        if self._store.create(f"{self._path}/{_COMMIT}", canonical_json(mine).encode()):
            return mine
        return self._adopt(mine)

    @property
    def _path(self) -> str:
        return self._location.shard(self._shard)

    def _adopt(self, mine: ShardCommit) -> ShardCommit:
        winner = shard_commit(self._store, self._location, self._shard)
        if winner is None:
            raise StorageError(f"{self._store.uri}/{self._path}: its commit was deleted while this attempt committed")
        if self._deterministic and (winner.digest, winner.schema_version) != (mine.digest, mine.schema_version):
            raise StorageError(
                f"{self._store.uri}/{self._path}: attempt {winner.attempt} committed {winner.rows} rows "
                f"({winner.digest[:12]}), attempt {mine.attempt} made {mine.rows} rows ({mine.digest[:12]}) from the "
                "same inputs, but the stage is declared deterministic: find what differs between the two attempts"
            )
        return winner

    def _check_order(self, plain: Mapping[str, Any]) -> None:
        if not self._type.ordered_by:
            return
        key = plain[self._type.ordered_by]
        if self._last_key is not None and not key > self._last_key:
            raise StorageError(
                f"{self._type.name}: row {self._rows} has {self._type.ordered_by}={key!r} after {self._last_key!r}; "
                "rows of a shard must strictly ascend by it"
            )
        self._last_key = key

    def _open_part(self) -> _OpenPart[Row]:
        path = f"attempt={self.attempt}/part-{len(self._files):05d}.parquet"
        file = self._resources.enter_context(self._store.write(f"{self._path}/{path}"))
        return _OpenPart(path, file, PartWriter(file, self._type))

    def _finish_part(self, part: _OpenPart[Row]) -> None:
        part.writer.close()
        self._files.append(part.measured())
        self._part = None
        self._resources.close()


class _Abandoned(Exception):
    """Tells a store's open file that it is not to be published."""


@dataclass
class _OpenPart(Generic[Row]):
    path: str
    file: BinaryIO
    writer: PartWriter[Row]

    def measured(self) -> PartFile:
        size = self.file.seek(0, SEEK_END)
        return PartFile(path=self.path, rows=self.writer.rows, bytes=size, sha256=_sha256(self.file))


def write_shard(
    store: Store,
    location: DatasetLocation,
    type: DatasetType[Row],
    shard: int,
    rows: Iterable[Row],
    *,
    deterministic: bool,
    sidecar: Mapping[str, Any] | None = None,
) -> ShardCommit:
    """Write and commit one shard from a stream of rows; see `DatasetWriter`.

    The sidecar is read after the last row, so what produces the rows may fill it as it goes.
    """
    with DatasetWriter(store, location, type, shard, deterministic=deterministic) as writer:
        for row in rows:
            writer.add(row)
        return writer.commit(sidecar)


def shard_commit(store: Store, location: DatasetLocation, shard: int) -> ShardCommit | None:
    """The shard's commit, or None while no attempt has won."""
    return _read_record(store, f"{location.shard(shard)}/{_COMMIT}", ShardCommit)


def read_commit(store: Store, location: DatasetLocation) -> DatasetCommit | None:
    """The dataset's commit, or None before its merge."""
    return _read_record(store, f"{location.path}/{_DATASET}", DatasetCommit)


def merge(store: Store, location: DatasetLocation, type: DatasetType[Row], shards: int) -> DatasetCommit:
    """Commit a dataset whose plan has `shards` shards; a repeated merge returns the first one's commit.

    Raises:
        StorageError: Shards are missing, more are there than planned, or they are of another type or version.
    """
    place = f"{store.uri}/{location.path}"
    found = _committed_shards(store, location)
    if missing := sorted(set(range(shards)) - found):
        raise StorageError(f"{place}: shards {_listed(missing)} of {shards} are not committed; run their jobs again")
    if surplus := sorted(found - set(range(shards))):
        raise StorageError(
            f"{place}: the plan has {shards} shards (0 to {shards - 1}), but shards {_listed(surplus)} are committed "
            "too; delete the dataset and run its stage again"
        )
    commits = []
    for shard in range(shards):
        commit = shard_commit(store, location, shard)
        if commit is None:
            raise StorageError(f"{place}: the commit of shard {shard} was deleted during the merge")
        _check_type(f"{place}/shard={shard}", type, commit)
        commits.append(commit)
    merged = DatasetCommit(
        type=type.name,
        schema_version=type.version,
        shards=tuple(commits),
        rows=sum(commit.rows for commit in commits),
        digest=digest([type.name, type.version, [commit.digest for commit in commits]]),
    )
    store.create(f"{location.path}/{_DATASET}", canonical_json(merged).encode())
    winner = read_commit(store, location)
    if winner != merged:
        raise StorageError(f"{place}: merged before from other shards; delete the dataset and run its stage again")
    return merged


def read_dataset(store: Store, location: DatasetLocation, type: DatasetType[Row]) -> Iterator[Row]:
    """The rows of a committed dataset in order of shards, one row group in memory at a time.

    Raises:
        StorageError: It is not committed, is of another type or version, or a part is missing or damaged.
    """
    commit = read_commit(store, location)
    place = f"{store.uri}/{location.path}"
    if commit is None:
        raise StorageError(f"{place}: not committed; run the stage that makes {location.dataset}")
    _check_type(place, type, commit)
    return _read_shards(store, location, type, commit)


def read_sidecars(store: Store, location: DatasetLocation) -> list[dict[str, Any]]:
    """The sidecars of the attempts that a committed dataset consists of, in order of shards."""
    commit = read_commit(store, location)
    return [read_sidecar(store, location, shard) for shard in (commit.shards if commit else ())]


def read_sidecar(store: Store, location: DatasetLocation, shard: ShardCommit) -> dict[str, Any]:
    """The sidecar of the attempt that won a shard; empty where it left none."""
    data = store.read(f"{location.shard(shard.shard)}/attempt={shard.attempt}/{_SIDECAR}")
    sidecar: dict[str, Any] = json.loads(data) if data else {}
    return sidecar


def sweep(store: Store, location: DatasetLocation) -> int:
    """Remove what lost or killed attempts left; the number of files removed.

    Only attempts of committed shards go: no attempt but the committed one can ever count there, so sweeping is safe
    while jobs run. Attempts of an uncommitted shard may still win and stay.
    """
    removed = 0
    for shard in _committed_shards(store, location):
        winner = shard_commit(store, location, shard)
        if winner:
            path = location.shard(shard)
            removed += store.delete(path, keep=(f"{path}/{_COMMIT}", f"{path}/attempt={winner.attempt}"))
    return removed


def _read_shards(
    store: Store, location: DatasetLocation, type: DatasetType[Row], commit: DatasetCommit
) -> Iterator[Row]:
    for shard in commit.shards:
        for part in shard.files:
            name = f"{location.shard(shard.shard)}/{part.path}"
            with store.open(name) as file:
                if _sha256(file) != part.sha256:
                    raise StorageError(
                        f"{store.uri}/{name}: damaged, its sha256 is not the committed {part.sha256[:12]}…; "
                        f"restore the file, or delete {location.path} and run its stage again"
                    )
                yield from read_part(file, type, f"{store.uri}/{name}")


def _committed_shards(store: Store, location: DatasetLocation) -> set[int]:
    pattern = re.compile(rf"{re.escape(location.path)}/shard=(\d+)/{_COMMIT}")
    return {int(match[1]) for name in store.names(location.path) if (match := pattern.fullmatch(name))}


def _read_record(store: Store, name: str, record: type[_AnyRecord]) -> _AnyRecord | None:
    data = store.read(name)
    if data is None:
        return None
    try:
        return record.model_validate_json(data)
    except ValidationError as error:
        raise StorageError(
            f"{store.uri}/{name}: damaged, or written by another version of CompoWorld: {error}"
        ) from None


def _check_type(place: str, type: DatasetType[Any], commit: ShardCommit | DatasetCommit) -> None:
    if (commit.type, commit.schema_version) != (type.name, type.version):
        raise StorageError(
            f"{place}: holds {commit.type} version {commit.schema_version}, but this program reads {type.name} "
            f"version {type.version}; run the stage again, or read it with the release that wrote it"
        )


def _sha256(file: BinaryIO) -> str:
    """Of the whole file, which is left at its start."""
    file.seek(0)
    found = hashlib.sha256()
    while chunk := file.read(2**20):
        found.update(chunk)
    file.seek(0)
    return found.hexdigest()


def _listed(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:10]))
    return f"{shown} and {len(numbers) - 10} more" if len(numbers) > 10 else shown
