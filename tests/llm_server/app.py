"""The endpoint itself: checks a request as strictly as a real one does, has a script answer it, and keeps account."""

from __future__ import annotations

import asyncio
import hashlib
import inspect
import json
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final, Literal

from aiohttp import web

from compoworld_core.storage.digest import JsonObject
from tests.llm_server.faults import Fault, Faults
from tests.llm_server.reply import Reply, Script, chunks, completion

Outcome = Literal["open", "answered", "refused", "left", "script_failed"] | Fault
"""How a request ended: `answered` is what has to be paid; `left` means that the client went away before the end."""

_LARGEST: Final = 256 * 1024 * 1024


@dataclass
class Request:
    """A request and what became of it.

    Attributes:
        number: Its place among all requests, from 1.
        digest: Of its body, less whether it is streamed: equal for requests that ask the same.
        key: Whether it came with a key, and whether the server knows it.
        body: What was asked; None where the server was told not to keep it.
    """

    number: int
    model: str
    digest: str
    key: Literal["none", "known", "unknown"]
    streamed: bool
    outcome: Outcome = "open"
    body: JsonObject | None = field(default=None, repr=False)


class Endpoint:
    """Answers requests by scripts.

    Args:
        keys: The keys that are accepted; None accepts everyone.
        keep_bodies: Whether to remember what was asked, not only that.
    """

    def __init__(
        self,
        scripts: Mapping[str, Script],
        faults: Faults | None = None,
        keys: Collection[str] | None = None,
        keep_bodies: bool = True,
    ) -> None:
        self.requests: list[Request] = []
        self.most_open = 0
        self._scripts = scripts
        self._faults = faults or Faults()
        self._keys = keys
        self._keep_bodies = keep_bodies
        self._sent: Counter[str] = Counter()
        self._open = 0

    @property
    def counts(self) -> Counter[str]:
        """Requests by outcome."""
        return Counter(request.outcome for request in self.requests)

    def app(self) -> web.Application:
        """The web application."""
        app = web.Application(client_max_size=_LARGEST)
        app.router.add_get("/v1/models", self._models)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/requests", self._account)
        return app

    async def _models(self, http: web.Request) -> web.Response:
        if self._key(http) == "unknown":
            return _refusal(401, "invalid_api_key", _unknown_key(http))
        models = [{"id": name, "object": "model", "created": 0, "owned_by": "tests"} for name in self._scripts]
        return web.json_response({"object": "list", "data": models})

    async def _account(self, http: web.Request) -> web.Response:
        """For tests in another process: requests since a number, without bodies, and most requests open at a time."""
        since = int(http.query.get("since", "0"))
        found = [{**asdict(request), "body": None} for request in self.requests[since:]]
        return web.json_response({"requests": found, "most_open": self.most_open})

    def _key(self, http: web.Request) -> Literal["none", "known", "unknown"]:
        key = _sent_key(http)
        if self._keys is None:
            return "known" if key else "none"
        return "known" if key in self._keys else "unknown"

    async def _chat(self, http: web.Request) -> web.StreamResponse:
        text = await http.read()
        try:
            body: Any = json.loads(text)
        except ValueError:
            return _refusal(400, "invalid_json", "The body is not JSON.")
        request = self._record(http, body if isinstance(body, dict) else {})
        self._open += 1
        self.most_open = max(self.most_open, self._open)
        try:
            return await self._answer(http, body, request)
        except (asyncio.CancelledError, ConnectionError):
            request.outcome = "left"
            raise
        finally:
            self._open -= 1

    def _record(self, http: web.Request, body: JsonObject) -> Request:
        asked = {name: value for name, value in body.items() if name not in ("stream", "stream_options")}
        request = Request(
            number=len(self.requests) + 1,
            model=str(body.get("model")),
            digest=hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest(),
            key=self._key(http),
            streamed=body.get("stream") is True,
            body=body if self._keep_bodies else None,
        )
        self.requests.append(request)
        return request

    async def _answer(self, http: web.Request, body: JsonObject, request: Request) -> web.StreamResponse:
        fault = self._faults.strike(request.number, request.digest, self._sent[request.digest])
        self._sent[request.digest] += 1
        request.outcome = "refused"
        if request.key == "unknown":
            return _refusal(401, "invalid_api_key", _unknown_key(http))
        if (problem := _problem(body)) is not None:
            return _refusal(400, "invalid_request_error", problem)
        if request.model not in self._scripts:
            return _refusal(404, "model_not_found", f"The model {request.model!r} does not exist.")
        if fault is not None:
            request.outcome = fault
            if (broken := await self._break(fault, http, request)) is not None:
                return broken
        try:
            said = self._scripts[request.model](body)
            reply = await said if inspect.isawaitable(said) else said
        except Exception as error:
            request.outcome = "script_failed"
            return _refusal(400, "script_failed", f"{type(error).__name__}: {error}")
        reply = _spoilt(reply, fault)
        stream = _Stream(http, fault) if request.streamed else None
        if stream is None:
            response = await _send_whole(http, completion(reply, body, request.number), fault)
        else:
            response = await stream.send(reply, body, request.number)
        if fault is None:
            request.outcome = "answered"
        return response

    async def _break(self, fault: Fault, http: web.Request, request: Request) -> web.StreamResponse | None:
        """The response in place of an answer; None where the fault strikes within the answer."""
        match fault:
            case "rate_limit":
                headers = {} if self._faults.retry_after is None else {"Retry-After": self._faults.retry_after}
                return _refusal(429, "rate_limit_exceeded", "Too many requests.", headers)
            case "unauthorized":
                return _refusal(401, "invalid_api_key", _unknown_key(http))
            case "error":
                return _refusal(500, "server_error", f"The server had an error; it was sent {_sent_key(http)}.")
            case "context":
                return _refusal(400, "context_length_exceeded", "The messages are longer than the model's context.")
            case "hang":
                await asyncio.get_running_loop().create_future()
            case "not_json":
                return web.Response(text="<html><body>All is well.</body></html>", content_type="text/html")
            case "no_choices" if not request.streamed:
                return web.json_response({"object": "chat.completion", "choices": []})
            case _:
                pass
        return None


class _Stream:
    """An answer as server-sent events."""

    def __init__(self, http: web.Request, fault: Fault | None) -> None:
        self._http = http
        self._fault = fault

    async def send(self, reply: Reply, body: JsonObject, number: int) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream", "Cache-Control": "no-cache"})
        await response.prepare(self._http)
        if self._fault == "no_choices":
            events = [b'data: {"object": "chat.completion.chunk"}\n\n']
        else:
            events = [f"data: {json.dumps(chunk)}\n\n".encode() for chunk in chunks(reply, body, number)]
        half = len(events) // 2
        if self._fault == "cut":
            await response.write(b"".join(events[:half]))
            _close(self._http)
            return response
        if self._fault == "half_json":
            events[half] = events[half][: len(events[half]) // 2] + b"\n\n"
        for event in (b"".join(events[:half]), b"".join(events[half:]), b"data: [DONE]\n\n"):
            if event:
                await response.write(event)
        await response.write_eof()
        return response


async def _send_whole(http: web.Request, body: JsonObject, fault: Fault | None) -> web.StreamResponse:
    text = json.dumps(body).encode()
    if fault == "half_json":
        return web.Response(body=text[: len(text) // 2], content_type="application/json")
    if fault != "cut":
        return web.Response(body=text, content_type="application/json")
    response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(len(text))})
    await response.prepare(http)
    await response.write(text[: len(text) // 2])
    _close(http)
    return response


def _close(http: web.Request) -> None:
    if http.transport is not None:
        http.transport.close()


def _sent_key(http: web.Request) -> str:
    return http.headers.get("Authorization", "").removeprefix("Bearer ")


def _unknown_key(http: web.Request) -> str:
    """Real servers do tell the key."""
    return f"Incorrect API key provided: {_sent_key(http)}."


def _spoilt(reply: Reply, fault: Fault | None) -> Reply:
    if fault == "empty":
        return Reply()
    if fault == "wrong_tool":
        calls = reply.tool_calls or [("", {})]
        return Reply(tool_calls=[("no_such_tool", arguments) for _, arguments in calls])
    return reply


def _refusal(status: int, code: str, message: str, headers: Mapping[str, str] | None = None) -> web.Response:
    error = {"message": message, "type": code, "param": None, "code": code}
    return web.json_response({"error": error}, status=status, headers=headers)


def _problem(body: Any) -> str | None:
    """What an endpoint would refuse about a request."""
    if not isinstance(body, dict) or not isinstance(body.get("messages"), list) or not body["messages"]:
        return "messages has to be a list with at least one message"
    waiting: list[str] = []
    for place, message in enumerate(body["messages"]):
        role = message.get("role")
        if role == "tool":
            if message.get("tool_call_id") not in waiting:
                return f"messages.{place}: answers no tool call of the message before it"
            waiting.remove(message["tool_call_id"])
            continue
        if waiting:
            return f"messages.{place}: the tool calls {', '.join(waiting)} have no answer"
        if role not in ("system", "developer", "user", "assistant"):
            return f"messages.{place}: the role {role!r} does not exist"
        if role == "assistant":
            calls = message.get("tool_calls") or []
            if not all(isinstance(call["function"]["arguments"], str) for call in calls):
                return f"messages.{place}: arguments have to be text"
            waiting = [call["id"] for call in calls]
    if waiting:
        return f"the tool calls {', '.join(waiting)} have no answer"
    names = [tool.get("function", {}).get("name") for tool in body.get("tools") or []]
    return None if all(names) and len(set(names)) == len(names) else "tools need names that differ"
