"""AutomationBench: what counts is whether a task is passed as a whole."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.errors import InputError
from compoworld_core.evaluation.benchmarks import benchmark
from compoworld_core.evaluation.collection import Collection
from compoworld_core.storage import canonical_json
from tests.evaluation.benchmarks.written import CANARY, order, put

BENCH = benchmark("automationbench")


def task(name: str, held: int = 4, of: int = 4, **more: Any) -> dict[str, Any]:
    results = [
        {"type": "row_exists", "passed": number < held, "excluded": False, "params": {"id": str(number)}}
        for number in range(of)
    ]
    free = {"type": "not_sent", "passed": True, "excluded": True, "params": {}}
    return {
        "id": 1, "name": name, "score": held / of, "passed": held == of, "assertions_total": of,
        "assertions_passed": held, "steps": 9, "input_tokens": 1000, "output_tokens": 50, "num_tool_calls": 8,
        "assertion_results": [*results, free], "messages": [], "end_state": {}, **more,
    }  # fmt: skip


def export(tasks: list[dict[str, Any]], domains: tuple[str, ...] = ("sales",), **meta: Any) -> dict[str, Any]:
    passed = sum(item["passed"] for item in tasks)
    return {
        "meta": {
            "timestamp": "2026-07-30T12:45:47", "model": "org/Model-1.5", "toolset": "api", "domains": list(domains),
            "total_tasks": len(tasks), "duration_seconds": 70.0, "benchmark_version": "1.0.5", "reasoning_effort": None,
            **meta,
        },
        "summary": {
            "avg_score": sum(item["score"] for item in tasks) / len(tasks), "pass_rate": passed / len(tasks),
            "passed_count": passed, "failed_count": len(tasks) - passed, "tasks_with_errors": 0,
        },
        "tasks": tasks,
    }  # fmt: skip


def figures(collection: Collection) -> dict[str, float | None]:
    return {metric.name: metric.value for metric in (collection.headline, *collection.metrics)}


def test_headline_is_the_strict_pass_rate_and_not_the_mean_score(tmp_path: Path) -> None:
    tasks = [task("sales.a"), task("sales.b", 3), task("hr.c", 3), task("hr.d", 0)]
    put(tmp_path / "run.json", export(tasks, ("sales", "hr")))

    collection = BENCH.collect(tmp_path)

    assert collection.headline.name == "strict pass rate"
    assert collection.headline.value == pytest.approx(1 / 4)
    assert figures(collection)["mean partial score"] == pytest.approx((1 + 0.75 + 0.75 + 0) / 4)
    assert figures(collection)["mean partial score, hr"] == pytest.approx(0.375)
    assert figures(collection)["strict pass rate, sales"] == pytest.approx(0.5)


def test_rows_carry_domain_criteria_and_effort(tmp_path: Path) -> None:
    put(tmp_path / "run.json", export([task("sales.a", 3)]))

    (row,) = BENCH.collect(tmp_path).rows

    assert (row.domain, row.passed, row.score) == ("sales", False, 0.75)
    assert row.criteria == (True, True, True, False)  # what holds from the start is no criterion
    assert (row.steps, row.prompt_tokens, row.completion_tokens) == (9, 1000, 50)
    assert row.versions == {"harness": "1.0.5"}


def test_simple_tasks_are_no_part_of_the_score(tmp_path: Path) -> None:
    put(tmp_path / "run.json", export([task("sales.a", 0), task("simple.b"), task("simple.c")], ("sales", "simple")))

    collection = BENCH.collect(tmp_path)

    assert collection.headline.value == 0
    assert collection.headline.units == 1
    assert figures(collection)["strict pass rate, simple"] == 1
    assert collection.setting["tasks"] == 1


def test_slices_are_merged_and_what_no_slice_has_is_reported(tmp_path: Path) -> None:
    put(tmp_path / "shard-000" / "export.json", export([task(f"sales.t{number}") for number in range(60)]))
    put(tmp_path / "shard-001" / "export.json", export([task(f"sales.t{number}", 1) for number in range(60, 97)]))

    collection = BENCH.collect(tmp_path)

    assert collection.headline.value == pytest.approx(60 / 97)
    (gap,) = collection.missing
    assert "3 of 100" in gap.reason


def test_slices_that_overlap_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "shard-000" / "export.json", export([task("sales.a"), task("sales.b")]))
    put(tmp_path / "shard-001" / "export.json", export([task("sales.b")]))

    with pytest.raises(InputError, match=r"'sales\.b' has trial 0 twice"):
        BENCH.collect(tmp_path)


def test_repeated_runs_are_trials(tmp_path: Path) -> None:
    put(tmp_path / "trial-0" / "shard-000" / "export.json", export([task("sales.a")]))
    put(tmp_path / "trial-1" / "shard-000" / "export.json", export([task("sales.a", 0)]))

    collection = BENCH.collect(tmp_path)

    assert [row.trial for row in collection.rows] == [0, 1]
    assert collection.headline.value == 0.5
    assert collection.setting["trials"] == 2


def test_an_errored_task_counts_as_the_harness_scored_it_and_keeps_its_error(tmp_path: Path) -> None:
    put(tmp_path / "run.json", export([task("sales.a"), task("sales.b", 0, error="RateLimitError: 429")]))

    collection = BENCH.collect(tmp_path)

    assert collection.headline.value == 0.5
    assert [row.error for row in collection.errors] == ["RateLimitError: 429"]


def test_an_export_that_has_fewer_tasks_than_it_speaks_of_is_reported(tmp_path: Path) -> None:
    put(tmp_path / "run.json", export([task("sales.a")], total_tasks=3))

    assert "run.json speaks of 2 more tasks than it has" in [gap.reason for gap in BENCH.collect(tmp_path).missing]


def test_a_summary_that_contradicts_its_tasks_is_told(tmp_path: Path) -> None:
    document = export([task("sales.a"), task("sales.b", 1)])
    document["summary"]["passed_count"] = 2
    put(tmp_path / "run.json", document)

    collection = BENCH.collect(tmp_path)

    assert collection.headline.value == 0.5
    assert any("2 passed tasks, it has 1" in warning for warning in collection.warnings)


def test_a_run_without_any_tool_call_looks_like_a_wrong_parser(tmp_path: Path) -> None:
    put(tmp_path / "run.json", export([task("sales.a", 0, num_tool_calls=0), task("sales.b", 0, num_tool_calls=0)]))

    assert any("qwen3_coder" in warning for warning in BENCH.collect(tmp_path).warnings)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        pytest.param(lambda d: d["tasks"][0].pop("passed"), r"tasks\[0\]\.passed: is missing", id="no verdict"),
        pytest.param(lambda d: d["tasks"][0].update(score=1.5), r"tasks\[0\]\.score: .* from 0 to 1", id="score"),
        pytest.param(lambda d: d["tasks"][0].update(passed="yes"), r"passed: expected true or false", id="no flag"),
        pytest.param(lambda d: d["tasks"][0].update(name="sales"), "has no domain before a dot", id="no domain"),
        pytest.param(lambda d: d["meta"].update(model=None), "does not say which model", id="no model"),
    ],
)
def test_a_malformed_export_is_refused_with_its_field(tmp_path: Path, spoil: Any, told: str) -> None:
    document = export([task("sales.a")])
    spoil(document)
    put(tmp_path / "run.json", document)

    with pytest.raises(InputError, match=told):
        BENCH.collect(tmp_path)


def test_a_file_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text('{"meta": {', encoding="utf-8")

    with pytest.raises(InputError, match=r"run\.json: is not JSON"):
        BENCH.collect(tmp_path)


@pytest.mark.parametrize("about", [{"model": "other"}, {"toolset": "zapier"}, {"benchmark_version": "1.0.4"}])
def test_exports_of_different_runs_are_not_one_run(tmp_path: Path, about: dict[str, str]) -> None:
    put(tmp_path / "a.json", export([task("sales.a")]))
    put(tmp_path / "b.json", export([task("sales.b")], ("sales",), **about))

    with pytest.raises(InputError, match="collect one run at a time"):
        BENCH.collect(tmp_path)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give the folder that auto-bench wrote"):
        BENCH.collect(tmp_path)


def test_no_secret_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_KEY", CANARY)
    leaked = f"401: Incorrect API key provided: {CANARY}"
    put(tmp_path / "run.json", export([task("sales.a", 0, error={"message": leaked})], api_key=CANARY))

    collection = BENCH.collect(tmp_path)

    assert "401" in (collection.rows[0].error or "")
    assert CANARY not in canonical_json(collection)


def test_slices_cover_all_tasks_once(tmp_path: Path) -> None:
    jobs = BENCH.render(order(tmp_path, shards=7))

    ranges = [
        (int(job.command[job.command.index("--skip") + 1]), int(job.command[job.command.index("--num-examples") + 1]))
        for job in jobs
    ]
    assert [number for start, length in ranges for number in range(start, start + length)] == list(range(600))


def test_who_wants_all_tasks_names_no_slice(tmp_path: Path) -> None:
    (job,) = BENCH.render(order(tmp_path))

    assert not {"--skip", "--num-examples"} & set(job.command), (
        "the harness repeats what was cut off in whole runs alone"
    )


def test_the_command_is_that_of_the_harness_and_holds_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_KEY", CANARY)

    (job,) = BENCH.render(order(tmp_path, limit=20, concurrency=4))

    assert job.command == (
        "auto-bench", "--model", "org/Model-1.5", "--base-url", "http://127.0.0.1:9/v1", "--toolset", "api",
        "--domains", "sales,marketing,operations,support,finance,hr", "--max-steps", "50", "--max-concurrent", "4",
        "--skip", "0", "--num-examples", "20", "--export-json", "export.json",
    )  # fmt: skip
    assert list(job.keys) == ["OPENAI_API_KEY"]
    assert CANARY not in canonical_json(job.model_dump(mode="json"))


def test_an_unpinned_harness_needs_a_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_KEY", CANARY)
    monkeypatch.setenv("JUDGE_KEY", CANARY)
    (tmp_path / "harness").mkdir()

    with pytest.raises(InputError, match="say with --revision which one it is") as refused:
        BENCH.prepare(order(tmp_path, python=Path(sys.executable)))
    assert "has no module automationbench" in str(refused.value)


def test_what_cannot_be_so_is_told(tmp_path: Path) -> None:
    tasks = [task(f"sales.{number}") for number in range(101)]
    tasks[0] |= {"score": 0.25}
    tasks[1]["assertion_results"][0]["passed"] = False
    put(tmp_path / "run.json", export(tasks))

    collection = BENCH.collect(tmp_path)

    assert "sales: trial 0 has 101 tasks, the benchmark has 100" in collection.warnings
    assert "2 passed tasks do not have the full score or fail an assertion" in collection.warnings
    assert not collection.missing


def test_domains_that_an_export_does_not_name_have_gaps_too(tmp_path: Path) -> None:
    put(tmp_path / "run.json", export([task("sales.a")], ()))

    assert BENCH.collect(tmp_path).missing[0].reason.startswith("99 of 100 public tasks")


def test_what_is_known_of_a_run_is_of_this_benchmark_and_of_one_order(tmp_path: Path) -> None:
    put(tmp_path / "a/run.json", export([task("sales.a")]))
    known = {"benchmark": "automationbench", "harness": "abc", "asked": {"options": {"max_steps": "50"}}}
    put(tmp_path / "a/provenance.json", known)
    assert BENCH.collect(tmp_path).setting["max_steps"] == "50"

    put(tmp_path / "b/provenance.json", {**known, "asked": {"options": {"max_steps": "500"}}})
    with pytest.raises(InputError, match=r"asked: differs from that of .*a/provenance.json; collect one order"):
        BENCH.collect(tmp_path)

    put(tmp_path / "b/provenance.json", {**known, "benchmark": "ale"})
    with pytest.raises(InputError, match="benchmark: these are results of ale, not of automationbench"):
        BENCH.collect(tmp_path)
