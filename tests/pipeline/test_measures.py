"""A run becomes the latest only if it is not much worse than the one that is, and only from where it was compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compoworld_core.evaluation.trial import EVALUATIONS, Trial
from compoworld_core.pipeline import run as runs
from compoworld_core.pipeline.benchmarking import note_figure, noted_figures
from compoworld_core.pipeline.measures import Measures, drops, measure
from compoworld_core.pipeline.run import Gates, RunRecord, Totals, find_run, record_run
from compoworld_core.pipeline.work.report import PAGES, Page
from compoworld_core.storage import (
    DatasetLocation,
    DatasetType,
    Store,
    merge,
    move_ref,
    open_store,
    read_ref,
    write_shard,
)

GOOD = Measures(
    task_yield=0.9, success_rate=0.8, kill_rate=0.95, scores={"sft": 0.5}, benchmarks={"tau3-banking of sft": 0.3}
)
TOTALS = Totals(
    specs=1, rejections=0, services=1, synthesised=0, tools={}, attempts=10, tasks=9, trajectories=10, successes=8
)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return open_store(tmp_path)


def other(**values: object) -> Measures:
    return Measures.model_validate({**GOOD.model_dump(), **values})


@pytest.mark.parametrize(
    ("now", "told"),
    [
        (GOOD, []),
        (other(task_yield=0.85), []),
        (other(task_yield=0.84), ["the accepted share of the attempts at tasks fell from 0.900 to 0.840"]),
        (other(kill_rate=None), ["the share of held-out slips that rubrics notice was not measured, and it was 0.950"]),
        (other(scores={"sft": 0.4}), ["the score of sft on held-out tasks fell from 0.500 to 0.400"]),
        (other(scores={"grpo": 0.9}), ["the score of sft on held-out tasks was not measured, and it was 0.500"]),
        (
            other(benchmarks={"tau3-banking of sft": 0.2}),
            ["the figure of tau3-banking of sft fell from 0.300 to 0.200"],
        ),
        (other(benchmarks={}), []),
        (other(success_rate=1.0, scores={"sft": 0.6, "grpo": 0.1}), []),
    ],
)
def test_what_fell_too_far_is_told(now: Measures, told: list[str]) -> None:
    assert list(drops(now, GOOD, 0.05)) == told


def test_what_was_not_measured_before_cannot_have_fallen() -> None:
    assert list(drops(GOOD, other(kill_rate=None, scores={}), 0.05)) == []


def _dataset(store: Store, type: DatasetType[Any], rows: list[Any]) -> DatasetLocation:
    location = DatasetLocation(dataset=type.name, key="k")
    write_shard(store, location, type, 0, rows, deterministic=True)
    merge(store, location, type, 1)
    return location


def test_scores_are_of_models_and_count_what_was_scored(store: Store) -> None:
    def trial(model: str, number: int, passed: bool | None) -> Trial:
        score = None if passed is None else float(passed)
        error = "no answer" if passed is None else None
        return Trial(benchmark="held-out", model=model, task="t", trial=number, passed=passed, score=score, error=error)

    trials = [trial("sft", 0, True), trial("sft", 1, False), trial("sft", 2, None), trial("oracle", 0, True)]
    locations = {
        "evaluations": _dataset(store, EVALUATIONS, trials),
        "reports": _dataset(store, PAGES, [Page(name="r", html="", kill_rate=0.75)]),
    }

    found = measure(store, locations, attempts=4, tasks=3, trajectories=0, successes=0)

    assert found == Measures(task_yield=0.75, success_rate=0.0, kill_rate=0.75, scores={"sft": 0.5})


def test_a_run_is_compared_by_the_benchmarks_of_its_own_workflow(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "_count", lambda store, datasets: TOTALS)
    for workflow, value in (("w-1", 0.5), ("w-2", 0.25), ("w-3", 0.5)):
        note_figure(store, workflow, "tau3-banking of sft", value)
        note_figure(store, workflow, "tau3-banking of grpo", 0.5)
        note_figure(store, workflow, "tau3-banking of grpo", 0.1)  # a pod that was tried again: the first one counts

    def record(workflow: str) -> RunRecord:
        return record_run(store, "1", (), Gates(max_drop=0.05), noted_figures(store, workflow))

    first, worse, same = record("w-1"), record("w-2"), record("w-3")

    assert first.measures is not None
    assert first.measures.benchmarks == {"tau3-banking of grpo": 0.5, "tau3-banking of sft": 0.5}
    assert "the figure of tau3-banking of sft fell from 0.500 to 0.250" in worse.failed_gates[0]
    assert find_run(store).id == first.id == same.id
    assert noted_figures(store, "") == {}


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[Measures]:
    """What the next runs come to."""
    coming: list[Measures] = []
    monkeypatch.setattr(runs, "_count", lambda store, datasets: TOTALS)
    monkeypatch.setattr(runs, "measure", lambda *_, **__: coming.pop(0))
    return coming


def test_a_worse_run_is_recorded_and_not_promoted(store: Store, measured: list[Measures]) -> None:
    measured += [GOOD, other(task_yield=0.5), other(task_yield=0.5)]
    first = record_run(store, "1", (), Gates(max_drop=0.05))

    worse = record_run(store, "1", (), Gates(max_drop=0.05))

    assert worse.failed_gates[0].startswith(
        "gates.max_drop: the accepted share of the attempts at tasks fell from 0.900"
    )
    assert first.id in worse.failed_gates[0]
    assert find_run(store).id == first.id
    assert find_run(store, worse.id) == worse
    assert not record_run(store, "1", (), Gates()).failed_gates  # who does not ask is not compared


def test_a_run_that_was_overtaken_is_compared_again(
    store: Store, measured: list[Measures], monkeypatch: pytest.MonkeyPatch
) -> None:
    measured += [GOOD, other(task_yield=0.87), other(task_yield=0.84)]
    record_run(store, "1", (), Gates(max_drop=0.05))
    overtaken: list[str] = []

    def overtake(store: Store, name: str, target: str, *, expected: str | None) -> bool:
        if not overtaken:
            overtaken.append(target)
            monkeypatch.setattr(runs, "move_ref", move_ref)
            record_run(store, "1", (), Gates())
            monkeypatch.setattr(runs, "move_ref", overtake)
        return move_ref(store, name, target, expected=expected)

    monkeypatch.setattr(runs, "move_ref", overtake)
    record = record_run(store, "1", (), Gates(max_drop=0.05))

    assert not record.failed_gates  # 0.87 is fine beside 0.9 and beside 0.84
    assert read_ref(store, "latest") == record.id


def test_a_latest_run_of_another_version_is_not_compared_with(store: Store, measured: list[Measures]) -> None:
    measured += [GOOD]
    store.create("runs/run_old.json", b'{"unknown": 1}')
    assert move_ref(store, "latest", "run_old", expected=None)

    assert not record_run(store, "1", (), Gates(max_drop=0.0)).failed_gates
