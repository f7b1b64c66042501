"""The same layout becomes the right command on a laptop, on one machine and in a pod; what goes wrong is typed."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from compoworld_core.errors import CompoWorldError, InputError, TransientError
from compoworld_core.training.config import Layout
from compoworld_core.training.launch import TrainingFailed, command, launch, variables

JOB = Path("job.json")
CLUSTER = Layout(nodes=4, processes_per_node=8)
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
WHAT = ["-m", "a.module", "job.json"]
IN_A_JOBSET = {"JOBSET_NAME": "cw-sft-17", "REPLICATED_JOB_NAME": "trainer", "JOB_COMPLETION_INDEX": "2"}
ELSEWHERE = {"MASTER_ADDR": "10.0.0.1", "NODE_RANK": "1"}


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        (Layout(device="cpu"), [sys.executable, *WHAT]),
        (
            Layout(),
            [*TORCHRUN, "--nnodes=1", "--nproc-per-node=1", "--standalone", "--local-addr=localhost", *WHAT],
        ),
        (
            Layout(device="cpu", zero_stage=1),
            [*TORCHRUN, "--nnodes=1", "--nproc-per-node=1", "--standalone", "--local-addr=localhost", *WHAT],
        ),
        (
            Layout(processes_per_node=2),
            [*TORCHRUN, "--nnodes=1", "--nproc-per-node=2", "--standalone", "--local-addr=localhost", *WHAT],
        ),
    ],
    ids=["one process", "one of the GPUs", "one process of DeepSpeed", "two processes"],
)
def test_one_machine_needs_nothing_from_the_environment(layout: Layout, expected: list[str]) -> None:
    assert command(layout, {}, "a.module", JOB) == expected


@pytest.mark.parametrize(
    ("environment", "rank", "address", "port"),
    [
        (IN_A_JOBSET, 2, "cw-sft-17-trainer-0-0.cw-sft-17", 29500),
        ({**IN_A_JOBSET, "JOB_INDEX": "0"}, 2, "cw-sft-17-trainer-0-0.cw-sft-17", 29500),
        ({**IN_A_JOBSET, "JOB_COMPLETION_INDEX": "0", "JOB_INDEX": "3"}, 3, "cw-sft-17-trainer-0-0.cw-sft-17", 29500),
        (ELSEWHERE, 1, "10.0.0.1", 29500),
        ({**IN_A_JOBSET, **ELSEWHERE, "MASTER_PORT": "1234"}, 1, "10.0.0.1", 1234),
    ],
    ids=["a pod of one job", "of the first job", "a job of one pod", "elsewhere", "what is said outright goes first"],
)
def test_a_node_finds_its_place(environment: dict[str, str], rank: int, address: str, port: int) -> None:
    assert command(CLUSTER, environment, "a.module", JOB) == [
        *TORCHRUN,
        "--nnodes=4",
        "--nproc-per-node=8",
        f"--node-rank={rank}",
        f"--master-addr={address}",
        f"--master-port={port}",
        *WHAT,
    ]


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        ({}, "JOB_COMPLETION_INDEX is missing.*set NODE_RANK"),
        ({"NODE_RANK": "0"}, "JOBSET_NAME and REPLICATED_JOB_NAME are missing.*set MASTER_ADDR"),
        ({"NODE_RANK": "0", "JOBSET_NAME": "a"}, "REPLICATED_JOB_NAME is missing"),
        ({**ELSEWHERE, "NODE_RANK": "4"}, "NODE_RANK=4: the layout has 4 nodes, so their ranks end at 3"),
        ({**IN_A_JOBSET, "JOB_COMPLETION_INDEX": "9"}, "JOB_COMPLETION_INDEX=9"),
        ({**IN_A_JOBSET, "JOB_INDEX": "1"}, "JOB_COMPLETION_INDEX=2 and JOB_INDEX=1"),
        ({**ELSEWHERE, "NODE_RANK": "-1"}, "NODE_RANK=-1: is not a whole number"),
        ({**ELSEWHERE, "MASTER_PORT": "http"}, "MASTER_PORT=http: is not a whole number"),
    ],
)
def test_an_environment_that_does_not_suffice_is_told_what_is_missing(
    environment: dict[str, str], problem: str
) -> None:
    with pytest.raises(InputError, match=problem):
        command(CLUSTER, environment, "a.module", JOB)


def test_processes_of_a_node_share_its_cores() -> None:
    assert variables(Layout(processes_per_node=8), {}, 96)["OMP_NUM_THREADS"] == "12"
    assert variables(Layout(processes_per_node=8), {}, 2)["OMP_NUM_THREADS"] == "1"
    assert "OMP_NUM_THREADS" not in variables(Layout(), {"OMP_NUM_THREADS": "3"}, 2)


def test_large_tensors_get_large_pages_where_the_allocator_is_not_set_up_already() -> None:
    assert "hugetlb" in variables(Layout(device="cpu"), {}, 2)["GLIBC_TUNABLES"]
    assert "GLIBC_TUNABLES" not in variables(Layout(device="cpu"), {"GLIBC_TUNABLES": "glibc.malloc.arena_max=1"}, 2)
    assert "GLIBC_TUNABLES" not in variables(Layout(), {}, 2)


def run(folder: Path, source: str, layout: Layout | None = None) -> list[str]:
    """Launch a module with this source; the lines that it printed."""
    (folder / "worker.py").write_text(f"import os, signal, sys, time\n{source}\n", encoding="utf-8")
    told: list[str] = []
    launch(
        layout or Layout(device="cpu"),
        "worker",
        folder / "job.json",
        environment={**os.environ, "PYTHONPATH": str(folder)},
        tell=told.append,
    )
    return told


def test_output_is_told_as_it_comes_and_the_job_is_handed_on(tmp_path: Path) -> None:
    told = run(tmp_path, "print(sys.argv[1]); print('to standard error', file=sys.stderr)")

    assert told == [f"{tmp_path / 'job.json'}\n", "to standard error\n"]


@pytest.mark.parametrize(
    ("ending", "kind", "said"),
    [
        ("sys.exit(2)", InputError, "exit code 2"),
        ("sys.exit(75)", TransientError, "exit code 75"),
        ("sys.exit(143)", TransientError, "exit code 143"),
        ("os.kill(os.getpid(), signal.SIGTERM)", TransientError, "signal 15"),
        ("os.kill(os.getpid(), signal.SIGKILL)", TrainingFailed, "no memory was left"),
        ("1 / 0", TrainingFailed, "ZeroDivisionError"),
    ],
)
def test_a_failure_is_typed_and_has_the_last_words(
    ending: str, kind: type[CompoWorldError], said: str, tmp_path: Path
) -> None:
    with pytest.raises(CompoWorldError, match="the last of me") as caught:
        run(tmp_path, f"print('the last of me', flush=True)\n{ending}")

    assert type(caught.value) is kind
    assert said in str(caught.value)


def test_whoever_is_interrupted_leaves_no_process_behind(tmp_path: Path) -> None:
    (tmp_path / "worker.py").write_text("import os, time\nprint(os.getpid())\ntime.sleep(600)\n", encoding="utf-8")
    started: list[int] = []

    def interrupt(line: str) -> None:
        started.append(int(line))
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        launch(
            Layout(device="cpu"), "worker", JOB, environment={**os.environ, "PYTHONPATH": str(tmp_path)}, tell=interrupt
        )

    with pytest.raises(ProcessLookupError):
        os.kill(started[0], 0)


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs the train extra")
def test_the_process_that_failed_first_decides_and_not_the_launcher(tmp_path: Path) -> None:
    source = "print('rank', os.environ['RANK'])\nif os.environ['RANK'] == '1': sys.exit(2)\ntime.sleep(600)"

    with pytest.raises(InputError, match="exit code 2"):
        run(tmp_path, source, Layout(processes_per_node=2, device="cpu"))


def test_a_killed_launcher_leaves_nothing_that_trains_on(tmp_path: Path) -> None:
    (tmp_path / "endless.py").write_text(
        "import os, sys, time; print(os.getpid(), flush=True); time.sleep(600)", encoding="utf-8"
    )
    script = (
        "import sys; from pathlib import Path; from compoworld_core.training.config import Layout\n"
        "from compoworld_core.training.launch import launch\n"
        "launch(Layout(device='cpu'), 'endless', Path('job.json'), tell=lambda line: print(line, flush=True))"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}
    launcher = subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE, text=True)
    assert launcher.stdout is not None
    trainer = int(launcher.stdout.readline())

    launcher.kill()
    launcher.communicate(timeout=60)

    assert launcher.returncode == -signal.SIGKILL
    deadline = time.monotonic() + 60
    while not is_gone(trainer):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def is_gone(process: int) -> bool:
    try:
        stat = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except FileNotFoundError:
        return True
    return stat.rpartition(")")[2].split()[0] == "Z"
