"""Self-tests as data: bindings, expectations, and what the runner says when one does not hold."""

from __future__ import annotations

from typing import Any

import pytest

from compoworld_core.services.running import RunningService
from compoworld_core.synthesis import selftest
from compoworld_core.synthesis.selftest import (
    Expectation,
    GivenRow,
    SelfTest,
    Step,
    dump_tests,
    load_tests,
    resolve,
    run_challenge,
    run_test,
)
from tests.synthesis.rules.drafts import TEXT, service, start, tool


@pytest.fixture
def notes() -> RunningService:
    return start(service(tool("create_note", text=TEXT), tool("get_note", note_id=TEXT)))


def case(*steps: Step, given: tuple[GivenRow, ...] = ()) -> SelfTest:
    return SelfTest(name="case", tool="get_note", kind="normal", given=given, steps=steps)


def create(text: str = "hello") -> Step:
    return Step(tool="create_note", arguments={"text": text})


def get(key: Any, error: Any = None, **equals: Any) -> Step:
    return Step(tool="get_note", arguments={"note_id": key}, expect=Expectation(error=error, equals=equals))


def test_later_steps_use_earlier_answers(notes: RunningService) -> None:
    test = case(create(), get({"$ref": "s1.data.id"}, **{"data.id": {"$ref": "s1.data.id"}, "data.text": "hello"}))
    assert run_test(notes, test).passed


def test_given_rows_are_there_and_the_service_is_left_alone(notes: RunningService) -> None:
    given = (GivenRow(table="notes", row={"id": "note_7", "text": "seven"}),)
    assert run_test(notes, case(get("note_7", **{"data.text": "seven"}), given=given)).passed
    assert len(notes.state.tables["notes"]) == 0


@pytest.mark.parametrize(
    ("test", "detail"),
    [
        (case(get("note_1")), "expected success, found not_found"),
        (case(create(), get({"$ref": "s1.data.id"}, "not_found")), "expected not_found, found success"),
        (
            case(create(), get({"$ref": "s1.data.id"}, **{"data.text": "bye"})),
            "data.text: expected 'bye', found 'hello'",
        ),
        (case(create(), get({"$ref": "s1.data.id"}, **{"data.size": 1})), "nothing at 'data.size'"),
        (case(get({"$ref": "s1.data.id"})), "names no earlier step"),
        (case(create(), given=(GivenRow(table="pages", row={}),)), "no table 'pages'"),
        (case(create(), given=(GivenRow(table="notes", row={"size": 1}),)), "given row of notes"),
    ],
    ids=["failure", "success", "value", "path", "binding", "table", "row"],
)
def test_a_test_that_does_not_hold_says_where(notes: RunningService, test: SelfTest, detail: str) -> None:
    outcome = run_test(notes, test)
    assert not outcome.passed
    assert detail in outcome.detail


@pytest.mark.parametrize(
    ("expect", "detail"),
    [
        (Expectation(contains=("ell",), lacks=("bye",)), ""),
        (Expectation(contains=({"$ref": "s1.data.id"},)), ""),
        (Expectation(contains=("bye",)), "the answer does not contain 'bye'"),
        (Expectation(lacks=("hello",)), "the answer contains 'hello'"),
        (Expectation(lacks=({"$ref": "s1.data.id"},)), "the answer contains 'note_1001'"),
        (Expectation(error="any"), "expected a refusal, found success"),
    ],
    ids=["part", "bound", "missing", "there", "bound-there", "served"],
)
def test_values_may_be_anywhere_in_an_answer(notes: RunningService, expect: Expectation, detail: str) -> None:
    step = Step(tool="get_note", arguments={"note_id": {"$ref": "s1.data.id"}}, expect=expect)
    outcome = run_test(notes, case(create(), step))
    assert (outcome.passed, detail in outcome.detail) == (not detail, True)


def test_any_refusal_will_do_where_none_is_named(notes: RunningService) -> None:
    assert run_test(notes, case(get("note_1", "any"))).passed


@pytest.mark.parametrize(
    ("found", "value", "holds"),
    [
        ("12.50", 12.5, True),
        (12, 12.0, True),
        ("12.5 kg", 12.5, False),
        (True, 1, False),
        (None, None, True),
        (1, "1", True),
    ],
)
def test_numbers_are_found_however_they_are_written(found: Any, value: Any, holds: bool) -> None:
    assert selftest._holds({"data": [{"x": found}]}, value) is holds


def test_a_challenge_meets_the_rows_that_are_there(notes: RunningService) -> None:
    notes.call("create_note", {"text": "hello"})

    assert run_challenge(notes, case(get("note_1001", **{"data.text": "hello"}))).passed
    assert not run_test(notes, case(get("note_1001"))).passed
    assert run_challenge(notes, case(create("more"))).passed
    assert len(notes.state.tables["notes"]) == 1


def test_bindings_may_stand_anywhere_in_the_arguments() -> None:
    answers = [{"success": True, "data": {"items": [{"id": "a"}]}}]
    assert resolve({"ids": [{"$ref": "s1.data.items.0.id"}], "n": 1}, answers) == {"ids": ["a"], "n": 1}


def test_tests_survive_the_package() -> None:
    tests = (case(create(), get({"$ref": "s1.data.id"})),)
    assert load_tests(dump_tests(tests)) == tests
