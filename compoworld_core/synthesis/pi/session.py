"""Sessions: pi at work on one assignment, confined, until its check passes, it gives up, or its budget is spent.

The model is reached through a line that whoever has the keys provides. What the session leaves is checked once more
here, for what pi reports about itself is hearsay. A session that ended, well or not, is kept and never held again; one
that was cut short by something that concerns more than itself leaves only the journal, from which it goes on.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import shutil
import signal
import tempfile
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from compoworld_core.errors import IsolationError
from compoworld_core.llm.messages import Usage
from compoworld_core.llm.sessions import Session, find, keep
from compoworld_core.specs.sources.launcher import CANNOT
from compoworld_core.specs.sources.sandbox import python_view
from compoworld_core.storage import Store
from compoworld_core.storage.digest import JsonObject, digest
from compoworld_core.synthesis.finding import printable
from compoworld_core.synthesis.pi import ask, harness, transcript
from compoworld_core.synthesis.pi.check import Report
from compoworld_core.synthesis.pi.confinement import Probes, confine
from compoworld_core.synthesis.pi.settings import Isolation, SessionSettings

CHECK: Final = "check"
"""Name of the command in the working folder that checks what was written."""

_MOST_FILE_BYTES: Final = 2 * 1024 * 1024
_MOST_LINE_BYTES: Final = 64 * 1024 * 1024
_MOST_LINES: Final = 2_000_000
_MOST_KEPT_BYTES: Final = 64 * 1024 * 1024
"""Of the messages of a session."""

_GRACE_S: Final = 60.0
_END_S: Final = 5.0

Outcome = Literal["passed", "ended", "budget", "failed"]
Route = Callable[[JsonObject], Awaitable[JsonObject]]


@dataclass(frozen=True)
class Assignment:
    """What a session is for.

    Attributes:
        model: Its name in the configuration.
        system: The system prompt.
        task: What pi is told to do.
        prompts: Labels of the prompts that all of this was made with.
        inputs: Files that it finds in its working folder.
        wanted: Files that it is to leave there.
        check: Says what is wrong with them.
    """

    kind: str
    item: str
    model: str
    system: str
    task: str
    prompts: tuple[str, ...]
    inputs: Mapping[str, str]
    wanted: tuple[str, ...]
    check: Callable[[Mapping[str, str]], Report]


class Line(Protocol):
    """A session's line to its model."""

    @property
    def failure(self) -> BaseException | None:
        """What has to be raised in place of the session's outcome: it concerns more than this session."""

    @property
    def is_spent(self) -> bool:
        """Whether the session was refused an answer because it had had all that it may."""

    @property
    def spent(self) -> tuple[int, Usage]:
        """Answers so far, and what they took."""

    def listen(self, path: Path) -> AbstractAsyncContextManager[None]:
        """Serve the session on a Unix socket at this path until the block ends."""


class Exchange(Protocol):
    """Whoever has the models."""

    def parameters(self, model: str) -> JsonObject:
        """All that decides what a model answers, beside what it is asked."""

    def line(self, model: str, item: str, settings: SessionSettings, routes: Mapping[str, Route]) -> Line:
        """A line for one session, on which other routes are answered, too."""

    def repeat(self, model: str, item: str, session: Session) -> None:
        """Count what a session took that is not held again."""


@dataclass
class _Heard:
    """What came out of a confinement."""

    messages: list[JsonObject]
    status: int = 0
    failure: str = ""
    has_begun: bool = False
    left: JsonObject | None = None
    reached: list[str] | None = None
    errors: str = ""


class _Endless(Exception):
    """More was said than is listened to."""


class PiSessions:
    """Holds sessions.

    Args:
        store: Where they are kept.
        exchange: Connects them to their models.
        settings: How far each may go.
        probes: What must be out of their reach.
    """

    def __init__(
        self, store: Store, exchange: Exchange, settings: SessionSettings, probes: Probes | None = None
    ) -> None:
        self._store = store
        self._exchange = exchange
        self._settings = settings
        self._probes = probes or Probes().everything()

    async def hold(self, assignment: Assignment) -> Session:
        """The session of an assignment: the one that was kept, or a new one.

        Raises:
            IsolationError: pi can't be confined here.
            InputError: pi can't be installed, or a model is not configured.
            BudgetExhausted: The stage's budget is spent.
            TransientError: A model does not answer now, or pi can't be fetched.
        """
        key = self._key(assignment)
        if (kept := find(self._store, key)) is not None:
            self._exchange.repeat(assignment.model, assignment.item, kept)
            return kept
        with harness.open_pi() as pi, _folder(self._settings.isolation, key) as folder:
            session = await self._hold(assignment, pi, folder)
        return keep(self._store, key, session)

    def _key(self, assignment: Assignment) -> str:
        return digest(
            {
                "kind": assignment.kind,
                "model": self._exchange.parameters(assignment.model),
                "asked": [assignment.system, assignment.task, dict(assignment.inputs)],
                "prompts": assignment.prompts,
                "settings": self._settings,
                "pi": harness.VERSION,
            }
        )

    async def _hold(self, assignment: Assignment, pi: harness.Pi, folder: Path) -> Session:
        confinement = confine(self._settings.isolation, pi.program, folder)
        places = confinement.places
        _write_inputs(folder, assignment)
        description = {
            "probes": {"tcp": self._probes.tcp, "dns": self._probes.dns},
            "inputs": f"{places.session}/inputs",
            "workspace": places.workspace,
            "programs": [CHECK],
            "agent": places.agent,
            "port": places.port,
            "socket": f"{places.session}/socket",
            "models": harness.models(
                assignment.model,
                self._settings.context_tokens,
                self._exchange.parameters(assignment.model).get("max_tokens") or self._settings.answer_tokens,
            ),
            "settings": harness.SETTINGS,
            "command": pi.command(places, assignment.model, assignment.task),
            "environment": harness.ENVIRONMENT,
            "seconds": self._settings.seconds,
            "wanted": assignment.wanted,
            "most_bytes": _MOST_FILE_BYTES,
        }

        async def check(body: JsonObject) -> JsonObject:
            report = assignment.check(_files(body.get("files"), assignment.wanted))
            return {"passed": report.passed, "text": report.text}

        line = self._exchange.line(assignment.model, assignment.item, self._settings, {f"/{CHECK}": check})
        async with line.listen(folder / "socket"):
            heard = await _run(confinement.command(description), self._settings.seconds + _GRACE_S)
        if heard.reached:
            raise IsolationError(
                f"pi is not cut off from the network: it reached {', '.join(heard.reached)}; it was not started"
            )
        if heard.status == CANNOT and not heard.has_begun:
            raise IsolationError(f"pi can't be confined here: {heard.errors}")
        if line.failure is not None:
            raise line.failure
        return _session(assignment, heard, line)


async def _run(command: list[str], seconds: float) -> _Heard:
    """Run a confinement to its end, or kill it when its time is up."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        limit=_MOST_LINE_BYTES,
        start_new_session=True,
        env={},
    )
    heard = _Heard([])
    errors = asyncio.create_task(_tail(process))
    try:
        with suppress(TimeoutError, ValueError, _Endless):  # ValueError: a line that is too long
            async with asyncio.timeout(seconds):
                await _hear(process, heard)
                heard.status = await process.wait()
                heard.errors = printable(await errors)
    finally:
        errors.cancel()
        await _end(process)
    return heard


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a confinement, and give it the time to end what it started."""
    for how, seconds in ((signal.SIGTERM, _END_S), (signal.SIGKILL, None)):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, how)
        with suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), seconds)


async def _hear(process: asyncio.subprocess.Process, heard: _Heard) -> None:
    assert process.stdout is not None
    kept = 0
    for _ in range(_MOST_LINES):
        line = await process.stdout.readline()
        if not line:
            return
        event = transcript.read_event(line)
        if event is None:
            continue
        if event.get("type") == "left":
            heard.left = event
        elif event.get("type") == "begun":
            heard.has_begun = True
        elif event.get("type") == "egress" and not heard.has_begun:  # later, whoever is confined might say so
            heard.reached = [str(place) for place in event.get("reached", ())]
        elif message := transcript.chat_message(event):
            kept += len(line)
            if kept > _MOST_KEPT_BYTES:
                break
            heard.messages.append(message)
            if message["role"] == "assistant":
                heard.failure = transcript.failure(event)
    raise _Endless


async def _tail(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    end = b""
    while chunk := await process.stderr.read(65536):
        end = (end + chunk)[-4096:]
    lines = end.decode(errors="replace").strip().splitlines()
    return lines[-1] if lines else ""


def _session(assignment: Assignment, heard: _Heard, line: Line) -> Session:
    left = heard.left or {}
    files = _files(left.get("files"), assignment.wanted)
    report = assignment.check(files)
    turns, usage = line.spent
    outcome: Outcome
    if report.passed:
        outcome, detail = "passed", "its check passes"
    elif line.is_spent or left.get("status") == "timeout":
        what = "time" if left.get("status") == "timeout" else "budget"
        outcome, detail = "budget", f"its {what} was spent after {turns} answers; {report.problems[0]}"
    else:
        outcome = "ended" if report.made != "nothing" else "failed"
        why = heard.failure or ("" if heard.left else heard.errors or "pi did not come to its end")
        detail = f"{why}; {report.problems[0]}" if why else report.problems[0]
    return Session(
        kind=assignment.kind,
        item=assignment.item,
        model=assignment.model,
        prompts=assignment.prompts,
        transcript=({"role": "system", "content": assignment.system}, *heard.messages),
        requests=turns,
        usage=usage,
        outcome=outcome,
        result={
            "files": files,
            "made": report.made,
            "detail": printable(detail),
            "pi": harness.VERSION,
        },
    )


def _files(value: Any, wanted: tuple[str, ...]) -> dict[str, str]:
    """The wanted files out of what somebody sent."""
    sent = value if isinstance(value, dict) else {}
    texts = {name: sent[name] for name in wanted if isinstance(sent.get(name), str)}
    return {
        name: text.encode("utf-8", "replace").decode() for name, text in texts.items() if len(text) <= _MOST_FILE_BYTES
    }


def _write_inputs(folder: Path, assignment: Assignment) -> None:
    inputs = folder / "inputs"
    inputs.mkdir()
    for name, text in assignment.inputs.items():
        (inputs / name).write_text(text, encoding="utf-8")
    (inputs / CHECK).write_text(f"#!{python_view()[0]} -IS\n{Path(ask.__file__).read_text()}", encoding="utf-8")
    (folder / "system.md").write_text(assignment.system, encoding="utf-8")


@contextmanager
def _folder(isolation: Isolation, key: str) -> Iterator[Path]:
    """The session's folder; where its path shows inside, it follows from the key, so that requests do not vary."""
    if isolation == "namespace":
        with tempfile.TemporaryDirectory(prefix="pi-") as name:
            yield Path(name)
        return
    folder = Path(tempfile.gettempdir(), f"pi-{key[:16]}")
    with open(f"{folder}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # another process may hold the same session
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(mode=0o700)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)
