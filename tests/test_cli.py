"""The command line answers mistakes with one message and the right exit code, and never with a traceback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compoworld_core import __version__
from compoworld_core.cli import run_cli
from compoworld_core.errors import IsolationError
from compoworld_core.pipeline import bench, doctor
from compoworld_core.pipeline.bench import BenchResult, measure
from compoworld_core.pipeline.wording import counted

VERBS = (
    "run",
    "crawl",
    "synthesize",
    "validate",
    "sample-tasks",
    "distill",
    "report",
    "export",
    "export-model",
    "cost",
    "plan-training",
    "bench",
    "doctor",
)


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test writes into the checkout or is configured by its surroundings."""
    monkeypatch.chdir(tmp_path)
    for name in os.environ:
        if name.startswith(("COMPOWORLD_", "AWS_")):
            monkeypatch.delenv(name)


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    code = run_cli(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "--version") == (0, f"compoworld {__version__}\n", "")


@pytest.mark.parametrize(
    ("model", "told"),
    [("best", "--model best: there are base, sft, grpo"), ("grpo", "needs specs, which")],
    ids=["no such model", "not trained"],
)
def test_a_model_that_is_not_there_cannot_be_exported(
    model: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, "export-model", "--model", model, "--out", "model", "--store", "nothing")

    assert code == 2
    assert told in err
    assert not Path("model").exists()


def test_help_names_every_verb(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "--help")

    assert code == 0
    assert all(f" {verb} " in out for verb in VERBS)


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_has_help(capsys: pytest.CaptureFixture[str], verb: str) -> None:
    code, out, err = run(capsys, verb, "--help")

    assert (code, err) == (0, "")
    assert "--json" in out


def test_help_loads_nothing_heavy() -> None:
    program = (
        "import sys; from compoworld_core.cli import run_cli; run_cli(['--help']); "
        "print(sorted({'pyarrow', 'boto3', 'networkx', 'jinja2', 'jsonschema_rs'} & set(sys.modules)))"
    )

    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout

    assert out.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("arguments", "exit_code", "message"),
    [
        pytest.param(["crawl", "--stoer", "x"], 2, "No such option", id="unknown option"),
        pytest.param(["fly"], 2, "No such command", id="unknown verb"),
        pytest.param(["crawl", "--limit", "many"], 2, "Invalid value", id="not a number"),
        pytest.param(["crawl", "--limit", "0"], 2, "--limit: crawl.limit: 0 is too small", id="too few"),
        pytest.param(["run", "--workers", "0"], 2, "--workers: workers: 0 is too small", id="no workers"),
        pytest.param(["run", "--config", "absent.yaml"], 2, "absent.yaml: cannot be read", id="missing config"),
        pytest.param(["run", "--config", "broken.yaml"], 2, "broken.yaml:3: is not YAML", id="broken config"),
        pytest.param(
            ["run", "--config", "typo.yaml"],
            2,
            "typo.yaml:2: crawl.sorce: no such key",
            id="typo",
        ),
        pytest.param(["crawl", "--store", "gs://bucket"], 2, "gs://bucket: not a store", id="unknown store"),
        pytest.param(["crawl", "--store", "typo.yaml/x"], 2, "typo.yaml/x", id="store under a file"),
        pytest.param(["crawl", "--source", "nowhere"], 2, "source 'nowhere': not known", id="unknown source"),
        pytest.param(["crawl", "--source", "ftp://x"], 2, "not known; use `bundled`, `jsonl:", id="unknown scheme"),
        pytest.param(["crawl", "--source", "stdo:npx:@a/b"], 2, "not known; use `bundled`", id="mistyped scheme"),
        pytest.param(["crawl", "--source", "absent.jsonl"], 2, "absent.jsonl: there is no such file", id="no source"),
        pytest.param(["validate", "--store", "s"], 2, "\n  compoworld crawl --store s\n", id="inputs missing"),
        pytest.param(["export", "--store", "s", "--out", "a.csv"], 2, "ends in .jsonl or .parquet", id="unknown form"),
        pytest.param(["export", "--store", "s", "--out", "a.jsonl"], 2, "run `compoworld run` first", id="no run"),
        pytest.param(["export", "--store", "s", "--out", "typo.yaml"], 2, "ends in", id="not a data file"),
        pytest.param(["export", "--store", "s", "--out", "no/a.jsonl"], 2, "there is no folder", id="no folder"),
        pytest.param(["export", "--store", "s", "--out", "old.jsonl"], 2, "is there already", id="file is there"),
        pytest.param(
            ["export", "--out", "a.jsonl", "--split", "eval_combo"], 2, "--split: export.split: ", id="evaluation"
        ),
        pytest.param(
            ["export", "--out", "a.jsonl", "--per-task", "0"],
            2,
            "--per-task: export.per_task: 0 is",
            id="none of a task",
        ),
        pytest.param(
            ["export", "--out", "a.jsonl", "--count", "0"], 2, "--count: export.count: 0 is", id="none in all"
        ),
        pytest.param(["cost", "run_1", "--store", "s"], 2, "has no run 'run_1'", id="cost of no run"),
    ],
)
def test_a_mistake_is_one_message_and_an_exit_code(
    capsys: pytest.CaptureFixture[str], arguments: list[str], exit_code: int, message: str
) -> None:
    Path("broken.yaml").write_text("crawl:\n  source: [a\n")
    Path("typo.yaml").write_text("crawl:\n  sorce: bundled\n")
    Path("old.jsonl").touch()

    code, out, err = run(capsys, *arguments)

    assert (code, out) == (exit_code, "")
    assert err.startswith("compoworld: ")
    assert message in err
    assert "Traceback" not in err
    assert sorted(path.name for path in Path().iterdir()) == ["broken.yaml", "old.jsonl", "typo.yaml"], (
        "nothing is made"
    )


def test_a_bucket_that_does_not_answer_is_worth_another_try(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
        "AWS_ACCESS_KEY_ID": "a",
        "AWS_SECRET_ACCESS_KEY": "b",
    }.items():
        monkeypatch.setenv(name, value)

    code, _, err = run(capsys, "crawl", "--store", "s3://bucket/prefix")

    assert code == 75
    assert "no answer" in err
    assert "Traceback" not in err


def test_with_json_a_mistake_is_one_document_too(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run(capsys, "crawl", "--store", "gs://bucket", "--json")

    document = json.loads(out)
    assert document["exit_code"] == code == 2
    assert document["error"] in err


def test_debug_shows_the_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    _, _, err = run(capsys, "crawl", "--store", "gs://bucket", "--debug")

    assert "Traceback" in err


def test_a_stage_says_what_it_made(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run(capsys, "crawl", "--store", "s", "--limit", "2", "--json")

    document = json.loads(out)
    assert code == 0
    assert document["skipped"] is False
    assert document["datasets"]["specs"]["rows"] == 2
    assert document["datasets"]["specs"]["uri"].startswith(Path("s").absolute().as_uri())


def test_what_a_stage_lacks_is_told_with_the_verb_and_the_options_that_were_typed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("my settings.yaml").write_text("tasks: {count: 2}\n")
    given = ["--config", "my settings.yaml", "--store", "s", "--limit", "2"]
    assert run(capsys, "crawl", *given)[0] == 0

    code, _, err = run(capsys, "sample-tasks", *given)

    typed = "--config 'my settings.yaml' --store s --limit 2"
    assert code == 2
    assert err.startswith("compoworld: sample-tasks needs services and verifications, which ")
    assert err.splitlines()[1:] == [
        f"  compoworld synthesize {typed}",
        f"  compoworld validate {typed}",
        "or everything at once:",
        f"  compoworld run {typed}",
    ]


def test_a_thing_is_told_in_the_singular(capsys: pytest.CaptureFixture[str]) -> None:
    tool = {"name": "get_a", "description": "A.", "inputSchema": {"type": "object", "properties": {}}}
    Path("one.jsonl").write_text(json.dumps({"server": "one", "tools": [tool]}) + "\nnot JSON\n")

    code, out, err = run(capsys, "crawl", "--store", "s", "--source", "one.jsonl")

    assert code == 0
    assert [line.split("file:")[0].strip() for line in out.splitlines()] == ["1 spec", "1 rejection"]
    assert "1 spec, 1 rejection" in " ".join(err.split())


@pytest.mark.parametrize(
    ("number", "things", "told"),
    [(1, "trajectories", "1 trajectory"), (2, "tasks", "2 tasks"), (1, "verified tools", "1 verified tool")],
)
def test_numbers_agree_with_their_nouns(number: int, things: str, told: str) -> None:
    assert counted(number, things) == told


def test_doctor_finds_this_machine_fit_and_changes_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    Path("s").mkdir()

    code, out, _ = run(capsys, "doctor", "--store", "s", "--json")

    checks = json.loads(out)
    assert code == 0
    assert {name for name, about in checks.items() if not about["is_optional"]} == {"python", "isolation", "store"}
    optional = {"cells", "node", "npm", "pip", "pi", "training", "vllm"}
    assert {name for name, about in checks.items() if about["is_optional"]} == optional
    assert not list(Path("s").iterdir())


@pytest.mark.parametrize(
    ("store", "exit_code", "told"),
    [
        pytest.param("typo/of/a/path", 0, "is not there yet; a run makes it", id="not there"),
        pytest.param("file/below", 2, "is a file; choose another place", id="under a file"),
        pytest.param("gs://bucket", 2, "MISSING  store      gs://bucket: not a store", id="no store"),
    ],
)
def test_doctor_looks_at_a_store_without_making_it(
    capsys: pytest.CaptureFixture[str], store: str, exit_code: int, told: str
) -> None:
    Path("file").touch()

    code, out, _ = run(capsys, "doctor", "--store", store)

    assert code == exit_code
    assert told in out
    assert [path.name for path in Path().iterdir()] == ["file"]


def test_doctor_says_what_is_lost_without_what_only_some_sources_need(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_cell() -> None:
        raise IsolationError("third-party servers can't be confined here")

    monkeypatch.setattr(doctor, "cell_builder", no_cell)
    monkeypatch.setattr("shutil.which", lambda program: None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    code, out, _ = run(capsys, "doctor")

    assert code == 0
    without = {
        "cells": "stdio:…",
        "node": "stdio:npx:…",
        "npm": "stdio:npx:…",
        "pip": "stdio:pypi:…",
        "pi": "author: pi",
        "training": "sft, grpo",
        "vllm": "generation: colocate, server",
    }
    for name, lost in without.items():
        lines = out.splitlines()
        place = next(place for place, line in enumerate(lines) if line.startswith(f"absent   {name} "))
        assert lost in lines[place + 1]


def test_doctor_wants_a_node_for_pi_that_is_new_enough(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    node = Path("bin", "node").absolute()
    node.parent.mkdir()
    node.write_text("#!/bin/sh\necho v22.18.9\n")
    node.chmod(0o755)
    monkeypatch.setattr("shutil.which", lambda program: str(node) if program == "node" else None)
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)

    _, out, _ = run(capsys, "doctor", "--json")

    checks = json.loads(out)
    assert checks["node"]["is_fine"]
    assert not checks["pi"]["is_fine"]
    assert "node 22.19.0 or later is needed, found 22.18.9" in checks["pi"]["found"]


def test_bench_measures_every_number() -> None:
    result = measure(rows=100, batches=2, calls=3)

    assert set(BenchResult.model_fields) == set(result.model_dump())
    assert all(value > 0 for value in result.model_dump().values())


@pytest.mark.parametrize(("ratio", "fork_ratio", "slow"), [(0.2, 2.0, 0), (0.19, 1.0, 1), (0.5, 2.1, 1)])
def test_bench_gives_units_what_is_wanted_and_a_verdict(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, ratio: float, fork_ratio: float, slow: int
) -> None:
    numbers = dict.fromkeys(BenchResult.model_fields, 1000.0)
    result = BenchResult.model_validate({**numbers, "rows": 1000, "update_ratio": ratio, "fork_ratio": fork_ratio})
    monkeypatch.setattr(bench, "measure", lambda: result)

    code, out, _ = run(capsys, "bench")

    assert code == 0
    assert (out.count("TOO SLOW"), out.count(" fine ")) == (slow, 2 - slow)
    assert all(unit in out for unit in ("calls/s", "forks/s", "µs", "0.2 or more is wanted", "2 or less is wanted"))


def test_bench_for_machines_has_the_numbers_as_measured(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    result = BenchResult.model_validate(dict.fromkeys(BenchResult.model_fields, 7))
    monkeypatch.setattr(bench, "measure", lambda: result)

    _, out, _ = run(capsys, "bench", "--json")

    assert json.loads(out) == result.model_dump()
