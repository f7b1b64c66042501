"""Code digests: a stage is made again when, and only when, a source that can decide its content has changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Final

import compoworld_core
from compoworld_core.storage import digest, digest_bytes

BELOW: Final[Mapping[str, tuple[str, ...]]] = {
    "specs": (),
    "llm": (),
    "services": ("specs", "llm"),
    "library": ("services",),
    "synthesis": ("services",),
    "worlds": ("services",),
    "tasks": ("worlds",),
    "rollouts": ("tasks",),
    "training": ("rollouts",),
    "evaluation": ("rollouts",),
    "viewer": ("rollouts", "synthesis"),
}
"""Rooms and the ones right below; `data`, `errors` and `storage` are below all."""

_ROOT: Final = Path(compoworld_core.__file__).parent
_EVERYWHERE: Final = ("data.py", "errors.py", "storage")


@cache
def code_digest(rooms: tuple[str, ...], module: str) -> str:
    """Digest of the files of some rooms and of all below them, and of the module that holds the stage's function.

    Not only Python files count: prompts, templates and bundled data are sources too.
    """
    files = {f"/{Path(module).name}": digest_bytes(Path(module).read_bytes())}
    for place in [*_EVERYWHERE, *sorted(_and_below(rooms))]:
        for path in _files(_ROOT / place):
            files[path.relative_to(_ROOT).as_posix()] = digest_bytes(path.read_bytes())
    return digest(files)


def _and_below(rooms: Iterable[str]) -> set[str]:
    found = set(rooms)
    for room in tuple(found):
        found |= _and_below(BELOW[room])
    return found


def _files(place: Path) -> Iterator[Path]:
    if place.is_file():
        yield place
        return
    for path in place.rglob("*"):
        if path.is_file() and "__pycache__" not in path.parts and not path.name.startswith("."):
            yield path
