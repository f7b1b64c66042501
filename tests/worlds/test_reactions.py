"""Reactions: the world's own moves, once each, in order, and in this world only."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compoworld_core.errors import InputError
from compoworld_core.services.conditions import Before, Event, Not, RowRef, Rows, Test, Unchanged
from compoworld_core.worlds.recipe import Delete, Insert, Reaction, Update
from compoworld_core.worlds.world import World
from tests.worlds.town import bodies, everything, note, opened

Operation = Insert | Update | Delete


def posted(body: str, **more: Any) -> Rows:
    return Rows(service="board", table="notes", where=(Test(field="body", value=body),), **more)


def when(condition: Any, *operations: Operation) -> Reaction:
    return Reaction(when=condition, apply=operations)


def price(value: str) -> Update:
    return Update(service="workshop", table="jobs", key="job_1001", values={"price": value})


def causes(world: World) -> list[tuple[str, str]]:
    return [(entry.cause, entry.service) for entry in world.log]


def test_a_reaction_fires_when_its_condition_first_holds_and_never_again() -> None:
    world = opened(reactions=(when(posted("go"), note("answer"), price("5.00")),))

    world.call("post", {"body": "wait"})
    assert bodies(world) == ["Welcome", "wait"]

    world.call("post", {"body": "go"})
    assert bodies(world) == ["Welcome", "wait", "go", "answer"]
    assert causes(world) == [("agent", "board"), ("agent", "board"), ("reaction", "board"), ("reaction", "workshop")]

    world.call("post", {"body": "go"})
    assert bodies(world)[4:] == ["go"]


def test_the_answer_to_a_call_does_not_show_the_reaction() -> None:
    quiet, lively = opened(), opened(reactions=(when(posted("go"), note("answer")),))

    results = [world.call("post", {"body": "go"}) for world in (quiet, lively)]

    assert results[0].envelope == results[1].envelope
    assert [len(result.changes) for result in results] == [1, 1]


def test_reactions_set_off_each_other_in_the_order_of_the_recipe() -> None:
    world = opened(
        reactions=(
            when(posted("c"), note("d")),
            when(posted("go"), note("a")),
            when(posted("go"), note("b")),
            when(posted("a"), note("c")),
        )
    )

    world.call("post", {"body": "go"})

    assert bodies(world) == ["Welcome", "go", "a", "b", "c", "d"]


def test_a_chain_of_reactions_leads_through_other_services() -> None:
    priced = Rows(service="workshop", table="jobs", where=(Test(field="price", value=5),))
    world = opened(reactions=(when(priced, note("thanks")), when(posted("go"), price("5.00"))))

    world.call("post", {"body": "go"})

    assert bodies(world) == ["Welcome", "go", "thanks"]
    assert causes(world)[1:] == [("reaction", "workshop"), ("reaction", "board")]


def test_reactions_that_feed_each_other_come_to_an_end() -> None:
    world = opened(reactions=tuple(when(posted("ping", at_least=n), note("ping")) for n in range(1, 6)))

    world.call("post", {"body": "ping"})

    assert bodies(world) == ["Welcome"] + ["ping"] * 6


def test_reactions_cross_services_and_see_only_committed_changes() -> None:
    priced = Rows(service="workshop", table="jobs", where=(Test(field="price", op="ge", value=10),))
    world = opened(reactions=(when(priced, note("too dear")),))

    world.call("set_price", {"job_id": "job_1001", "price": "9.99"})
    world.call("refuse", {"job_id": "job_1001"})
    assert bodies(world) == ["Welcome"]

    world.call("set_price", {"job_id": "job_1001", "price": "10"})
    assert bodies(world) == ["Welcome", "too dear"]


def test_a_reaction_may_depend_on_rows_that_its_tests_refer_to() -> None:
    ref = RowRef(service="workshop", table="jobs", where=(Test(field="id", value="job_1001"),), field="key")
    named = Rows(service="board", table="notes", where=(Test(field="body", row=ref),))
    world = opened(reactions=(when(named, note("matched")),))

    world.call("post", {"body": "blue"})
    assert bodies(world) == ["Welcome", "blue"]

    world.call("set_key", {"job_id": "job_1001", "key": "blue"})
    assert bodies(world) == ["Welcome", "blue", "matched"]


def test_the_log_and_the_start_can_be_conditions_too() -> None:
    gone = Not(part=Unchanged(service="workshop", table="jobs", where=(Test(field="id", value="job_1003"),)))
    order = Before(
        earlier=Event(service="workshop", table="jobs", change="deleted"),
        later=Event(service="board", table="notes", change="created"),
    )
    world, late = (opened(reactions=(when(gone, note("gone")), when(order, note("dropped first")))) for _ in range(2))
    late.call("post", {"body": "x"})

    world.call("drop_job", {"job_id": "job_1002"})
    world.call("post", {"body": "x"})
    late.call("drop_job", {"job_id": "job_1003"})

    assert bodies(world) == ["Welcome", "x", "dropped first"]
    assert bodies(late) == ["Welcome", "x", "gone"]


def test_what_the_agent_made_impossible_is_left_out() -> None:
    world = opened(reactions=(when(posted("go"), price("5.00"), note("answer")),))
    world.call("drop_job", {"job_id": "job_1001"})

    world.call("post", {"body": "go"})

    assert bodies(world) == ["Welcome", "go", "answer"]
    assert causes(world)[-1] == ("reaction", "board")
    assert all(not service.state.journal for service in world.services.values())


def test_a_reaction_that_changes_nothing_is_not_logged() -> None:
    same = Update(service="workshop", table="jobs", key="job_1001", values={"title": "Job 0"})
    world = opened(reactions=(when(posted("go"), same),))

    world.call("post", {"body": "go"})

    assert causes(world) == [("agent", "board")]


def test_reactions_do_not_move_a_services_clock_or_lots() -> None:
    quiet, lively = opened(), opened(reactions=(when(posted("go"), note("answer"), price("5.00")),))
    for world in (quiet, lively):
        world.call("post", {"body": "go"})

    after = [world.call("post", {"body": "x"}).envelope["data"] for world in (quiet, lively)]

    assert after[0]["at"] == after[1]["at"]
    assert after[0]["lot"] == after[1]["lot"]


def test_nothing_of_a_reaction_leaks_between_forks() -> None:
    root = opened(reactions=(when(posted("go"), note("answer")), when(posted("stop"), note("stopped"))))
    first, second = root.fork(), root.fork()
    first.call("post", {"body": "go"})
    third = first.fork()

    assert bodies(second) == bodies(root) == ["Welcome"]
    second.call("post", {"body": "go"})
    third.call("post", {"body": "go"})
    third.call("post", {"body": "stop"})

    assert bodies(second) == ["Welcome", "go", "answer"]
    assert bodies(third) == ["Welcome", "go", "answer", "go", "stop", "stopped"]
    assert bodies(first) == ["Welcome", "go", "answer"]
    root.call("post", {"body": "go"})
    assert bodies(root) == ["Welcome", "go", "answer"]


WORDS = "abcd"


@settings(max_examples=80, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(WORDS), st.sampled_from(WORDS)), max_size=5),
    st.lists(st.sampled_from(WORDS), max_size=5),
)
def test_any_set_of_reactions_fires_each_at_most_once_and_the_same_every_time(
    pairs: list[tuple[str, str]], said: list[str]
) -> None:
    reactions = tuple(when(posted(seen), note(answered)) for seen, answered in pairs)
    world, again = opened(reactions=reactions), opened(reactions=reactions)
    for body in said:
        world.call("post", {"body": body})
        again.call("post", {"body": body})

    reached = set(said)
    while more := {answered for seen, answered in pairs if seen in reached} - reached:
        reached |= more
    fired = [answered for seen, answered in pairs if seen in reached]
    answers = [entry.changes[0].after.body for entry in world.log if entry.cause == "reaction"]
    assert sorted(answers) == sorted(fired)
    assert everything(world) == everything(again)


@pytest.mark.parametrize(
    "reaction",
    [
        when(Rows(service="post", table="notes"), note("x")),
        when(Rows(service="board", table="letters"), note("x")),
        when(posted("go"), Delete(service="board", table="letters", key="x")),
        when(posted("go"), note("x"), Delete(service="post", table="notes", key="x")),
    ],
)
def test_a_reaction_about_what_is_not_there_is_an_input_error(reaction: Reaction) -> None:
    with pytest.raises(InputError, match="which this world does not have"):
        opened(reactions=(reaction,))
