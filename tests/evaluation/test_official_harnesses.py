"""Official harnesses against a scripted server: `HARNESS_TAU3` and `HARNESS_VITABENCH` name folders that hold them.

Each is a checkout of the pinned revision with its environment in `.venv`, made as docs/evaluation.md says.
"""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.cli import run_cli
from compoworld_core.evaluation.benchmarks import benchmark
from compoworld_core.storage.digest import JsonObject
from tests.evaluation.benchmarks.written import CANARY
from tests.llm_server.reply import Reply, Script
from tests.llm_server.server import LlmServer

pytestmark = pytest.mark.components


def harness(variable: str) -> Path:
    folder = os.environ.get(variable)
    if not folder:
        pytest.skip(f"{variable} names no harness")
    return Path(folder)


def turns(request: JsonObject) -> int:
    return sum(message["role"] == "assistant" for message in request["messages"])


class Customer:
    """Plays a customer of the bank, who applies for the right card in the first trial of a task and not in the second.

    Args:
        folder: The harness, whose tasks tell which card that is.
    """

    def __init__(self, folder: Path) -> None:
        files = (folder / "data/tau2/domains/banking_knowledge/tasks").glob("task_*.json")
        tasks = [json.loads(file.read_text()) for file in sorted(files)[:2]]
        self._actions = [task["evaluation_criteria"]["actions"][0] for task in tasks]
        self._begun: Counter[str] = Counter()

    def __call__(self, request: JsonObject) -> Reply:
        told = request["messages"][0]["content"]
        action = next(item for item in self._actions if item["arguments"]["customer_name"] in told)
        if turns(request) == 0:
            self._begun[action["action_id"]] += 1
            if self._begun[action["action_id"]] == 1:
                return Reply(tool_calls=[(action["name"], action["arguments"])])
            return Reply(content="What cards do you have?")
        return Reply(content="Thank you, that is all. ###STOP###")


class Judge:
    """Grants all in the first trial, later the first rubric alone."""

    def __init__(self) -> None:
        self._judged = 0

    def __call__(self, request: JsonObject) -> Reply:
        self._judged += 1
        listed = re.search(r"<current_rubrics>(.*?)</current_rubrics>", request["messages"][-1]["content"], re.S)
        assert listed is not None
        found = [
            {
                "rubric_idx": rubric["rubric_idx"],
                "justification": "so",
                "meetExpectation": self._judged == 1 or index == 0,
            }
            for index, rubric in enumerate(json.loads(listed[1]))
        ]
        return Reply(content=json.dumps(found))


def config_of(**models: LlmServer) -> str:
    """A configuration that names scripted models."""
    endpoints = {name: [{"base_url": server.base_url, "key_env": "SCRIPT_KEY"}] for name, server in models.items()}
    return json.dumps(
        {"llm": {"models": {name: {"model": name, "endpoints": found} for name, found in endpoints.items()}}}
    )


def evaluate(capsys: pytest.CaptureFixture[str], tmp_path: Path, *arguments: str, **models: LlmServer) -> Any:
    config = tmp_path / "config.yaml"
    config.write_text(config_of(**models))
    code = run_cli(
        ["evaluate", *arguments, "--config", str(config), "--limit", "2", "--trials", "2", "--concurrency", "1",
         "--out", str(tmp_path / "out"), "--store", str(tmp_path / "store"), "--json"]
    )  # fmt: skip
    out, err = capsys.readouterr()
    assert code == 0, err
    return json.loads(out)


def test_tau3_banking_runs_and_gives_the_rows_that_the_script_earns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = harness("HARNESS_TAU3")
    monkeypatch.setenv("SCRIPT_KEY", CANARY)
    scripts: dict[str, Script] = {
        "agent": lambda _: Reply(content="The card that you name."),
        "customer": Customer(folder),
    }

    with LlmServer(scripts, keys=[CANARY]) as server:
        told = evaluate(
            capsys, tmp_path, "tau3-banking", "--model", "agent", "--user", "customer", "--harness", str(folder),
            agent=server, customer=server,
        )  # fmt: skip

    figures = {metric["name"]: metric["value"] for metric in (told["headline"], *told["metrics"])}
    assert figures == {"pass^1": 0.5, "pass^2": 0.0}
    assert (told["trials"], told["errors"], told["drops"], told["missing"]) == (4, [], [], [])
    assert told["setting"]["retrieval"] == "bm25"
    rows = benchmark("tau3-banking").collect(tmp_path / "out").rows
    assert Counter((row.task, row.passed) for row in rows) == Counter(
        {(task, passed): 1 for task in ("task_001", "task_002") for passed in (True, False)}
    )
    assert all(row.steps == 1 and row.prompt_tokens for row in rows if not row.passed)
    assert not any(CANARY in file.read_text() for file in (tmp_path / "out").rglob("*") if file.is_file())


def test_vitabench_runs_and_gives_the_rows_that_the_judge_grants(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = harness("HARNESS_VITABENCH")
    monkeypatch.setenv("SCRIPT_KEY", CANARY)
    scripts: dict[str, Script] = {
        "agent": lambda _: Reply(content="Your order is placed."),
        "customer": lambda request: Reply(content="Thanks. ###STOP###" if turns(request) else "Please order."),
        "judge": Judge(),
    }

    with LlmServer(scripts, keys=[CANARY]) as server:
        told = evaluate(
            capsys, tmp_path, "vitabench", "--model", "agent", "--user", "customer", "--judge", "judge",
            "--harness", str(folder), "--revision", benchmark("vitabench").pin.commit or "",
            "--option", "domains=delivery", agent=server, customer=server, judge=server,
        )  # fmt: skip

    figures = {metric["name"]: metric["value"] for metric in (told["headline"], *told["metrics"])}
    assert figures == {"Avg@2": 0.25, "pass@1": 0.25, "pass@2": 0.5, "pass^1": 0.25, "pass^2": 0.0}
    assert (told["trials"], told["errors"], told["drops"], told["missing"]) == (4, [], [], [])
    rows = benchmark("vitabench").collect(tmp_path / "out").rows
    assert [row.passed for row in rows] == [True, False, False, False]
    assert all(row.criteria[0] and 0 < (row.score or 0) < 1 for row in rows[1:])
    assert told["setting"] | {"language": "english", "judge": "judge", "user": "customer"} == told["setting"]
    results = (tmp_path / "out/delivery-000/results.json").read_text()
    assert "[secret]" in results
    assert not any(CANARY in file.read_text() for file in (tmp_path / "out").rglob("*") if file.is_file())
