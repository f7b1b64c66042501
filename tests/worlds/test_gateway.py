"""The agent's view: four meta-tools, whose every answer is an envelope, and nothing else of the world."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compoworld_core.storage.digest import canonical_json
from compoworld_core.worlds.gateway import META_TOOLS, SHORT_DESCRIPTION, Gateway, system_prompt
from compoworld_core.worlds.recipe import Plant
from tests.worlds.test_reactions import posted, price, when
from tests.worlds.town import everything, note, opened

SECRET = "zanzibar"


def gateway() -> Gateway:
    plant = Plant(do=note("planted"), facts={"policy": SECRET})
    return Gateway(opened(plants=(plant,), reactions=(when(posted("go"), note(f"{SECRET} answer"), price("5")),)))


def data(answer: dict[str, Any]) -> Any:
    assert answer["success"] is True
    return answer["data"]


def test_there_are_exactly_four_meta_tools() -> None:
    functions = {item["function"]["name"]: item["function"] for item in META_TOOLS}

    assert list(functions) == ["list_services", "list_tools", "describe_tool", "call_tool"]
    for item in functions.values():
        jsonschema_rs.meta.validate(item["parameters"])
        assert item["parameters"].get("required", []) == list(item["parameters"]["properties"])


def test_an_agent_finds_its_way_from_nothing_to_a_call() -> None:
    agent = gateway()

    services = data(agent.call("list_services", {}))
    tools = {item["name"]: item for item in data(agent.call("list_tools", {"service": services[0]}))}
    described = data(agent.call("describe_tool", {"tool": "set_price"}))
    answer = agent.call("call_tool", {"tool_name": "set_price", "arguments": {"job_id": "job_1001", "price": "5"}})

    assert services == ["workshop", "board"]
    assert tools["set_price"] == {"name": "set_price", "description": "Agree on a price."}
    assert "workshop__search" in tools
    assert described["service"] == "workshop"
    assert set(described["parameters"]["properties"]) == {"job_id", "price"}
    assert data(answer)["price"] == "5.00"
    assert all(len(item["description"]) <= SHORT_DESCRIPTION for item in tools.values())


def test_descriptions_hide_meanings_and_keep_the_schema() -> None:
    agent = gateway()

    for name, tool in agent.world.tools.items():
        described = data(agent.call("describe_tool", {"tool": name}))
        assert "x-semantic" not in json.dumps(described)
        jsonschema_rs.meta.validate(described["parameters"])
        assert set(described["parameters"]["properties"]) == set(tool.spec.parameters["properties"])
        assert set(described) == {"name", "service", "description", "parameters"}
    assert "x-semantic" in json.dumps(agent.world.tools["set_price"].spec.parameters)


def _nested(depth: int) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for _ in range(depth):
        found = {"a": found}
    return found


MISTAKES: dict[str, tuple[Any, Any, str]] = {
    "no such meta-tool": ("rubric", {}, "not_found"),
    "a tool's name": ("set_price", {"job_id": "job_1001", "price": "5"}, "not_found"),
    "a method's name": ("call", {}, "not_found"),
    "a private name": ("_call_tool", {}, "not_found"),
    "an attribute": ("world", {}, "not_found"),
    "no name": ("", {}, "not_found"),
    "null name": (None, {}, "not_found"),
    "list as name": ([], {}, "not_found"),
    "missing argument": ("list_tools", {}, "invalid_arguments"),
    "extra argument": ("list_services", {"all": True}, "invalid_arguments"),
    "wrong type": ("list_tools", {"service": ["board"]}, "invalid_arguments"),
    "null": ("describe_tool", {"tool": None}, "invalid_arguments"),
    "arguments as text": ("call_tool", {"tool_name": "post", "arguments": '{"body": "x"}'}, "invalid_arguments"),
    "arguments as list": ("call_tool", {"tool_name": "post", "arguments": []}, "invalid_arguments"),
    "name that is endless": (_nested(100_000), {}, "not_found"),
    "name that cannot be printed": (10**5000, {}, "not_found"),
    "name that is an object": (object(), {}, "not_found"),
    "no object": ("list_services", None, "invalid_arguments"),
    "list as object": ("list_services", [], "invalid_arguments"),
    "text as object": ("list_services", "", "invalid_arguments"),
    "no such service": ("list_tools", {"service": "post"}, "not_found"),
    "no such tool": ("describe_tool", {"tool": "search"}, "not_found"),
    "no such tool to call": ("call_tool", {"tool_name": "rubric", "arguments": {}}, "not_found"),
    "tool with its service": ("call_tool", {"tool_name": "board.post", "arguments": {}}, "not_found"),
    "wrong arguments": ("call_tool", {"tool_name": "post", "arguments": {"text": "x"}}, "invalid_arguments"),
    "refused": ("call_tool", {"tool_name": "remove", "arguments": {"note_id": "note_9"}}, "not_found"),
    "broken": ("call_tool", {"tool_name": "crash", "arguments": {"job_id": "job_1001"}}, "unavailable"),
}


@pytest.mark.parametrize(("name", "arguments", "code"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_is_an_error_envelope(name: Any, arguments: Any, code: str) -> None:
    agent = gateway()
    before = everything(agent.world)

    answer = agent.call(name, arguments)

    assert answer["success"] is False
    assert answer["error"]["code"] == code
    assert set(answer["error"]) == {"code", "message"}
    assert everything(agent.world) == before
    assert [entry.envelope for entry in agent.transcript] == [answer]


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=5), part, max_size=3),
    max_leaves=8,
)
KNOWN = st.sampled_from("list_services list_tools describe_tool call_tool post set_price workshop board".split())
KEYS = st.sampled_from("service tool tool_name arguments body job_id price".split())
AGENT = gateway()


@settings(max_examples=300, deadline=None)
@given(
    KNOWN | JSON,
    JSON
    | st.dictionaries(KEYS, KNOWN | JSON | st.dictionaries(KEYS, JSON), max_size=3)
    | st.fixed_dictionaries(
        {"tool_name": st.sampled_from(list(AGENT.world.tools)), "arguments": st.dictionaries(KEYS, JSON)}
    ),
)
def test_whatever_is_asked_is_answered_in_an_envelope(name: Any, arguments: Any) -> None:
    agent = Gateway(AGENT.world.fork())

    answer = agent.call(name, arguments)

    assert set(answer) in ({"success", "data"}, {"success", "error"})
    assert answer["success"] is ("data" in answer)
    canonical_json(answer)
    assert len(agent.transcript) == 1


def test_plants_reactions_and_facts_are_out_of_reach() -> None:
    agent = gateway()
    names = [*dir(agent), *dir(agent.world), *type(agent.world.recipe).model_fields, *agent.world.tools]
    answers = [agent.call("list_services", {})]
    for name in [*names, "_facts", "facts", "rubric", "solution", "reactions", "../facts"]:
        answers += [
            agent.call("list_tools", {"service": name}),
            agent.call("describe_tool", {"tool": name}),
            agent.call("call_tool", {"tool_name": name, "arguments": {}}),
        ]
        if name not in ("list_services",):
            answers.append(agent.call(name, {}))

    assert SECRET not in json.dumps(answers)
    assert SECRET not in system_prompt(agent.world)
    assert agent.world.facts["board", "notes", "note_1002"] == {"policy": SECRET}


def test_the_transcript_keeps_calls_changes_and_reactions() -> None:
    agent = gateway()
    agent.call("list_tools", {"service": "nothing"})
    agent.call("call_tool", {"tool_name": "board__search", "arguments": {}})
    agent.call("call_tool", {"tool_name": "post", "arguments": {"body": "go"}})
    agent.call("call_tool", {"tool_name": "crash", "arguments": {"job_id": "job_1001"}})

    asked, read, wrote, broke = agent.transcript
    assert (asked.name, asked.service, asked.tool, asked.changes) == ("list_tools", "", "", ())
    assert (read.service, read.tool, read.changes, read.bug) == ("board", "search", (), None)
    assert [change.key for change in wrote.changes] == ["note_1003"]
    assert [(service, change.key) for service, change in wrote.reactions] == [
        ("board", "note_1004"),
        ("workshop", "job_1001"),
    ]
    assert (broke.changes, broke.reactions) == ((), ())
    assert "ZeroDivisionError" in str(broke.bug)
    assert "ZeroDivisionError" not in json.dumps(broke.envelope)


def test_the_system_prompt_says_who_and_when() -> None:
    world = opened()
    prompt = system_prompt(world)

    assert "Thursday, 12 February 2026" in prompt
    assert world.universe.user.email in prompt
    assert all(item["function"]["name"] in prompt for item in META_TOOLS)
