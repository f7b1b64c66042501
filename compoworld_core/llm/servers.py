"""The servers of one model: which is asked, and what happens when it does not answer.

A conversation stays with one server as long as that has room, for that server has the beginning in its cache; shares
follow the weights. A request that gets no answer goes to another server at once, or after a pause to the same one:
of random length, so that those who failed together do not come back together, and no shorter than the server asked.
"""

from __future__ import annotations

import asyncio
import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from compoworld_core.errors import CompoWorldError, TransientError
from compoworld_core.llm.circuit import Circuit
from compoworld_core.llm.client import Client
from compoworld_core.llm.completion import is_empty
from compoworld_core.llm.config import Endpoint, ModelConfig
from compoworld_core.llm.failures import Unanswered
from compoworld_core.llm.limits import Limits
from compoworld_core.llm.messages import Usage
from compoworld_core.llm.model import ModelFailure
from compoworld_core.llm.request import Request
from compoworld_core.storage.digest import JsonObject, digest_bytes

_EMPTY_ANSWERS: Final = 3
"""So often in a row a model may say nothing before that is taken for its answer."""


class Patience(BaseModel):
    """How long to try.

    Attributes:
        attempts: Most times that a request is sent, less those when a server was too busy.
        pause_s: Longest first pause; each further one may be twice as long.
        longest_pause_s: Where that ends.
        total_s: Time from the first failure after which the request is given up, less the waits for a free place.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    attempts: int = Field(default=10, ge=1)
    pause_s: float = Field(default=0.5, ge=0)
    longest_pause_s: float = Field(default=30, ge=0)
    total_s: float = Field(default=600, gt=0)


@dataclass(slots=True)
class Flight:
    """A question on its way.

    Attributes:
        waiters: How many wait for the answer.
        is_sent: Whether a server has it, or has answered it, so that it has to be paid.
    """

    waiters: int = 0
    is_sent: bool = False


class Server:
    """A server with what limits its use."""

    def __init__(self, endpoint: Endpoint, config: ModelConfig) -> None:
        self.endpoint = endpoint
        self.circuit = Circuit()
        self.limits = Limits(endpoint)
        self.client = Client(endpoint, config)
        self.load = 0

    def rank(self, conversation: str) -> float:
        """The lower, the rather a conversation belongs here: over all conversations, shares follow the weights."""
        drawn = int(digest_bytes(f"{self.endpoint.base_url}\n{conversation}".encode())[:13], 16)
        return -math.log((drawn + 1) / 16**13) / self.endpoint.weight

    @property
    def relative_load(self) -> float:
        """Requests that it has or that wait for it, by its weight."""
        return self.load / self.endpoint.weight

    async def ask(
        self, request: Request, tokens: int, flight: Flight, has_waited: Callable[[float], None]
    ) -> JsonObject | None:
        """One attempt; None where the server began to fail before its turn came. Raises as `Client.complete` does."""
        self.load += 1
        arrived = asyncio.get_running_loop().time()
        try:
            async with self.limits.place(tokens) as settle:
                now = asyncio.get_running_loop().time()
                has_waited(now - arrived)
                if self.circuit.ready_at(now) > now:
                    settle(0)
                    return None
                flight.is_sent = True
                with self.circuit.watch():
                    completion = await self.client.complete(request)
                if (usage := completion.get("usage")) is not None:
                    settle(usage["total_tokens"])
                return completion
        except CompoWorldError:
            flight.is_sent = False
            raise
        finally:
            self.load -= 1


class Servers:
    """Asks the servers of a model until one answers."""

    def __init__(self, config: ModelConfig, patience: Patience) -> None:
        self._servers = [Server(endpoint, config) for endpoint in config.endpoints]
        self._patience = patience

    async def close(self) -> None:
        """Close all connections."""
        for server in self._servers:
            await server.client.close()

    async def ask(
        self, request: Request, conversation: str, estimate: Usage, flight: Flight, may_retry: Callable[[], None]
    ) -> tuple[JsonObject, list[JsonObject]]:
        """A completion, and the empty ones that were thrown away for it.

        Args:
            conversation: What it belongs to; requests of one conversation prefer one server.
            estimate: What it is thought to take.
            flight: Told when the request is sent; without waiters it is not sent again.
            may_retry: Raises where it must not be sent again.

        Raises:
            ModelFailure: There is no usable answer.
            InputError: A server does not accept key or model.
            TransientError: There is no answer now.
        """
        effort = _Effort(self._patience, sorted(self._servers, key=lambda server: server.rank(conversation)))
        tokens = estimate.prompt_tokens + estimate.completion_tokens
        empty: list[JsonObject] = []
        while True:
            server = await effort.next()
            try:
                completion = await server.ask(request, tokens, flight, effort.has_waited)
            except Unanswered as error:
                if not flight.waiters:
                    raise
                effort.failed(server, error)
                may_retry()
                continue
            if completion is None:
                continue
            if not is_empty(completion) or len(empty) == _EMPTY_ANSWERS - 1 or not flight.waiters:
                return completion, empty
            empty.append(completion)


class _Effort:
    """The attempts at one request."""

    def __init__(self, patience: Patience, servers: list[Server]) -> None:
        self._patience = patience
        self._servers = servers
        self._ready_at: dict[Server, float] = {}
        self._failures: dict[Server, int] = {}
        self._attempts = 0
        self._give_up_at = math.inf

    async def next(self) -> Server:
        """The server to ask next, when it may be asked."""
        loop = asyncio.get_running_loop()
        while True:
            now = loop.time()
            ready_at = {
                server: max(server.circuit.ready_at(now), self._ready_at.get(server, now)) for server in self._servers
            }
            ready = [server for server in self._servers if ready_at[server] <= now]
            if ready:
                roomy = next((server for server in ready if not server.limits.are_reached), None)
                return roomy or min(ready, key=lambda server: server.relative_load)
            self._give_up_at = min(self._give_up_at, now + self._patience.total_s)
            if now >= self._give_up_at:
                raise TransientError(f"{self._names}: no answer for {self._patience.total_s:g} s")
            await asyncio.sleep(min(self._give_up_at, *ready_at.values()) - now)

    @property
    def _names(self) -> str:
        return ", ".join(sorted(server.endpoint.base_url for server in self._servers))

    def has_waited(self, seconds: float) -> None:
        """Note a wait for a free place: it says nothing about a server."""
        self._give_up_at += seconds

    def failed(self, server: Server, error: Unanswered) -> None:
        """Note a failure; raises where it was one too many."""
        patience, now = self._patience, asyncio.get_running_loop().time()
        self._attempts += not error.is_busy
        failures = self._failures[server] = self._failures.get(server, 0) + 1
        self._give_up_at = min(self._give_up_at, now + patience.total_s)
        longest = min(patience.longest_pause_s, patience.pause_s * 2 ** min(failures - 1, 30))
        self._ready_at[server] = now + (error.wait_s or 0.0) + random.uniform(0, longest)
        soonest = min(self._ready_at.get(other, now) for other in self._servers)
        if self._attempts < patience.attempts and soonest <= self._give_up_at:
            return
        told = f"{error} ({sum(self._failures.values())} attempts)"
        if error.is_malformed:
            raise ModelFailure("malformed", told)
        raise TransientError(told)
