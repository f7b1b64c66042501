"""Evaluate: policies work on the held-out tasks, and every attempt is a trial.

A policy is a reference, a model of this run, which is loaded in this process, or a model of `llm.models` behind its
endpoint. What the stage reads follows from who is evaluated, so nobody has to train who only asks endpoints.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, Self

from pydantic import BaseModel, Field

from compoworld_core import __version__
from compoworld_core.errors import BudgetExhausted
from compoworld_core.evaluation.heldout import SPLITS, run_trials
from compoworld_core.evaluation.references import REFERENCES
from compoworld_core.evaluation.trial import Trial
from compoworld_core.pipeline.code import code_digest
from compoworld_core.pipeline.stage import Inputs, Shard, shards_for
from compoworld_core.pipeline.wording import counted
from compoworld_core.pipeline.work.models import open_pool
from compoworld_core.pipeline.work.opening import open_catalogue
from compoworld_core.pipeline.work.outage import OutageGuard
from compoworld_core.pipeline.work.training import require_libraries
from compoworld_core.pipeline.work.waiting import awaited
from compoworld_core.pipeline.work.world_model import open_world_model
from compoworld_core.rollouts.distill import Notes
from compoworld_core.rollouts.episode import EpisodeLimits
from compoworld_core.rollouts.policy import Policy, PolicyFactory
from compoworld_core.services.datasets import SERVICES
from compoworld_core.services.world_model.settings import WorldModelUser
from compoworld_core.storage import DatasetType, digest
from compoworld_core.tasks import rubric
from compoworld_core.tasks.datasets import TASKS
from compoworld_core.tasks.task import Split, Task
from compoworld_core.training.config import TrainingConfig
from compoworld_core.training.datasets import GRPO_MODELS, SFT_MODELS, ModelFile, base_files, lay_out_model

if TYPE_CHECKING:
    from compoworld_core.llm.pool import ModelPool
    from compoworld_core.worlds.catalogue import Catalogue

TRAINED: Final[tuple[str, ...]] = ("base", "sft", "grpo")
"""What models of this run are called: the one that training starts from, and what each phase of it leaves."""

_TASKS_PER_SHARD: Final = 10
"""Held-out tasks: few, for a model may take minutes for each."""

_HELD_OUT: Final = 5
"""One task of about so many is held out; how many are is known only once all have been read."""

_SIDE_BY_SIDE: Final = 2
"""Episodes of policies that never wait."""


class EvaluateConfig(WorldModelUser):
    """Who is evaluated on the held-out tasks, and how.

    Attributes:
        base: Taken from `training`: what a person writes here is refused.
        device: Likewise.
    """

    trials: dict[str, Annotated[int, Field(ge=1)]] = Field(
        default={"oracle": 1, "no-op": 1, "random": 1},
        description=f"Attempts at each task, by policy: {', '.join((*REFERENCES, *TRAINED))}, or one of llm.models.",
    )
    splits: tuple[Split, ...] = Field(default=SPLITS, min_length=1, description="Whose tasks.")
    tasks: int | None = Field(default=None, ge=1, description="Most tasks; all if left out.")
    seed: int = Field(default=0, description="Every draw of references and of models of this run follows from it.")
    temperature: float = Field(default=0.0, ge=0, description="Of models of this run; 0 takes the likeliest token.")
    answer_tokens: int = Field(default=512, ge=1, description="Longest message of models of this run.")
    limits: EpisodeLimits = Field(default=EpisodeLimits(), description="How far an attempt may go.")
    concurrency: int = Field(default=64, ge=1, exclude=True, description="Most attempts of an endpoint in flight.")
    base: str | None = Field(default=None, description="Taken from training.base.")
    device: Literal["cpu", "cuda"] = Field(default="cpu", exclude=True, description="Taken from training.layout.")

    def named(self) -> dict[str, str]:
        """The models of `llm.models` among the policies, and the world model if there is one."""
        endpoints = (name for name in self.trials if name not in REFERENCES and name not in TRAINED)
        return {**super().named(), **{f"trials.{name}": name for name in endpoints}}

    def with_training(self, training: TrainingConfig) -> Self:
        """The same config with what the section `training` says about models of this run."""
        if not any(name in self.trials for name in TRAINED):
            return self
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        base = training.base if "base" in self.trials else None
        return type(self).model_validate({**fields, "base": base, "device": training.layout.device})


def reads(config: EvaluateConfig) -> tuple[DatasetType[Any], ...]:
    """Services and tasks, and the models of this run that are evaluated."""
    found: list[DatasetType[Any]] = [SERVICES, TASKS]
    if "sft" in config.trials or ("base" in config.trials and config.base is None):
        found.append(SFT_MODELS)
    if "grpo" in config.trials:
        found.append(GRPO_MODELS)
    return tuple(found)


def plan(config: EvaluateConfig, inputs: Inputs) -> int:
    """A shard for every so many tasks that are likely to be held out."""
    likely = len(inputs[TASKS]) // _HELD_OUT
    return shards_for(likely if config.tasks is None else min(likely, config.tasks), _TASKS_PER_SHARD)


def run(config: EvaluateConfig, inputs: Inputs, shard: Shard) -> Iterator[BaseModel]:
    """Trials by policy, then by task.

    Raises:
        InputError: A model of this run is to be evaluated, and the training libraries are missing.
        BudgetExhausted: The message says what was done until then.
        TransientError: A model does not answer at all.
    """
    held_out = [task for task in inputs[TASKS] if task.split in config.splits][: config.tasks]
    part = shard.part_of(len(held_out))
    notes = {name: Notes() for name in sorted(config.trials)}
    try:
        yield from awaited(_trials(config, inputs, shard, held_out[part.start : part.stop], notes))
    except BudgetExhausted as error:
        ended = sum(len(item.seconds) for item in notes.values())
        raise BudgetExhausted(f"{error} ({counted(ended, 'episodes')} had ended)") from error
    shard.notes["episode_seconds"] = {name: item.seconds for name, item in notes.items()}


async def _trials(
    config: EvaluateConfig, inputs: Inputs, shard: Shard, tasks: list[Task], notes: Mapping[str, Notes]
) -> AsyncIterator[Trial]:
    async with AsyncExitStack() as stack:
        pool = await stack.enter_async_context(open_pool(config, shard)) if config.models else None
        world_model = open_world_model(config, pool, shard) if pool is not None else None
        catalogue = open_catalogue(inputs[SERVICES], world_model)
        versions = {
            "compoworld": __version__,
            "grader": code_digest(("tasks",), rubric.__file__)[:16],
            "tasks": inputs[TASKS].commit.digest[:16],
        }
        for name in notes if tasks else ():
            with ExitStack() as own:  # one model at a time
                policies, weights = _policies(config, name, inputs, shard, catalogue, pool, own)
                price = config.models[name].price if name in config.models else None
                outage = OutageGuard()
                async for trial, trajectory in run_trials(
                    tasks,
                    catalogue,
                    policies,
                    model=name,
                    trials=config.trials[name],
                    limits=config.limits,
                    concurrency=_SIDE_BY_SIDE if price is None else config.concurrency,
                    price=price,
                    versions=versions | weights,
                    notes=notes[name],
                ):
                    outage.watch(trajectory)
                    yield trial
        if pool is not None:
            shard.notes["spend"] = pool.spend()


def _policies(
    config: EvaluateConfig,
    name: str,
    inputs: Inputs,
    shard: Shard,
    catalogue: Catalogue,
    pool: ModelPool | None,
    stack: ExitStack,
) -> tuple[PolicyFactory, dict[str, str]]:
    """Who works on each task's trials until the stack is closed, and the version of what is evaluated."""
    if name in REFERENCES:
        return REFERENCES[name](catalogue, config.seed), {}
    if name in TRAINED:
        return _local(config, name, inputs, shard, stack)
    assert pool is not None  # it has this model, or the configuration would have been refused
    served = pool
    return lambda task, trial: served.model(name, item=task.id, sample=trial), {"model": config.models[name].model}


def _local(
    config: EvaluateConfig, name: str, inputs: Inputs, shard: Shard, stack: ExitStack
) -> tuple[PolicyFactory, dict[str, str]]:
    """A model of this run, whose draws at a task's trial follow from the seed."""
    require_libraries()
    from compoworld_core.training.local_model import LocalModel

    source, weights = config.base, f"{config.base}"
    if name != "base" or source is None:
        files = list(_files(name, inputs))
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="evaluate-"))) / name
        source, weights = str(lay_out_model(shard.store, files, folder)), digest([file.sha256 for file in files])[:16]
    model = LocalModel(
        source,
        name=name,
        answer_tokens=config.answer_tokens,
        temperature=config.temperature,
        device=config.device,
    )
    stack.callback(model.close)

    def policy(task: Task, trial: int) -> Policy:
        return model.conversation(f"{config.seed}/{task.id}/{trial}")

    return policy, {"weights": weights}


def _files(name: str, inputs: Inputs) -> Iterable[ModelFile]:
    if name == "grpo":
        return inputs[GRPO_MODELS]
    return base_files(inputs[SFT_MODELS]) if name == "base" else inputs[SFT_MODELS]
