"""Confinement: what a program that runs in pi's place can see, reach and leave behind, in a cell and behind a fence."""

from __future__ import annotations

import asyncio
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, get_args

import pytest

from compoworld_core.errors import IsolationError
from compoworld_core.llm.messages import Usage
from compoworld_core.llm.sessions import Session
from compoworld_core.services.host import landlock
from compoworld_core.storage import Store, open_store
from compoworld_core.storage.digest import JsonObject
from compoworld_core.synthesis.pi import confinement, harness
from compoworld_core.synthesis.pi import session as pi_session
from compoworld_core.synthesis.pi.check import Report
from compoworld_core.synthesis.pi.confinement import Places, Probes, Program
from compoworld_core.synthesis.pi.session import Assignment, PiSessions
from compoworld_core.synthesis.pi.settings import Isolation, SessionSettings

NOTHING = Probes(tcp=(), dns=())
CANARY = "canary-5f1c"


class Shell:
    """A shell script in pi's place."""

    def __init__(self, script: str, folder: Path) -> None:
        self.program = Program(folder)
        self.script = script

    def command(self, places: Places, model: str, task: str) -> list[str]:
        return ["/bin/bash", "-c", self.script]


class Line:
    """A line that answers the session's own routes by a small HTTP server."""

    failure = None
    is_spent = False
    spent = (0, Usage())

    @asynccontextmanager
    async def listen(self, path: Path) -> Any:
        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\nConnection: close\r\n\r\nthrough")
            await writer.drain()
            writer.close()

        async with await asyncio.start_unix_server(answer, path):
            yield


class Exchange:
    """Has no models."""

    def parameters(self, model: str) -> JsonObject:
        return {"model": model}

    def line(self, model: str, item: str, settings: SessionSettings, routes: Mapping[str, Any]) -> Line:
        return Line()

    def repeat(self, model: str, item: str, session: Session) -> None:
        """Has no costs either."""


def passing(files: Mapping[str, str]) -> Report:
    return Report((), "whole")


class Stage:
    """Runs scripts as sessions."""

    def __init__(self, folder: Path, isolation: Isolation, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.store: Store = open_store(folder / "store")
        self.settings = SessionSettings(isolation=isolation)
        self._patch = patch

    async def hold(self, script: str, probes: Probes = NOTHING, **settings: Any) -> Session:
        @contextmanager
        def open_shell() -> Iterator[Shell]:
            yield Shell(script, self.folder)

        self._patch.setattr(harness, "open_pi", open_shell)
        chosen = SessionSettings.model_validate({**dict(self.settings), **settings})
        wanted = ("service.py", "tests.json")
        assignment = Assignment("pi_author", "desk", "m", "system", "task", (), {"spec.json": "{}"}, wanted, passing)
        return await PiSessions(self.store, Exchange(), chosen, probes).hold(assignment)

    def run(self, script: str, probes: Probes = NOTHING, **settings: Any) -> dict[str, str]:
        """What the script left."""
        files: dict[str, str] = asyncio.run(self.hold(script, probes, **settings)).result["files"]
        return files


@pytest.fixture(params=get_args(Isolation))
def stage(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setenv("MODEL_KEY", CANARY)
    return Stage(tmp_path, request.param, monkeypatch)


@pytest.fixture
def listener() -> Iterator[tuple[str, int]]:
    """Somebody outside who takes connections."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()


@pytest.fixture
def name_server() -> Iterator[tuple[str, int]]:
    """Somebody outside who knows every name."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind(("127.0.0.1", 0))

        def answer() -> None:
            query, asker = server.recvfrom(512)
            server.sendto(query[:2] + b"\x81\x80\x00\x01\x00\x01" + query[8:], asker)

        threading.Thread(target=answer, daemon=True).start()
        yield server.getsockname()


def test_a_session_speaks_to_its_line_and_leaves_its_files(stage: Stage) -> None:
    left = stage.run(
        "exec 3<>/dev/tcp/${CHECK_AT#http://127.0.0.1:} 2>/dev/null; host=${CHECK_AT#http://}; "
        'exec 3<>/dev/tcp/${host%:*}/${host#*:}; printf "GET / HTTP/1.1\\r\\n\\r\\n" >&3; cat <&3 > service.py; '
        "ls > tests.json; pwd >&2"
    )

    assert left["service.py"].endswith("through")
    assert left["tests.json"].split() == ["check", "service.py", "spec.json", "tests.json"]


def test_a_session_sees_nothing_of_ours(stage: Stage) -> None:
    left = stage.run(
        "(env; cat /proc/*/environ; "
        f"cat {__file__}; cat {stage.folder}/store/*; ls {Path.home()} {Path(__file__).parents[3]}) "
        "> service.py 2> tests.json"
    )

    assert CANARY not in left["service.py"]
    assert "PI_OFFLINE=1" in left["service.py"]
    assert f"cat: {__file__}: " in left["tests.json"]


def test_a_session_cannot_write_elsewhere(stage: Stage) -> None:
    target = stage.folder / "mine"
    left = stage.run(f"for place in {target} /usr/mine /etc/mine; do echo x > $place; done; echo done > service.py")

    assert left == {"service.py": "done\n"}
    assert not target.exists()


def test_what_is_no_plain_text_file_is_not_taken(stage: Stage) -> None:
    assert stage.run("ln -s /etc/passwd service.py; printf '\\xff' > tests.json") == {}


_MESSAGE = (
    '{"type": "message_end", "message": {"role": "toolResult", "toolCallId": "\\ud800", "toolName": "\\ud800", '
    '"content": "\\ud800"}}'
)


@pytest.mark.parametrize(
    "said",
    [
        pytest.param('{"type": "egress", "reached": ["a"]}', id="reached"),
        pytest.param('{"type": "left", "files": {"service.py": 5}}', id="left"),
        pytest.param(_MESSAGE, id="message"),
    ],
)
def test_what_a_session_says_of_itself_ends_nobody_else(stage: Stage, said: str) -> None:
    session = asyncio.run(stage.hold(f"echo x > service.py; echo '{said}'; kill -9 $PPID"))

    assert session.outcome == "passed"


def test_a_session_that_talks_without_end_is_ended(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pi_session, "_MOST_KEPT_BYTES", 10_000)

    session = asyncio.run(stage.hold(f"while echo '{_MESSAGE}'; do :; done"))

    assert 1 < len(session.transcript) < 100


def test_a_session_that_is_late_is_ended_and_keeps_its_files(stage: Stage) -> None:
    session = asyncio.run(stage.hold("echo x > service.py; exec sleep 600", seconds=0.5))

    assert session.result["files"] == {"service.py": "x\n"}


def test_nothing_outlives_its_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, "network_policy", monkeypatch)

    left = stage.run("setsid sleep 600 >/dev/null 2>&1 & echo $! > service.py")

    with pytest.raises(ProcessLookupError):
        os.kill(int(left["service.py"]), 0)


def test_a_session_that_has_ended_is_not_held_again(stage: Stage) -> None:
    first = stage.run("echo first > service.py")

    assert stage.run("echo second > service.py") == first
    assert stage.run("echo third > service.py", turns=7) == {"service.py": "third\n"}


def test_of_two_sessions_at_once_one_is_kept_by_both(stage: Stage) -> None:
    if stage.settings.isolation == "network_policy":
        pytest.skip("one pod holds one session at a time")

    async def both() -> list[Session]:
        return list(await asyncio.gather(stage.hold("echo $$ $RANDOM > service.py"), stage.hold("date > service.py")))

    first, second = asyncio.run(both())

    assert first == second


def test_the_cell_reaches_nobody(listener: tuple[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage(tmp_path, "namespace", monkeypatch)

    left = stage.run(f"(: < /dev/tcp/{listener[0]}/{listener[1]}) 2> service.py", Probes(tcp=(listener,), dns=()))

    assert "refused" in left["service.py"]


def test_an_open_network_is_found_out_and_nothing_started(
    listener: tuple[str, int], name_server: tuple[str, int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage = Stage(tmp_path, "network_policy", monkeypatch)

    with pytest.raises(IsolationError) as raised:
        stage.run("echo x > service.py", Probes(tcp=(listener,), dns=(name_server,)))

    assert raised.value.exit_code == 2
    assert f"{listener[0]}:{listener[1]} by TCP" in str(raised.value)
    assert f"{name_server[0]}:{name_server[1]} by DNS" in str(raised.value)
    assert not list(stage.store.names())


def test_without_a_wall_nothing_runs(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_cell() -> None:
        raise IsolationError("no namespaces")

    monkeypatch.setattr(confinement, "cell_builder", no_cell)
    monkeypatch.setattr(landlock, "missing", lambda: "no Landlock")

    with pytest.raises(IsolationError, match=r"no namespaces|no Landlock"):
        stage.run("echo x > service.py")
    assert not list(stage.store.names())


def test_the_public_places_and_the_own_name_servers_are_tried() -> None:
    probes = Probes().everything()

    assert ("1.1.1.1", 443) in probes.tcp
    assert set(Probes().dns) <= set(probes.dns)
