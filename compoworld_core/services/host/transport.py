"""Talking to guests: one request at a time, with a deadline, to a process that may do its worst.

`Guest` is what callers hold: an endless supply of guest processes, one at a time. Whatever the one of now does (hang,
crash, flood, talk nonsense) costs the call in flight: the process is killed and reaped, the call raises
`GuestFailure`, and the next call meets a fresh process. Nothing a guest sends is kept beyond a stated size.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import threading
import time
import weakref
from types import TracebackType
from typing import Any, Final, Literal, Self

from compoworld_core.errors import IsolationError, ServiceBug, TransientError
from compoworld_core.services.host import frames, kernel
from compoworld_core.services.host.confinement import Limits
from compoworld_core.services.host.nursery import Birth, Nursery, nursery_for

FailureReason = Literal["crash", "timeout", "flood", "protocol"]

DEFAULT_HANDLERS: Final = "compoworld_core.services.host.runtime"

_SPAWN_TIMEOUT_S: Final = 30.0
_CHUNK: Final = 64 * 1024
_OUTPUT_KEPT: Final = 4096


class GuestFailure(ServiceBug):
    """A guest did not answer a request; its process is gone.

    Attributes:
        reason: `crash` (the process ended), `timeout` (no complete answer in time), `flood` (more than a reply may
            hold, or too much printed) or `protocol` (the answer isn't one).
        detail: What was seen.
        ending: How the process ended.
        output: The last 4 KiB that it printed.
    """

    def __init__(self, reason: FailureReason, detail: str, ending: str = "", output: str = "") -> None:
        super().__init__(f"service code failed by {reason}: {detail}" + (f" ({ending})" if ending else ""))
        self.reason = reason
        self.detail = detail
        self.ending = ending
        self.output = output


class _Process:
    """One guest process, as its parent holds it."""

    def __init__(self, nursery: Nursery, birth: Birth, limits: Limits) -> None:
        self.nursery = nursery
        self.pid, self.pidfd, self.token = birth.pid, birth.pidfd, birth.token
        self.transport, self.output = birth.transport, birth.output
        self.limits = limits
        self.printed = bytearray()
        self.sequence = 0
        self.busy_s = 0.0
        self.poll = select.poll()
        self.poll.register(self.transport, select.POLLIN)
        self.poll.register(self.output, select.POLLIN)

    def is_quiet(self) -> bool:
        """Whether nothing has come since the last reply; else the guest has ended or speaks out of turn."""
        return all(descriptor == self.output and self._read_output() for descriptor, _ in self.poll.poll(0))

    def exchange(self, sequence: int, body: bytes | None, deadline: float) -> bytes:
        """Send a request, if there is a body, and return the body of the reply with this sequence number."""
        rest = memoryview(b"" if body is None else frames.HEADER.pack(sequence, len(body)) + body)
        received = bytearray()
        whole: int | None = None  # Size of the frame, once its header is there.
        printed = 0
        while True:
            rest = self._send(rest)
            self.poll.modify(self.transport, select.POLLIN | (select.POLLOUT if rest else 0))
            left_s = deadline - time.monotonic()
            events = self.poll.poll(left_s * 1000) if left_s > 0 else ()
            if not events:
                raise GuestFailure("timeout", "no complete answer in time")
            for descriptor, event in events:
                if descriptor == self.output:
                    count = self._read_output()
                    printed += count
                    if printed > self.limits.output_bytes:
                        raise GuestFailure("flood", f"it printed more than {self.limits.output_bytes} bytes")
                    if count == 0:
                        self.poll.unregister(self.output)
                elif event & ~select.POLLOUT:
                    chunk = self._receive(max(_CHUNK, min((whole or 0) - len(received), 16 * _CHUNK)))
                    if not chunk:
                        raise GuestFailure("crash", "it ended without an answer")
                    received += chunk
            if whole is None and len(received) >= frames.HEADER.size:
                whole = self._frame_size(received, sequence)
            if whole is not None and len(received) > whole:
                raise GuestFailure("protocol", "it said more than the answer")
            if len(received) == whole:
                return bytes(memoryview(received)[frames.HEADER.size :])

    def _frame_size(self, received: bytearray, sequence: int) -> int:
        answered, length = frames.HEADER.unpack_from(received)
        if answered != sequence:
            raise GuestFailure("protocol", "it answered something that was not asked")
        allowed = self.limits.reply_bytes
        if length > allowed:
            raise GuestFailure("flood", f"its answer has {length} bytes, more than the {allowed} allowed")
        return int(frames.HEADER.size + length)

    def _send(self, rest: memoryview) -> memoryview:
        with contextlib.suppress(BlockingIOError, BrokenPipeError, ConnectionResetError):  # An end is seen by reading.
            while rest:
                rest = rest[self.transport.send(rest) :]
        return rest

    def _receive(self, size: int) -> bytes:
        try:
            return self.transport.recv(size)
        except ConnectionResetError:
            return b""

    def _read_output(self) -> int:
        try:
            chunk = os.read(self.output, _CHUNK)
        except BlockingIOError:
            return 0
        self.printed += chunk
        del self.printed[:-_OUTPUT_KEPT]
        return len(chunk)

    def bury(self) -> str:
        """Kill the process if it still lives, wait until it is reaped, and say how it ended."""
        with contextlib.suppress(ProcessLookupError):
            kernel.pidfd_kill(self.pidfd)
        try:
            status = self.nursery.collect(self.token)
            self._read_output()
        finally:
            self.let_go()
        if status is None:
            return ""
        code = os.waitstatus_to_exitcode(status)
        return f"exit code {code}" if code >= 0 else f"killed by {signal.Signals(-code).name}"

    def let_go(self, *, kill: bool = False) -> None:
        """Close the descriptors; takes no lock, so that it may run at any instant."""
        if self.pidfd < 0:
            return
        if kill:
            with contextlib.suppress(OSError):
                kernel.pidfd_kill(self.pidfd)
        self.transport.close()
        os.close(self.output)
        os.close(self.pidfd)
        self.pidfd = -1


class Guest:
    """A place where untrusted code runs. Give each package its own: code that shares a process shares its fate.

    Safe to use from several threads, one request at a time, and after a fork: each process has its own guests.
    """

    def __init__(self, *, handlers: str = DEFAULT_HANDLERS, limits: Limits | None = None) -> None:
        """A guest without a process yet.

        Args:
            handlers: Module whose `handlers` answer the requests, by their `op`.
            limits: What the process may use up.
        """
        self.handlers = handlers
        self.limits = limits or Limits()
        self._process: _Process | None = None
        self._release: weakref.finalize[..., Any] | None = None
        self._lock = threading.Lock()
        _guests.add(self)

    @property
    def pid(self) -> int | None:
        """Process id of the process of now, if there is one."""
        return self._process.pid if self._process else None

    def spawn(self) -> int:
        """Start a process unless there is one; requests do it by themselves.

        Returns:
            Its process id.

        Raises:
            IsolationError: Untrusted code can't be confined here.
            TransientError: The machine can't start a process now.
        """
        with self._lock:
            return self._spawned().pid

    def request(self, payload: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        """Have a request answered by the handler for `payload["op"]`.

        Returns:
            What the handler returned, or `{"error": {"kind", "message", "traceback"}}` if it raised. It is JSON and no
            larger than the limit; nothing else about it is certain.

        Raises:
            GuestFailure: There was no answer. The process is gone, the next request meets a fresh one.
            IsolationError: Untrusted code can't be confined here.
            TransientError: The machine can't start a process now.
            ValueError: The payload isn't JSON or exceeds the limit, or the time-out exceeds the processor limit.
        """
        body = frames.encode(payload)
        if len(body) > self.limits.request_bytes:
            raise ValueError(f"the request has {len(body)} bytes, more than the {self.limits.request_bytes} allowed")
        if timeout_s >= self.limits.cpu_s:
            raise ValueError(f"a time-out of {timeout_s} s needs a processor limit above the {self.limits.cpu_s} s")
        with self._lock:
            process = self._process
            if process and (process.busy_s + timeout_s >= self.limits.cpu_s or not process.is_quiet()):
                self._bury()  # It would reach its processor limit through no fault of this request, or is of no use.
            process = self._spawned()
            process.sequence += 1
            start = time.monotonic()
            reply = self._exchange(process, process.sequence, body, start + timeout_s)
            process.busy_s += time.monotonic() - start
            return reply

    def close(self) -> None:
        """End the process. The guest may be used again."""
        with self._lock:
            self._bury()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _spawned(self) -> _Process:
        if self._process is None:
            nursery, birth = nursery_for(self.handlers, self.limits)
            process = self._process = _Process(nursery, birth, self.limits)
            self._release = weakref.finalize(self, process.let_go, kill=True)
            try:
                said = self._exchange(process, 0, None, time.monotonic() + _SPAWN_TIMEOUT_S)
            except GuestFailure as failure:
                raise TransientError(f"a host process did not start: {failure}") from failure
            if "isolation" in said:
                self._bury()
                raise IsolationError(said["isolation"])
        return self._process

    def _exchange(self, process: _Process, sequence: int, body: bytes | None, deadline: float) -> dict[str, Any]:
        try:
            reply = process.exchange(sequence, body, deadline)
            try:
                return frames.decode(reply)
            except ValueError as error:
                raise GuestFailure("protocol", f"its answer is not acceptable: {str(error)[:200]}") from None
        except GuestFailure as failure:
            ending = self._bury()
            output = bytes(process.printed).decode(errors="replace")
            raise GuestFailure(failure.reason, failure.detail, ending, output) from None
        except BaseException:  # An interrupt mid-conversation leaves the process in an unknown state.
            self._bury()
            raise

    def _bury(self) -> str:
        process, self._process = self._process, None
        if process is None:
            return ""
        if self._release is not None:
            self._release.detach()
        return process.bury()

    def _forget(self) -> None:
        """Leave the process to the one this was forked from."""
        self._lock = threading.Lock()
        process, self._process = self._process, None
        if process is not None:
            process.let_go()


_guests: weakref.WeakSet[Guest] = weakref.WeakSet()


def _after_fork() -> None:
    for guest in list(_guests):
        guest._forget()


os.register_at_fork(after_in_child=_after_fork)
