from __future__ import annotations

from collections import Counter

import pytest

from compoworld_core.errors import InputError
from compoworld_core.tasks.sampler import ACCEPTED, PROFILES, Attempt, Draws, ServiceTools, TaskSettings, sample_tasks
from compoworld_core.tasks.splits import is_held_out
from compoworld_core.tasks.task import Difficulty, Task
from compoworld_core.worlds.catalogue import Catalogue
from tests.tasks.crafted import catalogue_of

Services = tuple[Catalogue, list[ServiceTools]]


@pytest.fixture(scope="module")
def library_services() -> Services:
    return catalogue_of(1)


def drawn(services: Services, shard: int = 0, shards: int = 1, *, count: int, profile: Difficulty) -> list[Attempt]:
    settings = TaskSettings(count=count, seed=4, profile=profile, held_out_services=0)
    return list(sample_tasks(settings, services[1], services[0], shard, shards))


def test_standard_tasks_have_the_profiles_size(tasks: list[Task]) -> None:
    profile = PROFILES["standard"]

    assert len(tasks) == 20
    for task in tasks:
        assert len(task.core) == profile.core
        assert len(task.recipe.services) == profile.core + profile.distractors
        assert set(task.walk) == set(task.core)
        assert len(task.edges) >= profile.edges
        assert profile.visits[0] <= len(task.walk) <= profile.visits[1]


@pytest.mark.parametrize("profile", ["easy", "single"])
def test_profiles_of_one_service_make_tasks(profile: Difficulty, library_services: Services) -> None:
    made = [item.task for item in drawn(library_services, count=4, profile=profile) if item.task]

    assert len(made) == 4
    for task in made:
        assert len(task.core) == len(task.recipe.services) == len(task.walk) == 1
        assert task.difficulty == profile
        assert len(task.edges) >= PROFILES[profile].edges


def test_pairs_carry_information_from_one_service_to_the_other(library_services: Services) -> None:
    made = [item.task for item in drawn(library_services, count=4, profile="pair") if item.task]

    assert len(made) == 4
    for task in made:
        assert len(task.core) == len(task.recipe.services) == 2
        assert any(edge.source_service != edge.target_service for edge in task.edges)


def test_half_the_sft_tasks_are_controls_and_no_other_task_is(library_services: Services) -> None:
    settings = TaskSettings(profile="pair", control="easy", held_out_services=0.3, held_out_combinations=0.3)
    draws = [Draws(settings, library_services[1]).draw(number) for number in range(400)]

    profiles = Counter((draw.split == "sft", draw.profile) for draw in draws)

    assert not profiles[False, "easy"]
    assert 0.4 < profiles[True, "easy"] / (profiles[True, "easy"] + profiles[True, "pair"]) < 0.6


def test_no_control_is_about_what_is_held_out_or_misses_a_service_for_its_sake(library_services: Services) -> None:
    settings = TaskSettings(profile="pair", control="easy", held_out_services=0.3, held_out_combinations=0.5)
    draws = Draws(settings, library_services[1])

    found = [draws.draw(number) for number in range(600)]

    alone = {name for draw in found if draw.profile == "easy" for name in draw.core}
    paired = {name for draw in found if draw.split == "sft" and draw.profile == "pair" for name in draw.core}
    assert not any(is_held_out(name, 0.3) for name in alone)
    assert paired - alone == set()


@pytest.mark.parametrize("shards", [1, 2, 3, 7])
def test_shards_together_make_the_wanted_number(shards: int, library_services: Services) -> None:
    attempts = [
        item for shard in range(shards) for item in drawn(library_services, shard, shards, count=7, profile="easy")
    ]

    assert sum(item.task is not None for item in attempts) == 7
    assert len({item.number for item in attempts}) == len(attempts)


def test_more_shards_than_tasks_leave_some_idle(library_services: Services) -> None:
    assert drawn(library_services, 5, 6, count=5, profile="easy") == []


def test_every_attempt_says_what_became_of_it(attempts: list[Attempt]) -> None:
    for item in attempts:
        assert (item.outcome == ACCEPTED) == (item.task is not None)
        assert item.outcome == ACCEPTED or item.detail
    assert Counter(item.outcome for item in attempts)[ACCEPTED] == 20


def test_most_attempts_are_accepted(attempts: list[Attempt]) -> None:
    assert sum(item.task is not None for item in attempts) >= 0.5 * len(attempts)


def test_a_shard_gives_up_after_its_attempts(library_services: Services) -> None:
    catalogue, tools = library_services
    toothless = [ServiceTools(item.package, item.tools[:1]) for item in tools]
    settings = TaskSettings(count=2, profile="single", held_out_services=0, attempts_per_task=3)

    attempts = list(sample_tasks(settings, toothless, catalogue, 0, 1))

    assert [item.outcome for item in attempts] == ["dead_end"] * 6


def test_too_few_services_are_refused_with_what_to_do(library_services: Services) -> None:
    catalogue, tools = library_services

    with pytest.raises(InputError, match=r"needs 10 services .* there are .*held_out_services"):
        next(sample_tasks(TaskSettings(count=1), tools, catalogue, 0, 1))


def test_services_without_admitted_tools_do_not_count(library_services: Services) -> None:
    catalogue, tools = library_services
    emptied = [ServiceTools(item.package, ()) for item in tools]

    with pytest.raises(InputError):
        next(sample_tasks(TaskSettings(count=1, profile="easy"), emptied, catalogue, 0, 1))


def test_tasks_are_made_of_the_services_that_are_named(library_services: Services) -> None:
    catalogue, services = library_services
    settings = TaskSettings(
        count=6, profile="easy", held_out_services=0, held_out_combinations=0, services=("crm", "mail")
    )

    made = [item.task for item in sample_tasks(settings, services, catalogue, 0, 1) if item.task]

    assert len(made) == 6
    assert {service.name for task in made for service in task.recipe.services} <= {"crm", "mail"}


def test_a_name_that_no_service_has_is_refused_with_those_there_are(library_services: Services) -> None:
    settings = TaskSettings(services=("crm", "marketing"), profile="easy")

    with pytest.raises(InputError, match=r"tasks\.services: marketing: .* there are .*mail"):
        Draws(settings, library_services[1])


def test_walks_can_prefer_steps_along_which_values_flow(services: Services) -> None:
    catalogue, tools = services
    settings = TaskSettings(count=2, seed=6, weighted_walks=True)

    made = [item.task for item in sample_tasks(settings, tools, catalogue, 0, 1) if item.task]

    assert len(made) == 2


def test_modelled_tools_stand_beside_and_change_nothing_else_that_is_drawn(library_services: Services) -> None:
    plain = library_services[1]
    settings = TaskSettings(count=1, seed=4, profile="easy", held_out_services=0)
    beside = [item._replace(modelled=("ask_the_world",)) for item in plain]

    one, other = (Draws(settings, services).draw(3) for services in (plain, beside))

    assert one.recipe is not None
    assert other.recipe is not None
    assert (one.core, one.visits) == (other.core, other.visits)
    assert [(*pin.tools, "ask_the_world") for pin in one.recipe.services] == [
        pin.tools for pin in other.recipe.services
    ]
