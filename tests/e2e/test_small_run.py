"""A whole run, small: from bundled specs to verified trajectories, a report and training data."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from compoworld_core.cli import run_cli
from compoworld_core.pipeline.run import find_run
from compoworld_core.services.datasets import SERVICES
from compoworld_core.specs.datasets import SPECS
from compoworld_core.storage import open_store, read_dataset
from compoworld_core.synthesis.datasets import OMISSIONS, VERIFICATIONS
from tests.storage.seaweedfs import seaweedfs

__all__ = ["seaweedfs"]

CONFIG = """
crawl:
  limit: 12
tasks:
  count: 3
  profile: easy
  held_out_services: 0
  shares: {sft: 1}
gates:
  min_tasks: 3
  min_trajectories: 3
"""

Run = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("config") / "small.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture
def run(config: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def run(*arguments: str, expected: int = 0) -> dict[str, Any]:
        code = run_cli([*arguments, "--config", str(config), "--json"])
        captured = capsys.readouterr()
        assert code == expected, captured.err
        document: dict[str, Any] = json.loads(captured.out)
        return document

    return run


@pytest.fixture(scope="module")
def store(config: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Where the run has been made already."""
    path = tmp_path_factory.mktemp("run") / "store"
    assert run_cli(["run", "--config", str(config), "--store", str(path), "--workers", "2"]) == 0
    return str(path)


def content(document: dict[str, Any]) -> dict[str, str]:
    """Digest of every dataset of a run."""
    return {name: about["digest"] for stage in document["stages"] for name, about in stage["datasets"].items()}


def test_a_run_makes_tasks_trajectories_and_a_report(run: Run, store: str) -> None:
    document = run("run", "--store", store)

    totals = document["totals"]
    assert document["is_latest"] is True
    assert (totals["specs"], totals["tasks"], totals["successes"]) == (12, 3, 3)
    assert totals["tools"]["verified"] > 50
    assert "<html" in (Path(store) / "report.html").read_text()


def test_a_second_run_has_nothing_to_do(run: Run, store: str) -> None:
    document = run("run", "--store", store, "--workers", "1")

    assert all(stage["skipped"] for stage in document["stages"])


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_trajectories_become_training_data(run: Run, store: str, tmp_path: Path, form: str) -> None:
    out = tmp_path / f"sft.{form}"

    document = run("export", "--store", store, "--out", str(out))
    assert (document["trajectories"], document["left_out"]) == (3, {})

    if form == "jsonl":
        records = [json.loads(line) for line in out.read_text().splitlines()]
    else:
        records = pq.read_table(out).to_pylist()
    assert document["records"] == len(records) == 3
    assert set(records[0]) == {"tools", "messages", "meta", "source"}


def test_tasks_of_a_benchmark_never_become_training_data(run: Run, store: str, tmp_path: Path) -> None:
    everything = run("export", "--store", store, "--out", str(tmp_path / "all.jsonl"))
    asked = json.loads((tmp_path / "all.jsonl").read_text().splitlines()[0])["messages"][1]["content"]
    (tmp_path / "texts").mkdir()
    (tmp_path / "texts" / "benchmark.json").write_text(json.dumps([{"question": asked.upper()}]))

    options = ("--decontaminate", str(tmp_path / "texts"), "--out", str(tmp_path / "clean.jsonl"))
    document = run("export", "--store", store, *options)

    assert document["records"] == everything["records"] - 1
    assert document["left_out"] == {"contaminated": 1}
    assert document["compared_with"]["files"] == 1
    assert asked not in [json.loads(line)["messages"][1]["content"] for line in (tmp_path / "clean.jsonl").open()]


def test_a_run_below_its_gates_is_recorded_and_not_the_latest(
    run: Run, store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    latest = run("run", "--store", store)["run"]
    monkeypatch.setenv("COMPOWORLD_GATES__MIN_TASKS", "4")

    document = run("run", "--store", store, expected=1)

    assert document["is_latest"] is False
    (failed,) = document["failed_gates"]
    assert failed.startswith("gates.min_tasks: 3 tasks passed, 4 wanted; raise tasks.count")
    assert document["report"] != (Path(store) / "report.html").as_uri()
    assert (Path(store) / "refs/latest").read_text() == latest
    assert (Path(store) / f"runs/{document['run']}.json").exists()


def test_a_failed_gate_is_told_with_what_was_found_and_what_to_do(
    config: Path, store: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COMPOWORLD_GATES__MIN_TRAJECTORIES", "9")

    code = run_cli(["run", "--store", store, "--config", str(config)])

    err = capsys.readouterr().err
    assert code == 1
    assert "did not reach its gates, so it is recorded but not the latest run (the latest stays run_" in err
    assert "gate failed: gates.min_trajectories: 3 trajectories passed, 9 wanted; raise tasks.count" in err


def test_losses_of_tools_add_up_from_specs_to_verifications(store: str) -> None:
    opened = open_store(store)
    record = find_run(opened)
    specs = list(read_dataset(opened, record.location("specs"), SPECS))
    packages = list(read_dataset(opened, record.location("services"), SERVICES))
    omissions = list(read_dataset(opened, record.location("omissions"), OMISSIONS))
    admissions = list(read_dataset(opened, record.location("verifications"), VERIFICATIONS))

    written = [package for package in packages if package.origin == "synthesised"]
    promised, has = (sum(len(item.tools) for item in specs), sum(len(item.spec.tools) for item in written))
    assert promised == has + len(omissions)
    predicted = sum(item.outcome == "world_model" for item in admissions)
    assert len(admissions) - predicted == sum(len(package.spec.tools) for package in packages)
    page = (Path(store) / "report.html").read_text()
    assert f"<b>{has}</b> of {promised} tools" in page
    assert "nobody noted why" not in page
    assert "not judged" not in page


@pytest.mark.slow
@pytest.mark.parametrize("seed", ["1", "2"])
def test_the_order_of_sets_changes_nothing(
    run: Run, store: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: str
) -> None:
    monkeypatch.setenv("PYTHONHASHSEED", seed)  # for the workers

    document = run("run", "--store", str(tmp_path), "--workers", "2")

    assert content(document) == content(run("run", "--store", store))


@pytest.mark.components
def test_a_bucket_holds_the_same_as_a_directory(
    run: Run, store: str, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = request.getfixturevalue("seaweedfs")
    for name, value in server.environment.items():
        monkeypatch.setenv(name, value)

    document = run("run", "--store", f"s3://{server.bucket}/small", "--workers", "2")

    assert content(document) == content(run("run", "--store", store))
    assert document["report"].startswith("s3://")
