from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from compoworld_core.tasks.affordances import Affordances, explore
from compoworld_core.tasks.bindings import binding_operator
from compoworld_core.tasks.gates import Candidate, run_gates
from compoworld_core.tasks.mutation import mutants
from compoworld_core.tasks.planner.ingredients import SPECIAL, Ingredient, candidates, shape, wishes
from compoworld_core.tasks.planner.plan import Plan
from compoworld_core.tasks.planner.planner import DeadEnd, plan_task
from compoworld_core.tasks.play import Played, Stage
from compoworld_core.tasks.rubric import verify
from compoworld_core.tasks.task import Solution, Task
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.world import World, open_world
from tests.tasks.crafted import LIBRARY, changed, world_of

VISITS = (
    ("crm", "invoicing", "drive", "crm", "mail", "crm"),
    ("invoicing", "crm", "mail", "crm", "drive", "invoicing", "crm"),
)
BY_LETTER: Mapping[str, Ingredient] = {item.letter: item for item in SPECIAL}


class Made(NamedTuple):
    plan: Plan
    candidate: Candidate
    world: World

    def passes(self, solution: Solution) -> bool:
        played = Stage(self.world).play(solution)
        return verify(self.candidate.rubric, played.world, played.answer).success

    def operators(self) -> set[str]:
        solution = self.candidate.solution
        reference: Played = Stage(self.world).play(solution)
        return {item.operator for item in mutants(solution, reference, self.world)}


@pytest.fixture(scope="module")
def affordances(library: Catalogue) -> dict[str, Affordances]:
    return {
        item.name: explore(item, library.backend(item), sorted(tool.name for tool in item.spec.tools))
        for item in library.packages
        if item.name in LIBRARY
    }


_MADE: dict[str, Made] = {}


def made(letter: str, library: Catalogue, affordances: Mapping[str, Affordances]) -> Made:
    """The first plan that has the ingredient and passes the gates."""
    if letter in _MADE:
        return _MADE[letter]
    failures = []
    for seed in range(40):
        start = world_of(library, *LIBRARY, seed=seed)
        rng = random.Random(f"{letter}/{seed}")
        try:
            planned = plan_task(start, affordances, VISITS[seed % 2], rng, [BY_LETTER[letter]])
        except DeadEnd:
            continue
        if letter not in planned.plan.visits:
            continue
        recipe = changed(start.recipe, plants=tuple(planned.plan.plants), reactions=tuple(planned.plan.reactions))
        world = open_world(recipe, library)
        report = run_gates(planned.candidate, world, least_edges=1, seed=seed)
        if report.passed:
            _MADE[letter] = Made(planned.plan, planned.candidate, world)
            return _MADE[letter]
        failures.append((report.failed, report.detail))
    raise AssertionError(f"no plan with {letter}: {failures}")


def with_values(solution: Solution, **values: Any) -> Solution:
    return changed(solution, values={**solution.values, **values})


@pytest.mark.parametrize(
    ("letter", "capability"),
    [
        ("D", "policy_branch"),
        ("P", "policy_branch"),
        ("V", "derived_value"),
        ("M", "derived_value"),
        ("T", "derived_value"),
        ("T", "fan_out"),
        ("F", "fan_out"),
        ("G", "guard"),
        ("H", "hand_off"),
        ("K", "untouched"),
        ("R", "stale_reread"),
        ("S", "latest"),
    ],
)
def test_every_ingredient_makes_tasks_that_pass_the_gates(
    letter: str, capability: str, library: Catalogue, affordances: dict[str, Affordances]
) -> None:
    found = made(letter, library, affordances)

    assert capability in found.plan.capabilities
    assert letter in shape(found.plan)
    assert found.passes(found.candidate.solution)


@pytest.mark.parametrize(("letter", "reason"), [("F", "near_miss"), ("K", "lookalike")])
def test_what_rows_tempt_to_do_fails(
    letter: str, reason: str, library: Catalogue, affordances: dict[str, Affordances]
) -> None:
    found = made(letter, library, affordances)

    assert reason in found.operators()  # and the gates have seen that it fails


def test_whoever_decides_by_the_outdated_rules_fails(library: Catalogue, affordances: dict[str, Affordances]) -> None:
    found = made("D", library, affordances)
    [decision] = found.plan.decided
    uses = [step for step in found.candidate.solution.steps if decision.parameter in step.arguments]

    assert decision.known.value != decision.known.decoy
    assert any(step.arguments[decision.parameter] == decision.known.binding for step in uses)
    assert not found.passes(with_values(found.candidate.solution, **{decision.known.name: decision.known.decoy}))


@pytest.mark.parametrize("letter", ["V", "M", "T"])
def test_a_raw_or_wrongly_derived_amount_fails(
    letter: str, library: Catalogue, affordances: dict[str, Affordances]
) -> None:
    found = made(letter, library, affordances)
    derived = [item for item in found.plan.known if item.is_derived]

    assert derived
    for item in derived:
        assert item.decoy is not None
        assert not found.passes(with_values(found.candidate.solution, **{item.name: item.decoy}))
        binding = found.candidate.solution.values[item.name]
        operator = binding_operator(binding)
        if operator in ("$add", "$sub", "$shift"):
            assert not found.passes(with_values(found.candidate.solution, **{item.name: binding[operator][0]}))


def test_the_same_is_done_for_every_match_and_no_other(library: Catalogue, affordances: dict[str, Affordances]) -> None:
    found = made("F", library, affordances)
    solution = found.candidate.solution
    several = [item for item in found.plan.written if item.is_one_of]

    assert 2 <= len(several) <= 4
    for item in several:
        rest = tuple(step for step in solution.steps if step.id != item.step)
        assert not found.passes(changed(solution, steps=rest))


def test_acting_on_the_first_reading_fails(library: Catalogue, affordances: dict[str, Affordances]) -> None:
    found = made("G", library, affordances)
    solution = found.candidate.solution
    checked = next(item for item in found.plan.known if "_checked." in item.name)

    assert found.plan.reactions
    assert checked.value != checked.decoy
    assert not found.passes(with_values(solution, **{checked.name: checked.decoy}))


def test_the_runner_up_is_not_the_one_that_is_meant(library: Catalogue, affordances: dict[str, Affordances]) -> None:
    found = made("S", library, affordances)
    solution = found.candidate.solution
    second = {
        name: {"$pick": {**binding["$pick"], "nth": 1}}
        for name, binding in solution.values.items()
        if binding_operator(binding) == "$pick" and {"most", "least"} & set(binding["$pick"])
    }

    assert second
    assert not found.passes(with_values(solution, **second))


def test_a_hand_off_states_facts_to_one_person(library: Catalogue, affordances: dict[str, Affordances]) -> None:
    found = made("H", library, affordances)

    assert any(len(item.mentions) >= 2 for item in found.plan.written)


def test_short_plans_wish_for_one_thing_and_long_ones_for_several() -> None:
    rng = random.Random(1)

    assert all(len(wishes(3, rng)) == 1 for _ in range(20))
    assert {len(wishes(9, rng)) for _ in range(60)} >= {2, 3, 4}


def test_an_ingredient_is_not_tried_twice(library: Catalogue, affordances: dict[str, Affordances]) -> None:
    plan = made("S", library, affordances).plan

    assert BY_LETTER["S"] not in candidates(plan, [BY_LETTER["S"]], 3)
    assert len({item.letter for item in SPECIAL}) == len(SPECIAL)


def test_plans_are_of_many_shapes_and_show_every_capability(tasks: list[Task]) -> None:
    shown = {name for task in tasks for name in task.capabilities}

    assert {"policy_branch", "derived_value", "fan_out", "untouched", "latest", "hand_off"} <= shown
