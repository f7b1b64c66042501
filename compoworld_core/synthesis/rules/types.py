"""Types: which Python annotation stands for a JSON Schema and a meaning.

Every type is written twice: as a tool takes it and as a row keeps it. The two differ where a row must be easier to fill
than a call (patterns), or where JSON is free-form (an object of any shape is kept as its canonical JSON text).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

from pydantic_core import SchemaError, SchemaValidator, core_schema

from compoworld_core.services.semantics import SEMANTIC_KEY
from compoworld_core.specs.model import JsonObject
from compoworld_core.synthesis.rules.naming import class_name, is_field_name, quoted

Kind = Literal["text", "integer", "number", "decimal", "boolean", "day", "moment", "list", "part", "json"]

_TEXT_TYPES: Final = {
    "email": "Email",
    "person_name": "PersonName",
    "organisation_name": "OrganisationName",
    "username": "Username",
    "phone": "Phone",
    "url": "Url",
    "country": "Country",
    "city": "City",
    "title": "Title",
    "text": "Text",
    "tag": "Tag",
    "product_name": "ProductName",
    "sku": "Sku",
    "project_name": "ProjectName",
    "query": "Query",
    "cursor": "Cursor",
    "currency": "Currency",
}
_MAX_LITERALS = 60
_MAX_PART_FIELDS = 25
_MAX_DEPTH = 3


@dataclass(frozen=True)
class TypeExpr:
    """A type in source text.

    Attributes:
        kind: What expressions may do with a value.
        taken: Annotation of a tool's parameter.
        kept: Annotation of a row's field.
        schema: JSON Schema, with meanings, that a sample of the value satisfies.
        item: Element type of a list.
        values: Legal values of an enumeration.
        is_nullable: Whether the source allows null.
        wire: Of a value without a type of its own, the source's schema.
    """

    kind: Kind
    taken: str
    kept: str
    schema: JsonObject
    item: TypeExpr | None = None
    values: tuple[Any, ...] = ()
    is_nullable: bool = False
    wire: JsonObject = field(default_factory=dict)

    @property
    def word(self) -> str | None:
        """The meaning of the value or, in a list, of its elements."""
        found = self.schema.get(SEMANTIC_KEY)
        return found if isinstance(found, str) else self.item.word if self.item else None

    @property
    def is_textual(self) -> bool:
        """Whether a search for words can look into it."""
        return (
            self.kind == "text" and not self.values and "|" not in self.kept and not (self.word or "").startswith("id:")
        )


@dataclass(frozen=True)
class PartField:
    """A field of a nested entity."""

    name: str
    type: TypeExpr
    is_required: bool


@dataclass
class Vocabulary:
    """Types that a module defines besides its tables' entities: parts, enumerations, references.

    Attributes:
        parts: Fields of each nested entity, by class name.
        aliases: Source text of each alias, by name.
        taken: Class names that are in use.
    """

    taken: set[str] = field(default_factory=set)
    parts: dict[str, tuple[PartField, ...]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)

    def alias(self, name: str, text: str) -> str:
        """The name under which the module defines a type; equal types share one."""
        for known, other in self.aliases.items():
            if other == text:
                return known
        name = self.free(name)
        self.taken.add(name)
        self.aliases[name] = text
        return name

    def free(self, name: str) -> str:
        """The name, or the nearest one that nothing else has."""
        candidate, number = name, 2
        while candidate in self.taken:
            candidate, number = f"{name}{number}", number + 1
        return candidate

    def part(self, name: str, fields: tuple[PartField, ...]) -> str:
        """The nested entity with these fields."""
        for known, other in self.parts.items():
            if other == fields:
                return known
        name = self.free(name if name not in self.taken else f"{name}Entry")
        self.taken.add(name)
        self.parts[name] = fields
        return name


class TypeWriter:
    """Turns property schemas into types, defining what they need in the module's vocabulary."""

    def __init__(self, vocabulary: Vocabulary, meaning: Any) -> None:
        self.vocabulary = vocabulary
        self._meaning = meaning

    def type_of(self, name: str, schema: Any, definitions: JsonObject, owner: str, depth: int = 0) -> TypeExpr:
        """The type of a property.

        Args:
            name: The property's name, which helps to name what must be defined.
            schema: Its JSON Schema.
            definitions: The `$defs` that references point into.
            owner: Entity that the property belongs to.
        """
        schema = _resolved(schema, definitions)
        schema, is_nullable = _without_null(schema, definitions)
        made = self._type(name, schema, definitions, owner, depth)
        if made.kind == "json":
            made = replace(made, wire={**schema, "$defs": definitions, "definitions": definitions})
        return replace(made, is_nullable=True) if is_nullable else made

    def _type(self, name: str, schema: JsonObject, definitions: JsonObject, owner: str, depth: int) -> TypeExpr:
        values = schema.get("enum", [schema["const"]] if "const" in schema else None)
        if isinstance(values, list) and values and _is_literal(values):
            return self._enumeration(name, values, owner)
        word = self._meaning(name, schema, owner)
        match _json_type(schema):
            case "string":
                return self._text(word, schema)
            case "integer":
                return _integer(word, schema)
            case "number":
                return _number(word, schema)
            case "boolean":
                return TypeExpr("boolean", "bool", "bool", {"type": "boolean"})
            case "array":
                return self._list(name, schema, definitions, owner, depth)
            case "object":
                return self._object(name, schema, definitions, owner, depth)
        kinds = _scalar_types(schema, definitions)
        if kinds:
            text = " | ".join(
                {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}[kind] for kind in kinds
            )
            return TypeExpr("json", text, "Text", _text_schema())
        return TypeExpr("json", "Any", "Text", _text_schema())

    def _enumeration(self, name: str, values: list[Any], owner: str) -> TypeExpr:
        unique = tuple(dict.fromkeys(value for value in values if value is not None))
        text = f"Literal[{', '.join(quoted(value) for value in unique)}]"
        if len(unique) > 2 or len(text) > 40:
            text = self.vocabulary.alias(class_name(f"{owner} {name}"), text)
        kind: Kind = "text" if all(isinstance(value, str) for value in unique) else "integer"
        return TypeExpr(kind, text, text, {"enum": list(unique)}, values=unique, is_nullable=None in values)

    def _text(self, word: str | None, schema: JsonObject) -> TypeExpr:
        sample: JsonObject = {"type": "string", **({SEMANTIC_KEY: word} if word else {})}
        if word == "date":
            return TypeExpr("day", "Day", "Day", {**sample, "format": "date"})
        if word == "timestamp":
            return TypeExpr("moment", "Timestamp", "Timestamp", {**sample, "format": "date-time"})
        bounds = {key: schema[key] for key in ("minLength", "maxLength") if isinstance(schema.get(key), int)}
        sample |= bounds
        named = _TEXT_TYPES.get(word or "")
        if named is None and word and word.startswith("id:"):
            named = self.vocabulary.alias(class_name(f"{word[3:]} ref"), f"Annotated[str, Semantic({quoted(word)})]")
        base = named or "str"
        limits = [f"min_length={bounds['minLength']}"] if bounds.get("minLength") else []
        limits += [f"max_length={bounds['maxLength']}"] if "maxLength" in bounds else []
        kept = _annotated(base, limits)
        pattern = schema.get("pattern")
        if named is None and isinstance(pattern, str) and _is_usable(pattern):
            limits.append(f"pattern={quoted(pattern)}")
        return TypeExpr("text", _annotated(base, limits), kept, sample)

    def _list(self, name: str, schema: JsonObject, definitions: JsonObject, owner: str, depth: int) -> TypeExpr:
        items = schema.get("items")
        item = self.type_of(name, items if isinstance(items, dict) else {}, definitions, owner, depth + 1)
        bounds = {
            key: schema[key] for key in ("minItems", "maxItems") if isinstance(schema.get(key), int) and schema[key]
        }
        limits = [f"{'min' if key == 'minItems' else 'max'}_length={value}" for key, value in bounds.items()]
        if item.kind == "json":
            taken = _annotated(f"tuple[{item.taken}, ...]", limits)
            return TypeExpr("json", taken, "Text", _text_schema())
        sample = {"type": "array", "items": item.schema, **bounds}
        null = " | None" if item.is_nullable else ""
        taken = _annotated(f"tuple[{item.taken}{null}, ...]", limits)
        return TypeExpr("list", taken, f"tuple[{item.kept}{null}, ...]", sample, item=item)

    def _object(self, name: str, schema: JsonObject, definitions: JsonObject, owner: str, depth: int) -> TypeExpr:
        free_form = TypeExpr("json", "dict[str, Any]", "Text", _text_schema())
        properties = schema.get("properties")
        if (
            not isinstance(properties, dict)
            or not properties
            or depth >= _MAX_DEPTH
            or len(properties) > _MAX_PART_FIELDS
        ):
            return free_form
        if isinstance(schema.get("additionalProperties"), dict) or not all(is_field_name(key) for key in properties):
            return free_form
        required = schema.get("required") or ()
        fields = []
        for key, part in properties.items():
            made = self.type_of(key, part, definitions, f"{owner} {_singular_part(name)}", depth + 1)
            if made.kind == "json":
                return free_form
            fields.append(PartField(key, made, key in required))
        fields.sort(key=lambda item: not item.is_required)
        named = self.vocabulary.part(class_name(f"{owner} {_singular_part(name)}"), tuple(fields))
        sample = {
            "type": "object",
            "properties": {item.name: item.type.schema for item in fields},
            "required": [item.name for item in fields if item.is_required],
        }
        return TypeExpr("part", named, named, sample)


def union(first: TypeExpr, second: TypeExpr, vocabulary: Vocabulary, name: str) -> TypeExpr:
    """A type for a field that two tools speak of: whatever either of them stores fits."""
    if first.kept == second.kept or second.kind == "json":
        return first
    if first.values and second.values and first.kind == second.kind:
        values = tuple(dict.fromkeys((*first.values, *second.values)))
        text = vocabulary.alias(class_name(name), f"Literal[{', '.join(quoted(value) for value in values)}]")
        return replace(first, kept=text, taken=text, schema={"enum": list(values)}, values=values)
    if first.values and second.kind == first.kind:
        return second
    if first.kind == second.kind and (second.values or first.kind not in ("list", "part")):
        return first if first.word or not second.word else second
    return replace(first, kept=f"{first.kept} | {second.kept}")


def _annotated(base: str, limits: list[str]) -> str:
    return f"Annotated[{base}, Field({', '.join(limits)})]" if limits else base


def _text_schema() -> JsonObject:
    return {"type": "string", SEMANTIC_KEY: "text"}


def _number_limits(schema: Mapping[str, Any], as_type: type[int] | type[float]) -> tuple[list[str], JsonObject]:
    limits, kept = [], {}
    for key, name in (("minimum", "ge"), ("exclusiveMinimum", "gt"), ("maximum", "le"), ("exclusiveMaximum", "lt")):
        bound = schema.get(key)
        if (
            isinstance(bound, int | float)
            and not isinstance(bound, bool)
            and math.isfinite(bound)
            and abs(bound) < 1e15
        ):
            if as_type is int:
                bound = math.ceil(bound) if name in ("ge", "lt") else math.floor(bound)
            limits.append(f"{name}={int(bound) if float(bound).is_integer() else bound}")
            kept[key] = bound
    return limits, kept


def _integer(word: str | None, schema: JsonObject) -> TypeExpr:
    limits, bounds = _number_limits(schema, int)
    sample: JsonObject = {"type": "integer", **bounds}
    if word == "quantity" and bounds.get("minimum", 0) >= 0 and "exclusiveMinimum" not in bounds:
        sample = {**sample, "minimum": bounds.get("minimum", 0), SEMANTIC_KEY: word}
        text = _annotated("Quantity", [limit for limit in limits if limit != "ge=0"])
        return TypeExpr("integer", text, text, sample)
    text = _annotated("int", limits)
    return TypeExpr("integer", text, text, sample)


def _number(word: str | None, schema: JsonObject) -> TypeExpr:
    limits, bounds = _number_limits(schema, float)
    sample: JsonObject = {"type": "number", **bounds}
    if word == "money" or (word == "percent" and bounds.get("maximum", 100) == 100 and bounds.get("minimum", 0) >= 0):
        base = "Money" if word == "money" else "Percent"
        known = () if word == "money" else ("ge=0", "le=100")
        text = _annotated(base, [limit for limit in limits if limit not in known])
        return TypeExpr("decimal", text, text, {**sample, SEMANTIC_KEY: word})
    text = _annotated("float", limits)
    return TypeExpr("number", text, text, sample)


def _resolved(schema: Any, definitions: JsonObject, depth: int = 8) -> JsonObject:
    if not isinstance(schema, dict):
        return {}
    reference = schema.get("$ref")
    if isinstance(reference, str) and depth:
        target = definitions.get(reference.rsplit("/", 1)[-1])
        return _resolved(target, definitions, depth - 1) if isinstance(target, dict) else {}
    if isinstance(schema.get("allOf"), list) and len(schema["allOf"]) == 1 and "type" not in schema and depth:
        return _resolved(
            {**schema["allOf"][0], **{k: v for k, v in schema.items() if k != "allOf"}}, definitions, depth - 1
        )
    return schema


def _without_null(schema: JsonObject, definitions: JsonObject) -> tuple[JsonObject, bool]:
    kinds = schema.get("type")
    if isinstance(kinds, list):
        rest = [kind for kind in kinds if kind != "null"]
        return ({**schema, "type": rest[0] if len(rest) == 1 else rest}, len(rest) < len(kinds)) if rest else ({}, True)
    for key in ("anyOf", "oneOf"):
        branches = schema.get(key)
        if isinstance(branches, list):
            known = [_resolved(part, definitions) for part in branches]
            rest_ = [part for part in known if part.get("type") != "null"]
            others = {name: value for name, value in schema.items() if name != key}
            if len(rest_) == 1:
                return {**others, **rest_[0]}, len(rest_) < len(known)
            return {**others, key: rest_}, len(rest_) < len(known)
    return schema, bool(schema.get("nullable"))


def _json_type(schema: JsonObject) -> str | None:
    kind = schema.get("type")
    if isinstance(kind, str):
        return kind
    if kind is None and isinstance(schema.get("properties"), dict):
        return "object"
    return None


def _scalar_types(schema: JsonObject, definitions: JsonObject) -> list[str]:
    """The scalar types of a union, or nothing where a branch is not a scalar."""
    kinds = schema.get("type")
    if not isinstance(kinds, list):
        branches = schema.get("anyOf") or schema.get("oneOf") or ()
        kinds = [_resolved(part, definitions).get("type") for part in branches]
    order = ("integer", "number", "boolean", "string")
    return [kind for kind in order if kind in kinds] if kinds and all(kind in order for kind in kinds) else []


def _is_literal(values: list[Any]) -> bool:
    plain = [value for value in values if value is not None]
    return 0 < len(plain) <= _MAX_LITERALS and (
        all(isinstance(value, str) for value in plain)
        or all(isinstance(value, int) and not isinstance(value, bool) for value in plain)
    )


def _is_usable(pattern: str) -> bool:
    try:
        SchemaValidator(core_schema.str_schema(pattern=pattern))
    except SchemaError:
        return False
    return len(pattern) <= 120


def _singular_part(name: str) -> str:
    from compoworld_core.specs.verbs import tokenise
    from compoworld_core.synthesis.rules.words import singular

    words = tokenise(name)
    return " ".join((*words[:-1], singular(words[-1]))) if words else "part"
