"""τ³-Banking: pass^k by its definition, and nothing that the harness leaves out is lost."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.errors import InputError
from compoworld_core.evaluation.benchmarks import benchmark
from compoworld_core.evaluation.collection import Collection
from compoworld_core.storage import canonical_json
from compoworld_core.storage.digest import JsonObject
from tests.evaluation.benchmarks.simulated import broken_tau, tau_results, tau_simulation
from tests.evaluation.benchmarks.written import CANARY, order, put, served

BENCH = benchmark("tau3-banking")


def collected(folder: Path, *simulations: JsonObject, tasks: tuple[str, ...] = ("one", "two")) -> Collection:
    put(folder / "simulations/run/results.json", tau_results(simulations, tasks))
    return BENCH.collect(folder)


def trials(task: str, rewards: list[float]) -> list[JsonObject]:
    return [tau_simulation(task, trial, reward) for trial, reward in enumerate(rewards)]


def test_pass_hat_k_is_the_mean_over_tasks_of_the_chance_that_k_trials_pass(tmp_path: Path) -> None:
    collection = collected(tmp_path, *trials("one", [1, 1, 0]), *trials("two", [1, 0, 0]))

    values = {metric.name: metric.value for metric in (collection.headline, *collection.metrics)}
    assert collection.headline.name == "pass^1"
    assert values == {
        "pass^1": pytest.approx((2 / 3 + 1 / 3) / 2),
        "pass^2": pytest.approx((1 / 3 + 0) / 2),
        "pass^3": 0,
    }
    assert collection.headline.units == 2


@pytest.mark.parametrize(("reward", "passed"), [(1.0, True), (1 - 1e-7, True), (0.99, False)])
def test_a_reward_within_a_millionth_of_one_is_a_pass(tmp_path: Path, reward: float, passed: bool) -> None:
    collection = collected(tmp_path, *trials("one", [reward] * 3), tasks=("one",))

    assert {row.passed for row in collection.rows} == {passed}


def test_rows_tell_what_the_agent_took(tmp_path: Path) -> None:
    row = collected(tmp_path, *trials("one", [1] * 3), tasks=("one",)).rows[0]

    assert (row.steps, row.prompt_tokens, row.completion_tokens, row.usd) == (2, 220, 10, 0.25)
    assert (row.criteria, row.domain, row.model) == ((True,), "banking_knowledge", "org/Model-1.5")


def test_trials_that_never_ran_are_dropped_as_the_harness_does_and_told(tmp_path: Path) -> None:
    collection = collected(tmp_path, *trials("one", [1, 1])[:2], broken_tau("one", 2), *trials("two", [0, 0, 0]))

    assert collection.headline.value == 0.5
    assert [metric.name for metric in collection.metrics] == ["pass^2"]
    assert [(gap.task, gap.trial) for gap in collection.drops] == [("one", 2)]
    assert "infrastructure_error: 401" in collection.drops[0].reason
    assert [row.passed for row in collection.rows if row.error] == [None]


def test_trials_that_are_not_there_are_missing(tmp_path: Path) -> None:
    collection = collected(tmp_path, *trials("one", [1, 1, 1]), *trials("two", [1]))

    assert [(gap.task, gap.trial) for gap in collection.missing] == [("two", 1), ("two", 2)]
    assert collection.headline.value == 1


def test_a_run_that_was_cut_off_counts_and_keeps_the_reason(tmp_path: Path) -> None:
    cut = tau_simulation("one", 0, 0.0, termination_reason="max_steps")

    row = collected(tmp_path, cut, tasks=("one",)).rows[0]

    assert (row.passed, row.error) == (False, "max_steps")


def test_one_malformed_trial_is_a_drop_with_its_field(tmp_path: Path) -> None:
    bad = tau_simulation("two", 0, 0.0, reward_info={"reward": "high"})

    collection = collected(tmp_path, *trials("one", [1, 1, 1]), bad)

    assert collection.headline.value == 1
    assert "simulations[3].reward_info.reward: expected a number" in collection.drops[0].reason


@pytest.mark.parametrize(
    ("change", "told"),
    [
        pytest.param({"info": {}}, "info.environment_info: is missing", id="info"),
        pytest.param({"tasks": [{"name": "one"}]}, r"tasks\[0\].id: is missing", id="tasks"),
        pytest.param({"simulations": [{"trial": 0}]}, r"simulations\[0\].task_id: is missing", id="task"),
        pytest.param({"simulations": {}}, "simulations: expected an array", id="simulations"),
    ],
)
def test_malformed_results_are_refused_with_file_and_field(tmp_path: Path, change: JsonObject, told: str) -> None:
    document = tau_results(trials("one", [1, 1, 1]), ["one"])
    if "info" in change:
        del document["info"]["environment_info"]
        change = {}
    put(tmp_path / "results.json", {**document, **change})

    with pytest.raises(InputError, match=f"results.json: {told}"):
        BENCH.collect(tmp_path)


@pytest.mark.parametrize(
    ("spoil", "told"),
    [
        pytest.param(
            lambda d: d["info"]["environment_info"].update(domain_name="retail"),
            "info.environment_info.domain_name: 'retail' is not of this benchmark",
            id="another domain",
        ),
        pytest.param(
            lambda d: d["info"].update(num_trials=2),
            r"simulations\[2\].trial: is 2, and .* there are 2",
            id="more trials than were to be run",
        ),
        pytest.param(lambda d: d["simulations"][0].update(trial=-1), "trial: is -1", id="no trial"),
        pytest.param(lambda d: d["simulations"][0].update(task_id="x"), "'x' is none of the tasks", id="no task"),
    ],
)
def test_what_was_not_to_be_run_is_no_part_of_the_score(tmp_path: Path, spoil: Any, told: str) -> None:
    document = tau_results(trials("one", [1, 1, 1]), ["one"])
    spoil(document)
    put(tmp_path / "results.json", document)

    with pytest.raises(InputError, match=told):
        BENCH.collect(tmp_path)


@pytest.mark.parametrize("number", [10**400, float("nan"), float("inf"), -1])
def test_a_reward_that_is_no_share_is_a_drop(tmp_path: Path, number: float) -> None:
    collection = collected(tmp_path, *trials("one", [1, 1, 1]), tau_simulation("two", 0, number))

    assert "simulations[3].reward_info.reward: expected a number" in collection.drops[0].reason


def test_runs_that_tried_tasks_differently_often_are_not_one_score(tmp_path: Path) -> None:
    put(tmp_path / "a/results.json", tau_results(trials("one", [1, 1, 1]), ["one"]))
    put(tmp_path / "b/results.json", tau_results(trials("two", [1]), ["two"], trials=1))

    with pytest.raises(InputError, match="has runs with 1, 3 trials of each task"):
        BENCH.collect(tmp_path)


def test_what_differs_between_files_is_told_of_all_of_them(tmp_path: Path) -> None:
    other = tau_results(trials("two", [1, 1, 1]), ["two"])
    other["info"]["retrieval_config"], other["info"]["user_info"]["llm"] = "alltools", "openai/another"
    put(tmp_path / "a/results.json", tau_results(trials("one", [1, 1, 1]), ["one"]))
    put(tmp_path / "b/results.json", other)

    setting = BENCH.collect(tmp_path).setting

    assert (setting["retrieval"], setting["user"]) == ("alltools, bm25", "another, simulator")


def test_what_is_shown_of_a_wrong_value_has_no_key(tmp_path: Path) -> None:
    document = tau_results(trials("one", [1, 1, 1]), ["one"])
    document["info"]["agent_info"]["llm"] = {"api_key": CANARY}
    put(tmp_path / "results.json", document)

    with pytest.raises(InputError, match="expected text") as caught:
        BENCH.collect(tmp_path)
    assert CANARY not in str(caught.value)


def test_a_file_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    whole = json.dumps(tau_results(trials("one", [1, 1, 1]), ["one"]))
    (tmp_path / "results.json").write_text(whole[: len(whole) // 2])

    with pytest.raises(InputError, match=r"results.json: is not JSON: .* cut short"):
        BENCH.collect(tmp_path)


def test_a_folder_without_results_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"has no results.json"):
        BENCH.collect(tmp_path)
    with pytest.raises(InputError, match="there is no such folder"):
        BENCH.collect(tmp_path / "nowhere")


def test_simulations_in_files_of_their_own_are_read(tmp_path: Path) -> None:
    document = tau_results([], ["one"])
    del document["simulations"]
    put(tmp_path / "results.json", document)
    for simulation in trials("one", [1, 0, 0]):
        put(tmp_path / "simulations" / f"{simulation['id']}.json", simulation)

    assert BENCH.collect(tmp_path).headline.value == pytest.approx(1 / 3)


def test_shards_are_collected_together_and_the_same_trial_twice_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "shard-000/run/results.json", tau_results(trials("one", [1, 1, 1]), ["one"]))
    put(tmp_path / "shard-001/run/results.json", tau_results(trials("two", [0, 0, 0]), ["two"]))
    assert BENCH.collect(tmp_path).headline.value == 0.5

    put(tmp_path / "shard-002/run/results.json", tau_results(trials("two", [0, 0, 0]), ["two"]))
    with pytest.raises(InputError, match="'two' has trial 0 twice"):
        BENCH.collect(tmp_path)


def test_results_of_two_models_are_refused(tmp_path: Path) -> None:
    other = tau_results(trials("two", [1, 1, 1]), ["two"])
    other["info"]["agent_info"]["llm"] = "openai/other"
    put(tmp_path / "a/results.json", tau_results(trials("one", [1, 1, 1]), ["one"]))
    put(tmp_path / "b/results.json", other)

    with pytest.raises(InputError, match="several models"):
        BENCH.collect(tmp_path)


def test_no_key_is_kept_wherever_the_harness_left_it(tmp_path: Path) -> None:
    collection = collected(tmp_path, broken_tau("one", 0), *trials("two", [1, 1, 1]))

    assert "key [secret] is not known" in (collection.rows[0].error or "")
    assert CANARY not in canonical_json(collection)


def harness(tmp_path: Path, tasks: int) -> None:
    for number in range(tasks):
        put(
            tmp_path / f"harness/data/tau2/domains/banking_knowledge/tasks/task_{number:03d}.json",
            {"id": f"task_{number:03d}"},
        )


def rendered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **fields: Any) -> Any:
    for variable in ("AGENT_KEY", "USER_KEY"):
        monkeypatch.setenv(variable, f"{CANARY}-{variable}")
    return BENCH.render(order(tmp_path, **{"user": served("simulator"), **fields}))


def test_the_command_names_endpoint_and_retrieval_but_no_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (job,) = rendered(tmp_path, monkeypatch, limit=2, trials=2)

    after = dict(pairwise(job.command))
    assert (after["--retrieval-config"], after["--num-tasks"], after["--num-trials"]) == ("bm25", "2", "2")
    assert json.loads(after["--agent-llm-args"]) == {"api_base": "http://127.0.0.1:9/v1", "temperature": 0.0}
    assert after["--user-llm"] == "openai/simulator"
    assert set(job.keys) == {"OPENAI_API_KEY"}
    assert job.environment["LITELLM_LOCAL_MODEL_COST_MAP"] == "True"
    assert CANARY not in canonical_json(job.model_dump(mode="json"))


def test_a_user_with_another_key_gets_a_variable_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (job,) = rendered(tmp_path, monkeypatch, user=served("simulator", "USER_KEY"))

    assert {variable: endpoint.key_env for variable, endpoint in job.keys.items()} == {
        "OPENAI_API_KEY": "AGENT_KEY",
        "LITELLM_PROXY_API_KEY": "USER_KEY",
    }
    assert "litellm_proxy/simulator" in job.command


@pytest.mark.parametrize(("shards", "sizes"), [(3, [4, 3, 3]), (12, [1] * 10)])
def test_shards_cover_the_tasks_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shards: int, sizes: list[int]
) -> None:
    harness(tmp_path, 12)

    jobs = rendered(tmp_path, monkeypatch, shards=shards, limit=10)

    tasks = [
        [word for word in job.command[job.command.index("--task-ids") + 1 :] if word.startswith("task_")]
        for job in jobs
    ]
    assert [len(found) for found in tasks] == sizes
    assert sorted(task for found in tasks for task in found) == [f"task_{number:03d}" for number in range(10)]
