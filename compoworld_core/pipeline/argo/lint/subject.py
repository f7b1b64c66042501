"""A workflow as the rules see it, whatever kind of document it stands in."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from compoworld_core.errors import InputError

Document = dict[str, Any]

KINDS: Final = ("Workflow", "WorkflowTemplate", "ClusterWorkflowTemplate", "CronWorkflow")

_VARIABLE: Final = re.compile(r"\{\{\s*([^{}=][^{}]*?)\s*\}\}")


@dataclass(frozen=True)
class Finding:
    """Something that is wrong.

    Attributes:
        place: A template, a task as `template.task`, or a field.
        rule: Name of the kind of fault.
    """

    file: str
    place: str
    rule: str
    problem: str

    def __str__(self) -> str:
        return f"{self.file}: {self.place}: {self.rule}: {self.problem}"


@dataclass(frozen=True)
class Subject:
    """A workflow.

    Attributes:
        spec: Of the workflow; of a CronWorkflow, what it makes workflows of.
        referred: The spec of the template that it refers to, where that is among the documents.
        is_whole: Whether all that it refers to is here, so that what is missing is missing for good.
    """

    file: str
    document: Document
    spec: Document
    referred: Document
    is_whole: bool

    @property
    def kind(self) -> str:
        """Of the document."""
        return str(self.document["kind"])

    @property
    def own_templates(self) -> list[Document]:
        """Templates that stand in it."""
        return list(self.spec.get("templates") or ())

    @property
    def templates(self) -> dict[str, Document]:
        """Templates that it may use, by name."""
        return {str(item.get("name")): item for item in [*(self.referred.get("templates") or ()), *self.own_templates]}

    @property
    def parameters(self) -> set[str]:
        """Names of the workflow's parameters."""
        return {
            item["name"]
            for spec in (self.referred, self.spec)
            for item in (spec.get("arguments") or {}).get("parameters") or ()
        }

    @property
    def pods(self) -> Iterator[tuple[Document, Document]]:
        """Its templates that run containers, each with such a container."""
        for template in self.own_templates:
            for kind in ("container", "script"):
                if kind in template:
                    yield template, template[kind]
            yield from ((template, item) for item in template.get("sidecars") or ())
            yield from ((template, item) for item in template.get("initContainers") or ())

    def finding(self, place: str, rule: str, problem: str) -> Finding:
        """A finding about it."""
        return Finding(self.file, place, rule, problem)


def subjects(documents: Iterable[tuple[str, Document]]) -> list[Subject]:
    """The workflows among some documents; others are not looked at.

    Raises:
        InputError: There is none.
    """
    known = [(file, item) for file, item in documents if item.get("kind") in KINDS]
    if not known:
        raise InputError(f"nothing to check: there is no {', '.join(KINDS)}")
    shared = {item["metadata"]["name"]: item["spec"] for _, item in known if item["kind"].endswith("WorkflowTemplate")}
    found = []
    for file, item in known:
        spec = item.get("spec") or {}
        if item["kind"] == "CronWorkflow":
            spec = spec.get("workflowSpec") or {}
        name = (spec.get("workflowTemplateRef") or {}).get("name")
        found.append(Subject(file, item, spec, shared.get(name, {}), name is None or name in shared))
    return found


def tasks_of(template: Mapping[str, Any]) -> list[Document]:
    """The tasks of a DAG, or of steps."""
    steps = [step for group in template.get("steps") or () for step in group]
    return [*((template.get("dag") or {}).get("tasks") or ()), *steps]


def texts(value: Any) -> Iterator[str]:
    """All texts in a value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from texts(key)
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


def variables_in(value: Any) -> set[str]:
    """Names in double braces, anywhere in a value; expressions (`{{=…}}`) are left out."""
    return {name for text in texts(value) for name in _VARIABLE.findall(text)}
