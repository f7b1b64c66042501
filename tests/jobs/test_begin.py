"""The first job of a workflow says what runs, and refuses what cannot."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from compoworld_core.errors import InputError
from compoworld_core.pipeline.config import load_config
from compoworld_core.pipeline.stages import GRAPH
from jobs.begin import choose, seed_of, wanted_benchmarks, work
from jobs.telemetry import Telemetry

DATA = tuple(name for name in GRAPH.order if not GRAPH[name].extra)


def chosen(start: str = "", end: str = "", only: str = "", *, has_gpus: bool = False, **flags: object) -> list[str]:
    configs = load_config(environment={}, flags={key.replace("__", "."): value for key, value in flags.items()}).stages
    return list(choose(GRAPH, configs, start, end, only, has_gpus=has_gpus))


def test_without_gpus_nothing_is_trained() -> None:
    assert chosen() == list(DATA)
    assert chosen(has_gpus=True) == list(GRAPH.order)


def test_a_part_of_the_order_can_be_chosen() -> None:
    assert chosen("synthesize", "sample-tasks") == ["synthesize", "validate", "sample-tasks"]
    assert chosen(only="distill") == ["distill"]
    assert chosen(only="sft") == []
    assert chosen(only="sft", has_gpus=True) == ["sft"]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("distil",), "there is no stage 'distil'; there are crawl"),
        (("distill", "crawl"), "crawl comes before distill"),
        (("crawl", "", "crawl"), "goes neither with --from nor with --until"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: tuple[str, ...], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        chosen(*arguments)


def test_an_evaluation_of_what_is_not_trained_is_refused_before_it_costs() -> None:
    trials = {"sft": 1}

    with pytest.raises(InputError, match="evaluate reads sft_models, which sft makes, and that needs GPUs"):
        chosen(evaluate__trials=trials)
    assert "evaluate" in chosen(evaluate__trials=trials, has_gpus=True)


def test_the_seed_is_the_date_on_which_a_run_was_due(monkeypatch: pytest.MonkeyPatch) -> None:
    assert seed_of("2026-11-30T02:00:00Z") == "20261130"
    assert seed_of("") == ""
    monkeypatch.setenv("COMPOWORLD_TASKS__SEED", "7")
    assert seed_of("") == "7"
    with pytest.raises(InputError, match="is no moment"):
        seed_of("{{workflow.scheduledTime}}")


def wanted(text: str, *, models: bool = True, user: str = "", judge: str = "", limit: bool = False) -> list[str]:
    llm = load_config(environment={}, flags={"llm.models": {"strong": {"model": "m"}}}).llm
    return wanted_benchmarks(text, llm, has_models=models, user=user, judge=judge, has_limit=limit)


def test_benchmarks_are_known_and_wait_for_a_run_that_makes_models() -> None:
    assert wanted("") == []
    assert wanted("ale,skillsbench") == ["ale", "skillsbench"]
    assert len(wanted("all", user="strong", judge="strong")) == 8
    assert wanted("tau3-banking", models=False) == []
    with pytest.raises(InputError, match="there is no alle; there are ale"):
        wanted("alle")


def test_what_a_benchmark_cannot_do_without_is_said_before_anything_is_trained() -> None:
    with pytest.raises(InputError, match=r"--judge weak: there is no such model in llm\.models; there are strong"):
        wanted("vitabench", user="strong", judge="weak")
    with pytest.raises(InputError) as caught:
        wanted("tau3-banking,deepplanning,ale", limit=True)
    assert [line.strip().partition(":")[0] for line in str(caught.value).splitlines()[1:]] == [
        "tau3-banking",
        "deepplanning",
        "deepplanning",
    ]


def test_a_limit_that_is_no_number_is_refused_before_anything_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["begin", "--limit", "two", "--store", str(tmp_path), "--out", str(tmp_path)])

    with pytest.raises(SystemExit) as stopped:
        work(Telemetry("begin"))

    assert stopped.value.code == 2
    assert "--limit" in capsys.readouterr().err
