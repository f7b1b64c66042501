"""A whole run with models: pi writes services, an adversary attacks them, an agent designs tasks, teachers solve them.

The models are scripts behind a real endpoint that fails as on a bad day. Their keys are canaries.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from compoworld_core.llm.journal import ROOT
from compoworld_core.storage.digest import JsonObject
from tests.llm_server import Faults, LlmServer, Script
from tests.llm_server.faults import STORM
from tests.llm_server.scripts import task_author, teacher
from tests.llm_server.scripts.adversary import AdversaryScript
from tests.llm_server.scripts.author import AuthorScript

pytestmark = pytest.mark.components

VARIABLE = "CANARY_KEY"
KEYS = {VARIABLE: "sk-canary-8c1b5e02", "file": "sk-canary-d94f7730"}
SPECS, TASKS = 2, 3
_PRICE = {"prompt": 2, "cached": 0.5, "completion": 8}
_TASK_SETTINGS: JsonObject = {"count": TASKS, "profile": "easy", "held_out_services": 0, "shares": {"sft": 1}}


@dataclass
class Seen:
    """What a command printed, and where else a key was seen while it ran."""

    code: int
    out: str
    err: str
    leaks: set[str] = field(default_factory=set)

    @property
    def document(self) -> Any:
        assert self.code == 0, self.err
        return json.loads(self.out)


class Desk:
    """A folder with a configuration, a key file and a store, and the command line in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.store = folder / "store"
        self.config = folder / "run.yaml"
        (folder / "key").write_text(KEYS["file"])
        (folder / "tmp").mkdir()

    def configure(self, base_url: str) -> None:
        by_variable = {"base_url": base_url, "key_env": VARIABLE}
        by_file = {"base_url": base_url, "key_file": str(self.folder / "key")}
        models = {
            "author": by_variable,
            "adversary": by_file,
            "designer": by_variable,
            "teacher-a": by_variable,
            "teacher-b": by_file,
        }
        settings = {
            "store": str(self.store),
            "workers": 2,
            "llm": {
                "models": {
                    name: {"model": name, "price": _PRICE, "endpoints": [endpoint]} for name, endpoint in models.items()
                }
            },
            "crawl": {"limit": SPECS},
            "synthesize": {"author": "pi", "model": "author", "adversary": "adversary"},
            "tasks": {**_TASK_SETTINGS, "author": "agent", "model": "designer"},
            "distill": {"policy": "llm", "teachers": {"teacher-a": 2, "teacher-b": 1}},
            "gates": {"min_tasks": TASKS, "min_trajectories": TASKS},
        }
        self.config.write_text(yaml.safe_dump(settings))

    def command(self, *arguments: str) -> Seen:
        """Run a command, and watch all processes that it starts."""
        code = "import sys; from compoworld_core.cli import main; sys.exit(main())"
        process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments, "--config", str(self.config), "--json", "--debug"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, VARIABLE: KEYS[VARIABLE], "TMPDIR": str(self.folder / "tmp"), "OPENAI_LOG": "debug"},
        )
        with _watched(process.pid) as leaks:
            out, err = process.communicate()
        return Seen(process.returncode, out, err, leaks)


@contextmanager
def _watched(root: int) -> Iterator[set[str]]:
    """Look again and again at what any user could read about a process and those below it, and at their environments.

    The command and its workers were given the environment; nothing else may have it.
    """
    leaks: set[str] = set()
    ended = threading.Event()

    def watch() -> None:
        known = {root}
        while not ended.wait(0.02):
            for entry in Path("/proc").iterdir():
                if entry.name.isdecimal():
                    leaks.update(_leaks(entry, known, root))

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield leaks
    finally:
        ended.set()
        watcher.join()


def _leaks(entry: Path, known: set[int], root: int) -> Iterator[str]:
    try:
        parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        if int(entry.name) != root and parent not in known:
            return
        known.add(int(entry.name))
        command = (entry / "cmdline").read_text(errors="replace")
        environment = (entry / "environ").read_text(errors="replace")
    except (OSError, IndexError):
        return
    if any(key in command for key in KEYS.values()):
        yield f"command line: {command}"
    is_ours = "compoworld_core.cli" in command or "multiprocessing" in command
    is_pythons = command == "uname\0-p\0"  # how the module `platform` learns the processor, once per process
    if any(key in environment for key in KEYS.values()) and not is_ours and not is_pythons:
        yield f"environment: {command}"


@dataclass
class Finished:
    """A run that is done."""

    desk: Desk
    server: LlmServer
    refused: Seen
    run: Seen
    export: Seen
    cost: Seen


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Finished]:
    desk = Desk(tmp_path_factory.mktemp("llm"))
    store = str(desk.store)
    scripts: dict[str, Script] = {
        "author": AuthorScript(),
        "adversary": AdversaryScript(),
        "designer": task_author.of_store(store, _TASK_SETTINGS),
        "teacher-a": teacher.of_store(store, {"malformed": 0.3}, thinks=True),
        "teacher-b": teacher.of_store(store, {"answers_wrongly": 0.5}, seed=1),
    }
    faults = Faults(rates=STORM.rates, at={1: "unauthorized", 2: "unauthorized"})
    with LlmServer(scripts, faults, keys=KEYS.values()) as server:
        desk.configure(server.base_url)
        yield Finished(
            desk,
            server,
            refused=desk.command("run"),
            run=desk.command("run"),
            export=desk.command("export", "--out", str(desk.folder / "sft.jsonl")),
            cost=desk.command("cost"),
        )


def test_a_refused_key_stops_the_run_and_says_where_to_look(finished: Finished) -> None:
    assert finished.refused.code == 2
    assert VARIABLE in finished.refused.err


def test_models_make_services_tasks_and_trajectories(finished: Finished) -> None:
    totals = finished.run.document["totals"]

    assert finished.run.document["is_latest"] is True
    assert (totals["specs"], totals["tasks"]) == (SPECS, TASKS)
    assert totals["successes"] >= TASKS
    assert finished.export.document["records"] > 0
    assert {request.model for request in finished.server.requests} == {
        "author", "adversary", "designer", "teacher-a", "teacher-b"
    }  # fmt: skip


def test_each_answer_was_paid_once(finished: Finished) -> None:
    journaled = sum(1 for _ in (finished.desk.store / ROOT).rglob("*.json"))

    assert {"rate_limit", "error", "cut"} <= set(finished.server.counts)
    assert finished.server.counts["answered"] == journaled


def test_the_cost_tells_stages_and_models(finished: Finished) -> None:
    document = json.dumps(finished.cost.document)

    for name in ("synthesize", "sample-tasks", "distill", "author", "adversary", "designer", "teacher-a", "teacher-b"):
        assert f'"{name}"' in document


def test_a_second_run_asks_nothing(finished: Finished) -> None:
    asked = len(finished.server.requests)

    assert all(stage["skipped"] for stage in finished.desk.command("run").document["stages"])
    assert len(finished.server.requests) == asked


def test_no_key_is_seen_anywhere(finished: Finished) -> None:
    commands = (finished.refused, finished.run, finished.export, finished.cost)
    printed = "".join(seen.out + seen.err for seen in commands)
    files = [path for path in finished.desk.folder.rglob("*") if path.is_file() and path.name != "key"]

    assert {request.key for request in finished.server.requests} == {"known"}
    assert not [leak for seen in commands for leak in seen.leaks]
    assert not [key for key in KEYS.values() if key in printed]
    assert not [path for path in files for key in KEYS.values() if key.encode() in path.read_bytes()]
