"""Affordances: what a service's tools can do for a plan, found by trying them.

The EXPLORE step of the planner. Each tool is called on forks of a seeded service with values of real rows, and what
comes back or changes is compared with the rows. So the planner treats hand-written, synthesised and agent-written
services alike, and never relies on a tool's name.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from compoworld_core.services.backend import ToolBackend
from compoworld_core.services.conditions import equal
from compoworld_core.services.context import Context, User
from compoworld_core.services.drawing import Drawing
from compoworld_core.services.envelope import Envelope
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.record import Row
from compoworld_core.services.running import CallResult, RunningService
from compoworld_core.services.schema import TableSchema, semantic_of
from compoworld_core.services.universe import Universe
from compoworld_core.specs.model import ToolSpec
from compoworld_core.storage.digest import digest

_START = datetime(2026, 1, 12, 9, tzinfo=UTC)
_DRAWS, _MOST_DRAWS, _ENOUGH = 9, 24, 4
_PAGING = frozenset({"limit", "cursor", "offset"})
_TEXTUAL = frozenset(
    {
        "title",
        "text",
        "query",
        "tag",
        "person_name",
        "organisation_name",
        "product_name",
        "project_name",
        "email",
        "sku",
    }
)


@dataclass(frozen=True)
class Reading:
    """A read tool that returns rows of a table.

    Attributes:
        path: Where in the envelope the row, or the list of rows, is.
        many: Whether `path` is a list.
        by: Field that each argument selects on; empty for a plain listing.
        fixed: Further arguments of every such call (the largest page).
        exact: Whether the selection is by equality rather than by words.
        shows: Fields that the answer carries under their own names.
    """

    tool: str
    table: str
    path: str
    many: bool
    by: Mapping[str, str]
    fixed: Mapping[str, Any]
    exact: bool
    shows: frozenset[str]


@dataclass(frozen=True)
class Writing:
    """A write tool that creates, updates or deletes one row of a table.

    Attributes:
        key: The argument that is the row's id; None where a row is created.
        copies: Field that each argument is stored in, as it is (or as the only item of a list).
        links: Entity whose row's id each other argument is.
        required: Arguments that every call has.
        sets: Fields that every call leaves with the same value (`status: closed`).
        starts: Fields in which every created row is alike, whatever the arguments: choices, and what is empty at first.
        needs: Fields that had one value before every call that worked, where others were refused.
        id_path: Where the answer carries the row's id, for a created row.
    """

    tool: str
    table: str
    change: str
    key: str | None
    copies: Mapping[str, str]
    links: Mapping[str, str]
    required: tuple[str, ...]
    sets: Mapping[str, Any]
    starts: Mapping[str, Any]
    needs: Mapping[str, Any]
    id_path: str | None


@dataclass(frozen=True)
class Affordances:
    """Everything that a service offers to plans."""

    package: ServicePackage
    readings: tuple[Reading, ...]
    writings: tuple[Writing, ...]
    tools: Mapping[str, ToolSpec] = field(repr=False)

    @property
    def tables(self) -> Mapping[str, TableSchema]:
        """The service's tables."""
        return self.package.tables.tables

    def readings_of(self, table: str) -> tuple[Reading, ...]:
        """Readings that return rows of a table."""
        return tuple(item for item in self.readings if item.table == table)


def explore(package: ServicePackage, backend: ToolBackend, tools: Sequence[str]) -> Affordances:
    """Try the given tools of a package and note what they do."""
    universe = Universe.generate(0)
    user = User(universe.user.name, universe.user.email)
    running = RunningService.start(package, backend, Context(package.name, 0, _START, user), universe)
    running.state.seal()
    rows = {name: [table.type.view(record) for record in table] for name, table in running.state.tables.items()}
    specs = {name: package.tool(name) for name in sorted(tools)}
    readings: list[Reading] = []
    writings: list[Writing] = []
    for spec in specs.values():
        if spec.effect == "read":
            readings += _explore_reading(spec, running, rows)
        else:
            writings += _explore_writing(spec, running, rows, universe)
    return Affordances(package, tuple(readings), tuple(writings), specs)


# Reading


def _explore_reading(spec: ToolSpec, running: RunningService, rows: Mapping[str, list[Row]]) -> Iterator[Reading]:
    properties = spec.properties
    required = [name for name in spec.parameters.get("required", ()) if name in properties]
    fixed = {name: _largest_page(schema) for name, schema in properties.items() if semantic_of(schema) == "limit"}
    required = [name for name in required if name not in fixed]
    for table, table_rows in rows.items():
        if len(table_rows) < 2:
            continue
        schema = running.package.tables.tables[table]
        candidates = {name: _fields_for(name, part, schema) for name, part in properties.items() if name not in fixed}
        bases = list(itertools.islice(_assignments(required, candidates), 4))
        for base in bases:
            found = _try_reading(spec, running, table, table_rows, base, fixed)
            if found is None:
                continue
            yield found
            for name in properties:
                if name in base or name in fixed:
                    continue
                for field_name in candidates[name][:3]:
                    narrower = _try_reading(spec, running, table, table_rows, {**base, name: field_name}, fixed)
                    if narrower is not None and _narrows(narrower, running, table_rows):
                        yield narrower
                        break
            break


def _assignments(required: Sequence[str], candidates: Mapping[str, list[str]]) -> Iterator[dict[str, str]]:
    for fields in itertools.product(*(candidates[name] for name in required)):
        yield dict(zip(required, fields, strict=True))


def _try_reading(
    spec: ToolSpec,
    running: RunningService,
    table: str,
    rows: list[Row],
    by: Mapping[str, str],
    fixed: Mapping[str, Any],
) -> Reading | None:
    shows: frozenset[str] | None = None
    place: tuple[str, bool] | None = None
    hits = 0
    for row in rows[:: max(1, len(rows) // 3)][:3]:
        if any(row.get(name) in (None, "", []) for name in by.values()):
            continue
        arguments = {**fixed, **{name: _argument(row[field_name]) for name, field_name in by.items()}}
        envelope = running.call(spec.name, arguments).envelope
        found = _locate(envelope, row)
        if found is None:
            if by:
                return None
            continue
        path, many, shown = found
        if place not in (None, (path, many)):
            return None
        place = (path, many)
        shows = shown if shows is None else shows & shown
        hits += 1
    if not hits or place is None or not shows:
        return None
    path, many = place
    exact = _is_exact(spec, running, rows, by, fixed, path, many)
    return Reading(spec.name, table, path, many, dict(by), dict(fixed), exact, shows)


def _is_exact(
    spec: ToolSpec,
    running: RunningService,
    rows: list[Row],
    by: Mapping[str, str],
    fixed: Mapping[str, Any],
    path: str,
    many: bool,
) -> bool:
    """Whether every returned row equals the arguments in the fields selected on."""
    row = next((row for row in rows if all(row.get(name) not in (None, "", []) for name in by.values())), None)
    if row is None:
        return False
    arguments = {**fixed, **{name: _argument(row[field_name]) for name, field_name in by.items()}}
    found = items_at(running.call(spec.name, arguments).envelope, path, many)
    return all(equal(item.get(name), row[name]) for item in found for name in by.values() if name in item)


def _narrows(reading: Reading, running: RunningService, rows: list[Row]) -> bool:
    """Whether the last argument makes a difference: some row's value does not return all rows."""
    sizes = set()
    for row in rows[:: max(1, len(rows) // 4)][:4]:
        if any(row.get(name) in (None, "", []) for name in reading.by.values()):
            continue
        arguments = {**reading.fixed, **{name: _argument(row[f]) for name, f in reading.by.items()}}
        result = running.call(reading.tool, arguments)
        if result.succeeded:
            sizes.add(len(items_at(result.envelope, reading.path, reading.many)))
    return not reading.many or (bool(sizes) and min(sizes) < len(rows))


def items_at(envelope: Envelope, path: str, many: bool) -> list[Row]:
    """The rows that an answer carries at a path."""
    value: Any = envelope
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if many:
        return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
    return [value] if isinstance(value, dict) else []


def _locate(envelope: Envelope, row: Row) -> tuple[str, bool, frozenset[str]] | None:
    """Where an answer carries a row: (path, is a list, fields shown)."""
    if not envelope["success"]:
        return None
    data = envelope["data"]
    places: list[tuple[str, Any]] = [("data", data)]
    if isinstance(data, dict):
        places += [(f"data.{key}", value) for key, value in data.items() if isinstance(value, dict | list)]
    for path, value in places:
        many = isinstance(value, list)
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict) and item.get("id") == row.get("id"):
                shown = frozenset(name for name in row if name in item and item[name] == row[name])
                if len(shown) >= max(2, len(row) // 3):
                    return path, many, shown
    return None


def _largest_page(schema: Mapping[str, Any]) -> int:
    bounds = [schema, *schema.get("anyOf", ())]
    maxima = [int(part["maximum"]) for part in bounds if isinstance(part.get("maximum"), int | float)]
    return min([50, *maxima])


def _fields_for(name: str, schema: Any, table: TableSchema) -> list[str]:
    """Fields of a table whose values an argument may select on, most plausible first."""
    word = semantic_of(schema)
    semantics = table.semantics
    fields = list(table.properties)
    if word in _PAGING or (isinstance(schema, dict) and schema.get("type") == "boolean"):
        return []
    if word is not None and word.startswith("id:"):
        return ["id"] if word == f"id:{table.entity}" else [f for f in fields if semantics.get(f) == word]
    same_name = [f for f in fields if f == name]
    if word in ("query", "text", "title") or (word is None and not _is_enum(schema) and _is_text(schema)):
        textual = [f for f in fields if semantics.get(f) in _TEXTUAL and f not in same_name]
        return [*same_name, *sorted(textual, key=lambda f: semantics[f] == "text")]
    if word is not None:
        return [*same_name, *(f for f in fields if semantics.get(f) == word and f not in same_name)]
    return same_name


def _is_enum(schema: Any) -> bool:
    return isinstance(schema, dict) and ("enum" in schema or any("enum" in part for part in schema.get("anyOf", ())))


def _is_text(schema: Any) -> bool:
    if not isinstance(schema, dict):
        return False
    kinds = [schema.get("type"), *(part.get("type") for part in schema.get("anyOf", ()) if isinstance(part, dict))]
    return "string" in kinds


def _argument(value: Any) -> Any:
    return value[0] if isinstance(value, list) and value else value


# Writing


def _explore_writing(
    spec: ToolSpec, running: RunningService, rows: Mapping[str, list[Row]], universe: Universe
) -> Iterator[Writing]:
    rng = random.Random(f"explore/{digest(spec.parameters)}")
    entities = {schema.entity: name for name, schema in running.package.tables.tables.items()}
    ids = {entity: [row["id"] for row in rows[table]] for entity, table in entities.items()}
    observed: list[tuple[dict[str, Any], CallResult]] = []
    refused: list[dict[str, Any]] = []
    for draw in range(_MOST_DRAWS):
        if draw >= _DRAWS and len(observed) >= _ENOUGH:
            break
        source = Drawing(universe, rng, _START, ids)
        try:
            arguments = source.object(spec.parameters, optional=(0.0, 1.0, 0.6)[draw % 3])
        except ValueError:
            continue
        twin = running.fork()
        result = twin.call(spec.name, arguments)
        if result.succeeded and result.changes:
            observed.append((arguments, result))
        elif not result.succeeded:
            refused.append(arguments)
    if observed:
        writing = _writing_of(spec, running, observed, refused, rows)
        if writing is not None:
            yield writing


def _writing_of(
    spec: ToolSpec,
    running: RunningService,
    observed: list[tuple[dict[str, Any], CallResult]],
    refused: list[dict[str, Any]],
    rows: Mapping[str, list[Row]],
) -> Writing | None:
    properties = spec.properties
    required = tuple(name for name in spec.parameters.get("required", ()) if name in properties)
    mains = [_main_change(arguments, result) for arguments, result in observed]
    kinds = Counter((change, table, key) for change, table, key, _, _ in mains)
    (change, table, key), _ = kinds.most_common(1)[0]
    cases = [
        (arguments, before, after)
        for (arguments, _), (c, t, k, before, after) in zip(observed, mains, strict=True)
        if (c, t, k) == (change, table, key)
    ]
    links = {
        name: word.removeprefix("id:")
        for name, part in properties.items()
        if name != key and (word := semantic_of(part) or "").startswith("id:")
    }
    copies: dict[str, str] = {}
    for name in properties:
        if name == key or change == "deleted":
            continue
        used = [(arguments[name], before, after) for arguments, before, after in cases if name in arguments]
        fields = [
            f for f in (cases[0][2] or {}) if f != "id" and used and all(_stores(after, f, v) for v, _, after in used)
        ]
        best = sorted(fields, key=lambda f: (f != name, f not in name and name not in f))
        if best and (len({str(value) for value, _, _ in used}) > 1 or best[0] == name):
            copies[name] = best[0]
    choices = running.package.tables.tables[table].choices
    sets = _constant_effects(cases, copies, choices) if change == "updated" else {}
    id_path = _id_path(observed, mains) if change == "created" else None
    return Writing(
        tool=spec.name,
        table=table,
        change=change,
        key=key,
        copies=copies,
        links=links,
        required=required,
        sets=sets,
        starts=_first_values(spec, cases, copies, running.package.tables.tables[table]) if change == "created" else {},
        needs=_preconditions(cases, refused, key, rows.get(table, []), choices) if change == "updated" else {},
        id_path=id_path,
    )


def _main_change(
    arguments: Mapping[str, Any], result: CallResult
) -> tuple[str, str, str | None, Row | None, Row | None]:
    """(change, table, argument that is the row's id, before, after) of the row that a call is about.

    A call is about a row that it creates and answers with, or else about one that an argument names.
    """
    data = result.envelope.get("data")
    for change in result.changes:
        if change.before is None and isinstance(data, dict) and data.get("id") == change.key:
            return "created", change.table.name, None, None, change.after_row
    for name, value in arguments.items():
        for change in result.changes:
            if change.key == value and change.before is not None:
                kind = "deleted" if change.after is None else "updated"
                return kind, change.table.name, name, change.before_row, change.after_row
    created = [change for change in result.changes if change.before is None]
    change = created[0] if created else result.changes[0]
    kind = "created" if change.before is None else "deleted" if change.after is None else "updated"
    return kind, change.table.name, None, change.before_row, change.after_row


def _stores(row: Row | None, name: str, value: Any) -> bool:
    if row is None or name not in row:
        return False
    stored = row[name]
    return equal(stored, value) or (isinstance(stored, list) and len(stored) == 1 and equal(stored[0], value))


def _constant_effects(
    cases: list[tuple[dict[str, Any], Row | None, Row | None]], copies: Mapping[str, str], choices: frozenset[str]
) -> dict[str, Any]:
    effects: dict[str, Any] = {}
    first = cases[0][2] or {}
    for name, value in first.items():
        if name in copies.values() or name not in choices:
            continue
        same = all(after is not None and after.get(name) == value for _, _, after in cases)
        moved = any(before is not None and before.get(name) != value for _, before, _ in cases)
        if same and moved and len(cases) > 1:
            effects[name] = value
    return effects


def _first_values(
    spec: ToolSpec,
    cases: list[tuple[dict[str, Any], Row | None, Row | None]],
    copies: Mapping[str, str],
    schema: TableSchema,
) -> dict[str, Any]:
    given = {name for arguments, _, _ in cases for name in arguments}
    unknown = spec.properties.keys() - given  # nobody has seen what these would do
    found: dict[str, Any] = {}
    for name, value in (cases[0][2] or {}).items():
        is_empty = value in (None, []) and not schema.semantics.get(name, "").startswith("id:")
        if name in copies.values() or name in unknown or not (is_empty or name in schema.choices):
            continue
        if len(cases) > 2 and all(after is not None and after.get(name) == value for _, _, after in cases):
            found[name] = value
    return found


def _preconditions(
    cases: list[tuple[dict[str, Any], Row | None, Row | None]],
    refused: list[dict[str, Any]],
    key: str | None,
    rows: list[Row],
    choices: frozenset[str],
) -> dict[str, Any]:
    by_id = {row["id"]: row for row in rows}
    turned_away = [by_id[item[key]] for item in refused if key in item and item[key] in by_id] if key else []
    needs: dict[str, Any] = {}
    first = cases[0][1] or {}
    for name, value in first.items():
        if name in choices and turned_away:
            same = all(before is not None and before.get(name) == value for _, before, _ in cases)
            if same and all(row.get(name) != value for row in turned_away):
                needs[name] = value
    return needs


def _id_path(observed: list[tuple[dict[str, Any], CallResult]], mains: list[Any]) -> str | None:
    for (_, result), (change, _, _, _, after) in zip(observed, mains, strict=True):
        data = result.envelope["data"]
        if change != "created" or after is None or not isinstance(data, dict):
            continue
        if data.get("id") == after["id"]:
            return "data.id"
        for name, value in data.items():
            if isinstance(value, dict) and value.get("id") == after["id"]:
                return f"data.{name}.id"
            if value == after["id"]:
                return f"data.{name}"
    return None
