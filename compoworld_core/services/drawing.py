"""Drawing values: legal JSON values for a schema, with the meaning that its semantic type asks for.

Seeding fills rows with it, admission and task authors fill arguments with it. A value is first drawn by meaning (a
person of the universe for `email`), then by JSON type, and only a value that the schema allows is returned.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import Any

from compoworld_core.services import lexicon
from compoworld_core.services.schema import semantic_of
from compoworld_core.services.subjects import Subjects
from compoworld_core.services.timeline import Timeline
from compoworld_core.services.universe import COUNTRY_CODES, Universe
from compoworld_core.specs.validation import validator
from compoworld_core.specs.verbs import tokenise

_SUBJECTS = (
    "Quarterly review",
    "Delivery schedule",
    "Onboarding checklist",
    "Renewal terms",
    "Site visit",
    "Budget proposal",
    "Safety audit",
    "Supplier comparison",
    "Training plan",
    "Damaged shipment",
    "Price adjustment",
    "Access request",
    "Release notes",
    "Warranty question",
    "Storage move",
    "Kick-off agenda",
    "Maintenance window",
    "Customer feedback",
    "Invoice query",
    "Hiring plan",
    "Inventory count",
    "Backup restore",
    "Press release",
    "Data cleanup",
    "Contract draft",
    "Travel booking",
    "Equipment loan",
    "Survey results",
)
_SENTENCES = (
    "Please review the figures before the end of the week.",
    "The delivery was later than agreed.",
    "We agreed to split the work into two phases.",
    "The numbers were checked against last year's report.",
    "Everything arrived in good order.",
    "A replacement part has been requested.",
    "The team prefers a morning slot.",
    "No further action is needed for now.",
    "The quote still has to be confirmed in writing.",
    "This supersedes what we said on the phone.",
    "The room was booked for the whole afternoon.",
)
_TAGS = ("urgent", "internal", "external", "quarterly", "renewal", "hardware", "training", "legal", "pilot", "archive")
_DEEPEST = 6
"""Levels of nesting below which only empty lists and objects are drawn; schemas may be recursive."""
_MOST_PARTS = 2_000
_MOST_CHARS = 1_000_000
"""What one value may consist of; schemas may ask for lists of lists without end, or for texts of any length."""

_LOWER = frozenset({"min", "minimum", "lowest", "from", "least"})
_UPPER = frozenset({"max", "maximum", "highest", "to", "most"})


class _Row:
    """What the values of one object share: its subjects, its dates, its ranges."""

    def __init__(self, drawing: Drawing, properties: Mapping[str, Any] | None = None, about: str = "") -> None:
        self.about = about
        self.words = {name: word for name, part in (properties or {}).items() if (word := semantic_of(part))}
        dates = [name for name, word in self.words.items() if word in ("date", "timestamp")]
        self.subjects = Subjects(drawing.universe, drawing.rng, self.words)
        self.timeline = Timeline(drawing.rng, drawing.start, dates, about)
        self._bounds: dict[tuple[tuple[str, ...], bool], Decimal] = {}

    def within_bounds(self, name: str, number: Decimal) -> Decimal:
        """The number for one end of a range, such that `salary_max` lies above `salary_min`."""
        tokens = tokenise(name)
        is_upper = bool(_UPPER & set(tokens))
        if not is_upper and not _LOWER & set(tokens):
            return number
        stem = tuple(token for token in tokens if token not in _LOWER | _UPPER)
        if (stem, is_upper) in self._bounds:
            return self._bounds[stem, is_upper]
        other = self._bounds.get((stem, not is_upper))
        if other is not None and (number <= other if is_upper else number >= other):
            number = other * 5 / 4 if is_upper else other * 4 / 5
        self._bounds[stem, is_upper] = number
        return number


@dataclass
class Drawing:
    """Draws values from a universe with its own random numbers.

    Attributes:
        ids: Existing ids by entity, for `id:<entity>` values.
        start: The world's start time; dates fall in the weeks around it.
        about: What the values belong to, as an entity is named.
    """

    universe: Universe
    rng: random.Random
    start: datetime
    ids: Mapping[str, Sequence[str]] = field(default_factory=dict)
    about: str = ""
    _depth: int = 0
    _parts: int = 0
    _chars: int = 0

    def __post_init__(self) -> None:
        self._row = _Row(self, about=self.about)

    def fresh(self, about: str = "") -> Drawing:
        """The same source for another row: its people, places, products and dates are drawn anew."""
        return Drawing(self.universe, self.rng, self.start, self.ids, about)

    @contextmanager
    def _another_row(self, properties: Mapping[str, Any] | None, about: str) -> Iterator[None]:
        row, self._row = self._row, _Row(self, properties, about)
        try:
            yield
        finally:
            self._row = row

    def value(self, name: str, schema: Mapping[str, Any]) -> Any:
        """A value that the schema allows, by meaning where it has one.

        Raises:
            ValueError: No candidate satisfies the schema.
        """
        if self._depth > _DEEPEST:
            raise ValueError(f"{name!r} is nested too deeply")
        if self._depth == 0:
            self._parts = self._chars = 0
        self._parts += 1
        if self._parts > _MOST_PARTS:
            raise ValueError(f"{name!r} has too many parts")
        is_valid = validator(_local(schema)).is_valid
        self._depth += 1
        try:
            candidates = self._candidates(name, schema)
        finally:
            self._depth -= 1
        for candidate in candidates:
            if is_valid(candidate):
                return candidate
        raise ValueError(f"no value found for {name!r}")

    def object(self, schema: Mapping[str, Any], *, optional: float = 0.0) -> dict[str, Any]:
        """An object with all required properties, and each optional one with the given probability.

        Raises:
            ValueError: No value was found for a required property.
        """
        return self._object(schema, optional, self.about)

    def _object(self, schema: Mapping[str, Any], optional: float, about: str) -> dict[str, Any]:
        with self._another_row(schema.get("properties", {}), about):
            return self._filled(schema, optional)

    def _filled(self, schema: Mapping[str, Any], optional: float) -> dict[str, Any]:
        drawn = self._properties(schema, schema.get("required", ()), optional)
        alternatives = [part for key in ("anyOf", "oneOf") for part in schema.get(key, ()) if isinstance(part, dict)]
        if not alternatives:
            return drawn
        is_valid = validator(_local(schema)).is_valid
        for part in self.rng.sample(alternatives, len(alternatives)):
            if is_valid(drawn):
                return drawn
            merged = {**schema, "properties": {**schema.get("properties", {}), **part.get("properties", {})}}
            drawn = self._properties(merged, (*schema.get("required", ()), *part.get("required", ())), 0.0)
        if not is_valid(drawn):
            raise ValueError("no alternative of the object could be drawn")
        return drawn

    def _properties(self, schema: Mapping[str, Any], required: Sequence[str], optional: float) -> dict[str, Any]:
        properties = schema.get("properties", {})
        drawn = {}
        for name, part in {**properties, **{name: {} for name in required if name not in properties}}.items():
            if name in required or self.rng.random() < optional:
                try:
                    drawn[name] = self.value(name, {**_definitions(schema), **part} if isinstance(part, dict) else {})
                except ValueError:
                    if name in required:
                        raise
        return drawn

    def _candidates(self, name: str, schema: Mapping[str, Any]) -> list[Any]:
        schema = _resolve(schema)
        if "const" in schema:
            return [schema["const"]]
        if schema.get("enum"):
            return self.rng.sample(list(schema["enum"]), len(schema["enum"]))
        found: list[Any] = []
        word = semantic_of(schema)
        if word and schema.get("type") != "array":
            found += self._by_meaning(name, word)
            found += [_as_number(item) for item in found if isinstance(item, str) and _as_number(item) is not None]
        found += self._by_type(name, schema)
        branches = [
            part for key in ("anyOf", "oneOf", "allOf") for part in schema.get(key, ()) if isinstance(part, dict)
        ]
        for part in branches:
            if part.get("type") != "null":
                found += self._candidates(name, {**_definitions(schema), **part})
        if any(part.get("type") == "null" for part in branches) or "null" in _types(schema):
            found.append(None)
        return [*found, *schema.get("examples", ()), *([schema["default"]] if "default" in schema else [])]

    def _by_meaning(self, name: str, word: str) -> list[Any]:
        rng = self.rng
        if word.startswith("id:"):
            ids = self.ids.get(word.removeprefix("id:"), ())
            return [rng.choice(ids)] if ids else []
        subjects = self._row.subjects
        match word:
            case "email":
                return [subjects.person(name).email]
            case "person_name":
                return [self._person_name(name)]
            case "username":
                return [subjects.person(name).username]
            case "phone":
                return [subjects.phone(name)]
            case "organisation_name":
                return [subjects.organisation(name).name]
            case "city":
                return [subjects.place(name)[0]]
            case "country":
                country = subjects.place(name)[1]
                return [country, COUNTRY_CODES[country], "DE", "DK", "SE"]
            case "product_name":
                return [subjects.product.name]
            case "sku":
                return [subjects.product.sku]
            case "project_name":
                return [subjects.project.name]
            case "money":
                amount = self._amount(name)
                return [format(amount, ".2f"), int(amount)]
            case "percent":
                percentage = lexicon.percentage(name, rng)
                return [str(percentage), percentage]
            case "quantity":
                return [lexicon.number(name, rng), rng.randint(1, 60)]
            case "currency":
                return ["EUR"]
            case "date":
                moment = self._row.timeline.moment(name, is_day=True)
                return [moment.date().isoformat(), moment.isoformat()]
            case "timestamp":
                moment = self._row.timeline.moment(name, is_day=False)
                return [moment.isoformat(), moment.strftime("%Y-%m-%dT%H:%M:%SZ"), moment.date().isoformat()]
            case "url":
                return [self._url(name)]
            case "title":
                return [self._title(name)]
            case "text":
                return [" ".join(rng.sample(_SENTENCES, 2))]
            case "tag":
                return [rng.choice(_TAGS)]
            case "query":
                return [subjects.codename, "a"]
            case "limit":
                return [rng.randint(2, 20), 1]
        return []

    def _person_name(self, name: str) -> str:
        full, tokens = self._row.subjects.person(name).name, tokenise(name)
        if tokens[-1:] == ("name",) and tokens[-2:-1] in (("first",), ("given",)):
            return full.split()[0]
        is_last = tokens[-1:] == ("surname",) or tokens[-2:] in (("last", "name"), ("family", "name"))
        return full.split()[-1] if is_last else full

    def _amount(self, name: str) -> Decimal:
        """An amount: the product's own price in a row that names a product, or is one."""
        is_priced = bool({"sku", "product_name"} & set(self._row.words.values())) or self._row.about == "product"
        if is_priced and tokenise(name) in (("price",), ("unit", "price")):
            return self._row.subjects.product.price
        return self._row.within_bounds(name, lexicon.amount(name, self.rng))

    def _url(self, name: str) -> str:
        domain = self._row.subjects.organisation(name).domain
        tokens = [token for token in tokenise(name) if token not in ("url", "urls", "uri", "link", "href")]
        if not tokens or tokens[-1] in ("website", "homepage", "site"):
            return f"https://{domain}" if tokens else f"https://{domain}/{self.rng.randint(100, 999)}"
        return f"https://{domain}/{'-'.join(tokens)}/{self.rng.randint(100, 9999)}"

    def _title(self, name: str) -> str:
        subjects = self._row.subjects
        tokens = tokenise(name)
        if tokens[-2:] == ("job", "title"):
            return subjects.person(name.replace("job_title", "")).role
        own = lexicon.name_of(self._row.about, self.rng, subjects) if tokens in (("name",), ("title",)) else None
        return own or f"{self.rng.choice(_SUBJECTS)} {subjects.codename}"

    def _by_type(self, name: str, schema: Mapping[str, Any]) -> list[Any]:
        rng = self.rng
        found: list[Any] = []
        for kind in _types(schema):
            if kind == "string":
                found += [*self._words(name, schema), *_formatted(schema.get("format"), self.start)]
            elif kind in ("integer", "number"):
                found += self._numbers(name, schema, kind)
            elif kind == "boolean":
                found.append(rng.random() < 0.5)
            elif kind == "array":
                items = schema.get("items", {})
                part = {**_definitions(schema), **items} if isinstance(items, dict) else {}
                count = max(int(schema.get("minItems", 1)), 1)
                if self._parts + count > _MOST_PARTS:
                    raise ValueError(f"{name!r} has too many parts")
                with suppress(ValueError):
                    found.append(self._items(name, part, count))
                found.append([])
            elif kind == "object" and (schema.get("properties") or "object" in (schema.get("type"), *_types(schema))):
                with suppress(ValueError):
                    found.append(self._object(schema, 0.3, name))
                found.append({})
        return found

    def _items(self, name: str, part: Mapping[str, Any], count: int) -> list[Any]:
        items = [self.value(name, part)]
        for _ in range(count - 1):
            with self._another_row(None, self._row.about):
                items.append(self.value(name, part))
        return items

    def _numbers(self, name: str, schema: Mapping[str, Any], kind: str) -> list[Any]:
        """Numbers that the schema's bounds allow, one of the size that the name suggests first."""
        low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + ("exclusiveMinimum" in schema))
        high = schema.get("maximum", schema.get("exclusiveMaximum", low + 90) - ("exclusiveMaximum" in schema))
        step = schema.get("multipleOf", 1)
        usual = int(self._row.within_bounds(name, Decimal(lexicon.number(name, self.rng))))
        drawn = self.rng.randint(int(low), max(int(low), min(int(high), int(low) + 500)))
        is_open = not {"maximum", "exclusiveMaximum"} & schema.keys()
        found = [number - number % step if step else number for number in (usual, drawn)]
        found = found if usual >= low and (is_open or usual <= high) else found[1:]
        return [*found, low, high, *([(low + high) / 2] if kind == "number" else [])]

    def _words(self, name: str, schema: Mapping[str, Any]) -> list[str]:
        """Short texts: what the field's meaning, description or name suggests."""
        low, high = int(schema.get("minLength", 0)), schema.get("maxLength")
        self._chars += low
        if self._chars > _MOST_CHARS:
            raise ValueError(f"{name!r} has to be too long")
        texts = [self._short_text(name, schema)]
        told = lexicon.told_samples(str(schema.get("description", "")))
        if told and semantic_of(schema) is None and self.rng.random() < 0.5:
            texts.insert(0, self.rng.choice(told))
        texts = [_lengthened(text, low) for text in texts]
        return texts if high is None else [*(text for text in texts if len(text) <= high), texts[-1][: int(high)]]

    def _short_text(self, name: str, schema: Mapping[str, Any]) -> str:
        word = semantic_of(schema) or ""
        if not word.startswith("id:"):
            return lexicon.plain_text(name, self.rng, self._row.subjects)
        return lexicon.plain_text(f"{word.removeprefix('id:')}_code", self.rng, self._row.subjects)


def _types(schema: Mapping[str, Any]) -> tuple[str, ...]:
    kind = schema.get("type")
    if isinstance(kind, str):
        return (kind,)
    if isinstance(kind, list):
        return tuple(kind)
    if "properties" in schema:
        return ("object",)
    if any(key in schema for key in ("anyOf", "oneOf", "allOf", "$ref")):
        return ()
    return ("string",)


def _definitions(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: schema[key] for key in ("$defs", "definitions") if key in schema}


def _resolve(schema: Mapping[str, Any], depth: int = 8) -> Mapping[str, Any]:
    reference = schema.get("$ref")
    if not isinstance(reference, str) or not reference.startswith("#/") or depth == 0:
        return schema
    target: Any = schema
    for part in reference[2:].split("/"):
        target = target.get(part.replace("~1", "/").replace("~0", "~"), {}) if isinstance(target, Mapping) else {}
    return _resolve({**_definitions(schema), **target}, depth - 1) if isinstance(target, Mapping) else {}


def _local(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key not in ("default", "examples", "description")}


def _lengthened(text: str, length: int) -> str:
    """The text, with more of the same where it is too short."""
    return text if len(text) >= length else (f"{text} " * (length // (len(text) + 1) + 1))[: length - 1] + text[-1:]


def _as_number(text: str) -> int | float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return int(number) if number.is_integer() else number


def _formatted(format_: Any, start: datetime) -> list[str]:
    known = {
        "date": start.date().isoformat(),
        "date-time": start.isoformat(),
        "email": "someone@example.com",
        "uri": "https://example.com/1",
        "uuid": "3f1c9f0e-6f6f-4f6e-9d5c-0a1b2c3d4e5f",
        "time": "10:00:00",
    }
    return [known[format_]] if format_ in known else []
