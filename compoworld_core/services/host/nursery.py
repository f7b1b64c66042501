"""The parent's side of a zygote: one per process and handlers' module, started when first needed.

A zygote belongs to the process that started it. A forked child forgets its parent's zygotes and starts its own; a
zygote that has died is replaced.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import threading
from dataclasses import asdict, dataclass
from typing import Any, Final

from compoworld_core.errors import CompoWorldError, IsolationError, TransientError
from compoworld_core.services.host import kernel
from compoworld_core.services.host.confinement import Limits, require

_START_TIMEOUT_S: Final = 60.0
_ANSWER_TIMEOUT_S: Final = 30.0
_PACKET_BYTES: Final = 64 * 1024

_ENVIRONMENT: Final = {"PYTHONHASHSEED": "0", "LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "TZ": "UTC"}
"""All of a zygote's environment; nothing is inherited."""

_BOOT: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
    "from compoworld_core.services.host.zygote import main; main(sys.argv[1:])"
)


@dataclass(frozen=True, slots=True)
class Birth:
    """A guest that was just started; the descriptors belong to whoever gets this."""

    token: int
    pid: int
    pidfd: int
    transport: socket.socket
    output: int


class Nursery:
    """A running zygote."""

    def __init__(self, handlers: str) -> None:
        """Start the zygote and wait until it has checked its isolation.

        Raises:
            IsolationError: Untrusted code can't be confined here.
            CompoWorldError: The zygote did not start, for example because the handlers' module can't be imported.
        """
        require()
        self._lock = threading.Lock()
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        own = kernel.pidfd_open(os.getpid())
        # -I would ignore PYTHONHASHSEED; with an environment of our own, -s and -P leave nothing to ignore.
        command = [sys.executable, "-s", "-P", "-c", _BOOT, json.dumps(_search_path())]
        try:
            self._process = subprocess.Popen(
                [*command, str(theirs.fileno()), str(own), handlers],
                env=_ENVIRONMENT,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                pass_fds=(theirs.fileno(), own),
                start_new_session=True,
            )
        finally:
            theirs.close()
            os.close(own)
        self._control.settimeout(_START_TIMEOUT_S)
        try:
            hello, _ = self._hear()
        except OSError as error:
            hello = {"error": self._last_words() or str(error)}
        self._control.settimeout(_ANSWER_TIMEOUT_S)
        if self._process.stderr is not None:
            self._process.stderr.close()
        if "error" in hello:
            self.close()
            raise CompoWorldError(f"the host for service code ({handlers}) did not start: {hello['error']}")
        if hello["isolation"]:
            self.close()
            raise IsolationError("untrusted service code can't be confined here: " + "; ".join(hello["isolation"]))

    @property
    def pid(self) -> int:
        """Process id of the zygote."""
        return self._process.pid

    def spawn(self, limits: Limits) -> Birth:
        """Start a guest.

        Raises:
            ConnectionError: The zygote is gone.
            TransientError: It can't start a process now.
        """
        transport, theirs = socket.socketpair()
        reader, writer = os.pipe()
        try:
            answer, descriptors = self._ask({"op": "spawn", "limits": asdict(limits)}, (theirs.fileno(), writer))
        except BaseException:
            transport.close()
            os.close(reader)
            raise
        finally:
            theirs.close()
            os.close(writer)
        if "error" in answer:
            transport.close()
            os.close(reader)
            raise TransientError(answer["error"])
        transport.setblocking(False)
        os.set_blocking(reader, False)
        return Birth(answer["token"], answer["pid"], descriptors[0], transport, reader)

    def collect(self, token: int) -> int | None:
        """Have a guest killed if it lives, and reaped; returns its wait status if it is still known."""
        try:
            status: int | None = self._ask({"op": "collect", "token": token}, ())[0]["status"]
        except ConnectionError:  # The zygote is gone, and its guests with it.
            return None
        return status

    def close(self) -> None:
        """End the zygote and all its guests."""
        self._control.close()
        try:
            self._process.wait(timeout=_ANSWER_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def forget(self) -> None:
        """Leave the zygote to the process that this one was forked from."""
        self._control.close()
        self._process.returncode = 0  # It is not this process's child.

    def _ask(self, message: dict[str, Any], descriptors: tuple[int, ...]) -> tuple[dict[str, Any], list[int]]:
        with self._lock:
            try:
                socket.send_fds(self._control, [json.dumps(message).encode()], descriptors)
                return self._hear()
            except BaseException as error:
                self._control.close()  # An answer that comes late must not be taken for the next one.
                if isinstance(error, OSError):
                    raise ConnectionError(f"the host process is gone: {error}") from error
                raise

    def _hear(self) -> tuple[dict[str, Any], list[int]]:
        packet, descriptors, _, _ = socket.recv_fds(self._control, _PACKET_BYTES, 1)
        if not packet:
            raise ConnectionResetError("it hung up")
        return json.loads(packet), descriptors

    def _last_words(self) -> str:
        stderr = self._process.stderr
        if stderr is None or not select.select([stderr], [], [], 1.0)[0]:
            return ""
        return os.read(stderr.fileno(), 4096).decode(errors="replace")


def _search_path() -> list[str]:
    return [os.path.abspath(entry) for entry in sys.path]


_nurseries: dict[str, Nursery] = {}
_starting = threading.Lock()


def nursery_for(handlers: str, limits: Limits) -> tuple[Nursery, Birth]:
    """Start a guest, and a zygote before it where there is none.

    Raises:
        IsolationError: Untrusted code can't be confined here.
        TransientError: The machine can't start a process now.
    """
    for _ in range(2):
        with _starting:
            nursery = _nurseries.get(handlers)
            if nursery is None:
                nursery = _nurseries[handlers] = Nursery(handlers)
        try:
            return nursery, nursery.spawn(limits)
        except ConnectionError:
            with _starting:
                if _nurseries.get(handlers) is nursery:
                    del _nurseries[handlers]
            nursery.close()
    raise TransientError("the host process for service code ends as soon as it is asked for a guest")


@atexit.register
def _close_all() -> None:
    while _nurseries:
        _nurseries.popitem()[1].close()


def _after_fork() -> None:
    global _starting
    _starting = threading.Lock()
    for nursery in _nurseries.values():
        with contextlib.suppress(OSError):
            nursery.forget()
    _nurseries.clear()


os.register_at_fork(after_in_child=_after_fork)
