"""Killing a writer at any instant loses nothing that was committed and shows nothing that was not.

A forked writer is armed to kill itself with SIGKILL at its n-th call into the interpreter's C functions (which is
where files, sockets and Parquet are reached), so every n is one reproducible instant of the real code.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FrameType
from typing import Any

import pyarrow.parquet as pq
import pytest

from compoworld_core.storage import (
    DatasetLocation,
    Store,
    commit,
    merge,
    move_ref,
    open_store,
    parts,
    read_commit,
    read_dataset,
    read_ref,
    shard_commit,
    sweep,
    write_shard,
)
from tests.storage.rows import HERE, NOTES, notes

BEFORE = DatasetLocation(dataset="notes", key="before")
ROWS = notes(4)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several row groups and parts, so that kills fall between them."""
    monkeypatch.setattr(parts, "ROW_GROUP_ROWS", 1)
    monkeypatch.setattr(commit, "PART_BYTES", 60)
    assert pq  # loaded before the fork: its import is not what is killed


def write_all(uri: str) -> None:
    store = open_store(uri)
    write_shard(store, HERE, NOTES, 0, ROWS, deterministic=True, sidecar={"seconds": 1})
    merge(store, HERE, NOTES, 1)
    move_ref(store, "latest", "here", expected="before")


def run_killed(work: Callable[[], None], instant: int) -> list[str]:
    """Do the work in a fork that dies at the given instant; the names of all calls made if it got to its end."""
    receiver, sender = os.pipe()
    child = os.fork()
    if child == 0:
        calls: list[str] = []

        def tick(frame: FrameType, event: str, argument: Any) -> None:
            if event == "c_call":
                if len(calls) == instant:
                    os.kill(os.getpid(), signal.SIGKILL)
                calls.append(argument.__name__)

        try:
            sys.setprofile(tick)
            work()
            sys.setprofile(None)
            os.write(sender, " ".join(calls).encode())
        except BaseException:
            traceback.print_exc()
        os._exit(0)
    os.close(sender)
    with os.fdopen(receiver, "rb") as pipe:
        called = pipe.read().decode().split()
    _, status = os.waitpid(child, 0)
    assert called or os.WIFSIGNALED(status), "the writer failed"
    return called


def check_nothing_lost_or_invented(store: Store) -> None:
    """The promise, as any reader can see it at any time."""
    assert list(read_dataset(store, BEFORE, NOTES)) == notes(2)
    assert read_ref(store, "latest") in ("before", "here")
    done = shard_commit(store, HERE, 0)
    if done:
        assert sum(file.rows for file in done.files) == len(ROWS)
    if read_commit(store, HERE):
        assert list(read_dataset(store, HERE, NOTES)) == ROWS
    if read_ref(store, "latest") == "here":
        assert read_commit(store, HERE)


def check_every_kill(uri: Callable[[int], str], instants: Callable[[list[str]], Iterable[int]]) -> None:
    """Kill a fresh store's writer at each chosen instant, look, then run the job again and compare."""
    whole = fresh(uri(-1))
    write_all(uri(-1))  # fills the caches, which would otherwise shift the instants of later runs
    fresh(uri(-2))
    calls = run_killed(lambda: write_all(uri(-2)), instant=-1)
    expected = read_commit(whole, HERE)
    assert expected
    seen = set()
    for instant in instants(calls):
        store = fresh(uri(instant))
        run_killed(lambda instant=instant: write_all(uri(instant)), instant)  # type: ignore[misc]

        check_nothing_lost_or_invented(store)
        seen.add((shard_commit(store, HERE, 0) is not None, read_commit(store, HERE) is not None))
        write_all(uri(instant))
        again = read_commit(store, HERE)
        assert again
        assert again.digest == expected.digest
        assert list(read_dataset(store, HERE, NOTES)) == ROWS
        assert read_ref(store, "latest") == "here"
        check_sweep_leaves_what_counts(store)
    assert seen == {(False, False), (True, False), (True, True)}, "kills fell before, between and after the commits"


def check_sweep_leaves_what_counts(store: Store) -> None:
    sweep(store, HERE)
    done = shard_commit(store, HERE, 0)
    assert done
    committed = [*(file.path for file in done.files), f"attempt={done.attempt}/_SIDECAR.json", "_COMMIT.json"]
    assert set(store.names(HERE.shard(0))) == {f"{HERE.shard(0)}/{path}" for path in committed}
    assert list(read_dataset(store, HERE, NOTES)) == ROWS


def fresh(uri: str) -> Store:
    store = open_store(uri)
    write_shard(store, BEFORE, NOTES, 0, notes(2), deterministic=True)
    merge(store, BEFORE, NOTES, 1)
    move_ref(store, "latest", "before", expected=None)
    return store


def around_each_change_of_a_file(calls: list[str]) -> list[int]:
    """Before and after every call that changes a file, and before what follows."""
    changes = {"open", "write", "flush", "fsync", "link", "unlink", "replace", "mkdir"}
    changing = [number for number, name in enumerate(calls) if name in changes]
    return sorted({number + step for number in changing for step in (0, 1)})


def test_kill_around_every_change_of_a_file(tmp_path: Path) -> None:
    check_every_kill(lambda instant: str(tmp_path / str(instant)), around_each_change_of_a_file)

    assert not list(tmp_path.glob("*/notes/k1/shard=0/**/.*")), "half-written files were swept too"


@pytest.mark.slow
def test_kill_at_every_instant(tmp_path: Path) -> None:
    check_every_kill(lambda instant: str(tmp_path / str(instant)), lambda calls: range(len(calls)))


@pytest.mark.parametrize("store_uri", [pytest.param("s3", marks=pytest.mark.components)], indirect=True)
def test_kill_at_many_instants_on_s3(store_uri: str) -> None:
    check_every_kill(lambda instant: f"{store_uri}/{instant}", lambda calls: range(0, len(calls), len(calls) // 40))
