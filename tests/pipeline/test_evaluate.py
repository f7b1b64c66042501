"""The stage `evaluate`: who is evaluated decides what it reads, and the same seed makes the same rows."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.errors import InputError
from compoworld_core.evaluation.trial import EVALUATIONS, Trial
from compoworld_core.library.registry import library_package
from compoworld_core.llm.config import Endpoint, ModelConfig, Price
from compoworld_core.pipeline.config import load_config
from compoworld_core.pipeline.cost import cost_of
from compoworld_core.pipeline.runner import StageResult, resolve, run_stage
from compoworld_core.pipeline.stage import plan_stage
from compoworld_core.pipeline.stages import GRAPH
from compoworld_core.pipeline.work.evaluate import EvaluateConfig
from compoworld_core.pipeline.workers import Workers
from compoworld_core.rollouts.selection import SelectionRules
from compoworld_core.services.datasets import SERVICES
from compoworld_core.storage import DatasetLocation, Store, merge, open_store, read_dataset, read_sidecars, write_shard
from compoworld_core.tasks.datasets import TASKS
from compoworld_core.tasks.task import Split, Task
from tests.llm_server import LlmServer
from tests.llm_server.scripts.teacher import of_tasks
from tests.pipeline.fakes import Diary
from tests.pipeline.test_teachers import recorded
from tests.rollouts.complaint import SERVICES as NAMES
from tests.rollouts.complaint import complaint_task, open_catalogue

SPLITS: tuple[Split, ...] = ("sft", "eval_combo", "rl", "eval_service", "eval_combo", "eval_task")
INPUTS = {item.name: DatasetLocation(dataset=item.name, key="given") for item in (SERVICES, TASKS)}
PRICE = Price(prompt=Decimal(2), completion=Decimal(10))


@pytest.fixture(scope="module")
def tasks() -> list[Task]:
    return [complaint_task(seed=seed, split=split) for seed, split in enumerate(SPLITS, 1)]


@pytest.fixture(scope="module")
def server(tasks: list[Task]) -> Iterator[LlmServer]:
    """A model that solves every task, and answers wrongly whenever it is asked again."""
    teacher = of_tasks(tasks, open_catalogue(), lambda task, take: None if take == 1 else "answers_wrongly")
    with LlmServer({"student-1": teacher}) as server:
        yield server


def filled(path: Path, tasks: list[Task]) -> Store:
    """A store with services and tasks."""
    store = open_store(path)
    write_shard(store, INPUTS["services"], SERVICES, 0, map(library_package, NAMES), deterministic=True)
    write_shard(store, INPUTS["tasks"], TASKS, 0, tasks, deterministic=True)
    merge(store, INPUTS["services"], SERVICES, 1)
    merge(store, INPUTS["tasks"], TASKS, 1)
    return store


def evaluated(store: Store, config: EvaluateConfig) -> StageResult:
    with Workers(1) as workers:
        return run_stage(store, plan_stage(store, GRAPH["evaluate"], config, INPUTS), workers, Diary())


def rows(store: Store, result: StageResult) -> list[Trial]:
    return list(read_dataset(store, result.plan.location(EVALUATIONS), EVALUATIONS))


def test_references_bound_what_can_be_reached_on_the_held_out_tasks(tasks: list[Task], tmp_path: Path) -> None:
    store = filled(tmp_path / "store", tasks)

    made = rows(store, evaluated(store, EvaluateConfig()))

    held_out = [(task.id, task.split) for task in tasks if task.split.startswith("eval_")]
    assert [(row.model, row.task, row.domain) for row in made] == [
        (name, *task) for name in ("no-op", "oracle", "random") for task in held_out
    ]
    assert {name: {row.passed for row in made if row.model == name} for name in ("no-op", "oracle", "random")} == {
        "no-op": {False},
        "oracle": {True},
        "random": {False},
    }
    assert all({"compoworld", "grader", "tasks"} == row.versions.keys() for row in made)


def test_the_same_seed_makes_the_same_rows_wherever_it_is_run(tasks: list[Task], tmp_path: Path) -> None:
    def digest(folder: str, seed: int) -> str:
        result = evaluated(filled(tmp_path / folder, tasks), EvaluateConfig(trials={"random": 2}, seed=seed))
        return result.commits["evaluations"].digest

    assert digest("one", 5) == digest("other", 5)


def test_the_first_tasks_are_taken_where_fewer_are_wanted(tasks: list[Task], tmp_path: Path) -> None:
    store = filled(tmp_path / "store", tasks)

    made = rows(store, evaluated(store, EvaluateConfig(trials={"no-op": 1}, tasks=2, splits=("eval_combo",))))

    assert [row.task for row in made] == [tasks[1].id, tasks[4].id]


def test_a_run_without_held_out_tasks_has_no_rows(tasks: list[Task], tmp_path: Path) -> None:
    store = filled(tmp_path / "store", tasks[:1])

    assert rows(store, evaluated(store, EvaluateConfig())) == []


def test_a_model_behind_an_endpoint_is_tried_as_often_as_wanted(
    tasks: list[Task], server: LlmServer, tmp_path: Path
) -> None:
    store = filled(tmp_path / "store", tasks)
    models = {"student": ModelConfig(model="student-1", price=PRICE, endpoints=(Endpoint(base_url=server.base_url),))}

    result = evaluated(store, EvaluateConfig(trials={"student": 2}, models=models, concurrency=1))

    made = rows(store, result)
    assert [(row.trial, row.passed) for row in made] == [(0, True), (1, False)] * 4
    assert all(row.versions["model"] == "student-1" for row in made)
    (sidecar,) = read_sidecars(store, result.plan.location(EVALUATIONS))
    assert sum(row.usd or 0 for row in made) == pytest.approx(sum(float(entry["usd"]) for entry in sidecar["spend"]))
    (cost,) = cost_of(store, GRAPH, recorded(store, result), SelectionRules())
    assert (cost.stage, cost.unit, cost.size) == ("evaluate", "scored trials", 8)


# What it reads


def wanted(*policies: str, **flags: Any) -> set[str]:
    trials = {"evaluate.trials": dict.fromkeys(policies, 1)}
    settings = load_config(flags={**trials, **flags}, environment={})
    return {item.name for item in GRAPH["evaluate"].needs(settings.stages["evaluate"])}


def test_trained_models_are_read_only_where_they_are_evaluated() -> None:
    known = {"services", "tasks"}

    assert wanted("oracle") == known
    assert wanted("sft") == known | {"sft_models"}
    assert wanted("grpo", "no-op") == known | {"grpo_models"}
    assert wanted("base") == known | {"sft_models"}, "a model made on the spot is kept by who trains it"
    assert wanted("base", **{"training.base": "some/model"}) == known, "a named model is just loaded"


def test_other_training_settings_make_no_evaluation_of_references_stale() -> None:
    stages = [load_config(flags={"training.base": base}, environment={}).stages for base in ("one", "other")]

    assert stages[0]["evaluate"] == stages[1]["evaluate"]


def test_what_is_missing_is_named_with_the_stage_that_makes_it(tasks: list[Task], tmp_path: Path) -> None:
    configs = load_config(flags={"evaluate.trials": {"sft": 1}}, environment={}).stages

    with pytest.raises(InputError, match="`compoworld"):
        resolve(open_store(tmp_path / "empty"), GRAPH, configs, "evaluate")


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        pytest.param({"trials": {"nobody": 1}}, "evaluate.trials.nobody: llm.models has no 'nobody'", id="unknown"),
        pytest.param({"base": "x"}, "evaluate.base: is taken from training.base", id="base"),
        pytest.param({"trials": {"oracle": 0}}, "evaluate.trials.oracle: 0 is too small", id="no trials"),
    ],
)
def test_what_contradicts_is_refused(flags: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_config(flags={f"evaluate.{name}": value for name, value in flags.items()}, environment={})
