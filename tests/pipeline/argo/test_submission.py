"""Submitting, asking, reading logs and stopping, against a server that speaks Argo's REST API; and when it fails."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.cli import run_app, run_cli
from compoworld_core.pipeline.argo.render import rendered
from compoworld_core.pipeline.argo.settings import ClusterSettings
from compoworld_core.verbs.workflow import hera_submit
from tests.pipeline.argo.argo_server import TOKEN, Script, argo_server

pytestmark = pytest.mark.filterwarnings("ignore:The `json` method is deprecated")  # Hera's own

FILE = """
from hera.workflows import Container, Parameter, Workflow, WorkflowTemplate
from hera.workflows.models import WorkflowTemplateRef

run = Workflow(generate_name="hello-", workflow_template_ref=WorkflowTemplateRef(name="hello"))
template = WorkflowTemplate(
    name="hello", entrypoint="say", arguments=[Parameter(name="word", value="hello")],
    templates=[Container(name="say", image="busybox:1.36", command=["echo"])],
)
"""

Said = tuple[int, str, str]


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> Iterator[Script]:
    with argo_server() as script:
        monkeypatch.setenv("ARGO_SERVER", script.url)
        monkeypatch.setenv("ARGO_TOKEN", TOKEN)
        monkeypatch.setenv("ARGO_NAMESPACE", "lab")
        yield script


@pytest.fixture
def workflow(capsys: pytest.CaptureFixture[str]) -> Callable[..., Said]:
    def run(*arguments: str) -> Said:
        code = run_cli(["workflow", *arguments])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def running(script: Script) -> dict[str, Any]:
    (found,) = (item for (kind, _, _), item in script.objects.items() if kind == "workflows")
    return found


def test_a_run_refers_to_the_template_and_carries_what_was_said(script: Script, workflow: Callable[..., Said]) -> None:
    code, out, err = workflow("submit", "-p", "store=s3://lab/run", "--until", "distill")

    assert (code, err) == (0, "")
    assert out == "Workflow/compoworld-x7k2q\n"
    spec = running(script)["spec"]
    assert spec["workflowTemplateRef"] == {"name": "compoworld"}
    assert {item["name"]: item["value"] for item in spec["arguments"]["parameters"]} == {
        "store": "s3://lab/run",
        "until": "distill",
    }


def test_what_is_installed_is_what_is_rendered_and_is_replaced_the_next_time(
    script: Script, workflow: Callable[..., Said]
) -> None:
    for _ in range(2):
        script.objects.pop(("workflows", "lab", "compoworld-x7k2q"), None)
        code, _, err = workflow("submit", "--install")
        assert code == 0, err

    expected = json.loads(json.dumps(rendered(ClusterSettings())))
    for kind, name, file in (
        ("workflow-templates", "compoworld", "workflow-template.yaml"),
        ("cron-workflows", "compoworld-nightly", "nightly.yaml"),
        ("cron-workflows", "compoworld-janitor", "janitor.yaml"),
    ):
        found = script.objects[kind, "lab", name]
        assert found["metadata"]["resourceVersion"] == "2"
        assert found["spec"] == expected[file]["spec"]


@pytest.mark.parametrize(
    ("parameter", "problem"),
    [("sed=1", "-p sed: there is no such parameter; there is attempt,"), ("seed", "-p seed: write key=value")],
)
def test_a_parameter_that_nobody_knows_never_reaches_the_server(
    script: Script, workflow: Callable[..., Said], parameter: str, problem: str
) -> None:
    code, _, err = workflow("submit", "-p", parameter)

    assert code == 2
    assert problem in err
    assert script.asked == []


@pytest.mark.parametrize(
    ("fault", "exit_code", "problem"),
    [
        (400, 2, "refuses"),
        (403, 2, "set ARGO_TOKEN, or --token-file"),
        (404, 2, "has no such thing in namespace lab"),
        (500, 75, "cannot do this now"),
        (503, 75, "cannot do this now"),
        (0, 75, "gives no answer"),
        (302, 2, "sends elsewhere"),
    ],
)
def test_a_server_that_fails_is_told_apart_from_one_that_refuses(
    script: Script, workflow: Callable[..., Said], fault: int, exit_code: int, problem: str
) -> None:
    script.faults = [fault]

    code, _, err = workflow("submit")

    assert (code, problem in err) == (exit_code, True), err
    assert TOKEN not in err
    assert len(script.asked) == 1  # a second attempt could start a second run


def test_a_wrong_token_is_told_and_not_shown(
    script: Script, workflow: Callable[..., Said], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("ARGO_TOKEN", "guessed")

    code, _, err = workflow("status")
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    trusted, _, _ = workflow("status", "--token-file", str(tmp_path / "token"))

    assert (code, trusted) == (2, 0)
    assert "token not valid" in err
    assert "guessed" not in err


def test_nobody_listening_is_passing(workflow: Callable[..., Said]) -> None:
    code, _, err = workflow("status", "--server", "http://127.0.0.1:1")

    assert code == 75
    assert "gives no answer" in err


def test_status_names_what_failed(script: Script, workflow: Callable[..., Said]) -> None:
    nodes = {
        "a": {"type": "Pod", "phase": "Succeeded", "displayName": "plan"},
        "b": {"type": "Pod", "phase": "Failed", "displayName": "shards(3:3)", "message": "Error (exit code 2)"},
        "c": {"type": "DAG", "phase": "Failed", "displayName": "crawl"},
    }
    script.objects["workflows", "lab", "run-1"] = {
        "metadata": {"name": "run-1", "creationTimestamp": "2026-11-30T02:00:00Z"},
        "spec": {},
        "status": {"phase": "Failed", "progress": "1/2", "nodes": nodes},
    }

    _, listed, _ = workflow("status")
    _, told, _ = workflow("status", "run-1", "--json")

    assert listed.split() == ["run-1", "Failed", "1/2"]
    assert json.loads(told)["failed"] == [{"pod": "shards(3:3)", "message": "Error (exit code 2)"}]
    assert json.loads(told)["pods"] == {"Succeeded": 1, "Failed": 1}
    assert workflow("status", "run-2")[0] == 2


def test_logs_come_line_by_line_and_their_end_is_told(script: Script, workflow: Callable[..., Said]) -> None:
    script.objects["workflows", "lab", "run-1"] = {"metadata": {"name": "run-1"}, "spec": {}}
    script.logs = [{"result": {"podName": "p", "content": word}} for word in ("one", "two")]

    assert workflow("logs", "run-1") == (0, "p: one\np: two\n", "")
    script.logs.append({"error": {"message": "the pod is gone"}})
    code, out, err = workflow("logs", "run-1")

    assert (code, out) == (1, "p: one\np: two\n")
    assert "the pod is gone" in err


@pytest.mark.parametrize(("options", "how"), [((), "Stop"), (("--now",), "Terminate")])
def test_stopping(script: Script, workflow: Callable[..., Said], options: tuple[str, ...], how: str) -> None:
    script.objects["workflows", "lab", "run-1"] = {"metadata": {"name": "run-1"}, "spec": {}}

    code, _, err = workflow("stop", "run-1", *options)

    assert code == 0, err
    assert script.objects["workflows", "lab", "run-1"]["spec"]["shutdown"] == how


# Files of Hera's


def test_a_file_is_submitted_templates_first(
    script: Script, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hello.py").write_text(FILE)

    code = run_app(hera_submit, [str(tmp_path / "hello.py"), "-p", "word=bye"], "hera-submit")

    said = capsys.readouterr()
    assert code == 0, said.err
    assert said.out.split() == ["WorkflowTemplate/hello", "Workflow/hello-x7k2q"]
    assert running(script)["spec"]["arguments"]["parameters"] == [{"name": "word", "value": "bye"}]


@pytest.mark.parametrize(
    ("source", "arguments", "problem"),
    [
        ("x = 1", (), "makes no workflow"),
        ("import nothing_like_it", (), "cannot be run: ModuleNotFoundError"),
        (FILE, ("-p", "wort=bye"), "there is no such parameter; there is word"),
    ],
    ids=["no workflow", "cannot be run", "unknown parameter"],
)
def test_a_file_that_cannot_be_submitted_is_refused(
    script: Script,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    source: str,
    arguments: tuple[str, ...],
    problem: str,
) -> None:
    (tmp_path / "hello.py").write_text(source)

    code = run_app(hera_submit, [str(tmp_path / "hello.py"), *arguments], "hera-submit")

    assert code == 2
    assert problem in capsys.readouterr().err
    assert script.asked == []


def test_our_file_works_with_hera_itself() -> None:
    from compoworld_core.pipeline.argo import pipeline

    command = [str(Path(sys.executable).with_name("hera")), "generate", "yaml", str(pipeline.__file__)]
    made = subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert [line for line in made.splitlines() if line.startswith("kind:")] == [
        "kind: WorkflowTemplate",
        "kind: Workflow",
        "kind: CronWorkflow",
        "kind: CronWorkflow",
    ]
