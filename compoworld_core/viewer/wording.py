"""Conditions, bindings and row operations in plain words, for people who do not read their JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from compoworld_core.services.conditions import (
    All,
    Answer,
    AnyOf,
    Before,
    Change,
    Condition,
    Event,
    Not,
    RowRef,
    Rows,
    Stated,
    Test,
    Unchanged,
)
from compoworld_core.tasks.bindings import binding_operator
from compoworld_core.viewer.walks import source_of
from compoworld_core.worlds.recipe import Delete, Insert, RowOperation, Update

Part = list[str]
"""`["text", words]`, or `["value", name, step]` for a value that comes from a step's answer."""

_OPERATORS = {
    "eq": "is",
    "ne": "is not",
    "lt": "<",
    "le": "≤",
    "gt": ">",
    "ge": "≥",
    "in": "is one of",
    "contains": "contains",
    "mentions": "mentions",
}
_ARITHMETIC: dict[str, str] = {"$add": " + ", "$sub": " − ", "$mul": " × "}


def condition_in_words(condition: Condition) -> str:
    """A condition as a sentence without its full stop."""
    match condition:
        case Rows():
            what = f"{_place(condition.change)}{condition.service}.{condition.table}{_where(condition.where)}"
            return f"{_count(condition.at_least, condition.at_most)} {what}"
        case Unchanged():
            return f"{condition.service}.{condition.table}{_where(condition.where)} stays as it is"
        case Before():
            return f"{_event(condition.earlier)}, before {_event(condition.later)}"
        case Answer():
            parts = [f"states {_list(condition.states)}"] if condition.states else []
            parts += [f"does not state {_list(condition.omits)}"] if condition.omits else []
            return f"the final answer {' and '.join(parts)}"
        case All():
            return "; and ".join(condition_in_words(part) for part in condition.parts)
        case AnyOf():
            return "; or ".join(condition_in_words(part) for part in condition.parts)
        case Not():
            return f"not: {condition_in_words(condition.part)}"


def operation_in_words(operation: RowOperation) -> str:
    """What a plant or reaction does, without the values."""
    match operation:
        case Insert():
            return f"adds a row to {operation.service}.{operation.table}"
        case Update():
            return f"changes {operation.key} in {operation.service}.{operation.table}"
        case Delete():
            return f"removes {operation.key} from {operation.service}.{operation.table}"


def spoken(value: Any, steps: dict[str, str | None]) -> list[Part]:
    """An argument as text with the values in it named.

    Args:
        steps: The step that each named value comes from.
    """
    operator = binding_operator(value)
    if operator is None:
        return _structure(value, steps)
    content = value[operator]
    match operator:
        case "$value":
            return [["value", str(content), steps.get(str(content)) or ""]]
        case "$ref":
            step, _, path = str(content).partition(".")
            return [["value", path.removeprefix("data."), step]]
        case "$pick" if isinstance(content, dict):
            where = [part for key, item in _items(content.get("where")) for part in _equals(key, item, steps)]
            return [["value", str(content.get("take")), source_of(value) or ""], ["text", " where "], *where]
        case "$fact" if isinstance(content, dict):
            name = content.get("name")
            named = [["text", "what the text says of "], *spoken(name, steps)] if isinstance(name, dict) else []
            return named or [["value", str(name), str(content.get("step"))]]
        case "$text" if isinstance(content, list):
            return [part for item in content for part in _plain(item, steps)]
        case "$round" if isinstance(content, list):
            return [*spoken(content[0], steps), ["text", f" rounded to {_plain_text(content[-1])} places"]]
        case "$add" | "$sub" | "$mul" if isinstance(content, list):
            return _joined(content, _ARITHMETIC[operator], steps)
    return [["text", _plain_text(value)]]


def _joined(items: Sequence[Any], between: str, steps: dict[str, str | None]) -> list[Part]:
    parts: list[Part] = []
    for item in items:
        if parts:
            parts.append(["text", between])
        parts += _plain(item, steps)
    return parts


def _equals(key: str, item: Any, steps: dict[str, str | None]) -> list[Part]:
    return [["text", f"{key} = "], *spoken(item, steps), ["text", " "]]


def _items(value: Any) -> list[tuple[str, Any]]:
    return list(value.items()) if isinstance(value, dict) else []


def _structure(value: Any, steps: dict[str, str | None]) -> list[Part]:
    if isinstance(value, list):
        return [["text", "["], *_joined(value, ", ", steps), ["text", "]"]]
    if isinstance(value, dict):
        parts: list[Part] = [["text", "{"]]
        for place, (key, item) in enumerate(value.items()):
            parts += [["text", f"{', ' if place else ''}{key}: "], *spoken(item, steps)]
        return [*parts, ["text", "}"]]
    return [["text", _plain_text(value)]]


def _plain(item: Any, steps: dict[str, str | None]) -> list[Part]:
    """As `spoken`, with texts as they are rather than in quotes."""
    return [["text", item]] if isinstance(item, str) else spoken(item, steps)


def _plain_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _count(least: int, most: int | None) -> str:
    if most == 0:
        return "no row"
    if most is None:
        return {0: "any number of rows", 1: "a row"}.get(least, f"at least {least} rows")
    if least == most:
        return f"exactly {least} row{'' if least == 1 else 's'}"
    return f"at most {most} row{'' if most == 1 else 's'}" if least == 0 else f"{least} to {most} rows"


def _place(change: Change | None) -> str:
    return "of " if change is None else f"{change} in "


def _event(event: Event) -> str:
    return f"a row is {event.change} in {event.service}.{event.table}{_where(event.where)}"


def _where(tests: Sequence[Test]) -> str:
    return f" where {' and '.join(map(_test, tests))}" if tests else ""


def _test(test: Test) -> str:
    if test.other is not None:
        right = f"its {test.other}"
    elif test.row is not None:
        right = _ref(test.row)
    else:
        right = _plain_text(test.value)
    return f"{test.field} {_OPERATORS[test.op]} {right}"


def _ref(ref: RowRef) -> str:
    return f"the {ref.field} of the row {_place(ref.change)}{ref.service}.{ref.table}{_where(ref.where)}"


def _list(items: Sequence[Stated]) -> str:
    return ", ".join(item.fact.value if item.fact else _ref(item.row) if item.row else "?" for item in items)
