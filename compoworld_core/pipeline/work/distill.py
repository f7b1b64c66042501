"""Distill: a policy works on every task, and every episode is a trajectory, whatever its outcome.

The oracle replays reference solutions. Teachers are models, any number of them, each with its samples per task; their
rollouts of a task alternate, so that what a wave shows is not one teacher's doing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Annotated, Final, Literal, Self, get_args

from pydantic import BaseModel, Field, model_validator
from pydantic_core import PydanticCustomError

from compoworld_core.errors import BudgetExhausted
from compoworld_core.pipeline.stage import Inputs, Shard, shards_for
from compoworld_core.pipeline.wording import counted
from compoworld_core.pipeline.work.models import open_pool
from compoworld_core.pipeline.work.opening import open_catalogue
from compoworld_core.pipeline.work.outage import OutageGuard
from compoworld_core.pipeline.work.waiting import awaited
from compoworld_core.pipeline.work.world_model import open_world_model
from compoworld_core.rollouts.distill import Notes, Stopping, distill
from compoworld_core.rollouts.episode import EpisodeLimits
from compoworld_core.rollouts.oracle import oracles
from compoworld_core.rollouts.policy import Policy, PolicyFactory
from compoworld_core.rollouts.trajectory import Trajectory
from compoworld_core.services.datasets import SERVICES
from compoworld_core.services.world_model.settings import WorldModelUser
from compoworld_core.tasks.datasets import TASKS
from compoworld_core.tasks.task import Split, Task

if TYPE_CHECKING:
    from compoworld_core.llm.pool import ModelPool

TASKS_PER_SHARD: Final = {"oracle": 20, "llm": 1000}
"""Teachers wait most of the time, so one process serves many tasks; an oracle keeps it busy."""

_SPLITS: Final[dict[str, tuple[Split, ...]]] = {"oracle": get_args(Split), "llm": ("sft",)}
_ORACLES: Final = 2
"""Oracles side by side: they never wait, so more would only hold more worlds in memory."""


class DistillConfig(WorldModelUser):
    """Who works on which tasks, and how often."""

    policy: Literal["oracle", "llm"] = Field(
        default="oracle", description="Who works: `oracle` replays reference solutions, `llm` has teachers."
    )
    samples: int = Field(default=1, ge=1, description="The oracle's rollouts of each task.")
    teachers: dict[str, Annotated[int, Field(ge=1)]] = Field(
        default_factory=dict, description="Rollouts of each task, by the model of llm.models that makes them."
    )
    splits: tuple[Split, ...] | None = Field(
        default=None, min_length=1, description="Whose tasks; left out, the oracle works on all and teachers on sft."
    )
    settle_after: int | None = Field(
        default=4, ge=2, description="Teachers leave a task whose first rollouts, so many, all succeed or all fail."
    )
    enough: int | None = Field(default=None, ge=1, description="Successes of a task after which teachers leave it.")
    limits: EpisodeLimits = Field(default=EpisodeLimits(), description="How far an episode may go.")
    concurrency: int = Field(default=256, ge=1, exclude=True, description="Most teachers' episodes in flight.")

    @model_validator(mode="after")
    def _teachers_fit_the_policy(self) -> Self:
        if self.policy == "llm" and not self.teachers:
            raise _wrong("teachers", "policy llm needs some, such as `teachers: {a-name-in-llm-models: 2}`")
        if self.policy == "oracle" and self.teachers:
            raise _wrong("policy", "is oracle, which has no teachers; write `policy: llm`, or leave teachers out")
        if self.policy == "llm" and self.samples != 1:
            raise _wrong("samples", "is the oracle's; how often a teacher works on a task stands beside its name")
        return self

    def named(self) -> dict[str, str]:
        """The teachers, and who answers for tools that no code executes."""
        return {**super().named(), **{f"teachers.{name}": name for name in self.teachers}}

    @property
    def rollouts(self) -> tuple[tuple[str, int], ...]:
        """Teacher and sample of each rollout of a task, by rollout index: first everyone's first, then the second."""
        most = max(self.teachers.values(), default=0)
        return tuple((name, i) for i in range(most) for name in sorted(self.teachers) if i < self.teachers[name])


def _wrong(field: str, problem: str) -> PydanticCustomError:
    return PydanticCustomError("contradiction", "{problem}", {"key": f"distill.{field}", "problem": problem})


def plan(config: DistillConfig, inputs: Inputs) -> int:
    """A shard for every so many tasks."""
    return shards_for(len(inputs[TASKS]), TASKS_PER_SHARD[config.policy])


def run(config: DistillConfig, inputs: Inputs, shard: Shard) -> Iterator[BaseModel]:
    """Trajectories by task, then by rollout.

    Raises:
        BudgetExhausted: The message says what was done until then.
        TransientError: Teachers do not answer at all.
    """
    notes = Notes()
    shard.notes.update(episode_seconds=notes.seconds, skipped=notes.skipped)
    try:
        yield from awaited(_episodes(config, inputs, shard, notes))
    except BudgetExhausted as error:
        raise BudgetExhausted(f"{error} ({counted(len(notes.seconds), 'episodes')} had ended)") from error


async def _episodes(config: DistillConfig, inputs: Inputs, shard: Shard, notes: Notes) -> AsyncIterator[Trajectory]:
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(open_pool(config, shard)) if config.models else None
        world_model = open_world_model(config, pool, shard) if pool is not None else None
        catalogue = open_catalogue(inputs[SERVICES], world_model)
        splits = config.splits or _SPLITS[config.policy]
        outage = OutageGuard()
        async for trajectory in distill(
            (task for task in inputs[TASKS].part(shard) if task.split in splits),
            catalogue,
            oracles(catalogue) if pool is None or config.policy == "oracle" else _teachers(config, pool),
            samples=config.samples if config.policy == "oracle" else len(config.rollouts),
            stopping=Stopping(settle_after=config.settle_after, enough=config.enough) if config.teachers else None,
            concurrency=_ORACLES if config.policy == "oracle" else config.concurrency,
            limits=config.limits,
            notes=notes,
        ):
            outage.watch(trajectory)
            yield trajectory
        if pool is not None:
            shard.notes["spend"] = pool.spend()


def _teachers(config: DistillConfig, pool: ModelPool) -> PolicyFactory:
    """A factory that gives every rollout its teacher; one teacher's samples are told apart by their numbers."""
    rollouts = config.rollouts

    def teacher(task: Task, index: int) -> Policy:
        name, sample = rollouts[index]
        return pool.model(name, item=task.id, sample=sample)

    return teacher
