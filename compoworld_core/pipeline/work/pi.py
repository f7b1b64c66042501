"""What pi's sessions need of this process: models behind a proxy, a journal, guests to check services in."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from typing import TYPE_CHECKING

from compoworld_core.llm.config import Budget, ModelConfig
from compoworld_core.llm.messages import Usage
from compoworld_core.llm.proxy import Meter, Proxy
from compoworld_core.llm.sessions import Session
from compoworld_core.pipeline.stage import Shard
from compoworld_core.pipeline.work.models import open_pool
from compoworld_core.pipeline.work.opening import host_pool
from compoworld_core.storage.digest import JsonObject
from compoworld_core.synthesis.author import Author
from compoworld_core.synthesis.pi.author import PiAuthor
from compoworld_core.synthesis.pi.session import PiSessions, Route
from compoworld_core.synthesis.pi.settings import SessionSettings

if TYPE_CHECKING:
    from compoworld_core.llm.pool import ModelPool
    from compoworld_core.pipeline.work.synthesize import SynthesizeConfig


@contextmanager
def open_pi_author(config: SynthesizeConfig, shard: Shard) -> Iterator[Author]:
    """The pi author with the models of a stage's config."""
    assert config.model is not None
    stack = AsyncExitStack()
    with asyncio.Runner() as runner:
        pool: ModelPool = runner.run(stack.enter_async_context(open_pool(config, shard)))
        try:
            sessions = PiSessions(shard.store, _Exchange(pool, config.models), config.session)
            adversary = config.adversary or config.model
            yield PiAuthor(sessions, config.model, adversary, host_pool(), runner.run)
        finally:
            shard.notes["spend"] = pool.spend()
            runner.run(stack.aclose())


class _Exchange:
    """Connects sessions to the models of a pool."""

    def __init__(self, pool: ModelPool, models: Mapping[str, ModelConfig]) -> None:
        self._pool = pool
        self._models = models

    def parameters(self, model: str) -> JsonObject:
        """See `Exchange.parameters`."""
        return self._models[model].parameters()

    def line(self, model: str, item: str, settings: SessionSettings, routes: Mapping[str, Route]) -> Proxy:
        """See `Exchange.line`."""
        budget = Budget(usd=settings.usd, tokens=settings.tokens)
        config = self._models[model]
        meter = Meter(budget, settings.turns, config.price)

        async def complete(body: JsonObject, sample: int) -> tuple[JsonObject, Usage]:
            return await self._pool.complete(model, body, item=item, sample=sample)

        return Proxy(complete, meter, routes)

    def repeat(self, model: str, item: str, session: Session) -> None:
        """See `Exchange.repeat`."""
        self._pool.repeat(model, item=item, requests=session.requests, usage=session.usage)
