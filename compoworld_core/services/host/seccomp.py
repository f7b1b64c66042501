"""The system call filter: a confined process may compute, and talk over the descriptors that it already has.

A running CPython needs memory, time and its pipes, nothing else. Whatever is not listed here fails with EPERM rather
than killing the process: libc and the interpreter probe for features and cope with a refusal, and the refusal reaches
the report as an ordinary exception. Calls by a foreign architecture's convention, which would be numbered
differently, kill.
"""

from __future__ import annotations

import ctypes
import errno
import struct
from typing import Final, NamedTuple

from compoworld_core.services.host import kernel

_SET_MODE_FILTER: Final = 1
_GET_ACTION_AVAILABLE: Final = 2

_RET_KILL_PROCESS: Final = 0x80000000
_RET_ERRNO: Final = 0x00050000
_RET_ALLOW: Final = 0x7FFF0000

_LOAD: Final = 0x20
_AND: Final = 0x54
_JUMP_IF_EQUAL: Final = 0x15
_JUMP_IF_AT_LEAST: Final = 0x35
_RETURN: Final = 0x06

_OFFSET_NUMBER: Final = 0
_OFFSET_ARCHITECTURE: Final = 4
_OFFSET_ARGUMENTS: Final = 16

_X32_NUMBERS: Final = 0x40000000
"""On x86_64, calls by the x32 convention share the architecture value and carry this bit."""

_PROT_EXEC: Final = 4
_MAP_PRIVATE_ANONYMOUS: Final = 0x22
_MAP_HARMLESS: Final = 0x10 | 0x4000 | 0x20000  # MAP_FIXED, MAP_NORESERVE, MAP_STACK
_FUTEX_OPERATION: Final = 0x7F


class Only(NamedTuple):
    """Allows a call only if an argument, masked, is one of some values."""

    argument: int
    mask: int
    values: tuple[int, ...]


ALLOWED: Final[dict[str, tuple[Only, ...]]] = {
    "read": (),
    "write": (),
    "munmap": (),
    "mmap": (
        Only(2, _PROT_EXEC, (0,)),
        Only(3, 0xFFFFFFFF & ~_MAP_HARMLESS, (_MAP_PRIVATE_ANONYMOUS,)),
    ),
    "mprotect": (Only(2, _PROT_EXEC, (0,)),),
    "mremap": (),
    "brk": (),
    "madvise": (),
    "futex": (Only(1, _FUTEX_OPERATION, (0, 1, 9, 10)),),  # wait and wake; no priority inheritance, no requeue
    "sched_yield": (),
    "clock_gettime": (),
    "clock_getres": (),
    "gettimeofday": (),
    "getrandom": (),
    "getpid": (),
    "gettid": (),
    "rt_sigaction": (),
    "rt_sigprocmask": (),
    "rt_sigreturn": (),
    "sigaltstack": (),
    "restart_syscall": (),
    "exit": (),
    "exit_group": (),
}
"""Every system call that a confined process may make."""


def _instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def program(machine: str) -> bytes:
    """The filter as BPF instructions for a machine (`x86_64` or `aarch64`)."""
    column, architecture = kernel.ARCHITECTURES[machine]
    kill = _instruction(_RETURN, _RET_KILL_PROCESS)
    refuse = _instruction(_RETURN, _RET_ERRNO | errno.EPERM)
    allow = _instruction(_RETURN, _RET_ALLOW)
    parts = [
        _instruction(_LOAD, _OFFSET_ARCHITECTURE),
        _instruction(_JUMP_IF_EQUAL, architecture, if_true=1),
        kill,
        _instruction(_LOAD, _OFFSET_NUMBER),
    ]
    if machine == "x86_64":
        parts += [_instruction(_JUMP_IF_AT_LEAST, _X32_NUMBERS, if_false=1), kill]
    for name, conditions in ALLOWED.items():
        body: list[bytes] = []
        for argument, mask, values in conditions:
            body.append(_instruction(_LOAD, _OFFSET_ARGUMENTS + 8 * argument))
            body.append(_instruction(_AND, mask))
            for place, value in enumerate(values):
                # A match skips the values still to come and the refusal behind them.
                body.append(_instruction(_JUMP_IF_EQUAL, value, if_true=len(values) - place))
            body.append(refuse)
        body.append(allow)
        parts += [_instruction(_JUMP_IF_EQUAL, kernel.NUMBERS[name][column], if_false=len(body)), *body]
    return b"".join((*parts, refuse))


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_void_p))


def missing() -> str | None:
    """Why the kernel can't filter system calls as needed, or None."""
    try:
        for action in (_RET_KILL_PROCESS, _RET_ERRNO, _RET_ALLOW):
            kernel.syscall("seccomp", _GET_ACTION_AVAILABLE, 0, ctypes.byref(ctypes.c_uint32(action)))
    except OSError as error:
        return f"seccomp filters are not available ({error.strerror}); Linux 4.14 or later with CONFIG_SECCOMP_FILTER"
    return None


def install() -> None:
    """Filter all further system calls of this process. Needs `no_new_privs`.

    Raises:
        OSError: The kernel refused the filter.
    """
    code = ctypes.create_string_buffer(program(kernel.MACHINE))
    length = (len(code) - 1) // 8
    kernel.syscall("seccomp", _SET_MODE_FILTER, 0, ctypes.byref(_Program(length, ctypes.addressof(code))))
