"""What can be said about a draft without running it: whether all that it names is there.

Whether the task is any good is for the gates. Here everything is told at once, with its place, so that an agent need
not find its slips one submission after the other.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from compoworld_core.services.conditions import (
    All,
    Answer,
    AnyOf,
    Before,
    Condition,
    Event,
    Not,
    RowRef,
    Rows,
    Stated,
    Test,
    Unchanged,
)
from compoworld_core.services.schema import TableSchema
from compoworld_core.specs.model import JsonObject
from compoworld_core.tasks.agent.forms import Bindings, Problem
from compoworld_core.tasks.agent.submission import RESERVED_REASONS, Draft, Scenery, Submission
from compoworld_core.tasks.bindings import steps_read
from compoworld_core.worlds.recipe import Delete, Insert, RowOperation
from compoworld_core.worlds.world import World

_MOST_TESTS: Final = 20
_MOST_CONDITIONS: Final = 60
_DEEPEST_REFERENCE: Final = 3


def draft_problems(draft: Draft, world: World, core: Collection[str]) -> list[Problem]:
    """Everything in a draft that names what is not there, or is of no form that can be run."""
    found = scenery_problems(draft, world)
    found += _solution(draft, world, core)
    if isinstance(draft, Submission):
        tables = _Tables(world)
        for number, criterion in enumerate(draft.criteria):
            found += tables.condition(criterion.condition, f"criteria.{number}.condition")
        found += _repeated([item.id for item in draft.criteria], "criteria")
    return found


def scenery_problems(scenery: Scenery, world: World) -> list[Problem]:
    """Everything in plants and reactions that names what is not there."""
    tables = _Tables(world)
    found: list[Problem] = []
    for number, plant in enumerate(scenery.plants):
        found += tables.operation(plant.do, f"plants.{number}.do")
    for number, reaction in enumerate(scenery.reactions):
        found += tables.condition(reaction.when, f"reactions.{number}.when")
        for place, operation in enumerate(reaction.apply):
            found += tables.operation(operation, f"reactions.{number}.apply.{place}")
    return found


def _solution(draft: Draft, world: World, core: Collection[str]) -> Iterator[Problem]:
    solution, bindings = draft.solution, Bindings(draft.solution.values)
    order = [step.id for step in solution.steps]
    yield from _repeated(order, "solution.steps")
    faulty = False
    for name, value in solution.values.items():
        for problem in bindings.problems(value, f"solution.values.{name}", order):
            faulty = True
            yield problem
    if faulty:
        return  # what refers to them cannot be judged
    for number, step in enumerate(solution.steps):
        path, earlier = f"solution.steps.{number}", order[:number]
        yield from _tool(step.tool, world, core, path)
        yield from _arguments(step.arguments, f"{path}.arguments", earlier, bindings, solution.values)
        for other in step.after:
            if other not in earlier:
                yield Problem(f"{path}.after", f"{other} is no earlier step")
    for number, fact in enumerate(solution.answer):
        yield from bindings.problems(fact.value, f"solution.answer.{number}.value", order)
    yield from _repeated([fact.label for fact in solution.answer], "solution.answer")
    for number, temptation in enumerate(solution.temptations):
        path = f"solution.temptations.{number}"
        yield from _tool(temptation.tool, world, core, path)
        if temptation.reason in RESERVED_REASONS:
            yield Problem(f"{path}.reason", f"{temptation.reason} is a word of the gates; use another")
        for name in ("after", "replaces"):
            other = getattr(temptation, name)
            if other is not None and other not in order:
                yield Problem(f"{path}.{name}", f"there is no step {other}")
        known = order[: order.index(temptation.after) + 1] if temptation.after in order else order
        yield from _arguments(temptation.arguments, f"{path}.arguments", known, bindings, solution.values)


def _arguments(
    arguments: JsonObject, path: str, earlier: Sequence[str], bindings: Bindings, values: JsonObject
) -> Iterator[Problem]:
    found = list(bindings.problems(arguments, path, earlier))
    yield from found
    if not found:
        late = sorted(steps_read(arguments, values) - set(earlier))
        if late:
            yield Problem(path, f"takes something from {', '.join(late)}, through a named value, before it is called")


def _tool(name: str, world: World, core: Collection[str], path: str) -> Iterator[Problem]:
    tool = world.tools.get(name)
    if tool is None:
        yield Problem(f"{path}.tool", f"no tool is named {name[:80]!r}; list_tools shows a service's tools")
    elif tool.is_modelled:
        yield Problem(f"{path}.tool", f"{name} is answered by a model, not by code; solutions do without")
    elif tool.service not in core:
        yield Problem(f"{path}.tool", f"belongs to {tool.service}; the task is to be about {', '.join(sorted(core))}")


def _repeated(names: Sequence[str], path: str) -> Iterator[Problem]:
    for name in dict.fromkeys(names):
        if names.count(name) > 1:
            yield Problem(path, f"{name!r} is there {names.count(name)} times")


class _Tables:
    """Checks what is said about tables and their fields."""

    def __init__(self, world: World) -> None:
        self._schemas: Mapping[str, Mapping[str, TableSchema]] = {
            name: {table: item.schema for table, item in service.state.tables.items()}
            for name, service in world.services.items()
        }

    def operation(self, operation: RowOperation, path: str) -> Iterator[Problem]:
        schema = self._schema(operation.service, operation.table)
        if schema is None:
            yield self._unknown(operation.service, operation.table, path)
            return
        if isinstance(operation, Delete):
            return
        for name in operation.values:
            yield from self._field(schema, name, f"{path}.values.{name}")
        key = operation.values.get("id") if isinstance(operation, Insert) else None
        form = f"{schema.id_prefix}_" if schema.id_prefix else ""
        if key is not None and not (isinstance(key, str) and re.fullmatch(rf"{re.escape(form)}[0-9]{{1,9}}", key)):
            yield Problem(f"{path}.values.id", f"ids of this table look like {form}4711, which tell an agent nothing")

    def condition(self, condition: Condition, path: str) -> Iterator[Problem]:
        found = list(self._condition(condition, path))
        if len(_parts(condition)) > _MOST_CONDITIONS:
            found.append(Problem(path, f"has more than {_MOST_CONDITIONS} parts"))
        yield from found

    def _condition(self, condition: Condition, path: str) -> Iterator[Problem]:
        match condition:
            case Rows() | Unchanged():
                yield from self._part(condition, path)
            case Before():
                yield from self._part(condition.earlier, f"{path}.earlier")
                yield from self._part(condition.later, f"{path}.later")
            case Answer():
                for name, items in (("states", condition.states), ("omits", condition.omits)):
                    for number, item in enumerate(items):
                        yield from self._stated(item, f"{path}.{name}.{number}")
            case All() | AnyOf():
                if not condition.parts:
                    yield Problem(path, "has no parts")
                for number, part in enumerate(condition.parts):
                    yield from self._condition(part, f"{path}.parts.{number}")
            case Not():
                yield from self._condition(condition.part, f"{path}.part")

    def _stated(self, stated: Stated, path: str) -> Iterator[Problem]:
        if stated.row is not None:
            yield from self._reference(stated.row, f"{path}.row", 1)

    def _part(self, part: Rows | Unchanged | Event | RowRef, path: str, depth: int = 0) -> Iterator[Problem]:
        schema = self._schema(part.service, part.table)
        if schema is None:
            yield self._unknown(part.service, part.table, path)
            return
        if len(part.where) > _MOST_TESTS:
            yield Problem(f"{path}.where", f"has more than {_MOST_TESTS} tests")
            return
        for number, test in enumerate(part.where):
            yield from self._test(test, schema, f"{path}.where.{number}", depth)

    def _test(self, test: Test, schema: TableSchema, path: str, depth: int) -> Iterator[Problem]:
        yield from self._field(schema, test.field, f"{path}.field")
        if test.other is not None:
            yield from self._field(schema, test.other, f"{path}.other")
        if test.row is not None:
            yield from self._reference(test.row, f"{path}.row", depth + 1)

    def _reference(self, reference: RowRef, path: str, depth: int) -> Iterator[Problem]:
        """References within references are looked up for every row, so they may not grow."""
        if depth > _DEEPEST_REFERENCE:
            yield Problem(path, f"is more than {_DEEPEST_REFERENCE} references deep")
            return
        if depth > 1 and reference.change is None:
            yield Problem(path, "a reference within a reference has to be to changed rows: set its change")
            return
        schema = self._schema(reference.service, reference.table)
        if schema is not None:
            yield from self._field(schema, reference.field, f"{path}.field")
        yield from self._part(reference, path, depth)

    def _schema(self, service: str, table: str) -> TableSchema | None:
        return self._schemas.get(service, {}).get(table)

    def _unknown(self, service: str, table: str, path: str) -> Problem:
        known = self._schemas.get(service)
        if known is None:
            return Problem(f"{path}.service", f"there is no service {service!r}; there are {', '.join(self._schemas)}")
        return Problem(f"{path}.table", f"{service} has no table {table!r}; it has {', '.join(known)}")

    def _field(self, schema: TableSchema, field: str, path: str) -> Iterator[Problem]:
        known = schema.properties
        if field.split(".")[0] not in known:
            yield Problem(path, f"a {schema.entity} has no field {field!r}; it has {', '.join(known)}")


def _parts(condition: Condition) -> list[Condition]:
    match condition:
        case All() | AnyOf():
            return [condition, *(inner for part in condition.parts for inner in _parts(part))]
        case Not():
            return [condition, *_parts(condition.part)]
        case _:
            return [condition]
