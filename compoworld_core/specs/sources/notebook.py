"""Remembers on disk what a crawl has found, so that one that was stopped goes on where it was.

A notebook lasts as long as its crawl: it is thrown away when that is finished, or a day after it began, since the pages
of a registry go out of date.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

MAX_AGE_S: Final = 24 * 3600.0


class Notebook:
    """JSON documents by name, in a folder."""

    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        self._folder = folder
        begun = folder / "begun"
        try:
            is_old = now() - begun.stat().st_mtime > MAX_AGE_S
        except FileNotFoundError:
            is_old = True
        if is_old:
            self.discard()
        folder.mkdir(parents=True, exist_ok=True)
        if is_old:
            begun.touch()

    def get(self, name: str) -> Any:
        """What was noted under a name, or None."""
        try:
            return json.loads(self._path(name).read_bytes())
        except (FileNotFoundError, ValueError):
            return None

    def put(self, name: str, value: object) -> None:
        """Note something; a reader sees all of it or nothing."""
        path = self._path(name)
        temporary = path.with_suffix(f".{os.getpid()}")
        temporary.write_text(json.dumps(value), encoding="ascii")
        temporary.replace(path)

    def discard(self) -> None:
        """Throw everything away."""
        shutil.rmtree(self._folder, ignore_errors=True)

    def _path(self, name: str) -> Path:
        return self._folder / f"{hashlib.sha256(name.encode()).hexdigest()[:32]}.json"
