"""Runs and jobs that are told to stop do so at once, with the exit code that says why, and leave nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

SLOW_STAGE = """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored where the tests run in the background of a shell
from dataclasses import replace
from compoworld_core.pipeline import stages
from compoworld_core.pipeline.graph import StageGraph

def crawl(config, inputs, shard):
    print("begun", file=sys.stderr, flush=True)
    time.sleep(60)
    yield

stages.GRAPH = StageGraph([replace(stage, run=crawl) if stage.name == "crawl" else stage for stage in stages.STAGES])
sys.argv[1:] = ["--store", sys.argv[1]]
"""


@pytest.mark.parametrize(
    ("entry", "number", "exit_code", "said"),
    [
        pytest.param(
            "from compoworld_core.cli import run_cli; sys.exit(run_cli(['crawl', *sys.argv[1:]]))",
            signal.SIGINT,
            130,
            "compoworld: interrupted; what was committed stays",
            id="Ctrl-C",
        ),
        pytest.param("from jobs.job import main; main('crawl')", signal.SIGTERM, 143, "", id="a job told to stop"),
    ],
)
def test_being_told_to_stop(tmp_path: Path, entry: str, number: signal.Signals, exit_code: int, said: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(SLOW_STAGE + entry)
    environment = {**os.environ, "COMPOWORLD_WORKERS": "1", "PYTHONPATH": os.getcwd()}
    command = [sys.executable, str(program), str(tmp_path / "store")]
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert "begun\n" in process.stderr
        process.send_signal(number)
        _, err = process.communicate(timeout=30)

    assert process.returncode == exit_code
    assert said in err
    assert "Traceback" not in err
    assert not list((tmp_path / "store").rglob("*.json"))
