"""Launching: the same job on a laptop, on one machine and in the pods of a JobSet, from its layout and the environment.

What a pod is told by Kubernetes decides its place. The nodes are the pods of one job or jobs of one pod each; so one of
both indexes is 0, and the other is the node's rank. The pod of rank 0 is found by its name in the JobSet's headless
service. Elsewhere `MASTER_ADDR`, `MASTER_PORT` and `NODE_RANK` say the same, and they go first.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Final

from compoworld_core.errors import CompoWorldError, InputError, TransientError
from compoworld_core.services.host.confinement import die_with
from compoworld_core.training.config import Layout

PORT: Final = 29_500
_PATIENCE_S: Final = 45
"""For an end in order: torchrun gives its workers 30 seconds."""
_LAST_WORDS: Final = 30
_WORKER_FAILED: Final = re.compile(r"failed \(exitcode: (-?\d+)\) local_rank")
"""What torchrun logs; its own exit code is always 1."""


class TrainingFailed(CompoWorldError):
    """A training process ended with an error; the message has its last words."""


def command(layout: Layout, environment: Mapping[str, str], module: str, job: Path) -> list[str]:
    """What to run on this machine, as one argument list.

    Args:
        layout: How many processes, on how many nodes.
        environment: Tells, where there are several nodes, which of them this is and where the first one is found.
        module: Run in every process; it gets the job's file as its only argument.
        job: File with what the processes are told.

    Raises:
        InputError: The environment lacks a variable, or one makes no sense.
    """
    what = ["-m", module, str(job)]
    # A trainer that torchrun does not give one GPU takes all that it sees.
    if layout.processes == 1 and layout.zero_stage == 0 and layout.device == "cpu":
        return [sys.executable, *what]
    torchrun = [sys.executable, "-m", "torch.distributed.run", f"--nnodes={layout.nodes}"]
    torchrun.append(f"--nproc-per-node={layout.processes_per_node}")
    if layout.nodes == 1:
        return [*torchrun, "--standalone", "--local-addr=localhost", *what]  # finds a free port
    return [
        *torchrun,
        f"--node-rank={_rank(layout, environment)}",
        f"--master-addr={_address(environment)}",
        f"--master-port={_number(environment, 'MASTER_PORT', PORT)}",
        *what,
    ]


def variables(layout: Layout, environment: Mapping[str, str], cores: int) -> dict[str, str]:
    """What a training process needs in its environment and is not given yet.

    Args:
        layout: The processes of a node share its cores.
        environment: What is set is left as it is.
        cores: Of this machine.
    """
    wanted = {
        "OMP_NUM_THREADS": str(max(1, cores // layout.processes_per_node)),
        "PYTHONUNBUFFERED": "1",
    }
    if layout.device == "cpu":
        wanted["GLIBC_TUNABLES"] = "glibc.malloc.hugetlb=1"  # or each large tensor costs a page fault per 4 KiB
    return {name: value for name, value in wanted.items() if name not in environment}


def launch(
    layout: Layout,
    module: str,
    job: Path,
    *,
    environment: Mapping[str, str] | None = None,
    tell: Callable[[str], object] = sys.stderr.write,
) -> None:
    """Run a job's processes on this machine until they are done.

    Whatever ends this call ends them, too: an error, a signal, or the death of this process.

    Args:
        layout: How many processes, on how many nodes.
        module: See `command`.
        job: See `command`.
        environment: The process's own if left out.
        tell: Gets each line of output as it comes.

    Raises:
        InputError: The environment does not suffice, or a process refused its input.
        TransientError: A process gave up for now, or was told to stop.
        TrainingFailed: A process failed otherwise.
    """
    given = dict(os.environ if environment is None else environment)
    arguments = command(layout, given, module, job)
    given |= variables(layout, given, len(os.sched_getaffinity(0)))
    process = subprocess.Popen(
        arguments,
        env=given,
        preexec_fn=partial(die_with, os.getpid()),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    last_words: deque[str] = deque(maxlen=_LAST_WORDS)
    code: int | None = None
    try:
        for line in process.stdout or ():
            tell(line)
            found = _WORKER_FAILED.search(line)
            if found and code is None:
                code = int(found[1])
            if code is None:  # what follows is about torchrun
                last_words.append(line)
        process.wait()
    finally:
        _end(process)
    if process.returncode:
        raise _failure(module, process.returncode if code is None else code, "".join(last_words))


def node_rank(layout: Layout, environment: Mapping[str, str]) -> int:
    """Which node of the layout this is, from 0.

    Raises:
        InputError: There are several, and the environment does not say.
    """
    return _rank(layout, environment) if layout.nodes > 1 else 0


def _end(process: subprocess.Popen[str]) -> None:
    if process.poll() is None:
        process.terminate()
        try:
            process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
    if process.stdout is not None:
        process.stdout.close()


def _failure(module: str, code: int, last_words: str) -> CompoWorldError:
    if code < 0:
        how = f"was ended by signal {-code} ({signal.strsignal(-code)})"
        if -code == signal.SIGKILL:
            how += ", most often because no memory was left"
    else:
        how = f"ended with exit code {code}"
    message = f"{module} {how}; its last words:\n{last_words.rstrip()}"
    if code == InputError.exit_code:
        return InputError(message)
    if code in (TransientError.exit_code, -signal.SIGTERM, 128 + signal.SIGTERM):
        return TransientError(message)
    return TrainingFailed(message)


def _rank(layout: Layout, environment: Mapping[str, str]) -> int:
    if "NODE_RANK" in environment:
        name, rank = "NODE_RANK", _number(environment, "NODE_RANK")
    elif "JOB_COMPLETION_INDEX" in environment or "JOB_INDEX" in environment:
        pod, job = (_number(environment, name, 0) for name in ("JOB_COMPLETION_INDEX", "JOB_INDEX"))
        if pod and job:
            raise InputError(
                f"JOB_COMPLETION_INDEX={pod} and JOB_INDEX={job}: the nodes are the pods of one job or jobs of one pod "
                "each, not both; otherwise set NODE_RANK"
            )
        name, rank = ("JOB_INDEX", job) if job else ("JOB_COMPLETION_INDEX", pod)
    else:
        raise InputError(
            f"the layout has {layout.nodes} nodes, and the environment does not say which of them this is: "
            "JOB_COMPLETION_INDEX is missing, which Kubernetes sets in indexed jobs; elsewhere set NODE_RANK"
        )
    if rank >= layout.nodes:
        raise InputError(
            f"{name}={rank}: the layout has {layout.nodes} nodes, so their ranks end at {layout.nodes - 1}"
        )
    return rank


def _address(environment: Mapping[str, str]) -> str:
    if environment.get("MASTER_ADDR"):
        return environment["MASTER_ADDR"]
    missing = [name for name in ("JOBSET_NAME", "REPLICATED_JOB_NAME") if not environment.get(name)]
    if missing:
        raise InputError(
            f"the environment does not say where the first node is found: {' and '.join(missing)} "
            f"{'are' if len(missing) > 1 else 'is'} missing, which the pods of a JobSet get from their labels; "
            "elsewhere set MASTER_ADDR"
        )
    jobset = environment["JOBSET_NAME"]
    return f"{jobset}-{environment['REPLICATED_JOB_NAME']}-0-0.{jobset}"


def _number(environment: Mapping[str, str], name: str, otherwise: int | None = None) -> int:
    value = environment.get(name)
    if value is None and otherwise is not None:
        return otherwise
    if value is None or not value.isascii() or not value.isdecimal():
        raise InputError(f"{name}={value}: is not a whole number")
    return int(value)
