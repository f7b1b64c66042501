"""Distillation: every task, every rollout, side by side, in an order that does not depend on who finishes first.

The rollouts of a task go in waves. What a wave shows decides whether there is a next one: a task that always or never
succeeds teaches nothing more, and one with enough successes needs none. The decision sees outcomes in the order of
rollouts and nothing of timing, so the same answers always make the same trajectories.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import AsyncIterator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from pydantic import Field

from compoworld_core.data import Data
from compoworld_core.errors import InputError, StorageError
from compoworld_core.rollouts.episode import EpisodeLimits, failed_episode, run_episode
from compoworld_core.rollouts.policy import PolicyFactory
from compoworld_core.rollouts.trajectory import EpisodeError, ErrorKind, Trajectory
from compoworld_core.tasks.task import Task
from compoworld_core.worlds.catalogue import Catalogue

_AHEAD = 2
"""Rollouts begun or waiting to be handed out, per episode that may run: a slow task holds up no other."""

SkipReason = Literal["always", "never", "enough"]


class Stopping(Data):
    """When a task needs no further rollout.

    Attributes:
        settle_after: Outcomes of a task that are all the same after which it always or never succeeds.
        enough: Successes of a task after which there are enough; there are never more.
    """

    settle_after: int | None = Field(default=None, ge=2)
    enough: int | None = Field(default=None, ge=1)

    def reason(self, done: Sequence[Trajectory]) -> SkipReason | None:
        """Why the task needs no further rollout, if it needs none."""
        outcomes = _outcomes(done)
        if self.enough is not None and sum(outcomes) >= self.enough:
            return "enough"
        if self.settle_after is not None and len(outcomes) >= self.settle_after and len(set(outcomes)) == 1:
            return "always" if outcomes[0] else "never"
        return None

    def wave(self, done: Sequence[Trajectory]) -> int | None:
        """How many rollouts may run side by side before the next decision; None where there is none to come."""
        outcomes = _outcomes(done)
        sizes = []
        if self.settle_after is not None and len(outcomes) < self.settle_after:
            sizes.append(self.settle_after - len(outcomes))
        if self.enough is not None:
            sizes.append(self.enough - sum(outcomes))
        return min(sizes, default=None)


def _outcomes(done: Sequence[Trajectory]) -> list[bool]:
    """Whether each succeeded; episodes that failed for reasons outside them tell nothing about their task."""
    return [item.succeeded for item in done if item.error is None or item.error.kind in ("policy", "limit")]


class Skip(NamedTuple):
    """Rollouts of a task that were planned and not run."""

    reason: SkipReason
    rollouts: int


@dataclass
class Notes:
    """What is worth knowing of a distillation beside its trajectories; fit for a sidecar.

    Attributes:
        seconds: How long each episode took, by `<task id>/<rollout index>`.
        skipped: What was not run, by task id.
    """

    seconds: dict[str, float] = field(default_factory=dict)
    skipped: dict[str, Skip] = field(default_factory=dict)


async def distill(
    tasks: Iterable[Task],
    catalogue: Catalogue,
    policy_factory: PolicyFactory,
    *,
    samples: int = 1,
    stopping: Stopping | None = None,
    concurrency: int = 64,
    limits: EpisodeLimits | None = None,
    notes: Notes | None = None,
) -> AsyncIterator[Trajectory]:
    """Run every task up to `samples` times; every episode becomes a trajectory, whatever its outcome.

    Args:
        tasks: In the order of the trajectories; read only as fast as those are taken.
        catalogue: What the tasks' worlds are opened with.
        policy_factory: Makes the policy of each episode.
        samples: Rollouts of each task.
        stopping: When a task needs fewer; never if left out.
        concurrency: Most episodes in progress at a time.
        limits: How far each episode may go.
        notes: Where to note what is not content.

    Yields:
        Trajectories by task, then by rollout index.

    Raises:
        InputError: What all episodes need is not right: a key, a budget that is spent. No episode was begun since, and
            those in progress have ended.
        StorageError: What was paid for cannot be kept.
    """
    if samples < 1 or concurrency < 1:
        raise InputError(f"samples={samples}, concurrency={concurrency}: both need to be at least 1")
    crew = _Crew(catalogue, policy_factory, limits, concurrency, notes or Notes())
    running: deque[asyncio.Task[list[Trajectory]]] = deque()

    async def handed_out() -> list[Trajectory]:
        done = await running[0]
        running.popleft()
        return done

    try:
        for task in tasks:
            running.append(asyncio.create_task(crew.work(task, samples, stopping or Stopping())))
            if len(running) * samples >= _AHEAD * concurrency:
                for trajectory in await handed_out():
                    yield trajectory
        while running:
            for trajectory in await handed_out():
                yield trajectory
    except (InputError, StorageError):
        await asyncio.gather(*running, return_exceptions=True)
        raise
    finally:
        for unfinished in running:
            unfinished.cancel()
        await asyncio.gather(*running, return_exceptions=True)


class _Crew:
    """Runs episodes, no more than a number at a time, until the budget is spent."""

    def __init__(
        self,
        catalogue: Catalogue,
        policy_factory: PolicyFactory,
        limits: EpisodeLimits | None,
        concurrency: int,
        notes: Notes,
    ) -> None:
        self._catalogue = catalogue
        self._policy_factory = policy_factory
        self._limits = limits
        self._gate = asyncio.Semaphore(concurrency)
        self._turn = asyncio.Lock()
        self._notes = notes
        self._stopped_by: InputError | StorageError | None = None

    async def work(self, task: Task, samples: int, stopping: Stopping) -> list[Trajectory]:
        """The rollouts of a task that it needs."""
        done: list[Trajectory] = []
        while len(done) < samples:
            reason = stopping.reason(done)
            if reason is not None:
                self._notes.skipped[task.id] = Skip(reason, samples - len(done))
                break
            end = min(samples, len(done) + (stopping.wave(done) or samples))
            wave = [self._rollout(task, index) for index in range(len(done), end)]
            for result in await asyncio.gather(*wave, return_exceptions=True):
                if isinstance(result, BaseException):
                    raise result
                done.append(result)
        return done

    async def _rollout(self, task: Task, index: int) -> Trajectory:
        async with self._gate:
            async with self._turn:  # to open a world takes long: between two of them, others hear their answers
                await asyncio.sleep(0)
            if self._stopped_by is not None:
                raise self._stopped_by
            start = time.monotonic()
            try:
                trajectory = await self._run(task, index)
            except (InputError, StorageError) as error:
                self._stopped_by = error
                raise
            self._notes.seconds[f"{task.id}/{index}"] = time.monotonic() - start
            return trajectory

    async def _run(self, task: Task, index: int) -> Trajectory:
        try:
            policy = self._policy_factory(task, index)
        except Exception as error:
            kind: ErrorKind = "world" if isinstance(error, InputError) else "policy"
            return failed_episode(task, "", index, EpisodeError.of(kind, error))
        try:
            return await run_episode(task, self._catalogue, policy, limits=self._limits, rollout_idx=index)
        except (InputError, StorageError):
            raise
        except Exception as error:  # run_episode raises nothing else; if it does, it is a bug that costs this row only
            return failed_episode(task, "", index, EpisodeError.of("bug", error))
