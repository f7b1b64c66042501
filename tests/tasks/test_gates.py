from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

import pytest

from compoworld_core.services.conditions import All, Answer, Before, Event, Rows, Test, Unchanged
from compoworld_core.services.schema import TableSchema
from compoworld_core.tasks.fairness import spoken_ids
from compoworld_core.tasks.gates import Candidate, alternative_orders, dependencies, is_told, run_gates
from compoworld_core.tasks.task import AnswerFact, Task
from compoworld_core.worlds.world import World
from tests.tasks.crafted import account, candidate, changed, criterion, step, with_criteria, with_solution


def test_a_good_candidate_passes_and_its_edges_are_found(world: World) -> None:
    report = run_gates(candidate(world), world, least_edges=4)

    assert (report.failed, report.detail) == ("", "")
    assert [(edge.source, edge.target) for edge in report.edges] == [
        ("s1", "s2"),
        ("s1", "s3"),
        ("s1", "answer"),
        ("s3", "answer"),
    ]
    assert {edge.criterion for edge in report.edges} <= {"message", "note", "answer"}
    assert world.log == []


def test_criteria_say_whether_doing_nothing_satisfies_them(world: World) -> None:
    base = candidate(world)
    deals = Unchanged(service="crm", table="deals")
    quiet = criterion("deals", deals)

    report = run_gates(
        replace(base, rubric=changed(base.rubric, criteria=(quiet, *base.rubric.criteria))),
        world,
        least_edges=4,
    )

    assert [item.holds_initially for item in report.rubric.criteria] == [True, False, False, False]


def _without_answer(base: Candidate) -> Candidate:
    return with_criteria(with_solution(base, answer=()), answer=None)


def no_op(base: Candidate, world: World) -> Candidate:
    idle = Unchanged(service="crm", table="deals")
    return with_criteria(_without_answer(base), message=idle, note=idle)


def refused(base: Candidate, world: World) -> Candidate:
    last = base.solution.steps[2]
    lost = changed(last, arguments={**last.arguments, "account_id": "acc_none"})
    return with_solution(base, steps=(*base.solution.steps[:2], lost))


def pointless_fact(base: Candidate, world: World) -> Candidate:
    fact = AnswerFact(label="Colour", value={"$ref": "s1.data.items.0.colour"})
    return with_solution(base, answer=(*base.solution.answer, fact))


def null_fact(base: Candidate, world: World) -> Candidate:
    return with_solution(base, answer=(*base.solution.answer, AnswerFact(label="Colour", value=None)))


def wrong_reference(base: Candidate, world: World) -> Candidate:
    return with_criteria(base, note=Rows(service="crm", table="cases", change="created"))


def walk(base: Candidate, world: World) -> Candidate:
    return replace(base, walk=("mail", "crm"))


def inert(base: Candidate, world: World) -> Candidate:
    more = step("s4", "crm", "list_cases")
    return with_solution(base, steps=(*base.solution.steps, more))


def leaked_id(base: Candidate, world: World) -> Candidate:
    return replace(base, instruction=f"{base.instruction} It is {account(world)['id']}.")


def leaked_ids_of_two_services(base: Candidate, world: World) -> Candidate:
    message = next(iter(world.rows("mail", "messages")))
    return replace(base, instruction=f"{base.instruction} It is {message['id']}, {account(world)['id']}.")


def hidden_id(base: Candidate, world: World) -> Candidate:
    key = str(account(world)["id"])
    return replace(base, instruction=f"{base.instruction} It is {key[:2]}\u200b{key[2:].upper()}-.")


def spoken_id(base: Candidate, world: World) -> Candidate:
    number = account(world)["id"].removeprefix("acc_")
    return replace(base, instruction=f"{base.instruction} It is Account no. {number}.")


def named_id(base: Candidate, world: World) -> Candidate:
    last = base.solution.steps[2]
    named = changed(last, arguments={**last.arguments, "account_id": account(world)["id"]})
    return with_solution(base, steps=(*base.solution.steps[:2], named))


def named_id_of_the_answer(base: Candidate, world: World) -> Candidate:
    fact = AnswerFact(label="Account", value=account(world)["id"])
    return with_solution(base, answer=(*base.solution.answer, fact))


def secret_word(base: Candidate, world: World) -> Candidate:
    """The note is to say what only the solution knows."""
    last = base.solution.steps[2]
    told = changed(last, arguments={**last.arguments, "subject": "Review sent: Quarterly secret"})
    note = base.rubric.criteria[1].condition
    assert isinstance(note, Rows)
    wanted = changed(note, where=(*note.where, Test(field="subject", op="contains", value="Quarterly secret")))
    return with_criteria(with_solution(base, steps=(*base.solution.steps[:2], told)), note=wanted)


def leaked_new_id(base: Candidate, world: World) -> Candidate:
    rows = len(list(world.rows("crm", "activities")))
    return replace(base, instruction=f"{base.instruction} It will be act_{1001 + rows}.")


def leaked_tool(base: Candidate, world: World) -> Candidate:
    return replace(base, instruction=f"{base.instruction} Use search_accounts.")


def dump(base: Candidate, world: World) -> Candidate:
    answer = base.rubric.criteria[-1].condition
    assert isinstance(answer, Answer)
    return with_criteria(base, answer=Answer(states=answer.states))


def order(base: Candidate, world: World) -> Candidate:
    note = base.rubric.criteria[1].condition
    before = Before(
        earlier=Event(service="mail", table="messages", change="created"),
        later=Event(service="crm", table="activities", change="created"),
    )
    return with_criteria(base, note=All(parts=(note, before)))


def skipped_write(base: Candidate, world: World) -> Candidate:
    return with_criteria(_without_answer(base), note=None)


def skipped_fact(base: Candidate, world: World) -> Candidate:
    answer = base.rubric.criteria[-1].condition
    assert isinstance(answer, Answer)
    return with_criteria(base, answer=Answer(states=answer.states[1:], omits=answer.omits))


def substituted(base: Candidate, world: World) -> Candidate:
    message = base.rubric.criteria[0].condition
    assert isinstance(message, Rows)
    return with_criteria(base, message=changed(message, where=message.where[:2]))


@pytest.mark.parametrize(
    ("spoil", "gate", "detail"),
    [
        (refused, "reference_refused", "s3"),
        (pointless_fact, "reference_refused", "fact"),
        (null_fact, "reference_refused", "'Colour' points at nothing: it is null"),
        (wrong_reference, "reference", "note"),
        (walk, "walk", "crm → mail → crm"),
        (inert, "inert", "s4"),
        (leaked_id, "leak", "acc_"),
        (leaked_ids_of_two_services, "leak", "acc_"),
        (leaked_new_id, "leak", "act_"),
        (hidden_id, "leak", "acc_"),
        (spoken_id, "leak", "acc_"),
        (leaked_tool, "leak", "search_accounts"),
        (named_id, "named_id", "s3.account_id"),
        (named_id_of_the_answer, "named_id", "Account"),
        (secret_word, "unknowable", "note wants 'Quarterly secret'"),
        (no_op, "no_op", "nothing"),
        (dump, "dump", "everything"),
        (order, "order", "note"),
        (skipped_write, "unwitnessed", "s3"),
        (skipped_fact, "mutant_skip_fact", "answer"),
        (substituted, "mutant_substitute", "s2 body"),
    ],
)
def test_a_candidate_spoilt_in_one_place_fails_that_gate(
    spoil: Callable[[Candidate, World], Candidate], gate: str, detail: str, world: World
) -> None:
    report = run_gates(spoil(candidate(world), world), world, least_edges=0, seed=1)

    assert report.failed == gate
    assert detail in report.detail
    assert not report.passed


def test_too_few_information_edges_fail(world: World) -> None:
    report = run_gates(candidate(world), world, least_edges=5)

    assert report.failed == "edges"
    assert "4 information edges, fewer than 5" in report.detail


def test_a_value_that_the_instruction_tells_is_no_edge(world: World) -> None:
    base = candidate(world)
    told = replace(base, instruction=f"{base.instruction} Its tier is {account(world)['tier']}.")

    report = run_gates(told, world, least_edges=4)

    assert report.failed == "edges"
    assert ("s1", "answer") not in {(edge.source, edge.target) for edge in report.edges}


@pytest.mark.parametrize(
    ("value", "instruction"),
    [
        ("2026-03-05", "Meet on 5 March."),
        (1240, "It comes to €1,240.00."),
        ("1392.50", "It comes to 1.392,50 EUR."),
        ("in_progress", "What is in progress?"),
    ],
)
def test_a_value_is_told_in_any_notation(value: object, instruction: str, world: World) -> None:
    base = replace(candidate(world), instruction=instruction)

    assert is_told(base, value)
    assert not is_told(replace(base, instruction="Do it."), value)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Close event 1001.", ["evt_1001"]),
        ("EVT-1001, evt1001 and Event No. 1001", ["evt_1001"] * 3),
        ("calendar events #1001", ["evt_1001"]),
        ("Pay 1001 for the event, prevent 1001 others.", []),
        ("Event 1001st", []),
    ],
)
def test_ids_are_heard_however_they_are_said(text: str, found: list[str]) -> None:
    schema = TableSchema(entity="event", id_prefix="evt", row={})

    assert list(spoken_ids(text, schema)) == found


def test_a_declared_order_is_kept_in_all_alternatives(world: World) -> None:
    base = order(candidate(world), world)
    last = changed(base.solution.steps[2], after=("s2",))

    report = run_gates(with_solution(base, steps=(*base.solution.steps[:2], last)), world, least_edges=4, seed=1)

    assert report.passed


def test_alternative_orders_respect_dependencies_and_differ(tasks: list[Task]) -> None:
    for task in tasks:
        graph = dependencies(task.solution)
        own = tuple(step.id for step in task.solution.steps)
        for steps in alternative_orders(task.solution, random.Random(3), 5):
            place = {step.id: number for number, step in enumerate(steps)}
            assert sorted(place) == sorted(own)
            assert tuple(place) != own
            assert all(place[a] < place[b] for a, b in graph.edges)
