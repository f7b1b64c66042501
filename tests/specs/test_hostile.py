"""Whatever arrives, normalisation answers, accounts for every tool and stays within its bounds."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from compoworld_core.specs.model import Rejection, ServiceSpec
from compoworld_core.specs.normalise import normalise_server
from compoworld_core.specs.schema import repair_parameters
from compoworld_core.specs.values import Budget

KEYWORDS = (
    "type properties required items $ref $defs definitions anyOf oneOf allOf not enum const default minimum maximum"
    " exclusiveMinimum minLength pattern patternProperties additionalProperties additionalItems dependencies nullable"
    " description desc title examples format if then prefixItems contains propertyNames $schema $id optional a b"
).split()
WORDS = [
    "object",
    "string",
    "int",
    "array",
    "null",
    "any",
    "list[str]",
    "#",
    "#/$defs/a",
    "#/$defs/b",
    "#/properties/a",
]

texts = st.sampled_from(WORDS) | st.text(st.characters(codec=None), max_size=6)
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats() | texts | st.sampled_from([10**400, -(2**63), 2**53 - 1])
)
keys = st.sampled_from(KEYWORDS) | st.text(st.characters(codec=None), max_size=4)
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=25,
)
schemas = st.recursive(
    st.fixed_dictionaries(
        {}, optional={"type": st.sampled_from(WORDS), "$ref": texts, "enum": st.lists(scalars, max_size=3)}
    ),
    lambda inner: st.dictionaries(keys, inner | st.dictionaries(keys, inner, max_size=3) | st.lists(inner, max_size=3)),
    max_leaves=20,
)
tools = st.fixed_dictionaries(
    {"name": texts | json_values, "inputSchema": schemas | json_values},
    optional={"description": json_values, "annotations": json_values, "outputSchema": schemas | json_values},
)
servers = st.fixed_dictionaries({"tools": st.lists(tools | json_values, max_size=4)}, optional={"server": json_values})


def assert_accounted(raw: Any, spec: ServiceSpec | None, rejections: list[Rejection]) -> None:
    of_tools = [rejection for rejection in rejections if rejection.subject == "tool"]
    of_servers = [rejection for rejection in rejections if rejection.subject == "server"]
    assert (spec is None) == bool(of_servers)
    assert len(of_servers) <= 1
    if isinstance(raw, dict) and isinstance(raw.get("tools"), list) and "result" not in raw:
        assert len(raw["tools"]) == len(of_tools) + (len(spec.tools) if spec else 0)
    for rejection in rejections:
        rejection.model_dump_json()
    if spec is None:
        return
    assert len({tool.name for tool in spec.tools}) == len(spec.tools)
    for tool in spec.tools:
        assert tool.description
        assert tool.parameters["type"] == "object"
        assert isinstance(tool.parameters["properties"], dict)
        jsonschema_rs.Draft202012Validator(tool.parameters).is_valid({"a": [{}]})
        if tool.returns is not None:
            jsonschema_rs.Draft202012Validator(tool.returns)
    json.dumps(spec.model_dump(mode="json"), allow_nan=False, ensure_ascii=False).encode()


@given(json_values)
@settings(max_examples=150, deadline=None)
def test_any_json_is_accounted_for(raw: Any) -> None:
    assert_accounted(raw, *normalise_server(raw, "test:1"))


@given(servers)
@settings(max_examples=200, deadline=None)
def test_any_server_is_accounted_for(raw: Any) -> None:
    assert_accounted(raw, *normalise_server(raw, "test:1"))


@given(schemas)
@settings(max_examples=200, deadline=None)
def test_repairing_again_changes_nothing(raw: Any) -> None:
    budget = Budget()
    once = repair_parameters(raw, budget)
    # Where a reference was cut or moved, a second pass can write in place what the first could not.
    assume("$ref" not in json.dumps(once) and "cut-recursion" not in budget.repairs)

    again = repair_parameters(json.loads(json.dumps(once)), Budget())

    assert again == once


def deep(levels: int) -> Any:
    value: Any = {"type": "string"}
    for _ in range(levels):
        value = {"type": "object", "properties": {"a": value}}
    return value


def deep_list(levels: int) -> Any:
    value: Any = []
    for _ in range(levels):
        value = [value]
    return value


def laughs(levels: int, width: int) -> Any:
    definitions: dict[str, Any] = {"L0": {"type": "string"}}
    for level in range(1, levels):
        part = {"$ref": f"#/$defs/L{level - 1}"}
        definitions[f"L{level}"] = {"type": "object", "properties": {f"p{n}": part for n in range(width)}}
    return {"type": "object", "properties": {"a": {"$ref": f"#/$defs/L{levels - 1}"}}, "$defs": definitions}


def in_place_laughs(levels: int, width: int) -> Any:
    definitions = {f"L{n}": {"allOf": [{"$ref": f"#/$defs/L{n + 1}"}] * width} for n in range(levels)}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/L0"}}, "$defs": definitions}


def chain(length: int) -> Any:
    definitions: dict[str, Any] = {f"L{n}": {"$ref": f"#/$defs/L{n + 1}"} for n in range(length)}
    return {"type": "object", "properties": {"a": {"$ref": "#/$defs/L0"}}, "$defs": definitions}


HOSTILE = {
    "deep-schema": deep(10_000),
    "deep-default": {"properties": {"a": {"default": deep_list(10_000)}}},
    "deep-enum": {"properties": {"a": {"enum": [deep_list(10_000)]}}},
    "long-text": {"properties": {"a": {"description": "x" * 1_000_000, "default": "y" * 1_000_000}}},
    "long-name": {"properties": {"n" * 1_000_000: {"type": "string"}}},
    "long-pattern": {"properties": {"a": {"type": "string", "pattern": "(a+)+" * 100_000}}},
    "huge-enum": {"properties": {"a": {"enum": list(range(500_000))}}},
    "many-properties": {"properties": {f"p{n}": {"type": "string"} for n in range(100_000)}},
    "many-required": {"properties": {"a": {}}, "required": [f"p{n}" for n in range(100_000)]},
    "billion-laughs": laughs(12, 10),
    "in-place-laughs": in_place_laughs(12, 10),
    "reference-chain": chain(5_000),
    "mutual-recursion": {
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"allOf": [{"$ref": "#/$defs/B"}]}, "B": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "string"}]}},
    },
    "root-recursion": {"properties": {"a": {"$ref": "#"}}},
    "root-cycle": {"$ref": "#"},
    "proto": {"properties": {"__proto__": {"type": "string"}, "constructor": {"type": "string"}}},
    "surrogates": {"properties": {"\ud800": {"description": "\udfff\x00", "enum": ["\ud800", "\x01"]}}},
    "not-finite": {"properties": {"a": {"minimum": float("nan"), "enum": [float("inf"), 1], "default": float("nan")}}},
    "huge-numbers": {"properties": {"a": {"maximum": 10**400, "minLength": 10**30, "multipleOf": 10**400}}},
    "remote": {"properties": {"a": {"$ref": "http://127.0.0.1:9/schema"}, "b": {"$ref": "file:///etc/passwd"}}},
}


@pytest.mark.parametrize("schema", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_schema_is_bounded(schema: Any) -> None:
    raw = {"server": "s", "tools": [{"name": "get_a", "inputSchema": schema}]}

    spec, rejections = normalise_server(raw, "test:1")

    assert_accounted(raw, spec, rejections)
    assert spec is not None
    assert len(json.dumps(spec.tools[0].parameters)) < 2_000_000


def test_hostile_server_is_accounted_for() -> None:
    raw: Any = {
        "server": "\ud800" * 1_000_000,
        "description": "d" * 1_000_000,
        "tools": [
            {"name": "n" * 1_000_000},
            {"name": "\ud800"},
            {"name": "a"},
            {"name": "a"},
            {"name": "__proto__"},
            None,
        ]
        + [{"name": "a", "description": str(n)} for n in range(2_000)],
    }

    spec, rejections = normalise_server(raw, "test:1")

    assert_accounted(raw, spec, rejections)
    assert {rejection.reason for rejection in rejections} == {
        "name_too_long",
        "duplicate",
        "not_an_object",
        "too_many_tools",
    }
