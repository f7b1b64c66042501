"""WildClawBench: a task without a score counts 0."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.errors import CompoWorldError, InputError
from compoworld_core.evaluation.benchmarks import benchmark
from compoworld_core.evaluation.benchmarks.wildclawbench import CATEGORIES
from compoworld_core.storage import canonical_json
from tests.evaluation.benchmarks.written import CANARY, order, put

BENCH = benchmark("wildclawbench")


def result(task: str, score: float | None, **more: Any) -> dict[str, Any]:
    scores = {"overall_score": score, "accuracy": score} if score is not None else {}
    usage = {"input_tokens": 500, "output_tokens": 40, "request_count": 11, "cost_usd": 0.02}
    return {"task_id": task, "scores": scores, "usage": usage, "error": None, **more}


def summary(folder: Path, results: list[dict[str, Any]], name: str = "summary_all_my-model.json", **more: Any) -> Path:
    scored = [item["scores"]["overall_score"] for item in results if item["scores"]]
    return put(
        folder / "output" / name,
        {
            "global_avg": sum(scored) / len(results), "task_count": len(results), "scored_task_count": len(scored),
            "missing_score_task_count": len(results) - len(scored), "results": results, **more,
        },
    )  # fmt: skip


def own_folder(folder: Path, category: str, task: str, score: float | None, model: str = "my-model") -> Path:
    run = folder / f"output/openclaw/{category}/{task}/{model}_20260801_101112_a1b2c3"
    put(run / "usage.json", {"input_tokens": 5, "output_tokens": 4, "cost_usd": 0.01, "request_count": 2})
    if score is not None:
        put(run / "score.json", {"overall_score": score})
    return run


def test_a_task_without_a_score_counts_zero(tmp_path: Path) -> None:
    summary(tmp_path, [result("01_Productivity_Flow_task_1", 1.0), result("02_Code_Intelligence_task_1", 0.5),
                       result("06_Safety_Alignment_task_1", None, error="container exited with 137")])  # fmt: skip

    collection = BENCH.collect(tmp_path)

    assert collection.headline.name == "mean score"
    assert collection.headline.value == pytest.approx(0.5)
    assert [(row.task, row.score, row.error) for row in collection.errors] == [
        ("06_Safety_Alignment_task_1", 0.0, "container exited with 137")
    ]
    assert collection.model == "my-model"


def test_all_sixty_tasks_leave_no_gap(tmp_path: Path) -> None:
    names = [f"{category}_task_{number}" for category, tasks in CATEGORIES.items() for number in range(tasks)]
    summary(tmp_path, [result(name, 0.25) for name in names])

    collection = BENCH.collect(tmp_path)

    assert collection.headline.units == 60
    assert not collection.missing


def test_tasks_that_are_in_no_result_are_reported(tmp_path: Path) -> None:
    summary(tmp_path, [result(f"03_Social_Interaction_task_{number}", 0.5) for number in range(6)])

    gaps = {gap.task: gap.reason for gap in BENCH.collect(tmp_path).missing}

    assert "03_Social_Interaction/*" not in gaps
    assert gaps["01_Productivity_Flow/*"].startswith("10 of 10 tasks")
    assert len(gaps) == 5


def test_tasks_with_no_more_than_a_folder_of_their_own_count_too(tmp_path: Path) -> None:
    summary(tmp_path, [result("01_Productivity_Flow_task_1", 1.0)])
    own_folder(tmp_path, "01_Productivity_Flow", "01_Productivity_Flow_task_1", 1.0)
    own_folder(tmp_path, "01_Productivity_Flow", "01_Productivity_Flow_task_2", 0.5)
    own_folder(tmp_path, "01_Productivity_Flow", "01_Productivity_Flow_task_3", None)

    collection = BENCH.collect(tmp_path)

    assert [(row.task[-1], row.score) for row in collection.rows] == [("1", 1.0), ("2", 0.5), ("3", 0.0)]
    assert collection.headline.value == pytest.approx(0.5)


def test_a_task_that_was_run_twice_is_refused(tmp_path: Path) -> None:
    run = own_folder(tmp_path, "01_Productivity_Flow", "01_Productivity_Flow_task_2", 0.5)
    put(run.with_name("my-model_20260801_111112_d4e5f6") / "score.json", {"overall_score": 0.7})

    with pytest.raises(InputError, match="has trial 0 twice"):
        BENCH.collect(tmp_path)


def test_a_summary_that_contradicts_its_results_is_told(tmp_path: Path) -> None:
    summary(tmp_path, [result("01_Productivity_Flow_task_1", 0.5)], global_avg=0.9)

    assert any("says global_avg 0.9, its results say 0.5" in warning for warning in BENCH.collect(tmp_path).warnings)


def test_results_of_two_models_are_refused(tmp_path: Path) -> None:
    summary(tmp_path, [result("01_Productivity_Flow_task_1", 0.5)])
    summary(tmp_path, [result("01_Productivity_Flow_task_1", 0.7)], "summary_all_other.json")

    with pytest.raises(InputError, match="has results of my-model, other"):
        BENCH.collect(tmp_path)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        pytest.param(lambda d: d.pop("results"), "results: is missing", id="no results"),
        pytest.param(lambda d: d["results"][0].pop("task_id"), r"results\[0\]\.task_id: is missing", id="no task"),
        pytest.param(lambda d: d["results"][0]["scores"].update(overall_score=50), "from 0 to 1", id="percent"),
    ],
)
def test_malformed_summaries_are_refused_with_their_field(tmp_path: Path, spoil: Any, told: str) -> None:
    file = summary(tmp_path, [result("01_Productivity_Flow_task_1", 0.5)])
    document = json.loads(file.read_text())
    spoil(document)
    put(file, document)

    with pytest.raises(InputError, match=told):
        BENCH.collect(tmp_path)


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="give the folder that WildClawBench wrote"):
        BENCH.collect(tmp_path)


def test_no_secret_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BRAVE_API_KEY", CANARY)
    summary(tmp_path, [result("04_Search_Retrieval_task_1", None, error=f"403 from search with {CANARY}")])

    collection = BENCH.collect(tmp_path)

    assert "403 from search" in (collection.rows[0].error or "")
    assert CANARY not in canonical_json(collection)


def test_each_category_runs_in_a_copy_and_leaves_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("AGENT_KEY", "JUDGE_KEY", "OPENROUTER_API_KEY", "BRAVE_API_KEY"):
        monkeypatch.setenv(variable, CANARY)
    home = tmp_path / "harness"
    (home / "eval").mkdir(parents=True)
    (home / "workspace").mkdir()
    (home / "eval/run_batch.py").write_text(
        "import json, os, pathlib, sys\n"
        "config = json.loads(pathlib.Path(sys.argv[sys.argv.index('--models-config') + 1]).read_text())\n"
        "assert sys.argv[-1] == 'my-openai-proxy/org/Model-1.5', sys.argv\n"
        "assert config['providers']['my-openai-proxy']['apiKey'] == '${MY_PROXY_API_KEY}'\n"
        "pathlib.Path('output').mkdir()\n"
        "pathlib.Path('output/openclaw.json').write_text(os.environ['MY_PROXY_API_KEY'])\n"
        "pathlib.Path('output/score.json').write_text('{}')\n"
    )
    asked = order(tmp_path, python=Path(sys.executable))

    BENCH.run(asked, BENCH.render(asked))

    assert sorted(path.name for path in (tmp_path / "out/trial-0").iterdir()) == sorted(CATEGORIES)
    assert not (home / "output").exists()
    kept = [path for path in (tmp_path / "out").rglob("*") if path.is_file() and CANARY in path.read_text()]
    assert kept == []


def test_a_category_without_a_score_fails_and_is_run_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for variable in ("AGENT_KEY", "OPENROUTER_API_KEY", "BRAVE_API_KEY"):
        monkeypatch.setenv(variable, CANARY)
    program = tmp_path / "harness/eval/run_batch.py"
    program.parent.mkdir(parents=True)
    program.write_text(
        "import os, pathlib\n"
        "task = pathlib.Path('output/openclaw/01_Productivity_Flow/01_Productivity_Flow_task_1')\n"
        "is_first = not os.path.exists('again')\n"
        "run = task / ('m_20260801_101112_a1b2c3' if is_first else 'm_20260801_111112_d4e5f6')\n"
        "run.mkdir(parents=True)\n"
        "pathlib.Path('again').touch()\n"
        "name, said = ('agent.log', '') if is_first else ('score.json', '{\"overall_score\": 0.5}')\n"
        "(run / name).write_text(said)\n"
    )
    asked = order(tmp_path, python=Path(sys.executable))
    (job, *_) = BENCH.render(asked)

    with pytest.raises(CompoWorldError, match="no task has a score"):
        BENCH.run(asked, [job])
    BENCH.run(asked, [job])

    assert [(row.trial, row.score) for row in BENCH.collect(tmp_path / "out").rows] == [(0, 0.5)]


def test_a_folder_of_another_model_is_no_part_of_the_score(tmp_path: Path) -> None:
    summary(tmp_path, [result("01_Productivity_Flow_task_1", 0.0)])
    own_folder(tmp_path, "01_Productivity_Flow", "01_Productivity_Flow_task_2", 1.0, model="org_my-model")
    assert BENCH.collect(tmp_path).headline.value == 0.5

    own_folder(tmp_path, "01_Productivity_Flow", "01_Productivity_Flow_task_3", 1.0, model="a-better-one")
    with pytest.raises(InputError, match="task_3 is a result of a-better-one, the others of my-model"):
        BENCH.collect(tmp_path)
