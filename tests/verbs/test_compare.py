"""`compoworld evaluate --compare` and `--contamination`, as a person types them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compoworld_core.cli import run_cli
from compoworld_core.evaluation.comparison import COMPARISONS
from compoworld_core.storage.parts import read_part
from tests.evaluation.benchmarks.test_automationbench import export, task
from tests.evaluation.benchmarks.written import put

DOMAINS = ("sales", "marketing", "operations", "support", "finance", "hr")


def results(folder: Path, passed: int, model: str = "org/Model-1.5") -> Path:
    """All public tasks, the first of which are passed."""
    names = [f"{domain}.t{number}" for domain in DOMAINS for number in range(100)]
    put(
        folder / "run.json",
        export([task(name, 4 if n < passed else 1) for n, name in enumerate(names)], DOMAINS, model=model),
    )
    return folder


def compared(capsys: pytest.CaptureFixture[str]) -> dict[tuple[str, str, str], dict[str, object]]:
    lines = json.loads(capsys.readouterr().out)
    return {(line["run"] or "", line["metric"], line["other"]): line for line in lines}


def test_stored_runs_stand_beside_published_figures_and_beside_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = ["--store", str(tmp_path / "store")]
    for passed, model in ((120, "sft"), (200, "grpo")):
        folder = results(tmp_path / model, passed, model)
        assert run_cli(["evaluate", "automationbench", "--results", str(folder), *store]) == 0
    capsys.readouterr()

    assert run_cli(["evaluate", "--compare", "--json", *store]) == 0

    found = compared(capsys)
    base = found["grpo", "strict pass rate", "Qwen3.6-35B-A3B"]
    assert base["run_score"] == pytest.approx(100 / 3)
    assert base["difference"] == pytest.approx(100 / 3 - 10.33)
    assert base["comparable"] == "as far as told"
    assert base["untold"] == ["harness (here 1.0.5)", "toolset (here api)", "max_steps"]
    assert found["sft", "mean partial score", "Qwen3.6-35B-A3B"]["run_score"] == pytest.approx(100 * (0.2 + 0.8 / 4))
    runs = found.get(("sft", "strict pass rate", "grpo")) or found["grpo", "strict pass rate", "sft"]
    assert (runs["comparable"], runs["untold"]) == ("as far as told", ["max_steps"])
    assert runs["shared"] == 600
    assert abs(float(str(runs["gained"]))) == pytest.approx(80 / 6)
    assert found["", "pass^1", "Qwen3.6-35B-A3B"]["comparable"] == ""  # no run of it


def test_results_from_elsewhere_are_compared_without_being_stored(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder, page, part = results(tmp_path / "in", 60), tmp_path / "table.html", tmp_path / "table.parquet"

    code = run_cli(
        ["evaluate", "automationbench", "--results", str(folder), "--table", str(page), "--table", str(part)]
    )

    assert code == 0
    assert "org/Model-1.5" in page.read_text()
    with part.open("rb") as file:
        rows = list(read_part(file, COMPARISONS, str(part)))
    assert {row.run_score for row in rows if row.metric == "strict pass rate"} == {10.0}


def test_comparing_nothing_says_what_to_do(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["evaluate", "--compare", "--store", str(tmp_path / "store")]) == 2
    assert "collect some with --results and --store" in capsys.readouterr().err


def test_contamination_is_told_by_benchmark(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    order = "Find the invoice that nobody has paid since spring and remind the customer of it in a short letter"
    put(tmp_path / "tasks/bench/tasks.json", [{"id": "a", "query": order}, {"id": "b", "query": order[::-1]}])
    (tmp_path / "sft.jsonl").write_text(
        json.dumps({"messages": [{"role": "user", "content": order}], "meta": {"task_id": "t"}}) + "\n"
    )
    asked = ["evaluate", "--contamination", str(tmp_path / "tasks"), "--records", str(tmp_path / "sft.jsonl")]

    assert run_cli([*asked, "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["benchmark"], found["tasks"], found["overlapped"], found["share"]) == ("bench", 2, 1, 0.5)
    assert run_cli(asked) == 0
    assert "bench: 1 of 2 tasks (50.0 %) stand in 1 records" in capsys.readouterr().out
    assert run_cli(asked[:3]) == 2
    assert "name both" in capsys.readouterr().err
