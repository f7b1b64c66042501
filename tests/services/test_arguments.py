import random
from datetime import UTC, datetime
from itertools import islice
from typing import Any

import jsonschema_rs
import pytest

from compoworld_core.library.registry import library_package, library_services
from compoworld_core.services.arguments import DANGLING, Arguments, Vocabulary
from compoworld_core.services.backend import InProcessBackend
from compoworld_core.services.context import Context, User
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.running import RunningService
from compoworld_core.services.universe import Universe
from compoworld_core.specs.model import ToolSpec
from tests.synthesis.planted.helpdesk import helpdesk

UNIVERSE = Universe.generate(0)


def _start(package: ServicePackage, backend: InProcessBackend) -> RunningService:
    user = User(UNIVERSE.user.name, UNIVERSE.user.email)
    context = Context(package.name, 0, datetime(2026, 3, 2, 8, tzinfo=UTC), user)
    running = RunningService.start(package, backend, context, UNIVERSE)
    running.state.seal()
    return running


@pytest.fixture
def running() -> RunningService:
    return _start(*helpdesk())


def _arguments(running: RunningService, tool: str | ToolSpec, seed: int = 1) -> Arguments:
    spec = running.package.tool(tool) if isinstance(tool, str) else tool
    return Arguments(spec, Vocabulary(running), random.Random(seed))


def _draw(running: RunningService, tool: str | ToolSpec, seed: int = 1) -> list[dict[str, Any]]:
    return list(_arguments(running, tool, seed).candidates())


def _rows(running: RunningService, table: str) -> dict[str, dict[str, Any]]:
    found = running.state.tables[table]
    return {row["id"]: row for row in map(found.type.view, found)}


@pytest.mark.parametrize("name", library_services())
def test_candidates_are_legal_and_distinct(name: str) -> None:
    running = _start(library_package(name), InProcessBackend(library_services()[name]))
    vocabulary = Vocabulary(running)
    for tool in running.package.spec.tools:
        validator = jsonschema_rs.Draft202012Validator(tool.parameters)

        found = list(Arguments(tool, vocabulary, random.Random(7)).candidates())

        assert found, tool.name
        assert all(validator.is_valid(item) for item in found), tool.name
        assert all(item not in found[:place] for place, item in enumerate(found)), tool.name


def test_equal_seeds_draw_equal_candidates(running: RunningService) -> None:
    assert _draw(running, "search_tickets") == _draw(running, "search_tickets")
    assert _draw(running, "search_tickets") != _draw(running, "search_tickets", seed=2)


def test_ids_are_those_of_existing_rows(running: RunningService) -> None:
    ids = _rows(running, "tickets").keys()

    assert all(item["ticket_id"] in ids for item in _draw(running, "get_ticket"))


def test_searches_hit(running: RunningService) -> None:
    found = [
        running.call("search_tickets", item).envelope["data"] for item in islice(_draw(running, "search_tickets"), 4)
    ]

    assert any(found)


def test_filters_take_values_of_rows(running: RunningService) -> None:
    addresses = {row["email"] for row in _rows(running, "customers").values()}

    assert {item["email"] for item in islice(_draw(running, "find_customer"), 2)} <= addresses


def test_options_come_after_the_required_arguments(running: RunningService) -> None:
    found = _draw(running, "search_tickets")

    assert found[0].keys() == {"query"}
    assert any(item.keys() == {"query", "limit"} for item in found)


def test_what_was_just_touched_is_spoken_about_first(running: RunningService) -> None:
    customer = next(iter(_rows(running, "customers")))
    made = running.call("create_ticket", {"customer_id": customer, "subject": "New"}).envelope["data"]

    assert _draw(running, "get_ticket")[0] == {"ticket_id": made["id"]}
    assert _draw(running, "get_customer")[0] == {"customer_id": customer}


def test_drawing_leaves_the_state_alone(running: RunningService) -> None:
    _draw(running, "create_ticket")

    assert not running.state.journal
    assert not any(list(table.changed()) for table in running.state.tables.values())


def test_names_are_compared_whatever_their_case(running: RunningService) -> None:
    parameters = {"type": "object", "properties": {"Subjects": {"type": "string"}}, "required": ["Subjects"]}
    tool = ToolSpec(name="find", description="Find.", parameters=parameters, effect="read")
    subjects = {row["subject"] for row in _rows(running, "tickets").values()}

    assert _draw(running, tool)[0]["Subjects"] in subjects


def test_numeric_ids_are_drawn_as_numbers(running: RunningService) -> None:
    running.state.tickets.insert(id="4711", customer_id=next(iter(_rows(running, "customers"))), subject="Old")  # type: ignore[attr-defined]
    parameters = {
        "type": "object",
        "properties": {"id": {"type": "integer", "x-semantic": "id:ticket"}},
        "required": ["id"],
    }
    tool = ToolSpec(name="get", description="Get.", parameters=parameters, effect="read")

    assert {"id": 4711} in _draw(running, tool)


def test_two_ids_of_one_kind_differ(running: RunningService) -> None:
    schema = {"type": "string", "x-semantic": "id:ticket"}
    parameters = {
        "type": "object",
        "properties": {"source": schema, "target": schema},
        "required": ["source", "target"],
    }
    tool = ToolSpec(name="merge", description="Merge.", parameters=parameters, effect="write")

    assert all(item["source"] != item["target"] for item in _draw(running, tool))


def test_a_schema_that_nothing_satisfies_draws_nothing(running: RunningService) -> None:
    parameters = {
        "type": "object",
        "properties": {"x": {"type": "string", "pattern": "^$", "minLength": 1}},
        "required": ["x"],
    }
    tool = ToolSpec(name="no", description="No.", parameters=parameters, effect="read")

    assert _draw(running, tool) == []


def test_alternatives_are_legal_and_other_values(running: RunningService) -> None:
    found = list(_arguments(running, "update_ticket").alternatives("status", "open"))

    assert set(found) == {"pending", "solved"}


def test_alternatives_of_an_id_end_with_one_that_nothing_has(running: RunningService) -> None:
    found = list(_arguments(running, "get_ticket").alternatives("ticket_id"))

    assert found[-1] == DANGLING
    assert set(found[:-1]) <= _rows(running, "tickets").keys()


def test_a_tool_that_no_argument_satisfies_has_no_candidates(running: RunningService) -> None:
    node = {
        "type": "object",
        "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/node"}, "minItems": 3}},
        "required": ["kids"],
    }
    parameters = {"type": "object", "properties": {"tree": {"$ref": "#/$defs/node"}}, "required": ["tree"]}
    tool = ToolSpec(name="plant", description="d", parameters={**parameters, "$defs": {"node": node}}, effect="write")

    assert _draw(running, tool) == []
