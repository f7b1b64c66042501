"""The local runner skips what is committed, finishes what is not, and always makes the same."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.errors import CompoWorldError, InputError, TransientError
from compoworld_core.pipeline import stages
from compoworld_core.pipeline.config import load_config
from compoworld_core.pipeline.graph import StageGraph
from compoworld_core.pipeline.runner import committed, resolve, run_shard, run_stages
from compoworld_core.pipeline.stage import Stage, shards_for
from compoworld_core.pipeline.workers import Workers
from compoworld_core.storage import open_store, read_dataset
from tests.pipeline.fakes import (
    COUNT,
    GRAPH,
    NUMBERS,
    REMARKS,
    SQUARE,
    SQUARES,
    TALLIES,
    TALLY,
    CountConfig,
    Diary,
    SquareConfig,
    Tally,
    digests,
    plan_count,
    run_fakes,
)
from tests.storage.test_kill import around_each_change_of_a_file, run_killed

CONFIGS = {"count": CountConfig(), "square": SquareConfig()}


@pytest.fixture
def uri(tmp_path: Path) -> str:
    return str(tmp_path / "store")


@pytest.fixture
def trap(tmp_path: Path) -> Path:
    path = tmp_path / "trap"
    path.touch()
    return path


def test_rows_of_every_output_come_in_order(uri: str) -> None:
    counted, squared = run_fakes(uri)

    store = open_store(uri)
    numbers = [row.value for row in read_dataset(store, counted.plan.location(NUMBERS), NUMBERS)]
    assert numbers == list(range(12))
    assert [row.about for row in read_dataset(store, counted.plan.location(REMARKS), REMARKS)] == [1, 3, 5, 7, 9, 11]
    assert [row.square for row in read_dataset(store, squared.plan.location(SQUARES), SQUARES)] == [
        number**2 for number in numbers
    ]


def test_a_second_run_makes_nothing(uri: str) -> None:
    first = run_fakes(uri)
    diary = Diary()

    second = run_fakes(uri, progress=diary)

    assert diary.made == []
    assert [result.was_skipped for result in first] == [False, False]
    assert [result.was_skipped for result in second] == [True, True]
    assert digests(second) == digests(first)


def test_another_config_is_made_beside(uri: str) -> None:
    first = run_fakes(uri)

    second = run_fakes(uri, config=CountConfig(count=13))

    assert second[0].plan.key != first[0].plan.key
    assert second[0].commits["numbers"].rows == 13


def test_equal_inputs_are_not_made_again_though_their_stage_was(uri: str, trap: Path) -> None:
    run_fakes(uri)

    counted, squared = run_fakes(uri, config=CountConfig(trap=str(trap)))

    assert not counted.was_skipped
    assert squared.was_skipped


def test_shards_that_are_committed_are_not_made_again(uri: str) -> None:
    store = open_store(uri)
    plan = resolve(store, GRAPH, CONFIGS, "count")
    run_shard(store, plan, 2)
    diary = Diary()

    run_fakes(uri, progress=diary)

    assert diary.made.count("count") == plan.shards - 1


@pytest.mark.parametrize("workers", [2, 3])
def test_the_number_of_workers_changes_nothing(uri: str, tmp_path: Path, workers: int) -> None:
    alone = run_fakes(uri)

    together = run_fakes(str(tmp_path / "other"), workers=workers)

    assert digests(together) == digests(alone)
    assert [result.plan.key for result in together] == [result.plan.key for result in alone]


@pytest.mark.parametrize("misfortune", ["killed", "transient"])
def test_a_shard_that_was_unlucky_once_is_tried_again(uri: str, trap: Path, misfortune: str) -> None:
    config = CountConfig(misfortune=misfortune, trap=str(trap))

    results = run_fakes(uri, workers=2, config=config)

    assert not trap.exists()
    assert results[0].commits["numbers"].rows == 12


@pytest.mark.parametrize(
    ("misfortune", "error", "message"),
    [
        ("killed", CompoWorldError, "count, shard 1 of 4: its worker process died: killed by SIGKILL"),
        ("transient", TransientError, "count, shard 1 of 4: bad luck"),
        ("input", InputError, "count, shard 1 of 4: bad luck"),
        ("bug", CompoWorldError, "count, shard 1 of 4: a bug: ZeroDivisionError: bad luck"),
    ],
)
def test_what_stays_broken_is_said_once_and_for_all(
    uri: str, trap: Path, misfortune: str, error: type[CompoWorldError], message: str
) -> None:
    config = CountConfig(misfortune=misfortune, trap=str(trap), is_springing_once=False)

    with pytest.raises(CompoWorldError) as raised:
        run_fakes(uri, workers=2, config=config)

    assert type(raised.value) is error
    assert str(raised.value).startswith(message)


def test_what_was_made_before_a_failure_stays_made(uri: str, trap: Path) -> None:
    config = CountConfig(misfortune="bug", trap=str(trap))
    with pytest.raises(CompoWorldError):
        run_fakes(uri, config=config)
    diary = Diary()

    run_fakes(uri, config=config, progress=diary)

    assert diary.made.count("count") == 3


def test_an_input_that_is_not_there_names_the_stage_to_run(uri: str) -> None:
    with pytest.raises(InputError, match=r"square needs numbers.*run `compoworld count`"):
        resolve(open_store(uri), GRAPH, CONFIGS, "square")


def test_what_is_optional_is_read_once_it_has_been_made(uri: str) -> None:
    graph = StageGraph((TALLY, SQUARE, COUNT))
    configs = {**CONFIGS, "tally": SquareConfig()}
    store = open_store(uri)

    def tally(*names: str) -> Tally:
        with Workers(1) as crew:
            plan = run_stages(store, graph, configs, names, crew, Diary())[-1].plan
        (row,) = read_dataset(store, plan.location(TALLIES), TALLIES)
        return row

    assert graph.order == ("count", "square", "tally")
    assert tally("count", "tally") == Tally(numbers=12, squares=None)
    assert tally("square", "tally") == Tally(numbers=12, squares=12)


def test_a_stage_without_all_outputs_is_not_done(uri: str) -> None:
    store = open_store(uri)
    (counted, _) = run_fakes(uri)
    (Path(uri) / counted.plan.location(REMARKS).path / "_DATASET.json").unlink()

    assert committed(store, counted.plan) is None
    assert not run_fakes(uri)[0].was_skipped


# Kills


def make_all(uri: str) -> Callable[[], None]:
    def work() -> None:
        run_fakes(uri)

    return work


def check_every_kill(tmp_path: Path, instants: Iterable[int]) -> None:
    expected = digests(run_fakes(str(tmp_path / "whole")))
    for instant in instants:
        uri = str(tmp_path / str(instant))
        run_killed(make_all(uri), instant)
        assert digests(run_fakes(uri)) == expected


def calls_of_a_run(tmp_path: Path) -> list[str]:
    run_fakes(str(tmp_path / "warm"))  # fills the caches, which would otherwise shift the instants
    return run_killed(make_all(str(tmp_path / "counted")), -1)


def test_a_run_killed_around_a_commit_is_finished_by_the_next(tmp_path: Path) -> None:
    calls = calls_of_a_run(tmp_path)
    links = [number for number, name in enumerate(calls) if name == "link"]

    check_every_kill(tmp_path, sorted({number + step for number in links[::3] for step in (0, 1)}))


@pytest.mark.slow
def test_a_run_killed_around_any_change_of_a_file_is_finished_by_the_next(tmp_path: Path) -> None:
    check_every_kill(tmp_path, around_each_change_of_a_file(calls_of_a_run(tmp_path)))


@pytest.mark.parametrize("shards", [2, 5])
def test_a_run_with_workers_killed_is_finished_by_the_next(tmp_path: Path, shards: int) -> None:
    expected = digests(run_fakes(str(tmp_path / "whole")))
    uri = str(tmp_path / "killed")
    command = [sys.executable, "-m", "tests.pipeline.fakes", uri, "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as run:
        assert run.stdout is not None
        for _ in range(shards):
            run.stdout.readline()
        os.kill(run.pid, signal.SIGKILL)

    assert run.returncode == -signal.SIGKILL
    assert digests(run_fakes(uri, workers=2)) == expected


# The graph


def test_stages_come_after_what_they_read() -> None:
    order = stages.GRAPH.order
    assert order[:5] == ("crawl", "synthesize", "validate", "sample-tasks", "distill")
    assert order.index("sft") < order.index("grpo") < order.index("evaluate")
    assert stages.GRAPH.graph.edges["synthesize", "validate"]["datasets"] == ("services", "omissions")


def test_a_run_trains_only_what_is_evaluated() -> None:
    def left_out(*policies: str) -> set[str]:
        configs = load_config(flags={"evaluate.trials": dict.fromkeys(policies, 1)}, environment={}).stages
        return set(stages.GRAPH.order) - set(stages.everything(configs))

    assert left_out("oracle") == {"sft", "grpo"}
    assert left_out("base") == {"grpo"}, "fine-tuning makes the model that it starts from"
    assert left_out("oracle", "grpo") == set()


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        pytest.param((SQUARE,), "reads numbers, which no stage makes", id="nobody makes it"),
        pytest.param((COUNT, SQUARE, COUNT), "both count and count make numbers", id="made twice"),
        pytest.param(
            (replace(COUNT, inputs=(SQUARES,)), SQUARE),
            "wait for each other",
            id="circle",
        ),
    ],
)
def test_a_graph_that_cannot_run_is_refused(declared: tuple[Stage[Any], ...], message: str) -> None:
    with pytest.raises(CompoWorldError, match=message):
        StageGraph(declared)


def test_a_stage_that_is_not_deterministic_has_one_output() -> None:
    with pytest.raises(CompoWorldError, match="one output only"):
        Stage("count", CountConfig, (), (NUMBERS, REMARKS), plan_count, COUNT.run, rooms=(), deterministic=False)


@pytest.mark.parametrize(("things", "shards"), [(0, 1), (1, 1), (10, 1), (11, 2), (10_000, 200)])
def test_shards_follow_from_what_there_is(things: int, shards: int) -> None:
    assert shards_for(things, 10) == shards


def test_a_run_that_another_overtakes_adopts_what_that_one_made(uri: str) -> None:
    store = open_store(uri)
    plan = resolve(store, GRAPH, CONFIGS, "count")

    def overtaken(config: CountConfig, inputs: Any, shard: Any) -> Any:
        rows = plan.stage.run(config, inputs, shard)
        yield next(rows)
        run_fakes(uri)  # finishes the stage and clears away what is of no use any more
        yield from rows

    run_shard(store, replace(plan, stage=replace(plan.stage, run=overtaken)), 0)

    diary = Diary()
    run_fakes(uri, progress=diary)
    assert diary.made == []


def test_what_cannot_work_here_is_refused_before_anything_is_begun_unless_it_is_made(uri: str) -> None:
    def refuse(config: SquareConfig) -> None:
        raise InputError("squares can't be worked out here")

    elsewhere = StageGraph((replace(SQUARE, check=refuse), COUNT))
    diary = Diary()

    def run() -> None:
        with Workers(1) as crew:
            run_stages(open_store(uri), elsewhere, CONFIGS, elsewhere.order, crew, diary)

    with pytest.raises(InputError, match="can't be worked out here"):
        run()
    assert diary.made == []

    run_fakes(uri)
    run()
    assert diary.made == []
