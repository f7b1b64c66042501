"""The datasets of this room: trained models, file by file."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from compoworld_core.data import Data
from compoworld_core.errors import StorageError
from compoworld_core.storage import DatasetType, Store

_PIECE: Final = 8 * 1024 * 1024


class ModelFile(Data):
    """A file of a trained model's folder; its bytes lie in the store under their digest.

    Attributes:
        path: In the folder: `model.safetensors`, `tokenizer.json`, `training_metrics.parquet` …
    """

    path: str
    sha256: str
    bytes: int

    @property
    def blob(self) -> str:
        """Name of the bytes in the store."""
        return f"models/{self.sha256[:2]}/{self.sha256}"


BASE: Final = "base"
"""Folder of a fine-tuned model that has the model which it started from, where that was made on the spot."""

SFT_MODELS = DatasetType("sft_models", 1, ModelFile)
GRPO_MODELS = DatasetType("grpo_models", 1, ModelFile)


def keep_model(store: Store, folder: Path) -> Iterator[ModelFile]:
    """Store a model's files, and tell which they are."""
    for path in sorted(item for item in folder.rglob("*") if item.is_file()):
        with path.open("rb") as source:
            sha256 = hashlib.file_digest(source, "sha256").hexdigest()
        file = ModelFile(path=path.relative_to(folder).as_posix(), sha256=sha256, bytes=path.stat().st_size)
        if not store.exists(file.blob):
            with path.open("rb") as source, store.write(file.blob) as target:
                shutil.copyfileobj(source, target, _PIECE)
        yield file


def base_files(files: Iterable[ModelFile]) -> Iterator[ModelFile]:
    """The files of the model that a fine-tuned one started from, as those of a model by itself."""
    for file in files:
        if file.path.startswith(f"{BASE}/"):
            yield ModelFile(path=file.path.removeprefix(f"{BASE}/"), sha256=file.sha256, bytes=file.bytes)


def lay_out_model(store: Store, files: Iterable[ModelFile], folder: Path) -> Path:
    """Lay a model's files into a folder from which it can be loaded and served.

    Raises:
        StorageError: A file is not there, or not what was stored.
    """
    for file in files:
        target = folder / file.path
        target.parent.mkdir(parents=True, exist_ok=True)
        with store.open(file.blob) as source, target.open("wb") as written:
            shutil.copyfileobj(source, written, _PIECE)
        with target.open("rb") as written:
            if hashlib.file_digest(written, "sha256").hexdigest() != file.sha256:
                raise StorageError(f"{store.uri}/{file.blob}: damaged, its digest is another")
    return folder
