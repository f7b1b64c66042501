"""Builders of kernels take turns, and none waits for one that was killed."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from compoworld_core.training.kernels import only_builder

HOLD = """
import os, sys, time
file = os.open(sys.argv[1], os.O_CREAT | os.O_EXCL)  # as torch does
print("held", flush=True)
sys.stdin.read()
os.close(file)
os.remove(sys.argv[1])
"""
BUILD = """
import sys
from pathlib import Path
from compoworld_core.training.kernels import only_builder
with only_builder(Path(sys.argv[1])):
    print("building", flush=True)
    sys.stdin.read()
"""


def started(script: str, argument: Path) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(argument)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline()
    return process


def test_what_a_killed_build_left_is_cleared_away(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    dead = started(HOLD, lock)
    os.kill(dead.pid, signal.SIGKILL)
    dead.wait()
    assert lock.exists()

    with only_builder(tmp_path):
        assert not lock.exists()


def test_the_file_of_a_build_that_lives_is_left_alone(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    alive = started(HOLD, lock)

    with only_builder(tmp_path):
        assert lock.exists()

    alive.communicate("")
    assert alive.returncode == 0
    assert not lock.exists()


def test_the_turn_of_a_killed_builder_passes_on(tmp_path: Path) -> None:
    first = started(BUILD, tmp_path)
    with (tmp_path / ".building").open() as turn, pytest.raises(BlockingIOError):
        fcntl.flock(turn, fcntl.LOCK_EX | fcntl.LOCK_NB)
    assert first.poll() is None

    os.kill(first.pid, signal.SIGKILL)
    first.wait()

    second = started(BUILD, tmp_path)
    second.communicate("")
    assert second.returncode == 0
