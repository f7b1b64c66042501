"""How the promises that every library service makes are put to the test: start states, arguments, hostile values.

Nothing here knows a service. Arguments are drawn from the schema and its semantic types, as the rest of the system
draws them, so that what these tests cannot call, seeding and planning cannot call either.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from typing import Any

import jsonschema_rs

from compoworld_core.library.registry import library_package, library_services
from compoworld_core.services.backend import InProcessBackend
from compoworld_core.services.context import Context, User
from compoworld_core.services.drawing import Drawing
from compoworld_core.services.record import Row
from compoworld_core.services.running import RunningService
from compoworld_core.services.schema import semantic_of
from compoworld_core.services.state import State
from compoworld_core.services.universe import Scale, Universe
from compoworld_core.specs.model import JsonObject, ToolSpec

START = datetime(2026, 2, 12, 8, 30, tzinfo=UTC)
SEED = 7
UNIVERSE = Universe.generate(SEED)
STRANGERS = Universe.generate(SEED + 1)
"""People and organisations that no service started from `UNIVERSE` knows yet."""

HOSTILE: tuple[Any, ...] = (
    None,
    True,
    0,
    -1,
    2**63,
    1.5,
    1e308,
    float("nan"),
    float("inf"),
    "",
    " ",
    "\x00",
    "²",
    "٣",
    "-0",
    "NaN",
    "1e400",
    "9" * 200,
    "naïve 💥 \u202e",
    "\ud800",
    "x" * 100_001,
    "' OR 1=1 --",
    "../../etc/passwd",
    "{0.__class__}",
    "%s%n",
    "(((",
    "a@b",
    "a@b.co",
    "0001-01-01",
    "9999-12-31",
    "2026-02-30",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59-14:00",
    "2026-02-12T10:00:00",
    [],
    [None],
    ["a@b.co"] * 300,
    {},
    {"id": "x"},
    [[[[[[]]]]]],
)
"""Values that callers send by mistake or on purpose."""


def start(service: str, seed: int = SEED, scale: Scale = "small") -> RunningService:
    """The service as a fresh world has it, its state sealed."""
    universe = Universe.generate(seed, scale)
    user = User(name=universe.user.name, email=universe.user.email)
    running = RunningService.start(
        library_package(service),
        InProcessBackend(library_services()[service]),
        Context(service=service, seed=seed, start=START, user=user),
        universe,
    )
    running.state.seal()
    return running


@cache
def _started(service: str) -> RunningService:
    return start(service)


def fresh(service: str) -> RunningService:
    """A fork of the service's start state: cheap, and nobody else's."""
    return _started(service).fork()


def rows(state: State) -> dict[str, list[Row]]:
    """All rows, as JSON values."""
    return {name: [table.type.view(record) for record in table] for name, table in state.tables.items()}


def ids(state: State) -> dict[str, list[str]]:
    """Existing ids by entity."""
    return {table.schema.entity: [table.type.field(row, "id") for row in table] for table in state.tables.values()}


def draw(running: RunningService, tool: ToolSpec, rng: random.Random, optional: float = 0.3) -> JsonObject | None:
    """Legal arguments for a tool, or None where a value that it needs does not exist."""
    universe = rng.choice((UNIVERSE, UNIVERSE, UNIVERSE, STRANGERS))
    try:
        return Drawing(universe, rng, START, ids(running.state)).object(tool.parameters, optional=optional)
    except ValueError:
        return None


@cache
def success(service: str, tool_name: str) -> tuple[RunningService, JsonObject] | None:
    """A reachable state and drawn arguments with which the tool succeeds, or None if hundreds of draws find none."""
    running = fresh(service)
    tools = running.package.spec.tools
    writes = [tool for tool in tools if tool.effect == "write"]
    rng = random.Random(f"{service}/{tool_name}")
    for attempt in range(600):
        tool = running.package.tool(tool_name)
        arguments = draw(running, tool, rng, optional=(0.0, 0.3, 1.0)[attempt % 3])
        before = running.fork()
        if arguments is not None and running.call(tool_name, arguments).succeeded:
            return before, arguments
        if attempt % 4 == 3 and writes:
            other = rng.choice(writes)
            running.call(other.name, draw(running, other, rng) or {})
        if attempt % 100 == 99:
            running = fresh(service)
    return None


def call_that_succeeds(service: str, tool: str) -> tuple[RunningService, JsonObject]:
    """Like `success`, on a fork of its own, for tests that build on one."""
    found = success(service, tool)
    assert found is not None, f"no drawn call of {service}.{tool} succeeds"
    return found[0].fork(), json.loads(json.dumps(found[1]))


def properties(tool: ToolSpec) -> dict[str, JsonObject]:
    """The tool's parameters, each with the definitions that it may refer to."""
    shared = {key: tool.parameters[key] for key in ("$defs",) if key in tool.parameters}
    return {name: {**shared, **schema} for name, schema in tool.parameters.get("properties", {}).items()}


def wrong_values(schema: JsonObject) -> Iterator[Any]:
    """One value of each JSON type that the schema rejects."""
    validator = jsonschema_rs.Draft202012Validator(schema)
    for value in (None, True, 7, 1.5, "\x00", [None], {"no": "such key"}):
        if not validator.is_valid(value):
            yield value


def references(running: RunningService, tool: ToolSpec) -> dict[str, Any]:
    """Parameters that name rows of this service, each with a value that names none."""
    prefixes = {table.schema.entity: table.schema.id_prefix for table in running.state.tables.values()}
    found: dict[str, Any] = {}
    for name, schema in properties(tool).items():
        word = semantic_of(schema) or ""
        entity = word.removeprefix("id:")
        if word.startswith("id:") and entity in prefixes:
            missing = f"{prefixes[entity]}_99999999" if prefixes[entity] else "99999999"
            found[name] = [missing] if "items" in json.dumps(schema) else missing
    return found


def dangling_keys(state: State) -> list[str]:
    """Foreign keys that point nowhere."""
    return [
        f"{name}.{key.field}={value!r}"
        for name, table in state.tables.items()
        for key in table.schema.foreign_keys
        for row in (table.type.view(record) for record in table)
        for value in (row[key.field] if isinstance(row[key.field], list) else [row[key.field]])
        if value is not None and value not in state.tables[key.table]
    ]


@cache
def returns(service: str, tool: str) -> jsonschema_rs.Draft202012Validator:
    """Validator of a tool's results."""
    return jsonschema_rs.Draft202012Validator(library_package(service).tool(tool).returns or {})


def answer(running: RunningService, tool: str, **arguments: Any) -> Any:
    """The data of a call that must succeed."""
    result = running.call(tool, arguments)
    assert result.succeeded, f"{tool}({arguments}): {result.envelope['error']}"
    return result.envelope["data"]


def refusal(running: RunningService, tool: str, **arguments: Any) -> str:
    """The error code of a call that must be refused, and that then changed nothing."""
    before = rows(running.state)
    result = running.call(tool, arguments)
    assert result.bug is None
    assert not result.succeeded, f"{tool}({arguments}) succeeded"
    assert rows(running.state) == before
    return str(result.envelope["error"]["code"])


def plant(running: RunningService, table: str, **fields: Any) -> Row:
    """Add a row the way a recipe does."""
    placed = running.state.tables[table]
    record = placed.insert(**fields)
    running.state.commit(counted=False)
    return placed.type.view(record)
