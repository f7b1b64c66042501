"""One endpoint: a request goes in, a whole completion comes out, or the reason why there is none.

The official client sends the bytes and decodes the stream; it neither retries nor builds an object for each piece. Its
connections are aiohttp's, which cost the same however many are open: a pool of httpx looks at all of them each time.
"""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import httpx2
from openai import APIError, AsyncOpenAI, AsyncStream, DefaultAioHttpClient

from compoworld_core.errors import CompoWorldError
from compoworld_core.llm.completion import Assembly, CutShort, MalformedCompletion, normal_completion
from compoworld_core.llm.config import Endpoint, ModelConfig
from compoworld_core.llm.failures import Unanswered, sorted_failure
from compoworld_core.llm.hooks import hooks
from compoworld_core.llm.request import Request
from compoworld_core.storage.digest import JsonObject

_PATH = "/chat/completions"
_HEADERS = {"Content-Type": "application/json"}


class Client:
    """Asks one endpoint for completions of one model.

    Raises:
        InputError: There is no key.
    """

    def __init__(self, endpoint: Endpoint, config: ModelConfig) -> None:
        self._endpoint = endpoint
        self._model = config.model
        self._streams = config.stream
        self._key = endpoint.key()
        limits = httpx2.Limits(max_connections=endpoint.concurrency)
        timeout = httpx2.Timeout(endpoint.total_s, connect=min(30.0, endpoint.first_byte_s), pool=None)
        self._client = AsyncOpenAI(
            base_url=endpoint.base_url,
            api_key=self._key or "none",  # the client insists on one
            max_retries=0,
            timeout=timeout,
            http_client=DefaultAioHttpClient(
                limits=limits, timeout=timeout, follow_redirects=False, event_hooks=hooks(self._key)
            ),
        )

    async def close(self) -> None:
        """Close its connections."""
        await self._client.close()

    async def complete(self, request: Request) -> JsonObject:
        """A completion in the form of `normal_completion`.

        Raises:
            Unanswered: There is none now.
            ModelFailure: There can be none.
            InputError: The endpoint does not accept key or model.
        """
        failure: CompoWorldError
        try:
            return await (self._streamed(request) if self._streams else self._at_once(request))
        except CutShort as error:
            failure = Unanswered(f"{self._endpoint.base_url}: {self._model}: {error}")
        except MalformedCompletion as error:
            failure = Unanswered(f"{self._endpoint.base_url}: {self._model}: {error}", is_malformed=True)
        except (
            APIError,
            TimeoutError,
            ValueError,  # no JSON, no UTF-8, a number that is too long
            RecursionError,
            httpx2.HTTPError,
            aiohttp.ClientError,
        ) as error:
            failure = sorted_failure(error, self._endpoint, self._model, self._key)
        raise failure

    async def _at_once(self, request: Request) -> JsonObject:
        async with asyncio.timeout(self._endpoint.total_s):
            raw = await self._client.post(
                _PATH, cast_to=httpx2.Response, content=request.content, options={"headers": _HEADERS}
            )
        return normal_completion(raw.json())

    async def _streamed(self, request: Request) -> JsonObject:
        assembly = Assembly()
        began = asyncio.get_running_loop().time()
        async with asyncio.timeout(self._endpoint.first_byte_s) as clock:
            stream: AsyncStream[Any] = await self._client.post(
                _PATH,
                cast_to=object,
                content=request.streamed,
                options={"headers": _HEADERS},
                stream=True,
                stream_cls=AsyncStream[object],
            )
            waiting = True
            try:
                async for chunk in stream:
                    if waiting:
                        clock.reschedule(began + self._endpoint.total_s)
                        waiting = False
                    assembly.add(chunk)
            finally:
                await stream.close()
        return assembly.completion()
