"""The few kernel entry points that the host needs and that not every build of the standard library wraps."""

from __future__ import annotations

import ctypes
import os
import platform
import signal
from typing import Any, Final

_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

MACHINE: Final = platform.machine()

PR_SET_PDEATHSIG: Final = 1
PR_SET_DUMPABLE: Final = 4
PR_CAPBSET_DROP: Final = 24
PR_SET_CHILD_SUBREAPER: Final = 36
PR_SET_NO_NEW_PRIVS: Final = 38
PR_CAP_AMBIENT: Final = 47
PR_CAP_AMBIENT_CLEAR_ALL: Final = 4

NUMBERS: Final[dict[str, tuple[int, int]]] = {
    "brk": (12, 214),
    "capset": (126, 91),
    "close_range": (436, 436),
    "clock_getres": (229, 114),
    "clock_gettime": (228, 113),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "futex": (202, 98),
    "getpid": (39, 172),
    "getrandom": (318, 278),
    "gettid": (186, 178),
    "gettimeofday": (96, 169),
    "landlock_add_rule": (445, 445),
    "landlock_create_ruleset": (444, 444),
    "landlock_restrict_self": (446, 446),
    "madvise": (28, 233),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "mremap": (25, 216),
    "munmap": (11, 215),
    "pidfd_open": (434, 434),
    "pidfd_send_signal": (424, 424),
    "read": (0, 63),
    "restart_syscall": (219, 128),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sched_yield": (24, 124),
    "seccomp": (317, 277),
    "sigaltstack": (131, 132),
    "write": (1, 64),
}
"""System call numbers on (x86_64, aarch64)."""

ARCHITECTURES: Final[dict[str, tuple[int, int]]] = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}
"""By machine: the column of `NUMBERS`, and the audit value by which a filter recognises the architecture."""


def number(name: str) -> int:
    """Number of a system call on this machine."""
    return NUMBERS[name][ARCHITECTURES[MACHINE][0]]


def _word(argument: Any) -> Any:
    return ctypes.c_long(argument) if isinstance(argument, int) else argument


def syscall(name: str, *arguments: Any) -> int:
    """Make a system call.

    Raises:
        OSError: The kernel refused it.
    """
    result = int(_libc.syscall(ctypes.c_long(number(name)), *map(_word, arguments)))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def prctl(option: int, *arguments: int) -> int:
    """Set or read a property of this process.

    Raises:
        OSError: The kernel refused it.
    """
    padded = (*arguments, 0, 0, 0, 0)[:4]
    result = int(_libc.prctl(ctypes.c_int(option), *(ctypes.c_ulong(value) for value in padded)))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}): {os.strerror(code)}")
    return result


def pidfd_open(pid: int) -> int:
    """A descriptor of a process, readable once it has ended; unlike a pid, it can't come to mean another process."""
    return syscall("pidfd_open", pid, 0)


def pidfd_kill(pidfd: int) -> None:
    """Kill the process.

    Raises:
        ProcessLookupError: It has been reaped.
    """
    syscall("pidfd_send_signal", pidfd, signal.SIGKILL, None, 0)
