"""Runs a session where namespaces cannot be had: no file and no process but its own, limits, and the pod's network.

Started with a description as its argument. It stays outside the fence to end, with the session, all that the session
has started. What the network allows is for the pod's policy to say, and for the session's first program to try.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from compoworld_core.services.host import kernel, landlock
from compoworld_core.services.host.confinement import die_with
from compoworld_core.specs.sources.launcher import CANNOT, SETTINGS, SYSTEM, limit

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")


def main() -> None:
    """Run the command that the first argument describes behind a fence."""
    fence = json.loads(sys.argv[1])
    try:
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        parent = os.getpid()
        child = os.fork()
        if not child:
            shut(fence, parent)
        signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGKILL))
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != fence["parent"]:  # it went before the line above took effect
            os.kill(child, signal.SIGKILL)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        end_children()
        sys.exit(status if status >= 0 else 128 - status)
    except OSError as error:
        sys.stderr.write(f"the fence cannot be shut: {error}\n")
        sys.exit(CANNOT)


def shut(fence: dict[str, Any], parent: int) -> None:
    """Shut the fence around this process, and become the command."""
    try:
        die_with(parent)
        limit(fence["limits"])
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        os.closerange(3, 4096)
        landlock.restrict_files((*SYSTEM, *SETTINGS, *DEVICES, *fence["readable"]), (*fence["writable"], "/dev/null"))
        os.execve(fence["command"][0], fence["command"], fence["environment"])
    except OSError as error:
        sys.stderr.write(f"the fence cannot be shut: {error}\n")
    os._exit(CANNOT)


def end_children() -> None:
    """Kill what the session left running: whoever lost its parent is a child of this process by now."""
    while children := [pid for pid in map(int, filter(str.isdigit, os.listdir("/proc"))) if is_child(pid)]:
        for pid in children:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)


def is_child(pid: int) -> bool:
    """Whether a process is a child of this one."""
    with contextlib.suppress(OSError):
        stat = Path(f"/proc/{pid}/stat").read_text()
        return int(stat.rpartition(")")[2].split()[1]) == os.getpid()
    return False
