"""Hooks of the HTTP client: what of a request an endpoint gets to see, and how much of an answer is taken from it.

The client library sends along what it finds in the environment, which is meant for its maker's endpoint and may be
secret. And an endpoint may answer without end, or with little that unpacks to a lot.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, Final

import httpx2

MOST_BYTES: Final = 64 * 1024 * 1024
"""Of an answer: a stream has some hundred for each token."""

_SENT: Final = frozenset({
    "accept", "accept-encoding", "authorization", "connection", "content-length", "content-type", "host", "user-agent",
})  # fmt: skip


class AnswerTooLong(httpx2.HTTPError):
    """An answer that is longer than any that a model gives."""


class AnswerPacked(httpx2.HTTPError):
    """An answer that is compressed, although that was not asked for."""


def hooks(key: str | None) -> dict[str, list[Any]]:
    """The hooks of a client that has this key, or none."""

    async def bare(request: httpx2.Request) -> None:
        for name in set(request.headers) - _SENT:
            del request.headers[name]
        request.headers["accept-encoding"] = "identity"
        request.headers.pop("authorization", None)
        if key is not None:
            request.headers["authorization"] = f"Bearer {key}"

    async def bounded(response: httpx2.Response) -> None:
        if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            raise AnswerPacked("it is compressed")
        assert isinstance(response.stream, httpx2.AsyncByteStream)
        response.stream = _Bounded(response.stream)

    return {"request": [bare], "response": [bounded]}


class _Bounded(httpx2.AsyncByteStream):
    """The bytes of an answer, up to the most."""

    def __init__(self, stream: httpx2.AsyncByteStream) -> None:
        self._stream = stream

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for part in self._stream:
            size += len(part)
            if size > MOST_BYTES:
                raise AnswerTooLong(f"it has more than {MOST_BYTES} bytes")
            yield part

    async def aclose(self) -> None:
        await self._stream.aclose()
