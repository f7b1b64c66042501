"""Names that mean nothing, or that mean something too late."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

import networkx as nx

from compoworld_core.pipeline.argo.lint.subject import Document, Finding, Subject, tasks_of, variables_in

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]*")
_GLOBALS: Final = frozenset(
    (
        "workflow.name workflow.namespace workflow.mainEntrypoint workflow.serviceAccountName workflow.uid "
        "workflow.creationTimestamp workflow.priority workflow.duration workflow.scheduledTime workflow.parameters"
    ).split()
)
_AT_THE_END: Final = frozenset(("workflow.status", "workflow.failures"))
_OWN: Final = frozenset(("pod.name", "node.name", "retries", "item", "inputs.parameters"))


def unknown_templates(subject: Subject) -> Iterator[Finding]:
    """Templates that are used and not there."""
    if not subject.is_whole:
        return
    known = subject.templates
    for field in ("entrypoint", "onExit"):
        name = subject.spec.get(field)
        if name is not None and name not in known:
            yield subject.finding(field, "unknown-template", f"there is no template {name!r}")
    if subject.kind in ("Workflow", "CronWorkflow") and not (
        subject.spec.get("entrypoint") or subject.referred.get("entrypoint")
    ):
        yield subject.finding("entrypoint", "unknown-template", "says nowhere which template comes first")
    for template in subject.own_templates:
        for task in tasks_of(template):
            if (name := task.get("template")) is not None and name not in known:
                place = f"{template['name']}.{task['name']}"
                yield subject.finding(place, "unknown-template", f"there is no template {name!r}")


def cycles(subject: Subject) -> Iterator[Finding]:
    """Tasks that wait for each other, and templates that contain themselves."""
    contains: nx.DiGraph[str] = nx.DiGraph()
    for name, template in subject.templates.items():
        for task in tasks_of(template):
            contains.add_edge(name, str(task.get("template")))
    for circle in nx.simple_cycles(contains):
        yield subject.finding(circle[0], "cycle", f"contains itself: {' → '.join([*circle, circle[0]])}")
    for template in subject.own_templates:
        for circle in nx.simple_cycles(_waits(template)):
            place = f"{template['name']}.{circle[0]}"
            yield subject.finding(place, "cycle", f"waits for itself: {' → '.join([*circle, circle[0]])}")


def arguments(subject: Subject) -> Iterator[Finding]:
    """Arguments that a template does not declare, and inputs that are not given."""
    for template in subject.own_templates:
        for task in tasks_of(template):
            called = subject.templates.get(task.get("template", ""))
            if called is None:
                continue
            place = f"{template['name']}.{task['name']}"
            given = {item["name"] for item in (task.get("arguments") or {}).get("parameters") or ()}
            declared = {item["name"]: item for item in (called.get("inputs") or {}).get("parameters") or ()}
            for name in sorted(given - declared.keys()):
                yield subject.finding(place, "undeclared-input", f"template {called['name']!r} declares no {name!r}")
            for name, item in declared.items():
                has_own = any(field in item for field in ("value", "default", "valueFrom"))
                if name not in given and not has_own:
                    yield subject.finding(place, "undeclared-input", f"does not give {name!r} to {called['name']!r}")


def variables(subject: Subject) -> Iterator[Finding]:
    """Variables that nothing gives a value."""
    at_the_end = _reached(subject, subject.spec.get("onExit") or subject.referred.get("onExit"))
    for template in subject.own_templates:
        declared = {item["name"] for item in (template.get("inputs") or {}).get("parameters") or ()}
        for name in sorted(variables_in(template)):
            problem = None
            if name.startswith("inputs.parameters."):
                if name.removeprefix("inputs.parameters.") not in declared:
                    problem = ("undeclared-input", f"uses {{{{{name}}}}}, which it does not declare")
            elif name.startswith("workflow.parameters."):
                if subject.is_whole and name.removeprefix("workflow.parameters.") not in subject.parameters:
                    problem = ("unknown-variable", f"uses {{{{{name}}}}}, which is no parameter of the workflow")
            elif name in _AT_THE_END and template["name"] not in at_the_end:
                problem = ("unknown-variable", f"uses {{{{{name}}}}}, which only exit handlers are told")
            elif not _is_known(name):
                problem = ("unknown-variable", f"uses {{{{{name}}}}}, which Argo does not know")
            if problem:
                yield subject.finding(template["name"], *problem)


def use_without_depends(subject: Subject) -> Iterator[Finding]:
    """Outputs of tasks that need not be over, or that have no such output."""
    for template in subject.own_templates:
        waits = _waits(template)
        tasks = {task["name"]: task for task in (template.get("dag") or {}).get("tasks") or ()}
        for task in tasks.values():
            place = f"{template['name']}.{task['name']}"
            before = nx.ancestors(waits, task["name"]) if task["name"] in waits else set()
            for name in sorted(variables_in(task)):
                if not name.startswith("tasks."):
                    continue
                _, source, *rest = name.split(".")
                if source not in tasks:
                    yield subject.finding(place, "use-without-depends", f"uses {{{{{name}}}}}: there is no such task")
                elif source not in before:
                    problem = f"uses {{{{{name}}}}} and does not depend on {source!r}, so it may be too early"
                    yield subject.finding(place, "use-without-depends", problem)
                elif rest[:2] == ["outputs", "parameters"] and len(rest) == 3:
                    called = subject.templates.get(tasks[source].get("template", ""), {})
                    outputs = {item["name"] for item in (called.get("outputs") or {}).get("parameters") or ()}
                    if called and rest[2] not in outputs:
                        problem = f"uses {{{{{name}}}}}: template {called['name']!r} has no such output"
                        yield subject.finding(place, "undeclared-output", problem)


def _waits(template: Document) -> nx.DiGraph[str]:
    """The tasks of a DAG; an edge leads from each to those that wait for it."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for task in (template.get("dag") or {}).get("tasks") or ():
        graph.add_node(task["name"])
        before = _NAME.findall(re.sub(r"\.\w+", "", task.get("depends") or ""))
        for name in [*before, *(task.get("dependencies") or ())]:
            graph.add_edge(name, task["name"])
    return graph


def _reached(subject: Subject, name: str | None) -> set[str]:
    found: set[str] = set()
    ahead = [name] if name else []
    while ahead:
        here = ahead.pop()
        if here not in found:
            found.add(here)
            ahead += [task["template"] for task in tasks_of(subject.templates.get(here, {})) if "template" in task]
    return found


def _is_known(name: str) -> bool:
    if name in _GLOBALS | _AT_THE_END | _OWN:
        return True
    return name.startswith(
        (
            "tasks.",
            "steps.",
            "item.",
            "inputs.artifacts.",
            "outputs.",
            "workflow.outputs.",
            "workflow.labels.",
            "workflow.annotations.",
            "workflow.creationTimestamp.",
            "lastRetry.",
        )
    )
