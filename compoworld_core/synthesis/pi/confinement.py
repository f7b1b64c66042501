"""Where pi runs: in a cell whose network is empty, or in a pod whose network a policy has cut off. Nowhere else.

In both, pi sees the system, its own program and its session's folder, and none of our processes or variables. The
first program of the session then tries to reach the network, and nothing is started if it can.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Protocol

from compoworld_core.errors import IsolationError
from compoworld_core.services.host import kernel, landlock
from compoworld_core.specs.sources.launcher import WORKSPACE
from compoworld_core.specs.sources.sandbox import LIMITS, Launch, cell_builder, python_view
from compoworld_core.synthesis.pi import warden
from compoworld_core.synthesis.pi.settings import Isolation

SESSION_LIMITS: Final = {**LIMITS, "CPU": 3600}

_INSIDE: Final = "/session"
_WARDEN: Final = "/warden.py"
_BOOT: Final = (
    "import json, sys; sys.path[:] = json.loads(sys.argv.pop(1)); "
    "from compoworld_core.synthesis.pi.fence import main; main()"
)


@dataclass(frozen=True)
class Probes:
    """What must be out of reach: TCP addresses, and name servers."""

    tcp: tuple[tuple[str, int], ...] = (
        ("1.1.1.1", 443),
        ("8.8.8.8", 443),
        ("2606:4700:4700::1111", 443),
        ("169.254.169.254", 80),
    )
    dns: tuple[tuple[str, int], ...] = (("1.1.1.1", 53), ("8.8.8.8", 53))

    def everything(self) -> Probes:
        """These, and the name servers that the system is set to."""
        own = []
        try:
            lines = Path("/etc/resolv.conf").read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            lines = []
        for words in map(str.split, lines):
            if words[:1] == ["nameserver"] and len(words) > 1:
                own.append((words[1], 53))
        return Probes(self.tcp, (*self.dns, *own))


@dataclass(frozen=True)
class Places:
    """Where a session finds things, as it sees them.

    Attributes:
        session: What is handed in, read-only: the folder `inputs` and the proxy's socket.
        workspace: Its working folder.
        agent: The folder of pi's own settings.
        package: Where pi is installed.
        port: The local port by which pi speaks to the proxy; any free one if 0.
    """

    session: str
    workspace: str
    agent: str
    package: str
    port: int


@dataclass(frozen=True)
class Program:
    """A program to confine, as it is seen from outside.

    Attributes:
        package: The folder that it is installed in.
        readable: What else has to be seen for it.
    """

    package: Path
    readable: Mapping[str, Path] = field(default_factory=dict)


class Confinement(Protocol):
    """A way to confine a session."""

    @property
    def places(self) -> Places:
        """Where the session finds things."""

    def command(self, session: Mapping[str, Any]) -> list[str]:
        """The command that confines, and then has the warden run the session that is described."""


def confine(isolation: Isolation, program: Program, folder: Path) -> Confinement:
    """A way to confine sessions of a program on this machine.

    Args:
        folder: The session's own folder, as it is seen from outside; it has `inputs`.

    Raises:
        IsolationError: It can't be confined like this here.
    """
    return _Cell(program, folder) if isolation == "namespace" else _Fence(program, folder)


class _Cell:
    """A cell of the sandbox, whose only interface is its own loopback."""

    def __init__(self, program: Program, folder: Path) -> None:
        self._builder = cell_builder()
        self._program = program
        self._folder = folder
        self.places = Places(_INSIDE, WORKSPACE, "/tmp/agent", "/package", 8080)

    def command(self, session: Mapping[str, Any]) -> list[str]:
        """See `Confinement.command`."""
        python, view = python_view()
        readable = {
            **view,
            **self._program.readable,
            "/package": self._program.package,
            _INSIDE: self._folder,
            _WARDEN: Path(warden.__file__),
        }
        command = (python, "-I", "-S", _WARDEN, json.dumps(session))
        return self._builder.command(Launch("pi", command, readable, limits=SESSION_LIMITS))


class _Fence:
    """This pod's own network, with files and processes fenced off."""

    def __init__(self, program: Program, folder: Path) -> None:
        if problem := landlock.missing() if sys.platform == "linux" else f"this is {sys.platform}":
            raise IsolationError(f"pi can't be confined here: {problem}")
        self._program = program
        self._folder = folder
        self.places = Places(str(folder), f"{folder}/workspace", f"{folder}/agent", str(program.package), 0)

    def command(self, session: Mapping[str, Any]) -> list[str]:
        """See `Confinement.command`."""
        # Nobody of the same user may look into this process: its variables may hold the key.
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
        python, view = python_view()
        writable = [self.places.workspace, self.places.agent, f"{self._folder}/tmp"]
        for place in writable:
            Path(place).mkdir(exist_ok=True)
        readable = [*view.values(), *self._program.readable.values(), self._program.package, self._folder]
        description = {
            "parent": os.getpid(),
            "limits": SESSION_LIMITS,
            "readable": [*map(str, readable), warden.__file__],
            "writable": writable,
            "environment": {
                "HOME": self.places.workspace,
                "LANG": "C.UTF-8",
                "PATH": "/usr/local/bin:/usr/bin:/bin",
                "TMPDIR": f"{self._folder}/tmp",
                "TZ": "UTC",
            },
            "command": [python, "-I", "-S", warden.__file__, json.dumps(session)],
        }
        search_path = json.dumps([os.path.abspath(entry) for entry in sys.path])
        return [sys.executable, "-s", "-P", "-c", _BOOT, search_path, json.dumps(description)]
