"""The scripted server speaks as a real endpoint does: the official client understands it, and its faults hurt."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest

from compoworld_core.storage.digest import JsonObject
from tests.llm_server import Fault, Faults, LlmServer, Named, Reply, ServerProcess

TOOLS: Any = [
    {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("look", "write")
]
ASK: Any = [{"role": "user", "content": "Begin."}]


def script(request: JsonObject) -> Reply:
    """Two calls side by side, then what came of them."""
    answers = [message["content"] for message in request["messages"] if message["role"] == "tool"]
    if answers:
        return Reply(content=f"Grüße: {', '.join(answers)}. " + "Long enough to be cut into pieces. " * 5)
    arguments = {"place": "Zürich", "note": "a text that is longer than one piece of a stream"}
    return Reply(tool_calls=[("look", arguments), ("write", '{"broken": ')], reasoning_content="First I look. " * 9)


def make() -> Any:
    return script


def client(base_url: str, **options: Any) -> openai.OpenAI:
    return openai.OpenAI(base_url=base_url, **{"api_key": "none", "max_retries": 0, "timeout": 5.0, **options})


@pytest.fixture
def server() -> Iterator[LlmServer]:
    with LlmServer({"m": script}) as running:
        yield running


def test_a_stream_says_what_the_whole_answer_says(server: LlmServer) -> None:
    with client(server.base_url) as ai:
        whole = ai.chat.completions.create(model="m", messages=ASK, tools=TOOLS)
        with ai.chat.completions.stream(
            model="m", messages=ASK, tools=TOOLS, stream_options={"include_usage": True}
        ) as stream:
            pieces = [event.chunk for event in stream if event.type == "chunk"]
            streamed = stream.current_completion_snapshot

    assert len(pieces) > 10
    said: Any = streamed.choices[0].message.to_dict()
    reasoning = "".join(
        getattr(piece.choices[0].delta, "reasoning_content", None) or "" for piece in pieces if piece.choices
    )
    assert reasoning == whole.choices[0].message.to_dict()["reasoning_content"] == "First I look. " * 9
    assert [call["function"]["arguments"] for call in said["tool_calls"]] == [
        call.function.arguments  # type: ignore[union-attr]
        for call in whole.choices[0].message.tool_calls or ()
    ]
    assert streamed.usage == whole.usage
    assert whole.usage is not None
    assert whole.usage.completion_tokens > 50
    assert server.requests[0].digest == server.requests[1].digest


def test_a_conversation_goes_on_and_counts_its_start_as_cached(server: LlmServer) -> None:
    with client(server.base_url) as ai:
        first = ai.chat.completions.create(model="m", messages=ASK, tools=TOOLS).choices[0].message
        said: Any = first.to_dict()
        answers: list[Any] = [
            {"role": "tool", "tool_call_id": call.id, "content": f"answer {place}"}
            for place, call in enumerate(first.tool_calls or (), 1)
        ]
        last = ai.chat.completions.create(model="m", messages=[*ASK, said, *answers], tools=TOOLS)

    assert (last.choices[0].message.content or "").startswith("Grüße: answer 1, answer 2.")
    assert last.usage is not None
    assert last.usage.prompt_tokens_details is not None
    assert 0 < (last.usage.prompt_tokens_details.cached_tokens or 0) < last.usage.prompt_tokens
    assert server.counts == {"answered": 2}


@pytest.mark.parametrize(
    ("messages", "says"),
    [
        ([], "at least one message"),
        ([{"role": "tool", "tool_call_id": "c", "content": ""}], "answers no tool call"),
        (
            [*ASK, {"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "look", "arguments": "{}"}}]}],
            "the tool calls c have no answer",
        ),
    ],
    ids=["nothing", "answer-to-nothing", "call-without-answer"],
)
def test_what_no_endpoint_takes_is_refused(server: LlmServer, messages: Any, says: str) -> None:
    with client(server.base_url) as ai, pytest.raises(openai.BadRequestError, match=says):
        ai.chat.completions.create(model="m", messages=messages)


def test_a_model_that_is_not_there_is_not_found(server: LlmServer) -> None:
    with client(server.base_url) as ai:
        assert [model.id for model in ai.models.list()] == ["m"]
        with pytest.raises(openai.NotFoundError):
            ai.chat.completions.create(model="other", messages=ASK)


def test_keys_are_checked() -> None:
    with LlmServer({"m": script}, keys=["right"]) as server:
        with client(server.base_url, api_key="right") as ai:
            ai.chat.completions.create(model="m", messages=ASK)
        with client(server.base_url, api_key="wrong") as ai, pytest.raises(openai.AuthenticationError):
            ai.chat.completions.create(model="m", messages=ASK)

    assert [request.key for request in server.requests] == ["known", "unknown"]
    assert server.counts == {"answered": 1, "refused": 1}


FAULTS: list[tuple[Fault, type[Exception]]] = [
    ("rate_limit", openai.RateLimitError),
    ("unauthorized", openai.AuthenticationError),
    ("error", openai.InternalServerError),
    ("context", openai.BadRequestError),
    ("hang", openai.APITimeoutError),
    ("cut", openai.APIConnectionError),
    ("half_json", json.JSONDecodeError),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("fault", "error"), FAULTS, ids=[fault for fault, _ in FAULTS])
def test_faults_reach_the_client(fault: Fault, error: type[Exception], stream: bool) -> None:
    with LlmServer({"m": script}, Faults(at={1: fault})) as server, client(server.base_url, timeout=0.3) as ai:
        with pytest.raises(error):
            list(ai.chat.completions.create(model="m", messages=ASK, stream=stream))
        ai.chat.completions.create(model="m", messages=ASK)

    assert server.counts == {"left" if fault == "hang" else fault: 1, "answered": 1}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("fault", ["not_json", "no_choices", "empty", "wrong_tool"])
def test_garbage_comes_with_status_200(fault: Fault, stream: bool) -> None:
    with LlmServer({"m": script}, Faults(at={1: fault})) as server:
        body = {"model": "m", "messages": ASK, "tools": TOOLS, "stream": stream}
        response = httpx2.post(f"{server.base_url}/chat/completions", json=body)

    assert response.status_code == 200
    assert ("no_such_tool" in response.text) == (fault == "wrong_tool")
    assert "look" not in response.text


def test_the_faults_of_a_request_do_not_depend_on_the_order() -> None:
    faults = Faults(rates={"rate_limit": 0.3, "cut": 0.2}, seed=5)

    drawn = [faults.strike(number, f"request {number}", 0) for number in range(2000)]

    assert drawn == [faults.strike(2000 - number, f"request {number}", 0) for number in range(2000)]
    assert 500 < drawn.count("rate_limit") < 700
    assert 300 < drawn.count("cut") < 500
    assert {faults.strike(1, "request", repetition) for repetition in range(50)} == {"rate_limit", "cut", None}


def test_a_server_process_tells_its_account() -> None:
    with ServerProcess({"m": Named(f"{__name__}:make")}, Faults(at={2: "error"})) as server:

        async def ask() -> None:
            async with openai.AsyncOpenAI(base_url=server.base_url, api_key="none", max_retries=0) as ai:
                await ai.chat.completions.create(model="m", messages=ASK)
                with pytest.raises(openai.InternalServerError):
                    await ai.chat.completions.create(model="m", messages=ASK)

        asyncio.run(ask())

        assert server.counts == {"answered": 1, "error": 1}
        assert [request.number for request in server.requests] == [1, 2]
        assert server.most_open == 1
