"""What the process table says."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Callable
from pathlib import Path

from compoworld_core.services.host import nursery
from compoworld_core.services.host.confinement import TRANSPORT_FD

HANDLERS = "tests.services.host.hostile_handlers"


def children(parent: int) -> set[int]:
    """Processes with this parent, zombies included."""
    found = set()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state = _state(int(entry.name))
            except OSError:
                continue
            if int(state[1]) == parent:
                found.add(int(entry.name))
    return found


def becomes_busy(pid: int, within_s: float = 20.0) -> bool:
    """Whether a process that was idle uses the processor in time."""
    first, deadline = _ticks(pid), time.monotonic() + within_s
    while _ticks(pid) < first + 3:
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def _ticks(pid: int) -> int:
    return int(_state(pid)[11])


def _state(pid: int) -> list[str]:
    """What `/proc` tells of a process after its name, which may hold blanks."""
    return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()


def zygote() -> int:
    """The zygote of this process."""
    return nursery._nurseries[HANDLERS].pid


def in_child(function: Callable[[], object]) -> str:
    """What a function returns, as `repr`, or raises in a forked child that may confine itself."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.dup2(writer, TRANSPORT_FD)
        try:
            os.write(TRANSPORT_FD, repr(function()).encode())
        except BaseException as error:
            os.write(TRANSPORT_FD, repr(error).encode())
        finally:
            os._exit(0)
    os.close(writer)
    said = os.read(reader, 4096).decode()
    os.close(reader)
    os.waitpid(pid, 0)
    return said


def ends(pidfds: list[int], within_s: float = 10.0) -> bool:
    """Whether all these processes end in time."""
    for pidfd in pidfds:
        ready, _, _ = select.select([pidfd], [], [], within_s)
        if not ready:
            return False
        os.close(pidfd)
    return True
