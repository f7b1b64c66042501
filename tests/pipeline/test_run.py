"""The page on top of a store is the latest run's, whatever else is made there."""

from __future__ import annotations

from pathlib import Path

import pytest

from compoworld_core.pipeline.run import DatasetRecord, RunRecord, Totals, explain_failure, own_page, publish_report
from compoworld_core.pipeline.work.report import PAGES, REPORT, Page
from compoworld_core.storage import DatasetLocation, Store, canonical_json, merge, move_ref, open_store, read_ref
from compoworld_core.storage.commit import DatasetWriter

TOTALS = Totals(
    specs=0, rejections=0, services=0, synthesised=0, tools={}, attempts=0, tasks=0, trajectories=0, successes=0
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path)


def _page(store: Store, text: str) -> DatasetLocation:
    """A committed page."""
    location = DatasetLocation(dataset=PAGES.name, key=f"key-{text}")
    with DatasetWriter(store, location, PAGES, 0, deterministic=True) as writer:
        writer.add(Page(name=REPORT, html=text))
        writer.commit({})
    merge(store, location, PAGES, 1)
    return location


def _record(store: Store, location: DatasetLocation, *failed: str) -> RunRecord:
    datasets = {PAGES.name: DatasetRecord(key=location.key, rows=1, digest=location.key)}
    record = RunRecord(version="0", datasets=datasets, totals=TOTALS, failed_gates=failed)
    store.create(f"runs/{record.id}.json", canonical_json(record).encode())
    return record


def _make_latest(store: Store, location: DatasetLocation) -> None:
    assert move_ref(store, "latest", _record(store, location).id, expected=read_ref(store, "latest"))


def test_a_page_of_no_run_lies_beside_its_dataset_only(store: Store, tmp_path: Path) -> None:
    location = _page(store, "alone")

    assert publish_report(store, location) == own_page(store, location)
    assert (tmp_path / location.path / REPORT).read_text() == "alone"
    assert not (tmp_path / REPORT).exists()


def test_the_page_on_top_follows_the_latest_run(store: Store, tmp_path: Path) -> None:
    first, second, other = (_page(store, text) for text in ("first", "second", "other"))
    top = (tmp_path / REPORT).as_uri()

    for latest in (first, second):
        _make_latest(store, latest)
        assert publish_report(store, latest) == top
        assert publish_report(store, other) == own_page(store, other)
        assert f"key-{(tmp_path / REPORT).read_text()}" == latest.key


def test_a_latest_run_of_another_version_keeps_its_page(store: Store, tmp_path: Path) -> None:
    (tmp_path / REPORT).write_text("old")
    store.create("runs/run_old.json", b'{"unknown": 1}')
    assert move_ref(store, "latest", "run_old", expected=None)
    location = _page(store, "new")

    assert publish_report(store, location) == own_page(store, location)
    assert (tmp_path / REPORT).read_text() == "old"


def test_a_failed_gate_is_told_with_what_holds_now(store: Store) -> None:
    location = _page(store, "poor")
    record = _record(store, location, "gates.min_tasks: 1 task passed, 9 wanted")

    told = explain_failure(store, record, "file:///page")

    assert "gate failed: gates.min_tasks: 1 task passed, 9 wanted" in told
    assert "there is no latest run yet" in told
    assert "file:///page" in told
