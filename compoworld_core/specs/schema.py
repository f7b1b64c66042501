"""Any JSON under `inputSchema` becomes a bounded, self-contained JSON Schema 2020-12 of an object.

The walk rebuilds the schema from the keywords it knows, so that nothing it does not understand gets through; what it
changes on the way it names in the budget's list of repairs.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Mapping
from typing import Any, Final

from compoworld_core.specs import keywords as kw
from compoworld_core.specs.arguments import object_from_arguments
from compoworld_core.specs.branches import can_merge, simplify_branches
from compoworld_core.specs.model import JsonObject
from compoworld_core.specs.references import (
    DEFINITIONS,
    Dangling,
    Document,
    definition_name,
    size,
    tame_references,
)
from compoworld_core.specs.values import MAX_VALUE_TEXT, Budget, Unusable, has_type
from compoworld_core.specs.verbs import tokenise

MAX_DEPTH: Final = 24
MAX_PROPERTIES: Final = 512
MAX_BRANCHES: Final = 64
INLINE_SIZE: Final = 40
"""Largest referenced part, in objects and lists, that is written in place instead of under `$defs`."""

_SUBSCHEMAS: Final = (
    "items",
    "additionalProperties",
    "unevaluatedItems",
    "unevaluatedProperties",
    "contains",
    "propertyNames",
    "not",
    "if",
    "then",
    "else",
)
_MAY_BE_FALSE: Final = frozenset({"items", "additionalProperties", "unevaluatedItems", "unevaluatedProperties"})
_DESCENDING: Final = frozenset({"items", "additionalProperties", "unevaluatedItems", "unevaluatedProperties"})
_BRANCHES: Final = ("allOf", "anyOf", "oneOf", "prefixItems")
_IDENTIFYING: Final = frozenset({"$schema", "$id", "id", "$comment", "$anchor", "$vocabulary"})
_META: Final = _IDENTIFYING | set(DEFINITIONS)
_HANDLED: Final = frozenset(
    {
        *("$ref", "type", "title", "description", "desc", "format", "pattern", "enum", "const", "default", "example"),
        *("examples", "required", "optional", "nullable", "properties", "patternProperties", "dependentSchemas"),
        *("dependentRequired", "dependencies", "additionalItems", "multipleOf", "x-semantic"),
        *(*_SUBSCHEMAS, *_BRANCHES, *kw.BOUNDS, *kw.COUNTS, *kw.FLAGS),
    }
)
_KEYWORDS: Final = _HANDLED | _META
_SCHEMA_LIKE: Final = frozenset({"type", "$ref", "enum", "anyOf", "oneOf", "allOf", "properties", "description"})
_DUMMY_PARAMETERS: Final = frozenset({"random_string", "_dummy", "dummy", "__dummy", "no_params"})


def repair_parameters(raw: object, budget: Budget) -> JsonObject:
    """The parameters of a tool: always `type: object` with `properties`.

    Args:
        raw: What the source has in place of a schema; None where it has none.
        budget: Bounds the result and collects the names of the repairs.
    """
    root = _object_root(raw, budget)
    schema = _Repair(root, budget).run()
    if set(schema) & {"$ref"}:
        target = schema.get("$defs", {}).get(schema.pop("$ref").removeprefix("#/$defs/"), {})
        schema = {**copy.deepcopy(target), **schema}
    if schema.get("type") != "object":
        budget.note("force-object-type")
        schema = {key: value for key, value in schema.items() if key not in ("enum", "const", "default")}
    if "properties" not in schema:
        budget.note("add-empty-parameters")
    schema = {**schema, "type": "object", "properties": schema.get("properties", {})}
    _relax_dummy(schema, budget)
    return schema


def repair_returns(raw: object, budget: Budget) -> JsonObject | None:
    """The schema of a tool's result, without the `{"result": …}` wrapper that FastMCP adds; None for anything else."""
    if not isinstance(raw, dict):
        if raw is not None:
            budget.note("drop-returns")
        return None
    root = raw
    properties = raw.get("properties")
    if isinstance(properties, dict) and list(properties) == ["result"] and raw.get("x-fastmcp-wrap-result"):
        budget.note("unwrap-result")
        root = {**{key: raw[key] for key in DEFINITIONS if key in raw}, "allOf": [properties["result"]]}
    return _Repair(root, budget).run() or None


def _object_root(raw: Any, budget: Budget) -> JsonObject:
    """The raw schema as something that describes an object."""
    if isinstance(raw, str) and raw.lstrip().startswith("{") and len(raw) <= 1_000_000:
        try:
            raw = json.loads(raw)
            budget.note("parse-schema-text")
        except (ValueError, RecursionError):
            raw = {"": None}
    if raw is None or raw == {}:
        budget.note("add-empty-parameters")
        return {}
    if isinstance(raw, list):
        budget.note("schema-from-arguments")
        return object_from_arguments(raw, budget)
    if not isinstance(raw, dict):
        budget.note("drop-non-schema")
        return {}
    for wrapper in ("json", "jsonSchema", "schema"):
        if isinstance(raw.get(wrapper), dict) and not _SCHEMA_LIKE & set(raw):
            budget.note("unwrap-json-schema")
            raw = raw[wrapper]
    if not _SCHEMA_LIKE & set(raw) and raw and all(_is_schema_like(value) for value in raw.values()):
        budget.note("wrap-bare-properties")
        return {"type": "object", "properties": raw}
    declared = kw.types_of(kw.repair_type(raw["type"], Budget())) if "type" in raw else ()
    if declared and "object" not in declared and not isinstance(raw.get("properties"), dict):
        budget.note("wrap-scalar-root")
        definitions = {key: raw[key] for key in DEFINITIONS if key in raw}
        return {"type": "object", "properties": {"value": raw}, "required": ["value"], **definitions}
    if declared != ("object",) and "$ref" not in raw:
        budget.note("force-object-type")
        raw = {**raw, "type": "object"}
    return dict(raw)


def _is_schema_like(value: object) -> bool:
    return isinstance(value, dict) and bool(_SCHEMA_LIKE & set(value))


def _relax_dummy(schema: JsonObject, budget: Budget) -> None:
    """A lone placeholder parameter, which old clients needed on tools without arguments, becomes optional."""
    if len(schema["properties"]) == 1 and _DUMMY_PARAMETERS & set(schema["properties"]) and schema.pop("required", 0):
        budget.note("relax-dummy-parameter")


class _Repair:
    """One walk over one schema."""

    def __init__(self, root: JsonObject, budget: Budget) -> None:
        self._root = root
        self._document = Document(root)
        self._budget = budget
        self._active: set[str] = {""}
        self._recursive: set[str] = set()
        self._known: dict[str, JsonObject] = {}
        self._names: dict[str, str] = {}
        self._definitions: JsonObject = {}

    def run(self) -> JsonObject:
        schema = self._schema(self._root, 0, is_value=True)
        defined = sum(len(part) for key in DEFINITIONS if isinstance(part := self._root.get(key), dict))
        if defined > sum(pointer.startswith(DEFINITIONS) for pointer in self._known):
            self._budget.note("prune-definitions")
        if self._definitions:
            schema["$defs"] = self._definitions
        if self._definitions or "" in self._recursive:
            tame_references(schema, self._budget)
        return schema

    def _schema(self, raw: object, depth: int, *, is_value: bool = False, name: str = "") -> JsonObject:
        """The repaired form of one schema.

        Args:
            raw: Any JSON in the place of a schema.
            depth: Number of schemas around it.
            is_value: Whether it describes a value of its own, rather than adding a condition to one.
            name: Name of the property that it describes.
        """
        note = self._budget.note
        if depth > MAX_DEPTH or not self._budget.spend(nodes=1):
            note("cut-depth" if depth > MAX_DEPTH else "cut-size")
            return {}
        if not isinstance(raw, dict):
            return self._from_non_schema(raw)
        if "$ref" in raw:
            return self._reference(raw, depth, is_value=is_value, name=name)
        if _IDENTIFYING & set(raw):
            note("drop-meta-keywords")
        if not _KEYWORDS.issuperset(raw):
            note("drop-unknown-keywords")
        schema: JsonObject = {}
        if "type" in raw:
            schema.update(kw.repair_type(raw["type"], self._budget))
        self._annotate(raw, schema, name)
        self._structure(raw, schema, depth, is_value=is_value)
        if is_value and "type" not in schema and not set(schema) & {*_BRANCHES, "$ref", "enum", "const"}:
            self._infer_type(schema)
        schema = simplify_branches(schema, self._budget)
        self._constrain(raw, schema)
        if raw.get("nullable") is True:
            note("convert-nullable")
            if "type" in schema and "null" not in (types := kw.types_of(schema)):
                schema["type"] = [*types, "null"]
                if "enum" in schema and None not in schema["enum"]:
                    schema["enum"] = [*schema["enum"], None]
        if "default" in raw:
            schema.update(kw.repair_default(raw["default"], schema, self._budget))
        return schema

    def _from_non_schema(self, raw: object) -> JsonObject:
        if raw is True:
            return {}
        if raw is False:
            return {"not": {}}
        if isinstance(raw, str):
            part = kw.type_words(raw)
            self._budget.note("schema-from-text")
            return {"description": self._budget.text(raw, MAX_VALUE_TEXT)} if part is None else part
        self._budget.note("drop-non-schema")
        return {}

    def _annotate(self, raw: JsonObject, schema: JsonObject, name: str) -> None:
        """Copies title, description, format, examples, flags and the semantic type."""
        budget = self._budget
        title = raw.get("title")
        if isinstance(title, str) and name and tokenise(title) != tokenise(name):
            schema["title"] = budget.text(title, 200)
        elif title is not None:
            budget.note("drop-title")
        if "desc" in raw:
            budget.note("rename-desc")
        description = raw.get("description", raw.get("desc"))
        if isinstance(description, list) and description and all(isinstance(line, str) for line in description):
            budget.note("join-description")
            description = "\n".join(description[:100])
        if isinstance(description, str):
            if text := budget.text(description.strip(), MAX_VALUE_TEXT):
                schema["description"] = text
        elif description is not None:
            budget.note("drop-invalid-keyword")
        for keyword in ("format", "x-semantic"):
            value = raw.get(keyword)
            if isinstance(value, str) and 0 < len(value) <= 60:
                schema[keyword] = budget.text(value, 60)
            elif value is not None:
                budget.note("drop-invalid-keyword")
        for flag in kw.FLAGS:
            if isinstance(raw.get(flag), bool):
                schema[flag] = raw[flag]
            elif flag in raw:
                budget.note("drop-invalid-keyword")
        examples = raw.get("examples", [raw["example"]] if "example" in raw else None)
        if examples is not None:
            try:
                schema["examples"] = budget.value(examples[:20] if isinstance(examples, list) else [examples])
            except Unusable:
                budget.note("drop-examples")

    def _structure(self, raw: JsonObject, schema: JsonObject, depth: int, *, is_value: bool) -> None:
        """Builds everything that holds schemas."""
        raw = self._modernise(raw)
        required = self._required_names(raw.get("required"))
        if "properties" in raw:
            schema["properties"] = self._properties(raw["properties"], required, depth)
        if isinstance(raw.get("patternProperties"), dict):
            patterns = {
                key: value
                for key, value in raw["patternProperties"].items()
                if kw.repair_pattern(key, self._budget) is not None
            }
            schema["patternProperties"] = self._schemas(patterns, depth)
        if isinstance(raw.get("dependentSchemas"), dict):
            schema["dependentSchemas"] = self._schemas(raw["dependentSchemas"], depth)
        if isinstance(raw.get("dependentRequired"), dict):
            schema["dependentRequired"] = {
                self._budget.text(key, 200): self._required_names(names)
                for key, names in list(raw["dependentRequired"].items())[:MAX_BRANCHES]
            }
        for keyword in _SUBSCHEMAS:
            if raw.get(keyword) is None:
                continue
            if isinstance(raw[keyword], bool) and keyword in _MAY_BE_FALSE:
                schema[keyword] = raw[keyword]
            else:
                schema[keyword] = self._schema(raw[keyword], depth + 1, is_value=keyword in _DESCENDING)
        for keyword in _BRANCHES:
            branches = raw.get(keyword)
            if isinstance(branches, list) and branches:
                if len(branches) > MAX_BRANCHES:
                    self._budget.note("drop-excess-branches")
                else:
                    schema[keyword] = [
                        self._schema(branch, depth + 1, is_value=keyword == "prefixItems") for branch in branches
                    ]
            elif branches is not None:
                self._budget.note("drop-invalid-keyword")
        if is_value:
            required = self._existing(required, schema)
        if required:
            schema["required"] = required

    def _modernise(self, raw: JsonObject) -> JsonObject:
        """Older drafts' array items and dependencies in the words of 2020-12."""
        raw = dict(raw)
        if isinstance(raw.get("items"), list):
            self._budget.note("items-to-prefix-items")
            raw.setdefault("prefixItems", raw.pop("items"))
            raw["items"] = raw.get("additionalItems")
        elif "additionalItems" in raw:
            self._budget.note("drop-unknown-keywords")
        if isinstance(raw.get("dependencies"), dict):
            self._budget.note("split-dependencies")
            for key, value in raw["dependencies"].items():
                target = "dependentRequired" if isinstance(value, list) else "dependentSchemas"
                present = raw.get(target)
                raw[target] = {**(present if isinstance(present, dict) else {}), key: value}
        return raw

    def _properties(self, raw: Any, required: list[str], depth: int) -> JsonObject:
        """The property schemas; `required` takes up names that the properties themselves call required."""
        note = self._budget.note
        if isinstance(raw, list):
            note("properties-from-list")
            listed = object_from_arguments(raw, self._budget)
            required.extend(name for name in listed["required"] if name not in required)
            raw = listed["properties"]
        if not isinstance(raw, dict):
            note("drop-non-schema")
            return {}
        if raw.get("type") == "object" and isinstance(raw.get("properties"), dict):
            note("unwrap-nested-schema")
            required.extend(name for name in self._required_names(raw.get("required")) if name not in required)
            raw = raw["properties"]
        is_shorthand = all(isinstance(value, str) for value in raw.values())
        properties: JsonObject = {}
        for key, value in raw.items():
            if not isinstance(value, dict) and not is_shorthand and key in _KEYWORDS:
                note("drop-non-schema-member")
                if key == "required":
                    required.extend(name for name in self._required_names(value) if name not in required)
                continue
            if len(properties) >= MAX_PROPERTIES:
                note("drop-excess-properties")
                break
            name = self._budget.text(key, 200)
            if not name or name in properties:
                note("drop-unusable-property")
                continue
            if isinstance(value, dict) and _is_marked_required(value, self._budget) and name not in required:
                required.append(name)
            properties[name] = self._schema(value, depth + 1, is_value=True, name=name)
        return properties

    def _schemas(self, raw: Mapping[str, object], depth: int) -> JsonObject:
        """A map of schemas other than `properties`."""
        if len(raw) > MAX_BRANCHES:
            self._budget.note("drop-excess-branches")
        return {
            self._budget.text(key, 200): self._schema(value, depth + 1)
            for key, value in list(raw.items())[:MAX_BRANCHES]
        }

    def _required_names(self, raw: object) -> list[str]:
        """The distinct strings of a `required` list; a boolean belongs to the schema around and is read there."""
        if raw is None or isinstance(raw, bool):
            return []
        listed = [raw] if isinstance(raw, str) else raw
        names = [name for name in listed if isinstance(name, str) and name] if isinstance(listed, list) else []
        unique = [self._budget.text(name, 200) for name in dict.fromkeys(names[: 2 * MAX_PROPERTIES])]
        if unique != raw:
            self._budget.note("clean-required")
        return unique

    def _existing(self, required: list[str], schema: JsonObject) -> list[str]:
        """The required names that the schema lets a caller know of."""
        is_open = isinstance(schema.get("additionalProperties"), dict) or "patternProperties" in schema
        if not required or is_open:
            return required
        known = set(schema.get("properties", ()))
        for keyword in ("allOf", "anyOf", "oneOf"):
            for branch in schema.get(keyword, ()):
                if "$ref" in branch:
                    return required
                known.update(branch.get("properties", ()))
        kept = [name for name in required if name in known]
        if len(kept) < len(required):
            self._budget.note("drop-missing-required")
        return kept

    def _infer_type(self, schema: JsonObject) -> None:
        for keyword, word in (("properties", "object"), ("additionalProperties", "object"), ("items", "array")):
            if keyword in schema:
                self._budget.note("infer-type")
                schema["type"] = word
                return

    def _constrain(self, raw: JsonObject, schema: JsonObject) -> None:
        """Copies what limits values: enum, const, bounds, counts, pattern."""
        if "enum" in raw:
            schema.update(kw.repair_enum(raw["enum"], schema, self._budget))
        if "const" in raw:
            try:
                const = self._budget.value(raw["const"])
            except Unusable:
                const = None
            if (const is None and raw["const"] is not None) or not has_type(const, kw.types_of(schema)):
                self._budget.note("drop-invalid-keyword")
            else:
                schema["const"] = const
        schema.update(kw.repair_bounds(raw, self._budget))
        schema.update(kw.repair_counts(raw, self._budget))
        if raw.get("pattern") is not None and (pattern := kw.repair_pattern(raw["pattern"], self._budget)):
            schema["pattern"] = pattern

    def _reference(self, raw: JsonObject, depth: int, *, is_value: bool, name: str) -> JsonObject:
        """The target in place, or a reference into `$defs`, together with the keywords beside the reference."""
        reference = raw["$ref"]
        beside = {key: value for key, value in raw.items() if key != "$ref"}
        try:
            pointer, target = self._document.find(reference if isinstance(reference, str) else "")
        except Dangling:
            is_remote = isinstance(reference, str) and not reference.startswith("#")
            self._budget.note("drop-remote-reference" if is_remote else "drop-dangling-reference")
            return self._schema(beside, depth, is_value=is_value, name=name)
        siblings = self._schema(beside, depth, name=name) if beside else {}
        body = self._target(pointer, target, depth, is_value=is_value)
        if body.get("$ref") != reference:
            self._budget.note("move-reference" if "$ref" in body else "inline-reference")
        if can_merge(siblings, body):
            merged = {**body, **siblings}
            default = kw.repair_default(merged.pop("default"), merged, self._budget) if "default" in merged else {}
            return {**merged, **default}
        return {**siblings, "allOf": [body, *siblings.get("allOf", ())]}

    def _target(self, pointer: str, target: object, depth: int, *, is_value: bool) -> JsonObject:
        if pointer in self._active:
            self._recursive.add(pointer)
            return {"$ref": self._uri(pointer)}
        if pointer not in self._known:
            self._active.add(pointer)
            body = self._schema(target, depth + 1, is_value=is_value)
            self._active.discard(pointer)
            if pointer in self._recursive or size(body) > INLINE_SIZE:
                uri = self._uri(pointer)
                self._definitions[self._names[pointer]] = body
                body = {"$ref": uri}
            self._known[pointer] = body
        elif not self._budget.spend(nodes=size(self._known[pointer])):
            self._budget.note("cut-size")
            return {}
        return copy.deepcopy(self._known[pointer])

    def _uri(self, pointer: str) -> str:
        if not pointer:
            return "#"
        if pointer not in self._names:
            taken: dict[str, Any] = dict.fromkeys(self._names.values())
            self._names[pointer] = definition_name(pointer, taken)
        return f"#/$defs/{self._names[pointer]}"


def _is_marked_required(raw: JsonObject, budget: Budget) -> bool:
    """Whether a property calls itself required, which is the business of the object around it."""
    marker = raw.get("required")
    if isinstance(marker, bool) or marker in ("true", "false"):
        budget.note("hoist-required")
    if "optional" in raw:
        budget.note("drop-optional-marker")
    return marker is True or marker == "true"
