"""The client: what it sends, and that whatever comes back is a completion or a failure that is known."""

from __future__ import annotations

import asyncio
import gzip
import json
from typing import Any

import pytest

from compoworld_core.errors import InputError
from compoworld_core.llm import hooks
from compoworld_core.llm.client import Client
from compoworld_core.llm.config import Endpoint, ModelConfig
from compoworld_core.llm.failures import Unanswered
from compoworld_core.llm.model import ModelFailure
from compoworld_core.llm.request import Request
from compoworld_core.storage.digest import JsonObject

KEY = "sk-canary-3f9a04c1"


def answer(body: bytes, *headers: str, status: str = "200 OK") -> bytes:
    head = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", "Connection: close", *headers]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def streamed(*pieces: bytes) -> bytes:
    return answer(b"".join(b"data: " + piece + b"\n\n" for piece in (*pieces, b"[DONE]")))


def ask(sent: bytes, *, stream: bool) -> tuple[JsonObject | Exception, str]:
    """What comes of an endpoint that sends just this, and the head of the request that it was sent."""

    async def main() -> tuple[JsonObject | Exception, str]:
        heads: list[str] = []

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            heads.append((await reader.readuntil(b"\r\n\r\n")).decode().lower())
            writer.write(sent)
            writer.close()

        async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
            url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
            config = ModelConfig(model="m", stream=stream)
            client = Client(Endpoint(base_url=url, key_env="CANARY_KEY"), config)
            try:
                return await client.complete(Request.of(config, {"messages": []})), heads[0]
            except Exception as error:
                return error, heads[0]
            finally:
                await client.close()

    return asyncio.run(main())


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_KEY", KEY)


_DEEP = b"[" * 100_000
_LONG_NUMBER = b'{"choices": [], "usage": {"prompt_tokens": ' + b"9" * 5000 + b"}}"


@pytest.mark.parametrize("body", [_DEEP, _LONG_NUMBER, b"\xff\xfe\xff", b"5", b"null", b'{"choices": 5}'])
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
def test_what_cannot_be_read_is_an_answer_that_did_not_come(body: bytes, stream: bool) -> None:
    got, _ = ask(streamed(body) if stream else answer(body), stream=stream)

    assert isinstance(got, Unanswered)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize(
    "sent",
    [
        pytest.param(answer(gzip.compress(b" " * 100_000), "Content-Encoding: gzip"), id="packed"),
        pytest.param(
            answer(gzip.compress(b" " * 100_000), "Content-Encoding: gzip", status="500 X"), id="packed error"
        ),
        pytest.param(answer(b"data: " + b"x" * 100_000), id="long"),
        pytest.param(answer(b"x" * 100_000, status="500 X"), id="long error"),
    ],
)
def test_no_more_of_an_answer_is_read_than_a_model_says(
    sent: bytes, stream: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hooks, "MOST_BYTES", 50_000)

    got, _ = ask(sent, stream=stream)

    assert isinstance(got, Unanswered)
    assert "Answer" in str(got)


def _call(**call: Any) -> bytes:
    calls = {"tool_calls": [{"id": "a", "function": {"name": "look", **call}}]}
    return json.dumps({"choices": [{"message": calls, "delta": calls, "finish_reason": "stop"}]}).encode()


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("value", [float("nan"), "\ud800"], ids=ascii)
def test_arguments_that_cannot_be_stored_are_the_models_mistake(value: object, stream: bool) -> None:
    body = _call(arguments={"a": value})

    got, _ = ask(streamed(body) if stream else answer(body), stream=stream)

    assert isinstance(got, dict)
    assert got["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"].isprintable()


@pytest.mark.parametrize(
    "date", ["Wed, 21 Oct 99999999999999 07:28:00 GMT", "Wed, 21 Oct 2026 07:28:00 +99999999999999"]
)
def test_a_time_that_never_comes_is_not_waited_for(date: str) -> None:
    got, _ = ask(answer(b"", f"Retry-After: {date}", status="429 X"), stream=True)

    assert isinstance(got, Unanswered)
    assert got.wait_s is None


def test_an_endpoint_is_sent_its_key_and_nothing_else_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ADMIN_KEY", "API_KEY", "ORG_ID", "PROJECT_ID", "WEBHOOK_SECRET"):
        monkeypatch.setenv(f"OPENAI_{name}", "not-yours")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Secret: not-yours\nAuthorization: Bearer not-yours")

    _, head = ask(answer(b"{}"), stream=True)

    assert f"authorization: bearer {KEY}" in head
    assert "not-yours" not in head


@pytest.mark.parametrize("value", ["sk-caf\u00e9", "sk-\u6f22", "sk-a\nsk-b"], ids=ascii)
def test_a_key_that_no_header_can_hold_is_named_by_its_place_only(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CANARY_KEY", value)

    with pytest.raises(InputError, match="CANARY_KEY") as caught:
        ask(b"", stream=True)

    assert value not in str(caught.value)


@pytest.mark.parametrize(
    ("code", "kind"), [("content_filter", "filtered"), ("content_policy_violation", "filtered"), ("bad", "refused")]
)
def test_a_question_that_does_not_pass_a_filter_is_told_from_one_that_no_question_passes(code: str, kind: str) -> None:
    body = json.dumps({"error": {"message": "No.", "code": code}}).encode()

    got, _ = ask(answer(body, status="400 Bad Request"), stream=True)

    assert isinstance(got, ModelFailure)
    assert got.kind == kind
