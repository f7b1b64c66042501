"""Simpler equivalents of `anyOf`, `oneOf` and `allOf`, which generators use where a plain schema would do."""

from __future__ import annotations

from typing import Final

from compoworld_core.specs.keywords import types_of
from compoworld_core.specs.model import JsonObject
from compoworld_core.specs.repairs import Repair
from compoworld_core.specs.values import Budget, json_equal_key

_ANNOTATIONS: Final = frozenset({"title", "description", "default", "examples", "deprecated"})
_SIMPLE: Final = _ANNOTATIONS | {"type", "x-semantic"}
_NEIGHBOURLY: Final = frozenset(
    "additionalProperties unevaluatedProperties unevaluatedItems items if then else contains".split()
)
"""Keywords whose meaning depends on what stands beside them."""
_COMPOSED: Final = frozenset({"$ref", "allOf", "anyOf", "oneOf", "not", "if", "const"})


def simplify_branches(schema: JsonObject, budget: Budget) -> JsonObject:
    """The schema with single, nullable and plain-type branches folded into it."""
    for keyword in ("anyOf", "oneOf", "allOf"):
        branches = schema.get(keyword)
        if branches is None:
            continue
        rest = {key: value for key, value in schema.items() if key != keyword}
        folded, repair = _fold(branches, keyword)
        if folded is not None and repair is not None and can_merge(rest, folded):
            budget.note(repair)
            schema = {**folded, **rest}
    return schema


def can_merge(one: JsonObject, other: JsonObject) -> bool:
    """Whether two schemas of one value can be written as one object, the annotations of one winning."""
    pairs = ((one, other), (other, one))
    shared = set(one) & set(other) - _ANNOTATIONS
    if any(one[key] != other[key] for key in shared):
        return False
    if any("type" in typed and "type" not in bare and {"enum", "const"} & set(bare) for typed, bare in pairs):
        return False
    is_simple = _SIMPLE.issuperset(one) or _SIMPLE.issuperset(other)
    return is_simple or not _NEIGHBOURLY & (set(one) | set(other))


def _fold(branches: list[JsonObject], keyword: str) -> tuple[JsonObject | None, Repair | None]:
    """One schema that says the same as the branches, if there is a simple one, and the name of the repair."""
    if len(branches) == 1:
        return branches[0], "unwrap-single-branch"
    if keyword == "allOf":
        return None, None
    if len(branches) == 2 and {"type": "null"} in branches:
        return _nullable(next(branch for branch in branches if branch != {"type": "null"})), "collapse-nullable"
    if all(set(branch) == {"type"} for branch in branches):
        types = list(dict.fromkeys(word for branch in branches for word in types_of(branch)))
        is_exclusive = keyword == "anyOf" or "number" not in types or "integer" not in types
        return ({"type": types} if is_exclusive else None), "merge-type-branches"
    if all("const" in branch and set(branch) <= {"const", "type"} for branch in branches):
        values = {json_equal_key(branch["const"]): branch["const"] for branch in branches}
        return {"enum": list(values.values())}, "enum-from-constants"
    return None, None


def _nullable(schema: JsonObject) -> JsonObject | None:
    """The schema that also allows null; None where that cannot be said by `type` and `enum` alone."""
    types = types_of(schema)
    if _COMPOSED & set(schema) or not types:
        return None
    result = {**schema, "type": [*types, "null"] if "null" not in types else list(types)}
    if "enum" in schema and None not in schema["enum"]:
        result["enum"] = [*schema["enum"], None]
    return result
