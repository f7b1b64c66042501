"""Bindings: how a reference solution says where an argument comes from.

An argument is a literal, or an object with one `$` key that is evaluated against the answers of earlier steps:

| form | value |
|---|---|
| `{"$value": "account.owner_email"}` | a value that the solution names once and uses in several places |
| `{"$ref": "s3.data.email"}` | part of an earlier answer |
| `{"$pick": {"from": …, "where": {…}, "take": "id"}}` | a field of the first item whose fields are as given |
| the same with `"nth": 1`, `"most": "issued_on"` or `"least": …` | of the second one; of the one with most or least |
| `{"$sum": {"from": …, "where": {…}, "take": "amount"}}` | the sum of a field over all such items |
| `{"$fact": {"step": "s5", "name": …}}` | what a reader takes from a text that step s5 returned |
| `{"$text": [part, …]}` | parts joined into one text |
| `{"$add" / "$sub" / "$mul": [a, b]}`, `{"$round": [a, places]}` | decimal arithmetic, half-up |
| `{"$shift": [day, days]}` | a date so many days later |
| `{"$choose": {"on": …, "cases": {…}, "otherwise": …}}` | what a value, read when it matters, decides |

Because sources are explicit, a mutant ("used the outdated policy") is a mechanical edit of the data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any

from compoworld_core.services.conditions import equal
from compoworld_core.services.envelope import Envelope

MOST_CHARS = 100_000
"""Characters of a text that is put together."""
_MOST_DIGITS = 24
"""Powers of ten of the numbers that are reckoned with."""

Facts = Mapping[tuple[str, str], Mapping[str, str]]
"""Facts of planted texts by (service, row id), as their readers take them."""


class Unresolved(Exception):
    """A binding points at something that is not there (an earlier step failed or found nothing)."""


class Answers:
    """Answers of the steps run so far, which bindings are evaluated against."""

    def __init__(self, facts: Facts, values: Mapping[str, Any]) -> None:
        self._facts = dict(facts)
        self._values = dict(values)
        self._envelopes: dict[str, Envelope] = {}
        self._services: dict[str, str] = {}
        self._evaluated: dict[str, Any] = {}

    def add(self, step: str, service: str, envelope: Envelope) -> None:
        """Note a step's answer."""
        if step in self._envelopes:
            self._evaluated.clear()
        self._envelopes[step] = envelope
        self._services[step] = service

    def plant(self, service: str, key: str, facts: Mapping[str, str]) -> None:
        """Note what a text says."""
        self._facts[service, key] = facts

    def name(self, name: str, binding: Any) -> None:
        """Give a binding a name."""
        self._values[name] = binding
        self._evaluated.clear()

    def copy(self) -> Answers:
        """Answers that can be added to independently."""
        twin = Answers(self._facts, self._values)
        twin._envelopes, twin._services = dict(self._envelopes), dict(self._services)
        return twin

    def evaluate(self, value: Any) -> Any:
        """The value with every binding in it replaced by what it stands for.

        Raises:
            Unresolved: A binding points at something that is not there.
        """
        if isinstance(value, list):
            return [self.evaluate(item) for item in value]
        if not isinstance(value, dict):
            return value
        operator = binding_operator(value)
        if operator is None:
            return {key: self.evaluate(item) for key, item in value.items()}
        return getattr(self, f"_{operator[1:]}")(value[operator])

    def _value(self, name: str) -> Any:
        if name not in self._values:
            raise Unresolved(f"no value is named {name!r}")
        if name not in self._evaluated:
            self._evaluated[name] = self.evaluate(self._values[name])
        return self._evaluated[name]

    def _ref(self, path: str) -> Any:
        step, *parts = path.split(".")
        found: Any = self._envelopes.get(step)
        for part in parts:
            if isinstance(found, dict) and part in found:
                found = found[part]
            elif isinstance(found, list) and part.isdigit() and int(part) < len(found):
                found = found[int(part)]
            else:
                raise Unresolved(f"nothing at {path}")
        if found is None:
            raise Unresolved(f"nothing at {path}")
        return found

    def _pick(self, spec: Mapping[str, Any]) -> Any:
        items = [item for item in self._selected(spec) if item.get(spec["take"]) is not None]
        by = spec.get("most", spec.get("least"))
        if by is not None:
            items = sorted((item for item in items if item.get(by) is not None), key=lambda item: rank(item[by]))
            items = items[::-1] if "most" in spec else items
        if len(items) <= spec.get("nth", 0):
            raise Unresolved(f"too few items with {spec['where']}")
        return items[spec.get("nth", 0)][spec["take"]]

    def _selected(self, spec: Mapping[str, Any]) -> list[dict[str, Any]]:
        items = self.evaluate(spec["from"])
        where = self.evaluate(spec["where"])
        return [
            item
            for item in (items if isinstance(items, list) else ())
            if isinstance(item, dict) and all(equal(item.get(key), wanted) for key, wanted in where.items())
        ]

    def _sum(self, spec: Mapping[str, Any]) -> str:
        amounts = [item[spec["take"]] for item in self._selected(spec) if item.get(spec["take"]) is not None]
        if not amounts:
            raise Unresolved(f"no items with {spec['where']}")
        return self._add(amounts)

    def _fact(self, spec: Mapping[str, Any]) -> str:
        step, name = spec["step"], str(self.evaluate(spec["name"]))
        wanted = self.evaluate(spec["of"]) if "of" in spec else None
        for key in _ids_in(self._envelopes.get(step)):
            facts = self._facts.get((self._services[step], key), {})
            if name in facts and wanted in (None, key):
                return facts[name]
        raise Unresolved(f"step {step} returned no text that says {name!r}")

    def _text(self, parts: list[Any]) -> str:
        text = "".join(str(self.evaluate(part)) for part in parts)
        if len(text) > MOST_CHARS:
            raise Unresolved(f"a text of more than {MOST_CHARS} characters")
        return text

    def _numbers(self, operands: list[Any]) -> list[Decimal]:
        try:
            numbers = [Decimal(str(self.evaluate(item))) for item in operands]
        except InvalidOperation:
            raise Unresolved(f"not numbers: {operands}") from None
        if not all(number.is_finite() and abs(number.adjusted()) <= _MOST_DIGITS for number in numbers):
            raise Unresolved(f"not numbers that amounts or days can be: {operands}")
        return numbers

    def _add(self, operands: list[Any]) -> str:
        return format(sum(self._numbers(operands), Decimal(0)), "f")

    def _sub(self, operands: list[Any]) -> str:
        first, *others = self._numbers(operands)
        return format(first - sum(others, Decimal(0)), "f")

    def _mul(self, operands: list[Any]) -> str:
        product = Decimal(1)
        for number in self._numbers(operands):
            product *= number
        return format(product, "f")

    def _round(self, operands: list[Any]) -> str:
        number, places = self._numbers(operands)
        try:
            return format(number.quantize(Decimal(1).scaleb(-int(places)), rounding=ROUND_HALF_UP), "f")
        except InvalidOperation:
            raise Unresolved(f"{number} cannot be rounded to {places} places") from None

    def _shift(self, operands: list[Any]) -> str:
        day, days = str(self.evaluate(operands[0])), self._numbers(operands[1:])[0]
        try:
            return (date.fromisoformat(day[:10]) + timedelta(days=int(days))).isoformat()
        except (ValueError, OverflowError):
            raise Unresolved(f"{day!r} is no day to count from") from None

    def _choose(self, spec: Mapping[str, Any]) -> Any:
        return self.evaluate(spec["cases"].get(str(self.evaluate(spec["on"])), spec["otherwise"]))


def rank(value: Any) -> tuple[int, Any]:
    """A key by which amounts sort as numbers, and everything else as text."""
    try:
        return (0, Decimal(str(value)))
    except InvalidOperation:
        return (1, str(value))


DERIVING = ("$add", "$sub", "$mul", "$round", "$shift", "$sum")
"""Operators that work something out from what was read."""
_SOURCES = ("$value", "$ref", "$pick", "$fact", "$sum")
_OPERATORS = (*_SOURCES, "$text", "$add", "$sub", "$mul", "$round", "$shift", "$choose")


def binding_operator(value: Any) -> str | None:
    """The operator of a binding, or None for a plain value."""
    if isinstance(value, dict) and len(value) == 1:
        key = next(iter(value))
        return key if key in _OPERATORS else None
    return None


def bindings_in(value: Any) -> Iterator[tuple[tuple[str | int, ...], dict[str, Any]]]:
    """(path, binding) of every `$value`, `$ref`, `$pick`, `$sum` and `$fact`, also of those inside another's selection.

    The list that a `$pick` or `$sum` selects from is part of it and does not count by itself.
    """
    if isinstance(value, dict):
        operator = binding_operator(value)
        if operator in _SOURCES:
            yield (), value
            parts = value[operator] if operator in ("$pick", "$sum", "$fact") else {}
            inner = {key: item for key, item in parts.items() if key != "from"}
            yield from (((operator, *path), found) for path, found in bindings_in(inner))
            return
        for key, item in value.items():
            yield from (((key, *path), found) for path, found in bindings_in(item))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from (((index, *path), found) for path, found in bindings_in(item))


def steps_read(value: Any, values: Mapping[str, Any]) -> set[str]:
    """Ids of the steps whose answers a value depends on, at any depth and through named values."""
    found: set[str] = set()
    if isinstance(value, dict):
        if isinstance(value.get("$value"), str):
            found |= steps_read(values.get(value["$value"]), values)
        if isinstance(value.get("$ref"), str):
            found.add(value["$ref"].split(".")[0])
        fact = value.get("$fact")
        if isinstance(fact, dict):
            found.add(fact["step"])
        for item in value.values():
            found |= steps_read(item, values)
    elif isinstance(value, list):
        for item in value:
            found |= steps_read(item, values)
    return found


def _ids_in(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        if isinstance(value.get("id"), str):
            yield value["id"]
        for item in value.values():
            yield from _ids_in(item)
    elif isinstance(value, list):
        for item in value:
            yield from _ids_in(item)
