"""A storm of failures: every episode ends well, and no answer is paid twice but for those in flight at a kill."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from compoworld_core.llm.journal import ROOT
from compoworld_core.storage import open_store
from tests.llm.storm import MODEL, Outcome, Storm, storm_tasks
from tests.llm_server import Named, ServerProcess
from tests.llm_server.faults import STORM

_PATIENCE_S = 300.0
_FAULTS = set(STORM.rates)


class Size(NamedTuple):
    tasks: int
    samples: int
    concurrency: int


LARGE = Size(50, 20, 1000)
SIZES = [
    pytest.param(Size(6, 10, 30), id="small"),
    pytest.param(LARGE, id="large", marks=pytest.mark.slow),
]


def stormy(tasks: int) -> ServerProcess:
    return ServerProcess({MODEL: Named("tests.llm.storm:teacher", {"tasks": tasks})}, STORM)


def journaled(store: Path) -> int:
    return sum(1 for _ in open_store(store).names(ROOT))


def assert_all_succeeded(storm: Storm, outcome: Outcome) -> None:
    """Every episode is there once, in order, and solved."""
    expected = [(task.id, index, None) for task in storm_tasks(storm.tasks) for index in range(storm.samples)]
    assert [tuple(row) for row in outcome.episodes] == expected


def kill_when(storm: Storm, moment: Callable[[], bool]) -> None:
    """Start a client, and kill it at a moment while it works."""
    client = storm.start()
    deadline = time.monotonic() + _PATIENCE_S
    while not moment():
        with suppress(subprocess.TimeoutExpired):
            client.wait(0.05)
        assert client.poll() is None
        assert time.monotonic() < deadline
    client.kill()
    client.communicate()


@pytest.mark.slow
def test_a_thousand_episodes_at_once_come_through_a_storm(tmp_path: Path) -> None:
    with stormy(LARGE.tasks) as server:
        storm = Storm(server.base_url, str(tmp_path), *LARGE)
        outcome = storm.run()
        counts = server.counts

    assert_all_succeeded(storm, outcome)
    assert set(counts) == {"answered", *_FAULTS}
    assert counts["answered"] == journaled(tmp_path) == outcome.paid == outcome.requests


@pytest.mark.parametrize("size", SIZES)
def test_a_killed_client_pays_again_for_what_was_in_flight_only(tmp_path: Path, size: Size) -> None:
    with stormy(size.tasks) as server:
        storm = Storm(server.base_url, str(tmp_path), *size)
        kill_when(storm, lambda: journaled(tmp_path) > 8 * storm.episodes)
        kept = journaled(tmp_path)
        outcome = storm.run()
        counts = server.counts

    assert_all_succeeded(storm, outcome)
    assert kept + outcome.paid == journaled(tmp_path) == outcome.requests
    assert 0 <= counts["answered"] - journaled(tmp_path) <= storm.concurrency


@pytest.mark.parametrize("size", SIZES)
def test_a_spent_budget_pays_for_nothing_again(tmp_path: Path, size: Size) -> None:
    with stormy(size.tasks) as server:
        storm = Storm(server.base_url, str(tmp_path), *size)
        stopped = Storm(server.base_url, str(tmp_path), *size, tokens=20_000 * storm.episodes).run()
        kept = journaled(tmp_path)
        outcome = storm.run()
        counts = server.counts

    assert stopped.stopped
    assert 0 < kept < journaled(tmp_path)
    assert_all_succeeded(storm, outcome)
    assert counts["answered"] == kept + outcome.paid == journaled(tmp_path)


@pytest.mark.slow
def test_memory_does_not_grow_with_the_number_of_episodes(tmp_path: Path) -> None:
    with ServerProcess({MODEL: Named("tests.llm.storm:quitter")}, STORM) as server:
        storm = Storm(server.base_url, str(tmp_path), 50, 100, concurrency=1000, checkpoints=(1000, 5000))
        outcome = storm.run()

    assert {error for _, _, error in outcome.episodes} == {"failed"}
    assert len(outcome.episodes) == storm.episodes
    assert outcome.resident["5000"] <= 1.2 * outcome.resident["1000"]
