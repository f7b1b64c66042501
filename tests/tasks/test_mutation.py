from __future__ import annotations

from compoworld_core.services.conditions import equal
from compoworld_core.services.facts import fact_of, states
from compoworld_core.tasks.mutation import ANSWER, Mutant, mutants
from compoworld_core.tasks.play import play
from compoworld_core.tasks.task import Solution, Task
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.recipe import Insert, Plant
from compoworld_core.worlds.world import World, open_world
from tests.tasks.crafted import account, candidate, changed, step


def made(world: World, solution: Solution) -> list[Mutant]:
    return list(mutants(solution, play(solution, world), world))


def test_every_write_and_every_fact_is_skipped_once(world: World) -> None:
    found = made(world, candidate(world).solution)

    assert [item.target for item in found if item.operator == "skip_write"] == ["s2", "s3"]
    assert [len(item.solution.answer) for item in found if item.operator == "skip_fact"] == [1, 1]


def test_every_binding_is_substituted_by_a_value_of_the_same_field(world: World) -> None:
    row = account(world)
    owners = {item["owner_email"] for item in world.rows("crm", "accounts")} - {row["owner_email"]}

    found = [item for item in made(world, candidate(world).solution) if item.operator == "substitute"]

    assert {(item.source, item.target, item.argument) for item in found} == {
        ("s1", "s2", "to"),
        ("s1", "s2", "body"),
        ("s1", "s3", "account_id"),
        ("s1", ANSWER, "Tier"),
        ("s3", ANSWER, "Note"),
    }
    recipients = [item.solution.steps[1].arguments["to"][0] for item in found if item.argument == "to"]
    assert recipients
    assert set(recipients) <= owners


def test_every_mutant_differs_from_the_solution(tasks: list[Task], services: tuple[Catalogue, object]) -> None:
    for task in tasks[:4]:
        world = open_world(task.recipe, services[0])
        for item in made(world, task.solution):
            assert item.solution != task.solution


def test_a_stale_value_is_tried_first(library: Catalogue, world: World) -> None:
    key = account(world)["id"]
    before = account(world)["city"]
    solution = Solution(
        steps=(
            step("s1", "crm", "update_account", write=True, account_id=key, city="Elsewhere"),
            step("s2", "crm", "get_account", account_id=key, after=("s1",)),
            step("s3", "mail", "create_mail_folder", write=True, name={"$ref": "s2.data.city"}),
        )
    )

    found = [item for item in made(world, solution) if item.operator == "substitute"]

    assert found[0].solution.steps[2].arguments["name"] == before


def test_a_planted_row_is_confused_before_any_other(library: Catalogue, world: World) -> None:
    row = account(world)
    twin = {
        **row,
        "id": "acc_7777",
        "name": f"{row['name']} II",
        "billing_id": "BP-77777",
        "owner_email": "t@w.example",
    }
    plants = (Plant(do=Insert(service="crm", table="accounts", values=twin)),)
    planted = open_world(changed(world.recipe, plants=plants), library)
    solution = candidate(world).solution

    found = [item for item in made(planted, solution) if item.argument == "account_id"]

    assert found[0].solution.values == solution.values
    assert found[0].solution.steps[2].arguments["account_id"] == "acc_7777"


def test_decoys_say_something_else_than_the_value(tasks: list[Task], services: tuple[Catalogue, object]) -> None:
    for task in tasks[:6]:
        world = open_world(task.recipe, services[0])
        reference = play(task.solution, world)
        for item in made(world, task.solution):
            if item.operator != "substitute" or item.target != ANSWER:
                continue
            played = play(item.solution, world)
            place = next(i for i, fact in enumerate(item.solution.answer) if fact.label == item.argument)
            assert not equal(played.facts[place], reference.facts[place])
            assert not states(str(played.facts[place]), fact_of(reference.facts[place]))
