"""A store is a flat set of named, immutable blobs; it offers the two atomic steps that commits are made of.

`create` lets exactly one of many writers win a name, `replace_if` moves a pointer only from the value that the mover
saw. Both hold across processes and machines, on a file system and on S3. A blob that is still being written is
invisible under every operation, so a killed writer leaves nothing that a reader could take for data.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import BinaryIO, Protocol
from urllib.parse import unquote, urlsplit

from compoworld_core.errors import InputError


class Store(Protocol):
    """Blobs under `/`-separated relative names. Safe to share between threads."""

    uri: str

    def read(self, name: str) -> bytes | None:
        """A small blob's bytes, or None where there is no such blob."""

    def open(self, name: str) -> BinaryIO:
        """A seekable file over the whole blob, to be closed by the caller.

        Raises:
            StorageError: There is no such blob.
        """

    def write(self, name: str) -> AbstractContextManager[BinaryIO]:
        """A new seekable file that becomes the blob when the block ends well, and nothing otherwise.

        Raises:
            StorageError: The disk is full. On a file system also: the name is taken.
        """

    def create(self, name: str, data: bytes) -> bool:
        """Store a small blob unless the name is taken; whether this call stored it.

        Where an answer of the store was lost and the request repeated, False may be told to the very caller that
        won: whoever must know reads the blob and looks for its own mark.
        """

    def replace_if(self, name: str, data: bytes, expected: bytes | None) -> bool:
        """Replace a blob that still holds `expected` (None: that does not exist yet); whether this call did."""

    def exists(self, name: str) -> bool:
        """Whether the blob is there."""

    def names(self, prefix: str = "") -> Iterator[str]:
        """Names of all blobs below the directory `prefix`, sorted."""

    def delete(self, prefix: str, keep: Collection[str] = ()) -> int:
        """Remove the blob `prefix` and all below it, with what killed writers left there; the number removed.

        Blobs named in `keep`, or below a directory named there, stay.
        """


def open_store(uri: str | Path) -> Store:
    """Open `s3://bucket/prefix`, `file:///path` or a plain path.

    S3 takes endpoint, region and credentials from the standard AWS environment (`AWS_ENDPOINT_URL`, `AWS_REGION`,
    `AWS_ACCESS_KEY_ID` …), and is asked once whether the bucket is there.

    Raises:
        InputError: The URI is of no known form, or the bucket is missing or denied.
        TransientError: The endpoint does not answer.
    """
    from compoworld_core.storage.files import FileStore

    text = str(uri)
    if text.strip() in ("", "file:", "file://") or "\0" in text or "%00" in text:
        raise InputError(f"{text!r}: names no directory; use s3://bucket/prefix, file:///absolute/path or a path")
    if "://" not in text:
        return FileStore(Path(text))
    parts = urlsplit(text)
    if parts.scheme == "file" and parts.netloc in ("", "localhost"):
        return FileStore(Path(unquote(parts.path)))
    if parts.scheme == "s3" and parts.netloc:
        from compoworld_core.storage.s3 import open_s3

        return open_s3(parts.netloc, parts.path.strip("/"))
    raise InputError(f"{text}: not a store; use s3://bucket/prefix, file:///absolute/path or a path")


def is_below(name: str, directories: Collection[str]) -> bool:
    """Whether the name is one of the given or lies below one."""
    return any(name == directory or name.startswith(f"{directory}/") for directory in directories)


def checked_name(name: str) -> str:
    """The name itself if it is relative and stays inside the store.

    Raises:
        InputError: A step is empty or starts with a dot.
    """
    if any(not step or step.startswith(".") for step in name.split("/")):
        raise InputError(f"{name!r}: not a name in a store; use relative names without empty or dotted steps")
    return name
