"""The zygote: a small process with the SDK loaded, from which guests are forked in milliseconds.

It never runs untrusted code and knows no secret: its environment is fixed, its only link is the control socket. The
parent asks it to start a guest and, when a guest has ended, how. It watches its parent by pidfd, because a parent-death
signal would follow the thread that started it, and kills its guests before it goes; should it be killed itself, the
kernel kills them.
"""

from __future__ import annotations

import gc
import json
import os
import select
import signal
import socket
import sys
import traceback
from collections.abc import Mapping
from typing import Any, Final, NoReturn

from compoworld_core.services.host import guest, kernel
from compoworld_core.services.host.confinement import TRANSPORT_FD, Limits, confine, die_with, escapes

PACKET_BYTES: Final = 64 * 1024
"""Largest message on the control socket."""

_SELF_CHECK_S: Final = 20
_ENDED_KEPT: Final = 4096


def main(arguments: list[str]) -> NoReturn:
    """Serve a parent.

    Args:
        arguments: Descriptors of the control socket and of a pidfd of the parent; name of the handlers' module.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    control = socket.socket(fileno=int(arguments[0]))
    try:
        handlers = guest.load_handlers(arguments[2])
        reasons = _self_check()
    except Exception:
        _say(control, {"error": traceback.format_exc()[-PACKET_BYTES // 4 :]})
        os._exit(1)
    _say(control, {"isolation": reasons})
    if reasons:
        os._exit(2)
    os.dup2(0, 2)  # The parent read standard error until here.
    gc.collect()
    gc.freeze()  # Keeps the collector from touching, and thereby copying, the pages that guests share.
    _Zygote(control, int(arguments[1]), handlers).serve()


def _say(control: socket.socket, message: dict[str, Any], descriptors: tuple[int, ...] = ()) -> None:
    socket.send_fds(control, [json.dumps(message).encode()], descriptors)


def _self_check() -> list[str]:
    """What a confined child of this process can do although it must not."""
    reader, writer = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        try:
            guest.place_descriptors(writer, 0)
            die_with(parent)
            confine(Limits())
            reasons = [f"a confined process can still {escape}" for escape in escapes()]
        except BaseException as error:
            reasons = [str(error) or type(error).__name__]
        os.write(TRANSPORT_FD, json.dumps(reasons).encode())
        os._exit(0)
    os.close(writer)
    ready, _, _ = select.select([reader], [], [], _SELF_CHECK_S)
    said = os.read(reader, PACKET_BYTES) if ready else b""
    os.close(reader)
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return list(json.loads(said)) if said else ["the check of the isolation did not finish"]


class _Zygote:
    def __init__(self, control: socket.socket, parent: int, handlers: Mapping[str, guest.Handler]) -> None:
        self.control = control
        self.handlers = handlers
        self.alive: dict[int, tuple[int, int]] = {}  # By token: pid and pidfd. Pids are reused, tokens never.
        self.ended: dict[int, int] = {}
        self.tokens = 0
        self.poll = select.epoll()
        self.poll.register(control, select.EPOLLIN)
        self.poll.register(parent, select.EPOLLIN)
        self.parent = parent
        self.by_descriptor: dict[int, int] = {}

    def serve(self) -> NoReturn:
        while True:
            for descriptor, _ in self.poll.poll():
                if descriptor == self.parent:
                    self.leave()
                elif descriptor == self.control.fileno():
                    self.obey()
                elif (token := self.by_descriptor.get(descriptor)) is not None:
                    self.reap(token)

    def obey(self) -> None:
        try:
            packet, descriptors, _, _ = socket.recv_fds(self.control, PACKET_BYTES, 2)
            if not packet:
                self.leave()
            message = json.loads(packet)
            if message["op"] == "spawn":
                self.spawn(Limits(**message["limits"]), *descriptors)
            else:
                self.collect(message["token"])
        except OSError:  # The parent is gone.
            self.leave()

    def spawn(self, limits: Limits, transport: int, output: int) -> None:
        parent = os.getpid()
        try:
            pid = os.fork()
            if pid == 0:
                try:
                    guest.run(self.handlers, limits, transport, output, parent)
                finally:
                    os._exit(1)
        except OSError as error:
            _say(self.control, {"error": f"no guest could be started: {error}"})
            return
        finally:
            os.close(transport)
            os.close(output)
        pidfd = kernel.pidfd_open(pid)
        self.tokens += 1
        self.alive[self.tokens] = pid, pidfd
        self.by_descriptor[pidfd] = self.tokens
        self.poll.register(pidfd, select.EPOLLIN)
        _say(self.control, {"token": self.tokens, "pid": pid}, (pidfd,))

    def collect(self, token: int) -> None:
        """Tell how a guest ended; one that is still there is ended now."""
        if token in self.alive:
            os.kill(self.alive[token][0], signal.SIGKILL)
            self.reap(token)
        _say(self.control, {"status": self.ended.pop(token, None)})

    def reap(self, token: int) -> None:
        pid, pidfd = self.alive.pop(token)
        del self.by_descriptor[pidfd]
        self.poll.unregister(pidfd)  # Closing is not enough: the parent holds the same pidfd.
        os.close(pidfd)
        self.ended[token] = os.waitpid(pid, 0)[1]
        if len(self.ended) > _ENDED_KEPT:
            del self.ended[next(iter(self.ended))]

    def leave(self) -> NoReturn:
        for pid, _ in self.alive.values():
            os.kill(pid, signal.SIGKILL)
        for pid, _ in self.alive.values():
            os.waitpid(pid, 0)
        os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
