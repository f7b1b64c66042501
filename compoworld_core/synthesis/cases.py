"""Cases: calls that a careless or hostile caller would make, generated from a tool's parameter schema.

A case varies one thing of a normal call. Whether it is legal is not the generator's opinion: the parameter schema
decides. An illegal case must be refused as `invalid_arguments`, a legal one may succeed or fail with any typed error,
and none may be a bug.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from compoworld_core.services.arguments import DANGLING, DANGLING_NUMBER
from compoworld_core.services.schema import semantic_of
from compoworld_core.specs.model import JsonObject
from compoworld_core.specs.validation import validator

MAX_CASES = 56
"""Most cases of one tool; every kind keeps its share."""

_TEXTS = (
    "",
    "שלום עולם مرحبا",
    "🧾👩‍🔧 café",
    "a\u200bb\u202ec\ufeff",
    "nul\x00 and\r\n\ttab",
    "'; DROP TABLE rows; -- {{7*7}} ../../etc/passwd",
    "\ud800",
    "   ",
)
_HUGE_TEXT = "x" * 120_001
_HUGE_COUNT = 1_500
_NUMBERS = (0, -1, 2**53 + 1, -(10**30), 0.5, 1e308)
_OF_OTHER_TYPES: tuple[Any, ...] = ({"a": 1}, ["x"], "text", 7, True)


@dataclass(frozen=True)
class Case:
    """One call to try.

    Attributes:
        kind: What was varied (`missing`, `wrong_type`, `unicode` …).
        parameter: The varied parameter, or empty.
        is_legal: Whether the schema allows the arguments; None where it can't say.
        is_structural: Whether an illegal case has the wrong shape (missing, extra, wrong type) and not just a value
            out of range.
        times: How often in a row the call is made.
    """

    kind: str
    parameter: str
    arguments: Mapping[str, Any]
    is_legal: bool | None
    is_structural: bool = False
    times: int = 1

    @property
    def label(self) -> str:
        """The case in a word, for people."""
        return f"{self.kind}({self.parameter})" if self.parameter else self.kind


def generate_cases(parameters: JsonObject, normal: Mapping[str, Any], *, limit: int = MAX_CASES) -> tuple[Case, ...]:
    """Cases around a normal call, at most `limit`, the kinds taking turns.

    Args:
        parameters: JSON Schema of the arguments.
        normal: Arguments that the schema allows.
        limit: Most cases returned.
    """
    judge = _judge(parameters)
    kinds = [list(maker(parameters, normal)) for maker in _MAKERS]
    found: list[Case] = []
    for turn in zip_longest(*kinds):
        for item in turn:
            if item is not None:
                kind, parameter, arguments = item
                is_legal = judge(arguments)
                if kind == "null" and parameter not in parameters.get("required", ()):
                    is_legal = is_legal or None  # many services take null for absent, whatever they say
                times = 2 if kind == "repeated" else 1
                found.append(Case(kind, parameter, arguments, is_legal, kind in _STRUCTURAL, times))
    return tuple(found[:limit])


_Made = Iterator[tuple[str, str, dict[str, Any]]]

_STRUCTURAL = frozenset({"missing", "extra", "wrong_type", "null"})


def _judge(parameters: JsonObject) -> Any:
    is_valid = validator(parameters).is_valid

    def is_legal(arguments: Mapping[str, Any]) -> bool | None:
        try:
            return is_valid(arguments)
        except (ValueError, OverflowError):
            return None

    return is_legal


def _properties(parameters: JsonObject) -> Iterator[tuple[str, JsonObject, frozenset[str]]]:
    """(name, schema, JSON types) of every parameter."""
    definitions: JsonObject = {key: parameters[key] for key in ("$defs", "definitions") if key in parameters}
    for name, part in parameters.get("properties", {}).items():
        schema = part if isinstance(part, dict) else {}
        yield name, schema, frozenset(_types(schema, definitions))


def _types(schema: Any, definitions: JsonObject, depth: int = 6) -> set[str]:
    if not isinstance(schema, dict) or depth == 0:
        return set()
    kind = schema.get("type", ())
    found = {kind} if isinstance(kind, str) else set(kind)
    for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        found |= _types(part, definitions, depth - 1)
    if isinstance(reference := schema.get("$ref"), str):
        name = reference.rsplit("/", 1)[-1]
        found |= _types(
            next((group[name] for group in definitions.values() if name in group), {}), definitions, depth - 1
        )
    return found


def _bounds(schema: JsonObject) -> JsonObject:
    """Keywords that bound a value, also those inside a nullable branch."""
    found: JsonObject = {}
    for part in (*schema.get("anyOf", ()), schema):
        if isinstance(part, dict):
            found.update(part)
    return found


def _repeated(parameters: JsonObject, normal: Mapping[str, Any]) -> _Made:
    yield "repeated", "", dict(normal)


def _missing(parameters: JsonObject, normal: Mapping[str, Any]) -> _Made:
    for name in parameters.get("required", ()):
        yield "missing", name, {key: value for key, value in normal.items() if key != name}


def _extra(parameters: JsonObject, normal: Mapping[str, Any]) -> _Made:
    yield "extra", "", {**normal, "unexpected_argument": [[[[{"deep": True}]]]]}


def _wrong_type(parameters: JsonObject, normal: Mapping[str, Any]) -> _Made:
    names = {dict: "object", list: "array", str: "string", int: "integer", bool: "boolean"}
    for name, _, kinds in _properties(parameters):
        wrong = [value for value in _OF_OTHER_TYPES if kinds and names[type(value)] not in kinds]
        if "number" in kinds:
            wrong = [value for value in wrong if type(value) is not int]
        for value in wrong[:1] + wrong[-1:]:
            yield "wrong_type", name, {**normal, name: value}


def _null(parameters: JsonObject, normal: Mapping[str, Any]) -> _Made:
    for name, _, _ in _properties(parameters):
        yield "null", name, {**normal, name: None}


def _enum_miss(parameters: JsonObject, normal: Mapping[str, Any]) -> _Made:
    for name, schema, _ in _properties(parameters):
        if "enum" in _bounds(schema):
            yield "enum_miss", name, {**normal, name: "no_such_choice"}


def _unicode(parameters: JsonObject, normal: Mapping[str, Any]) -> _Made:
    """Odd texts; they rotate over the parameters, so that few calls meet each of them."""
    names = [name for name, _, kinds in _properties(parameters) if "string" in kinds]
    for turn in range(max(len(names), len(_TEXTS)) if names else 0):
        name, text = names[turn % len(names)], _TEXTS[turn % len(_TEXTS)]
        yield ("unicode" if text else "empty"), name, {**normal, name: text}


def _huge(parameters: JsonObject, normal: Mapping[str, Any]) -> _Made:
    for name, schema, kinds in _properties(parameters):
        if "array" in kinds:
            part = normal.get(name) or [_sample(schema)]
            yield "huge", name, {**normal, name: (list(part) * _HUGE_COUNT)[:_HUGE_COUNT]}
        elif "string" in kinds:
            yield "huge", name, {**normal, name: _HUGE_TEXT}


def _sample(schema: JsonObject) -> Any:
    items = _bounds(schema).get("items", {})
    kind = items.get("type", "string") if isinstance(items, dict) else "string"
    return {"integer": 1, "number": 1, "object": {}, "boolean": True}.get(kind if isinstance(kind, str) else "", "x")


def _numbers(parameters: JsonObject, normal: Mapping[str, Any]) -> _Made:
    names = [name for name, _, kinds in _properties(parameters) if kinds & {"integer", "number"}]
    for turn in range(max(len(names), len(_NUMBERS)) if names else 0):
        name = names[turn % len(names)]
        yield "number", name, {**normal, name: _NUMBERS[turn % len(_NUMBERS)]}


def _boundary(parameters: JsonObject, normal: Mapping[str, Any]) -> _Made:
    for name, schema, _ in _properties(parameters):
        bounds = _bounds(schema)
        for value in _around(bounds, normal.get(name)):
            yield "boundary", name, {**normal, name: value}


def _around(bounds: JsonObject, current: Any) -> Iterator[Any]:
    """Values on and just beyond each bound."""
    if "minimum" in bounds:
        yield from (bounds["minimum"] - 1, bounds["minimum"])
    if "maximum" in bounds:
        yield from (bounds["maximum"] + 1, bounds["maximum"])
    if bounds.get("minLength"):
        yield "x" * (int(bounds["minLength"]) - 1)
    if "maxLength" in bounds and int(bounds["maxLength"]) < len(_HUGE_TEXT):
        yield from ("x" * (int(bounds["maxLength"]) + 1), "x" * int(bounds["maxLength"]))
    if "minItems" in bounds or bounds.get("type") == "array":
        yield []
    if "maxItems" in bounds and isinstance(current, list) and current:
        yield (current * (int(bounds["maxItems"]) + 1))[: int(bounds["maxItems"]) + 1]


def _dangling(parameters: JsonObject, normal: Mapping[str, Any]) -> _Made:
    for name, schema, kinds in _properties(parameters):
        word = semantic_of(schema)
        if word is not None and word.startswith("id:"):
            value: Any = DANGLING if "string" in kinds or not kinds else DANGLING_NUMBER
            yield "dangling", name, {**normal, name: [value] if "array" in kinds else value}


_MAKERS = (
    _repeated,
    _extra,
    _missing,
    _dangling,
    _wrong_type,
    _null,
    _enum_miss,
    _unicode,
    _boundary,
    _numbers,
    _huge,
)
