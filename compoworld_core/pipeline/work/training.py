"""Training stages: a model learns from selected trajectories, then from its own rollouts.

What a stage leaves is a folder that can be loaded and served: weights, tokenizer, template, and how the training went.
Checkpoints go to the store while it runs, under the stage's key; a stage that was killed goes on from the newest one.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel, Field

from compoworld_core.data import Data
from compoworld_core.errors import InputError
from compoworld_core.pipeline.stage import Inputs, Shard
from compoworld_core.rollouts.export import export_records
from compoworld_core.rollouts.selection import SelectionRules, select
from compoworld_core.rollouts.trajectory import TRAJECTORIES
from compoworld_core.services.datasets import SERVICES
from compoworld_core.services.package import ServicePackage
from compoworld_core.storage import DatasetType, canonical_json
from compoworld_core.tasks.datasets import TASKS
from compoworld_core.tasks.task import Task
from compoworld_core.training.config import GrpoSettings, Layout, SftSettings, TinyModel, TrainingConfig
from compoworld_core.training.datasets import BASE, SFT_MODELS, keep_model, lay_out_model
from compoworld_core.training.history import FITTED, PACE, Pace
from compoworld_core.training.kernels import build_kernels
from compoworld_core.training.launch import launch, node_rank
from compoworld_core.training.successes import stored_successes, write_successes

_HELD_OUT_EVERY: Final = 20
"""One conversation of so many is not trained on; its loss is measured."""


class _Config(Data):
    layout: Layout = Field(default=Layout(), exclude=True)


class SftConfig(_Config):
    """What supervised fine-tuning starts from, learns from, and how."""

    base: str | None = None
    tiny: TinyModel = TinyModel()
    settings: SftSettings = SftSettings()
    selection: SelectionRules = SelectionRules()

    @classmethod
    def of(cls, training: TrainingConfig, selection: SelectionRules) -> SftConfig:
        """Out of the sections `training` and `export`."""
        tiny = TinyModel() if training.base else training.tiny
        return cls(base=training.base, tiny=tiny, settings=training.sft, selection=selection, layout=training.layout)


class GrpoConfig(_Config):
    """How a model learns from its own rollouts."""

    settings: GrpoSettings = GrpoSettings()

    @classmethod
    def of(cls, training: TrainingConfig) -> GrpoConfig:
        """Out of the section `training`."""
        return cls(settings=training.grpo, layout=training.layout)


def reads(config: GrpoConfig) -> tuple[DatasetType[Any], ...]:
    """What reinforcement learning reads: trajectories only where some may be replayed."""
    return (SERVICES, TASKS, *((TRAJECTORIES,) if config.settings.replay else ()), SFT_MODELS)


def plan(config: _Config, inputs: Inputs) -> int:
    """One: processes of a training job are no shards."""
    return 1


def fine_tune(config: SftConfig, inputs: Inputs, shard: Shard) -> Iterator[BaseModel]:
    """The files of the fine-tuned model.

    Raises:
        InputError: The training libraries are missing, or there is nothing to learn from.
    """
    require_libraries()
    from compoworld_core.training.base import prepare
    from compoworld_core.training.conversations import portion, write_rows
    from compoworld_core.training.sft import SftJob

    trajectories, tasks = tuple(inputs[TRAJECTORIES]), tuple(inputs[TASKS])
    selection = select(trajectories, tasks, config.selection)
    records = list(export_records(selection.kept(trajectories), tasks))
    if not records:
        raise InputError("sft: no trajectory is training data; `compoworld export` tells why")
    with tempfile.TemporaryDirectory(prefix="sft-") as name:
        work = Path(name)
        base, fitting = prepare(config.base, config.tiny, config.settings, records, work / "base")
        if not fitting.rows:
            raise InputError(
                f"sft: no conversation about tasks of profile {config.settings.profile or 'any'} begins within "
                f"training.sft.context_tokens={config.settings.context_tokens}"
            )
        held_out = fitting.rows[_HELD_OUT_EVERY - 1 :: _HELD_OUT_EVERY]
        rows = [row for place, row in enumerate(fitting.rows) if place % _HELD_OUT_EVERY != _HELD_OUT_EVERY - 1]
        rows, epoch = portion(rows, base, config.settings.taught_tokens)
        write_rows(rows, work / "rows.jsonl")
        write_rows(held_out, work / "held_out.jsonl")
        job = SftJob(
            model=base,
            rows=str(work / "rows.jsonl"),
            held_out=str(work / "held_out.jsonl") if held_out else None,
            out=str(work / "out"),
            store=shard.store.uri,
            run=config.layout.checkpoints_of(shard.key),
            settings=config.settings,
            layout=config.layout,
        )
        if not _train(job, "compoworld_core.training.sft", config.layout, work, shard):
            return
        (_model(work) / FITTED).write_text(fitting.told(epoch).model_dump_json(indent=2), encoding="utf-8")
        if config.base is None:
            shutil.copytree(base, _model(work) / BASE)
        yield from keep_model(shard.store, _model(work))


def explorable(tasks: Iterable[Task], packages: Iterable[ServicePackage]) -> list[Task]:
    """The tasks of split rl in whose worlds code answers every tool: exploring shows what a world model gets wrong."""
    modelled = {package.digest: package.modelled_names for package in packages}
    return [
        task
        for task in tasks
        if task.split == "rl" and not any(modelled[pin.package].intersection(pin.tools) for pin in task.recipe.services)
    ]


def reinforce(config: GrpoConfig, inputs: Inputs, shard: Shard) -> Iterator[BaseModel]:
    """The files of the model that learned from its rollouts.

    Raises:
        InputError: Libraries are missing, or there is no task to learn from or no success to replay.
    """
    require_for_rollouts(config)
    from compoworld_core.pipeline.work.grpo_process import Worlds
    from compoworld_core.training.grpo import GrpoJob

    tasks = explorable(inputs[TASKS], inputs[SERVICES])
    if not tasks:
        raise InputError(
            "grpo: there are no tasks of split rl without tools that a world model answers; raise tasks.count or "
            "tasks.shares.rl"
        )
    with tempfile.TemporaryDirectory(prefix="grpo-") as name:
        work = Path(name)
        base = lay_out_model(shard.store, inputs[SFT_MODELS], work / "base")
        (work / "tasks.jsonl").write_text("\n".join(map(canonical_json, tasks)), encoding="utf-8")
        if config.settings.replay:
            successes = stored_successes(inputs[TRAJECTORIES], (task.id for task in tasks))
            if not successes:
                raise InputError(
                    "grpo: training.grpo.replay needs verified trajectories of rl tasks, and there are none; let "
                    "distill.splits have rl, too"
                )
            write_successes(successes, work / "successes.jsonl")
        job = GrpoJob(
            model=str(base),
            tasks=str(work / "tasks.jsonl"),
            successes=str(work / "successes.jsonl") if config.settings.replay else None,
            out=str(work / "out"),
            store=shard.store.uri,
            run=config.layout.checkpoints_of(shard.key),
            settings=config.settings,
            layout=config.layout,
        )
        worlds = Worlds(job=job, services=inputs[SERVICES].location)
        if _train(worlds, "compoworld_core.pipeline.work.grpo_process", config.layout, work, shard):
            yield from keep_model(shard.store, _model(work))


def _train(job: BaseModel, module: str, layout: Layout, work: Path, shard: Shard) -> bool:
    """Launch a job and note how quickly it went; whether this is the node on which it leaves its model."""
    (work / "job.json").write_text(job.model_dump_json(), encoding="utf-8")
    build_kernels(layout)
    launch(layout, module, work / "job.json")
    pace = work / "out" / PACE
    if pace.exists():  # on the first of several nodes
        shard.notes["pace"] = Pace.model_validate_json(pace.read_text(encoding="utf-8"))
    return node_rank(layout, os.environ) == 0


def _model(work: Path) -> Path:
    return work / "out" / "model"


def require(config: SftConfig) -> None:
    """Check that fine-tuning can work here.

    Raises:
        InputError: The training libraries are missing.
    """
    require_libraries()


def require_for_rollouts(config: GrpoConfig) -> None:
    """Check that exploring can work here.

    Raises:
        InputError: The training libraries are missing, or vLLM where it writes rollouts.
    """
    require_libraries()
    if config.layout.generation != "transformers":
        require_vllm()


def require_libraries() -> None:
    """Check that models can be trained and loaded here.

    Raises:
        InputError: The training libraries are missing.
    """
    missing = [name for name in ("torch", "transformers", "trl", "datasets") if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(
            f"models that are trained need {', '.join(missing)}: run `pip install 'compoworld[train]'` (on a machine "
            "without a GPU, install the CPU build of torch first), or `make setup-train` in a checkout"
        )


def require_vllm() -> None:
    """Check that vLLM can write rollouts here; the trainer needs it also where a server writes them.

    Raises:
        InputError: It is missing.
    """
    if importlib.util.find_spec("vllm") is None:
        raise InputError(
            "training.layout.generation colocate and server need vllm in the trainer's own environment: run "
            "`pip install 'compoworld[train,vllm]'`, or use the image `train`"
        )
