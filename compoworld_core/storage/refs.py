"""Refs: named pointers such as `latest` that move only from where the mover believes them to be."""

from __future__ import annotations

from compoworld_core.storage.store import Store


def read_ref(store: Store, name: str) -> str | None:
    """What the ref points to, or None where it does not exist."""
    data = store.read(f"refs/{name}")
    return None if data is None else data.decode()


def move_ref(store: Store, name: str, target: str, *, expected: str | None) -> bool:
    """Point a ref to `target` if it still points to `expected` (None: it does not exist yet).

    Returns:
        Whether the ref points to `target` now; False means that somebody else moved it first.
    """
    before = None if expected is None else expected.encode()
    return store.replace_if(f"refs/{name}", target.encode(), before) or read_ref(store, name) == target
