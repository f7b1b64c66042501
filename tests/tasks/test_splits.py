from __future__ import annotations

import os
import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from compoworld_core.tasks.sampler import Attempt, ServiceTools, TaskSettings, sample_tasks
from compoworld_core.tasks.splits import is_held_out, is_held_out_combination
from compoworld_core.worlds.catalogue import Catalogue
from tests.tasks.crafted import catalogue_of

NAMES = [f"service_{number}" for number in range(2000)]


def test_about_the_wanted_share_is_held_out() -> None:
    assert 0.12 < sum(is_held_out(name, 0.15) for name in NAMES) / len(NAMES) < 0.18
    assert not any(is_held_out(name, 0.0) for name in NAMES)


@given(st.lists(st.text(min_size=1, max_size=12), min_size=1, max_size=6, unique=True), st.randoms())
def test_a_combination_is_a_set(core: list[str], rng: object) -> None:
    shuffled = sorted(core, reverse=True)

    assert is_held_out_combination(core, 0.5) == is_held_out_combination(shuffled, 0.5)


@given(st.text(min_size=1, max_size=30), st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_holds_out_the_same_services_and_more(name: str, one: float, other: float) -> None:
    low, high = sorted((one, other))

    assert not is_held_out(name, low) or is_held_out(name, high)


def test_other_processes_decide_the_same() -> None:
    script = (
        "from compoworld_core.tasks.splits import is_held_out\n"
        "print(''.join(str(int(is_held_out(f'service_{n}', 0.3))) for n in range(50)))"
    )

    environment = {"PYTHONHASHSEED": "7", "PYTHONPATH": os.pathsep.join(["", *sys.path])}
    command = [sys.executable, "-c", script]

    other = subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout.strip()

    assert other == "".join(str(int(is_held_out(name, 0.3))) for name in NAMES[:50])


def held_out_setting() -> tuple[Catalogue, list[ServiceTools], list[Attempt]]:
    catalogue, tools = catalogue_of(6)
    shares = {"sft": 1.0, "rl": 1.0, "eval_task": 1.0, "eval_combo": 1.0, "eval_service": 1.0}
    settings = TaskSettings(count=12, seed=2, held_out_services=0.3, held_out_combinations=0.3, shares=shares)
    return catalogue, tools, list(sample_tasks(settings, tools, catalogue, 0, 1))


def test_training_tasks_never_see_what_is_held_out() -> None:
    _, _, attempts = held_out_setting()

    assert {item.split for item in attempts} == {"sft", "rl", "eval_task", "eval_combo", "eval_service"}
    for item in attempts:
        held_out = [name for name in item.core if is_held_out(name, 0.3)]
        combination = is_held_out_combination(item.core, 0.3)
        if item.split == "eval_service":
            assert held_out
            continue
        assert not held_out
        assert combination == (item.split == "eval_combo")
        if item.task is not None:
            assert not any(is_held_out(pin.name, 0.3) for pin in item.task.recipe.services)


def test_tasks_of_one_service_hold_out_combinations_of_its_tools() -> None:
    catalogue, tools = catalogue_of(3)
    shares = {"sft": 1.0, "eval_combo": 1.0}
    settings = TaskSettings(
        count=16, seed=2, profile="easy", held_out_services=0, held_out_combinations=0.5, shares=shares
    )

    tasks = [item.task for item in sample_tasks(settings, tools, catalogue, 0, 1) if item.task is not None]

    kept, trained = ([task for task in tasks if task.split == split] for split in ("eval_combo", "sft"))
    for task in tasks:
        assert is_held_out_combination(task.solution.tools, 0.5) == (task.split == "eval_combo")
    assert len(kept) + len(trained) == 16
    assert {task.core for task in kept} & {task.core for task in trained}
