"""Servers that run elsewhere and speak streamable HTTP: `https://example.com/mcp`.

A request is a POST; its answer comes as JSON, or in a stream of events beside whatever else the server has to say.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

from compoworld_core.errors import InputError
from compoworld_core.specs.model import JsonObject, Rejection
from compoworld_core.specs.sources.failure import ServerFailure
from compoworld_core.specs.sources.pipe import Bounds, parse_messages
from compoworld_core.specs.sources.protocol import answer, is_change, is_response, read_server
from compoworld_core.specs.sources.source import RawServer
from compoworld_core.specs.sources.web import MAX_WAIT_S, Limits, Reply, Web

ATTEMPTS: Final = 4
_MAX_ANSWERS: Final = 100
"""Requests of the server that are answered in one conversation."""


class HttpChannel:
    """A conversation with one server; the server is told when it ends."""

    def __init__(self, url: str, web: Web, bounds: Bounds, sleep: Callable[[float], None] = time.sleep) -> None:
        self.version = ""
        self.has_changed = False
        self._url = url
        self._web = web
        self._bounds = bounds
        self._sleep = sleep
        self._session = ""
        self._last_id = 0
        self._answers = 0
        self._end = time.monotonic() + bounds.total_s

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._session:
            with suppress(ServerFailure), self._web.send("DELETE", self._url, self._headers("")):
                pass  # servers that keep no session may refuse

    def request(self, method: str, params: JsonObject) -> JsonObject:
        """Ask, again if the server is busy or the line is cut, and wait for the answer.

        Raises:
            ServerFailure: There is none.
        """
        self._last_id += 1
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        return patiently(lambda: self._exchange(message), self._end, self._sleep)

    def notify(self, method: str) -> None:
        """Tell the server something; whether it listens shows later."""
        self._post({"jsonrpc": "2.0", "method": method})

    def _post(self, message: JsonObject) -> None:
        with suppress(ServerFailure), self._web.send("POST", self._url, self._headers(message), _encode(message)):
            pass

    def _headers(self, message: JsonObject | str) -> dict[str, str]:
        headers = {"Accept": "application/json, text/event-stream"}
        if isinstance(message, dict):
            headers["Content-Type"] = "application/json"
            if "method" in message:
                headers["Mcp-Method"] = message["method"]
        if self._session:
            headers["Mcp-Session-Id"] = self._session
        if self.version:
            headers["MCP-Protocol-Version"] = self.version
        return headers

    def _exchange(self, message: JsonObject) -> JsonObject:
        method = message["method"]
        try:
            with self._web.send("POST", self._url, self._headers(message), _encode(message)) as reply:
                self._url = reply.url
                if failure := reply.busy():
                    raise failure
                if reply.status not in (200, 201, 202):
                    return self._refused(reply)
                if method == "initialize":
                    self._session = reply.headers.get("Mcp-Session-Id", "")
                for incoming in self._messages(reply):
                    if is_response(incoming, message["id"]):
                        return incoming
                    self._heed(incoming)
        except ServerFailure as failure:
            raise ServerFailure(
                failure.reason, f"{method}: {failure.detail}", may_pass=failure.may_pass, wait_s=failure.wait_s
            ) from None
        if reply.kind == "text/event-stream":
            raise ServerFailure("cut_off", f"{method}: the stream of events ended before the answer", may_pass=True)
        raise ServerFailure("not_mcp", f"{method}: the answer ({reply.kind or 'no type'}) is no JSON-RPC response")

    def _messages(self, reply: Reply) -> Iterator[JsonObject]:
        if reply.kind == "text/event-stream":
            for data in events(reply.chunks()):
                yield from parse_messages(data)
        else:
            yield from parse_messages(reply.read())

    def _heed(self, message: JsonObject) -> None:
        self.has_changed |= is_change(message)
        reply = answer(message)
        if reply and self._answers < _MAX_ANSWERS and time.monotonic() < self._end:
            self._answers += 1
            self._post(reply)

    def _refused(self, reply: Reply) -> JsonObject:
        """The error response in a refusal, where the server sends one."""
        if reply.status in (401, 403, 407):
            raise ServerFailure("needs_credentials", f"{reply.url}: status {reply.status}")
        if reply.status == 404 and self._session:
            self._session = ""
            raise ServerFailure("session_lost", f"{reply.url}: the server has forgotten the session", may_pass=False)
        for message in parse_messages(reply.read()):
            if message.get("error") is not None and "method" not in message:
                return message
        reason = "not_mcp" if reply.status in (404, 405, 406, 410, 415) else "refused"
        raise ServerFailure(reason, f"{reply.url}: status {reply.status}")


class RemoteSource:
    """One server that runs elsewhere."""

    def __init__(self, url: str, web: Web | None = None, bounds: Bounds | None = None) -> None:
        """Take a server's address.

        Raises:
            InputError: It is none.
        """
        try:
            is_address = bool(urlsplit(url).hostname) and (urlsplit(url).port or 1) > 0
        except ValueError:
            is_address = False
        if not is_address:
            raise InputError(f"source {url}: is no address; use https://<host>/<path>")
        self._url = url
        self._bounds = bounds or Bounds()
        self._web = web or Web(_limits(self._bounds))

    def servers(self) -> Iterator[RawServer | Rejection]:
        """The server.

        Raises:
            InputError: It does not speak the protocol, or wants credentials.
            TransientError: It can't be reached now.
        """
        try:
            raw = crawl_remote(self._url, self._web, self._bounds)
        except ServerFailure as failure:
            raise failure.error(f"source {self._url}") from failure
        yield RawServer(self._url, raw)

    def fingerprint(self) -> str:
        """Nothing: what a server tells is known only by asking it."""
        return ""


def crawl_remote(url: str, web: Web, bounds: Bounds, sleep: Callable[[float], None] = time.sleep) -> JsonObject:
    """Read the tools of a server.

    Raises:
        ServerFailure: It does not tell them.
    """
    with HttpChannel(url, web, bounds, sleep) as channel:
        raw = read_server(channel)
    return {**raw, "server": raw["server"] or urlsplit(url).hostname}


def patiently(
    exchange: Callable[[], JsonObject], end: float, sleep: Callable[[float], None], attempts: int = ATTEMPTS
) -> JsonObject:
    """The result of an exchange that is tried again, later each time, while what failed may pass.

    Args:
        exchange: What to try.
        end: The monotonic time after which nothing more is tried.
        sleep: How to wait.
        attempts: How often to try.

    Raises:
        ServerFailure: The last one.
    """
    for attempt in range(attempts):
        try:
            return exchange()
        except ServerFailure as failure:
            wait_s = max(failure.wait_s, random.uniform(0.5, 1.0) * 2**attempt)
            is_last = attempt == attempts - 1 or time.monotonic() + wait_s > end
            if not failure.may_pass or is_last or wait_s > MAX_WAIT_S:
                raise
            sleep(wait_s)
    raise AssertionError("unreachable")


def events(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The data of each event of a stream, of the last one also if the stream ends right behind it."""
    data: list[bytes] = []
    for line in _lines(chunks):
        if not line:
            if data:
                yield b"\n".join(data)
                data.clear()
        elif line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
    if data:
        yield b"\n".join(data)


def _lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    rest: list[bytes] = []
    for chunk in chunks:
        *lines, last = chunk.split(b"\n")
        for line in lines:
            rest.append(line)
            yield b"".join(rest).rstrip(b"\r")
            rest.clear()
        rest.append(last)
    yield b"".join(rest).rstrip(b"\r")


def _encode(message: JsonObject) -> bytes:
    return json.dumps(message, separators=(",", ":")).encode()


def _limits(bounds: Bounds) -> Limits:
    return Limits(total_s=bounds.request_s, silence_s=min(30.0, bounds.request_s), bytes=bounds.message_bytes)
