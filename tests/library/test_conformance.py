"""What every library service promises, whatever it is about."""

from __future__ import annotations

import importlib
import json
import random
import re
from typing import Any, Final, get_args

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compoworld_core import library
from compoworld_core.library.registry import library_package, library_services
from compoworld_core.services.backend import InProcessBackend
from compoworld_core.services.running import RunningService
from compoworld_core.services.state import State
from compoworld_core.services.table import Base, Table
from compoworld_core.services.universe import Scale, Universe
from compoworld_core.specs.model import Domain
from tests.library.conformance import (
    HOSTILE,
    SEED,
    UNIVERSE,
    call_that_succeeds,
    dangling_keys,
    draw,
    fresh,
    properties,
    references,
    returns,
    rows,
    start,
    success,
    wrong_values,
)

EMPTY_AT_START: Final[frozenset[tuple[str, str]]] = frozenset()
"""(service, table) pairs without rows in a new world; each with its reason beside it."""

SERVICES = sorted(library_services())
TOOLS = [(service, tool.name) for service in SERVICES for tool in library_package(service).spec.tools]
READS = [(service, tool) for service, tool in TOOLS if library_package(service).tool(tool).effect == "read"]
PAGED = [
    (service, tool)
    for service, tool in TOOLS
    if {"limit", "cursor"} <= set(library_package(service).tool(tool).parameters["properties"])
]

each_service = pytest.mark.parametrize("service", SERVICES)


def each_tool(pairs: list[tuple[str, str]]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(("service", "tool"), pairs, ids=[f"{service}.{tool}" for service, tool in pairs])


# What agents read


@each_service
def test_service_introduces_itself(service: str) -> None:
    spec = library_package(service).spec

    assert re.fullmatch(r"[a-z][a-z0-9_]{0,47}", spec.name)
    assert spec.domain in get_args(Domain)
    assert spec.description.strip()


@each_tool(TOOLS)
def test_tool_spec_is_valid(service: str, tool: str) -> None:
    spec = library_package(service).tool(tool)

    assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", spec.name)
    assert spec.description.strip()
    assert "Args:" not in spec.description
    assert spec.effect in ("read", "write")
    assert spec.parameters["type"] == "object"
    assert spec.parameters["additionalProperties"] is False
    assert spec.returns is not None
    for schema in (spec.parameters, spec.returns):
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})
    undescribed = [name for name, schema in properties(spec).items() if not schema.get("description", "").strip()]
    assert not undescribed


def test_tool_names_are_unique_in_the_library() -> None:
    names = [tool for _, tool in TOOLS]

    assert sorted(names) == sorted(set(names))


# The start state


@each_service
@pytest.mark.parametrize("scale", get_args(Scale))
def test_start_state_fills_every_table(service: str, scale: Scale) -> None:
    state = start(service, scale=scale).state

    empty = {name for name, table in state.tables.items() if not len(table)}
    assert empty == {table for name, table in EMPTY_AT_START if name == service}
    assert not dangling_keys(state)


@each_service
def test_start_state_depends_on_the_seed_alone(service: str) -> None:
    assert rows(start(service).state) == rows(start(service).state)
    assert rows(start(service).state) != rows(start(service, seed=SEED + 1).state)


@each_service
def test_start_state_mentions_only_the_universe(service: str) -> None:
    domains = {item.domain for item in (UNIVERSE.home, *UNIVERSE.organisations)}
    names = {person.name for person in UNIVERSE.people}

    state = start(service).state

    for word, value in _meanings(state):
        if word == "email":
            assert value.split("@")[1] in domains
        if word == "person_name":
            assert value in names


def _meanings(state: State) -> list[tuple[str, Any]]:
    found = []
    for name, table_rows in rows(state).items():
        for field, word in state.tables[name].schema.semantics.items():
            for row in table_rows:
                values = row[field] if isinstance(row[field], list) else [row[field]]
                found += [(word, value) for value in values if isinstance(value, str)]
    return found


@each_service
def test_state_survives_json(service: str) -> None:
    original = _busy(service)
    text = json.dumps(rows(original.state), allow_nan=False)

    library_state = library_services()[service].state_class.empty()
    schema_state = State.from_schema(library_package(service).tables)

    for state in (library_state, schema_state):
        for name, table_rows in json.loads(text).items():
            _load(state.tables[name], table_rows, original.state.tables[name].counter)
        assert rows(state) == rows(original.state)
    library_state.writes = original.state.writes
    reloaded = RunningService(original.package, original.backend, original.context, library_state)
    for read in [tool for tool in original.package.spec.tools if tool.effect == "read"]:
        arguments = draw(original, read, random.Random(read.name)) or {}
        assert reloaded.call(read.name, arguments) == original.call(read.name, arguments)


def _load(table: Table[Any], table_rows: list[dict[str, Any]], counter: int) -> None:
    table.load(Base({row["id"]: table.type.build(row) for row in table_rows}), {}, counter)


def _busy(service: str, seed: int = 0, calls: int = 60) -> RunningService:
    """The service after some calls."""
    running = fresh(service)
    for step in _script(running, seed, calls):
        running.call(*step)
    return running


def _script(running: RunningService, seed: int, calls: int) -> list[tuple[str, dict[str, Any]]]:
    rng = random.Random(seed)
    tools = [rng.choice(running.package.spec.tools) for _ in range(calls)]
    return [(tool.name, draw(running, tool, rng) or {}) for tool in tools]


# Calls


@each_tool(TOOLS)
def test_tool_can_succeed(service: str, tool: str) -> None:
    assert success(service, tool) is not None


@each_tool(TOOLS)
def test_result_matches_its_declared_schema(service: str, tool: str) -> None:
    running, arguments = call_that_succeeds(service, tool)

    data = running.call(tool, arguments).envelope["data"]

    returns(service, tool).validate(data)


@each_tool(TOOLS)
def test_same_state_and_arguments_give_the_same_result(service: str, tool: str) -> None:
    running, arguments = call_that_succeeds(service, tool)
    twin = running.fork()

    assert running.call(tool, arguments).envelope == twin.call(tool, arguments).envelope
    assert rows(running.state) == rows(twin.state)


@each_tool(READS)
def test_read_changes_nothing(service: str, tool: str) -> None:
    running, arguments = call_that_succeeds(service, tool)
    before = rows(running.state)

    result = running.call(tool, arguments)

    assert result.succeeded
    assert not result.changes
    assert rows(running.state) == before
    assert running.context.now(running.state.writes) == running.fork().context.now(running.state.writes)


@each_tool(TOOLS)
def test_arguments_of_the_wrong_shape_are_refused(service: str, tool: str) -> None:
    running, arguments = call_that_succeeds(service, tool)
    spec = running.package.tool(tool)
    before = rows(running.state)
    wrong = [{**arguments, "no_such_parameter": 1}]
    wrong += [
        {name: value for name, value in arguments.items() if name != missing}
        for missing in spec.parameters.get("required", ())
    ]
    wrong += [{**arguments, name: value} for name, schema in properties(spec).items() for value in wrong_values(schema)]

    for item in wrong:
        result = running.call(tool, item)
        assert result.bug is None
        assert not result.succeeded, item
        assert result.envelope["error"]["code"] == "invalid_arguments", item
    assert rows(running.state) == before


@each_tool(TOOLS)
def test_dangling_id_is_not_found(service: str, tool: str) -> None:
    running, arguments = call_that_succeeds(service, tool)
    before = rows(running.state)

    for name, missing in references(running, running.package.tool(tool)).items():
        result = running.call(tool, {**arguments, name: missing})
        assert result.bug is None
        assert not result.succeeded, f"{name}={missing!r}"
        assert result.envelope["error"]["code"] == "not_found", f"{name}={missing!r}"
    assert rows(running.state) == before


@each_tool(PAGED)
def test_pages_show_every_row_once(service: str, tool: str) -> None:
    running, arguments = call_that_succeeds(service, tool)
    whole = running.call(tool, {**arguments, "limit": 200, "cursor": None}).envelope["data"]
    size = max(1, len(whole["items"]) // 3)

    items: list[Any] = []
    cursor = None
    for _ in range(len(whole["items"]) + 1):
        page = running.call(tool, {**arguments, "limit": size, "cursor": cursor}).envelope["data"]
        assert page["total"] == whole["total"]
        items += page["items"]
        cursor = page["next_cursor"]
        if cursor is None:
            break

    assert items == whole["items"]
    assert len(items) == whole["total"] or whole["next_cursor"] is not None


@each_tool(TOOLS)
def test_no_hostile_value_breaks_a_tool(service: str, tool: str) -> None:
    running, arguments = call_that_succeeds(service, tool)
    before = rows(running.state)

    for name in properties(running.package.tool(tool)):
        for value in HOSTILE:
            fork = running.fork()
            result = fork.call(tool, {**arguments, name: value})
            assert result.bug is None, f"{name}={str(value)[:80]!r}: {result.bug}"
            json.dumps(result.envelope, allow_nan=False, ensure_ascii=False).encode()
            if result.succeeded:
                returns(service, tool).validate(result.envelope["data"])
            elif fork.state.journal or fork.state.writes != running.state.writes or rows(fork.state) != before:
                pytest.fail(f"{name}={str(value)[:80]!r} was refused but left its traces")


_value = st.sampled_from(HOSTILE) | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
_mutation = st.tuples(st.integers(0, 30), _value)
_step = st.tuples(
    st.integers(0, 10_000),
    st.integers(0, 2**32),
    st.sampled_from((0.0, 0.4, 1.0)),
    st.one_of(st.just([]), st.just([]), st.lists(_mutation, max_size=3)),
)


@each_service
@settings(
    max_examples=100, deadline=None, derandomize=True, database=None, suppress_health_check=[HealthCheck.too_slow]
)
@given(steps=st.lists(_step, min_size=4, max_size=14))
def test_no_call_ends_in_a_bug(service: str, steps: list[Any]) -> None:
    running = fresh(service)
    tools = running.package.spec.tools

    for choice, seed, optional, mutations in steps:
        tool = tools[choice % len(tools)]
        arguments = draw(running, tool, random.Random(seed), optional) or {}
        for place, value in mutations:
            _mutate(arguments, place, value, list(properties(tool)))
        before = rows(running.state)

        result = running.call(tool.name, arguments)

        assert result.bug is None, f"{tool.name}({arguments!r}): {result.bug}"
        json.dumps(result.envelope, allow_nan=False, ensure_ascii=False).encode()
        if result.succeeded:
            returns(service, tool.name).validate(result.envelope["data"])
        if tool.effect == "read" or not result.succeeded:
            assert rows(running.state) == before
    assert not dangling_keys(running.state)


def _mutate(arguments: dict[str, Any], place: int, value: Any, names: list[str]) -> None:
    """Put a value where the place says: in a parameter, deeper in it, or under a name that nobody expects."""
    if not names or place == 0:
        arguments[value if isinstance(value, str) and value else "surprise"] = value
        return
    name = names[place % len(names)]
    held = arguments.get(name)
    if place % 3 == 0 and isinstance(held, list):
        held.append(value)
    elif place % 3 == 0 and isinstance(held, dict):
        held[next(iter(held), "surprise")] = value
    else:
        arguments[name] = value


# Isolation


@each_service
def test_forks_do_not_see_each_others_writes(service: str) -> None:
    origin = fresh(service)
    before = rows(origin.state)
    left, right = origin.fork(), origin.fork()

    for step in _script(left, seed=1, calls=60):
        left.call(*step)
    assert rows(origin.state) == rows(right.state) == before
    assert rows(left.state) != before

    kept = rows(left.state)
    for step in _script(right, seed=2, calls=60):
        right.call(*step)
    assert rows(left.state) == kept
    assert rows(origin.state) == before


@each_service
def test_two_worlds_do_not_influence_each_other(service: str) -> None:
    scripts = {seed: _script(start(service, seed), seed, 60) for seed in (11, 12)}
    alone = {}
    for seed, script in scripts.items():
        world = start(service, seed)
        alone[seed] = ([world.call(*step).envelope for step in script], rows(world.state))

    worlds = {seed: start(service, seed) for seed in scripts}
    envelopes: dict[int, list[Any]] = {seed: [] for seed in scripts}
    for pair in zip(*scripts.values(), strict=True):
        for seed, step in zip(scripts, pair, strict=True):
            envelopes[seed].append(worlds[seed].call(*step).envelope)

    assert {seed: (envelopes[seed], rows(worlds[seed].state)) for seed in scripts} == alone


@each_service
def test_classes_and_modules_hold_no_changing_state(service: str) -> None:
    kind = library_services()[service]
    entities = kind.state_class.declaration()[1].values()
    own = [part for part in kind.__mro__ if part.__module__.startswith(library.__name__)]
    mutable = [
        f"{part.__qualname__}.{name}"
        for part in (*own, kind.state_class, *entities)
        for name, value in vars(part).items()
        if isinstance(value, list | dict | set | bytearray) and not name.startswith("__") and name not in _FRAMEWORK
    ]
    modules = [
        importlib.import_module(name)
        for name in sorted({part.__module__ for part in own} | {entity.__module__ for entity in entities})
    ]
    before = [_constants(module) for module in modules]

    _busy(service)

    assert not mutable
    assert [_constants(module) for module in modules] == before


_FRAMEWORK: Final = frozenset({"tools", "_options", "model_config", "model_fields", "model_computed_fields"})
"""Class attributes that the SDK and Pydantic keep, written when the class is defined."""


def _constants(module: Any) -> dict[str, str]:
    return {
        name: repr(value)
        for name, value in vars(module).items()
        if isinstance(value, list | dict | set | tuple | str | int) and not name.startswith("__")
    }


def test_backend_holds_nothing_of_a_world() -> None:
    """One backend may serve many worlds at once."""
    service = library_services()[SERVICES[0]]
    backend = InProcessBackend(service)

    first, second = (backend.new_state() for _ in range(2))
    backend.populate(first, Universe.generate(1), random.Random(1), start(service.name).context.start)

    assert all(len(table) == 0 for table in second.tables.values())
