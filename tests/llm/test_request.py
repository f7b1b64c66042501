"""A conversation's requests begin alike, byte by byte, and equal questions have equal keys."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from pydantic import ValidationError

from compoworld_core.errors import InputError
from compoworld_core.llm.config import Endpoint, ModelConfig
from compoworld_core.llm.messages import AssistantMessage, Message, SystemMessage, ToolCall, ToolMessage, UserMessage
from compoworld_core.llm.request import Request, chat_body
from compoworld_core.storage.digest import JsonObject

TOOLS: list[JsonObject] = [{"type": "function", "function": {"name": "look", "parameters": {"type": "object"}}}]
CONVERSATION: list[Message] = [
    SystemMessage(content="Rules."),
    UserMessage(content="Sieh nach, é."),
    AssistantMessage(
        content="Ja.", tool_calls=(ToolCall(id="c1", name="look", arguments='{ "b":1,"a":2}'),), reasoning_content="Hm."
    ),
    ToolMessage(tool_call_id="c1", name="look", content='{"success": true}'),
    AssistantMessage(content="Done."),
    UserMessage(content="Once more."),
]


def request(config: ModelConfig, messages: list[Message]) -> Request:
    return Request.of(config, chat_body(messages, TOOLS))


@pytest.mark.parametrize("send_reasoning", [True, False])
def test_each_request_begins_with_the_one_before(send_reasoning: bool) -> None:
    config = ModelConfig(model="m", temperature=0.5, send_reasoning=send_reasoning)

    bodies = [request(config, CONVERSATION[:length]).streamed for length in (2, 4, 6)]

    for earlier, later in pairwise(bodies):
        assert later.startswith(earlier.removesuffix(b"]}"))
    assert bodies[0].index(b'"tools"') < bodies[0].index(b'"messages"')


def test_reasoning_is_shown_again_where_the_configuration_says_so() -> None:
    shown = request(ModelConfig(model="m", send_reasoning=True), CONVERSATION)
    hidden = request(ModelConfig(model="m"), CONVERSATION)

    assert b"Hm." in shown.content
    assert b"Hm." not in hidden.content
    assert b"send_reasoning" not in shown.content
    assert ModelConfig(model="m", send_reasoning=True).model_dump()["send_reasoning"] is True


@pytest.mark.parametrize(
    "change",
    [{"model": "n"}, {"temperature": 0.1}, {"top_p": 0.5}, {"max_tokens": 9}, {"extra": {"seed": 1}}],
    ids=lambda change: next(iter(change)),
)
def test_every_parameter_is_part_of_the_key(change: dict[str, Any]) -> None:
    plain, changed = ModelConfig(model="m"), ModelConfig(**{"model": "m", **change})

    assert request(plain, CONVERSATION).key != request(changed, CONVERSATION).key


def test_where_and_how_it_is_asked_is_no_part_of_the_key() -> None:
    here = ModelConfig(model="m", endpoints=(Endpoint(base_url="http://here/v1"),))
    there = ModelConfig(model="m", stream=False, endpoints=(Endpoint(base_url="http://there/v1", weight=3),))

    assert request(here, CONVERSATION) == request(there, CONVERSATION)


def test_a_body_from_outside_is_asked_as_the_configuration_says() -> None:
    body: JsonObject = {
        "stream": True,
        "model": "local",
        "messages": [{"role": "user", "content": "Hi"}],
        "max_completion_tokens": 5,
        "temperature": 1,
        "prompt_cache_key": "session-1",
        "reasoning_effort": "low",
        "tools": [],
    }

    asked = Request.of(ModelConfig(model="m", temperature=0.5, max_tokens=100), body)

    assert json.loads(asked.content) == {
        "model": "m",
        "max_tokens": 100,
        "temperature": 0.5,
        "reasoning_effort": "low",
        "messages": [{"role": "user", "content": "Hi"}],
    }
    assert (
        asked.key == Request.of(ModelConfig(model="m", temperature=0.5, max_tokens=100), body | {"stream": False}).key
    )


def test_a_body_that_json_cannot_say_is_refused() -> None:
    with pytest.raises(InputError, match="no JSON form"):
        Request.of(ModelConfig(model="m"), {"messages": [{"role": "user", "content": "\ud800"}]})


@pytest.mark.parametrize("field", ["messages", "stream", "n"])
def test_extra_fields_leave_alone_what_is_ours(field: str) -> None:
    with pytest.raises(ValidationError, match=f"may not set {field}"):
        ModelConfig(model="m", extra={field: 2})


@pytest.mark.parametrize(
    "url", ["localhost:8000", "ftp://x/v1", "http:///v1", "http://user:pass@host/v1", "http://host/v1?key=k"]
)
def test_an_endpoint_is_a_plain_url_without_credentials(url: str) -> None:
    with pytest.raises(ValidationError, match=r"http|credentials"):
        Endpoint(base_url=url)


def test_a_key_does_not_stand_where_the_name_of_its_variable_should() -> None:
    with pytest.raises(ValidationError, match="no name of a variable"):
        Endpoint(base_url="http://localhost/v1", key_env="sk-canary")
