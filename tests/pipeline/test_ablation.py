"""An ablation's arms differ in one thing, learn from equally much, and are judged by tasks that none has seen."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from compoworld_core.cli import run_cli
from compoworld_core.errors import CompoWorldError, InputError
from compoworld_core.evaluation.figures import figures, gained
from compoworld_core.evaluation.heldout import SPLITS
from compoworld_core.evaluation.trial import Trial
from compoworld_core.pipeline.ablation_table import plot, table
from compoworld_core.pipeline.arms import (
    ABLATIONS,
    ArmResult,
    arms_of,
    require_held_out,
    require_same_tasks,
    store_picture,
    store_results,
)
from compoworld_core.storage import open_store, read_dataset
from compoworld_core.tasks.task import Task
from tests.rollouts.complaint import complaint_task

PRESET = Path("configs/ablation/laptop.yaml")
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "ablation.yaml"


def trials(passes: int, model: str = "sft", tasks: int = 10) -> list[Trial]:
    return [
        Trial(
            benchmark="held-out",
            model=model,
            task=f"task-{place}",
            trial=0,
            passed=place < passes,
            score=float(place < passes),
            criteria=(place < passes,),
            idle=(False,),
            calls=2,
            valid_calls=1,
        )
        for place in range(tasks)
    ]


def result(comparison: str, key: str, value: str, passes: int, taught: int = 1000, first: int = 1) -> ArmResult:
    return ArmResult(
        comparison=comparison,
        key=key,
        value=value,
        model="sft",
        seeds=(0,),
        conversations=20,
        tokens=9000,
        taught_tokens=taught,
        steps=15,
        rollouts=0,
        rollout_steps=0,
        figures=figures(trials(passes)),
        gains=gained(trials(first), trials(passes)),
        evaluations=("k",),
    )


RESULTS = (
    result("composition", "training.sft.profile", '"easy"', 1),
    result("composition", "training.sft.profile", '"pair"', 4),
    result("data", "training.sft.taught_tokens", "500", 0, 500, first=0),
    result("data", "training.sft.taught_tokens", "1000", 5, 1000, first=0),
)


def test_arms_of_a_comparison_differ_in_its_key_alone() -> None:
    arms = arms_of(PRESET, {})

    assert [(arm.comparison, arm.value, arm.model) for arm in arms] == [
        ("composition", "easy", "sft"),
        ("composition", "pair", "sft"),
        ("data", 5000, "sft"),
        ("data", 10000, "sft"),
        ("data", 20000, "sft"),
        ("reward", "uniform", "grpo"),
        ("reward", "binary", "grpo"),
        ("reward", "completion_focused", "grpo"),
    ]
    easy, pair = (arm.config.model_dump(by_alias=True) for arm in arms[:2])
    assert (easy["training"]["sft"].pop("profile"), pair["training"]["sft"].pop("profile")) == ("easy", "pair")
    assert easy == pair
    assert arms[1].config.stages["sft"] == arms[4].config.stages["sft"] == arms[5].config.stages["sft"], "made once"


def test_arms_share_data_and_tasks_whatever_they_differ_in() -> None:
    arms = arms_of(PRESET, {})

    for stage in ("crawl", "synthesize", "validate", "sample-tasks", "distill"):
        assert all(arm.config.stages[stage] == arms[0].config.stages[stage] for arm in arms), stage


def test_every_training_is_repeated_with_each_seed(file: Path) -> None:
    file.write_text("ablate:\n  seeds: [3, 4]\n  compare:\n    epochs: {key: training.sft.epochs, values: [1, 2]}\n")

    arms = arms_of(file, {})

    assert [(arm.value, arm.config.training.sft.seed, arm.config.training.grpo.seed) for arm in arms] == [
        (1, 3, 3), (1, 4, 4), (2, 3, 3), (2, 4, 4)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{key: training.grpo.rewrd, values: [a, b]}", "training.grpo.rewrd: no such key; did you mean reward?"),
        ("{key: training.grpo.reward, values: [uniform, all]}", "training.grpo.reward: 'all' is not known"),
        ("{key: tasks.profile, values: [easy, pair]}", "ablate.compare.it.key: 'tasks.profile' cannot differ"),
        ("{key: training.sft.seed, values: [1, 2]}", "ablate.compare.it.key: 'training.sft.seed' is set by"),
        ("{key: training.sft.epochs, values: [1, 1]}", "ablate.compare.it.values: one is there twice"),
        ("{key: training.sft.epochs, values: [1]}", "ablate.compare.it.values: "),
    ],
)
def test_what_is_wrong_with_an_arm_is_said_with_its_line(line: str, message: str, file: Path) -> None:
    file.write_text(f"store: s\nablate:\n  compare:\n    it: {line}\n")

    with pytest.raises(InputError, match=f"^{re.escape(f'{file}:4: {message}')}"):
        arms_of(file, {})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("store: s\n", "there is nothing to compare; .*configs/ablation/laptop.yaml"),
        (
            "ablate: {compare: {kinds: {key: training.sft.profile, values: [easy, pair]}}}\n",
            "training.sft.taught_tokens is not set: the arms of kinds learn from different conversations",
        ),
        (
            "ablate: {compare: {room: {key: training.sft.context_tokens, values: [1024, 4096]}}}\n",
            "training.sft.taught_tokens is not set: the arms of room learn from different conversations",
        ),
        (
            "evaluate: {splits: [rl]}\nablate: {compare: {it: {key: training.sft.epochs, values: [1, 2]}}}\n",
            "evaluate.splits: tasks of rl are trained on; use eval_task, eval_combo, eval_service",
        ),
    ],
)
def test_a_comparison_that_would_not_be_fair_is_refused(text: str, message: str, file: Path) -> None:
    file.write_text(text)

    with pytest.raises(InputError, match=message):
        arms_of(file, {})


def test_the_command_says_so_too(file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file.write_text("store: s\n")

    assert run_cli(["ablate", "--config", str(file)]) == InputError.exit_code
    assert "there is nothing to compare" in capsys.readouterr().err


def task_of(seed: int, split: str, *, core: tuple[str, ...] = ()) -> Task:
    task = complaint_task(seed=seed)
    return Task(**{**dict(task), "split": split, "core": core or task.core})


def test_held_out_tasks_have_what_no_training_task_has() -> None:
    training = task_of(1, "sft")
    first, *others = training.core

    require_held_out(
        [training, task_of(2, "eval_combo", core=(first,)), task_of(3, "eval_service", core=("new", first))],
        SPLITS,
    )
    with pytest.raises(InputError, match="of split eval_combo leaks: a training task combines"):
        require_held_out([training, task_of(2, "eval_combo")], SPLITS)
    alone = task_of(4, "rl", core=(first,))
    with pytest.raises(InputError, match=r"of split eval_combo leaks: a training task combines crm\.create_case, "):
        require_held_out([alone, task_of(5, "eval_combo", core=(first,))], SPLITS)
    with pytest.raises(InputError, match="of split eval_service leaks: training tasks have all of"):
        require_held_out([training, task_of(2, "eval_service", core=(first, *others[:1]))], SPLITS)


def test_without_tasks_to_evaluate_on_nothing_is_trained() -> None:
    tasks = [task_of(1, "sft"), task_of(2, "eval_combo", core=("crm",))]

    with pytest.raises(InputError, match=r"no held-out tasks; raise tasks.count, or the shares of eval_service$"):
        require_held_out(tasks, ("eval_service",))
    with pytest.raises(InputError, match=r"the shares of eval_task and eval_combo and eval_service$"):
        require_held_out(tasks[:1], SPLITS)


def test_arms_have_to_be_evaluated_on_the_same_tasks() -> None:
    require_same_tasks([trials(1), trials(5)])
    with pytest.raises(CompoWorldError, match="on different tasks"):
        require_same_tasks([trials(1), trials(1, tasks=9)])


def test_results_come_back_from_the_store_and_are_kept_once(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))

    location = store_results(store, RESULTS)

    assert tuple(read_dataset(store, location, ABLATIONS)) == RESULTS
    assert store_results(store, RESULTS) == location


def test_another_picture_of_the_same_results_does_not_pass_for_the_first(tmp_path: Path) -> None:
    store = open_store(str(tmp_path))
    location = store_results(store, RESULTS)

    names = [store_picture(store, location, picture) for picture in ("<svg/>", "<svg></svg>", "<svg/>")]

    assert [store.read(name) for name in names] == [b"<svg/>", b"<svg></svg>", b"<svg/>"]
    assert names[0] == names[2]
    assert tuple(read_dataset(store, location, ABLATIONS)) == RESULTS


def test_the_table_compares_every_arm_with_the_first_of_its_comparison() -> None:
    columns = {str(column.header): list(column.cells) for column in table(RESULTS).columns}

    assert columns["comparison"] == ["composition", "", "data", ""]
    assert columns["arm"] == ["easy", "pair", "500", "1000"]
    assert columns["taught tokens"] == ["1,000", "1,000", "500", "1,000"]
    assert columns["steps"] == ["15"] * 4
    assert str(columns["passed %"][1]).startswith("40.0 [")
    assert [str(cell).partition(" ")[0] for cell in columns["passed more"]] == ["", "+30.0", "", "+50.0"]


def test_the_picture_has_dots_for_kinds_and_a_curve_for_amounts() -> None:
    picture = ElementTree.fromstring(plot(RESULTS))

    kinds, amounts = picture.findall(f"{SVG}svg")
    assert len(kinds.findall(f"{SVG}circle")) == 2 + 2 * 2, "a legend, and two measures of each arm"
    assert {"easy", "pair", "composition: held-out tasks, 95 % intervals"} <= {
        item.text for item in kinds.iter(f"{SVG}text")
    }
    assert len(amounts.findall(f"{SVG}polyline")) == 2
    assert float(amounts.attrib["y"]) == float(kinds.attrib["height"]), "below each other"
