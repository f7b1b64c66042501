"""`compoworld workflow`: the pipeline on a cluster, as Argo workflows; and `hera-submit` for files of Hera's."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from compoworld_core.errors import CompoWorldError, InputError

if TYPE_CHECKING:
    from compoworld_core.pipeline.argo.server import ArgoServer

app = typer.Typer(help="Run the pipeline on a cluster, as Argo workflows (needs the extra `cluster`).")

_SettingsOption = Annotated[
    Path | None, typer.Option("--settings", help="YAML file about the cluster; CW_CLUSTER if left out.")
]
_ServerOption = Annotated[str | None, typer.Option("--server", help="Of Argo; ARGO_SERVER if left out.")]
_NamespaceOption = Annotated[str | None, typer.Option("--namespace", "-n", help="ARGO_NAMESPACE if left out.")]
_TokenOption = Annotated[
    Path | None, typer.Option("--token-file", help="File with the token; the variable ARGO_TOKEN if left out.")
]
_CaOption = Annotated[Path | None, typer.Option("--ca", help="Certificates that sign the server's.")]
_ParameterOption = Annotated[
    list[str] | None, typer.Option("--parameter", "-p", help="key=value of the workflow; repeatable.")
]
_JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")]
_DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]


@app.command()
def render(
    out: Annotated[Path, typer.Option("--out", help="Folder for the files.")],
    settings: _SettingsOption = None,
    as_json: _JsonOption = False,
    debug: _DebugOption = False,
) -> None:
    """Write the workflows as YAML."""
    _require_hera()
    from compoworld_core.pipeline.argo.render import rendered, write
    from compoworld_core.pipeline.argo.settings import load_settings

    paths = write(rendered(load_settings(settings)), out)
    _say({"files": [str(path) for path in paths]}, [str(path) for path in paths], as_json)


@app.command("lint")
def lint_files(
    files: Annotated[list[Path], typer.Argument(metavar="FILE", help="Workflows, as YAML or in Python.")],
    schemas: Annotated[
        Path | None, typer.Option("--schemas", help="Folder with JSON Schemas of the kinds, to check the form too.")
    ] = None,
    as_json: _JsonOption = False,
    debug: _DebugOption = False,
) -> int:
    """Say what is wrong with workflows, alone and together."""
    _require_hera()
    from compoworld_core.pipeline.argo.lint import lint
    from compoworld_core.pipeline.argo.render import documents_of

    findings = lint(((str(path), document) for path in files for document in documents_of(path)), schemas)
    shown = [{"file": item.file, "place": item.place, "rule": item.rule, "problem": item.problem} for item in findings]
    _say({"findings": shown}, [*map(str, findings)] or ["nothing is wrong"], as_json)
    return CompoWorldError.exit_code if findings else 0


@app.command()
def submit(
    parameter: _ParameterOption = None,
    start: Annotated[str | None, typer.Option("--from", help="The first stage.")] = None,
    end: Annotated[str | None, typer.Option("--until", help="The last stage.")] = None,
    only: Annotated[str | None, typer.Option("--only", help="The only stage.")] = None,
    install: Annotated[
        bool, typer.Option("--install", help="Create or replace template and schedules before; a chart does it, too.")
    ] = False,
    settings: _SettingsOption = None,
    server: _ServerOption = None,
    namespace: _NamespaceOption = None,
    token_file: _TokenOption = None,
    ca: _CaOption = None,
    as_json: _JsonOption = False,
    debug: _DebugOption = False,
) -> None:
    """Start a run of the pipeline."""
    _require_hera()
    from compoworld_core.pipeline.argo import pipeline, submission
    from compoworld_core.pipeline.argo.settings import load_settings

    known = load_settings(settings)
    stages = {"from": start, "until": end, "only": only}
    given = {**submission.pairs(parameter or ()), **{name: value for name, value in stages.items() if value}}
    template, run = pipeline.build_template(known), pipeline.build_workflow(known)
    submission.with_parameters([template, run], given)  # says now what the cluster would say later
    workflows = [run]
    if install:
        workflows = [template, pipeline.build_nightly(known), pipeline.build_janitor(known), run]
    with _open(server, namespace, token_file, ca) as argo:
        submitted = submission.submit(argo, workflows, {})
    _say({"submitted": submitted}, submitted, as_json)


@app.command()
def status(
    name: Annotated[str | None, typer.Argument(metavar="WORKFLOW", help="Which one; all if left out.")] = None,
    server: _ServerOption = None,
    namespace: _NamespaceOption = None,
    token_file: _TokenOption = None,
    ca: _CaOption = None,
    as_json: _JsonOption = False,
    debug: _DebugOption = False,
) -> None:
    """Say how workflows are doing, and what failed in one."""
    _require_hera()
    with _open(server, namespace, token_file, ca) as argo:
        if name is None:
            found = [_summary(item) for item in argo.workflows("app.kubernetes.io/part-of=compoworld")]
            lines = [f"{item['name']:<40} {item['phase']:<10} {item['progress']}" for item in found]
            _say({"workflows": found}, lines or ["there is no workflow"], as_json)
            return
        workflow = argo.workflow(name)
    nodes = [node for node in (workflow.get("status", {}).get("nodes") or {}).values() if node.get("type") == "Pod"]
    failed = [
        {"pod": node.get("displayName", ""), "message": node.get("message", "")}
        for node in nodes
        if node.get("phase") in ("Failed", "Error")
    ]
    summary = {**_summary(workflow), "pods": dict(Counter(node.get("phase", "") for node in nodes)), "failed": failed}
    lines = [f"{summary['name']} {summary['phase']} {summary['progress']}".rstrip()]
    lines += [summary["message"]] if summary["message"] else []
    lines += [f"  {item['pod']}: {item['message']}" for item in failed]
    _say(summary, lines, as_json)


@app.command()
def logs(
    name: Annotated[str, typer.Argument(metavar="WORKFLOW")],
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on until the workflow is over.")] = False,
    server: _ServerOption = None,
    namespace: _NamespaceOption = None,
    token_file: _TokenOption = None,
    ca: _CaOption = None,
    debug: _DebugOption = False,
) -> None:
    """Print what the pods of a workflow say."""
    _require_hera()
    with _open(server, namespace, token_file, ca) as argo:
        for pod, line in argo.logs(name, follow=follow):
            sys.stdout.write(f"{pod}: {line}\n")
            sys.stdout.flush()


@app.command()
def stop(
    name: Annotated[str, typer.Argument(metavar="WORKFLOW")],
    now: Annotated[bool, typer.Option("--now", help="Without its exit handler, which tells and clears away.")] = False,
    server: _ServerOption = None,
    namespace: _NamespaceOption = None,
    token_file: _TokenOption = None,
    ca: _CaOption = None,
    as_json: _JsonOption = False,
    debug: _DebugOption = False,
) -> None:
    """Stop a workflow; what was committed stays."""
    _require_hera()
    with _open(server, namespace, token_file, ca) as argo:
        argo.stop(name, at_once=now)
    _say({"stopped": name}, [f"{name} is told to stop"], as_json)


hera_submit = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None)


@hera_submit.command()
def submit_file(
    file: Annotated[Path, typer.Argument(metavar="FILE.py", help="All module-level workflows in it are submitted.")],
    parameter: _ParameterOption = None,
    server: _ServerOption = None,
    namespace: _NamespaceOption = None,
    token_file: _TokenOption = None,
    ca: _CaOption = None,
    as_json: _JsonOption = False,
    debug: _DebugOption = False,
) -> None:
    """Submit the workflows of a Python file to an Argo server, templates and schedules included."""
    _require_hera()
    from compoworld_core.pipeline.argo import submission

    given = submission.pairs(parameter or ())
    with _open(server, namespace, token_file, ca) as argo:
        submitted = submission.submit_file(argo, file, given)
    _say({"submitted": submitted}, submitted, as_json)


def main() -> None:
    """Run `hera-submit`."""
    from compoworld_core.cli import run_app

    sys.exit(run_app(hera_submit, sys.argv[1:], "hera-submit"))


def _open(server: str | None, namespace: str | None, token_file: Path | None, ca: Path | None) -> ArgoServer:
    from compoworld_core.pipeline.argo.server import Access, ArgoServer

    return ArgoServer(Access.found(server, namespace, token_file, ca))


def _summary(workflow: dict[str, Any]) -> dict[str, Any]:
    status = workflow.get("status") or {}
    return {
        "name": workflow["metadata"]["name"],
        "phase": status.get("phase", "Pending"),
        "progress": status.get("progress", ""),
        "started": status.get("startedAt"),
        "finished": status.get("finishedAt"),
        "message": status.get("message", ""),
    }


def _say(document: dict[str, Any], lines: list[str], as_json: bool) -> None:
    text = json.dumps(document, ensure_ascii=False, indent=2) if as_json else "\n".join(lines)
    sys.stdout.write(f"{text}\n")


def _require_hera() -> None:
    if importlib.util.find_spec("hera") is None:
        raise InputError("workflows need Hera: run `pip install 'compoworld[cluster]'`")
