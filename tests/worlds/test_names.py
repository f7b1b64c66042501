"""Tool names are unique in a world: on a clash, every clashing tool carries its service's name, and none is lost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compoworld_core.errors import InputError
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.sdk import Service, tool
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.recipe import ServicePin, UniverseSeed, WorldRecipe
from compoworld_core.worlds.world import World, open_world
from tests.services.workshop import START, package_of
from tests.worlds.town import BoardState, no_host, opened


class Echo(Service[BoardState]):
    """Answers with the name of its service."""

    domain = "data"

    @tool(effect="read")
    def say(self) -> str:
        """Say who answers."""
        return self.context.service


def world_of(**tools: list[str]) -> World:
    """A world whose services have tools of these names; each tool answers `<service>`."""
    packages: dict[str, ServicePackage] = {}
    classes: dict[str, type[Service[Any]]] = {}
    for service, names in tools.items():
        made = type("Named", (Echo,), {"name": service, "__doc__": service, **{n: _echo(n) for n in names}})
        classes[service] = made
        packages[service] = package_of(made)
    recipe = WorldRecipe(
        services=tuple(ServicePin(name=s, package=packages[s].digest, tools=tuple(tools[s])) for s in tools),
        universe=UniverseSeed(seed=1),
        start_time=START,
    )
    return open_world(recipe, Catalogue(packages.values(), classes, no_host))


def _echo(name: str) -> Any:
    def answer(self: Echo) -> str:
        """Say who answers."""
        return f"{self.context.service}.{name}"

    return tool(effect="read", name=name)(answer)


def reached(world: World) -> dict[str, str]:
    """What answers under each name."""
    return {name: world.call(name, {}).envelope["data"] for name in world.tools}


CASES: dict[str, tuple[dict[str, list[str]], dict[str, str]]] = {
    "no clash": ({"a": ["x"], "b": ["y"]}, {"x": "a.x", "y": "b.y"}),
    "two": ({"a": ["x", "z"], "b": ["x"]}, {"a__x": "a.x", "z": "a.z", "b__x": "b.x"}),
    "three": ({"a": ["x"], "b": ["x"], "c": ["x"]}, {"a__x": "a.x", "b__x": "b.x", "c__x": "c.x"}),
    "a prefixed name is the real name of another tool": (
        {"a": ["x"], "b": ["x"], "c": ["a__x"]},
        {"a__x": "a.x", "b__x": "b.x", "c__a__x": "c.a__x"},
    ),
    "a prefixed name is the real name of the service's own tool": (
        {"a": ["x", "a__x"], "b": ["x"]},
        {"a__x": "a.x", "a__a__x": "a.a__x", "b__x": "b.x"},
    ),
    "a chain": (
        {"a": ["x"], "b": ["x"], "c": ["a__x"], "d": ["c__a__x"]},
        {"a__x": "a.x", "b__x": "b.x", "c__a__x": "c.a__x", "d__c__a__x": "d.c__a__x"},
    ),
    "a name that looks prefixed and is not": ({"a": ["x"], "c": ["a__x"]}, {"x": "a.x", "a__x": "c.a__x"}),
}


@pytest.mark.parametrize(("tools", "expected"), CASES.values(), ids=CASES)
def test_every_tool_is_reached_under_a_name_of_its_own(tools: dict[str, list[str]], expected: dict[str, str]) -> None:
    world = world_of(**tools)

    assert reached(world) == expected
    assert all(name == bound.name for name, bound in world.tools.items())


def test_names_that_stay_ambiguous_are_an_input_error() -> None:
    with pytest.raises(InputError, match=r"'b__x' of 'a' and 'x' of 'a__b' would have the same name"):
        world_of(a=["b__x", "x"], a__b=["x"], c=["b__x"])


NAMES = st.sampled_from(["x", "y", "a__x", "b__x", "a__a__x", "c__a__x"])


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from("abc"), st.lists(NAMES, min_size=1, max_size=4, unique=True), min_size=1))
def test_no_tool_is_ever_lost_or_answered_by_another(tools: dict[str, list[str]]) -> None:
    answers = reached(world_of(**tools))

    assert sorted(answers.values()) == sorted(f"{service}.{name}" for service, names in tools.items() for name in names)
    plain = [name for names in tools.values() for name in names]
    for name, answer in answers.items():
        service, own = answer.split(".", 1)
        assert name in (own, f"{service}__{own}")
        assert plain.count(own) == 1 or name != own


def test_the_log_keeps_the_tools_own_name() -> None:
    world = opened()

    assert {"workshop__search", "board__search"} <= set(world.tools)
    assert "search" not in world.tools
    assert world.tools["board__search"].spec.name == "search"
    assert world.call("search", {}).envelope["error"]["code"] == "not_found"
