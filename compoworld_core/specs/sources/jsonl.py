"""Local files with one server, `tools/list` result or JSON-RPC response per line, plain or gzipped.

Lines are read one at a time and none longer than a limit, so memory is bounded by the longest line. A line that cannot
be read is rejected under its file and number, and the others go on.
"""

from __future__ import annotations

import gzip
import hashlib
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from compoworld_core.errors import InputError
from compoworld_core.specs.model import Rejection
from compoworld_core.specs.sources.source import RawServer

MAX_LINE: Final = 32 * 1024 * 1024
"""Longest line that is read, in bytes."""
_GZIP_MAGIC: Final = b"\x1f\x8b"


class JsonlSource:
    """A .jsonl or .jsonl.gz file."""

    def __init__(self, path: Path, max_line: int = MAX_LINE) -> None:
        self._path = path
        self._max_line = max_line
        self._is_gzipped = _looks_gzipped(path)

    def servers(self) -> Iterator[RawServer | Rejection]:
        """One server or rejection per line that is not blank."""
        with gzip.open(self._path, "rb") if self._is_gzipped else self._path.open("rb") as file:
            number = 0
            while True:
                origin = f"{self._path.name}:{number + 1}"
                try:
                    line, is_whole = self._next_line(file)
                except (OSError, EOFError, zlib.error) as error:
                    if number == 0:
                        raise InputError(f"{self._path}: cannot be read: {error}") from error
                    yield _reject(origin, "damaged_file", f"nothing from here on can be read: {error}")
                    return
                number += 1
                if not line:
                    return
                if not is_whole:
                    yield _reject(origin, "line_too_long", f"the line is longer than {self._max_line} bytes")
                elif line.strip():
                    yield _parse(line, origin)

    def fingerprint(self) -> str:
        """The file's digest."""
        with self._path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    def _next_line(self, file: BinaryIO | gzip.GzipFile) -> tuple[bytes, bool]:
        """The next line, and whether it was short enough to be read whole; the rest of a longer one is skipped."""
        line = file.readline(self._max_line + 1)
        if len(line) <= self._max_line or line.endswith(b"\n"):
            return line, True
        while rest := file.readline(1024 * 1024):
            if rest.endswith(b"\n"):
                break
        return line, False


def _looks_gzipped(path: Path) -> bool:
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise InputError(f"{path}: is not a regular file, and it has to be read more than once")
    try:
        with path.open("rb") as file:
            is_gzipped = file.read(2) == _GZIP_MAGIC
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file") from None
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    if path.suffix == ".gz" and not is_gzipped:
        raise InputError(f"{path}: is named .gz but is not gzip; rename it, or compress it again")
    return is_gzipped


def _parse(line: bytes, origin: str) -> RawServer | Rejection:
    try:
        return RawServer(origin, json.loads(line.decode("utf-8-sig")))
    except UnicodeDecodeError as error:
        return _reject(origin, "not_utf8", f"byte {error.start + 1} is not UTF-8")
    except RecursionError:
        return _reject(origin, "too_deep", "objects and lists are nested too deeply")
    except ValueError as error:
        return _reject(origin, "not_json", f"the line is not JSON: {error}")


def _reject(origin: str, reason: str, detail: str) -> Rejection:
    return Rejection(subject="server", origin=origin, reason=reason, detail=detail)
