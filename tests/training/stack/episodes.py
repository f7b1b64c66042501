"""Episodes of the oracle, as data to train on."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from compoworld_core.rollouts.distill import distill
from compoworld_core.rollouts.oracle import oracles
from compoworld_core.rollouts.trajectory import Trajectory
from compoworld_core.tasks.task import Task
from compoworld_core.worlds.catalogue import Catalogue


def played(tasks: Sequence[Task], catalogue: Catalogue) -> list[Trajectory]:
    """The oracle's trajectory of each task."""

    async def everything() -> list[Trajectory]:
        return [trajectory async for trajectory in distill(tasks, catalogue, oracles(catalogue), concurrency=1)]

    return asyncio.run(everything())
