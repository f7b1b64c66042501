"""`compoworld evaluate BENCHMARK`: results from elsewhere are read, told and stored; orders are checked first."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.cli import run_cli
from compoworld_core.errors import InputError
from compoworld_core.evaluation.benchmarks import benchmarks
from compoworld_core.evaluation.serving import Serving
from compoworld_core.evaluation.trial import EVALUATIONS
from compoworld_core.pipeline.benchmarking import collect, store_rows
from compoworld_core.pipeline.comparing import compare_collections, stored_collections
from compoworld_core.storage import DatasetLocation, open_store, read_dataset, read_sidecars
from tests.evaluation.benchmarks.simulated import broken_tau, tau_results, tau_simulation
from tests.evaluation.benchmarks.written import CANARY, put

MIXED = [
    *(tau_simulation("one", trial, reward) for trial, reward in enumerate([1, 1, 0])),
    tau_simulation("two", 0, 0),
    broken_tau("two", 1),
]


def told(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    assert run_cli(["evaluate", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def results(tmp_path: Path) -> str:
    put(tmp_path / "elsewhere/run/results.json", tau_results(MIXED, ["one", "two"]))
    return str(tmp_path / "elsewhere")


def test_all_eight_benchmarks_are_known_and_an_unknown_one_is_told_which(capsys: pytest.CaptureFixture[str]) -> None:
    assert set(benchmarks()) == {
        "ale", "automationbench", "deepplanning", "skillsbench", "tau3-banking", "vitabench", "vitabench2",
        "wildclawbench",
    }  # fmt: skip

    error = told(capsys, "tau4", "--results", "x", code=2)["error"]

    assert "there is no benchmark 'tau4'; there are ale, automationbench" in error


def test_results_from_elsewhere_tell_headline_trials_errors_and_drops(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    document = told(capsys, "tau3-banking", "--results", results(tmp_path))

    assert document["headline"]["name"] == "pass^1"
    assert document["headline"]["value"] == pytest.approx(1 / 3)
    low, high = document["headline"]["interval"]
    assert 0 < low < 1 / 3 < high < 1
    assert (document["trials"], document["scored"], len(document["errors"])) == (5, 4, 1)
    assert [(gap["task"], gap["trial"]) for gap in document["drops"]] == [("two", 1)]
    assert [(gap["task"], gap["trial"]) for gap in document["missing"]] == [("two", 2)]
    assert document["stored"] is None


def test_the_command_says_how_a_checkpoint_is_served(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: dict[str, Any] = {}

    def serving(**fields: Any) -> Serving:
        asked.update(fields)
        raise InputError("that is all")

    monkeypatch.setattr("compoworld_core.pipeline.benchmarking.Serving", serving)
    options = ["--checkpoint", "model", "--gpus", "2", "--context-tokens", "8192"]

    told(capsys, "tau3-banking", *options, "--harness", str(tmp_path), code=InputError.exit_code)

    assert asked == {"folder": Path("model"), "engine": "vllm", "gpus": 2, "context_tokens": 8192}


def test_the_text_says_the_same(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["evaluate", "tau3-banking", "--results", results(tmp_path)]) == 0

    text = capsys.readouterr().out
    assert "pass^1         33.33 % [" in text
    assert "trials         5, of which 1 with an error" in text
    assert "dropped        1\n    1 × infrastructure_error: 401: key [secret] is not known" in text


def test_rows_are_stored_once_and_without_any_key(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, store = results(tmp_path), tmp_path / "store"

    first = told(capsys, "tau3-banking", "--results", folder, "--store", str(store))
    again = told(capsys, "tau3-banking", "--results", folder, "--store", str(store))

    assert first["stored"] == again["stored"]
    key = first["stored"].rsplit("/", 1)[1]
    location = DatasetLocation(dataset="evaluations", key=key)
    rows = list(read_dataset(open_store(str(store)), location, EVALUATIONS))
    assert [(row.task, row.trial, row.passed) for row in rows] == [
        ("one", 0, True), ("one", 1, True), ("one", 2, False), ("two", 0, False), ("two", 1, None),
    ]  # fmt: skip
    (about,) = read_sidecars(open_store(str(store)), location)
    assert about["collection"]["setting"]["retrieval"] == "bm25"
    assert not any(CANARY.encode() in file.read_bytes() for file in store.rglob("*") if file.is_file())


def test_the_same_rows_that_were_made_otherwise_are_stored_apart(tmp_path: Path) -> None:
    store, kept = open_store(str(tmp_path / "store")), []
    for retrieval in ("bm25", "alltools", "bm25"):
        document = tau_results(MIXED, ["one", "two"])
        document["info"]["retrieval_config"] = retrieval
        put(tmp_path / "elsewhere/results.json", document)
        kept.append(store_rows(store, collect("tau3-banking", tmp_path / "elsewhere")).uri)

    assert kept[0] == kept[2] != kept[1]
    found = [collection.setting["retrieval"] for collection in stored_collections(store)]
    assert sorted(map(str, found)) == ["alltools", "bm25"]
    assert len(compare_collections(stored_collections(store))) > 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        pytest.param(["tau3-banking"], "say who is evaluated: --model NAME", id="nobody"),
        pytest.param(["tau3-banking", "--model", "m"], "github.com/sierra-research/tau2-bench", id="no harness"),
        pytest.param(
            ["tau3-banking", "--model", "m", "--harness", "."], "llm.models has no 'm'; there is none", id="no model"
        ),
        pytest.param(["--results", "x"], "--results: name the benchmark", id="results of nothing"),
        pytest.param(["tau3-banking", "--results", "no/such"], "no/such: there is no such folder", id="no folder"),
    ],
)
def test_orders_that_cannot_be_met_are_refused(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, arguments: list[str], said: str
) -> None:
    for variable in ("HARNESS_DIR", "HARNESS_PYTHON", "HARNESS_REVISION"):
        monkeypatch.delenv(variable, raising=False)

    assert said in told(capsys, *arguments, code=2)["error"]
