"""Arguments: plausible calls of a tool in the state that a service is in.

A call is plausible where it speaks about rows that exist. Each candidate is built around one row, the anchor: ids come
from it and from rows it refers to, filters take its values so that searches hit, and what has no counterpart in the
state is drawn by meaning. Admission and task planners draw from here; only values that the schema allows leave it.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import cached_property
from itertools import islice, zip_longest
from typing import Any, Literal

from compoworld_core.services.drawing import Drawing
from compoworld_core.services.record import Row
from compoworld_core.services.running import RunningService
from compoworld_core.services.schema import TableSchema, semantic_of
from compoworld_core.services.universe import Universe
from compoworld_core.specs.model import JsonObject, ToolSpec
from compoworld_core.specs.validation import validator

CANDIDATES = 32
"""Most candidates that are drawn for a tool."""

DANGLING = "no_such_id_0"
DANGLING_NUMBER = 987654321
"""Ids that no row has."""

_MANNERS: tuple[Manner, ...] = ("fresh", "fresh", "echoing", "novel", "fresh")
_MANNERS_AFTERWARDS: tuple[Manner, ...] = ("echoing", "fresh", "echoing", "novel", "fresh")
"""Manners of a write tool's candidates, in turns; `AFTERWARDS` where rows have just been touched."""

_STRANGERS = 7_000_003
"""Seed of a universe that no world has, for values that must be new."""

_DEEPEST = 12
_MOST_PARTS = 5_000
"""What one candidate may consist of; schemas may be recursive, and ask for lists of lists without end."""

_ROWS = 200
"""Rows of a table that a vocabulary reads at most."""

Manner = Literal["echoing", "fresh", "novel"]
"""Whether arguments other than ids repeat values of the anchor, are drawn from the universe, or from another one (a
name that is not taken yet)."""


@dataclass(frozen=True)
class Anchor:
    """A row with its values by field and by meaning, nested ones included."""

    entity: str
    row: Row
    fields: Mapping[str, list[Any]]
    """Keys are names as `_snake` writes them."""
    words: Mapping[str, list[Any]]


class Vocabulary:
    """The values that occur in a service's rows.

    Attributes:
        anchors: Rows by table, in table order.
        user: Address of the acting user.
        ids: Keys by entity.
        recent: Keys of rows that changed since the state was sealed, and of rows that these refer to; what was just
            touched is spoken about first.
    """

    def __init__(self, running: RunningService, universe: Universe | None = None) -> None:
        self.universe = universe or Universe.generate(running.context.seed)
        self.start = running.context.start
        self.user = running.context.user.email
        self.anchors: dict[str, list[Anchor]] = {}
        self.ids: dict[str, list[str]] = {}
        self.recent = {key for table in running.state.tables.values() for key, _, _ in table.changed()}
        self._by_id: dict[str, Anchor] = {}
        for name, table in running.state.tables.items():
            keys = [key for key, _, record in table.changed() if record is not None]
            records = [table.get(key) for key in keys[-_ROWS:]]
            records += [record for record in islice(table, _ROWS) if record not in records]
            rows = [_anchor(table.type.view(record), table.schema) for record in records]
            self.anchors[name] = rows
            self.ids[table.schema.entity] = [str(anchor.row["id"]) for anchor in rows]
            self._by_id.update((str(anchor.row["id"]), anchor) for anchor in rows)
        touched = [anchor for key in sorted(self.recent) if (anchor := self.row(key)) is not None]
        self.recent |= {str(row.row["id"]) for anchor in touched for row in self.related(anchor)}

    def related(self, anchor: Anchor) -> list[Anchor]:
        """Rows that the anchor's ids name, in order."""
        keys = (str(key) for word, keys in anchor.words.items() if word.startswith("id:") for key in keys)
        return [row for key in keys if (row := self._by_id.get(key)) is not None and row is not anchor]

    def row(self, key: str) -> Anchor | None:
        """The row with this key, in whatever table."""
        return self._by_id.get(key)

    def values(self, name: str, word: str | None) -> list[Any]:
        """Distinct values of all fields that mean the same or, failing a meaning, have the same name."""
        named = self._fields.get(_snake(name), [])
        return (self._words.get(word, []) if word else named) or named

    @cached_property
    def _words(self) -> dict[str, list[Any]]:
        return _pooled(anchor.words for rows in self.anchors.values() for anchor in rows)

    @cached_property
    def _fields(self) -> dict[str, list[Any]]:
        return _pooled(anchor.fields for rows in self.anchors.values() for anchor in rows)


@dataclass
class Arguments:
    """Draws the arguments of one tool; equal inputs give equal draws."""

    tool: ToolSpec
    vocabulary: Vocabulary
    rng: random.Random
    _validators: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        words = self.vocabulary
        strangers = Universe.generate(_STRANGERS)
        self._drawing = Drawing(words.universe, self.rng, words.start, words.ids)
        self._novel = Drawing(strangers, self.rng, words.start, words.ids)
        schema = self.tool.parameters
        definitions = _definitions(schema)
        self.properties: dict[str, JsonObject] = {
            name: {**definitions, **part} if isinstance(part, dict) else {}
            for name, part in schema.get("properties", {}).items()
        }
        self.required = tuple(name for name in schema.get("required", ()) if name in self.properties)
        self.optional = tuple(name for name in self.properties if name not in self.required)

    def candidates(self) -> Iterator[dict[str, Any]]:
        """Distinct legal arguments, the more plausible first."""
        anchors = self._ranked_anchors()
        seen: set[str] = set()
        for attempt in range(CANDIDATES):
            anchor = anchors[attempt % len(anchors)] if anchors else None
            try:
                wanders = self.tool.effect != "read" and attempt % 2 == 1
                found = self._candidate(anchor, self._manner(attempt), self._chosen(attempt, anchor), wanders=wanders)
            except ValueError:
                continue
            text = json.dumps(found, sort_keys=True)
            if text not in seen:
                seen.add(text)
                yield found

    def alternatives(self, name: str, current: Any = None) -> Iterator[Any]:
        """Distinct legal values of one argument other than the current one; a dangling id comes last."""
        schema = self.properties[name]
        seen = {json.dumps(current, sort_keys=True)}
        for value in self._alternatives(name, schema):
            text = json.dumps(value, sort_keys=True)
            if text not in seen and self.allows(name, value):
                seen.add(text)
                yield value

    def allows(self, name: str, value: Any) -> bool:
        """Whether the schema of an argument allows a value."""
        if name not in self._validators:
            self._validators[name] = validator(self.properties[name])
        try:
            return self._validators[name].is_valid(value)  # type: ignore[no-any-return]
        except ValueError:
            return False

    # Which rows and which arguments

    def _manner(self, attempt: int) -> Manner:
        if self.tool.effect == "read":
            return "fresh" if attempt % 3 == 2 else "echoing"
        manners = _MANNERS_AFTERWARDS if self.vocabulary.recent else _MANNERS
        return manners[attempt % len(manners)]

    def _chosen(self, attempt: int, anchor: Anchor | None) -> list[str]:
        """Names to give: the required ones, then also one option, about half of them, all of them."""
        turn = (attempt // 2) % 4
        options = [name for name in self.optional if semantic_of(self.properties[name]) != "cursor"]
        if turn == 0 or not options:
            chosen = set()
        elif turn == 1:
            matching = [name for name in options if anchor is not None and self._supply(name, anchor)] or options
            chosen = {self.rng.choice(matching)}
        else:
            chosen = {name for name in options if turn == 3 or self.rng.random() < 0.5}
        return [name for name in self.properties if name in self.required or name in chosen]

    def _ranked_anchors(self) -> list[Anchor]:
        """Rows that can supply arguments, those that can supply the most required ones first.

        Of tables that supply as much, the one whose own rows the tool takes comes first. Within a table, what was just
        touched comes first, then rows that mention the acting user and others in turns.
        """
        wanted = {semantic_of(self.properties[name]) for name in self.required}
        ranked = []
        for table, rows in self.vocabulary.anchors.items():
            if rows:
                supplied = [bool(self._supply(name, rows[0])) for name in (*self.required, *self.optional)]
                is_own = f"id:{rows[0].entity}" in wanted
                score = 8 * sum(supplied[: len(self.required)]) + sum(supplied) + 4 * is_own
                ranked.append((-score, table, self._ordered(rows)))
        ranked.sort(key=lambda item: item[:2])
        useful = [item for item in ranked if item[0] < 0] or ranked[:1]
        best = useful[0][2] if useful else []
        others = [anchor for turn in zip(*(item[2] for item in useful[1:4]), strict=False) for anchor in turn]
        return [*best[: CANDIDATES // 2], *others[: CANDIDATES // 4]]

    def _ordered(self, rows: list[Anchor]) -> list[Anchor]:
        shuffled = self.rng.sample(rows, len(rows))
        recent = [anchor for anchor in shuffled if str(anchor.row["id"]) in self.vocabulary.recent]
        others = [anchor for anchor in shuffled if anchor not in recent]
        user = self.vocabulary.user
        own = [anchor for anchor in others if any(user in values for values in anchor.fields.values())]
        foreign = [anchor for anchor in others if anchor not in own]
        turns = [anchor for turn in zip_longest(own, foreign) for anchor in turn if anchor is not None]
        return [*recent, *turns]

    def _supply(self, name: str, anchor: Anchor) -> list[Any]:
        """The anchor's own values that an argument may take, the best first."""
        word = semantic_of(self.properties[name])
        if word is None:
            return list(anchor.fields.get(_snake(name), ()))
        values = list(anchor.words.get(word, ()))
        named = [value for value in anchor.fields.get(_snake(name), ()) if value in values]
        return [*named, *(value for value in values if value not in named)]

    # One candidate

    def _candidate(
        self, anchor: Anchor | None, manner: Manner, names: Iterable[str], *, wanders: bool = False
    ) -> dict[str, Any]:
        drawing = self._novel.fresh() if manner == "novel" else self._drawing.fresh()
        source = _Source(self.vocabulary, drawing, self.rng, anchor, manner, wanders)
        found = {}
        for name in names:
            value = source.value(name, self.properties[name])
            found[name] = value if self.allows(name, value) else drawing.value(name, self.properties[name])
        return found

    def _alternatives(self, name: str, schema: JsonObject) -> Iterator[Any]:
        word = semantic_of(schema)
        kinds = _kinds(schema)
        if not kinds & {"array", "object"}:
            yield from _enumerated(schema)
            if "boolean" in kinds:
                yield from (True, False)
            known = self.vocabulary.values(name, word)
            yield from (_typed(value, kinds) for value in self.rng.sample(known, min(len(known), 6)))
        anchors = self._ranked_anchors()
        for attempt in range(6):
            anchor = anchors[attempt % len(anchors)] if anchors else None
            for manner in ("echoing", "fresh"):
                try:
                    yield self._candidate(anchor, manner, [name])[name]
                except ValueError:
                    continue
        yield from _boundaries(schema)
        if word is not None and word.startswith("id:"):
            yield from (DANGLING, DANGLING_NUMBER)


@dataclass
class _Source:
    """Where one candidate's values come from.

    Attributes:
        wanders: Ids other than the anchor's own come from anywhere, so that things can be moved to where they are not.
    """

    vocabulary: Vocabulary
    drawing: Drawing
    rng: random.Random
    anchor: Anchor | None
    manner: Manner
    wanders: bool = False
    used: set[str] = field(default_factory=set)
    _depth: int = 0
    _parts: int = 0

    def value(self, name: str, schema: JsonObject) -> Any:
        """A value for an argument or a part of one.

        Raises:
            ValueError: None was found, or it would be nested too deeply or have too many parts.
        """
        self._parts += 1
        if self._depth > _DEEPEST or self._parts > _MOST_PARTS:
            raise ValueError(f"{name!r} is too large")
        self._depth += 1
        try:
            return self._value(name, schema)
        finally:
            self._depth -= 1

    def _value(self, name: str, schema: JsonObject) -> Any:
        schema = _plain(schema)
        word = semantic_of(schema)
        kinds = _kinds(schema)
        if "object" in kinds and schema.get("properties"):
            return self._object(schema)
        if "array" in kinds and isinstance(schema.get("items"), dict):
            count = max(int(schema.get("minItems", 1)), self.rng.choice((1, 1, 2)))
            part = {**_definitions(schema), **schema["items"]}
            values = [self.value(name, part) for _ in range(min(count, int(schema.get("maxItems", count))))]
            return [value for place, value in enumerate(values) if value not in values[:place]]
        is_id = word is not None and word.startswith("id:")
        if self.manner == "novel" and self.anchor is not None and word == f"id:{self.anchor.entity}":
            number = self.rng.randint(5000, 9999)
            return number if kinds == {"integer"} else f"{self.anchor.entity}_{number}"
        if word in ("date", "timestamp") and self.manner == "novel":
            return self._later(word, name, schema)
        if is_id or self.manner == "echoing":
            legal = [item for value in self._known(name, word) if _fits(item := _typed(value, kinds), kinds, schema)]
            fresh = [value for value in legal if repr((word, value)) not in self.used] or legal
            if is_id and fresh:
                self.used.add(repr((word, fresh[0])))
            if fresh:
                return fresh[0] if is_id or self.rng.random() < 0.6 else self.rng.choice(fresh)
        return self.drawing.value(name, schema)

    def _object(self, schema: JsonObject) -> dict[str, Any]:
        required = schema.get("required", ())
        return {
            name: self.value(name, {**_definitions(schema), **part} if isinstance(part, dict) else {})
            for name, part in schema["properties"].items()
            if name in required or self.rng.random() < 0.3
        }

    def _known(self, name: str, word: str | None) -> list[Any]:
        """Values of existing rows, the most fitting first."""
        if word in ("limit", "cursor"):
            return []
        if word == "query" or (word is None and not self.vocabulary.values(name, None)):
            return self._phrases()
        found = []
        everywhere = self.vocabulary.values(name, word)
        everywhere = self.rng.sample(everywhere, min(len(everywhere), 3))
        if self.wanders and word is not None and word.startswith("id:") and self.anchor:
            own = [self.anchor.row["id"]] if word == f"id:{self.anchor.entity}" else []
            return [*own, *everywhere]
        for anchor in [self.anchor, *self.vocabulary.related(self.anchor)] if self.anchor else []:
            same_name, same_word = anchor.fields.get(_snake(name), []), anchor.words.get(word or "", [])
            if word is None:
                found += same_name
            else:
                found += [value for value in same_name if value in same_word] + list(same_word)
        return [*found, *everywhere]

    def _later(self, word: str, name: str, schema: JsonObject) -> Any:
        """A day or time after all that the anchor knows, or after the start."""
        known = [value for value in (self.anchor.words.get(word, []) if self.anchor else []) if isinstance(value, str)]
        latest = max((str(value) for value in known), default=self.vocabulary.start.isoformat())
        try:
            moment = datetime.fromisoformat(latest) + timedelta(days=self.rng.randint(1, 30))
        except (ValueError, OverflowError):
            return self.drawing.value(name, schema)
        return moment.date().isoformat() if word == "date" else moment.isoformat()

    def _phrases(self) -> list[str]:
        """Words of the anchor's texts, which a search over them should find."""
        if self.anchor is None:
            return []
        skipped = ("id:", "timestamp", "date", "url", "money")
        hidden = {v for word, values in self.anchor.words.items() if word.startswith(skipped) for v in map(str, values)}
        texts = [v for vs in self.anchor.fields.values() for v in vs if isinstance(v, str) and v and v not in hidden]
        words = [word for text in texts for word in text.split()[:6] if len(word) >= 4 and word.isalpha()]
        return self.rng.sample(words, min(len(words), 3)) or texts[:1]


def _anchor(row: Row, schema: TableSchema) -> Anchor:
    fields: dict[str, list[Any]] = {}
    words: dict[str, list[Any]] = {}
    definitions = _definitions(schema.row)
    for name, part in schema.properties.items():
        if name in row:
            for inner, word, value in _facts(name, part, row[name], definitions):
                _add(fields, _snake(inner), value)
                if word is not None:
                    _add(words, word, value)
    _add(words, f"id:{schema.entity}", row["id"], first=True)
    return Anchor(schema.entity, row, fields, words)


def _facts(name: str, schema: Any, value: Any, definitions: JsonObject) -> Iterator[tuple[str, str | None, Any]]:
    """(field, meaning, value) of every scalar in a value."""
    if value is None or not isinstance(schema, dict):
        return
    word = semantic_of(schema)
    schema = _plain({**definitions, **schema})
    if isinstance(value, list):
        for item in value[:5]:
            yield from _facts(name, {"x-semantic": word, **schema.get("items", {})}, item, definitions)
    elif isinstance(value, dict):
        for key, part in value.items():
            yield from _facts(key, schema.get("properties", {}).get(key, {}), part, definitions)
    else:
        yield name, word or semantic_of(schema), value


def _add(pool: dict[str, list[Any]], key: str, value: Any, *, first: bool = False) -> None:
    values = pool.setdefault(key, [])
    if first and value in values:
        values.remove(value)
    if value not in values:
        values.insert(0 if first else len(values), value)


def _pooled(parts: Iterable[Mapping[str, list[Any]]]) -> dict[str, list[Any]]:
    pools: dict[str, dict[str, Any]] = {}
    for part in parts:
        for key, values in part.items():
            pools.setdefault(key, {}).update((repr(value), value) for value in values)
    return {key: list(values.values()) for key, values in pools.items()}


def _snake(name: str) -> str:
    """The name as fields are compared: `machineModel`, `machine-model` and `machine_models` are one."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+", "_", name).lower().removesuffix("s")


def _definitions(schema: Mapping[str, Any]) -> JsonObject:
    return {key: schema[key] for key in ("$defs", "definitions") if key in schema}


def _plain(schema: JsonObject, depth: int = 8) -> JsonObject:
    """The schema with its reference followed and its null branch dropped."""
    definitions = _definitions(schema)
    if isinstance(reference := schema.get("$ref"), str) and depth:
        target: Any = schema
        for part in reference.removeprefix("#/").split("/"):
            target = target.get(part.replace("~1", "/").replace("~0", "~"), {}) if isinstance(target, dict) else {}
        rest = {key: value for key, value in schema.items() if key != "$ref"}
        return _plain({**rest, **target, **definitions}, depth - 1) if isinstance(target, dict) else rest
    branches = [part for part in schema.get("anyOf", ()) if isinstance(part, dict) and part.get("type") != "null"]
    if len(branches) == 1 and depth:
        rest = {key: value for key, value in schema.items() if key not in ("anyOf", "default")}
        return _plain({**rest, **branches[0], **definitions}, depth - 1)
    return schema


def _kinds(schema: JsonObject) -> frozenset[str]:
    """JSON types that the schema names, in any branch."""
    schema = _plain(schema)
    own = schema.get("type", ())
    kinds = {own} if isinstance(own, str) else set(own)
    for part in schema.get("anyOf", ()):
        if isinstance(part, dict):
            kinds |= _kinds({**_definitions(schema), **part})
    return frozenset(kinds)


def _typed(value: Any, kinds: frozenset[str]) -> Any:
    """A key as a number, where a tool takes numeric ids; keys of rows are always text."""
    is_numeric = "integer" in kinds and "string" not in kinds
    return int(value) if is_numeric and isinstance(value, str) and value.isascii() and value.isdigit() else value


def _fits(value: Any, kinds: frozenset[str], schema: JsonObject) -> bool:
    """Whether a value may be legal, by a quick look."""
    if "enum" in schema:
        return value in schema["enum"]
    kind = {bool: "boolean", int: "integer", float: "number", str: "string"}.get(type(value), "")
    return not kinds or kind in kinds or (kind == "integer" and "number" in kinds)


def _enumerated(schema: JsonObject) -> list[Any]:
    schema = _plain(schema)
    return list(schema.get("enum", ()))


def _boundaries(schema: JsonObject) -> list[Any]:
    """Far values of ordered types: the ends of a range, a remote past and future."""
    schema = _plain(schema)
    kinds = _kinds(schema)
    found: list[Any] = []
    if kinds & {"integer", "number"}:
        low, high = schema.get("minimum", 1), schema.get("maximum")
        found += [low, low + 1, *([] if high is None else [high])]
    word = semantic_of(schema)
    if word == "date":
        found += ["2001-01-01", "2099-12-31"]
    if word == "timestamp":
        found += ["2001-01-01T00:00:00+00:00", "2099-12-31T00:00:00+00:00"]
    if word == "cursor":
        found += ["1", "2"]
    if word == "currency":
        found += ["USD", "SEK"]
    return found
