"""DeepPlanning: a mean of parts, which is nothing where a part is missing."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.errors import CompoWorldError, InputError
from compoworld_core.evaluation.benchmarks import benchmark
from compoworld_core.storage import canonical_json
from tests.evaluation.benchmarks.written import CANARY, order, put

BENCH = benchmark("deepplanning")


def travel(folder: Path, language: str, solved: int, delivered: int = 120, total: int = 120, **more: Any) -> Path:
    """A language in which some cases are solved and some plans were never delivered."""
    results: list[dict[str, Any]] = [
        {
            "success": True,
            "sample_id": str(number),
            "scores": {
                "commonsense_weighted_score": 1.0,
                "personalized_score": float(number < solved),
                "composite_score": 1.0 if number < solved else 0.5,
                "case_acc": float(number < solved),
            },
            "commonsense_dimension_details": {},
            "personalized_dimension_score": {"score": 1.0, "constraints": {}},
        }
        for number in range(delivered)
    ]
    metrics = {"delivery_rate": delivered / total, "case_acc": solved / total, "composite_score": 0.5}
    return put(
        folder / f"travelplanning/results/m_{language}/evaluation/evaluation_summary.json",
        {
            "total_test_samples": total, "plan_files_found": delivered, "evaluation_success_count": delivered,
            "evaluation_failed_count": 0, "elapsed_time": 1.0, "metrics": metrics, "error_statistics": [],
            "results": results, **more,
        },
    )  # fmt: skip


def shopping(folder: Path, level: int, solved: int, cases: int = 40, time: str = "202601051530", **more: Any) -> Path:
    results = [
        {
            "case_name": f"case_{number}", "success": number < solved, "score": 1.0 if number < solved else 0.5,
            "matched_count": 2, "expected_count": 2, "extra_products_count": 0, "error": None,
            "case_score": float(number < solved), "is_completed": True,
        }
        for number in range(cases)
    ]  # fmt: skip
    statistics = {"total_cases": cases, "successful_cases": solved, "average_case_score": solved / cases, "valid": True}
    return put(
        folder / f"shoppingplanning/result_report/database_m_level{level}_{time}/summary_report.json",
        {"overall_statistics": {**statistics, **more}, "case_results": results, "detailed_results": []},
    )


def whole(folder: Path) -> Path:
    travel(folder, "zh", 12)
    travel(folder, "en", 36)
    for level, solved in ((1, 30), (2, 20), (3, 10)):
        shopping(folder, level, solved)
    return folder


def test_avg_acc_is_the_mean_of_shopping_and_of_travels_mean(tmp_path: Path) -> None:
    collection = BENCH.collect(whole(tmp_path))

    assert collection.headline.name == "avg_acc"
    assert collection.headline.value == pytest.approx((60 / 120 + (12 / 120 + 36 / 120) / 2) / 2)
    assert collection.headline.units == 360
    assert {metric.name: metric.value for metric in collection.metrics} == {
        "shopping weighted_average_case_score": pytest.approx(0.5),
        "travel case_acc": pytest.approx(0.2),
        "travel case_acc, zh": pytest.approx(0.1),
        "travel case_acc, en": pytest.approx(0.3),
    }
    assert not collection.missing
    assert collection.setting == {"tasks": 360, "trials": 1}


@pytest.mark.parametrize(
    ("gone", "named"),
    [
        ("travelplanning/results/m_zh", "travel-zh"),
        ("travelplanning", "travel-zh, travel-en"),
        ("shoppingplanning/result_report/database_m_level2_202601051530", "shopping-2"),
        ("shoppingplanning", "shopping-1, shopping-2, shopping-3"),
    ],
)
def test_a_missing_part_is_refused(tmp_path: Path, gone: str, named: str) -> None:
    shutil.rmtree(whole(tmp_path) / gone)

    with pytest.raises(InputError, match=f"lacks {named}; avg_acc is made of"):
        BENCH.collect(tmp_path)


def test_a_plan_that_was_never_delivered_is_unsolved(tmp_path: Path) -> None:
    travel(whole(tmp_path), "zh", 12, delivered=100)

    collection = BENCH.collect(tmp_path)

    assert {metric.name: metric.value for metric in collection.metrics}["travel case_acc, zh"] == pytest.approx(0.1)
    undelivered = [row for row in collection.rows if "no plan was delivered" in (row.error or "")]
    assert [row.task for row in undelivered[:2]] == ["travel-zh/100", "travel-zh/101"]
    assert len(undelivered) == 20


def test_a_plan_whose_evaluation_failed_is_unsolved_and_keeps_its_error(tmp_path: Path) -> None:
    file = travel(whole(tmp_path), "en", 36)
    document = json.loads(file.read_text())
    document["results"][0] = {"success": False, "sample_id": "0", "error": "meta_info not found for sample 0"}
    put(file, document)

    collection = BENCH.collect(tmp_path)

    assert [row.error for row in collection.errors] == ["meta_info not found for sample 0"]
    assert {metric.name: metric.value for metric in collection.metrics}["travel case_acc, en"] == pytest.approx(
        35 / 120
    )


def test_the_latest_run_of_a_level_counts(tmp_path: Path) -> None:
    shopping(whole(tmp_path), 1, 0, time="202601040000")

    collection = BENCH.collect(tmp_path)

    assert collection.metrics[0].value == pytest.approx(0.5)
    assert any("database_m_level1_202601040000 is left out" in warning for warning in collection.warnings)


def test_cases_without_result_are_left_out_as_the_harness_does_and_reported(tmp_path: Path) -> None:
    shopping(whole(tmp_path), 3, 10, cases=20, valid=False)

    collection = BENCH.collect(tmp_path)

    assert collection.metrics[0].value == pytest.approx(60 / 100)
    assert [gap.task for gap in collection.missing] == ["shopping-3/*"]
    assert any("is not valid by the harness's rule" in warning for warning in collection.warnings)


def test_the_harnesses_own_aggregate_is_checked(tmp_path: Path) -> None:
    put(whole(tmp_path) / "aggregated_results/m_aggregated.json", {"overall": {"avg_acc": 0.5}})

    assert any("says avg_acc 0.5, the cases say 0.35" in warning for warning in BENCH.collect(tmp_path).warnings)


def test_results_of_two_models_are_refused(tmp_path: Path) -> None:
    file = shopping(whole(tmp_path), 1, 3)
    put(file.parents[1] / "database_other_level1_202601051530/summary_report.json", json.loads(file.read_text()))

    with pytest.raises(InputError, match="has results of m, other; collect one model at a time"):
        BENCH.collect(tmp_path)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        pytest.param(lambda d: d.pop("results"), r"evaluation_summary\.json: results: is missing", id="no results"),
        pytest.param(lambda d: d["results"][3].pop("scores"), r"results\[3\]\.scores: is missing", id="no scores"),
        pytest.param(
            lambda d: d["results"][3]["scores"].update(case_acc="1"), r"case_acc: expected a number", id="no number"
        ),
    ],
)
def test_malformed_results_are_refused_with_their_field(tmp_path: Path, spoil: Any, told: str) -> None:
    file = travel(whole(tmp_path), "zh", 12)
    document = json.loads(file.read_text())
    spoil(document)
    put(file, document)

    with pytest.raises(InputError, match=told):
        BENCH.collect(tmp_path)


def test_no_secret_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_KEY", CANARY)
    file = travel(whole(tmp_path), "en", 36)
    document = json.loads(file.read_text())
    document["results"][0] = {"success": False, "sample_id": "0", "error": f"401 for key {CANARY}"}
    put(file, document)

    assert CANARY not in canonical_json(BENCH.collect(tmp_path))


def harness(tmp_path: Path) -> Path:
    """A harness whose scripts do no more than leave what those of DeepPlanning leave."""
    home = tmp_path / "harness/benchmark/deepplanning"
    for domain, result in (
        ("travel", "results/${BENCHMARK_MODEL}_${BENCHMARK_LANGUAGE}/evaluation/evaluation_summary.json"),
        ("shopping", "result_report/database_${BENCHMARK_MODEL}_level${BENCHMARK_LEVELS}_1/summary_report.json"),
    ):
        script = home / f"{domain}planning/run.sh"
        script.parent.mkdir(parents=True)
        script.write_text(
            'grep -q "\\"$BENCHMARK_MODEL\\"" ../models_config.json\n'
            f'mkdir -p "$(dirname {result})" && printf "%s" "$AGENT_API_KEY" > {result}\n'
        )
    return home


def test_each_part_runs_in_a_copy_of_the_harness(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENT_KEY", CANARY)
    monkeypatch.setenv("JUDGE_KEY", CANARY)
    home = harness(tmp_path)
    asked = order(tmp_path, python=Path(sys.executable))

    BENCH.run(asked, BENCH.render(asked))

    parts = sorted(path.name for path in (tmp_path / "out/trial-0").iterdir())
    assert parts == ["shopping-1", "shopping-2", "shopping-3", "travel-en", "travel-zh"]
    assert sorted(path.name for path in (home / "travelplanning").iterdir()) == ["run.sh"]
    kept = subprocess.run(["grep", "-rl", CANARY, str(tmp_path / "out")], capture_output=True, text=True, check=False)
    assert kept.stdout == ""


@pytest.mark.parametrize("plans", [120, 119])
def test_plans_that_were_not_judged_are_judged_once_all_are_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, plans: int
) -> None:
    monkeypatch.setenv("AGENT_KEY", CANARY)
    monkeypatch.setenv("JUDGE_KEY", CANARY)
    script = harness(tmp_path) / "travelplanning/run.sh"
    script.write_text(
        "results=results/${BENCHMARK_MODEL}_$BENCHMARK_LANGUAGE\n"
        'mkdir -p "$results/converted_plans" "$results/evaluation"\n'
        f"for id in $(seq {plans}); do touch $results/converted_plans/id_${{id}}_converted.json; done\n"
        '[ "${BENCHMARK_START_FROM:-}" != evaluation ] || touch "$results/evaluation/evaluation_summary.json"\n'
    )
    asked = order(tmp_path, python=Path(sys.executable))
    (job, *_) = BENCH.render(asked)

    with nullcontext() if plans == 120 else pytest.raises(CompoWorldError, match=r"evaluation_summary\.json"):
        BENCH.run(asked, [job])


def test_travel_needs_what_its_tools_are_made_of() -> None:
    assert "qwen_agent.tools.base" in BENCH.needs.modules


def test_the_model_that_converts_plans_is_named_as_the_harness_looks_for_it(tmp_path: Path) -> None:
    job = BENCH.render(order(tmp_path))[0]

    models = json.loads(job.files["models_config.json"])["models"]
    assert models["org-Model-1.5"]["model_name"] == "org/Model-1.5"
    assert models["qwen-plus"]["model_name"] == "converter"
    assert models["qwen-plus"]["api_key_env"] == "CONVERTER_API_KEY"
