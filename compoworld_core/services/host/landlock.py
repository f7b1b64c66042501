"""Landlock with no rule at all: no file, no TCP port, no abstract socket, no signal to anyone outside. Or with folders.

The rights that a kernel knows are asked of the kernel, so that a newer one is restricted in everything that it has
learnt since this was written.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from typing import Final

from compoworld_core.services.host import kernel

_CREATE_RULESET_VERSION: Final = 1
_PATH_BENEATH: Final = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR, _TRUNCATE = (1 << bit for bit in (0, 1, 2, 3, 14))
_MAKE_CHAR, _MAKE_BLOCK, _IOCTL_DEV = (1 << bit for bit in (6, 11, 15))
_OF_FILES: Final = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE
_READING: Final = _EXECUTE | _READ_FILE | _READ_DIR


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def _create(files: int, network: int = 0, scoped: int = 0) -> int:
    ruleset = _Ruleset(files, network, scoped)
    return kernel.syscall("landlock_create_ruleset", ctypes.byref(ruleset), ctypes.sizeof(ruleset), 0)


def _every_right(field: str) -> int:
    """All bits that the kernel accepts in a field of a ruleset; it refuses a ruleset with an unknown one."""
    known = 0
    for bit in range(64):
        try:
            os.close(_create(**{"files": 1, field: known | 1 << bit}))
        except OSError:
            break
        known |= 1 << bit
    return known


def version() -> int:
    """The version of Landlock's interface: 4 and later govern TCP, 6 and later signals and abstract sockets.

    Raises:
        OSError: There is no Landlock.
    """
    return kernel.syscall("landlock_create_ruleset", None, 0, _CREATE_RULESET_VERSION)


def missing() -> str | None:
    """Why Landlock can't be used, or None."""
    try:
        version()
    except OSError as error:
        return (
            f"Landlock is not available ({error.strerror}); Linux 5.13 or later with CONFIG_SECURITY_LANDLOCK, "
            "'landlock' in the lsm= boot parameter, and a container runtime that lets its system calls pass"
        )
    return None


def restrict() -> None:
    """Take every right away from this process that Landlock governs. Needs `no_new_privs`.

    Raises:
        OSError: The kernel refused.
    """
    ruleset = _create(_every_right("files"), _every_right("network"), _every_right("scoped"))
    try:
        kernel.syscall("landlock_restrict_self", ruleset, 0)
    finally:
        os.close(ruleset)


def restrict_files(readable: Iterable[str], writable: Iterable[str]) -> None:
    """Leave this process and its children some files and folders, and no process outside. Needs `no_new_privs`.

    TCP stays as it is. Paths that do not exist are left out.

    Raises:
        OSError: The kernel refused.
    """
    every = _every_right("files")
    writing = every & ~(_MAKE_CHAR | _MAKE_BLOCK | _IOCTL_DEV)
    ruleset = _create(every, 0, _every_right("scoped"))
    try:
        for rights, paths in ((_READING, readable), (writing, writable)):
            for path in paths:
                _allow(ruleset, path, rights & every)
        kernel.syscall("landlock_restrict_self", ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    try:
        rule = _PathBeneath(rights if os.path.isdir(path) else rights & _OF_FILES, place)
        kernel.syscall("landlock_add_rule", ruleset, _PATH_BENEATH, ctypes.byref(rule), 0)
    finally:
        os.close(place)
