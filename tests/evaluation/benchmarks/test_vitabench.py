"""VitaBench: Avg@n with pass@k and pass^k, over all parts."""

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
from tests.evaluation.benchmarks.simulated import vita2_results, vita2_simulation, vita_results, vita_simulation
from tests.evaluation.benchmarks.written import CANARY, order, put, served

BENCH = benchmark("vitabench")


def trials(task: str, passed: str) -> list[JsonObject]:
    """Trials of a task: `+` passes, `-` meets one of two rubrics."""
    return [vita_simulation(task, trial, [True, sign == "+"]) for trial, sign in enumerate(passed)]


def collected(folder: Path, *simulations: JsonObject) -> Collection:
    tasks = {"1": "delivery", "2": "delivery"}
    put(folder / "delivery.json", vita_results(simulations, tasks))
    return BENCH.collect(folder)


def test_avg_is_the_mean_over_tasks_of_the_share_of_trials_that_passed(tmp_path: Path) -> None:
    collection = collected(tmp_path, *trials("1", "++--"), *trials("2", "---+"))

    values = {metric.name: metric.value for metric in (collection.headline, *collection.metrics)}
    assert collection.headline.name == "Avg@4"
    assert values["Avg@4"] == pytest.approx(3 / 8)
    assert values["pass@1"] == values["pass^1"] == pytest.approx(3 / 8)
    assert values["pass@2"] == pytest.approx(((1 - 1 / 6) + (1 - 3 / 6)) / 2)
    assert values["pass@4"] == 1
    assert values["pass^2"] == pytest.approx(1 / 6 / 2)
    assert values["pass^4"] == 0


def test_a_trial_passes_only_with_all_rubrics_and_keeps_the_share(tmp_path: Path) -> None:
    rows = collected(tmp_path, *trials("1", "+---"), *trials("2", "----")).rows

    assert [(row.passed, row.score, row.criteria) for row in rows[:2]] == [
        (True, 1.0, (True, True)),
        (False, 0.5, (True, False)),
    ]
    assert (rows[0].steps, rows[0].prompt_tokens, rows[0].domain) == (2, 220, "delivery")


def test_trials_that_failed_are_not_stored_by_the_harness_and_therefore_missing(tmp_path: Path) -> None:
    collection = collected(tmp_path, *trials("1", "++++"), *trials("2", "--"))

    assert collection.headline.value == 0.5
    assert [(gap.task, gap.trial) for gap in collection.missing] == [("2", 2), ("2", 3)]
    assert max(int(metric.name[-1]) for metric in collection.metrics) == 2


def test_all_parts_are_one_result(tmp_path: Path) -> None:
    put(tmp_path / "a.json", vita_results(trials("1", "++++"), {"1": "delivery"}))
    put(tmp_path / "b.json", vita_results(trials("9", "----"), {"9": "ota"}))
    put(tmp_path / "notes.json", {"unrelated": True})

    collection = BENCH.collect(tmp_path)

    assert collection.headline.value == 0.5
    assert collection.setting["domains"] == "delivery,ota"
    assert collection.setting["tasks"] == 2


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        pytest.param({"reward_info": None}, "reward_info: expected an object", id="no reward"),
        pytest.param({"reward_info": {"reward": 1.5}}, "reward: expected a number from 0 to 1", id="reward"),
        pytest.param(
            {"reward_info": {"reward": 1.0, "nl_rubrics": [{"met": "yes"}]}},
            r"nl_rubrics\[0\].met: expected true or false", id="rubric",
        ),
    ],
)  # fmt: skip
def test_one_malformed_trial_is_a_drop_with_its_field(tmp_path: Path, fields: JsonObject, told: str) -> None:
    collection = collected(tmp_path, *trials("1", "++++"), vita_simulation("2", 0, [True], **fields))

    assert collection.headline.value == 1
    assert len(collection.drops) == 1
    assert told.replace("\\", "") in collection.drops[0].reason


def test_a_folder_without_simulations_is_refused(tmp_path: Path) -> None:
    put(tmp_path / "other.json", {"unrelated": True})

    with pytest.raises(InputError, match="no file has simulations"):
        BENCH.collect(tmp_path)


def test_a_file_that_was_cut_short_is_refused(tmp_path: Path) -> None:
    whole = json.dumps(vita_results(trials("1", "++++"), {"1": "delivery"}))
    (tmp_path / "a.json").write_text(whole[: len(whole) // 2])

    with pytest.raises(InputError, match=r"a.json: is not JSON"):
        BENCH.collect(tmp_path)


def test_a_key_is_known_by_where_the_harness_left_it_and_kept_nowhere(tmp_path: Path) -> None:
    collection = collected(tmp_path, *trials("1", "++++"), vita_simulation("2", 0, [True], reward_info=CANARY))

    assert 'found "[secret]"' in collection.drops[0].reason
    assert CANARY not in canonical_json(collection)


def rendered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **fields: Any) -> Any:
    for variable in ("AGENT_KEY", "JUDGE_KEY"):
        monkeypatch.setenv(variable, f"{CANARY}-{variable}")
    return BENCH.render(order(tmp_path, **{"user": served("simulator"), **fields}))


def test_each_part_is_a_job_and_keys_are_only_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    jobs = rendered(tmp_path, monkeypatch)

    assert [job.name for job in jobs] == ["delivery-000", "instore-000", "ota-000", "cross-000"]
    assert "delivery,instore,ota" in jobs[-1].command
    assert CANARY not in canonical_json([job.model_dump(mode="json") for job in jobs])
    entries = json.loads(jobs[0].sealed["VITA_MODEL_CONFIG_PATH"])["models"]
    assert [entry["name"] for entry in entries] == ["org/Model-1.5", "simulator", "converter"]
    assert entries[0]["base_url"] == "http://127.0.0.1:9/v1/chat/completions"
    assert entries[2]["headers"]["Authorization"] == "Bearer ${JUDGE_KEY}"


def test_two_models_of_one_name_are_told_apart_and_one_model_is_named_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (job, *_) = rendered(tmp_path, monkeypatch, user=served("org/Model-1.5", None), judge=served("org/Model-1.5"))

    entries = json.loads(job.sealed["VITA_MODEL_CONFIG_PATH"])["models"]
    assert [(entry["name"], entry.get("model")) for entry in entries] == [
        ("org/Model-1.5", None),
        ("org/Model-1.5 (USER_KEY)", "org/Model-1.5"),
    ]
    after = dict(pairwise(job.command))
    assert (after["--user-llm"], after["--evaluator-llm"]) == ("org/Model-1.5 (USER_KEY)", "org/Model-1.5")


def test_shards_cover_the_tasks_of_a_part_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = [{"id": str(number)} for number in range(7)]
    put(tmp_path / "harness/data/vita/domains/cross_domain/tasks_en.json", tasks)

    jobs = rendered(tmp_path, monkeypatch, shards=2, options={"domains": "cross"})

    found = [job.command[job.command.index("--task-ids") + 1 : job.command.index("--log-level")] for job in jobs]
    assert found == [("0", "2", "4", "6"), ("1", "3", "5")]


@pytest.mark.parametrize("option", [{"domains": "delivery,space"}, {"language": "latin"}])
def test_options_that_the_harness_does_not_know_are_refused(tmp_path: Path, option: dict[str, str]) -> None:
    (name,) = option

    with pytest.raises(InputError, match=f"option {name}: '(space|latin)' is none of"):
        BENCH.needs_for(order(tmp_path, options=option))


def test_results_of_another_benchmark_are_refused(tmp_path: Path) -> None:
    put(tmp_path / "r.json", vita2_results([vita2_simulation("u1", 0, {0: 1.0}, 1)], {"u1": 1}))

    with pytest.raises(InputError, match="domain_name: 'personalization' is not of this benchmark"):
        BENCH.collect(tmp_path)


def test_a_run_over_several_domains_at_once_is_of_it(tmp_path: Path) -> None:
    document = vita_results(trials("1", "++++"), {"1": "cross"})
    document["info"]["environment_info"]["domain_name"] = "delivery,instore,ota"
    put(tmp_path / "r.json", document)

    assert BENCH.collect(tmp_path).headline.value == 1
