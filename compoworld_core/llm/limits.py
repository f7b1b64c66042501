"""What one endpoint may be asked at a time and in a minute. Who comes first goes first.

Rates are kept by a clock that runs ahead: each request moves it on by the time that it takes up at the allowed rate,
and waits until the real time has come within a small burst of where the clock was. Places are taken in the order of
arrival without a queue, and what an estimate got wrong is put right by moving the clock.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Final

from compoworld_core.llm.config import Endpoint

_BURST_S: Final = 2.0
"""Providers count by the minute, or by parts of it: a whole minute's worth at once would be refused."""


class Rate:
    """At most so many units a minute; times are those of the event loop."""

    def __init__(self, per_minute: int) -> None:
        self._seconds_each = 60 / per_minute
        self._clock = float("-inf")

    def take(self, units: int, now: float) -> float:
        """Take units in turn; the seconds to wait before they may be used."""
        start = max(self._clock, now - _BURST_S)
        self._clock = start + units * self._seconds_each
        return max(0.0, start - now)

    def correct(self, units: int) -> None:
        """Take some more, or give some back."""
        self._clock += units * self._seconds_each


class Limits:
    """The limits of an endpoint."""

    def __init__(self, endpoint: Endpoint) -> None:
        self._slots = asyncio.Semaphore(endpoint.concurrency)
        self._requests = Rate(endpoint.requests_per_minute) if endpoint.requests_per_minute else None
        self._tokens = Rate(endpoint.tokens_per_minute) if endpoint.tokens_per_minute else None

    @property
    def are_reached(self) -> bool:
        """Whether a request would have to wait for another to end."""
        return self._slots.locked()

    @asynccontextmanager
    async def place(self, tokens: int) -> AsyncIterator[Callable[[int], None]]:
        """A place for one request, from when it may be sent until the block ends.

        Args:
            tokens: What it is thought to take.

        Yields:
            A function to be told what it really took.
        """
        async with self._slots:
            now = asyncio.get_running_loop().time()
            wait = max(rate.take(units, now) for rate, units in self._shares(tokens)) if self._has_rates else 0.0
            try:
                if wait:
                    await asyncio.sleep(wait)
            except asyncio.CancelledError:
                for rate, units in self._shares(tokens):
                    rate.correct(-units)
                raise
            yield lambda actual: self._tokens.correct(actual - tokens) if self._tokens else None

    @property
    def _has_rates(self) -> bool:
        return self._requests is not None or self._tokens is not None

    def _shares(self, tokens: int) -> list[tuple[Rate, int]]:
        pairs = ((self._requests, 1), (self._tokens, tokens))
        return [(rate, units) for rate, units in pairs if rate is not None]
