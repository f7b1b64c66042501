"""What a workflow may not contain, or not so much of, and what it needs as a whole."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, Final

from compoworld_core.pipeline.argo.lint.subject import Finding, Subject, tasks_of

REMOVED: Final = {
    "schedule": "schedules",
    "mutex": "mutexes",
    "semaphore": "semaphores",
    "podPriority": "podPriorityClassName",
}
"""Fields that Argo 4 no longer has, and what took their place."""

MOST_PARAMETER: Final = 128 * 1024
MOST_PARAMETERS: Final = 256 * 1024
MOST_CHILDREN: Final = 500
MOST_WORKFLOW: Final = 1024 * 1024


def removed_fields(subject: Subject) -> Iterator[Finding]:
    """Fields of older versions, which this one passes over in silence."""
    for place, key in _fields(subject.document, ()):
        if key in REMOVED:
            yield subject.finding(".".join(place), "removed-field", f"{key} is gone; write {REMOVED[key]}, a list")


def sizes(subject: Subject) -> Iterator[Finding]:
    """Parameters, lists and documents beyond what environment, status and cluster can hold."""
    whole = len(json.dumps(subject.document))
    if whole > MOST_WORKFLOW:
        yield subject.finding(subject.kind, "too-large", f"{whole:,} bytes; a cluster stores {MOST_WORKFLOW:,}")
    total = 0
    for place, value in _values(subject):
        size = len(value.encode())
        total += size
        if size > MOST_PARAMETER:
            problem = f"{size:,} bytes, and a pod is told {MOST_PARAMETER:,} at most; hand over a URI"
            yield subject.finding(place, "too-large", problem)
    if total > MOST_PARAMETERS:
        problem = f"all parameters have {total:,} bytes; {MOST_PARAMETERS:,} is the most; hand over URIs"
        yield subject.finding("arguments", "too-large", problem)
    for template in subject.own_templates:
        for task in tasks_of(template):
            children = len(task.get("withItems") or ())
            if children > MOST_CHILDREN:
                problem = f"{children} children; more than {MOST_CHILDREN} outgrow a workflow's status: nest them"
                yield subject.finding(f"{template['name']}.{task['name']}", "too-large", problem)


def duplicates(subject: Subject) -> Iterator[Finding]:
    """Names that are given twice, of which the last wins."""
    groups: list[tuple[str, list[str]]] = [("templates", [str(item.get("name")) for item in subject.own_templates])]
    parameters = (subject.spec.get("arguments") or {}).get("parameters") or ()
    groups.append(("arguments", [item["name"] for item in parameters]))
    for template in subject.own_templates:
        groups.append((template["name"], [task["name"] for task in tasks_of(template)]))
        inputs = (template.get("inputs") or {}).get("parameters") or ()
        groups.append((f"{template['name']}.inputs", [item["name"] for item in inputs]))
    for place, names in groups:
        for name, count in Counter(names).items():
            if count > 1:
                yield subject.finding(place, "duplicate", f"{name!r} is there {count} times")


def ends(subject: Subject) -> Iterator[Finding]:
    """Workflows without an end: neither a deadline, nor a time after which they are cleared away."""
    if "templates" not in subject.spec:
        return
    if not subject.spec.get("activeDeadlineSeconds"):
        yield subject.finding("spec", "no-deadline", "needs activeDeadlineSeconds, or it may go on for ever")
    for field in ("ttlStrategy", "podGC"):
        if not subject.spec.get(field):
            yield subject.finding("spec", "never-cleared", f"needs {field}, or what is over stays in the cluster")


def _fields(value: Any, place: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            if key in ("env", "parameters", "labels", "annotations", "data"):
                continue  # keys in there are names that people choose
            yield (*place, str(key)), str(key)
            yield from _fields(item, (*place, str(key)))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            name = item.get("name", number) if isinstance(item, dict) else number
            yield from _fields(item, (*place, str(name)))


def _values(subject: Subject) -> Iterator[tuple[str, str]]:
    for item in (subject.spec.get("arguments") or {}).get("parameters") or ():
        yield f"arguments.{item['name']}", str(item.get("value", ""))
    for template in subject.own_templates:
        for task in tasks_of(template):
            for item in (task.get("arguments") or {}).get("parameters") or ():
                yield f"{template['name']}.{task['name']}.{item['name']}", str(item.get("value", ""))
