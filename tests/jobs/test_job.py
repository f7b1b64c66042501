"""A stage's job: plan, shard, merge, each told in JSON and metrics, each refusing to work for another plan."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import Field

from compoworld_core.pipeline.stages import GRAPH
from compoworld_core.storage import open_store
from compoworld_core.training.config import Layout
from jobs import job
from jobs.job import FAN_OUT, main, ranges
from tests.pipeline import fakes

Run = Callable[..., tuple[int, str, list[dict[str, Any]]]]


@pytest.fixture(autouse=True)
def _restored_signals() -> Iterator[None]:
    handler = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, handler)


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "store")


@pytest.fixture
def run(uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a job of the tiny stages: exit code, standard output, lines of the log."""

    class Config:
        store = uri
        stages = {"count": fakes.CountConfig(), "square": fakes.SquareConfig()}  # noqa: RUF012

    monkeypatch.setattr(job, "GRAPH", fakes.GRAPH)
    monkeypatch.setattr(job, "load_config", lambda path, flags: Config())
    monkeypatch.setenv("CW_RUN", "run-7")
    monkeypatch.setenv("CW_METRICS", str(tmp_path / "metrics" / "job.prom"))

    def run(stage: str, *arguments: str) -> tuple[int, str, list[dict[str, Any]]]:
        monkeypatch.setattr(sys, "argv", ["job", *arguments])
        with pytest.raises(SystemExit) as exit:
            main(stage)
        captured = capsys.readouterr()
        assert isinstance(exit.value.code, int)
        return exit.value.code, captured.out, [json.loads(line) for line in captured.err.splitlines() if line[0] == "{"]

    return run


def key_of(run: Run, stage: str, tmp_path: Path) -> str:
    run(stage, "--plan", "--out", str(tmp_path / "plan"))
    return (tmp_path / "plan" / "key").read_text()


def test_plan_shards_and_merge_make_what_the_local_runner_makes(run: Run, uri: str, tmp_path: Path) -> None:
    key = key_of(run, "count", tmp_path)
    assert json.loads((tmp_path / "plan" / "shards").read_text()) == [{"first": 0, "count": 4}]
    for shard in range(4):
        assert run("count", "--shard", str(shard), "--key", key)[0] == 0
    assert run("count", "--merge", "--key", key)[0] == 0

    results = fakes.run_fakes(str(tmp_path / "local"))
    made = fakes.run_fakes(uri)
    assert made[0].was_skipped
    assert fakes.digests(made) == fakes.digests(results)


def test_a_plan_leaves_out_what_is_made(run: Run, tmp_path: Path) -> None:
    key = key_of(run, "count", tmp_path)
    run("count", "--shard", "1", "--key", key)
    assert json.loads(run("count", "--plan")[1]) == [{"first": 0, "count": 1}, {"first": 2, "count": 2}]
    assert json.loads(run("count", "--plan", "--fan-out", "1")[1])[1:] == [
        {"first": 2, "count": 1},
        {"first": 3, "count": 1},
    ]

    run("count")

    assert json.loads(run("count", "--plan")[1]) == []


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--shard", "4"), "has 4 shards, 0 to 3; ask --plan"),
        (("--shard", "0", "--key", "other"), "--key other: configuration, code and inputs of this job come to"),
        (("--merge", "--key", "other"), "--key other"),
    ],
)
def test_a_job_refuses_what_does_not_belong_to_its_plan(run: Run, arguments: tuple[str, ...], problem: str) -> None:
    code, _, log = run("count", *arguments)

    assert code == 2
    assert problem in log[0]["message"]
    assert log[0]["level"] == "error"


def test_a_merge_that_lacks_shards_fails(run: Run, tmp_path: Path) -> None:
    run("count", "--shard", "0")

    code, _, log = run("count", "--merge")

    assert code == 1
    assert "shards 1, 2, 3 of 4 are not committed" in log[0]["message"]


def test_an_input_that_is_not_made_is_bad_input(run: Run) -> None:
    assert run("square", "--plan")[0] == 2


def test_lines_and_metrics_tell_run_stage_and_shard(run: Run, tmp_path: Path) -> None:
    code, _, log = run("count", "--shard", "1")

    assert code == 0
    assert [(line["run"], line["stage"], line["shard"], line["level"]) for line in log] == [
        ("run-7", "count", "1", "info")
    ] * 2
    assert log[0]["rows"] == {"numbers": 3, "remarks": 2}
    assert log[1]["exit_code"] == 0
    metrics = (tmp_path / "metrics" / "job.prom").read_text()
    assert 'compoworld_rows{dataset="numbers",node="0",run="run-7",shard="1",stage="count"} 3\n' in metrics
    assert "# TYPE compoworld_work_seconds gauge" in metrics


def test_a_shard_that_is_made_is_told_again_and_not_made_again(run: Run, uri: str) -> None:
    run("count", "--shard", "1")
    before = sorted(open_store(uri).names())

    code, _, log = run("count", "--shard", "1")

    assert (code, log[0]["rows"]) == (0, {"numbers": 3, "remarks": 2})
    assert sorted(open_store(uri).names()) == before


def test_of_the_nodes_that_make_a_shard_together_the_first_commits_it(
    run: Run, uri: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Spread(fakes.CountConfig):
        layout: Layout = Field(default=Layout(nodes=2), exclude=True)

    class Config:
        store = uri
        stages = {"count": Spread()}  # noqa: RUF012

    monkeypatch.setattr(job, "load_config", lambda path, flags: Config())
    monkeypatch.setenv("JOB_COMPLETION_INDEX", "1")

    code, _, log = run("count", "--shard", "0")
    assert (code, log[-1]["node"]) == (0, "1")
    assert not list(open_store(uri).names())

    monkeypatch.setenv("JOB_COMPLETION_INDEX", "0")
    assert run("count", "--shard", "0")[0] == 0
    assert list(open_store(uri).names())


@pytest.mark.parametrize(
    ("numbers", "expected"),
    [
        ([], []),
        (range(500), [(0, 500)]),
        (range(1201), [(0, 500), (500, 500), (1000, 201)]),
        ([0, 1, 3, 4, 9], [(0, 2), (3, 2), (9, 1)]),
    ],
)
def test_shards_come_in_ranges_that_a_workflow_can_hold(numbers: Any, expected: list[tuple[int, int]]) -> None:
    assert [(item["first"], item["count"]) for item in ranges(numbers, FAN_OUT)] == expected


def test_every_stage_has_an_entry_point() -> None:
    folder = Path(job.__file__).parent

    for name in GRAPH.order:
        assert f'main("{name}")' in (folder / f"{name.replace('-', '_')}.py").read_text()
