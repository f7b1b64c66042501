"""Each repair, on the smallest input that needs it."""

from __future__ import annotations

import re
from typing import Any, get_args

import jsonschema_rs
import pytest

from compoworld_core.specs.model import ToolSpec
from compoworld_core.specs.normalise import normalise_server
from compoworld_core.specs.repairs import MEANINGS, Repair

Json = Any
ANY_OBJECT: Json = {"type": "object", "properties": {}}


def one(schema: Json, **tool: Json) -> ToolSpec:
    raw = {"name": "get_thing", "description": "Shows a thing.", "inputSchema": schema, **tool}
    spec, rejections = normalise_server({"server": "shop", "tools": [raw]}, "test")
    assert spec is not None
    assert not rejections
    return spec.tools[0]


def of(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


def with_property(schema: Json) -> Json:
    return of(x=schema)


def nested(levels: int) -> Json:
    schema: Json = {"type": "string"}
    for _ in range(levels):
        schema = of(a=schema)
    return schema


# (repair, raw schema of one property `x`, its repaired form)
PROPERTY_CASES: list[tuple[Repair, Json, Json]] = [
    (
        "allow-null-of-enum",
        {"type": "string", "enum": ["a", None]},
        {"type": ["string", "null"], "enum": ["a", None]},
    ),
    ("clean-text", {"type": "string", "description": "bell \x07"}, {"type": "string", "description": "bell \ufffd"}),
    ("coerce-default", {"type": "integer", "default": "7"}, {"type": "integer", "default": 7}),
    ("coerce-default", {"type": "boolean", "default": "True"}, {"type": "boolean", "default": True}),
    ("coerce-default", {"type": "string", "default": 7}, {"type": "string", "default": "7"}),
    ("coerce-enum-member", {"type": "string", "enum": [1, "b"]}, {"type": "string", "enum": ["1", "b"]}),
    ("coerce-keyword", {"type": "integer", "minimum": "3"}, {"type": "integer", "minimum": 3}),
    ("collapse-nullable", {"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": ["string", "null"]}),
    (
        "collapse-nullable",
        {"oneOf": [{"type": "null"}, {"type": "string", "enum": ["a"]}], "description": "D."},
        {"type": ["string", "null"], "enum": ["a", None], "description": "D."},
    ),
    (
        "convert-exclusive-bound",
        {"type": "number", "minimum": 0, "exclusiveMinimum": True},
        {"type": "number", "exclusiveMinimum": 0},
    ),
    (
        "convert-exclusive-bound",
        {"type": "number", "maximum": 9, "exclusiveMaximum": False},
        {"type": "number", "maximum": 9},
    ),
    ("convert-nullable", {"type": "string", "nullable": True}, {"type": ["string", "null"]}),
    ("deduplicate-enum", {"type": "number", "enum": [1, 1.0, 2]}, {"type": "number", "enum": [1, 2]}),
    ("drop-contradictory-bounds", {"type": "integer", "minimum": 5, "maximum": 4}, {"type": "integer"}),
    ("drop-contradictory-bounds", {"type": "string", "minLength": 5, "maxLength": 4}, {"type": "string"}),
    ("drop-dangling-reference", {"$ref": "#/$defs/Gone", "description": "D."}, {"description": "D."}),
    ("drop-default", {"type": "string", "enum": ["a"], "default": "z"}, {"type": "string", "enum": ["a"]}),
    ("drop-default", {"type": "integer", "default": "many"}, {"type": "integer"}),
    ("drop-empty-enum", {"type": "string", "enum": []}, {"type": "string"}),
    ("drop-enum-member", {"type": "integer", "enum": [1, "one"]}, {"type": "integer", "enum": [1]}),
    ("drop-environment-default", {"type": "string", "default": "2024-03-09"}, {"type": "string"}),
    ("drop-environment-default", {"type": "string", "default": "/home/alex/data"}, {"type": "string"}),
    ("drop-examples", {"type": "number", "examples": [float("nan")]}, {"type": "number"}),
    ("drop-excess-branches", {"anyOf": [{"minLength": n} for n in range(100)]}, {}),
    ("drop-huge-enum", {"type": "integer", "enum": list(range(3_000))}, {"type": "integer"}),
    ("drop-invalid-keyword", {"type": "string", "minLength": -1}, {"type": "string"}),
    ("drop-invalid-keyword", {"type": "number", "minimum": float("inf")}, {"type": "number"}),
    ("drop-invalid-pattern", {"type": "string", "pattern": "(["}, {"type": "string"}),
    ("drop-meta-keywords", {"$comment": "from a form", "type": "string"}, {"type": "string"}),
    ("drop-non-schema", 17, {}),
    ("drop-null-default", {"type": "string", "default": None}, {"type": "string"}),
    ("drop-optional-marker", {"type": "string", "optional": True}, {"type": "string"}),
    ("drop-remote-reference", {"$ref": "https://example.org/schema.json"}, {}),
    ("drop-sentinel-bound", {"type": "integer", "maximum": 2**53 - 1}, {"type": "integer"}),
    ("drop-unreachable-minimum", {"type": "string", "minLength": 50_000_000}, {"type": "string"}),
    ("drop-title", {"type": "string", "title": "X"}, {"type": "string"}),
    ("drop-unknown-keywords", {"type": "string", "widget": "slider"}, {"type": "string"}),
    ("drop-unknown-type", {"type": "Gizmo"}, {}),
    ("enum-from-constants", {"anyOf": [{"const": "a"}, {"const": "b"}]}, {"enum": ["a", "b"]}),
    (
        "enum-from-object",
        {"type": "number", "enum": {"0": "LOW", "1": "HIGH", "LOW": 0, "HIGH": 1}},
        {"type": "number", "enum": [0, 1]},
    ),
    ("enum-from-scalar", {"type": "string", "enum": "only"}, {"type": "string", "enum": ["only"]}),
    ("infer-type", {"items": {"type": "string"}}, {"type": "array", "items": {"type": "string"}}),
    (
        "items-to-prefix-items",
        {"type": "array", "items": [{"type": "string"}, {"type": "integer"}], "additionalItems": False},
        {"type": "array", "prefixItems": [{"type": "string"}, {"type": "integer"}], "items": False},
    ),
    (
        "join-description",
        {"type": "string", "description": ["One.", "Two."]},
        {"type": "string", "description": "One.\nTwo."},
    ),
    ("map-type-word", {"type": "int"}, {"type": "integer"}),
    ("map-type-word", {"type": "any"}, {}),
    ("map-type-word", {"type": "datetime"}, {"type": "string", "format": "date-time"}),
    ("map-type-word", {"type": "list[str]"}, {"type": "array", "items": {"type": "string"}}),
    ("map-type-word", {"type": "float?"}, {"type": ["number", "null"]}),
    ("map-type-word", {"type": ["str", "null"]}, {"type": ["string", "null"]}),
    ("merge-type-branches", {"anyOf": [{"type": "string"}, {"type": "integer"}]}, {"type": ["string", "integer"]}),
    ("rename-desc", {"type": "string", "desc": "D."}, {"type": "string", "description": "D."}),
    ("schema-from-text", "string", {"type": "string"}),
    ("schema-from-text", "the colour of the bike shed", {"description": "the colour of the bike shed"}),
    (
        "split-dependencies",
        {"type": "object", "dependencies": {"a": ["b"], "c": {"minProperties": 2}}},
        {"type": "object", "dependentRequired": {"a": ["b"]}, "dependentSchemas": {"c": {"minProperties": 2}}},
    ),
    (
        "unwrap-single-branch",
        {"allOf": [{"type": "string"}], "description": "D."},
        {"type": "string", "description": "D."},
    ),
]

# (repair, raw parameters, repaired parameters)
ROOT_CASES: list[tuple[Repair, Json, Json]] = [
    ("add-empty-parameters", None, ANY_OBJECT),
    ("add-empty-parameters", {}, ANY_OBJECT),
    ("add-empty-parameters", {"type": "object"}, ANY_OBJECT),
    (
        "clean-required",
        {**of(a={}, b={}), "required": ["a", "a", "", None]},
        {**of(a={}, b={}), "required": ["a"]},
    ),
    ("clean-required", {**of(a={}), "required": "a"}, {**of(a={}), "required": ["a"]}),
    ("drop-missing-required", {**of(a={}), "required": ["a", "b"]}, {**of(a={}), "required": ["a"]}),
    ("drop-non-schema", 5, ANY_OBJECT),
    (
        "drop-non-schema-member",
        of(type="object", size={"type": "integer"}, required=["size"], additionalProperties=False),
        {**of(size={"type": "integer"}), "required": ["size"]},
    ),
    (
        "drop-unusable-argument",
        [{"name": "a", "type": "string"}, {"type": "string"}, 3],
        {**of(a={"type": "string"}), "required": ["a"]},
    ),
    ("drop-unusable-property", of(**{"": {}, "a": {}}), of(a={})),
    ("force-object-type", {"properties": {"a": {}}}, of(a={})),
    ("hoist-required", of(a={"type": "string", "required": True}), {**of(a={"type": "string"}), "required": ["a"]}),
    (
        "inline-reference",
        {**of(a={"$ref": "#/$defs/A"}), "$defs": {"A": {"type": "string"}}},
        of(a={"type": "string"}),
    ),
    (
        "inline-reference",
        of(a={"type": "string", "enum": ["u"]}, b={"$ref": "#/properties/a", "description": "D."}),
        of(a={"type": "string", "enum": ["u"]}, b={"type": "string", "enum": ["u"], "description": "D."}),
    ),
    (
        "move-reference",
        {**of(tree={"$ref": "#/definitions/T"}), "definitions": {"T": of(kids={"items": {"$ref": "#/definitions/T"}})}},
        {
            **of(tree={"$ref": "#/$defs/T"}),
            "$defs": {"T": of(kids={"type": "array", "items": {"$ref": "#/$defs/T"}})},
        },
    ),
    (
        "drop-default",
        {**of(a={"$ref": "#/$defs/E", "default": "z"}), "$defs": {"E": {"type": "string", "enum": ["u"]}}},
        of(a={"type": "string", "enum": ["u"]}),
    ),
    ("cut-recursion", {**of(a={"$ref": "#/$defs/A"}), "$defs": {"A": {"$ref": "#/$defs/A"}}}, None),
    ("parse-schema-text", '{"type": "object", "properties": {"a": {"type": "string"}}}', of(a={"type": "string"})),
    (
        "properties-from-list",
        {"type": "object", "properties": [{"name": "a", "type": "string", "required": False}]},
        of(a={"type": "string"}),
    ),
    ("prune-definitions", {**of(a={}), "$defs": {"Unused": {"type": "string"}}}, of(a={})),
    (
        "relax-dummy-parameter",
        {**of(random_string={"type": "string"}), "required": ["random_string"]},
        of(random_string={"type": "string"}),
    ),
    (
        "schema-from-arguments",
        [
            {"name": "a", "type": "string"},
            {"name": "b", "type": "string", "optional": True},
            {"name": "c", "type": "string", "required": None},
        ],
        {**of(a={"type": "string"}, b={"type": "string"}, c={"type": "string"}), "required": ["a"]},
    ),
    ("unwrap-json-schema", {"json": of(a={"type": "string"})}, of(a={"type": "string"})),
    (
        "unwrap-nested-schema",
        of(type="object", properties={"a": {"type": "string"}}, required=["a"]),
        {**of(a={"type": "string"}), "required": ["a"]},
    ),
    ("wrap-bare-properties", {"a": {"type": "string"}}, of(a={"type": "string"})),
    ("wrap-scalar-root", {"type": "string"}, {**of(value={"type": "string"}), "required": ["value"]}),
    ("cut-depth", nested(60), None),
    ("cut-size", of(**{f"p{n}": {"enum": [n, n + 1] + ["m"] * 50} for n in range(500)}), None),
    ("drop-excess-properties", of(**{f"p{n}": {} for n in range(2_000)}), None),
    ("trim-text", with_property({"type": "string", "description": "long " * 5_000}), None),
]

TOOL_ONLY: set[Repair] = {
    "clean-annotations",
    "contradictory-annotations",
    "describe-from-docstring",
    "describe-from-name",
    "drop-returns",
    "parameters-from-docstring",
    "rename-duplicate",
    "rename-schema-key",
    "rename-tool",
    "unwrap-function",
    "unwrap-result",
}


def numbered(cases: list[tuple[Repair, Json, Json]]) -> list[Any]:
    return [pytest.param(*case, id=f"{case[0]}-{number}") for number, case in enumerate(cases)]


@pytest.mark.parametrize(("repair", "raw", "expected"), numbered(PROPERTY_CASES))
def test_property_is_repaired_and_the_repair_named(repair: Repair, raw: Json, expected: Json) -> None:
    tool = one(with_property(raw))

    assert tool.parameters["properties"]["x"] == expected
    assert repair in tool.repairs


@pytest.mark.parametrize(("repair", "raw", "expected"), numbered(ROOT_CASES))
def test_parameters_are_repaired_and_the_repair_named(repair: Repair, raw: Json, expected: Json) -> None:
    tool = one(raw)

    assert repair in tool.repairs
    assert tool.parameters["type"] == "object"
    if expected is not None:
        assert tool.parameters == expected


def test_every_repair_has_a_case_and_a_meaning() -> None:
    tested = {case[0] for case in PROPERTY_CASES + ROOT_CASES} | TOOL_ONLY

    assert tested == set(get_args(Repair))
    assert set(MEANINGS) == set(get_args(Repair))


def test_a_sound_tool_needs_no_repair() -> None:
    schema = {
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 1, "pattern": "^[a-z]+$"},
            "sizes": {"type": "array", "items": {"type": "integer", "minimum": 1}, "maxItems": 3},
            "kind": {"type": ["string", "null"], "enum": ["a", None], "default": None},
            "address": {"type": "object", "properties": {"city": {"type": "string"}}, "additionalProperties": False},
        },
        "required": ["name"],
        "oneOf": [{"required": ["sizes"]}, {"required": ["kind"]}],
        "additionalProperties": False,
    }

    tool = one(schema)

    assert tool.parameters == schema
    assert tool.repairs == ()


def test_argument_section_fills_an_empty_schema() -> None:
    entries = "    day (str): the day\n    size (int, optional): people\n      at the table"
    text = f"Books a slot.\n\nArgs:\n{entries}\n\nReturns:\n    it"

    tool = one({"type": "object", "properties": {}}, description=text)

    assert tool.parameters == {
        "type": "object",
        "properties": {
            "day": {"type": "string", "description": "the day"},
            "size": {"type": "integer", "description": "people at the table"},
        },
        "required": ["day"],
    }
    assert "parameters-from-docstring" in tool.repairs


def test_argument_section_describes_parameters_that_lack_it() -> None:
    tool = one(of(day={"type": "string"}), description="Books.\n\nArgs:\n  day: the day of the visit\n")

    assert tool.parameters["properties"]["day"]["description"] == "the day of the visit"
    assert tool.repairs == ("describe-from-docstring",)


@pytest.mark.parametrize(
    ("fields", "repair"),
    [
        pytest.param({"description": ""}, "describe-from-name", id="blank-description"),
        pytest.param({"outputSchema": ["text"]}, "drop-returns", id="no-result-schema"),
        pytest.param({"annotations": {"readOnlyHint": None, "_def": {}}}, "clean-annotations", id="odd-annotations"),
        pytest.param({"name": "shop.get thing"}, "rename-tool", id="illegal-name"),
        pytest.param({"annotations": {"readOnlyHint": False}}, "contradictory-annotations", id="writing-get"),
        pytest.param(
            {"outputSchema": {"allOf": [of(a={"$ref": "#/nowhere"})]}}, "drop-dangling-reference", id="returns"
        ),
    ],
)
def test_tool_is_repaired(fields: Json, repair: Repair) -> None:
    assert repair in one(ANY_OBJECT, **fields).repairs


def test_second_tool_of_a_name_gets_a_suffix_unless_it_is_the_same() -> None:
    raw = {"name": "get_a", "description": "A."}
    other = {**raw, "inputSchema": of(size={"type": "integer"})}

    spec, rejections = normalise_server({"server": "s", "tools": [raw, other, raw]}, "f.jsonl:3")

    assert spec is not None
    assert [tool.original_name for tool in spec.tools] == ["get_a", "get_a"]
    assert spec.tools[0].name == "get_a"
    assert re.fullmatch(r"get_a_[0-9a-f]{6}", spec.tools[1].name)
    assert "rename-duplicate" in spec.tools[1].repairs
    assert [(found.reason, found.tool, found.origin) for found in rejections] == [("duplicate", "get_a", "f.jsonl:3")]


def test_missing_description_is_made_of_title_or_name() -> None:
    assert one(ANY_OBJECT, description=None).description == "Get thing."
    assert one(ANY_OBJECT, description=" ", title="Show it").description == "Show it."


@pytest.mark.parametrize("key", ["input_schema", "parameters", "arguments"])
def test_schema_under_another_key_is_found(key: str) -> None:
    raw = {"name": "get_a", "description": "A.", key: of(a={"type": "string"})}
    spec, _ = normalise_server({"server": "shop", "tools": [raw]}, "test")

    assert spec is not None
    assert spec.tools[0].parameters == of(a={"type": "string"})
    assert spec.tools[0].repairs == ("rename-schema-key",)


def test_function_wrapper_is_removed() -> None:
    raw = {"type": "function", "function": {"name": "get_a", "description": "A.", "parameters": ANY_OBJECT}}
    spec, _ = normalise_server({"server": "shop", "tools": [raw]}, "test")

    assert spec is not None
    assert spec.tools[0].name == "get_a"
    assert "unwrap-function" in spec.tools[0].repairs


def test_result_wrapper_is_removed() -> None:
    returns = {"type": "object", "properties": {"result": {"type": "string"}}, "x-fastmcp-wrap-result": True}

    tool = one(ANY_OBJECT, outputSchema=returns)

    assert tool.returns == {"type": "string"}
    assert "unwrap-result" in tool.repairs


def test_recursive_schema_still_checks_every_level() -> None:
    tree = {
        "type": "object",
        "properties": {"size": {"type": "int"}, "kids": {"type": "array", "items": {"$ref": "#/$defs/T"}}},
    }
    tool = one({**of(root={"$ref": "#/$defs/T"}), "$defs": {"T": tree}})
    validator = jsonschema_rs.Draft202012Validator(tool.parameters)

    assert validator.is_valid({"root": {"kids": [{"kids": [{"size": 3}]}]}})
    assert not validator.is_valid({"root": {"kids": [{"kids": [{"size": "three"}]}]}})
