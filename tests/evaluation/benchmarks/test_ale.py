"""ALE: the full score or nothing, and as many tasks as there are in the list."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.errors import CompoWorldError, InputError
from compoworld_core.evaluation.benchmarks import benchmark
from compoworld_core.storage import canonical_json
from tests.evaluation.benchmarks.written import CANARY, order, put

BENCH = benchmark("ale")


def attempt(
    folder: Path, task: str, score: float | None, time: str = "20260801_100000", status: str = "completed", **more: Any
) -> Path:
    run = folder / "runs/ale/terminus_2/openai-org-model-1-5" / task.replace("/", "__") / "v0" / time
    error = more.pop("error", None)
    ended = more.pop("ended", "success" if score is not None else "failed")
    usage = {"total_steps": 30, "total_input_tokens": 700, "total_output_tokens": 70, "total_cost_usd": 0.3}
    put(
        run / "run.json",
        {
            "schema_version": 2, "run_id": "r", "timestamp_utc": "2026-08-01T10:00:00Z",
            "agent": {"id": "terminus_2", "class": "terminus_2", "model": "openai/org/Model-1.5", "config_repr": {}},
            "task": {"slug": task.replace("/", "__"), "path": f"tasks/{task}", "variant_index": 0},
            "status": status, "score": score, "termination": {"reason": status, "phase": None, "error": error},
            "timings": {"duration_s": 1.0}, "usage": usage,
        },
    )  # fmt: skip
    return put(
        run / "eval_result.json",
        {"eval_status": ended, "score": score, "eval_duration_s": 1.0, "error": None, **more},
    )


def test_only_the_full_score_is_a_pass(tmp_path: Path) -> None:
    attempt(tmp_path, "business_finance/options", 1.0)
    attempt(tmp_path, "business_finance/risk", 0.99)
    attempt(tmp_path, "geo/map", 0.0)

    collection = BENCH.collect(tmp_path)

    assert collection.headline.name == "binary pass rate"
    assert collection.headline.value == pytest.approx(1 / 3)
    assert collection.metrics[0].value == pytest.approx(1.99 / 3)
    assert collection.rows[0].domain == "business_finance"
    assert collection.model == "org/Model-1.5"
    assert collection.setting == {"tasks": 3, "trials": 1, "agent": "terminus_2"}
    assert any("3 tasks: with another list" in warning for warning in collection.warnings)


def test_a_run_without_score_is_not_passed_and_keeps_its_error(tmp_path: Path) -> None:
    attempt(tmp_path, "geo/map", 1.0)
    attempt(tmp_path, "geo/sea", None, status="failed", error={"type": "X", "message": "no machine", "traceback": "t"})

    collection = BENCH.collect(tmp_path)

    assert collection.headline.value == 0.5
    assert [(row.task, row.error) for row in collection.errors] == [("geo/sea", "no machine")]


def test_a_run_that_the_harness_repeats_does_not_count_beside_the_one_that_settled(tmp_path: Path) -> None:
    attempt(tmp_path, "geo/map", None, "20260801_100000", "failed")
    attempt(tmp_path, "geo/map", 1.0, "20260801_110000")

    collection = BENCH.collect(tmp_path)

    assert collection.headline.value == 1.0
    assert [gap.reason for gap in collection.drops] == ["the run 20260801_100000 was tried again"]


def test_a_task_that_got_no_machine_is_missing_and_no_zero(tmp_path: Path) -> None:
    attempt(tmp_path, "geo/map", 1.0)
    attempt(tmp_path, "geo/sea", None, status="failed", ended="not_executed", error={"message": "no quota"})
    (tmp_path / "tasks.txt").write_text("geo/map\ngeo/sea\n")

    collection = BENCH.collect(tmp_path)

    assert collection.headline.value == 1.0
    assert [(gap.task, gap.reason) for gap in collection.missing] == [
        ("geo/sea", "it was not tried: no quota; the figures leave it out")
    ]


def test_a_task_that_got_no_machine_when_it_was_repeated_keeps_what_it_had(tmp_path: Path) -> None:
    attempt(tmp_path, "geo/map", None, "20260801_100000", "failed")
    attempt(tmp_path, "geo/map", None, "20260801_110000", "failed", ended="not_executed")

    collection = BENCH.collect(tmp_path)

    assert [row.passed for row in collection.rows] == [False]
    assert [gap.reason for gap in collection.drops] == ["the run 20260801_110000 was tried again"]


def test_a_timeout_with_a_score_settles(tmp_path: Path) -> None:
    attempt(tmp_path, "geo/map", 1.0, "20260801_100000", "timeout")

    assert BENCH.collect(tmp_path).headline.value == 1.0


def test_settled_runs_of_one_task_are_trials(tmp_path: Path) -> None:
    attempt(tmp_path, "geo/map", 1.0, "20260801_100000")
    attempt(tmp_path, "geo/map", 0.0, "20260801_110000")

    collection = BENCH.collect(tmp_path)

    assert [(row.trial, row.passed) for row in collection.rows] == [(0, True), (1, False)]
    assert collection.headline.value == 0.5


def test_tasks_of_the_list_that_were_never_tried_are_missing(tmp_path: Path) -> None:
    attempt(tmp_path, "geo/map", 1.0)
    (tmp_path / "tasks.txt").write_text("# a list\ngeo/map\ngeo/sea\n")

    assert [gap.task for gap in BENCH.collect(tmp_path).missing] == ["geo/sea"]


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        pytest.param({"score": 12}, r"score: expected a number from 0 to 1", id="score"),
        pytest.param({"eval_status": None}, r"eval_status: expected text", id="status"),
    ],
)
def test_malformed_results_are_refused_with_their_field(tmp_path: Path, fields: dict[str, Any], told: str) -> None:
    file = attempt(tmp_path, "geo/map", 1.0)
    put(file, {**json.loads(file.read_text()), **fields})

    with pytest.raises(InputError, match=told):
        BENCH.collect(tmp_path)


def test_results_of_two_agents_are_refused(tmp_path: Path) -> None:
    attempt(tmp_path, "geo/map", 1.0)
    other = tmp_path / "runs/ale/openhands_cli/openai-org-model-1-5/geo__map/v0/20260801_100000"
    put(other / "eval_result.json", {"eval_status": "success", "score": 1.0, "eval_duration_s": 1.0, "error": None})

    with pytest.raises(InputError, match="collect one at a time"):
        BENCH.collect(tmp_path)


def test_no_secret_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_KEY", CANARY)
    attempt(tmp_path, "geo/map", None, status="failed", error={"message": f"401 with {CANARY}"}, api_key=CANARY)

    collection = BENCH.collect(tmp_path)

    assert "401 with" in (collection.rows[0].error or "")
    assert CANARY not in canonical_json(collection)


def listed(tmp_path: Path, tasks: int) -> None:
    home = tmp_path / "harness"
    (home / "selected_tasks").mkdir(parents=True)
    (home / "selected_tasks/linux_only.txt").write_text(
        "# tasks\n" + "".join(f"geo/map_{number}\n" for number in range(tasks))
    )


def test_slices_cover_the_list_once(tmp_path: Path) -> None:
    listed(tmp_path, 105)

    jobs = BENCH.render(order(tmp_path, shards=4))

    tasks = [task for job in jobs for task in job.files["tasks.txt"].split()]
    assert tasks == [f"geo/map_{number}" for number in range(105)]


def test_the_experiment_asks_the_endpoint_and_holds_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_KEY", CANARY)
    listed(tmp_path, 3)

    (job,) = BENCH.render(order(tmp_path))

    assert json.loads(job.files["agent.yaml"]) == {
        "harness": "terminus_2",
        "model": "openai/org/Model-1.5",
        "config": {"provider": "direct", "api_base": "http://127.0.0.1:9/v1"},
    }
    assert json.loads(job.files["exp.yaml"])["tasks"] == "tasks.txt"
    assert "cpu-free-ubuntu" in job.files["environment.yaml"]
    assert job.environment["OPENAI_BASE_URL"] == job.environment["OPENAI_API_BASE"] == "http://127.0.0.1:9/v1"
    assert CANARY not in canonical_json(job.model_dump(mode="json"))


@pytest.mark.parametrize("tried", [3, 2])
def test_a_job_is_finished_once_each_task_was_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, tried: int
) -> None:
    for variable in ("AGENT_KEY", "GCP_SA_KEY"):
        monkeypatch.setenv(variable, CANARY)
    listed(tmp_path, 3)
    package = tmp_path / "harness/ale_run"
    package.mkdir()
    (package / "__main__.py").write_text(
        "import json, pathlib, sys\n"
        "root = pathlib.Path(json.loads(pathlib.Path(sys.argv[2]).read_text())['output']['root'])\n"
        "for number in range(3):\n"
        "    run = root / 'ale/terminus_2/m' / f'geo__map_{number}' / 'v0/20260801_100000'\n"
        "    run.mkdir(parents=True)\n"
        f"    status = 'failed' if number < {tried} else 'not_executed'\n"
        "    result = {'eval_status': status, 'score': None, 'eval_duration_s': None, 'error': {'message': 'x'}}\n"
        "    (run / 'eval_result.json').write_text(json.dumps(result, indent=2))\n"
        "sys.exit(1)\n"
    )
    asked = order(tmp_path, python=Path(sys.executable))

    if tried < 3:
        with pytest.raises(CompoWorldError, match="only 2 of 3 tasks were tried"):
            BENCH.run(asked, BENCH.render(asked))
    else:
        BENCH.run(asked, BENCH.render(asked))
        assert BENCH.collect(tmp_path / "out").headline.units == 3


def test_machines_in_the_cloud_need_its_program_and_a_key_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listed(tmp_path, 3)
    monkeypatch.setenv("AGENT_KEY", CANARY)
    monkeypatch.setenv("GCP_SA_KEY", str(tmp_path / "no-such.json"))
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(InputError) as refused:
        BENCH.prepare(order(tmp_path, judge=None, python=Path(sys.executable), options={"sandbox": "gcloud"}))

    told = str(refused.value)
    assert "there is no gcloud on the path" in told
    assert "GCP_SA_KEY has to name the file" in told
    assert "serve the model where it can be reached" in told


def test_a_task_that_was_tried_more_often_counts_no_more(tmp_path: Path) -> None:
    for hour in range(10, 19):
        attempt(tmp_path, "geo/map", 1.0, f"20260801_{hour}0000")
    attempt(tmp_path, "geo/sea", 0.0)

    collection = BENCH.collect(tmp_path)

    assert collection.headline.value == 0.5
    assert collection.metrics[0].value == 0.5
