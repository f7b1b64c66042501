"""Servers that are started here: from npm, from PyPI, or installed on this machine.

    stdio:npx:@scope/server[@1.2.3] [-- arguments]     installed without install scripts
    stdio:pypi:some-server[==1.2.3] [-- arguments]     installed from wheels
    stdio:cmd:python server.py                         as it is

All run in a cell (see `sandbox`), and see empty folders where an argument names one.
"""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path, PurePosixPath
from typing import Final

from compoworld_core.errors import InputError
from compoworld_core.specs.model import JsonObject, Rejection
from compoworld_core.specs.sources.failure import ServerFailure
from compoworld_core.specs.sources.launcher import SYSTEM, WORKSPACE
from compoworld_core.specs.sources.packages import Package, installed
from compoworld_core.specs.sources.pipe import Bounds, PipeChannel
from compoworld_core.specs.sources.protocol import read_server
from compoworld_core.specs.sources.sandbox import Launch, cell_builder
from compoworld_core.specs.sources.source import RawServer

FORMS: Final = (
    "`stdio:npx:<npm package>[@version] [-- arguments]`, `stdio:pypi:<distribution>[==version] [-- arguments]`, "
    "`stdio:cmd:<command line>`"
)
_PROJECT_FILES: Final = ("package.json", "pyproject.toml", "setup.py")


class StdioSource:
    """One server that is started here."""

    def __init__(self, text: str, bounds: Bounds | None = None) -> None:
        """Read what stands behind `stdio:`.

        Raises:
            InputError: It names no server.
        """
        self._bounds = bounds or Bounds()
        self._origin = f"stdio:{text}"
        kind, _, rest = text.partition(":")
        try:
            words = shlex.split(rest)
        except ValueError as error:
            raise InputError(f"source {self._origin}: cannot be read as a command line: {error}") from None
        if kind not in ("npx", "pypi", "cmd") or not words:
            raise InputError(f"source {self._origin}: names no server; use {FORMS}")
        self._package: Package | None = None
        self._words = words
        if kind != "cmd":
            if words[1:2] not in ([], ["--"]):
                raise InputError(f"source {self._origin}: put `--` between the package and the server's arguments")
            self._package = Package.parse("npx" if kind == "npx" else "pypi", words[0])
            self._words = words[2:]

    def servers(self) -> Iterator[RawServer | Rejection]:
        """The server.

        Raises:
            InputError: It does not start, or does not tell its tools.
            TransientError: The network failed.
        """
        try:
            with self._launch() as launch:
                raw = crawl(launch, self._bounds)
        except ServerFailure as failure:
            raise failure.error(self._origin) from failure
        yield RawServer(f"stdio:{launch.label}", raw)

    def fingerprint(self) -> str:
        """Nothing: what a server tells is known only by asking it."""
        return ""

    def _launch(self) -> AbstractContextManager[Launch]:
        cell_builder()  # before anything is installed
        if self._package is None:
            return nullcontext(local_launch(self._words))
        return installed(self._package, self._words, folders=named_folders(self._words), keep=True)


def crawl(launch: Launch, bounds: Bounds) -> JsonObject:
    """Start a server in a cell and read its tools.

    Raises:
        ServerFailure: It does not tell them.
        IsolationError: There is no cell to start it in.
    """
    command = cell_builder().command(launch)
    with PipeChannel(command, bounds, roots=(f"file://{WORKSPACE}",)) as channel:
        raw = read_server(channel)
    return {**raw, "server": raw["server"] or launch.label.partition(":")[2]}


def named_folders(arguments: Sequence[str]) -> tuple[str, ...]:
    """Folders that arguments speak of: absolute paths, and the places of absolute file names, that a cell lacks."""
    folders: set[str] = set()
    for argument in arguments:
        path = PurePosixPath(argument.partition("=")[2] if argument.startswith("--") else argument)
        if not path.is_absolute() or ".." in path.parts:
            continue
        folder = str(path.parent if path.suffix else path)
        if folder not in ("/", "/tmp", WORKSPACE) and not _is_visible(folder):
            folders.add(folder)
    return tuple(sorted(folders))


def _is_visible(path: str) -> bool:
    return any(PurePosixPath(path).is_relative_to(place) for place in (*SYSTEM, "/dev", "/proc", "/etc", "/package"))


def local_launch(words: Sequence[str]) -> Launch:
    """How to start a server that is installed here: it sees its program, and the projects that its arguments lie in.

    Raises:
        InputError: There is no such program.
    """
    found = shutil.which(words[0])
    if found is None:
        raise InputError(f"source stdio:cmd:{shlex.join(words)}: there is no program {words[0]!r}")
    program = Path(os.path.abspath(found))
    places = {*_of_program(program), Path(sys.base_prefix).resolve()}
    arguments: list[str] = []
    for word in words[1:]:
        path = Path(os.path.abspath(word))
        if word.startswith("-") or not path.exists() or _is_visible(str(path)):
            arguments.append(word)
        else:
            places.add(_project(path))
            arguments.append(str(path))
    readable = {str(place): place for place in sorted(places) if not _is_visible(str(place))}
    absent = [argument for argument in arguments if not os.path.exists(argument)]
    environment: Mapping[str, str] = {"PATH": f"{program.parent}:/usr/local/bin:/usr/bin:/bin"}
    return Launch(f"cmd:{shlex.join(words)}", (str(program), *arguments), readable, environment, named_folders(absent))


def _of_program(program: Path) -> set[Path]:
    """What a program needs to be seen: its virtual environment or itself, and what it is a link to."""
    home = program.parent.parent
    if (home / "pyvenv.cfg").is_file():
        target = program.resolve()
        # The interpreter of a virtual environment is a link to one with its own library.
        return {home, target.parent.parent if target.parent.name == "bin" and _is_narrow(target.parents[1]) else target}
    target = program.resolve()
    return {program, target if target.parent.name == "bin" else _project(target)}


def _project(path: Path) -> Path:
    """The project that a file belongs to, or its folder; a folder is itself."""
    if path.is_dir():
        return path
    for folder in path.parents:
        if not _is_narrow(folder):
            break
        if any((folder / name).is_file() for name in _PROJECT_FILES):
            return folder
    return path.parent if _is_narrow(path.parent) else path


def _is_narrow(folder: Path) -> bool:
    """Whether showing a folder shows no more than a project: not a home, nor what homes and systems lie in."""
    return len(folder.parts) > 2 and folder != Path.home() and folder.parent != Path("/home")
