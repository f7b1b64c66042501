"""Two kernel walls around untrusted Python, each closed by itself; without both, nothing runs.

`confine` turns the calling process into one that computes and answers over one socket: no file, socket, process,
signal, executable page or capability is within its reach, even for root and even through native code. Landlock takes
files, network and signals away by what they are, the seccomp filter by the calls that lead to them. There is no option
to run with less.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import mmap
import os
import resource
import signal
import socket
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from compoworld_core.errors import IsolationError
from compoworld_core.services.host import kernel, landlock, seccomp

TRANSPORT_FD: Final = 3
"""The descriptor of a confined process's only channel; 0 to 2 are its standard streams, and there is no other."""

_MIB: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """What a confined process may use up.

    Attributes:
        memory_bytes: Address space beyond what the process has when it is confined.
        cpu_s: Processor seconds in its whole life; more than the longest time-out of a call.
        request_bytes: Size of a request.
        reply_bytes: Size of a reply.
        output_bytes: Bytes printed during one call.
    """

    memory_bytes: int = 1024 * _MIB
    cpu_s: int = 600
    request_bytes: int = 128 * _MIB
    reply_bytes: int = 8 * _MIB
    output_bytes: int = _MIB


def probe() -> list[str]:
    """What this machine lacks to confine untrusted code, each with what would provide it; empty if nothing."""
    if sys.platform != "linux":
        return [f"Linux is needed, this is {sys.platform}; use the container image"]
    if kernel.MACHINE not in kernel.ARCHITECTURES:
        return [f"there is no system call table for {kernel.MACHINE}; use {' or '.join(kernel.ARCHITECTURES)}"]
    return [reason for reason in (landlock.missing(), seccomp.missing()) if reason]


def require() -> None:
    """Check that this machine can confine untrusted code.

    Raises:
        IsolationError: It can't; the message names everything that is missing.
    """
    if reasons := probe():
        raise IsolationError("untrusted service code can't be confined here: " + "; ".join(reasons))


def die_with(parent: int) -> None:
    """Have the kernel kill this process when its parent, of which the pid is given, is gone."""
    kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # It died before the line above took effect.
        os._exit(0)


def confine(limits: Limits) -> None:
    """Confine this process, irrevocably. Descriptors from 4 on are closed.

    Raises:
        IsolationError: A wall could not be put up; the process must not go on.
    """
    require()
    try:
        kernel.syscall("close_range", TRANSPORT_FD + 1, 0xFFFFFFFF, 0)
        address_space = _address_space()
        _drop_capabilities()
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        landlock.restrict()
        _limit_resources(limits, address_space)
        seccomp.install()
    except OSError as error:
        raise IsolationError(f"untrusted service code can't be confined here: {error}") from None


class _CapabilityHeader(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


def _drop_capabilities() -> None:
    with contextlib.suppress(OSError):  # Without CAP_SETPCAP the bounding set stays; without exec it means nothing.
        for capability in range(64):
            kernel.prctl(kernel.PR_CAPBSET_DROP, capability)
    with contextlib.suppress(OSError):
        kernel.prctl(kernel.PR_CAP_AMBIENT, kernel.PR_CAP_AMBIENT_CLEAR_ALL)
    header = _CapabilityHeader(version=0x20080522, pid=0)
    nothing = (ctypes.c_uint32 * 6)()
    kernel.syscall("capset", ctypes.byref(header), ctypes.byref(nothing))


def _address_space() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[0]) * mmap.PAGESIZE


def _limit_resources(limits: Limits, address_space: int) -> None:
    for kind, value in (
        (resource.RLIMIT_AS, address_space + limits.memory_bytes),
        (resource.RLIMIT_CPU, limits.cpu_s),
        (resource.RLIMIT_STACK, 8 * _MIB),
        (resource.RLIMIT_FSIZE, 0),
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_MEMLOCK, 0),
        (resource.RLIMIT_MSGQUEUE, 0),
        (resource.RLIMIT_NOFILE, TRANSPORT_FD + 1),
    ):
        hard = resource.getrlimit(kind)[1]
        least = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(kind, (least, least))


def escapes() -> list[str]:
    """What this process can do although it is confined; anything at all means that it isn't."""

    def fork() -> None:
        if os.fork() == 0:
            os._exit(0)

    attempts: dict[str, Callable[[], object]] = {
        "list a directory": lambda: os.listdir("/"),
        "read a file": lambda: os.open("/proc/self/environ", os.O_RDONLY),
        "open a socket": socket.socket,
        "start a process": fork,
        "signal its parent": lambda: os.kill(os.getppid(), 0),
        "map executable memory": lambda: mmap.mmap(
            -1, 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=mmap.PROT_READ | mmap.PROT_EXEC
        ),
    }
    done = []
    for name, attempt in attempts.items():
        try:
            attempt()
        except OSError as error:
            if error.errno not in (errno.EPERM, errno.EACCES):
                done.append(f"{name} (stopped by chance only: {error})")
        else:
            done.append(name)
    return done
