"""Checkpoints in a store: a training run that is killed at any instant goes on from the newest complete one.

A trainer saves to a folder of its machine. The files go to an attempt's own names; one conditional create of
`_COMMIT.json` makes them a checkpoint. What was not committed is never seen. Several machines may each hold part of the
files: every machine uploads its own, and one of them commits what all have listed.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from pydantic import ValidationError

from compoworld_core.data import Data
from compoworld_core.errors import StorageError
from compoworld_core.storage import Store, canonical_json

_COMMIT: Final = "_COMMIT.json"
_PIECE: Final = 8 * 1024 * 1024


class CheckpointFile(Data):
    """One file: its path in the checkpoint's folder, and the blob that has its bytes."""

    path: str
    blob: str
    bytes: int


class Checkpoint(Data):
    """A complete checkpoint.

    Attributes:
        step: Optimiser steps that were made before it.
    """

    step: int
    files: tuple[CheckpointFile, ...]


def upload(store: Store, run: str, step: int, attempt: str, folder: Path) -> tuple[CheckpointFile, ...]:
    """Store the files of a folder under an attempt's own names; they are no checkpoint yet.

    Args:
        store: Where to.
        run: Name of the training run in the store.
        step: Optimiser steps made.
        attempt: A word that no other attempt at this step uses.
        folder: What the trainer saved on this machine.
    """
    files = []
    for path in sorted(item for item in folder.rglob("*") if item.is_file()):
        name = path.relative_to(folder).as_posix()
        blob = f"{_place(run, step)}/attempt={attempt}/{name}"
        with path.open("rb") as source, store.write(blob) as target:
            shutil.copyfileobj(source, target, _PIECE)
        files.append(CheckpointFile(path=name, blob=blob, bytes=path.stat().st_size))
    return tuple(files)


def commit(store: Store, run: str, step: int, files: Sequence[CheckpointFile]) -> Checkpoint:
    """Make uploaded files a checkpoint; where another attempt was faster, its checkpoint is adopted."""
    name = f"{_place(run, step)}/{_COMMIT}"
    store.create(name, canonical_json(Checkpoint(step=step, files=tuple(files))).encode())
    return _read(store, name)


def newest(store: Store, run: str) -> Checkpoint | None:
    """The complete checkpoint with most steps."""
    names = [name for name in store.names(_root(run)) if name.endswith(f"/{_COMMIT}")]
    return _read(store, max(names)) if names else None


def fetch(store: Store, checkpoint: Checkpoint, folder: Path) -> None:
    """Lay a checkpoint's files into a folder, which appears when it is complete.

    Raises:
        StorageError: A file is missing or has another size.
    """
    partial = folder.with_name(f".{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    for file in checkpoint.files:
        target = partial / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        with store.open(file.blob) as source, target.open("wb") as written:
            shutil.copyfileobj(source, written, _PIECE)
        if target.stat().st_size != file.bytes:
            raise StorageError(f"{store.uri}/{file.blob}: {target.stat().st_size} bytes, {file.bytes} were stored")
    shutil.rmtree(folder, ignore_errors=True)
    partial.replace(folder)


def sweep(store: Store, run: str, keep: Checkpoint) -> None:
    """Remove everything of a run but one checkpoint."""
    kept = [f"{_place(run, keep.step)}/{_COMMIT}", *(file.blob for file in keep.files)]
    store.delete(_root(run), keep=kept)


def _read(store: Store, name: str) -> Checkpoint:
    data = store.read(name)
    try:
        return Checkpoint.model_validate_json(data or b"")
    except ValidationError as error:
        raise StorageError(f"{store.uri}/{name}: damaged: {error}") from None


def _root(run: str) -> str:
    return f"training/{run}"


def _place(run: str, step: int) -> str:
    return f"{_root(run)}/step={step:08d}"
