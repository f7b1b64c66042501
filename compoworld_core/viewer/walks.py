"""Walks as pictures: lanes, dots and arrows, without coordinates.

A lane is a service, a dot a call, a run of dots in one lane a visit. An arrow is an information edge and carries the
name of the value that travels. The page places them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from compoworld_core.rollouts.trajectory import Trajectory
from compoworld_core.specs.model import JsonObject
from compoworld_core.tasks.task import InformationEdge, Solution, Task

ANSWER = "answer"
"""Where values go that the final answer states."""


@dataclass(frozen=True)
class Dot:
    """One call."""

    id: str
    tool: str
    is_write: bool
    failed: bool = False


@dataclass(frozen=True)
class Visit:
    """Calls in a row to one service."""

    service: str
    dots: tuple[Dot, ...]


@dataclass(frozen=True)
class Arrow:
    """An information edge; `label` names the value."""

    source: str
    target: str
    label: str
    criterion: str


@dataclass(frozen=True)
class Picture:
    """What there is to draw; lanes are in the order of the first visits."""

    lanes: tuple[str, ...]
    visits: tuple[Visit, ...]
    arrows: tuple[Arrow, ...] = ()

    def as_json(self) -> JsonObject:
        """The picture as the page reads it."""
        return asdict(self)


def picture_of_task(task: Task) -> Picture:
    """The walk of the reference solution, with the task's information edges."""
    visits = tuple(
        Visit(service, tuple(Dot(step.id, step.tool, step.effect == "write") for step in steps))
        for service, steps in groupby(task.solution.steps, key=lambda step: step.service)
    )
    arrows = tuple(
        Arrow(edge.source, edge.target, label_of(edge, task.solution), edge.criterion) for edge in task.edges
    )
    return Picture(_lanes(visits), visits, arrows)


def picture_of_trajectory(trajectory: Trajectory) -> Picture:
    """The walk that an agent took: its calls of services' tools."""
    reached = [call for call in trajectory.calls if call.service]
    visits = tuple(
        Visit(
            service,
            tuple(
                Dot(str(call.index + 1), call.tool, bool(call.changes), call.envelope.get("success") is not True)
                for call in calls
            ),
        )
        for service, calls in groupby(reached, key=lambda call: call.service)
    )
    return Picture(_lanes(visits), visits)


def label_of(edge: InformationEdge, solution: Solution) -> str:
    """The name of the value that travels along an edge; the argument that takes it, where the value has no name."""
    place: Any = solution.values.get(edge.argument)
    if edge.target == ANSWER:
        place = [fact.value for fact in solution.answer if fact.label == edge.argument]
    for step in solution.steps:
        if step.id == edge.target and edge.argument in step.arguments:
            place = step.arguments[edge.argument]
    names = _named_values(place, solution)
    return next((name for name in names if source_of(solution.values[name]) == edge.source), edge.argument)


def source_of(binding: Any) -> str | None:
    """The step whose answer a binding takes its value from."""
    if isinstance(binding, dict):
        if isinstance(binding.get("$ref"), str):
            return str(binding["$ref"]).partition(".")[0]
        for operator in ("$pick", "$fact"):
            spec = binding.get(operator)
            if isinstance(spec, dict):
                return source_of(spec.get("from")) if operator == "$pick" else str(spec.get("step"))
    return None


def _named_values(value: Any, solution: Solution) -> list[str]:
    """Names of the values that a value is made of, those used directly first."""
    names = [name for name in _direct(value) if name in solution.values]
    for name in names:
        names += [other for other in _direct(solution.values[name]) if other in solution.values and other not in names]
    return names


def _direct(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        name = value.get("$value")
        if isinstance(name, str):
            yield name
        for item in value.values():
            yield from _direct(item)
    elif isinstance(value, list):
        for item in value:
            yield from _direct(item)


def _lanes(visits: tuple[Visit, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(visit.service for visit in visits))
