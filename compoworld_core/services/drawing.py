"""Drawing values: legal JSON values for a schema, with the meaning that its semantic type asks for.

Seeding fills rows with it, admission and task authors fill arguments with it. A value is first drawn by meaning (a
person of the universe for `email`), then by JSON type, and only a value that the schema allows is returned.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from compoworld_core.services.schema import semantic_of
from compoworld_core.services.universe import Organisation, Person, Product, Project, Universe
from compoworld_core.specs.validation import validator

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

_STAFF_ROLES = frozenset(
    """
    owner assignee approver manager author creator reviewer agent employee organizer organiser lead host
    recruiter instructor technician responder submitter user
""".split()
)


@dataclass
class Drawing:
    """Draws values from a universe with its own random numbers.

    Attributes:
        ids: Existing ids by entity, for `id:<entity>` values.
        start: The world's start time; dates fall in the weeks around it.
    """

    universe: Universe
    rng: random.Random
    start: datetime
    ids: Mapping[str, Sequence[str]] = field(default_factory=dict)
    _people: dict[str, Person] = field(default_factory=dict)
    _depth: int = 0
    _parts: int = 0
    _chars: int = 0

    def fresh(self) -> Drawing:
        """The same source for another row: its people, places and products are drawn anew."""
        return Drawing(self.universe, self.rng, self.start, self.ids)

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
        moment = self.start + timedelta(days=rng.randint(-40, 40), minutes=15 * rng.randint(0, 40))
        match word:
            case "email":
                return [self.person(name).email]
            case "person_name":
                return [self.person(name).name]
            case "username":
                return [self.person(name).username]
            case "phone":
                return [self.person(name).phone]
            case "organisation_name":
                return [self.organisation(name).name]
            case "city":
                return [self.organisation(name).city]
            case "country":
                return [self.organisation(name).country, "DE", "DK", "SE"]
            case "product_name":
                return [self.product().name]
            case "sku":
                return [self.product().sku]
            case "project_name":
                return [self.project().name]
            case "money":
                return [format(Decimal(rng.randint(1200, 480000)) / 100, ".2f"), rng.randint(12, 4800)]
            case "percent":
                return [str(rng.randint(1, 99)), rng.randint(1, 99)]
            case "quantity":
                return [rng.randint(1, 60)]
            case "currency":
                return ["EUR"]
            case "date":
                return [moment.date().isoformat(), moment.isoformat()]
            case "timestamp":
                return [moment.isoformat(), moment.strftime("%Y-%m-%dT%H:%M:%SZ"), moment.date().isoformat()]
            case "url":
                return [f"https://{self.organisation(name).domain}/{rng.randint(100, 999)}"]
            case "title":
                return [f"{rng.choice(_SUBJECTS)} {self.project().name.split()[-1]}"]
            case "text":
                return [" ".join(rng.sample(_SENTENCES, 2))]
            case "tag":
                return [rng.choice(_TAGS)]
            case "query":
                return [self.project().name.split()[-1], "a"]
            case "limit":
                return [rng.randint(2, 20), 1]
        return []

    def _by_type(self, name: str, schema: Mapping[str, Any]) -> list[Any]:
        rng = self.rng
        found: list[Any] = []
        for kind in _types(schema):
            if kind == "string":
                found += [self._words(name, schema), *_formatted(schema.get("format"), self.start)]
            elif kind in ("integer", "number"):
                low = schema.get("minimum", schema.get("exclusiveMinimum", 0) + ("exclusiveMinimum" in schema))
                high = schema.get("maximum", schema.get("exclusiveMaximum", low + 90) - ("exclusiveMaximum" in schema))
                step = schema.get("multipleOf", 1)
                drawn = rng.randint(int(low), max(int(low), min(int(high), int(low) + 500)))
                found += [drawn - drawn % step if step else drawn, low, high]
                found += [(low + high) / 2] if kind == "number" else []
            elif kind == "boolean":
                found.append(rng.random() < 0.5)
            elif kind == "array":
                items = schema.get("items", {})
                part = {**_definitions(schema), **items} if isinstance(items, dict) else {}
                count = max(int(schema.get("minItems", 1)), 1)
                if self._parts + count > _MOST_PARTS:
                    raise ValueError(f"{name!r} has too many parts")
                with suppress(ValueError):
                    found.append([self.value(name, part) for _ in range(count)])
                found.append([])
            elif kind == "object" and (schema.get("properties") or "object" in (schema.get("type"), *_types(schema))):
                with suppress(ValueError):
                    found.append(self.object(schema, optional=0.3))
                found.append({})
        return found

    def _words(self, name: str, schema: Mapping[str, Any]) -> str:
        words = f"{name.replace('_', ' ').strip().capitalize() or 'Value'} {self.rng.randint(100, 9999)}"
        low, high = int(schema.get("minLength", 0)), schema.get("maxLength")
        self._chars += low
        if self._chars > _MOST_CHARS:
            raise ValueError(f"{name!r} has to be too long")
        words = words.ljust(low, "x")
        return words[: int(high)] if high is not None else words

    def person(self, name: str) -> Person:
        """The person of a role, the same for `owner_email` and `owner_name` of one row."""
        role = next((part for part in name.lower().split("_") if part not in ("email", "name", "id", "address")), "")
        if role not in self._people:
            pool = self.universe.staff if role in _STAFF_ROLES else self.universe.people
            self._people[role] = self.rng.choice(pool)
        return self._people[role]

    def organisation(self, name: str) -> Organisation:
        """An organisation, fitting the people drawn so far where one of them is a contact."""
        employers = {person.organisation for person in self._people.values()}
        known = [item for item in self.universe.organisations if item.name in employers]
        return known[0] if known else self.rng.choice(self.universe.organisations)

    def product(self) -> Product:
        """A product."""
        return self.rng.choice(self.universe.products)

    def project(self) -> Project:
        """A project."""
        return self.rng.choice(self.universe.projects)


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
