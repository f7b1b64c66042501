"""VitaBench 2.0: a unit is a subtask of a user, and what the harness leaves out is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.errors import InputError
from compoworld_core.evaluation.benchmarks import benchmark
from compoworld_core.evaluation.collection import Collection
from compoworld_core.storage import canonical_json
from compoworld_core.storage.digest import JsonObject
from tests.evaluation.benchmarks.simulated import vita2_results, vita2_simulation, vita_results
from tests.evaluation.benchmarks.written import CANARY, order, put, served

BENCH = benchmark("vitabench2")


def collected(folder: Path, users: dict[str, int], *simulations: JsonObject) -> Collection:
    put(folder / "results.json", vita2_results(simulations, users))
    return BENCH.collect(folder)


def test_units_are_subtasks_and_each_counts_once(tmp_path: Path) -> None:
    collection = collected(
        tmp_path,
        {"u1": 2, "u2": 1},
        vita2_simulation("u1", 0, {0: 1.0, 1: 1.0}, 2),
        vita2_simulation("u1", 1, {0: 0.0, 1: 1.0}, 2),
        vita2_simulation("u2", 0, {0: 0.0}, 1),
        vita2_simulation("u2", 1, {0: 0.0}, 1),
    )

    values = {metric.name: metric.value for metric in (collection.headline, *collection.metrics)}
    assert collection.headline.name == "Avg@2"
    assert collection.headline.units == 3
    assert values["Avg@2"] == pytest.approx((0.5 + 1 + 0) / 3)
    assert values["pass@2"] == pytest.approx(2 / 3)
    assert values["pass^2"] == pytest.approx(1 / 3)
    assert [row.task for row in collection.rows] == ["u1/0", "u1/0", "u1/1", "u1/1", "u2/0", "u2/0"]


def test_what_a_user_took_is_counted_once(tmp_path: Path) -> None:
    simulation = vita2_simulation("u1", 0, {0: 1.0, 1: 1.0}, 2)

    collection = collected(tmp_path, {"u1": 2}, simulation, vita2_simulation("u1", 1, {0: 1.0, 1: 1.0}, 2))

    assert sum(row.prompt_tokens or 0 for row in collection.rows if row.trial == 0) == 220


def test_a_missing_trial_counts_as_failed_in_each_subtask_and_is_told(tmp_path: Path) -> None:
    collection = collected(tmp_path, {"u1": 2}, vita2_simulation("u1", 0, {0: 1.0, 1: 1.0}, 2))

    assert collection.headline.value == 0.5
    assert [(gap.task, gap.trial) for gap in collection.missing] == [("u1", 1)]
    assert [row.error for row in collection.errors] == ["counts 0: the harness stored no result"] * 2


def test_a_subtask_without_a_reward_counts_as_failed(tmp_path: Path) -> None:
    collection = collected(
        tmp_path,
        {"u1": 2},
        vita2_simulation("u1", 0, {0: 1.0, 1: 1.0}, 2),
        vita2_simulation("u1", 1, {0: 1.0}, 2),
    )

    assert collection.headline.value == pytest.approx(0.75)
    assert [(row.task, row.trial) for row in collection.errors] == [("u1/1", 1)]
    assert collection.missing == ()


def test_subtasks_that_no_trial_came_to_are_dropped_and_told(tmp_path: Path) -> None:
    collection = collected(tmp_path, {"u1": 3}, *(vita2_simulation("u1", trial, {0: 1.0}, 3) for trial in range(2)))

    assert collection.headline.units == 1
    assert [gap.task for gap in collection.drops] == ["u1/1", "u1/2"]


def test_users_without_any_result_are_dropped_and_told(tmp_path: Path) -> None:
    collection = collected(
        tmp_path, {"u1": 1, "u2": 9}, *(vita2_simulation("u1", trial, {0: 1.0}, 1) for trial in range(2))
    )

    assert collection.headline.value == 1
    assert [(gap.task, "its 9 subtasks are left out" in gap.reason) for gap in collection.drops] == [("u2", True)]


def test_a_trial_in_which_nothing_was_judged_counts_as_failed(tmp_path: Path) -> None:
    collection = collected(
        tmp_path, {"u1": 1}, vita2_simulation("u1", 0, {0: 1.0}, 1), vita2_simulation("u1", 1, {}, 1)
    )

    assert collection.headline.value == 0.5
    assert collection.missing[0].reason == "counts 0: no subtask has a reward"


def test_a_malformed_trial_counts_as_failed_with_its_field(tmp_path: Path) -> None:
    bad = vita2_simulation("u1", 1, {0: 1.0}, 1, reward_info={"info": {"subtask_rewards": {"subtask_0_reward": "1"}}})

    collection = collected(tmp_path, {"u1": 1}, vita2_simulation("u1", 0, {0: 1.0}, 1), bad)

    assert collection.headline.value == 0.5
    assert "subtask_0_reward: expected a number" in collection.missing[0].reason


def test_a_single_trial_is_a_result_that_the_harness_does_not_print(tmp_path: Path) -> None:
    put(tmp_path / "r.json", vita2_results([vita2_simulation("u1", 0, {0: 1.0}, 1)], {"u1": 1}, trials=1))

    collection = BENCH.collect(tmp_path)

    assert (collection.headline.name, collection.headline.value) == ("Avg@1", 1)
    assert "several trials only" in collection.warnings[0]


def test_the_same_trial_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"simulations\[1\]: user 'u1' has trial 0 twice"):
        collected(tmp_path, {"u1": 1}, *(vita2_simulation("u1", 0, {0: 1.0}, 1) for _ in range(2)))


def rendered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **fields: Any) -> Any:
    for variable in ("AGENT_KEY", "JUDGE_KEY"):
        monkeypatch.setenv(variable, f"{CANARY}-{variable}")
    return BENCH.render(order(tmp_path, **{"user": served("simulator"), **fields}))


def test_the_config_file_names_variables_in_place_of_keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (job,) = rendered(tmp_path, monkeypatch)

    entries = json.loads(job.files["models.yaml"])["models"]
    assert entries[0] == {
        "name": "org/Model-1.5",
        "base_url": "http://127.0.0.1:9/v1",
        "api_key": "${AGENT_KEY}",
        "temperature": 0.0,
    }
    assert job.environment["VITA_MODEL_CONFIG_PATH"] == str(tmp_path / "out/shard-000/models.yaml")
    assert "full_context" in job.command
    assert CANARY not in canonical_json(job.model_dump(mode="json"))


def test_two_models_of_one_name_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"'org/Model-1\.5' stands for two different ones"):
        rendered(tmp_path, monkeypatch, user=served("org/Model-1.5", None))


def test_retrieval_needs_a_model_of_embeddings(tmp_path: Path) -> None:
    assert "VITA_EMBEDDING_KEY" in BENCH.needs_for(order(tmp_path, options={"memory": "rag"})).secrets
    assert BENCH.needs_for(order(tmp_path)).secrets == ()


def test_users_and_trials_that_were_not_to_be_run_are_refused_and_not_left_out(tmp_path: Path) -> None:
    for user, trial in (("u2", 0), ("u1", 2)):
        put(tmp_path / "r.json", vita2_results([vita2_simulation(user, trial, {0: 1.0}, 1)], {"u1": 1}))

        with pytest.raises(InputError, match=r"is none of the tasks|is 2, and .* there are 2"):
            BENCH.collect(tmp_path)


def test_results_of_the_first_vitabench_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "r.json", vita_results([], {"1": "delivery"}))

    with pytest.raises(InputError, match="domain_name: 'delivery' is not of this benchmark"):
        BENCH.collect(tmp_path)
