"""Sample tasks: admitted tools become tasks that passed every gate, and a record of every attempt."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from pydantic import BaseModel

from compoworld_core.pipeline.stage import Inputs, Shard, shards_for
from compoworld_core.pipeline.work.opening import open_catalogue
from compoworld_core.services.datasets import SERVICES
from compoworld_core.services.package import ServicePackage
from compoworld_core.synthesis.datasets import VERIFICATIONS
from compoworld_core.tasks.sampler import Attempt, ServiceTools, TaskSettings, sample_tasks

TASKS_PER_SHARD: Final = 10


def plan(config: TaskSettings, inputs: Inputs) -> int:
    """A shard for every few tasks that are wanted."""
    return shards_for(config.count, TASKS_PER_SHARD)


def run(config: TaskSettings, inputs: Inputs, shard: Shard) -> Iterator[BaseModel]:
    """Attempts, each accepted one preceded by its task."""
    catalogue = open_catalogue(inputs[SERVICES])
    for attempt in sample_tasks(config, admitted(inputs, catalogue.packages), catalogue, shard.index, shard.count):
        if attempt.task is not None:
            yield attempt.task
        yield Attempt.model_validate({**dict(attempt), "task": None})


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
