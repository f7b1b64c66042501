"""Checkpoints are complete or not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compoworld_core.errors import StorageError
from compoworld_core.storage import Store, open_store
from compoworld_core.training.checkpoints import Checkpoint, commit, fetch, newest, sweep, upload
from compoworld_core.training.config import Layout


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path / "store")


def saved(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def committed(store: Store, step: int, folder: Path, attempt: str = "a") -> Checkpoint:
    return commit(store, "run", step, upload(store, "run", step, attempt, folder))


def test_the_newest_complete_checkpoint_comes_back_as_it_was(store: Store, tmp_path: Path) -> None:
    committed(store, 5, saved(tmp_path / "5", model="five"))
    committed(store, 10, saved(tmp_path / "10", model="ten", global_step10__rank0="optimizer"))
    upload(store, "run", 15, "killed", saved(tmp_path / "15", model="half"))

    found = newest(store, "run")

    assert found is not None
    fetch(store, found, tmp_path / "back")
    assert found.step == 10
    assert (tmp_path / "back" / "model").read_text() == "ten"
    assert (tmp_path / "back" / "global_step10" / "rank0").read_text() == "optimizer"


def test_the_loser_of_a_race_adopts_the_winner(store: Store, tmp_path: Path) -> None:
    winner = committed(store, 5, saved(tmp_path / "w", model="winner"), "w")

    assert committed(store, 5, saved(tmp_path / "l", model="loser"), "l") == winner


def test_parts_of_several_machines_make_one_checkpoint(store: Store, tmp_path: Path) -> None:
    parts = [
        upload(store, "run", 3, f"a{node}", saved(tmp_path / f"{node}", **{f"rank{node}": "x"})) for node in (0, 1)
    ]

    checkpoint = commit(store, "run", 3, [file for part in parts for file in part])

    assert [file.path for file in checkpoint.files] == ["rank0", "rank1"]


def test_a_file_that_lost_bytes_is_refused_and_nothing_appears(store: Store, tmp_path: Path) -> None:
    checkpoint = committed(store, 5, saved(tmp_path / "5", model="five"))
    (tmp_path / "store" / checkpoint.files[0].blob).write_text("f")

    with pytest.raises(StorageError, match="1 bytes, 4 were stored"):
        fetch(store, checkpoint, tmp_path / "back")
    assert not (tmp_path / "back").exists()


def test_sweeping_keeps_one_checkpoint_only(store: Store, tmp_path: Path) -> None:
    committed(store, 5, saved(tmp_path / "5", model="five"))
    last = committed(store, 10, saved(tmp_path / "10", model="ten"))

    sweep(store, "run", last)

    assert newest(store, "run") == last
    assert not list(store.names("training/run/step=00000005"))


def test_a_run_without_checkpoints_has_none(store: Store) -> None:
    assert newest(store, "run") is None


@pytest.mark.parametrize(
    ("begun", "goes_on", "same"),
    [
        ({"zero_stage": 1}, {"zero_stage": 3}, False),
        ({"zero_stage": 3, "processes_per_node": 2}, {"zero_stage": 3, "processes_per_node": 4}, False),
        ({"zero_stage": 3, "processes_per_node": 2}, {"zero_stage": 3, "nodes": 2, "save_every": 5}, True),
        ({"processes_per_node": 2}, {}, True),
    ],
    ids=["another stage", "other processes", "as many processes", "nothing is divided"],
)
def test_a_run_goes_on_from_checkpoints_that_it_can_load(
    begun: dict[str, Any], goes_on: dict[str, Any], same: bool
) -> None:
    assert (Layout(**begun).checkpoints_of("run") == Layout(**goes_on).checkpoints_of("run")) is same
