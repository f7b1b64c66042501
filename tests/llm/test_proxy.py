"""The proxy: what a session may ask, what it is told once it may not, and what its caller learns."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import httpx2
import openai
import pytest

from compoworld_core.errors import BudgetExhausted, TransientError
from compoworld_core.llm.config import Budget, Price
from compoworld_core.llm.messages import Usage
from compoworld_core.llm.model import ModelFailure
from compoworld_core.llm.proxy import Meter, Proxy
from compoworld_core.storage.digest import JsonObject

CALL = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at": "it"}'}}
TOLD = {"prompt_tokens": 600, "completion_tokens": 400, "total_tokens": 1000}
USAGE = Usage(prompt_tokens=600, completion_tokens=400)


class Model:
    """Answers, and remembers what it was asked."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked: list[tuple[JsonObject, int]] = []
        self.error = error

    async def __call__(self, body: JsonObject, sample: int) -> tuple[JsonObject, Usage]:
        self.asked.append((body, sample))
        if self.error is not None:
            raise self.error
        message = {"role": "assistant", "content": "Well…", "reasoning_content": "Hm.", "tool_calls": [CALL]}
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
        return {"object": "chat.completion", "choices": [choice], "usage": TOLD}, USAGE


@asynccontextmanager
async def served(
    folder: Path, model: Model, *, turns: int = 10, budget: Budget | None = None, **routes: Any
) -> AsyncIterator[tuple[Proxy, httpx2.AsyncClient]]:
    meter = Meter(budget or Budget(), turns, Price(prompt=Decimal(1000), completion=Decimal(1000)))
    proxy = Proxy(model, meter, {f"/{name}": route for name, route in routes.items()})
    path = folder / "socket"
    async with proxy.listen(path):
        transport = httpx2.AsyncHTTPTransport(uds=str(path))
        async with httpx2.AsyncClient(transport=transport, base_url="http://proxy", trust_env=False) as client:
            yield proxy, client


def asking(text: str = "hello", **more: Any) -> JsonObject:
    return {"model": "m", "messages": [{"role": "user", "content": text}], **more}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


pytestmark = pytest.mark.anyio


async def ask(client: httpx2.AsyncClient, **more: Any) -> httpx2.Response:
    return await client.post("/v1/chat/completions", json=asking(**more))


async def test_a_client_reads_the_same_answer_from_a_stream(tmp_path: Path) -> None:
    async with served(tmp_path, Model()) as (_, http):
        client = openai.AsyncOpenAI(api_key="none", base_url="http://proxy/v1", http_client=http)
        whole = await client.chat.completions.create(**asking())
        stream = await client.chat.completions.create(**asking(), stream=True)
        chunks = [chunk async for chunk in stream]

    deltas = [chunk.choices[0].delta for chunk in chunks if chunk.choices]
    message = whole.choices[0].message
    assert "".join(delta.content or "" for delta in deltas) == message.content == "Well…"
    (call,) = [call for delta in deltas for call in delta.tool_calls or ()]
    assert (call.id, call.function and call.function.arguments) == ("c1", '{"at": "it"}')
    assert chunks[-1].usage == whole.usage
    assert [chunk.choices[0].finish_reason for chunk in chunks if chunk.choices] == [None, "tool_calls"]


async def test_the_same_question_is_asked_as_the_next_sample(tmp_path: Path) -> None:
    model = Model()
    async with served(tmp_path, model) as (_, client):
        await ask(client, text="a")
        await ask(client, text="b", stream=True)
        await ask(client, text="a", stream=True, stream_options={"include_usage": True})

    assert [sample for _, sample in model.asked] == [0, 0, 1]
    assert not any(body.keys() & {"stream", "stream_options"} for body, _ in model.asked)


@pytest.mark.parametrize(
    ("turns", "budget"),
    [(1, Budget()), (9, Budget(tokens=1000)), (9, Budget(usd=Decimal("0.9")))],
    ids=["turns", "tokens", "usd"],
)
async def test_a_session_that_had_its_share_is_refused(tmp_path: Path, turns: int, budget: Budget) -> None:
    model = Model()
    async with served(tmp_path, model, turns=turns, budget=budget) as (proxy, client):
        first, second = await ask(client), await ask(client)

    assert (first.status_code, second.status_code) == (200, 402)
    assert "budget of this session is spent" in second.json()["error"]["message"]
    assert len(model.asked) == 1
    assert proxy.is_spent
    assert proxy.failure is None
    assert proxy.spent == (1, USAGE)


async def test_a_failure_of_the_model_concerns_the_session_only(tmp_path: Path) -> None:
    async with served(tmp_path, Model(ModelFailure("context", "too long"))) as (proxy, client):
        answers = [await ask(client), await ask(client)]

    assert [answer.status_code for answer in answers] == [400, 400]
    assert answers[0].json()["error"]["code"] == "context_length_exceeded"
    assert proxy.failure is None
    assert proxy.spent == (0, Usage())


async def test_a_useless_answer_was_paid_for_and_counts(tmp_path: Path) -> None:
    async with served(tmp_path, Model(ModelFailure("empty", "nothing in it", USAGE)), turns=1) as (proxy, client):
        useless, refused = await ask(client), await ask(client)

    assert (useless.status_code, refused.status_code) == (400, 402)
    assert proxy.spent == (1, USAGE)


@pytest.mark.parametrize("error", [BudgetExhausted("spent"), TransientError("later"), ValueError("secret")])
async def test_what_concerns_more_than_the_session_is_kept_for_its_caller(tmp_path: Path, error: Exception) -> None:
    model = Model(error)
    async with served(tmp_path, model) as (proxy, client):
        first, second = await ask(client), await ask(client)

    assert proxy.failure is error
    assert first.status_code in (402, 500)
    assert second.status_code == 503
    assert len(model.asked) == 1
    assert "secret" not in first.text


async def test_many_requests_at_once_get_no_more_than_the_session_may_take(tmp_path: Path) -> None:
    model = Model()
    async with served(tmp_path, model, turns=3) as (proxy, client):
        answers = await asyncio.gather(*(ask(client, text=str(number)) for number in range(20)))

    assert sorted(answer.status_code for answer in answers) == [200] * 3 + [402] * 17
    assert len(model.asked) == 3
    assert proxy.spent[0] == 3


@pytest.mark.parametrize(
    "content",
    [
        b'{"messages": [{"role": "user", "content": NaN}]}',
        b'{"messages": [{"role": "user", "content": "\\ud83d"}]}',
        b'{"messages": [{"content": ' + b"[" * 700 + b"]" * 700 + b"}]}",
        b'{"messages": ' + b"[" * 90_000,
        b'{"messages": 5}',
        b'{"messages": [5]}',
        b'{"messages": [], "tools": {"a": 1}}',
        b'{"messages": [], "tools": [{"type": "web_search"}]}',
        b'{"messages": [{"content": [{"type": "image_url", "image_url": {"url": "http://a/?secret"}}]}]}',
        b'{"messages": [{"content": ["a"]}]}',
    ],
    ids=lambda content: content[:60].decode(),
)
async def test_a_request_that_is_not_passed_on_concerns_nobody_else(tmp_path: Path, content: bytes) -> None:
    model = Model()
    async with served(tmp_path, model) as (proxy, client):
        answer = await client.post("/v1/chat/completions", content=content)
        next = await ask(client)

    assert (answer.status_code, next.status_code) == (400, 200)
    assert proxy.failure is None
    assert len(model.asked) == 1


async def test_fields_that_are_not_for_the_model_are_left_out(tmp_path: Path) -> None:
    model = Model()
    more = {"models": ["dearer"], "service_tier": "priority", "web_search_options": {}, "plugins": [{"id": "web"}]}
    async with served(tmp_path, model) as (_, client):
        await ask(client, temperature=0.5, **more)

    assert model.asked[0][0].keys() == {"messages", "temperature"}


@pytest.mark.parametrize("method", ["HEAD", "CONNECT"])
async def test_a_method_that_has_no_answer_breaks_nothing(
    tmp_path: Path, method: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with served(tmp_path, Model()) as (_, client):
        with pytest.raises(httpx2.HTTPError):
            await client.request(method, "/v1/chat/completions")
        assert (await ask(client)).status_code == 200

    assert not caplog.records


async def test_other_routes_are_answered_beside_the_model(tmp_path: Path) -> None:
    async def check(body: JsonObject) -> JsonObject:
        return {"seen": sorted(body)}

    async with served(tmp_path, Model(), check=check) as (proxy, client):
        known = await client.post("/check", json={"b": 1, "a": 2})
        unknown = await client.post("/files", json={})
        broken = await client.post("/check", content=b"[1")

    assert known.json() == {"seen": ["a", "b"]}
    assert (unknown.status_code, broken.status_code) == (404, 400)
    assert proxy.spent == (0, Usage())
