"""What every store promises, on a directory and on S3 alike."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from compoworld_core.errors import InputError, StorageError
from compoworld_core.storage import Store, move_ref, open_store, read_ref

RACERS = 8


def race(racer: Callable[[int], bool]) -> list[bool]:
    """Run eight racers that start together."""
    barrier = Barrier(RACERS)

    def run(number: int) -> bool:
        barrier.wait()
        return racer(number)

    with ThreadPoolExecutor(RACERS) as pool:
        return list(pool.map(run, range(RACERS)))


def test_written_blob_reads_back_whole_and_seekable(store: Store) -> None:
    with store.write("a/b/blob") as file:
        file.write(b"x" * 10_000_000)
        file.write(b"end")

    with store.open("a/b/blob") as found:
        found.seek(10_000_000)
        assert found.read() == b"end"
    assert store.exists("a/b/blob")


def test_blob_is_invisible_until_its_block_ends(store: Store) -> None:
    with store.write("a/blob") as file:
        file.write(b"half")
        file.flush()
        assert not store.exists("a/blob")
        assert store.read("a/blob") is None
        assert list(store.names()) == []

    assert store.read("a/blob") == b"half"


def test_failed_block_leaves_nothing(store: Store) -> None:
    def fail_midway() -> None:
        with store.write("a/blob") as file:
            file.write(b"half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_midway()

    assert list(store.names()) == []
    assert store.read("a/blob") is None


def test_missing_blob_reads_as_none_and_does_not_open(store: Store) -> None:
    assert store.read("no/such") is None
    assert not store.exists("no/such")
    with pytest.raises(StorageError, match="no/such: missing"):
        store.open("no/such")


def test_create_stores_once(store: Store) -> None:
    assert store.create("commit", b"first")
    assert not store.create("commit", b"second")
    assert store.read("commit") == b"first"


def test_one_of_many_racing_creators_wins(store: Store) -> None:
    for round_ in range(5):
        won = race(lambda number, name=f"race/{round_}": store.create(name, str(number).encode()))  # type: ignore[misc]

        assert won.count(True) == 1
        assert store.read(f"race/{round_}") == str(won.index(True)).encode()


def test_replace_needs_the_value_that_is_there(store: Store) -> None:
    assert not store.replace_if("refs/x", b"1", expected=b"0")
    assert store.replace_if("refs/x", b"1", expected=None)
    assert not store.replace_if("refs/x", b"2", expected=None)
    assert not store.replace_if("refs/x", b"2", expected=b"0")
    assert store.replace_if("refs/x", b"2", expected=b"1")
    assert store.read("refs/x") == b"2"


def test_racing_replacements_lose_no_update(store: Store) -> None:
    store.create("counter", b"0")

    def count_once(number: int) -> bool:
        while True:
            current = store.read("counter")
            assert current is not None
            if store.replace_if("counter", str(int(current) + 1).encode(), expected=current):
                return True

    for _ in range(3):
        race(count_once)

    assert store.read("counter") == str(3 * RACERS).encode()


def test_names_are_sorted_and_end_at_the_directory(store: Store) -> None:
    for name in ("d/shard=1/b", "d/shard=10/a", "d/shard=1/a/c", "e"):
        store.create(name, b"")

    assert list(store.names()) == ["d/shard=1/a/c", "d/shard=1/b", "d/shard=10/a", "e"]
    assert list(store.names("d/shard=1")) == ["d/shard=1/a/c", "d/shard=1/b"]
    assert list(store.names("none")) == []


def test_delete_ends_at_the_directory(store: Store) -> None:
    for name in ("d/shard=1/b", "d/shard=10/a", "d/shard=1/a/c", "e"):
        store.create(name, b"")

    assert store.delete("d/shard=1") == 2
    assert store.delete("e") == 1
    assert store.delete("none") == 0

    assert list(store.names()) == ["d/shard=10/a"]


def test_delete_keeps_what_it_is_told_to(store: Store) -> None:
    for name in ("d/a=1/x", "d/a=1/y/z", "d/a=10/x", "d/commit", "d/other"):
        store.create(name, b"")

    assert store.delete("d", keep=("d/a=1", "d/commit")) == 2

    assert list(store.names()) == ["d/a=1/x", "d/a=1/y/z", "d/commit"]


def test_ref_moves_only_from_where_the_mover_saw_it(store: Store) -> None:
    assert read_ref(store, "latest") is None
    assert move_ref(store, "latest", "run-1", expected=None)
    assert not move_ref(store, "latest", "run-2", expected=None)
    assert move_ref(store, "latest", "run-2", expected="run-1")
    assert move_ref(store, "latest", "run-2", expected="run-1"), "it points there already"
    assert read_ref(store, "latest") == "run-2"


@pytest.mark.parametrize("name", ["../x", "/etc/passwd", "a//b", "a/../../b", ".hidden", "a/.tmp", ""])
def test_names_cannot_leave_the_store(store: Store, name: str) -> None:
    with pytest.raises(InputError, match="not a name in a store"):
        store.create(name, b"")


NO_STORES = ["gs://bucket/x", "file://host/path", "s3://", "http://x/y", "", " ", "file://", "a\0b", "file:///a%00b"]


@pytest.mark.parametrize("uri", NO_STORES)
def test_unknown_uri_is_refused_with_the_known_forms(uri: str) -> None:
    with pytest.raises(InputError, match="use s3://bucket/prefix"):
        open_store(uri)


def test_path_and_file_uri_open_the_same_store(tmp_path: Path) -> None:
    root = tmp_path / "run ü 1"
    open_store(root).create("x", b"1")

    assert open_store(root.as_uri()).read("x") == b"1"
    assert open_store(str(root)).uri == root.as_uri()


def test_file_blob_is_written_once(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.create("x", b"1")

    with pytest.raises(StorageError, match="exists already"), store.write("x") as file:
        file.write(b"2")

    assert store.read("x") == b"1"
    assert os.listdir(tmp_path) == ["x"]


def test_store_below_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    with pytest.raises(InputError, match="Use a directory"):
        open_store(tmp_path / "file").create("x", b"")
