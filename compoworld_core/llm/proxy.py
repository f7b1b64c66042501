"""A proxy through which a confined program reaches one model and nothing else.

It listens on a Unix socket, speaks chat completions, and passes each request on to whoever has the key: the program
never sees one. Of a request only text, functions and how to sample are passed on: a provider may know fields that
choose other models, cost more, or have it fetch something from the network for whoever asks.

One request is answered after the other. The proxy counts what the session takes, and once that is as much as the
session may take, every further request is refused. A failure that concerns more than this request, such as the stage's
spent budget, is kept for the caller: the program is told to stop, and the caller raises it when the program has.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final

import h11

from compoworld_core.errors import BudgetExhausted, CompoWorldError, InputError
from compoworld_core.llm.config import Budget, Price
from compoworld_core.llm.messages import Usage
from compoworld_core.llm.model import ModelFailure
from compoworld_core.storage.digest import JsonObject, digest

Complete = Callable[[JsonObject, int], Awaitable[tuple[JsonObject, Usage]]]
"""Answers the body of a chat-completion request with a completion and what that took; asked again, it is told how often
it was before."""

Route = Callable[[JsonObject], Awaitable[JsonObject]]
"""Answers a JSON request with JSON."""

CHAT: Final = "/v1/chat/completions"

_MOST_BYTES: Final = 16 * 1024 * 1024
_MOST_AT_ONCE: Final = 16
"""Requests that are read or answered; others wait."""

_CHUNK: Final = 64 * 1024
_ASKED: Final = frozenset({
    "messages", "tools", "tool_choice", "parallel_tool_calls", "max_tokens", "max_completion_tokens", "temperature",
    "top_p", "stop", "reasoning_effort",
})  # fmt: skip
"""Fields that are passed on."""


class Meter:
    """Counts what one session takes.

    Args:
        turns: Most answers.

    Attributes:
        turns: Answers so far.
        usage: What they took.
        is_spent: Whether a request was refused because the session had taken all that it may.
    """

    def __init__(self, budget: Budget, turns: int, price: Price) -> None:
        self.turns = 0
        self.usage = Usage()
        self.is_spent = False
        self._budget = budget
        self._most_turns = turns
        self._price = price

    def check(self) -> None:
        """Allow a request.

        Raises:
            Refused: Nothing is left.
        """
        budget = self._budget
        spent = (
            (self.turns >= self._most_turns, f"{self._most_turns} turns"),
            (budget.tokens is not None and self.usage.tokens >= budget.tokens, f"{budget.tokens} tokens"),
            (budget.usd is not None and self._price.of(self.usage) >= budget.usd, f"{budget.usd} US dollars"),
        )
        for is_over, what in spent:
            if is_over:
                self.is_spent = True
                raise Refused(402, "insufficient_quota", f"the budget of this session is spent: {what}")

    def count(self, usage: Usage) -> None:
        """Take note of an answer."""
        self.turns += 1
        self.usage = Usage.total((self.usage, usage))


class Refused(Exception):
    """An answer in the form in which endpoints refuse."""

    def __init__(self, status: int, code: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.body: JsonObject = {"error": {"message": message, "type": code, "param": None, "code": code}}


class Proxy:
    """Serves one session.

    Args:
        complete: Asks the model.
        meter: Counts what the session takes.
        routes: What is answered beside chat completions, by path.

    Attributes:
        failure: What the caller has to raise when the session has ended.
    """

    def __init__(self, complete: Complete, meter: Meter, routes: Mapping[str, Route]) -> None:
        self.failure: BaseException | None = None
        self._meter = meter
        self._complete = complete
        self._routes = routes
        self._asked: Counter[str] = Counter()
        self._tasks: set[asyncio.Task[None]] = set()
        self._places = asyncio.Semaphore(_MOST_AT_ONCE)
        self._turn = asyncio.Lock()

    @property
    def is_spent(self) -> bool:
        """Whether an answer was refused because the session had had all that it may."""
        return self._meter.is_spent

    @property
    def spent(self) -> tuple[int, Usage]:
        """Answers so far, and what they took."""
        return self._meter.turns, self._meter.usage

    @asynccontextmanager
    async def listen(self, path: Path) -> AsyncIterator[None]:
        """Serve on a Unix socket at this path until the block ends."""
        server = await asyncio.start_unix_server(self._accept, path)
        try:
            yield
        finally:
            server.close()
            for task in tuple(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            await server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            with suppress(OSError, h11.ProtocolError, asyncio.CancelledError):
                await _Connection(reader, writer, self._places).serve(self._answer)
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, path: str, body: JsonObject) -> JsonObject:
        route = self._in_turn if path == CHAT else self._routes.get(path)
        if route is None:
            raise Refused(404, "not_found", f"there is no {path}")
        try:
            return await route(body)
        except (Refused, asyncio.CancelledError):
            raise
        except ModelFailure as failure:
            is_long = failure.kind == "context"
            raise Refused(400, "context_length_exceeded" if is_long else failure.kind, str(failure)) from None
        except Exception as error:
            self.failure = self.failure or error
            code = "insufficient_quota" if isinstance(error, BudgetExhausted) else "server_error"
            text = str(error) if isinstance(error, CompoWorldError) else "the proxy failed"
            raise Refused(402 if isinstance(error, BudgetExhausted) else 500, code, text) from None

    async def _in_turn(self, body: JsonObject) -> JsonObject:
        async with self._turn:  # so that what one takes is counted before the next is allowed
            return await self._chat(body)

    async def _chat(self, body: JsonObject) -> JsonObject:
        if self.failure is not None:
            raise Refused(503, "server_error", "the session is over")
        self._meter.check()
        asked = _asked(body)
        try:
            key = digest(asked)
        except InputError as error:
            raise Refused(400, "invalid_json", f"the body cannot be passed on: {error}") from None
        sample = self._asked[key]
        self._asked[key] += 1
        try:
            completion, usage = await self._complete(asked, sample)
        except ModelFailure as failure:
            if failure.usage is not None:
                self._meter.count(failure.usage)
            raise
        self._meter.count(usage)
        return completion


class _Connection:
    """One connection: requests after one another."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, places: asyncio.Semaphore) -> None:
        self._reader = reader
        self._writer = writer
        self._places = places
        self._http = h11.Connection(h11.SERVER)

    async def serve(self, answer: Callable[[str, JsonObject], Awaitable[JsonObject]]) -> None:
        while True:
            request = await self._next()
            if not isinstance(request, h11.Request) or request.method in (b"HEAD", b"CONNECT"):
                return
            path = request.target.decode("latin-1").partition("?")[0]
            try:
                async with self._places:
                    body = _object(await self._body())
                    answered = await answer(path, body)
                is_stream = path == CHAT and body.get("stream") is True
                await self._send(200, _events(answered) if is_stream else _text(answered), is_stream)
            except Refused as refused:
                await self._send(refused.status, _text(refused.body), False)
            if self._http.our_state is not h11.DONE or self._http.their_state is not h11.DONE:
                return
            self._http.start_next_cycle()

    async def _next(self) -> Any:
        while (event := self._http.next_event()) is h11.NEED_DATA:
            if self._http.they_are_waiting_for_100_continue:
                await self._write(h11.InformationalResponse(status_code=100, headers=[]))
            self._http.receive_data(await self._reader.read(_CHUNK))
        return event

    async def _body(self) -> bytes:
        parts = bytearray()
        while isinstance(event := await self._next(), h11.Data):
            parts += event.data
            if len(parts) > _MOST_BYTES:
                raise Refused(413, "too_large", f"a request has at most {_MOST_BYTES} bytes")
        return bytes(parts)

    async def _send(self, status: int, body: bytes, is_stream: bool) -> None:
        headers = [
            ("Content-Type", "text/event-stream" if is_stream else "application/json"),
            ("Content-Length", str(len(body))),
        ]
        await self._write(h11.Response(status_code=status, headers=headers))
        await self._write(h11.Data(data=body))
        await self._write(h11.EndOfMessage())

    async def _write(self, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            self._writer.write(data)
            await self._writer.drain()


def _object(body: bytes) -> JsonObject:
    try:
        value = json.loads(body or b"{}")
    except (ValueError, RecursionError):
        raise Refused(400, "invalid_json", "the body is not JSON") from None
    if not isinstance(value, dict):
        raise Refused(400, "invalid_json", "the body is not a JSON object")
    return value


def _asked(body: JsonObject) -> JsonObject:
    """What of a request is passed on.

    Raises:
        Refused: It asks for more than text in answer to text.
    """
    messages, tools = _objects(body, "messages"), _objects(body, "tools")
    if any(tool.get("type") != "function" for tool in tools):
        raise Refused(400, "invalid_request", "all tools have to be functions")
    for message in messages:
        content = message.get("content")
        parts = content if isinstance(content, list) else []
        if any(not isinstance(part, dict) or part.get("type") != "text" for part in parts):
            raise Refused(400, "invalid_request", "all parts of a message have to be text")
    return {name: value for name, value in body.items() if name in _ASKED}


def _objects(body: JsonObject, name: str) -> list[JsonObject]:
    items = body.get(name) or []
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise Refused(400, "invalid_request", f"{name} has to be a list of objects")
    return items


def _text(value: JsonObject) -> bytes:
    return json.dumps(value).encode()


def _events(completion: JsonObject) -> bytes:
    """A completion as a stream has it: each choice in one piece, then how it ended, then what it took."""
    head = {**{name: value for name, value in completion.items() if name not in ("choices", "usage")}}
    head["object"] = "chat.completion.chunk"
    chunks: list[JsonObject] = []
    for choice in completion.get("choices", ()):
        message = choice.get("message") or {}
        delta = {name: value for name, value in message.items() if value is not None}
        if calls := delta.get("tool_calls"):
            delta["tool_calls"] = [{"index": place, **call} for place, call in enumerate(calls)]
        index = choice.get("index", 0)
        chunks.append({**head, "choices": [{"index": index, "delta": delta, "finish_reason": None}]})
        end = {"index": index, "delta": {}, "finish_reason": choice.get("finish_reason") or "stop"}
        chunks.append({**head, "choices": [end]})
    chunks.append({**head, "choices": [], "usage": completion.get("usage")})
    return b"".join(b"data: " + _text(chunk) + b"\n\n" for chunk in chunks) + b"data: [DONE]\n\n"
