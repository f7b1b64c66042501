"""A client of the storm tests, in a process of its own: it can be killed, and its time and memory are nobody else's.

`python -m tests.llm.storm JSON` distils episodes with a pool of one model and prints, as one line of JSON, what came of
each and what it took. `teacher` and `quitter` make the model of the other side.
"""

from __future__ import annotations

import asyncio
import json
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from compoworld_core.errors import BudgetExhausted
from compoworld_core.llm.config import Budget, Endpoint, ModelConfig
from compoworld_core.llm.journal import Journal
from compoworld_core.llm.pool import ModelPool
from compoworld_core.rollouts.distill import distill
from compoworld_core.storage import open_store
from compoworld_core.storage.digest import JsonObject
from compoworld_core.tasks.task import Task
from tests.llm_server import Reply, Script
from tests.llm_server.scripts.teacher import Teacher, of_tasks
from tests.rollouts.complaint import complaint_task, open_catalogue

MODEL = "teacher"


@dataclass(frozen=True)
class Storm:
    """What a client does.

    Attributes:
        tasks: Different tasks; each has `samples` episodes.
        tokens: Budget.
        checkpoints: Numbers of finished episodes at which to note the size of the process.
    """

    base_url: str
    store: str
    tasks: int
    samples: int
    concurrency: int
    tokens: int | None = None
    checkpoints: tuple[int, ...] = ()

    def start(self) -> subprocess.Popen[str]:
        """Start the client."""
        command = [sys.executable, "-m", "tests.llm.storm", json.dumps(asdict(self))]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def run(self) -> Outcome:
        """Start the client and wait for what it tells."""
        process = self.start()
        told, _ = process.communicate()
        assert process.returncode == 0
        return Outcome(**json.loads(told))

    @property
    def episodes(self) -> int:
        """How many there are."""
        return self.tasks * self.samples


@dataclass(frozen=True)
class Outcome:
    """What a client tells.

    Attributes:
        episodes: Task, rollout and error of each, None where it succeeded.
        stopped: Whether the budget was spent.
        paid: Answers that the ledger counts as paid in this process.
        cpu_s: Time of the processor.
        resident: Bytes in memory at each checkpoint and at the most.
    """

    episodes: list[tuple[str, int, str | None]]
    stopped: bool
    requests: int
    paid: int
    cpu_s: float
    resident: dict[str, int]


def storm_tasks(count: int) -> Iterator[Task]:
    """Tasks of one kind, each among other people."""
    return (complaint_task(seed=seed) for seed in range(1, count + 1))


def teacher(tasks: int) -> Teacher:
    """Solves them."""
    return of_tasks(storm_tasks(tasks), open_catalogue())


def quitter() -> Script:
    """Looks around and gives up: the shortest episode that there is."""

    def say(request: JsonObject) -> Reply:
        if any(message["role"] == "tool" for message in request["messages"]):
            return Reply(content="I give up.")
        return Reply(tool_calls=[("list_services", {})])

    return say


def model_config(base_url: str, concurrency: int) -> ModelConfig:
    """The teacher as a pool knows it."""
    return ModelConfig(model=MODEL, endpoints=(Endpoint(base_url=base_url, concurrency=concurrency),))


async def distil(storm: Storm) -> Outcome:
    """Run the episodes."""
    rows: list[tuple[str, int, str | None]] = []
    resident: dict[str, int] = {}
    stopped = False
    pool = ModelPool(
        {MODEL: model_config(storm.base_url, storm.concurrency)},
        Journal(open_store(storm.store)),
        Budget(tokens=storm.tokens),
    )
    async with pool:
        episodes = distill(
            storm_tasks(storm.tasks),
            open_catalogue(),
            lambda task, index: pool.model(MODEL, item=task.id, sample=index),
            samples=storm.samples,
            concurrency=storm.concurrency,
        )
        try:
            async for row in episodes:
                error = None if row.succeeded else row.error.message if row.error else "failed"
                rows.append((row.task_id, row.rollout_idx, error))
                if len(rows) in storm.checkpoints:
                    resident[str(len(rows))] = _resident()
        except BudgetExhausted:
            stopped = True
    spend: Any = pool.spend()
    return Outcome(
        episodes=rows,
        stopped=stopped,
        requests=sum(row["requests"] for row in spend),
        paid=sum(row["requests"] - row["journaled"] for row in spend),
        cpu_s=time.process_time(),
        resident={**resident, "most": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024},
    )


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


if __name__ == "__main__":
    told = asdict(asyncio.run(distil(Storm(**json.loads(sys.argv[1])))))
    print(json.dumps(told))  # noqa: T201
