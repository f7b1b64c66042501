"""Submitting: the parameters of people go to the workflows that know them, then all goes to the server."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from hera.workflows import CronWorkflow, Parameter, Workflow, WorkflowTemplate

from compoworld_core.errors import InputError
from compoworld_core.pipeline.argo.render import workflows_of
from compoworld_core.pipeline.argo.server import ArgoServer


def pairs(texts: Iterable[str]) -> dict[str, str]:
    """`key=value` of a command line.

    Raises:
        InputError: There is no `=`.
    """
    found = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals or not key:
            raise InputError(f"-p {text}: write key=value")
        found[key] = value
    return found


def with_parameters(workflows: Sequence[Workflow], given: Mapping[str, str]) -> None:
    """Set parameters of the workflows that run now; templates and schedules keep theirs.

    Raises:
        InputError: No such workflow is there, or none of them nor their templates know a parameter.
    """
    if not given:
        return
    running = [item for item in workflows if not isinstance(item, WorkflowTemplate | CronWorkflow)]
    if not running:
        raise InputError("-p: there is no Workflow that could have parameters; templates and schedules keep theirs")
    known = {str(item.name) for workflow in workflows for item in _parameters(workflow)}
    refers = {item.workflow_template_ref.name for item in running if item.workflow_template_ref}
    is_whole = refers <= {item.name for item in workflows if isinstance(item, WorkflowTemplate)}
    if is_whole and (unknown := sorted(given.keys() - known)):
        names = ", ".join(sorted(known)) or "none"
        raise InputError(f"-p {unknown[0]}: there is no such parameter; there is {names}")
    for workflow in running:
        kept = [item for item in _parameters(workflow) if item.name not in given]
        workflow.arguments = [*kept, *(Parameter(name=name, value=value) for name, value in given.items())]


def submit_file(server: ArgoServer, path: Path, given: Mapping[str, str]) -> list[str]:
    """Submit all workflows of a Python file; each as `Kind/name`."""
    return submit(server, workflows_of(path), given)


def submit(server: ArgoServer, workflows: Sequence[Workflow], given: Mapping[str, str]) -> list[str]:
    """Submit workflows: templates first, which the others may name."""
    with_parameters(workflows, given)
    ordered = sorted(workflows, key=lambda item: not isinstance(item, WorkflowTemplate))
    return [f"{item.kind}/{server.submit(item)}" for item in ordered]


def _parameters(workflow: Workflow) -> list[Parameter]:
    built = workflow._build_arguments()
    return [Parameter(name=item.name, value=item.value) for item in (built.parameters if built else None) or ()]
