"""A store in a directory: temporary file, fsync, exclusive link, fsync of the directory.

The hard link is the commit: it fails where the name is taken, on every process that shares the file system, and it
shows either nothing or the whole, durable file. Temporary files start with a dot, lie beside their target (a link
cannot cross file systems) and are never listed.
"""

from __future__ import annotations

import errno
import fcntl
import io
import os
import secrets
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

from compoworld_core.errors import InputError, StorageError
from compoworld_core.storage.store import checked_name, is_below

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOTDIR, errno.EEXIST, errno.EOPNOTSUPP}


@contextmanager
def explained(place: str) -> Iterator[None]:
    """Turn what the operating system refuses into errors that say what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in _FULL:
            raise StorageError(
                f"{place}: no room to write ({error.strerror}). Nothing committed is lost: "
                "free space or raise the quota there, then run again"
            ) from error
        if error.errno in _REFUSED:
            raise InputError(
                f"{place}: refused ({error.strerror}). Use a directory that this user may write, "
                "on a file system with hard links"
            ) from error
        raise


class GuardedFile(io.FileIO):
    """A raw file whose writes fail with an explained error, whoever does the writing."""

    def __init__(self, file: str | int, mode: str, place: str) -> None:
        super().__init__(file, mode)
        self._place = place

    def write(self, data: Any) -> int:
        """Write as `io.FileIO` does."""
        with explained(self._place):
            return super().write(data)


class FileStore:
    """A store in a local or shared directory, which is made on the first write."""

    def __init__(self, root: Path) -> None:
        self.root = root.expanduser().absolute()
        self.uri = self.root.as_uri()

    def read(self, name: str) -> bytes | None:
        """See `Store.read`."""
        with explained(str(self._path(name))), suppress(FileNotFoundError):
            return self._path(name).read_bytes()
        return None

    def open(self, name: str) -> BinaryIO:
        """See `Store.open`."""
        path = self._path(name)
        try:
            with explained(str(path)):
                return path.open("rb")
        except FileNotFoundError:
            raise StorageError(f"{path}: missing") from None

    @contextmanager
    def write(self, name: str) -> Iterator[BinaryIO]:
        """See `Store.write`."""
        path = self._path(name)
        with _temporary(path) as (file, temporary):
            yield file
            with explained(str(path)):
                _sync(file)
                try:
                    os.link(temporary, path)
                except FileExistsError:
                    raise StorageError(f"{path}: exists already; every blob is written once") from None
                except FileNotFoundError:
                    raise StorageError(f"{path}: its directory was removed while it was written") from None
                _sync_directory(path.parent)

    def create(self, name: str, data: bytes) -> bool:
        """See `Store.create`."""
        path = self._path(name)
        with _temporary(path) as (file, temporary), explained(str(path)):
            file.write(data)
            _sync(file)
            try:
                os.link(temporary, path)
            except FileExistsError:
                return False
            except FileNotFoundError:
                if path.exists():  # created by another, whose janitor took the temporary file for a leftover
                    return False
                raise StorageError(f"{path}: its directory was removed while it was written") from None
            _sync_directory(path.parent)
        return True

    def replace_if(self, name: str, data: bytes, expected: bytes | None) -> bool:
        """See `Store.replace_if`."""
        path = self._path(name)
        with explained(str(path)):
            _make_directory(path.parent)
            lock = path.with_name(f".{path.name}.lock").open("ab")
        with lock, explained(str(path)):
            fcntl.flock(lock, fcntl.LOCK_EX)
            if self.read(name) != expected:
                return False
            with _temporary(path) as (file, temporary):
                file.write(data)
                _sync(file)
                os.replace(temporary, path)
                _sync_directory(path.parent)
        return True

    def exists(self, name: str) -> bool:
        """See `Store.exists`."""
        return self._path(name).is_file()

    def names(self, prefix: str = "") -> Iterator[str]:
        """See `Store.names`."""
        found = []
        for directory, subdirectories, files in os.walk(self._path(prefix) if prefix else self.root):
            subdirectories[:] = [name for name in subdirectories if not name.startswith(".")]
            base = Path(directory).relative_to(self.root)
            found += [(base / name).as_posix() for name in files if not name.startswith(".")]
        yield from sorted(found)

    def delete(self, prefix: str, keep: Collection[str] = ()) -> int:
        """See `Store.delete`."""
        path = self._path(prefix)
        removed = 0
        with explained(str(path)):
            if path.is_file():
                path.unlink(missing_ok=True)
                return 1
            for directory, _, files in os.walk(path, topdown=False):
                for file in (Path(directory, name) for name in files):
                    if not is_below(file.relative_to(self.root).as_posix(), keep):
                        file.unlink(missing_ok=True)
                        removed += 1
                with suppress(OSError):  # not empty
                    os.rmdir(directory)
        return removed

    def _path(self, name: str) -> Path:
        return self.root / checked_name(name)


@contextmanager
def _temporary(path: Path) -> Iterator[tuple[BinaryIO, Path]]:
    """A new hidden file beside `path`; gone when the block ends, so link or rename it before."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with explained(str(path)):
        _make_directory(path.parent)
        raw = GuardedFile(str(temporary), "x+b", str(path))
    file = io.BufferedRandom(raw)
    try:
        yield file, temporary
    finally:
        with suppress(StorageError):  # a full disk has been reported; closing only flushes into it again
            file.close()
        temporary.unlink(missing_ok=True)


def _sync(file: BinaryIO) -> None:
    file.flush()
    os.fsync(file.fileno())


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _make_directory(path: Path) -> None:
    """Make a directory and its parents durable, not only visible."""
    if path.is_dir():
        return
    _make_directory(path.parent)
    path.mkdir(exist_ok=True)
    _sync_directory(path.parent)
