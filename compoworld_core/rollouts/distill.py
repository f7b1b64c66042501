"""Distillation: every task, every rollout, side by side, in an order that does not depend on who finishes first."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, MutableMapping

from compoworld_core.errors import InputError
from compoworld_core.rollouts.episode import EpisodeLimits, failed_episode, run_episode
from compoworld_core.rollouts.policy import PolicyFactory
from compoworld_core.rollouts.trajectory import EpisodeError, ErrorKind, Trajectory
from compoworld_core.tasks.task import Task
from compoworld_core.worlds.catalogue import Catalogue

_AHEAD = 4
"""Episodes begun or waiting to be handed out, per episode that may run: a slow one holds up no other."""


async def distill(
    tasks: Iterable[Task],
    catalogue: Catalogue,
    policy_factory: PolicyFactory,
    *,
    samples: int = 1,
    concurrency: int = 64,
    limits: EpisodeLimits | None = None,
    seconds: MutableMapping[str, float] | None = None,
) -> AsyncIterator[Trajectory]:
    """Run every task `samples` times; every episode becomes a trajectory, whatever its outcome.

    Args:
        tasks: In the order of the trajectories; read only as fast as those are taken.
        catalogue: What the tasks' worlds are opened with.
        policy_factory: Makes the policy of each episode.
        samples: Rollouts of each task.
        concurrency: Most episodes in progress at a time.
        limits: How far each episode may go.
        seconds: Where to note how long each episode took, by `<task id>/<rollout index>`; fit for a sidecar.

    Yields:
        Trajectories by task, then by rollout index.
    """
    if samples < 1 or concurrency < 1:
        raise InputError(f"samples={samples}, concurrency={concurrency}: both need to be at least 1")
    gate = asyncio.Semaphore(concurrency)

    async def rollout(task: Task, index: int) -> Trajectory:
        async with gate:
            start = time.monotonic()
            trajectory = await _rollout(task, index, catalogue, policy_factory, limits)
            if seconds is not None:
                seconds[f"{task.id}/{index}"] = time.monotonic() - start
            return trajectory

    running: deque[asyncio.Task[Trajectory]] = deque()
    try:
        for task in tasks:
            for index in range(samples):
                running.append(asyncio.create_task(rollout(task, index)))
                if len(running) == _AHEAD * concurrency:
                    yield await running[0]
                    running.popleft()
        while running:
            yield await running[0]
            running.popleft()
    finally:
        for unfinished in running:
            unfinished.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _rollout(
    task: Task, index: int, catalogue: Catalogue, policy_factory: PolicyFactory, limits: EpisodeLimits | None
) -> Trajectory:
    try:
        policy = policy_factory(task, index)
    except Exception as error:
        kind: ErrorKind = "world" if isinstance(error, InputError) else "policy"
        return failed_episode(task, "", index, EpisodeError.of(kind, error))
    try:
        return await run_episode(task, catalogue, policy, limits=limits, rollout_idx=index)
    except Exception as error:  # run_episode does not raise; if it does, it is a bug that costs this row only
        return failed_episode(task, "", index, EpisodeError.of("bug", error))
