"""Arms: the runs of an ablation, and what came of each.

Stages are keyed by what decides their content, so what arms share is made once: all of the data, and often the
fine-tuned model, too. An ablation that was interrupted goes on where it was, like any run.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from compoworld_core.data import Data
from compoworld_core.errors import CompoWorldError, InputError
from compoworld_core.evaluation.figures import Figures, figures, gained
from compoworld_core.evaluation.heldout import SPLITS
from compoworld_core.evaluation.statistics import Paired
from compoworld_core.evaluation.trial import EVALUATIONS, Trial
from compoworld_core.pipeline.ablation import BUDGET, SEEDS, Comparison
from compoworld_core.pipeline.config import RunConfig, load_config
from compoworld_core.pipeline.runner import StageResult
from compoworld_core.pipeline.stage import Inputs
from compoworld_core.pipeline.stages import everything
from compoworld_core.pipeline.work.learning import model_file, model_table
from compoworld_core.storage import (
    DatasetLocation,
    DatasetType,
    Store,
    digest,
    merge,
    read_dataset,
    write_shard,
)
from compoworld_core.tasks.datasets import TASKS
from compoworld_core.tasks.task import Task
from compoworld_core.training.datasets import GRPO_MODELS, SFT_MODELS
from compoworld_core.training.history import FITTED, METRICS, ROLLOUTS, Epoch, Fitted

_KEY_LENGTH: Final = 24


class ArmResult(Data):
    """What an arm learnt from, and what came of it.

    Attributes:
        value: Of the key, as JSON.
        model: Who was evaluated.
        seeds: Of its trainings.
        conversations: That an epoch of fine-tuning reads.
        tokens: Of those conversations.
        taught_tokens: Those of them that the loss is of.
        steps: Optimiser steps of fine-tuning, of each seed.
        rollouts: That were learnt from afterwards, of each seed.
        rollout_steps: Optimiser steps on them, of each seed.
        figures: On the held-out tasks, all seeds together.
        gains: What it has more than the first arm of the comparison on the same tasks, by measure.
        evaluations: Keys of the datasets with its trials, by seed.
    """

    comparison: str
    key: str
    value: str
    model: str
    seeds: tuple[int, ...]
    conversations: int
    tokens: int
    taught_tokens: int
    steps: int
    rollouts: int
    rollout_steps: int
    figures: Figures
    gains: dict[str, Paired]
    evaluations: tuple[str, ...]


ABLATIONS: Final = DatasetType("ablations", 1, ArmResult)


@dataclass(frozen=True)
class Arm:
    """One of an ablation's runs.

    Attributes:
        value: What the comparison's key is in it.
        config: Of the whole run.
    """

    comparison: str
    key: str
    value: Any
    seed: int
    model: str
    config: RunConfig

    @property
    def name(self) -> str:
        """For people."""
        return f"{self.comparison}: {self.key}={_json(self.value)}, seed {self.seed}"


def arms_of(path: Path | None, flags: Mapping[str, Any]) -> tuple[Arm, ...]:
    """The arms that a configuration asks for: comparison by comparison, value by value, seed by seed.

    Args:
        path: The configuration.
        flags: See `load_config`.

    Raises:
        InputError: There is nothing to compare, an arm's value is wrong, or arms would not learn from equally much.
    """
    base = load_config(path, flags=flags)
    if not base.ablate.compare:
        raise InputError(
            f"{path or 'the configuration'}: ablate.compare: there is nothing to compare; name a key and its values, "
            "as configs/ablation/laptop.yaml does"
        )
    if base.training.sft.taught_tokens is None and (unequal := ", ".join(base.ablate.needing_budget())):
        raise InputError(
            f"{path}: {BUDGET} is not set: the arms of {unequal} learn from different conversations, and without it "
            "one would learn from more than another"
        )
    if trained_on := [name for name in base.evaluate.splits if name not in SPLITS]:
        raise InputError(
            f"{path}: evaluate.splits: tasks of {', '.join(trained_on)} are trained on; use {', '.join(SPLITS)}"
        )
    return tuple(
        _arm(path, flags, base, name, item, value, seed)
        for name, item in base.ablate.compare.items()
        for value in item.values
        for seed in base.ablate.seeds
    )


def _arm(
    path: Path | None,
    flags: Mapping[str, Any],
    base: RunConfig,
    name: str,
    comparison: Comparison,
    value: Any,
    seed: int,
) -> Arm:
    changes = {
        comparison.key: value,
        **dict.fromkeys(SEEDS, seed),
        "evaluate.trials": {comparison.model: base.evaluate.trials.get(comparison.model, 1)},
    }
    config = load_config(path, flags=flags, changes=changes, asked_by=f"ablate.compare.{name}.values")
    return Arm(name, comparison.key, value, seed, comparison.model, config)


def run_arms(
    store: Store, arms: Iterable[Arm], run_stages: Callable[[Arm, Sequence[str]], Sequence[StageResult]]
) -> tuple[ArmResult, ...]:
    """Run all arms, and see what came of them.

    Args:
        store: Where they run.
        arms: Of one ablation, in the order of `arms_of`.
        run_stages: Runs some of an arm's stages.

    Raises:
        InputError: There is no held-out task, or one is not held out.
        CompoWorldError: A stage could not be finished. All that was done is committed.
    """
    runs: list[_Run] = []
    for arm in arms:
        names = [name for name in everything(arm.config.stages) if name != "report"]
        if not runs:
            sampled = run_stages(arm, names[: names.index("sample-tasks") + 1])
            tasks = read_dataset(store, sampled[-1].plan.location(TASKS), TASKS)
            require_held_out(tasks, arm.config.evaluate.splits)
        runs.append(_Run.read(store, arm, run_stages(arm, names)))
    require_same_tasks([item.trials for item in runs])
    found: list[ArmResult] = []
    for _, compared in groupby(runs, key=lambda item: item.arm.comparison):
        values = [list(same) for _, same in groupby(compared, key=lambda item: item.arm.value)]
        found += (_result(values[0], same) for same in values)
    return tuple(found)


@dataclass(frozen=True)
class _Run:
    arm: Arm
    epoch: Epoch
    steps: int
    rollouts: int
    rollout_steps: int
    trials: tuple[Trial, ...]
    evaluation: str

    @classmethod
    def read(cls, store: Store, arm: Arm, results: Sequence[StageResult]) -> _Run:
        """What is known of an arm whose stages are committed."""
        plans = {result.plan.stage.name: result.plan for result in results}
        made = Inputs(store, {name: place for plan in plans.values() for name, place in plan.outputs.items()})
        fitted = model_file(store, made[SFT_MODELS], FITTED)
        assert fitted is not None  # every fine-tuned model has it
        steps = (item.step for item in model_table(store, made[SFT_MODELS], METRICS))
        explored = made.find(GRPO_MODELS)
        return cls(
            arm=arm,
            epoch=Fitted.model_validate_json(fitted.read()).epoch,
            steps=max(steps, default=0),
            rollouts=0 if explored is None else sum(1 for _ in model_table(store, explored, ROLLOUTS)),
            rollout_steps=0
            if explored is None
            else max((item.step for item in model_table(store, explored, METRICS)), default=0),
            trials=tuple(made[EVALUATIONS]),
            evaluation=plans["evaluate"].key,
        )


def _result(first: Sequence[_Run], runs: Sequence[_Run]) -> ArmResult:
    """What the trainings of one arm came to, compared with those of the first."""
    arm, one = runs[0].arm, runs[0]
    trials = [trial for run in runs for trial in run.trials]
    return ArmResult(
        comparison=arm.comparison,
        key=arm.key,
        value=_json(arm.value),
        model=arm.model,
        seeds=tuple(run.arm.seed for run in runs),
        conversations=one.epoch.conversations,
        tokens=one.epoch.tokens,
        taught_tokens=one.epoch.taught,
        steps=one.steps,
        rollouts=one.rollouts,
        rollout_steps=one.rollout_steps,
        figures=figures(trials),
        gains=gained([trial for run in first for trial in run.trials], trials),
        evaluations=tuple(run.evaluation for run in runs),
    )


def require_held_out(tasks: Iterable[Task], splits: Collection[str]) -> None:
    """Check that there are tasks to evaluate on, and that no training task shows what a held-out one is to find out.

    Args:
        splits: That are evaluated on.

    Raises:
        InputError: There is no task of these splits, a held-out task's services are all trained on, or a training task
            combines the same services (where there is one only, the same tools).
    """
    tasks = tuple(tasks)
    if not any(task.split in splits for task in tasks):
        raise InputError(f"there are no held-out tasks; raise tasks.count, or the shares of {' and '.join(splits)}")
    training = [task for task in tasks if task.split not in SPLITS]
    seen = {pin.name for task in training for pin in task.recipe.services}
    combined = {_combination(task) for task in training}
    for task in tasks:
        if task.split == "eval_service" and seen.issuperset(task.core):
            raise InputError(
                f"{task.id} of split eval_service leaks: training tasks have all of {', '.join(task.core)}"
            )
        if task.split == "eval_combo" and (parts := _combination(task)) in combined:
            raise InputError(f"{task.id} of split eval_combo leaks: a training task combines {', '.join(parts)}, too")


def _combination(task: Task) -> tuple[str, ...]:
    return task.core if len(task.core) > 1 else tuple(sorted(task.solution.tools))


def require_same_tasks(arms: Sequence[Sequence[Trial]]) -> None:
    """Check that arms were evaluated on the same tasks.

    Raises:
        CompoWorldError: Arms differ.
    """
    if len({frozenset(trial.task for trial in trials) for trials in arms}) > 1:
        raise CompoWorldError("a bug: arms were evaluated on different tasks")


def store_results(store: Store, results: Sequence[ArmResult]) -> DatasetLocation:
    """Keep the results as a dataset; the same results are kept once."""
    location = DatasetLocation(dataset=ABLATIONS.name, key=digest([row.model_dump() for row in results])[:_KEY_LENGTH])
    write_shard(store, location, ABLATIONS, 0, results, deterministic=True)
    merge(store, location, ABLATIONS, 1)
    return location


def store_picture(store: Store, results: DatasetLocation, picture: str) -> str:
    """Keep a picture beside the results; gives its name, which another picture of the same results does not have."""
    name = f"{results.path}/ablation-{digest(picture)[:_KEY_LENGTH]}.svg"
    store.create(name, picture.encode())
    return name


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
