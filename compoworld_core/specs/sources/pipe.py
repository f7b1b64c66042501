"""Talks to a server process over its pipes, one JSON-RPC message per line, and never waits or reads without bound.

What a server prints beside messages is skipped; what it prints to standard error is kept for the report, its end only.
"""

from __future__ import annotations

import json
import os
import select
import selectors
import signal
import subprocess
import time
from collections import deque
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Final, Self

from compoworld_core.specs.model import JsonObject
from compoworld_core.specs.sources.failure import ServerFailure, cleaned
from compoworld_core.specs.sources.protocol import answer, is_change, is_response

_CHUNK: Final = 64 * 1024
_TAIL_BYTES: Final = 8 * 1024
_TAIL_LINES: Final = 12
_END_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Bounds:
    """How much a conversation may take.

    Attributes:
        request_s: Seconds until an answer; the first includes the start of the server.
        total_s: Seconds for all of it.
        message_bytes: Size of one message.
        total_bytes: Bytes that the server may send in all.
    """

    request_s: float = 60.0
    total_s: float = 120.0
    message_bytes: int = 16 * 1024 * 1024
    total_bytes: int = 64 * 1024 * 1024


class PipeChannel:
    """A server process and its three pipes; it is gone with everything it started when the block ends."""

    def __init__(self, command: Sequence[str], bounds: Bounds, roots: tuple[str, ...] = ()) -> None:
        self.version = ""
        self.has_changed = False
        self._bounds = bounds
        self._roots = roots
        self._end = time.monotonic() + bounds.total_s
        self._last_id = 0
        self._received = 0
        self._rest = bytearray()
        self._messages: deque[JsonObject] = deque()
        self._unsent = bytearray()
        self._errors = bytearray()
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            env={},
        )
        streams = (self._process.stdin, self._process.stdout, self._process.stderr)
        self._input, self._output, self._stderr = (stream.fileno() for stream in streams if stream)
        self._selector = selectors.DefaultSelector()
        for descriptor in (self._input, self._output, self._stderr):
            os.set_blocking(descriptor, False)
        self._selector.register(self._output, selectors.EVENT_READ)
        self._selector.register(self._stderr, selectors.EVENT_READ)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kill()
        self._process.wait()
        self._selector.close()
        for stream in (self._process.stdin, self._process.stdout, self._process.stderr):
            if stream:
                with suppress(OSError):
                    stream.close()

    def request(self, method: str, params: JsonObject) -> JsonObject:
        """Ask, and wait for the answer.

        Raises:
            ServerFailure: It ended, fell silent, or sends too much.
        """
        self._last_id += 1
        self._send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        deadline = min(time.monotonic() + self._bounds.request_s, self._end)
        while True:
            while self._messages:
                message = self._messages.popleft()
                if is_response(message, self._last_id):
                    return message
                self.has_changed |= is_change(message)
                if reply := answer(message, self._roots):
                    self._send(reply)
            self._wait(deadline, method)

    def notify(self, method: str) -> None:
        """Tell the server something."""
        self._send({"jsonrpc": "2.0", "method": method})

    def _send(self, message: JsonObject) -> None:
        if not self._unsent:
            self._selector.register(self._input, selectors.EVENT_WRITE)
        self._unsent += json.dumps(message, separators=(",", ":")).encode() + b"\n"
        if len(self._unsent) > self._bounds.message_bytes:
            raise self._failure("too_large", "it asks more than it lets be answered")

    def _wait(self, deadline: float, phase: str) -> None:
        """Wait for something to happen on a pipe, and take it in."""
        left = deadline - time.monotonic()
        if left <= 0:
            raise self._failure("timeout", f"{phase}: no answer in time")
        for key, _ in self._selector.select(left):
            if key.fd == self._input:
                self._flush()
            elif not (chunk := _read(key.fd)):
                self._selector.unregister(key.fd)
                if key.fd == self._output:
                    raise self._ended(phase)
            elif key.fd == self._stderr:
                self._errors = (self._errors + chunk)[-_TAIL_BYTES:]
            else:
                self._take_in(chunk, phase)

    def _flush(self) -> None:
        try:
            del self._unsent[: os.write(self._input, self._unsent)]
        except BlockingIOError:
            return
        except BrokenPipeError:  # that it has ended shows on its output
            self._unsent.clear()
        if not self._unsent:
            self._selector.unregister(self._input)

    def _take_in(self, chunk: bytes, phase: str) -> None:
        self._received += len(chunk)
        *lines, rest = chunk.split(b"\n")
        if lines:
            lines[0] = bytes(self._rest) + lines[0]
            self._rest.clear()
        self._rest += rest
        longest = max(len(self._rest), *map(len, lines)) if lines else len(self._rest)
        if longest > self._bounds.message_bytes or self._received > self._bounds.total_bytes:
            raise self._failure("too_large", f"{phase}: it sends more than {self._bounds.message_bytes} bytes at once")
        for line in lines:
            self._messages.extend(parse_messages(line))

    def _ended(self, phase: str) -> ServerFailure:
        try:
            status = self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            return self._failure("crashed", f"{phase}: it closed its output")
        while chunk := _read(self._stderr):
            self._errors = (self._errors + chunk)[-_TAIL_BYTES:]
        return self._failure("crashed", f"{phase}: it ended with {_describe(status)}")

    def _failure(self, reason: str, detail: str) -> ServerFailure:
        lines = cleaned(self._errors.decode(errors="replace"), _TAIL_BYTES).strip().splitlines()[-_TAIL_LINES:]
        said = "\n".join(line.rstrip() for line in lines)
        return ServerFailure(reason, f"{detail}; it said: {said}" if said else f"{detail}; it said nothing")

    def _kill(self) -> None:
        # Its process namespace ends with its first process, so nothing that it has started stays.
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        # The kernel does that in its own time; the pipe closes when the last one has let go of it.
        end = time.monotonic() + _END_S
        os.set_blocking(self._output, True)
        while (left := end - time.monotonic()) > 0 and select.select([self._output], [], [], left)[0]:
            if not os.read(self._output, _CHUNK):
                break


def parse_messages(text: bytes) -> list[JsonObject]:
    """The messages in a line or body: one, or a batch; none if it is something else."""
    if not text.strip().startswith((b"{", b"[")):
        return []
    try:
        value: Any = json.loads(text)
    except (ValueError, RecursionError):
        return []
    listed = value if isinstance(value, list) else [value]
    return [message for message in listed if isinstance(message, dict)]


def _read(descriptor: int) -> bytes:
    """What there is to read; nothing at the end, or if there is none now."""
    try:
        return os.read(descriptor, _CHUNK)
    except (BlockingIOError, InterruptedError):
        return b""


def _describe(status: int) -> str:
    number = -status if status < 0 else status - 128
    with suppress(ValueError):
        return f"signal {signal.Signals(number).name}"
    return f"exit status {status}"
