"""Sample tasks: admitted tools become tasks that passed every gate, and a record of every attempt."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from typing import Final, Literal, Self

from pydantic import BaseModel, Field, model_validator
from pydantic_core import PydanticCustomError

from compoworld_core.errors import BudgetExhausted
from compoworld_core.pipeline.stage import Inputs, Shard, shards_for
from compoworld_core.pipeline.work.opening import open_catalogue
from compoworld_core.pipeline.work.waiting import awaited
from compoworld_core.services.datasets import SERVICES
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.world_model.prediction import NO_PREDICTIONS
from compoworld_core.services.world_model.settings import WorldModelUser
from compoworld_core.synthesis.datasets import VERIFICATIONS
from compoworld_core.tasks.agent.author import Writer, author_tasks
from compoworld_core.tasks.agent.session import SessionLimits
from compoworld_core.tasks.sampler import Attempt, ServiceTools, TaskSettings, sample_tasks
from compoworld_core.worlds.catalogue import Catalogue

TASKS_PER_SHARD: Final = {"planner": 10, "agent": 100}
"""A model lets its process wait most of the time, so one process serves many sessions."""


class SampleTasksConfig(TaskSettings, WorldModelUser):
    """What tasks to make, and who makes them."""

    author: Literal["planner", "agent"] = Field(
        default="planner", description="Who designs tasks: `planner` needs no model, `agent` is one."
    )
    model: str | None = Field(default=None, description="The agent: a name in llm.models.")
    session: SessionLimits = Field(default=SessionLimits(), description="How far the agent may go for one task.")
    concurrency: int = Field(default=16, ge=1, exclude=True, description="Most sessions of the agent in progress.")

    @model_validator(mode="after")
    def _model_fits_the_author(self) -> Self:
        if self.author == "agent" and self.model is None:
            raise _wrong("model", "author agent needs one; name one of llm.models")
        if self.author == "planner" and self.model is not None:
            raise _wrong("author", "is planner, which has no model; write `author: agent`, or leave model out")
        return self

    def named(self) -> dict[str, str]:
        """The agent, and the world model if there is one."""
        return super().named() | ({} if self.model is None else {"model": self.model})


def _wrong(field: str, problem: str) -> PydanticCustomError:
    return PydanticCustomError("contradiction", "{problem}", {"key": f"tasks.{field}", "problem": problem})


def plan(config: SampleTasksConfig, inputs: Inputs) -> int:
    """A shard for every so many tasks that are wanted."""
    return shards_for(config.count, TASKS_PER_SHARD[config.author])


def run(config: SampleTasksConfig, inputs: Inputs, shard: Shard) -> Iterator[BaseModel]:
    """Attempts, each accepted one preceded by its task."""
    has_world_model = config.world_model is not None
    catalogue = open_catalogue(inputs[SERVICES], NO_PREDICTIONS if has_world_model else None)
    services = admitted(inputs, catalogue.packages, has_world_model=has_world_model)
    if config.author == "planner":
        attempts = sample_tasks(config, services, catalogue, shard.index, shard.count)
    else:
        attempts = awaited(_authored(config, services, catalogue, shard))
    for attempt in attempts:
        if attempt.task is not None:
            yield attempt.task
        yield attempt


async def _authored(
    config: SampleTasksConfig, services: Sequence[ServiceTools], catalogue: Catalogue, shard: Shard
) -> AsyncIterator[Attempt]:
    """The agent's attempts.

    Raises:
        BudgetExhausted: With what was done until then.
    """
    from compoworld_core.pipeline.work.models import open_pool

    name = config.model or ""
    made = 0
    async with open_pool(config, shard) as pool:
        writer = Writer(
            name,
            config.models[name].parameters(),
            lambda item: pool.model(name, item=item),
            lambda item, kept: pool.repeat(name, item=item, requests=kept.requests, usage=kept.usage),
        )
        attempts = author_tasks(
            config,
            services,
            catalogue,
            writer,
            shard.store,
            shard.index,
            shard.count,
            limits=config.session,
            concurrency=config.concurrency,
        )
        try:
            async for attempt in attempts:
                made += attempt.task is not None
                yield attempt
        except BudgetExhausted as error:
            raise BudgetExhausted(
                f"{error}\n  {made} of {config.wanted(shard.index, shard.count)} tasks were done, and every answer "
                "that was paid for is kept: raise tasks.budget and run the same command again, and only what is "
                "missing is asked for"
            ) from error
        shard.notes["spend"] = pool.spend()


def admitted(
    inputs: Inputs, packages: Iterable[ServicePackage], *, has_world_model: bool = False
) -> list[ServiceTools]:
    """The services with the tools of theirs that agents may see.

    Args:
        packages: All of the inputs' services.
        has_world_model: Whether tools that no code executes are among them.
    """
    tools: dict[tuple[str, str], list[str]] = {}
    for admission in inputs[VERIFICATIONS]:
        tools.setdefault((admission.package, admission.outcome), []).append(admission.tool)
    return [
        ServiceTools(
            package,
            tuple(tools.get((package.digest, "verified"), ())),
            tuple(
                name
                for name in tools.get((package.digest, "world_model"), ())
                if has_world_model and name in package.modelled_names
            ),
        )
        for package in packages
    ]
