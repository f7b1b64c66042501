"""Result files of harnesses, read so that whatever is wrong in them is said with file and field.

A `Found` is a value that knows where it stands. Its methods give a field as the type that is expected there, or raise
an `InputError` such as `out/results.json: simulations[3].reward_info.reward: expected a number, found "high"`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from compoworld_core.errors import InputError
from compoworld_core.evaluation.secrets import Secrets

_MOST_SHOWN: Final = 60


@dataclass(frozen=True)
class Found:
    """A JSON value, its file and its place in there."""

    value: Any
    file: Path
    place: str = ""

    def wrong(self, problem: str) -> InputError:
        """The error that says what is wrong with this value."""
        return InputError(f"{self.file}: {self.place or 'the document'}: {problem}")

    def has(self, name: str) -> bool:
        """Whether it is an object with such a field that is not null."""
        return isinstance(self.value, dict) and self.value.get(name) is not None

    def at(self, name: str) -> Found:
        """A field that has to be there."""
        self._require(dict, "an object")
        inner = Found(self.value.get(name), self.file, f"{self.place}.{name}" if self.place else name)
        if name not in self.value:
            raise inner.wrong("is missing")
        return inner

    def maybe(self, name: str) -> Found | None:
        """A field that may be missing or null."""
        return self.at(name) if self.has(name) else None

    def items(self) -> Iterator[Found]:
        """The items of an array."""
        self._require(list, "an array")
        for index, item in enumerate(self.value):
            yield Found(item, self.file, f"{self.place}[{index}]")

    def fields(self) -> Iterator[tuple[str, Found]]:
        """The fields of an object."""
        self._require(dict, "an object")
        for name in self.value:
            yield name, self.at(name)

    def text(self) -> str:
        """It is text."""
        self._require(str, "text")
        return str(self.value)

    def flag(self) -> bool:
        """It is true or false."""
        self._require(bool, "true or false")
        return bool(self.value)

    def whole(self) -> int:
        """It is a whole number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int):
            raise self._unexpected("a whole number")
        return self.value

    def number(self) -> float:
        """It is a finite number."""
        if isinstance(self.value, bool) or not isinstance(self.value, int | float):
            raise self._unexpected("a number")
        try:
            value = float(self.value)
        except OverflowError:
            value = math.inf
        if not math.isfinite(value):
            raise self._unexpected("a number")
        return value

    def share(self) -> float:
        """It is a number in [0, 1]."""
        value = self.number()
        if not 0 <= value <= 1:
            raise self._unexpected("a number from 0 to 1")
        return value

    def said(self) -> str:
        """What an error says, in whichever form a harness keeps it: its text, its message, or all of it."""
        value = self.value.get("message") or self.value if isinstance(self.value, dict) else self.value
        return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)

    def problem(self, name: str) -> str | None:
        """What a field says went wrong; None where it is missing, null or empty."""
        found = self.maybe(name)
        return None if found is None or not found.value else found.said()

    def _require(self, kind: type, expected: str) -> None:
        if not isinstance(self.value, kind):
            raise self._unexpected(expected)

    def _unexpected(self, expected: str) -> InputError:
        shown = json.dumps(Secrets().strip(self.value), ensure_ascii=False, default=str)
        cut = shown if len(shown) <= _MOST_SHOWN else f"{shown[:_MOST_SHOWN]}…"
        return self.wrong(f"expected {expected}, found {cut}")


def read_json(file: Path) -> Found:
    """A file's JSON document.

    Raises:
        InputError: It can't be read or is no JSON.
    """
    try:
        return Found(json.loads(file.read_bytes()), file)
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"{file}: is not JSON: {error}; a run that was cut short leaves such files") from None


def result_files(folder: Path, pattern: str, harness: str) -> list[Path]:
    """The files in a folder, or below it, that a pattern fits; in the order of their paths.

    Raises:
        InputError: There is none, or no such folder.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder; give the one that {harness} wrote its results to")
    files = sorted(folder.rglob(pattern))
    if not files:
        raise InputError(f"{folder}: has no {pattern}; give the folder that {harness} wrote its results to")
    return files
