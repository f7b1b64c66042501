"""Excerpts: the part of a state that matters to a call, chosen by fixed rules and bounded in size.

First come rows that the arguments name by their id, then rows that have a value of the arguments, then rows linked to
either, then the first few of every table. What does not fit is counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from compoworld_core.services.record import Row
from compoworld_core.services.state import State
from compoworld_core.specs.model import JsonObject
from compoworld_core.storage.digest import dump_plain

MAX_CHARS: Final = 24_000
"""Size of all rows of an excerpt as JSON."""

MAX_TEXT: Final = 600
"""Characters of a text that are shown."""

FIRST_ROWS: Final = 3
"""Rows of each table that are shown though nothing leads to them."""

_LEAST_VALUE: Final = 3
"""Characters from which on a text says something about which row is meant."""

Place = tuple[str, str]
"""A row's table and key."""


@dataclass(frozen=True)
class Excerpt:
    """Rows by table in table order, and how many rows of each table are not among them."""

    rows: dict[str, list[Row]] = field(default_factory=dict)
    left_out: dict[str, int] = field(default_factory=dict)

    @classmethod
    def of(cls, state: State, arguments: JsonObject) -> Excerpt:
        """The part of a state that matters to a call with these arguments."""
        rows = {
            (name, table.type.field(record, "id")): table.type.view(record)
            for name, table in state.tables.items()
            for record in table
        }
        chosen: set[Place] = set()
        size = 0
        for place in _ranked(state, rows, arguments):
            length = len(dump_plain(shortened(rows[place])))
            if place not in chosen and size + length <= MAX_CHARS:
                chosen.add(place)
                size += length
        shown = {
            name: [shortened(row) for place, row in rows.items() if _is_of(place, name, chosen)]
            for name in state.tables
        }
        return cls(shown, {name: len(table) - len(shown[name]) for name, table in state.tables.items()})


def _is_of(place: Place, table: str, chosen: set[Place]) -> bool:
    return place[0] == table and place in chosen


def _ranked(state: State, rows: dict[Place, Row], arguments: JsonObject) -> Iterator[Place]:
    """Rows by how likely they matter, some of them twice."""
    values = {value.casefold() for value in texts(arguments)}
    words = {word for value in values for word in re.split(r"[^\w.@-]+", value)}
    named = [place for place in rows if place[1].casefold() in values or place[1].casefold() in words]
    telling = {value for value in values if len(value) >= _LEAST_VALUE}
    alike = [place for place, row in rows.items() if not telling.isdisjoint(map(str.casefold, texts(row)))]
    yield from named
    yield from alike
    yield from _linked(state, rows, {*named, *alike})
    for name in state.tables:
        yield from [place for place in rows if place[0] == name][:FIRST_ROWS]


def _linked(state: State, rows: dict[Place, Row], chosen: set[Place]) -> Iterator[Place]:
    """Rows that refer to a chosen one, or that a chosen one refers to, in table order."""
    targets = {place: set(_references(state, place, row)) for place, row in rows.items()}
    wanted = {target for place in chosen for target in targets[place]}
    yield from (place for place in rows if place in wanted or not targets[place].isdisjoint(chosen))


def _references(state: State, place: Place, row: Row) -> Iterator[Place]:
    for foreign in state.tables[place[0]].schema.foreign_keys:
        value = row.get(foreign.field)
        for key in value if isinstance(value, list) else [value]:
            if isinstance(key, str):
                yield foreign.table, key


def texts(value: Any) -> Iterator[str]:
    """All texts in a JSON value, and its numbers as text."""
    if isinstance(value, dict):
        for item in value.values():
            yield from texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)
    elif isinstance(value, str):
        yield value
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield str(value)


def shortened(value: Any, most: int = MAX_TEXT) -> Any:
    """The value with texts cut that are longer than `most`, and what was cut said."""
    if isinstance(value, dict):
        return {key: shortened(item, most) for key, item in value.items()}
    if isinstance(value, list):
        return [shortened(item, most) for item in value]
    if isinstance(value, str) and len(value) > most:
        return f"{value[:most]}… ({len(value) - most} more characters)"
    return value
