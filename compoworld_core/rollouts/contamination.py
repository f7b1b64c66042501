"""Contamination: texts that must not come back in training data, such as the tasks of benchmarks.

A text overlaps with a folder when it has thirteen words in a row that stand in one of its files, in any case and
punctuation; a string of a file that is shorter than that, but no mere phrase, counts when it is there as a whole.
The folder is read once, whatever its size: what is held in memory are the texts that are asked about.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from compoworld_core.errors import InputError
from compoworld_core.rollouts.likeness import runs, words

RUN: Final = 13
"""Words in a row that are no coincidence, as in the decontamination of published language models."""

PHRASE: Final = 8
"""Words of the shortest string that counts as a whole."""

_READ: Final = (".json", ".jsonl", ".md", ".txt")


@dataclass(frozen=True)
class Overlaps:
    """What a folder has in common with some texts.

    Attributes:
        found: The file that each overlapping text overlaps with first, by the text's name.
        digest: Of the names and contents of the files that were read.
        files: Their number.
        unread: Names of files of other kinds.
    """

    found: dict[str, str] = field(default_factory=dict)
    digest: str = ""
    files: int = 0
    unread: tuple[str, ...] = ()


def find_overlaps(texts: Mapping[str, str], folder: Path) -> Overlaps:
    """Look for some texts in a folder of `.txt`, `.md`, `.json` and `.jsonl` files.

    Raises:
        InputError: There is no such folder, it has no such file, or a file can't be read.
    """
    readable, unread = _listed(folder)
    sought = _Sought(texts)
    found: dict[str, str] = {}
    for name in readable:
        for text in _texts(_bytes(folder / name), folder / name):
            for overlapping in sought.within(text):
                found.setdefault(overlapping, name)
    return Overlaps(found, fingerprint(folder), len(readable), unread)


def fingerprint(folder: Path) -> str:
    """Digest of the names and contents of the files of a folder that are read.

    Raises:
        InputError: There is no such folder, it has no such file, or a file can't be read.
    """
    content = hashlib.sha256()
    for name in _listed(folder)[0]:
        content.update(f"{name}\0{hashlib.sha256(_bytes(folder / name)).hexdigest()}\n".encode())
    return content.hexdigest()


def _listed(folder: Path) -> tuple[list[str], tuple[str, ...]]:
    """Names of the files that are read, and of the others."""
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder of texts")
    names = sorted(path.relative_to(folder).as_posix() for path in _files(folder))
    readable = [name for name in names if name.lower().endswith(_READ)]
    if not readable:
        raise InputError(f"{folder}: has no file that ends in {', '.join(_READ)}, so nothing can be compared with it")
    return readable, tuple(name for name in names if name not in set(readable))


class _Sought:
    """The texts that are looked for, by their runs of words."""

    def __init__(self, texts: Mapping[str, str]) -> None:
        self._runs: dict[int, dict[str, list[str]]] = {RUN: {}, PHRASE: {}}
        for name, text in texts.items():
            sequence = words(text)
            for length, known in self._runs.items():
                for run in set(runs(sequence, length)):
                    known.setdefault(run, []).append(name)

    def within(self, text: str) -> set[str]:
        """Names of the texts that overlap with this one."""
        sequence = words(text)
        if len(sequence) >= RUN:
            known = self._runs[RUN]
            return {name for run in runs(sequence, RUN) for name in known.get(run, ())}
        if len(sequence) < PHRASE:
            return set()
        known = self._runs[PHRASE]
        return set.intersection(*(set(known.get(run, ())) for run in runs(sequence, PHRASE)))


def _files(folder: Path) -> Iterator[Path]:
    for where, _, names in os.walk(folder, onerror=_refuse):
        yield from (path for name in names if (path := Path(where, name)).is_file())


def _refuse(error: OSError) -> None:
    raise InputError(f"{error.filename}: cannot be read: {error.strerror}") from error


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error


def _texts(data: bytes, path: Path) -> Iterator[str]:
    """The whole of a text file; of JSON, every string."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: is not UTF-8 text: byte {error.start + 1}") from error
    match path.suffix.lower():
        case ".json":
            yield from strings(_parsed(text, str(path)))
        case ".jsonl":
            for number, line in enumerate(text.split("\n"), 1):
                if line.strip():
                    yield from strings(_parsed(line, f"{path}:{number}"))
        case _:
            yield text


def _parsed(text: str, place: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: is not JSON: {error}") from None


def strings(value: Any) -> Iterator[str]:
    """Every string in a JSON value, names of fields among them, in no order that means anything."""
    ahead = [value]
    while ahead:
        item = ahead.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict | list):
            ahead.extend((*item, *item.values()) if isinstance(item, dict) else item)
