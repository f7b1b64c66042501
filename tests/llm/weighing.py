"""What a request costs the client's processor: our pool and the bare official client have the same conversations.

`python -m tests.llm.weighing bare|pool BASE_URL STORE` prints seconds of the processor per request, setting up and the
first conversations left out. `talker` is the other side: it says the same in every turn.
"""

from __future__ import annotations

import asyncio
import sys
import time
from collections.abc import Awaitable, Callable
from typing import Any, Final

from openai import AsyncOpenAI

from compoworld_core.llm.config import Endpoint, ModelConfig
from compoworld_core.llm.journal import Journal
from compoworld_core.llm.messages import Message, SystemMessage, ToolMessage, UserMessage
from compoworld_core.llm.pool import ModelPool
from compoworld_core.storage import open_store
from compoworld_core.storage.digest import JsonObject
from compoworld_core.worlds.gateway import META_TOOLS
from tests.llm_server import Reply, Script

MODEL = "talker"
_CONVERSATIONS: Final = 32
_TURNS: Final = 16
_RULES: Final = "You work in a world of services. " * 40
_RESULT: Final = '{"success": true, "data": {"id": "acc_1001", "note": "' + "as it was said before " * 35 + '"}}'

Conversation = Callable[[int], Awaitable[None]]


def talker() -> Script:
    """Calls a tool each time, after a short thought."""
    arguments = {"tool_name": "search_messages", "arguments": {"query": "what was delivered last week", "limit": 20}}

    def say(request: JsonObject) -> Reply:
        return Reply(tool_calls=[("call_tool", arguments)], reasoning_content="What do I know, what is missing? " * 4)

    return say


def bare_conversation(ai: AsyncOpenAI, *, streams: bool) -> Conversation:
    """Turns with nothing but the client; the pieces of a stream are put together as its users do it."""

    async def converse(number: int) -> None:
        messages: list[Any] = [
            {"role": "system", "content": _RULES},
            {"role": "user", "content": f"Do the work of desk {number}."},
        ]
        for _ in range(_TURNS):
            call = await (_streamed(ai, messages) if streams else _whole(ai, messages))
            messages.append({"role": "assistant", "content": "", "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": _RESULT})

    return converse


async def _whole(ai: Any, messages: list[Any]) -> JsonObject:
    answer = await ai.chat.completions.create(model=MODEL, messages=messages, tools=META_TOOLS)
    call = answer.choices[0].message.tool_calls[0]
    function = {"name": call.function.name, "arguments": call.function.arguments}
    return {"id": call.id, "type": "function", "function": function}


async def _streamed(ai: Any, messages: list[Any]) -> JsonObject:
    stream = await ai.chat.completions.create(
        model=MODEL,
        messages=messages,
        tools=META_TOOLS,
        stream=True,
        stream_options={"include_usage": True},
    )
    call: JsonObject = {"type": "function", "function": {"name": "", "arguments": ""}}
    async for chunk in stream:
        for delta in (chunk.choices and chunk.choices[0].delta.tool_calls) or ():
            call["id"] = delta.id or call["id"]
            call["function"]["name"] += delta.function.name or ""
            call["function"]["arguments"] += delta.function.arguments or ""
    return call


def pool_conversation(pool: ModelPool) -> Conversation:
    """The same turns with the pool, each answer journaled."""

    async def converse(number: int) -> None:
        model = pool.model(MODEL, item=str(number))
        messages: list[Message] = [
            SystemMessage(content=_RULES),
            UserMessage(content=f"Do the work of desk {number}."),
        ]
        for _ in range(_TURNS):
            answer = await model.respond(messages, META_TOOLS)
            call = answer.tool_calls[0]
            messages += [answer, ToolMessage(tool_call_id=call.id, name=call.name, content=_RESULT)]

    return converse


async def weigh(converse: Conversation) -> float:
    """Seconds of the processor per request."""
    await asyncio.gather(*(converse(number) for number in range(2)))
    start = time.process_time()
    await asyncio.gather(*(converse(number) for number in range(2, _CONVERSATIONS)))
    return (time.process_time() - start) / ((_CONVERSATIONS - 2) * _TURNS)


async def main(client: str, base_url: str, store: str) -> float:
    """Weigh one client: `bare-whole`, `bare-stream`, `pool-whole` or `pool-stream`."""
    kind, _, form = client.partition("-")
    if kind == "bare":
        async with AsyncOpenAI(base_url=base_url, api_key="none", max_retries=0) as ai:
            return await weigh(bare_conversation(ai, streams=form == "stream"))
    endpoint = Endpoint(base_url=base_url, concurrency=_CONVERSATIONS)
    config = ModelConfig(model=MODEL, endpoints=(endpoint,), stream=form == "stream")
    async with ModelPool({MODEL: config}, Journal(open_store(store))) as pool:
        return await weigh(pool_conversation(pool))


if __name__ == "__main__":
    print(asyncio.run(main(*sys.argv[1:])))  # noqa: T201
