"""Servers that are started here: what they tell, how they fail, and what they can't reach."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.errors import InputError, IsolationError, TransientError
from compoworld_core.specs.sources import RawServer, StdioSource, open_source, packages, read_specs, sandbox
from compoworld_core.specs.sources.packages import Package
from compoworld_core.specs.sources.pipe import Bounds, PipeChannel
from compoworld_core.specs.sources.protocol import read_server
from compoworld_core.specs.sources.sandbox import Builder, Launch, cell_builder, python_view
from compoworld_core.specs.sources.stdio import local_launch, named_folders
from tests.specs.wheels import SERVER, wheel

BOUNDS = Bounds(request_s=20, total_s=40, message_bytes=200_000, total_bytes=1_000_000)
IMPATIENT = Bounds(request_s=1.5, total_s=3, message_bytes=200_000, total_bytes=1_000_000)


def source(*words: str, bounds: Bounds = BOUNDS) -> StdioSource:
    return StdioSource(f"cmd:{sys.executable} {SERVER} {' '.join(words)}", bounds)


def told(*words: str) -> dict[str, Any]:
    (server,) = source(*words).servers()
    assert isinstance(server, RawServer)
    assert isinstance(server.raw, dict)
    return server.raw


def test_tools_arrive_as_they_were_sent() -> None:
    raw = told("none")

    assert raw["server"] == "scripted"
    assert raw["title"] == "Scripted"
    assert raw["description"] == "Be kind."
    assert raw["tools"][0]["x-odd"] == [1]


@pytest.mark.parametrize(
    ("behaviour", "names"),
    [
        pytest.param("pages", ["get_a", "get_b", "get_c"], id="follows-cursors-of-any-type"),
        pytest.param("noise", ["get_a"], id="skips-what-is-no-message"),
        pytest.param("batch", ["get_a"], id="batch-and-text-id"),
        pytest.param("changes", ["get_0", "get_1"], id="reads-a-changed-list-anew"),
        pytest.param("refuses-offer", ["get_a"], id="offers-an-older-revision"),
    ],
)
def test_odd_but_understandable_servers_are_read(behaviour: str, names: list[str]) -> None:
    assert [tool["name"] for tool in told(behaviour)["tools"]] == names


def test_requests_of_the_server_are_answered() -> None:
    roots, pong, refused = json.loads(told("asks")["tools"][0]["description"])

    assert (roots, pong, refused) == (["file:///workspace"], {}, -32601)


@pytest.mark.parametrize("behaviour", ["stateless", "no-handshake"])
def test_servers_without_a_handshake_are_asked_in_their_way(behaviour: str) -> None:
    assert told(behaviour)["tools"][0]["description"] == "2026-07-28"


@pytest.mark.parametrize(
    ("behaviour", "reason", "detail"),
    [
        pytest.param(
            "needs-env", "crashed", "initialize: it ended with exit status 3; it said: Error: API_KEY", id="env"
        ),
        pytest.param("crash", "crashed", "tools/list: it ended with exit status 7", id="crash"),
        pytest.param("crash", "crashed", "Traceback: it broke here", id="crash-says-why"),
        pytest.param("signal", "crashed", "tools/list: it ended", id="signal"),
        pytest.param("ends", "crashed", "initialize: it ended with exit status 0; it said nothing", id="ends"),
        pytest.param("huge", "too_large", "tools/list", id="huge-page"),
        pytest.param("huge-line", "too_large", "tools/list", id="huge-line"),
        pytest.param("flood", "too_large", "tools/list", id="flood"),
        pytest.param("asks-forever", "too_large", "", id="asks-forever"),
        pytest.param("same-cursor", "cursor_loop", 'page 2: cursor "again" came before', id="same-cursor"),
        pytest.param("new-cursors", "cursor_loop", "more than 200 pages", id="new-cursors"),
        pytest.param("no-tools", "no_tools", "page 1: the server answers error -32601", id="no-tools"),
        pytest.param("no-list", "no_tools", "the result has no list of tools", id="no-list"),
        pytest.param("many-tools", "too_many_tools", "more than 5000", id="many-tools"),
        pytest.param(
            "broken", "rpc_error", "initialize: the server answers error -32603: out of order", id="rpc-error"
        ),
        pytest.param("ancient", "unknown_version", "1999-01-01", id="unknown-version"),
    ],
)
def test_failing_server_says_phase_and_reason(behaviour: str, reason: str, detail: str) -> None:
    with pytest.raises(InputError) as error:
        list(source(behaviour).servers())

    assert error.value.exit_code == 2
    assert str(error.value).endswith(f"({reason})")
    assert detail in str(error.value)
    assert str(SERVER) in str(error.value)
    assert len(str(error.value)) < 3_000


@pytest.mark.parametrize("behaviour", ["never", "bad-json", "closes"])
def test_silent_server_is_given_up(behaviour: str) -> None:
    with pytest.raises(InputError, match=r"initialize: it closed its output|: no answer in time"):
        list(source(behaviour, bounds=IMPATIENT).servers())


def test_nothing_that_a_server_has_started_stays() -> None:
    marker = f"orphan-{os.getpid()}-{time.monotonic_ns()}"

    with pytest.raises(InputError, match="no answer in time"):
        list(source("orphan", marker, bounds=IMPATIENT).servers())

    assert not [line for line in _command_lines() if marker in line]


def _command_lines() -> Iterator[str]:
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and entry.name != str(os.getpid()):
            try:
                yield (entry / "cmdline").read_text(errors="replace")
            except OSError:
                continue


def _builders() -> list[Any]:
    bwrap = sandbox._find_bubblewrap()
    return [
        pytest.param(Builder(None, True), id="namespaces"),
        pytest.param(
            Builder(bwrap, True), id="bubblewrap", marks=pytest.mark.skipif(bwrap is None, reason="needs bubblewrap")
        ),
    ]


@pytest.mark.parametrize("builder", _builders())
def test_cell_shows_and_allows_nothing_but_the_server(
    builder: Builder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("SECRET_TOKEN", "x")
    script = tmp_path / "project" / "server.py"
    script.parent.mkdir()
    shutil.copy(SERVER, script)
    launch = local_launch([sys.executable, str(script), "looks", "/srv/docs", "/tmp/here", "/data/notes.db"])

    with PipeChannel(builder.command(launch), BOUNDS) as channel:
        seen = json.loads(str(read_server(channel)["tools"][0]["description"]))

    assert not {"SECRET_TOKEN", "PYTHONPATH", "VIRTUAL_ENV"} & set(seen["environment"])
    assert seen["home"] == []
    assert seen["folders"] == ["/srv/docs", "/tmp/here"]
    assert "data" in seen["root"]
    assert not seen["is_connected"]
    assert seen["interfaces"] == ["lo"]
    assert not seen["can_write_beside"]
    assert not seen["can_write_system"]
    assert seen["uid"] == 1000
    assert not (script.parent / "x").exists()


@pytest.mark.parametrize("builder", _builders())
def test_cell_ends_with_whoever_started_it(builder: Builder) -> None:
    program, readable = python_view()
    marker = f"cell-{os.getpid()}-{time.monotonic_ns()}"
    launch = Launch("x", (program, "-c", "print('up', flush=True); import time; time.sleep(1000)", marker), readable)
    starter = (
        "import subprocess, sys, os; from compoworld_core.specs.sources.sandbox import Builder, Launch; "
        f"launch = Launch('x', {launch.command!r}, { ({k: str(v) for k, v in readable.items()})!r}); "
        f"cell = subprocess.Popen(Builder({builder.bwrap!r}, True).command(launch), stdout=subprocess.PIPE); "
        "cell.stdout.readline(); os._exit(0)"
    )

    subprocess.run([sys.executable, "-c", starter], check=True, timeout=60)

    deadline = time.monotonic() + 20
    while any(marker in line for line in _command_lines()) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not any(marker in line for line in _command_lines())


def test_without_a_cell_nothing_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    cell_builder.cache_clear()
    monkeypatch.setattr(sandbox, "_try", lambda builder: "Operation not permitted")
    try:
        with pytest.raises(IsolationError, match="install bubblewrap") as error:
            list(source("none").servers())
    finally:
        cell_builder.cache_clear()

    assert error.value.exit_code == 2
    assert "namespaces without it: Operation not permitted" in str(error.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        pytest.param("stdio:", "names no server; use `stdio:npx:", id="empty"),
        pytest.param("stdio:npx:", "names no server", id="no-package"),
        pytest.param("stdio:uvx:thing", "names no server", id="kind"),
        pytest.param("stdio:npx:../../etc", "names no package", id="path"),
        pytest.param("stdio:npx:git+https://host/x.git", "names no package", id="git"),
        pytest.param("stdio:npx:--global", "names no package", id="flag"),
        pytest.param("stdio:npx:x@file:/etc", "names no package", id="file"),
        pytest.param("stdio:pypi:x @ https://host/x.whl", "put `--` between", id="url"),
        pytest.param("stdio:pypi:-r/etc/passwd", "names no package", id="requirements"),
        pytest.param("stdio:cmd:'open", "cannot be read as a command line", id="quote"),
        pytest.param("stdio:cmd:no-such-program-here", "there is no program", id="program"),
    ],
)
def test_unusable_form_is_refused_before_anything_runs(
    text: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packages, "_install", lambda package, folder: pytest.fail("installed"))
    with pytest.raises(InputError, match=message):
        list(open_source(text).servers())


@pytest.mark.parametrize(
    ("kind", "text", "package"),
    [
        ("npx", "plain", Package("npx", "plain")),
        ("npx", "@scope/name@1.2.3-beta.1", Package("npx", "@scope/name", "1.2.3-beta.1")),
        ("pypi", "mcp-server==1.0", Package("pypi", "mcp-server", "1.0")),
        ("pypi", "mcp_server[a,b]==1.0", Package("pypi", "mcp_server", "1.0", "[a,b]")),
    ],
)
def test_package_names(kind: Any, text: str, package: Package) -> None:
    assert Package.parse(kind, text) == package


def test_arguments_that_name_places_find_empty_folders() -> None:
    arguments = ["/srv/docs", "--db=/data/a.sqlite", "rel/x", "/usr/share/x", "/a/../b", "-v", "/tmp"]

    assert named_folders(arguments) == ("/data", "/srv/docs")


def test_wheel_is_installed_once_and_started(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wheel(index, "scripted-server")

    specs, rejections = read_specs(open_source("stdio:pypi:scripted-server==1.0 -- looks /srv/docs"))
    monkeypatch.setattr(packages, "_install", lambda package, folder: pytest.fail("installed again"))
    again, _ = read_specs(open_source("stdio:pypi:scripted-server==1.0 -- looks /srv/docs"))

    assert not rejections
    assert [spec.source for spec in specs] == ["stdio:pypi:scripted-server==1.0"]
    seen = json.loads(specs[0].tools[0].description)
    assert seen["arguments"] == ["looks", "/srv/docs"]
    assert "package" in seen["root"]
    assert specs == again


def test_source_distribution_is_not_built(index: Path) -> None:
    (index / "evil-1.0.tar.gz").write_bytes(b"")

    with pytest.raises(InputError, match=r"stdio:pypi:evil: install: (.|\n)*No matching distribution"):
        list(open_source("stdio:pypi:evil").servers())


def test_distribution_without_a_script(index: Path) -> None:
    wheel(index, "library-only", scripts=" ")

    with pytest.raises(InputError, match="nothing_to_start"):
        list(open_source("stdio:pypi:library-only").servers())


NPM = """#!{python}
import json, pathlib, sys
folder = pathlib.Path(sys.argv[sys.argv.index("--prefix") + 1])
(folder / "calls").write_text(" ".join(sys.argv[1:]))
if "broken" in sys.argv[-1]:
    sys.exit("npm error code {code}")
package = folder / "node_modules" / "scripted"
package.mkdir(parents=True)
(package / "package.json").write_text(json.dumps({{"version": "2.0.0", "bin": {bin}}}))
"""


def fake_npm(folder: Path, monkeypatch: pytest.MonkeyPatch, code: str = "E404", bin: object = "a.js") -> None:
    folder.mkdir()
    (folder / "npm").write_text(NPM.format(python=sys.executable, code=code, bin=repr(bin)))
    (folder / "npm").chmod(0o755)
    (folder / "node").write_text(f"#!/bin/sh\nexec {sys.executable} {SERVER}\n")
    (folder / "node").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))


def test_npm_runs_no_install_scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_npm(tmp_path / "bin", monkeypatch)

    with packages.installed(Package("npx", "scripted"), ["x"], keep=True) as launch:
        calls = (launch.readable["/package"] / "calls").read_text()

    assert "--ignore-scripts" in calls
    assert calls.endswith(" scripted@latest")
    assert launch.label == "npx:scripted@2.0.0"
    assert launch.command[1:] == ("/package/node_modules/scripted/a.js", "x")
    assert launch.readable["/package"].name == "scripted@2.0.0"


@pytest.mark.parametrize(
    ("code", "kind"),
    [("E404", InputError), ("ETARGET", InputError), ("ETIMEDOUT", TransientError), ("E503", TransientError)],
)
def test_npm_failure_is_told_apart_from_a_bad_line(
    code: str, kind: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_npm(tmp_path / "bin", monkeypatch, code=code)

    with pytest.raises(kind, match=f"stdio:npx:broken: install: npm error code {code}"):
        list(open_source("stdio:npx:broken").servers())

    assert list((tmp_path / "bin" / "cache" / "compoworld" / "npx").iterdir()) == []


@pytest.mark.parametrize("bin", [{}, "../../../etc/passwd", "/bin/sh", None])
def test_npm_package_without_a_command_of_its_own(bin: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_npm(tmp_path / "bin", monkeypatch, bin=bin)

    with pytest.raises(InputError, match="nothing_to_start"):
        list(open_source("stdio:npx:scripted").servers())


@pytest.mark.components
@pytest.mark.parametrize(
    ("text", "least", "tool"),
    [
        pytest.param("npx:@modelcontextprotocol/server-everything", 10, "echo", id="everything"),
        pytest.param("npx:@modelcontextprotocol/server-memory", 9, "create_entities", id="memory"),
        pytest.param("npx:@modelcontextprotocol/server-filesystem", 10, "read_text_file", id="filesystem"),
        pytest.param("npx:@modelcontextprotocol/server-filesystem -- /srv/docs", 10, "move_file", id="with-folder"),
        pytest.param("pypi:mcp-server-time", 2, "get_current_time", id="time"),
    ],
)
def test_real_servers_tell_their_tools(text: str, least: int, tool: str) -> None:
    specs, rejections = read_specs(open_source(f"stdio:{text}"))

    assert not rejections
    assert len(specs[0].tools) >= least
    assert tool in {found.name for found in specs[0].tools}
