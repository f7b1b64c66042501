"""Filters: what each parameter of a listing tool does to the rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol

from compoworld_core.synthesis.rules.model import EntityField, EntityModel, Filter, Operation, Paging, Unwritable
from compoworld_core.synthesis.rules.reading import Parameter
from compoworld_core.synthesis.rules.types import Kind, TypeExpr
from compoworld_core.synthesis.rules.words import (
    CONTROL_NAMES,
    CURSOR_NAMES,
    LIMIT_NAMES,
    LOWER_WORDS,
    OFFSET_NAMES,
    ORDER_NAMES,
    PAGE_NAMES,
    QUERY_NAMES,
    SORT_NAMES,
    UPPER_WORDS,
    VAGUE_ADJECTIVES,
    singular,
)

_TIMES: frozenset[Kind] = frozenset({"day", "moment"})
_NUMBERS: frozenset[Kind] = frozenset({"integer", "number", "decimal"})
_TIME_WORDS = frozenset({"date", "time", "at", "on", "day", "datetime", "timestamp"})
_NOW = TypeExpr(
    "moment", "Timestamp", "Timestamp", {"type": "string", "format": "date-time", "x-semantic": "timestamp"}
)


class FieldAdder(Protocol):
    """Gives entities fields that only listing tools speak of."""

    def add_field(self, operation: Operation, item: Parameter, *, is_given: bool, name: str = "") -> str:
        """Make sure that the entity has a field for a parameter's value; its name."""
        ...


def bind_filters(operation: Operation, modifiers: Sequence[str], planner: FieldAdder) -> None:
    """Give each parameter of a listing tool its part."""
    operation.paging = _paging(operation)
    taken = {item.name for item in operation.paging.parameters}
    operation.newest_first = bool(
        re.search(r"\b(newest|latest|most recent)( first)?\b", operation.reading.tool.description.lower())
    )
    for item in operation.reading.parameters:
        if item.name in taken:
            continue
        found = _filter(operation, item, planner)
        if found is not None:
            operation.filters.append(found)
        elif item.is_required:
            raise Unwritable(f"nothing tells what {item.wire} selects")
    _bind_modifiers(operation, modifiers)
    _bind_order(operation)
    if operation.kind == "count":
        _bind_count(operation)


def _bind_modifiers(operation: Operation, modifiers: Sequence[str]) -> None:
    """Adjectives in front of the noun: a state that the entity has, or nothing that rows can tell."""
    entity = operation.entity
    for word in modifiers:
        states = [state for state in entity.states if state.lower() == word]
        if states:
            operation.state = states[0]
        elif word in ("recent", "latest"):
            operation.newest_first = True
        elif word in VAGUE_ADJECTIVES and not any(item.parameter.is_required for item in operation.filters):
            raise Unwritable(f"nothing in a row tells which {entity.label} is {word}")


def _bind_order(operation: Operation) -> None:
    """`by due date`: the field that the description names as the order."""
    match = re.search(r"\bby (?:(?:the|their) )?(\w+)", operation.reading.tool.description.lower())
    if match is None or operation.newest_first or not operation.reading.is_plural:
        return
    kinds = _TIMES | _NUMBERS | {"text"}
    named = [
        field
        for field in operation.entity.fields.values()
        if field.type.kind in kinds and not field.is_optional and not field.type.values and "|" not in field.type.kept
    ]
    word = match.group(1)
    found = [field for field in named if word in field.name.split("_")]
    found += [field for field in named if word in ("date", "start", "time") and field.type.kind in _TIMES]
    operation.sort_field = found[0].name if found else None


def _bind_count(operation: Operation) -> None:
    """Find the field by which a count is broken down."""
    match = re.search(r"\bby (\w+)", operation.reading.tool.description.lower())
    field = operation.entity.fields.get(match.group(1)) if match else None
    if field is not None and field.type.values:
        operation.group = field.name


def _paging(operation: Operation) -> Paging:
    found: dict[str, Parameter] = {}
    fields = operation.entity.fields
    for item in operation.reading.parameters:
        name = "_".join(item.words)
        kind = operation.types[item.name].kind
        if item.name in operation.references or operation.types[item.name].values:
            continue
        if kind in ("integer", "number") and (name in LIMIT_NAMES or _is_limit(item)) and name not in fields:
            found.setdefault("limit", item)
        elif kind in ("integer", "number") and name in PAGE_NAMES:
            found.setdefault("page", item)
        elif kind in ("integer", "number") and name in OFFSET_NAMES:
            found.setdefault("offset", item)
        elif kind == "text" and name in CURSOR_NAMES:
            found.setdefault("cursor", item)
    if "cursor" in found:
        found.pop("offset", None)
        found.pop("page", None)
    return Paging(**found)


def _is_limit(item: Parameter) -> bool:
    return item.words[:1] in (("max",), ("num",), ("limit",)) and singular(item.words[-1]) != item.words[-1]


def _filter(operation: Operation, item: Parameter, planner: FieldAdder) -> Filter | None:
    entity = operation.entity
    name, type_ = "_".join(item.words), operation.types[item.name]
    is_own_id = item == operation.key or (operation.references.get(item.name) is entity and item.stem is not None)
    if is_own_id and not {"parent", "root"} & set(item.words):
        return Filter(item, "key" if type_.kind != "list" else "among", "id")
    if item.name in operation.references:
        return _reference_filter(operation, item, planner)
    is_query = type_.kind == "text" and not type_.values and (name in QUERY_NAMES or type_.word == "query")
    if is_query and (operation.reading.act == "search" or item.field not in entity.fields):
        return Filter(item, "words")
    bounded = _range_filter(entity, item, type_)
    if bounded is not None:
        return bounded
    known = _known_field(entity, item, type_)
    if known is not None:
        return _field_filter(item, type_, known)
    hidden = _hiding(entity, item, type_)
    if hidden is not None:
        return hidden
    if name in SORT_NAMES | ORDER_NAMES | CONTROL_NAMES | CURSOR_NAMES or (
        name in LIMIT_NAMES and type_.kind != "text"
    ):
        return None
    if type_.kind in ("json", "part") or (
        type_.kind == "list" and type_.item is not None and type_.item.kind == "part"
    ):
        return None
    if item.words[:1] in (("include",), ("with",), ("show",), ("return",), ("exclude",)) and type_.kind == "boolean":
        return None
    if item.has_default and not item.is_required and type_.kind in _NUMBERS | {"boolean"} and not type_.values:
        return None
    field = planner.add_field(operation, item, is_given=True)
    return _field_filter(item, type_, entity.fields[field])


def _reference_filter(operation: Operation, item: Parameter, planner: FieldAdder) -> Filter:
    entity, referred = operation.entity, operation.references[item.name]
    type_ = operation.types[item.name]
    fields = [field for field in entity.fields.values() if field.reference is referred]
    exact = [field for field in fields if field.name == item.field]
    if exact or len(fields) == 1:
        return _field_filter(item, type_, (exact or fields)[0])
    name = planner.add_field(operation, item, is_given=True)
    return _field_filter(item, type_, entity.fields[name])


def _field_filter(item: Parameter, type_: TypeExpr, field: EntityField) -> Filter:
    if field.type.kind == "list":
        return Filter(item, "overlap" if type_.kind == "list" else "member", field.name)
    return Filter(item, "among" if type_.kind == "list" else "equal", field.name)


def _known_field(entity: EntityModel, item: Parameter, type_: TypeExpr) -> EntityField | None:
    """The field that a parameter names, fully or by its beginning or end."""
    fields = entity.fields
    words = [word for word in item.words if word not in ("filter", "filters", "by", "only")] or list(item.words)
    names = ["_".join(words), "_".join((*words[:-1], singular(words[-1]))), item.field]
    names += ["_".join(words[1:])] if tuple(words[: len(entity.noun)]) == entity.noun and len(words) > 1 else []
    for name in names:
        if name in fields and _fits(type_, fields[name].type):
            return fields[name]
    near = [
        field
        for field in fields.values()
        if _fits(type_, field.type)
        and (
            field.name.startswith(f"{names[0]}_")
            or field.name.endswith(f"_{names[0]}")
            or field.name in (f"{names[0]}s", f"{names[0]}es")
        )
    ]
    return near[0] if len(near) == 1 else None


def _fits(given: TypeExpr, kept: TypeExpr) -> bool:
    given = given.item if given.kind == "list" and given.item else given
    kept = kept.item if kept.kind == "list" and kept.item else kept
    return given.kind == kept.kind or {given.kind, kept.kind} <= _NUMBERS or {given.kind, kept.kind} <= _TIMES


def _range_filter(entity: EntityModel, item: Parameter, type_: TypeExpr) -> Filter | None:
    words = item.words
    if type_.kind not in _TIMES | _NUMBERS or type_.values or item.stem is not None:
        return None
    edges = {words[0], words[-1], "_".join(words[:2]), "_".join(words[-2:])}
    is_lower, is_upper = bool(edges & LOWER_WORDS), bool(edges & UPPER_WORDS)
    if words[0] in ("starts", "from", "since") or (words[:1] == ("start",) and type_.kind in _TIMES):
        is_lower, is_upper = True, False
    elif words[0] in ("ends", "to", "until") or (words[:1] == ("end",) and type_.kind in _TIMES):
        is_lower, is_upper = False, True
    if is_lower == is_upper:
        return None
    test = "at_least" if is_lower else "at_most"
    kinds = _TIMES if type_.kind in _TIMES else _NUMBERS
    base = [word for word in words if word not in LOWER_WORDS | UPPER_WORDS | _TIME_WORDS | {"starts", "ends"}]
    candidates = [
        field
        for field in entity.fields.values()
        if field.type.kind in kinds and not field.type.values and " | " not in field.type.kept
    ]
    exact = entity.fields.get(item.field)
    if exact in candidates:
        return Filter(item, test, item.field)  # type: ignore[arg-type]
    if base:
        near = [field for field in candidates if set(base) & set(field.name.split("_"))]
        stems = [field for field in candidates if any(part[:4] == base[0][:4] for part in field.name.split("_"))]
        chosen = next(iter(near or stems), None)
    else:
        made = [field for field in candidates if field.is_made or not entity.has_creation]
        made.sort(key=lambda field: not field.is_given)
        chosen = next(iter(made or [field for field in candidates if field.automatic]), None)
    if chosen is None and kinds is _TIMES:
        past = base[0] if base and base[0].endswith("ed") else "created"
        chosen = entity.fields.setdefault(f"{past}_at", EntityField(f"{past}_at", _NOW, automatic="self.now"))
    if chosen is None and base and not (item.has_default and not item.is_required):
        name = "_".join(base)
        chosen = entity.fields.setdefault(name, EntityField(name, type_, is_given=not entity.has_creation))
    return Filter(item, test, chosen.name) if chosen is not None else None  # type: ignore[arg-type]


def _hiding(entity: EntityModel, item: Parameter, type_: TypeExpr) -> Filter | None:
    """`include_archived`: rows in that state are left out unless asked for."""
    if type_.kind != "boolean" or len(item.words) < 2 or item.words[0] not in ("include", "show", "with"):
        return None
    state = "_".join(item.words[1:])
    if entity.status is not None and state in entity.states:
        return Filter(item, "hides", entity.status, state)
    return None
