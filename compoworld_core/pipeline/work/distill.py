"""Distill: a policy works on every task, and every episode is a trajectory, whatever its outcome."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from compoworld_core.pipeline.stage import Inputs, Shard, shards_for
from compoworld_core.pipeline.work.opening import open_catalogue
from compoworld_core.rollouts.distill import distill
from compoworld_core.rollouts.oracle import oracles
from compoworld_core.rollouts.trajectory import Trajectory
from compoworld_core.services.datasets import SERVICES
from compoworld_core.tasks.datasets import TASKS

TASKS_PER_SHARD: Final = 20
_CONCURRENCY: Final = 2
"""Episodes side by side: the oracle never waits, so more would only hold more worlds in memory."""


class DistillConfig(BaseModel):
    """Who works on the tasks, and how often."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    policy: Literal["oracle"] = Field(default="oracle", description="Who works: `oracle` replays reference solutions.")
    samples: int = Field(default=1, ge=1, description="Rollouts of each task.")


def plan(config: DistillConfig, inputs: Inputs) -> int:
    """A shard for every few tasks."""
    return shards_for(len(inputs[TASKS]), TASKS_PER_SHARD)


def run(config: DistillConfig, inputs: Inputs, shard: Shard) -> Iterator[BaseModel]:
    """Trajectories by task, then by rollout."""
    catalogue = open_catalogue(inputs[SERVICES])
    seconds: dict[str, float] = shard.notes.setdefault("episode_seconds", {})
    episodes = distill(
        inputs[TASKS].part(shard),
        catalogue,
        oracles(catalogue),
        samples=config.samples,
        concurrency=_CONCURRENCY,
        seconds=seconds,
    )

    async def next_episode() -> Trajectory | None:
        return await anext(episodes, None)

    with asyncio.Runner() as runner:
        while (trajectory := runner.run(next_episode())) is not None:
            yield trajectory
