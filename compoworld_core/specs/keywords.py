"""Repairs of single JSON Schema keywords: what authors and older drafts write, brought to draft 2020-12."""

from __future__ import annotations

import math
import re
from typing import Any, Final

from compoworld_core.specs.model import JsonObject
from compoworld_core.specs.validation import validator
from compoworld_core.specs.values import Budget, Unusable, coerce, has_type, json_equal_key

MAX_ENUM: Final = 2_000
SENTINEL_BOUND: Final = 2**53 - 1
LEAST_COUNTS: Final = {"minLength": 2_000, "minItems": 100, "minProperties": 100, "minContains": 100}
"""Most that a schema may require at least: what nobody would send is a mistake, or meant to exhaust whoever tries."""
"""Largest safe integer of JavaScript: generators write it where they mean "no bound"."""

TYPES: Final = ("string", "integer", "number", "boolean", "object", "array", "null")
BOUNDS: Final = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
COUNTS: Final = (
    "minLength",
    "maxLength",
    "minItems",
    "maxItems",
    "minProperties",
    "maxProperties",
    "minContains",
    "maxContains",
)
FLAGS: Final = ("uniqueItems", "deprecated", "readOnly", "writeOnly")

_ALIASES: Final[dict[str, str]] = {
    alias: word
    for word, aliases in {
        "string": "str text char varchar file binary bytes path password enum",
        "integer": "int int32 int64 long short uint",
        "number": "float double decimal num numeric real",
        "boolean": "bool",
        "object": "dict map json record struct hash interface",
        "array": "list tuple set sequence",
        "null": "none nil void undefined",
    }.items()
    for alias in aliases.split()
}
_FORMATS: Final[dict[str, str]] = {
    "date": "date",
    "datetime": "date-time",
    "date-time": "date-time",
    "timestamp": "date-time",
    "time": "time",
    "uuid": "uuid",
    "email": "email",
    "uri": "uri",
    "url": "uri",
}
_ANY: Final = frozenset({"any", "mixed", "unknown", "*", "object | string", ""})


def type_words(word: str, depth: int = 0) -> JsonObject | None:
    """The schema that a type word such as `int`, `string[]`, `list[str]` or `date?` stands for; None if unknown."""
    word = word.strip().lower()
    if len(word) > 80 or depth > 4:
        return None
    if word in TYPES:
        return {"type": word}
    if word in _ANY:
        return {}
    if word in _ALIASES:
        return {"type": _ALIASES[word]}
    if word in _FORMATS:
        return {"type": "string", "format": _FORMATS[word]}
    if word.endswith("?"):
        return _nullable(type_words(word[:-1], depth + 1))
    if match := re.fullmatch(r"optional\[(.+)\]", word):
        return _nullable(type_words(match[1], depth + 1))
    if match := re.fullmatch(r"(.+)\[\]|(?:list|array|sequence|set)[\[<](.+)[\]>]", word):
        items = type_words(match[1] or match[2], depth + 1)
        return {"type": "array"} if items is None else {"type": "array", "items": items}
    if re.fullmatch(r"(?:dict|map|record|mapping)[\[<].*[\]>]", word):
        return {"type": "object"}
    if "|" in word:
        parts = [type_words(part, depth + 1) for part in word.split("|")]
        known = [part["type"] for part in parts if part is not None and set(part) == {"type"}]
        return {"type": list(dict.fromkeys(known))} if len(known) == len(parts) else None
    return None


def _nullable(schema: JsonObject | None) -> JsonObject | None:
    if schema is None or not isinstance(schema.get("type"), str):
        return schema
    return {**schema, "type": [schema["type"], "null"]}


def types_of(schema: JsonObject) -> tuple[str, ...]:
    """The types that a repaired schema allows; empty for any."""
    declared = schema.get("type", [])
    return (declared,) if isinstance(declared, str) else tuple(declared)


def repair_type(raw: object, budget: Budget) -> JsonObject:
    """The schema part (`type`, perhaps `format` or `items`) for whatever stands under `type`."""
    if isinstance(raw, str) and raw in TYPES:
        return {"type": raw}
    if isinstance(raw, str):
        part = type_words(raw)
        budget.note("drop-unknown-type" if part is None else "map-type-word")
        return part or {}
    if isinstance(raw, list):
        parts = [type_words(word) if isinstance(word, str) else None for word in raw[:20]]
        words = list(dict.fromkeys(part["type"] for part in parts if part and isinstance(part.get("type"), str)))
        if {} in parts:  # any
            words = []
        if words != raw:
            budget.note("map-type-word" if words else "drop-unknown-type")
        return {"type": words[0] if len(words) == 1 else words} if words else {}
    budget.note("drop-unknown-type")
    return {}


def repair_bounds(raw: JsonObject, budget: Budget) -> JsonObject:
    """The numeric keywords, with draft-04 booleans, numbers as text and meaningless bounds repaired."""
    bounds: JsonObject = {}
    for keyword in BOUNDS:
        value = raw.get(keyword)
        if value is None or isinstance(value, bool):
            continue
        number = _number(value, keyword, budget)
        if number is None:
            continue
        if abs(number) >= SENTINEL_BOUND:
            budget.note("drop-sentinel-bound")
        else:
            bounds[keyword] = number
    for exclusive, inclusive in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(raw.get(exclusive), bool):
            budget.note("convert-exclusive-bound")
            if raw[exclusive] and inclusive in bounds:
                bounds[exclusive] = bounds.pop(inclusive)
    low = max((bounds[key] for key in ("minimum", "exclusiveMinimum") if key in bounds), default=-math.inf)
    high = min((bounds[key] for key in ("maximum", "exclusiveMaximum") if key in bounds), default=math.inf)
    is_open = bounds.get("exclusiveMinimum") == low or bounds.get("exclusiveMaximum") == high
    if low > high or (low == high and is_open):
        budget.note("drop-contradictory-bounds")
        bounds = {}
    step = raw.get("multipleOf")
    if step is not None and (number := _number(step, "multipleOf", budget)) is not None and number > 0:
        bounds["multipleOf"] = number
    return bounds


def _number(value: object, keyword: str, budget: Budget) -> Any:
    try:
        number = coerce(budget.value(value), ("number",))
    except Unusable:
        budget.note("drop-invalid-keyword")
        return None
    if number is not value:
        budget.note("coerce-keyword")
    return number


def repair_counts(raw: JsonObject, budget: Budget) -> JsonObject:
    """The length and size keywords; a lower one above the upper one drops both."""
    counts: JsonObject = {}
    for keyword in COUNTS:
        if raw.get(keyword) is None:
            continue
        number = _number(raw[keyword], keyword, budget)
        if number is None:
            continue
        if number < 0 or number != int(number):
            budget.note("drop-invalid-keyword")
        elif number >= SENTINEL_BOUND:
            budget.note("drop-sentinel-bound")
        elif number > LEAST_COUNTS.get(keyword, math.inf):
            budget.note("drop-unreachable-minimum")
        else:
            counts[keyword] = int(number)
    for thing in ("Length", "Items", "Properties", "Contains"):
        if counts.get(f"min{thing}", 0) > counts.get(f"max{thing}", math.inf):
            budget.note("drop-contradictory-bounds")
            del counts[f"min{thing}"], counts[f"max{thing}"]
    return counts


def repair_pattern(raw: object, budget: Budget) -> str | None:
    """The regular expression, if it is one and of a sane length."""
    if isinstance(raw, str) and len(raw) <= 1_000:
        cleaned = budget.text(raw, 1_000)
        if cleaned == raw and is_pattern(raw):
            return raw
    budget.note("drop-invalid-pattern")
    return None


def is_pattern(text: str) -> bool:
    """Whether the text is a regular expression as JSON Schema understands them."""
    try:
        validator({"pattern": text})
    except ValueError:
        return False
    return True


def repair_enum(raw: object, schema: JsonObject, budget: Budget) -> JsonObject:
    """`enum`, and `type` where the enum shows that null is meant too.

    Args:
        raw: What stands under `enum`.
        schema: The schema so far; its type decides which members stay.
        budget: Where repairs are noted.
    """
    types = types_of(schema)
    members: list[object]
    if isinstance(raw, dict):
        budget.note("enum-from-object")
        members = _object_enum_values(raw, types)
    elif isinstance(raw, list):
        members = raw
    else:
        budget.note("drop-invalid-keyword" if raw is None else "enum-from-scalar")
        members = [] if raw is None else [raw]
    if len(members) > MAX_ENUM:
        budget.note("drop-huge-enum")
        return {}
    unique: dict[str, Any] = {}
    for member in members:
        try:
            value = budget.value(member)
            value = value if value is None else coerce(value, types)
        except Unusable:
            budget.note("drop-enum-member")
            continue
        if value is not None and value != member:
            budget.note("coerce-enum-member")
        key = json_equal_key(value)
        if key in unique:
            budget.note("deduplicate-enum")
        unique.setdefault(key, value)
    if not unique:
        budget.note("drop-empty-enum")
        return {}
    result: JsonObject = {"enum": list(unique.values())}
    if None in result["enum"] and types and "null" not in types:
        budget.note("allow-null-of-enum")
        result["type"] = [*types, "null"]
    return result


def _object_enum_values(raw: JsonObject, types: tuple[str, ...]) -> list[object]:
    """The values of an enum object. A numeric TypeScript enum also maps its numbers back to names: those go."""
    values = list(raw.values())
    scalars: list[object] = [value for value in values if isinstance(value, str | int | float)]
    fitting = [value for value in scalars if has_type(value, types)]
    if any(isinstance(value, int | float) for value in values) and "string" not in types:
        fitting = [value for value in fitting if not isinstance(value, str)]
    return fitting or values


_DATED = re.compile(r"\d{4}-\d{2}-\d{2}(?:[T ].*)?")
_MACHINE_PATH = re.compile(r"(?:/home/|/Users/|/root/|/tmp/|[A-Za-z]:\\).*", re.DOTALL)


def repair_default(raw: object, schema: JsonObject, budget: Budget) -> JsonObject:
    """`default`, if the schema allows it and it does not come from the machine or the day of the build."""
    types = types_of(schema)
    if raw is None and "null" not in types:
        budget.note("drop-null-default")
        return {}
    try:
        value = coerce(budget.value(raw), types)
    except Unusable:
        budget.note("drop-default")
        return {}
    if isinstance(value, str) and (_DATED.fullmatch(value) or _MACHINE_PATH.fullmatch(value)):
        budget.note("drop-environment-default")
        return {}
    keys = {json_equal_key(member) for member in schema.get("enum", ())}
    if "const" in schema:
        keys.add(json_equal_key(schema["const"]))
    if keys and json_equal_key(value) not in keys:
        budget.note("drop-default")
        return {}
    if value != raw:
        budget.note("coerce-default")
    return {"default": value}
