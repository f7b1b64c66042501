"""Models of the scripted server as the tests of this room configure and ask them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

from compoworld_core.llm.config import Budget, Endpoint, ModelConfig, Price
from compoworld_core.llm.journal import Journal
from compoworld_core.llm.messages import AssistantMessage, Message, SystemMessage, UserMessage
from compoworld_core.llm.pool import ModelPool
from compoworld_core.llm.servers import Patience
from compoworld_core.storage import open_store
from compoworld_core.storage.digest import JsonObject
from tests.llm_server import LlmServer, Reply

NAME = "teacher"
MODEL = "test/model"
PRICE = Price(prompt=Decimal(3), cached=Decimal(1), completion=Decimal(10))
QUICK = Patience(pause_s=0.001, longest_pause_s=0.01)

T = TypeVar("T")


def echo(request: JsonObject) -> Reply:
    """Says what it was told last."""
    return Reply(content=f"You said: {request['messages'][-1]['content']}")


def model(*servers: LlmServer | str, **fields: Any) -> ModelConfig:
    """The model, served there; fields of the endpoints have the prefix `e_`."""
    own = {name: value for name, value in fields.items() if not name.startswith("e_")}
    each = {name.removeprefix("e_"): value for name, value in fields.items() if name.startswith("e_")}
    urls = [server if isinstance(server, str) else server.base_url for server in servers]
    endpoints = tuple(Endpoint(base_url=url, **each) for url in urls)
    return ModelConfig(**{"model": MODEL, "price": PRICE, "endpoints": endpoints, **own})


def said(text: str) -> list[Message]:
    """A conversation that has just begun."""
    return [SystemMessage(content="Be kind."), UserMessage(content=text)]


async def ask(pool: ModelPool, text: str = "Hello", *, item: str = "i", sample: int = 0) -> AssistantMessage:
    """Ask the model one thing."""
    return await pool.model(NAME, item=item, sample=sample).respond(said(text), [])


def using(
    config: ModelConfig,
    folder: Path | str,
    work: Callable[[ModelPool], Awaitable[T]],
    *,
    budget: Budget | None = None,
    patience: Patience = QUICK,
) -> T:
    """What some work with a pool of the model gives."""

    async def main() -> T:
        async with ModelPool({NAME: config}, Journal(open_store(folder)), budget, patience=patience) as pool:
            return await work(pool)

    return asyncio.run(main())
