"""Figures: a task counts once, what was not scored counts nowhere but is told, and doing nothing earns nothing."""

from __future__ import annotations

from typing import Any

import pytest

from compoworld_core.evaluation.figures import figures, gained, gains, scores
from compoworld_core.evaluation.scoreboard import show
from compoworld_core.evaluation.trial import Trial


def trial(task: str, number: int = 0, *, passed: bool | None = True, **fields: Any) -> Trial:
    known: dict[str, Any] = {"score": None if passed is None else float(passed), "model": "m", "benchmark": "b"}
    if passed is None:
        known["error"] = "transient: no answer"
    return Trial(task=task, trial=number, passed=passed, **{**known, **fields})


def test_a_task_counts_once_however_often_it_was_tried() -> None:
    trials = [trial("a", number, passed=True) for number in range(9)] + [trial("b", passed=False)]

    assert figures(trials).passed.value == 0.5


def test_repeated_trials_are_judged_by_the_best_and_by_all_of_them() -> None:
    outcomes = {"a": (True, True, True, True), "b": (True, True, False, False), "c": (False, False, False, False)}
    trials = [
        trial(task, number, passed=passed) for task, tried in outcomes.items() for number, passed in enumerate(tried)
    ]

    found = figures(trials)

    assert [item.value for item in found.pass_at] == pytest.approx([0.5, (1 + 5 / 6) / 3, 2 / 3, 2 / 3])
    assert [item.value for item in found.pass_hat] == pytest.approx([0.5, (1 + 1 / 6) / 3, 1 / 3, 1 / 3])


def test_what_was_not_scored_is_counted_and_decides_nothing() -> None:
    found = figures([trial("a"), trial("a", 1, passed=None), trial("b", passed=None), trial("c", error="limit: long")])

    assert (found.tasks, found.trials, found.unscored, found.errors) == (2, 4, 2, 3)
    assert found.passed.value == 1
    assert len(found.pass_at) == 1, "one task has one scored trial"


def test_criteria_that_hold_anyway_earn_nothing() -> None:
    idle = (True, False, False, False)
    nothing = trial("a", passed=False, score=0.25, criteria=idle, idle=idle)
    some = trial("b", passed=False, score=0.25, criteria=(False, True, False, False), idle=idle)

    assert (figures([nothing]).earned.value, figures([nothing]).partial.value) == (0, 0.25)
    assert figures([some]).earned.value == pytest.approx(1 / 3)


def test_valid_calls_are_a_share_of_all_and_a_trial_without_one_lacks_one() -> None:
    found = figures([trial("a", calls=7, valid_calls=6), trial("b", calls=0, valid_calls=0)])

    assert found.valid_calls.value == pytest.approx(6 / 8)
    assert figures([trial("a")]).valid_calls.value is None


def test_kinds_of_tasks_are_told_apart() -> None:
    trials = [
        trial("a", passed=True, domain="eval_combo", difficulty="easy", capabilities=("join", "guard")),
        trial("b", passed=False, domain="eval_service", difficulty="easy", capabilities=("guard",)),
    ]

    (found,) = scores(trials)

    shown = {kind: {name: item.passed.value for name, item in names.items()} for kind, names in found.kinds.items()}
    assert shown == {
        "domain": {"eval_combo": 1, "eval_service": 0},
        "difficulty": {"easy": 0.5},
        "capability": {"guard": 0.5, "join": 1},
    }


def test_models_are_compared_on_the_tasks_that_both_were_scored_on() -> None:
    before = [trial(name, passed=False) for name in "abcd"] + [trial("e")]
    after = [trial(name) for name in "abc"] + [trial("d", passed=None), trial("f", passed=False)]

    passed = gained(before, after)["passed"]

    assert (passed.tasks, passed.difference, passed.wins, passed.losses) == (3, 1, 3, 0)
    assert passed.interval.low <= 0, "three tasks show nothing"


def test_each_phase_of_training_is_compared_with_the_one_before() -> None:
    trials = [trial("a", model=name, passed=name == "grpo") for name in ("grpo", "oracle", "sft", "base")]

    assert [(item.first, item.second, item.measures["passed"].difference) for item in gains(trials)] == [
        ("base", "sft", 0),
        ("sft", "grpo", 1),
    ]


def test_no_trials_have_no_figures() -> None:
    found = figures([])

    assert (found.tasks, found.passed.value, found.pass_at, found.usd) == (0, None, (), None)
    assert scores([]) == ()
    assert gained([], [])["passed"].tasks == 0


def test_the_tables_say_what_the_figures_are(capsys: pytest.CaptureFixture[str]) -> None:
    trials = [
        trial(task, number, model=model, passed=model == "grpo" and task < "c", domain="eval_combo", error="limit: x")
        for model in ("sft", "grpo")
        for task in "abcd"
        for number in range(2)
    ]

    show(scores(trials), gains(trials))

    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["grpo", "4", "8", "8", "0", "50.0", "[15.0,", "85.0]"] in [line[:8] for line in lines]
    assert any("pass@2" in line and "pass^2" in line for line in lines)
    assert ["sft", "grpo", "passed", "4", "+50.0"] in [line[:5] for line in lines]


def test_what_an_unscored_trial_took_is_in_no_mean() -> None:
    found = figures([trial("a", steps=4), trial("b", passed=None, steps=100, prompt_tokens=7)])

    assert (found.steps, found.tokens) == (4, 7)
