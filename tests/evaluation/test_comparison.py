"""Comparison: no two scores stand beside each other without a word on whether they may."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from compoworld_core.errors import InputError
from compoworld_core.evaluation.benchmarks import benchmark, benchmarks
from compoworld_core.evaluation.benchmarks.automationbench import DOMAINS
from compoworld_core.evaluation.collection import Collection, Gap
from compoworld_core.evaluation.comparison import Compared, Run, compare
from compoworld_core.evaluation.comparison_table import HEADS, html, markdown, table, write
from compoworld_core.evaluation.intervals import headline_interval
from compoworld_core.evaluation.published import Published, published
from compoworld_core.evaluation.trial import Trial

FIGURE = Published(
    benchmark="automationbench",
    title="AutomationBench",
    metric="strict pass rate",
    is_share=True,
    tasks=600,
    trials=1,
    states={"toolset": ("api",)},
    basis="as published",
    source="a paper",
    scores={"Other-1": 27.67},
)


def collected(
    passing: int = 300, *, tasks: int = 100, trials: int = 1, model: str = "mine", gaps: int = 0, **setting: str
) -> Collection:
    """A run in which the first tasks of all domains are passed."""
    rows = [
        Trial(
            benchmark="automationbench",
            model=model,
            task=f"{domain}.t{number}",
            trial=trial,
            domain=domain,
            passed=position * tasks + number < passing,
            score=1.0 if position * tasks + number < passing else 0.5,
        )
        for position, domain in enumerate(DOMAINS)
        for number in range(tasks)
        for trial in range(trials)
    ]
    return benchmark("automationbench").collection(
        model,
        rows,
        missing=[Gap(task="sales.*", reason="cut short")] * gaps,
        setting={"toolset": "api", "trials": trials, **setting},
        versions={"harness": "1.0.5"},
    )


def run(collection: Collection, name: str = "mine") -> Run:
    sure = headline_interval(benchmark(collection.benchmark), collection)
    return Run(name=name, collection=collection, interval=sure)


def only(lines: tuple[Compared, ...]) -> Compared:
    assert len(lines) == 1
    return lines[0]


def beside(collection: Collection, figure: Published = FIGURE) -> Compared:
    return only(compare([run(collection)], [figure]))


def changed(**fields: object) -> Published:
    return Published.model_validate({**FIGURE.model_dump(), **fields})


def test_a_run_that_was_made_alike_is_comparable() -> None:
    line = beside(collected(passing=240))

    assert (line.comparable, line.reasons, line.untold) == ("yes", (), ())
    assert line.run_score == pytest.approx(40.0)
    assert line.difference == pytest.approx(40.0 - 27.67)
    assert line.run_low is not None
    assert line.run_high is not None
    assert line.run_low < 40.0 < line.run_high
    assert (line.run_tasks, line.run_trials, line.errors, line.dropped, line.missing) == (600, 1, 0, 0, 0)


@pytest.mark.parametrize(
    ("collection", "figure", "reason"),
    [
        pytest.param(collected(tasks=99), FIGURE, "594 tasks, published 600", id="tasks"),
        pytest.param(collected(trials=3), FIGURE, "3 trials of each, published 1", id="trials"),
        pytest.param(collected(toolset="zapier"), FIGURE, "toolset: zapier, published api", id="mode"),
        pytest.param(
            collected(), changed(states={"skills": ("with-skill",)}),
            "skills: the run does not tell, published with-skill", id="untold mode",
        ),
        pytest.param(
            collected(), changed(states={"harness": ("1.0.1", "1.0.4")}), "harness: 1.0.5, published 1.0.1",
            id="version",
        ),
        pytest.param(
            collected(), changed(metric="Avg@4"), "the run's figure is strict pass rate, published is Avg@4", id="what"
        ),
        pytest.param(
            collected(), changed(is_change=True), "published is a change against a base model, not a score", id="change"
        ),
        pytest.param(collected(gaps=2), FIGURE, "the run is not whole: 2 gaps", id="gaps"),
    ],
)  # fmt: skip
def test_whatever_differs_is_the_reason_why_not(collection: Collection, figure: Published, reason: str) -> None:
    line = beside(collection, figure)

    assert line.comparable == "no"
    assert reason in line.reasons


def test_what_the_publication_leaves_open_is_named_with_the_runs_own_value() -> None:
    line = beside(collected(), changed(leaves_open=("harness", "max_steps")))

    assert line.comparable == "as far as told"
    assert line.untold == ("harness (here 1.0.5)", "max_steps")


def test_a_figure_without_a_run_stands_alone() -> None:
    line = only(compare([], [FIGURE]))

    assert (line.run, line.comparable, line.other_score) == (None, "", 27.67)


def test_a_change_is_never_subtracted_from_a_score() -> None:
    assert beside(collected(), changed(is_change=True)).difference is None


def test_two_runs_are_compared_on_the_tasks_that_both_have() -> None:
    earlier, later = run(collected(passing=100), "earlier"), run(collected(passing=160), "later")

    line = only(compare([earlier, later], []))

    assert (line.run, line.other, line.comparable) == ("later", "earlier", "yes")
    assert line.shared == 600
    assert line.gained == pytest.approx(10.0)
    assert line.gained_low is not None
    assert line.gained_low > 0
    assert line.p_value == pytest.approx(2 / 2**60)


def wild(*scores: float) -> Collection:
    rows = [
        Trial(benchmark="wildclawbench", model="m", task=f"t{n}", trial=0, passed=score == 1.0, score=score)
        for n, score in enumerate(scores)
    ]
    return benchmark("wildclawbench").collection("m", rows)


def test_where_the_figure_is_a_mean_score_scores_are_compared() -> None:
    line = only(compare([run(wild(0.2, 0.4, 1.0)), run(wild(0.5, 0.7, 1.0))], []))

    assert line.gained == pytest.approx(20.0)
    assert line.difference == pytest.approx(20.0)


def test_two_runs_of_different_tasks_and_modes_say_so() -> None:
    lines = compare([run(collected(tasks=50)), run(collected(toolset="zapier", trials=2))], [])

    assert only(lines).comparable == "no"
    assert only(lines).reasons == (
        "2 trials of each, the other 1",
        "600 tasks, the other 300, 300 are the same",
        "toolset: zapier, the other api",
    )
    assert only(lines).shared == 300


@pytest.mark.parametrize("sizes", [(0, 5), (5, 0), (0, 0)])
def test_a_run_without_rows_shares_no_task_with_another(sizes: tuple[int, int]) -> None:
    line = only(compare([run(collected(tasks=tasks)) for tasks in sizes], []))

    assert (line.shared, line.gained) == (0, None)


def without(collection: Collection, lost: int) -> Collection:
    """The same run in which so many trials were not scored."""
    rows = [
        Trial.model_validate({**row.model_dump(), "passed": None, "score": None, "error": "no answer"})
        if place < lost
        else row
        for place, row in enumerate(collection.rows)
    ]
    return Collection.model_validate({**collection.model_dump(), "rows": rows})


def test_trials_that_are_in_no_figure_make_it_another_figure() -> None:
    line = beside(without(collected(trials=3), 5), changed(trials=3))

    assert (line.comparable, line.reasons) == ("no", ("5 trials of its tasks are in no figure",))
    assert beside(without(collected(trials=3), 5), changed(trials=None)).untold == (
        "whether trials are left out (here 5)",
    )


def test_two_runs_with_other_trials_of_the_same_tasks_say_so() -> None:
    line = only(compare([run(collected(trials=3)), run(without(collected(trials=3), 4))], []))

    assert line.comparable == "no"
    assert line.reasons == ("2 of the same tasks have more trials in one run than in the other",)


def test_what_neither_of_two_runs_tells_might_differ() -> None:
    silent = Collection.model_validate({**collected().model_dump(), "versions": {}})

    line = only(compare([run(silent), run(silent)], []))
    assert (line.comparable, line.untold) == ("as far as told", ("harness",))

    *_, last = compare([run(collected()), run(collected())], [changed(leaves_open=("max_steps", "tasks"))])
    assert (last.comparable, last.untold) == ("as far as told", ("max_steps",))


def test_runs_of_different_benchmarks_are_not_compared() -> None:
    other = benchmark("ale").collection(
        "mine", [Trial(benchmark="ale", model="mine", task="a/b", trial=0, passed=True, score=1.0)]
    )

    assert compare([run(collected()), run(other)], []) == ()


def test_all_that_was_published_is_there() -> None:
    scores = {(figure.title, model): score for figure in published() for model, score in figure.scores.items()}
    ours, base = "Qwen3.6-35B-A3B + CompoWorld", "Qwen3.6-35B-A3B"
    table_one = {
        "τ³-Banking": (10.65, 16.49), "DeepPlanning": (26.04, 35.21), "VitaBench": (38.94, 49.44),
        "VitaBench 2.0": (34.47, 36.09), "AutomationBench": (10.33, 32.33), "WildClawBench": (44.28, 47.46),
        "SkillsBench": (32.52, 47.71), "Agents' Last Exam": (7.77, 13.59),
    }  # fmt: skip

    assert {title: (scores[title, base], scores[title, ours]) for title in table_one} == table_one
    assert scores["VitaBench", "GPT-5.4"] == 47.09
    assert scores["Agents' Last Exam", "Claude Opus 4.6"] == 13.30
    assert len(scores) == 41
    assert {figure.benchmark for figure in published()} - {"rl-reward"} == set(benchmarks())


def test_published_metrics_are_those_of_the_adapters() -> None:
    names = {metric.name for metric in (collected().headline, *collected().metrics)}

    assert {figure.metric for figure in published() if figure.benchmark == "automationbench"} <= names


def test_every_form_of_the_table_has_every_line() -> None:
    lines = compare([run(collected(passing=240), "mine <b> | x")], [FIGURE])

    for form in (markdown(lines), html(lines)):
        assert "Other-1" in form
        assert "27.67" in form
        assert "+12.33" in form
        assert "600 × 1, 0 errors, 0 dropped, 0 missing" in form
    assert table(lines).row_count == 2
    assert "<b>" not in html(lines)
    assert "mine &lt;b> \\| x" in markdown(lines)
    assert markdown(lines).count("\n| ") == 2
    assert all(head in html(lines) for head in ("comparable", "difference"))
    assert len(HEADS) == len(table(lines).columns)


def test_a_table_is_written_as_its_name_says(tmp_path: Path) -> None:
    lines = compare([run(collected())], [FIGURE])

    for ending in ("html", "md", "json", "parquet"):
        write(lines, str(tmp_path / f"table.{ending}"))

    stored = pq.read_table(tmp_path / "table.parquet").to_pylist()
    assert [(row["other"], row["other_score"], row["run_score"]) for row in stored] == [("Other-1", 27.67, 50.0)]
    assert json.loads((tmp_path / "table.json").read_text())[0]["comparable"] == "yes"
    with pytest.raises(InputError, match=r"table\.xls: needs a name that ends in"):
        write(lines, str(tmp_path / "table.xls"))
