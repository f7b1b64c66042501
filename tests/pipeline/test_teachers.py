"""Teachers over real HTTP: every rollout is accounted for, every answer is paid once, and the cost adds up."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.cli import run_cli
from compoworld_core.errors import InputError
from compoworld_core.library.registry import library_package
from compoworld_core.llm.config import Budget, Endpoint, ModelConfig, Price
from compoworld_core.pipeline.harvest import spent
from compoworld_core.pipeline.run import DatasetRecord, RunRecord, Totals
from compoworld_core.pipeline.runner import StageResult, committed, run_stage
from compoworld_core.pipeline.stage import StagePlan, plan_stage
from compoworld_core.pipeline.stages import GRAPH
from compoworld_core.pipeline.work.distill import DistillConfig
from compoworld_core.pipeline.workers import Workers
from compoworld_core.rollouts.selection import SelectionRules, select
from compoworld_core.rollouts.trajectory import TRAJECTORIES, Trajectory
from compoworld_core.services.datasets import SERVICES
from compoworld_core.storage import (
    DatasetLocation,
    Store,
    canonical_json,
    merge,
    open_store,
    read_dataset,
    read_sidecars,
    write_shard,
)
from compoworld_core.storage.digest import JsonObject
from compoworld_core.tasks.datasets import TASKS
from compoworld_core.tasks.task import Split, Task
from tests.llm_server import LlmServer, Reply, Script
from tests.llm_server.scripts.teacher import Slip, Teacher, of_tasks
from tests.pipeline.fakes import Diary
from tests.rollouts.complaint import SERVICES as NAMES
from tests.rollouts.complaint import complaint_task, open_catalogue

SPLITS: tuple[Split, ...] = ("sft", "sft", "sft", "eval_combo", "rl")
INPUTS = {item.name: DatasetLocation(dataset=item.name, key="given") for item in (SERVICES, TASKS)}
PRICE = Price(prompt=Decimal(2), cached=Decimal("0.5"), completion=Decimal(10))
USAGE = {
    "prompt_tokens": 1000,
    "completion_tokens": 100,
    "total_tokens": 1100,
    "prompt_tokens_details": {"cached_tokens": 400},
}
EACH = Decimal("0.0024")
"""Dollars for one answer: (600 × 2 + 400 × 0.5 + 100 × 10) / 1,000,000."""


@pytest.fixture(scope="module")
def tasks() -> list[Task]:
    return [complaint_task(seed=seed, split=split) for seed, split in enumerate(SPLITS, 1)]


@pytest.fixture
def store(tasks: list[Task], tmp_path: Path) -> Store:
    """A store with services and tasks."""
    store = open_store(tmp_path / "store")
    write_shard(store, INPUTS["services"], SERVICES, 0, map(library_package, NAMES), deterministic=True)
    write_shard(store, INPUTS["tasks"], TASKS, 0, tasks, deterministic=True)
    merge(store, INPUTS["services"], SERVICES, 1)
    merge(store, INPUTS["tasks"], TASKS, 1)
    return store


@pytest.fixture(scope="module")
def server(tasks: list[Task]) -> Iterator[LlmServer]:
    """`good` solves every task, `poor` none but the first, `careless` forgets a comma in every call at first."""

    def poor(task: Task, take: int) -> Slip | None:
        return None if task.id == tasks[0].id else "answers_wrongly"

    catalogue = open_catalogue()
    teachers = {
        "good-1": of_tasks(tasks, catalogue, thinks=True),
        "poor-1": of_tasks(tasks, catalogue, poor),
        "careless-1": of_tasks(tasks, catalogue, lambda task, take: "malformed"),
    }
    with LlmServer({name: metered(teacher) for name, teacher in teachers.items()}) as server:
        yield server


def metered(teacher: Teacher) -> Script:
    """The same teacher, with every answer at the same price."""

    async def answer(request: JsonObject) -> Reply:
        return replace(await teacher(request), usage=USAGE)

    return answer


@pytest.fixture(autouse=True)
def _fresh(server: LlmServer) -> None:
    server.requests.clear()


def config(server: LlmServer, budget: Budget | None = None, price: Price = PRICE, **fields: Any) -> DistillConfig:
    models = {
        name: ModelConfig(model=f"{name}-1", price=price, endpoints=(Endpoint(base_url=server.base_url),))
        for name in fields["teachers"]
    }
    return DistillConfig.model_validate({"policy": "llm", "models": models, "budget": budget or Budget(), **fields})


def planned(store: Store, config: DistillConfig) -> StagePlan:
    return plan_stage(store, GRAPH["distill"], config, INPUTS)


def distilled(store: Store, config: DistillConfig) -> StageResult:
    with Workers(1) as workers:
        return run_stage(store, planned(store, config), workers, Diary())


def recorded(store: Store, result: StageResult) -> RunRecord:
    """A run that has nothing but what was given and the trajectories."""
    locations = {**INPUTS, **result.plan.outputs}
    datasets = {name: DatasetRecord(key=at.key, rows=5, digest=at.key) for name, at in locations.items()}
    totals = Totals(
        specs=0, rejections=0, services=4, synthesised=0, tools={}, attempts=0, tasks=5, trajectories=0, successes=0
    )
    record = RunRecord(version="0", datasets=datasets, totals=totals, failed_gates=())
    store.create(f"runs/{record.id}.json", canonical_json(record).encode())
    return record


def rows(store: Store, result: StageResult) -> list[Trajectory]:
    return list(read_dataset(store, result.plan.location(TRAJECTORIES), TRAJECTORIES))


def test_two_teachers_take_turns_and_only_training_tasks_are_worked_on(
    store: Store, tasks: list[Task], server: LlmServer
) -> None:
    made = rows(store, distilled(store, config(server, teachers={"poor": 1, "good": 2})))

    assert [(row.task_id, row.rollout_idx, row.policy) for row in made] == [
        (task.id, index, policy) for task in tasks[:3] for index, policy in enumerate(("good", "poor", "good"))
    ]
    assert [row.succeeded for row in made] == [True, True, True, *[True, False, True] * 2]
    assert all(row.error is None for row in made)
    thoughts = [getattr(message, "reasoning_content", None) for message in made[0].messages]
    assert any(thoughts), "what a teacher thinks is kept"


def test_rollouts_that_are_skipped_are_counted(store: Store, tasks: list[Task], server: LlmServer) -> None:
    result = distilled(store, config(server, teachers={"good": 4, "poor": 4}, settle_after=3, enough=4))

    made = rows(store, result)
    (sidecar,) = read_sidecars(store, result.plan.location(TRAJECTORIES))
    run = Counter(row.task_id for row in made)
    assert sidecar["skipped"] == {tasks[0].id: ["always", 5], tasks[1].id: ["enough", 1], tasks[2].id: ["enough", 1]}
    assert {task.id: run[task.id] + sidecar["skipped"][task.id][1] for task in tasks[:3]} == dict.fromkeys(run, 8)


def test_calls_that_are_no_json_are_answered_and_never_become_training_data(
    store: Store, tasks: list[Task], server: LlmServer
) -> None:
    made = rows(store, distilled(store, config(server, teachers={"careless": 1})))

    assert all(row.succeeded and not row.is_well_formed for row in made)
    assert select(made, tasks, SelectionRules()).counts == {"not_well_formed": 3}


def test_evaluation_tasks_that_teachers_worked_on_are_not_selected(
    store: Store, tasks: list[Task], server: LlmServer
) -> None:
    made = rows(store, distilled(store, config(server, teachers={"good": 1}, splits=["sft", "eval_combo"])))

    assert [row.task_id for row in made] == [task.id for task in tasks[:4]]
    assert select(made, tasks, SelectionRules()).counts == {"kept": 3, "eval_combo": 1}


def test_spent_budget_stops_cleanly_and_a_larger_one_pays_only_what_is_missing(
    store: Store, tasks: list[Task], server: LlmServer, tmp_path: Path
) -> None:
    teachers = {"good": 2}
    plan = planned(store, config(server, teachers=teachers))

    with pytest.raises(InputError, match=r"raise budget\.usd and run the same command") as stopped:
        distilled(store, config(server, Budget(usd=Decimal("0.2")), teachers=teachers))

    assert stopped.value.exit_code == 2
    assert "episodes had ended" in str(stopped.value)
    assert committed(store, plan) is None
    assert not list(store.names(f"trajectories/{plan.key}/shard=0/_COMMIT.json"))
    paid = len(server.requests)
    assert len(list(store.names("journal"))) == paid > 0

    result = distilled(store, config(server, Budget(usd=Decimal(50)), teachers=teachers))

    assert result.plan.key == plan.key, "a budget is no content"
    (sidecar,) = read_sidecars(store, result.plan.location(TRAJECTORIES))
    asked = sum(entry["requests"] for entry in sidecar["spend"])
    assert sum(entry["journaled"] for entry in sidecar["spend"]) == paid
    assert len(server.requests) == asked
    made = rows(store, result)
    assert sum(PRICE.of(row.usage) for row in made) == sum(Decimal(entry["usd"]) for entry in sidecar["spend"])


def test_the_journal_alone_makes_the_same_trajectories_whatever_the_prices(
    store: Store, server: LlmServer, tmp_path: Path
) -> None:
    first = distilled(store, config(server, teachers={"good": 1}))
    asked = len(server.requests)
    other = open_store(tmp_path / "other")
    for name in store.names(""):
        if name.startswith(("services", "tasks", "journal")):
            other.create(name, store.read(name) or b"")
    price = Price(prompt=Decimal(20), cached=Decimal(5), completion=Decimal(100))

    again = distilled(other, config(server, price=price, teachers={"good": 1}))

    assert len(server.requests) == asked
    assert again.plan.key == first.plan.key
    assert again.commits["trajectories"].digest == first.commits["trajectories"].digest
    cheap, dear = (spent(read_sidecars(place, first.plan.location(TRAJECTORIES))) for place in (store, other))
    assert dear == 10 * cheap == 10 * EACH * asked


def test_cost_is_what_the_server_counted_by_model_task_and_selected_trajectory(
    store: Store, tasks: list[Task], server: LlmServer, capsys: pytest.CaptureFixture[str]
) -> None:
    result = distilled(store, config(server, teachers={"good": 2, "poor": 1}))
    record = recorded(store, result)
    asked = Counter(request.model for request in server.requests)

    assert run_cli(["cost", record.id, "--store", store.uri, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert run_cli(["cost", record.id, "--store", store.uri]) == 0
    lines = capsys.readouterr().out.splitlines()

    total = EACH * len(server.requests)
    stage = told["stages"]["distill"]
    assert Decimal(told["usd"]) == Decimal(stage["usd"]) == total
    assert {model: about["requests"] for model, about in stage["models"].items()} == {
        "good": asked["good-1"],
        "poor": asked["poor-1"],
    }
    assert stage["models"]["good"]["cached_tokens"] == 400 * asked["good-1"]
    assert set(stage["items"]) == {task.id for task in tasks[:3]}
    assert sum(Decimal(about["usd"]) for about in stage["items"].values()) == total
    selection = select(rows(store, result), tasks, SelectionRules())
    assert stage["accepted"] == {
        "unit": "selected trajectories",
        "count": selection.size,
        "usd_each": f"{total / selection.size:.6f}",
    }
    assert sum(about["accepted"] for about in stage["items"].values()) == selection.size > 0
    assert PRICE.of(selection.usage) == total
    assert [line.split()[:3] for line in lines[2:5]] == [
        ["distill", "good", str(asked["good-1"])],
        ["distill", "poor", str(asked["poor-1"])],
        ["all", "all", str(len(server.requests))],
    ]
    assert all("40%" in line for line in lines[2:5])
    assert lines[-1] == (
        f"distill: {selection.size} selected trajectories for {total:.4f} US dollars, "
        f"{total / selection.size:.4f} US dollars each"
    )


def test_run_without_models_says_that_it_cost_nothing(
    store: Store, server: LlmServer, capsys: pytest.CaptureFixture[str]
) -> None:
    record = recorded(store, distilled(store, DistillConfig()))

    assert run_cli(["cost", record.id, "--store", store.uri]) == 0
    assert "no model was asked" in capsys.readouterr().out
    assert run_cli(["cost", record.id, "--store", store.uri, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"run": record.id, "usd": "0", "stages": {}}
