"""A run that is killed again and again ends with what an undisturbed run makes."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.test_small_run import CONFIG, content

KILLS = 10
_PATIENCE_S = 300.0


def _start(store: Path, config: Path, workers: int) -> subprocess.Popen[str]:
    command = "import sys; from compoworld_core.cli import main; sys.exit(main())"
    arguments = ["run", "--store", str(store), "--config", str(config), "--workers", str(workers), "--json"]
    return subprocess.Popen(
        [sys.executable, "-c", command, *arguments], stdout=subprocess.PIPE, text=True, start_new_session=True
    )


def _finish(process: subprocess.Popen[str]) -> dict[str, Any]:
    output, _ = process.communicate(timeout=_PATIENCE_S)
    assert process.returncode == 0
    document: dict[str, Any] = json.loads(output)
    return document


def _kill_when(process: subprocess.Popen[str], moment: Callable[[], bool]) -> bool:
    """Kill the run, but not what it started, at a moment; whether it was still going."""
    deadline = time.monotonic() + _PATIENCE_S
    while process.poll() is None and not moment():
        assert time.monotonic() < deadline
        time.sleep(0.002)
    if process.poll() is not None:
        process.communicate()
        return False
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()
    return True


def _commits(store: Path) -> int:
    return sum(1 for name in ("_COMMIT.json", "_DATASET.json") for _ in store.rglob(name))


@pytest.fixture(scope="module")
def config(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("killed") / "small.yaml"
    path.write_text(CONFIG)
    return path


@pytest.fixture(scope="module")
def undisturbed(config: Path) -> dict[str, str]:
    return content(_finish(_start(config.parent / "undisturbed", config, 1)))


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_killed_at_random_moments(config: Path, undisturbed: dict[str, str], tmp_path: Path, workers: int) -> None:
    rng = random.Random(workers)
    kills = 0
    while kills < KILLS:
        store = tmp_path / f"store-{kills}"
        going = True
        while going and kills < KILLS:
            until = time.monotonic() + rng.uniform(0.5, 6.0)
            going = _kill_when(_start(store, config, workers), lambda until=until: time.monotonic() >= until)  # type: ignore[misc]
            kills += going

        assert content(_finish(_start(store, config, workers))) == undisturbed


@pytest.mark.slow
def test_killed_right_after_each_commit(config: Path, undisturbed: dict[str, str], tmp_path: Path) -> None:
    kills = 0
    while True:
        seen = _commits(tmp_path)
        if not _kill_when(_start(tmp_path, config, 1), lambda seen=seen: _commits(tmp_path) > seen):  # type: ignore[misc]
            break
        kills += 1

    assert kills > KILLS
    assert content(_finish(_start(tmp_path, config, 1))) == undisturbed
