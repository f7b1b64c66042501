"""The commit protocol: who wins, what readers see, what they refuse."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from compoworld_core.errors import InputError, StorageError
from compoworld_core.storage import (
    DatasetLocation,
    DatasetType,
    DatasetWriter,
    Store,
    canonical_json,
    commit,
    merge,
    open_store,
    parts,
    read_commit,
    read_dataset,
    read_sidecars,
    shard_commit,
    sweep,
    write_shard,
)
from tests.storage.rows import HERE, NOTES, PLAIN_NOTES, Note, notes
from tests.storage.test_store import race


def test_merged_dataset_reads_in_order_of_shards(store: Store) -> None:
    write_shard(store, HERE, NOTES, 1, notes(3, "second"), deterministic=True)
    write_shard(store, HERE, NOTES, 0, notes(5, "first"), deterministic=True)

    merged = merge(store, HERE, NOTES, 2)

    assert list(read_dataset(store, HERE, NOTES)) == notes(5, "first") + notes(3, "second")
    assert read_commit(store, HERE) == merged
    assert merged.rows == 8


def test_layout_is_the_documented_one(store: Store) -> None:
    done = write_shard(store, HERE, NOTES, 0, notes(1), deterministic=True, sidecar={"seconds": 1.5})
    merge(store, HERE, NOTES, 1)

    assert sorted(store.names()) == [
        "notes/k1/_DATASET.json",
        "notes/k1/shard=0/_COMMIT.json",
        f"notes/k1/shard=0/attempt={done.attempt}/_SIDECAR.json",
        f"notes/k1/shard=0/attempt={done.attempt}/part-00000.parquet",
    ]


@pytest.mark.parametrize("shards", [0, 1, 2])
def test_empty_tables_commit_and_read(store: Store, shards: int) -> None:
    for shard in range(shards):
        write_shard(store, HERE, NOTES, shard, [], deterministic=True)

    assert merge(store, HERE, NOTES, shards).rows == 0
    assert list(read_dataset(store, HERE, NOTES)) == []


def test_nothing_is_readable_before_the_merge(store: Store) -> None:
    write_shard(store, HERE, NOTES, 0, notes(1), deterministic=True)

    assert read_commit(store, HERE) is None
    with pytest.raises(StorageError, match="notes/k1: not committed; run the stage that makes notes"):
        read_dataset(store, HERE, NOTES)


def test_shard_digest_is_the_sha256_of_its_rows_as_json_lines(store: Store) -> None:
    done = write_shard(store, HERE, NOTES, 0, notes(7), deterministic=True)

    lines = "".join(f"{canonical_json(row)}\n" for row in notes(7))
    assert done.digest == hashlib.sha256(lines.encode()).hexdigest()


def test_digest_covers_content_and_neither_attempts_nor_layout(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    there = DatasetLocation(dataset="notes", key="k2")
    write_shard(store, HERE, NOTES, 0, notes(30), deterministic=True, sidecar={"seconds": 1})
    monkeypatch.setattr(parts, "ROW_GROUP_ROWS", 4)
    monkeypatch.setattr(commit, "PART_BYTES", 200)
    split = write_shard(store, there, NOTES, 0, notes(30), deterministic=True, sidecar={"seconds": 2})

    assert len(split.files) > 3
    assert merge(store, HERE, NOTES, 1).digest == merge(store, there, NOTES, 1).digest
    assert list(read_dataset(store, there, NOTES)) == notes(30)


def test_digest_tells_different_rows_types_and_shards_apart(store: Store) -> None:
    newer = DatasetType("notes", 2, Note)
    digests = set()
    for key, type_, shards in [
        ("a", NOTES, [notes(2)]),
        ("b", NOTES, [notes(2, "other")]),
        ("c", newer, [notes(2)]),
        ("d", NOTES, [notes(2), []]),
        ("e", NOTES, [[], notes(2)]),
    ]:
        for shard, rows in enumerate(shards):
            write_shard(store, DatasetLocation(dataset="n", key=key), type_, shard, rows, deterministic=True)
        digests.add(merge(store, DatasetLocation(dataset="n", key=key), type_, len(shards)).digest)

    assert len(digests) == 5


def test_loser_adopts_the_winner(store: Store) -> None:
    with (
        DatasetWriter(store, HERE, PLAIN_NOTES, 0, deterministic=False) as first,
        DatasetWriter(store, HERE, PLAIN_NOTES, 0, deterministic=False) as second,
    ):
        first.add(Note(id="1", body="by the first"))
        second.add(Note(id="1", body="by the second"))
        won = second.commit()
        adopted = first.commit()

    assert adopted == won
    merge(store, HERE, PLAIN_NOTES, 1)
    assert [row.body for row in read_dataset(store, HERE, PLAIN_NOTES)] == ["by the second"]


def test_racing_committers_agree_on_one_winner(store: Store) -> None:
    attempts: list[str] = []

    def attempt(number: int) -> bool:
        done = write_shard(store, HERE, NOTES, 0, notes(3, f"by {number}"), deterministic=False)
        attempts.append(done.attempt)
        return True

    race(attempt)

    assert len(attempts) == 8
    assert len(set(attempts)) == 1


def test_deterministic_stage_that_repeats_itself_adopts(store: Store) -> None:
    first = write_shard(store, HERE, NOTES, 0, notes(3), deterministic=True)

    assert write_shard(store, HERE, NOTES, 0, notes(3), deterministic=True) == first


def test_differing_content_of_a_deterministic_stage_is_an_error(store: Store) -> None:
    first = write_shard(store, HERE, NOTES, 0, notes(3), deterministic=True)

    with pytest.raises(StorageError, match=rf"attempt {first.attempt} committed 3 rows .* made 2 rows .* declared"):
        write_shard(store, HERE, NOTES, 0, notes(2), deterministic=True)

    assert shard_commit(store, HERE, 0) == first


def test_failing_rows_leave_the_shard_uncommitted(store: Store) -> None:
    def rows() -> Iterator[Note]:
        yield from notes(3)
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_shard(store, HERE, NOTES, 0, rows(), deterministic=True)

    assert shard_commit(store, HERE, 0) is None
    assert list(store.names()) == []


def test_refused_row_is_left_out_and_the_writer_goes_on(store: Store) -> None:
    with DatasetWriter(store, HERE, NOTES, 0, deterministic=True) as writer:
        writer.add(Note(id="1"))
        with pytest.raises(InputError, match="unpaired surrogate"):
            writer.add(Note(id="2", body="\ud800"))
        writer.add(Note(id="3"))
        writer.commit()

    merge(store, HERE, NOTES, 1)
    assert list(read_dataset(store, HERE, NOTES)) == [Note(id="1"), Note(id="3")]


def test_leaving_without_commit_leaves_the_shard_uncommitted(store: Store) -> None:
    with DatasetWriter(store, HERE, NOTES, 0, deterministic=True) as writer:
        writer.add(notes(1)[0])

    assert shard_commit(store, HERE, 0) is None
    assert list(store.names()) == []


def test_merge_names_the_missing_shards(store: Store) -> None:
    write_shard(store, HERE, NOTES, 1, notes(1), deterministic=True)

    with pytest.raises(StorageError, match="shards 0, 2 of 3 are not committed"):
        merge(store, HERE, NOTES, 3)

    assert read_commit(store, HERE) is None


def test_merge_refuses_more_shards_than_planned(store: Store) -> None:
    for shard in range(3):
        write_shard(store, HERE, NOTES, shard, notes(1), deterministic=True)

    with pytest.raises(StorageError, match=r"the plan has 2 shards \(0 to 1\), but shards 2 are committed too"):
        merge(store, HERE, NOTES, 2)


def test_repeated_and_racing_merges_agree(store: Store) -> None:
    write_shard(store, HERE, NOTES, 0, notes(2), deterministic=True)
    merged = merge(store, HERE, NOTES, 1)

    assert race(lambda number: merge(store, HERE, NOTES, 1) == merged) == [True] * 8


def test_other_version_is_refused_with_both_versions(store: Store) -> None:
    write_shard(store, HERE, NOTES, 0, notes(1), deterministic=True)
    merge(store, HERE, NOTES, 1)

    with pytest.raises(StorageError, match="holds notes version 1, but this program reads notes version 2"):
        read_dataset(store, HERE, DatasetType("notes", 2, Note))


def test_shards_of_another_version_do_not_merge(store: Store) -> None:
    write_shard(store, HERE, NOTES, 0, notes(1), deterministic=True)

    with pytest.raises(StorageError, match="shard=0: holds notes version 1"):
        merge(store, HERE, DatasetType("notes", 2, Note), 1)


@pytest.mark.parametrize("damage", ["flipped bit", "cut short", "gone"])
def test_damaged_part_is_named_before_any_of_its_rows_is_read(tmp_path: Path, damage: str) -> None:
    store = open_store(tmp_path)
    write_shard(store, HERE, NOTES, 0, notes(3), deterministic=True)
    merge(store, HERE, NOTES, 1)
    (part,) = tmp_path.rglob("part-00000.parquet")
    data = bytearray(part.read_bytes())
    data[len(data) // 2] ^= 1
    match damage:
        case "flipped bit":
            part.write_bytes(data)
        case "cut short":
            part.write_bytes(data[:-9])
        case _:
            part.unlink()

    with pytest.raises(StorageError, match=r"part-00000\.parquet: (damaged.*run its stage again|missing)"):
        next(read_dataset(store, HERE, NOTES))


def test_damaged_commit_is_named(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    write_shard(store, HERE, NOTES, 0, notes(3), deterministic=True)
    (tmp_path / "notes/k1/shard=0/_COMMIT.json").write_text("{}")

    with pytest.raises(StorageError, match=r"shard=0/_COMMIT\.json: damaged"):
        merge(store, HERE, NOTES, 1)


def test_rows_out_of_the_declared_order_are_refused(store: Store) -> None:
    with pytest.raises(StorageError, match="row 1 has id='a' after 'a'"):
        write_shard(store, HERE, NOTES, 0, [Note(id="a"), Note(id="a")], deterministic=True)


def test_sidecars_of_the_winners_are_read_and_may_grow_while_rows_stream(store: Store) -> None:
    sidecar: dict[str, float] = {}

    def rows() -> Iterator[Note]:
        yield from notes(2)
        sidecar["seconds"] = 2.5

    write_shard(store, HERE, NOTES, 0, rows(), deterministic=True, sidecar=sidecar)
    write_shard(store, HERE, NOTES, 0, notes(2), deterministic=True, sidecar={"seconds": 99})
    write_shard(store, HERE, NOTES, 1, notes(2), deterministic=True)
    merge(store, HERE, NOTES, 2)

    assert read_sidecars(store, HERE) == [{"seconds": 2.5}, {}]


def test_sweep_takes_lost_attempts_and_nothing_committed_or_undecided(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    won = write_shard(store, HERE, NOTES, 0, notes(2), deterministic=True, sidecar={"a": 1})
    write_shard(store, HERE, NOTES, 0, notes(2), deterministic=True, sidecar={"a": 2})
    monkeypatch.setattr(commit, "PART_BYTES", 1)
    with DatasetWriter(store, HERE, NOTES, 1, deterministic=True) as undecided:
        undecided.add(notes(1)[0])

    assert sweep(store, HERE) == 2
    assert sweep(store, HERE) == 0

    assert sorted(store.names()) == [
        "notes/k1/shard=0/_COMMIT.json",
        f"notes/k1/shard=0/attempt={won.attempt}/_SIDECAR.json",
        f"notes/k1/shard=0/attempt={won.attempt}/part-00000.parquet",
        f"notes/k1/shard=1/attempt={undecided.attempt}/part-00000.parquet",
    ]


def test_commit_records_hold_counts_and_checksums_of_the_files(store: Store) -> None:
    done = write_shard(store, HERE, NOTES, 0, notes(2), deterministic=True)

    record = json.loads(store.read("notes/k1/shard=0/_COMMIT.json") or b"")
    data = store.read(f"notes/k1/shard=0/{done.files[0].path}") or b""
    assert record["files"] == [
        {"path": done.files[0].path, "rows": 2, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    ]
