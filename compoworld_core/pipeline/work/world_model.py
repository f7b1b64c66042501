"""The world model of a stage: predictions in the shard's store, asked for through the models of its pool."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from concurrent.futures import CancelledError
from functools import partial
from typing import TYPE_CHECKING, Final

from compoworld_core.errors import CompoWorldError, TransientError
from compoworld_core.llm.messages import AssistantMessage, Message, Usage
from compoworld_core.pipeline.stage import Shard
from compoworld_core.services.world_model.model import WorldModel
from compoworld_core.services.world_model.settings import WorldModelUser

if TYPE_CHECKING:
    from compoworld_core.llm.pool import ModelPool

_LOOK_S: Final = 1.0
"""How often a waiting thread looks whether there is still a loop that could answer."""


def open_world_model(config: WorldModelUser, pool: ModelPool, shard: Shard) -> WorldModel | None:
    """The world model that a stage's worlds may use, if it has one; to be called in the loop that the pool runs in."""
    chosen = config.world_model
    if chosen is None or chosen.model is None:
        return None
    ask = LoopAsk(pool, chosen.model, asyncio.get_running_loop())
    return WorldModel(shard.store, chosen, config.models[chosen.model].parameters(), ask)


class LoopAsk:
    """Asks a model of a pool from any thread but that of the pool's loop."""

    def __init__(self, pool: ModelPool, model: str, loop: asyncio.AbstractEventLoop) -> None:
        self._pool = pool
        self._model = model
        self._loop = loop

    def __call__(self, messages: Sequence[Message], *, item: str, sample: int) -> AssistantMessage:
        """The model's next message.

        Raises:
            CompoWorldError: This is the loop's own thread, which would wait for itself.
            TransientError: The loop ended first.
        """
        if asyncio._get_running_loop() is self._loop:
            raise CompoWorldError("a world model is asked in the thread of its own loop; await Gateway.reply there")
        model = self._pool.model(self._model, item=item, sample=sample)
        answer = asyncio.run_coroutine_threadsafe(model.respond(messages, ()), self._loop)
        while True:
            try:
                return answer.result(_LOOK_S)
            except TimeoutError:
                if self._loop.is_closed():
                    raise TransientError("the run ended before the world model answered") from None
            except CancelledError:
                raise TransientError("the run was stopped before the world model answered") from None

    def repeat(self, *, item: str, requests: int, usage: Usage) -> None:
        """Count in the loop's thread what a prediction took that is not made again."""
        count = partial(self._pool.repeat, self._model, item=item, requests=requests, usage=usage)
        self._loop.call_soon_threadsafe(count)
