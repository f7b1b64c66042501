"""A world is what its recipe says, wherever and whenever it is opened; its forks are their own."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compoworld_core.errors import InputError, NotFound
from compoworld_core.storage.digest import digest
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.recipe import Delete, Insert, Plant, ServicePin, Update, WorldRecipe
from compoworld_core.worlds.world import World, open_world
from tests.services.workshop import START, Workshop
from tests.worlds.town import (
    CATALOGUE,
    PACKAGES,
    SERVICES,
    bodies,
    catalogue,
    everything,
    no_host,
    note,
    opened,
    pin,
    recipe,
)

Call = tuple[str, dict[str, Any]]


def test_opening_twice_gives_the_same_rows() -> None:
    planted: dict[str, Any] = {"plants": (Plant(do=note("planted")),)}

    first, second, elsewhere = opened(**planted), opened(**planted), open_world(recipe(**planted), catalogue())

    assert first is not second
    assert everything(first) == everything(second) == everything(elsewhere)
    assert everything(first) != everything(opened(seed=8, **planted))


def test_every_process_opens_the_same_world() -> None:
    code = "from tests.worlds.town import *\nprint(digest(everything(opened())))"
    printed = {
        subprocess.run(
            [sys.executable, "-c", f"from compoworld_core.storage.digest import digest\n{code}"],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()
        for seed in ("1", "2")
    }

    assert printed == {digest(everything(opened()))}


def test_recipes_travel_as_json_and_keep_their_digest() -> None:
    made = recipe(plants=(Plant(do=note("x"), facts={"who": "Ada"}),))
    again = WorldRecipe.model_validate_json(made.model_dump_json())

    assert again == made
    assert again.digest == made.digest
    assert len({made.digest, recipe().digest, recipe(seed=8).digest}) == 3


# What a recipe pins


def test_another_package_than_the_pinned_one_is_refused_and_both_are_named() -> None:
    stale = ServicePin(name="board", package="0" * 64, tools=("post",))

    with pytest.raises(InputError) as caught:
        opened(services=(pin("workshop"), stale))

    assert "'board'" in str(caught.value)
    assert "0" * 12 in str(caught.value)
    assert PACKAGES["board"].digest[:12] in str(caught.value)


def test_a_package_whose_code_changed_has_another_digest() -> None:
    board = PACKAGES["board"]
    edited = board.model_copy(update={"code": {"service.py": "# edited"}})
    described = board.model_copy(update={"spec": board.spec.model_copy(update={"description": "Other."})})

    assert len({board.digest, edited.digest, described.digest}) == 3
    with pytest.raises(InputError, match="pinned to package"):
        open_world(recipe(), Catalogue([PACKAGES["workshop"], edited], SERVICES, no_host))


def test_a_changed_copy_of_a_recipe_is_another_world() -> None:
    made = recipe()
    copied = made.model_copy(update={"plants": (Plant(do=note("copied")),)})

    assert copied.digest != made.digest
    assert bodies(open_world(copied, CATALOGUE)) == ["Welcome", "copied"]
    assert bodies(open_world(made, CATALOGUE)) == ["Welcome"]


@pytest.mark.parametrize(
    ("services", "message"),
    [
        ((ServicePin(name="nothing", package="0" * 64, tools=()),), "no package of that name"),
        ((pin("board").model_copy(update={"tools": ("post", "erase")}),), "tool 'erase'"),
        ((pin("board"), pin("board")), "'board' twice"),
    ],
)
def test_what_the_catalogue_does_not_have_is_named(services: tuple[ServicePin, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        opened(services=services)


def test_tools_that_are_not_pinned_are_not_there() -> None:
    world = opened(services=(pin("board").model_copy(update={"tools": ("search",)}),))

    assert list(world.tools) == ["search"]
    assert world.call("post", {"body": "x"}).envelope["error"]["code"] == "not_found"
    assert bodies(world) == ["Welcome"]


# Plants


def test_plants_are_there_from_the_start_and_are_no_changes() -> None:
    world = opened(
        plants=(
            Plant(do=note("first"), facts={"limit": "5"}),
            Plant(do=note("second", id="note_7000")),
            Plant(do=Update(service="workshop", table="jobs", key="job_1001", values={"key": "k", "price": "5"})),
            Plant(do=Delete(service="workshop", table="jobs", key="job_1003")),
        )
    )

    assert bodies(world) == ["Welcome", "first", "second"]
    assert bodies(world) == [row["body"] for row in world.initial_rows("board", "notes")]
    assert not list(world.changed_rows("workshop", "jobs"))
    assert not world.log
    assert world.facts == {("board", "notes", "note_1002"): {"limit": "5"}}
    assert all(service.state.writes == 0 for service in world.services.values())
    assert world.call("post", {"body": "x"}).envelope["data"]["at"] == "2026-02-12T08:30:00Z"


BAD_PLANTS: dict[str, Any] = {
    "unknown field": note("x", colour="red"),
    "illegal value": note("x", at="soon"),
    "missing field": Insert(service="board", table="notes", values={"body": "x"}),
    "reserved word": note("x", self="y"),
    "taken id": note("x", id="note_1001"),
    "no such row": Update(service="board", table="notes", key="note_9", values={"body": "x"}),
    "nothing to delete": Delete(service="board", table="notes", key="note_9"),
    "no such table": Insert(service="board", table="letters", values={}),
    "no such service": Insert(service="post", table="notes", values={}),
}


@pytest.mark.parametrize("operation", BAD_PLANTS.values(), ids=BAD_PLANTS)
def test_a_plant_that_the_table_refuses_is_an_input_error(operation: Any) -> None:
    with pytest.raises(InputError, match=rf"a plant in {operation.service}\.{operation.table} is refused"):
        opened(plants=(Plant(do=operation),))


def test_a_refused_change_from_outside_leaves_the_world_untouched() -> None:
    world = opened()
    before = everything(world)

    with pytest.raises(NotFound):
        world.apply(
            Update(service="workshop", table="jobs", key="job_1001", values={"customer_id": "cus_9", "key": "x"})
        )

    assert everything(world) == before


# Calls


def test_the_log_says_who_changed_what() -> None:
    world = opened()
    world.call("post", {"body": "x"})
    world.call("workshop__search", {})
    world.call("set_price", {"job_id": "job_9", "price": "1"})
    world.call("set_key", {"job_id": "job_1001", "key": ""})
    world.call("set_key", {"job_id": "job_1001", "key": "k"})

    assert [(entry.service, entry.cause, entry.tool) for entry in world.log] == [
        ("board", "agent", "post"),
        ("workshop", "agent", "set_key"),
    ]
    assert [(event.service, event.table, event.before is None) for event in world.events()] == [
        ("board", "notes", True),
        ("workshop", "jobs", False),
    ]
    assert [(before is None, after) for before, after in world.changed_rows("board", "notes")] == [
        (True, list(world.rows("board", "notes"))[1])
    ]
    assert world.answer is None


def test_a_tool_that_is_not_there_is_an_answer() -> None:
    result = opened().call("nothing" * 50, {})

    assert result.envelope["error"]["code"] == "not_found"
    assert len(result.envelope["error"]["message"]) < 200


BOARD_CALLS: list[Call] = [
    ("post", {"body": "a"}),
    ("remove", {"note_id": "note_1001"}),
    ("post", {"body": "b"}),
    ("board__search", {}),
    ("remove", {"note_id": "note_9"}),
]
SHOP_CALLS: list[Call] = [
    ("add_job", {"title": "New"}),
    ("draw_lot", {"job_id": "job_1004"}),
    ("crash", {"job_id": "job_1004"}),
    ("set_price", {"job_id": "job_1004", "price": "5"}),
    ("finish_job", {"job_id": "job_1004"}),
    ("draw_lot", {"job_id": "job_1001"}),
]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.booleans(), min_size=11, max_size=11))
def test_any_order_of_work_over_several_services_leaves_the_same_rows(turns: list[bool]) -> None:
    ordered, mixed = opened(), opened()
    for call in (*BOARD_CALLS, *SHOP_CALLS):
        ordered.call(*call)

    board, shop = iter(BOARD_CALLS), iter(SHOP_CALLS)
    for is_board in turns:
        first, second = (board, shop) if is_board else (shop, board)
        mixed.call(*(next(first, None) or next(second)))

    assert everything(mixed) == everything(ordered)


# Forks


@settings(max_examples=50, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from([*BOARD_CALLS, *SHOP_CALLS])), max_size=20))
def test_every_fork_is_as_if_it_were_alone(steps: list[tuple[int, Call]]) -> None:
    root = opened()
    before = everything(root)
    forks = [root.fork() for _ in range(4)]
    for place, call in steps:
        forks[place].call(*call)

    for place, fork in enumerate(forks):
        alone = opened()
        for other, call in steps:
            if other == place:
                alone.call(*call)
        assert everything(fork) == everything(alone)
        assert len(fork.log) == len(alone.log)
    assert everything(root) == before == everything(opened())


def test_a_fork_goes_on_from_where_its_world_was() -> None:
    world = opened()
    world.call("post", {"body": "x"})
    twin = world.fork()
    twin.call("post", {"body": "y"})

    assert bodies(twin) == ["Welcome", "x", "y"]
    assert bodies(world) == ["Welcome", "x"]
    assert (len(twin.log), len(world.log)) == (2, 1)
    assert len(list(twin.changed_rows("board", "notes"))) == 2


def test_opening_is_done_once_per_recipe_and_catalogue() -> None:
    worlds = [opened(seed=11), opened(seed=11), open_world(recipe(seed=11), catalogue())]
    bases = [world.services["board"].state.tables["notes"]._base for world in worlds]

    assert bases[0] is bases[1]
    assert bases[2] is not bases[0]


def test_worlds_of_different_catalogues_do_not_mix() -> None:
    class Quiet(Workshop):
        """The same shop, as another installation has it."""

        name = "workshop"

        @classmethod
        def populate(cls, state: Any, universe: Any, rng: Any, start: Any) -> None:
            state.jobs.insert(title="Only job")

    other = Catalogue(PACKAGES.values(), {**SERVICES, "workshop": Quiet}, no_host)

    def titles(world: World) -> list[str]:
        return [row["title"] for row in world.rows("workshop", "jobs")]

    assert titles(open_world(recipe(), other)) == ["Only job"]
    assert titles(opened()) == ["Job 0", "Job 1", "Job 2"]
    assert titles(open_world(recipe(), other)) == ["Only job"]


def test_the_catalogue_makes_a_host_once_per_untrusted_package() -> None:
    made = []

    def host(package: Any) -> Any:
        made.append(package.name)
        return CATALOGUE.backend(PACKAGES["board"])

    strange = PACKAGES["board"].model_copy(update={"origin": "synthesised", "name": "strange", "code": {}})
    shelf = Catalogue([strange, *PACKAGES.values()], SERVICES, host)

    assert shelf.backend(strange) is shelf.backend(strange)
    assert shelf.backend(PACKAGES["board"]) is not shelf.backend(strange)
    assert made == ["strange"]
    assert [package.name for package in shelf.packages] == ["board", "strange", "workshop"]


def test_services_act_for_the_worlds_user_at_its_time() -> None:
    world = opened()
    posted = world.call("post", {"body": "x"}).envelope["data"]

    assert posted["author"] == world.universe.user.email
    assert posted["at"].startswith(START.date().isoformat())
