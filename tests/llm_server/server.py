"""A server in a thread of the test's process."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Collection, Mapping
from typing import Self

from aiohttp import web

from tests.llm_server.app import Endpoint, Request
from tests.llm_server.faults import Faults
from tests.llm_server.reply import Script

BACKLOG = 4096
"""Connections that may wait: a storm comes all at once."""


class LlmServer:
    """Serves while it is entered.

    Args:
        scripts: What each model says, by its name.
        keys: The keys that are accepted; None accepts everyone.
        keep_bodies: Whether `requests` remember what was asked.
    """

    def __init__(
        self,
        scripts: Mapping[str, Script],
        faults: Faults | None = None,
        *,
        keys: Collection[str] | None = None,
        keep_bodies: bool = True,
    ) -> None:
        self.base_url = ""
        self._endpoint = Endpoint(scripts, faults, keys, keep_bodies)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._runner = web.AppRunner(
            self._endpoint.app(), access_log=None, handler_cancellation=True, shutdown_timeout=0.0
        )

    @property
    def requests(self) -> list[Request]:
        """All requests so far."""
        return self._endpoint.requests

    @property
    def counts(self) -> Counter[str]:
        """Requests by outcome."""
        return self._endpoint.counts

    @property
    def most_open(self) -> int:
        """Most requests that were open at a time."""
        return self._endpoint.most_open

    def __enter__(self) -> Self:
        self._thread.start()
        port = asyncio.run_coroutine_threadsafe(serve(self._runner), self._loop).result()
        self.base_url = f"http://127.0.0.1:{port}/v1"
        return self

    def __exit__(self, *exc: object) -> None:
        asyncio.run_coroutine_threadsafe(self._runner.cleanup(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def serve(runner: web.AppRunner) -> int:
    """Listen on a free local port; returns it."""
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, backlog=BACKLOG)
    await site.start()
    port: int = runner.addresses[0][1]
    return port
