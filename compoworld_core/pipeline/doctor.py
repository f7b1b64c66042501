"""Doctor: whether this machine has what CompoWorld needs, checked by trying."""

from __future__ import annotations

import platform
import secrets
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from compoworld_core.errors import CompoWorldError, IsolationError, StorageError
from compoworld_core.services.host import Guest, probe
from compoworld_core.storage import Store, open_store

LEAST_PYTHON: Final = (3, 11)


@dataclass(frozen=True)
class Checkup:
    """The outcome of one check; `found` says what is there, or what is missing and what to do."""

    name: str
    is_fine: bool
    found: str


def examine(store: str | None) -> Iterator[Checkup]:
    """All checks; the store only where one is named."""
    yield Checkup("python", sys.version_info >= LEAST_PYTHON, f"{platform.python_version()} at {sys.executable}")
    yield _check("isolation", _confine)
    if store is not None:
        yield _check("store", lambda: _try_store(open_store(store)))


def _check(name: str, attempt: Callable[[], str]) -> Checkup:
    try:
        return Checkup(name, True, attempt())
    except CompoWorldError as error:
        return Checkup(name, False, str(error))


def _confine() -> str:
    """Start a guest and talk to it: what the kernel offers is known for sure only after trying."""
    if missing := probe():
        raise IsolationError("; ".join(missing))
    with Guest() as guest:
        guest.spawn()
    return "untrusted service code runs confined (Landlock, seccomp, resource limits)"


def _try_store(store: Store) -> str:
    """Whether the store can be written, and decides who creates a name: commits depend on that."""
    name = f"doctor/{secrets.token_hex(8)}"
    try:
        if not store.create(name, b"first") or store.create(name, b"second") or store.read(name) != b"first":
            raise StorageError(f"{store.uri}: lets two writers create one name; use a store with conditional writes")
    finally:
        store.delete(name)
    return f"{store.uri} can be read and written"
