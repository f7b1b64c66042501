from __future__ import annotations

from typing import Any

import pytest

from compoworld_core.services.envelope import success
from compoworld_core.tasks.bindings import Answers, Unresolved, binding_operator, bindings_in, steps_read

ACCOUNTS = [
    {"id": "acc_1", "name": "Optik", "owner": "a@x.example", "balance": "1740.00", "phone": None},
    {"id": "acc_2", "name": "Optics", "owner": "b@x.example", "balance": "12.50", "phone": "+49 1"},
]
VALUES: dict[str, Any] = {
    "owner": {"$pick": {"from": {"$ref": "s1.data.items"}, "where": {"name": "Optics"}, "take": "owner"}},
    "greeting": {"$text": ["Dear ", {"$value": "owner"}]},
}


def answers() -> Answers:
    found = Answers({("drive", "doc_1"): {"silver": "0.80"}, ("drive", "doc_2"): {"silver": "0.60"}}, VALUES)
    found.add("s1", "crm", success({"items": ACCOUNTS}))
    found.add("s2", "drive", success({"items": [{"id": "doc_2"}, {"id": "doc_1"}], "tier": "silver"}))
    return found


@pytest.mark.parametrize(
    ("binding", "value"),
    [
        ("plain", "plain"),
        (7, 7),
        ({"$ref": "s1.data.items.1.owner"}, "b@x.example"),
        ({"$ref": "s1.success"}, True),
        ({"$value": "owner"}, "b@x.example"),
        ({"$value": "greeting"}, "Dear b@x.example"),
        ({"$pick": {"from": {"$ref": "s1.data.items"}, "where": {"balance": "1740.0"}, "take": "id"}}, "acc_1"),
        ({"$fact": {"step": "s2", "name": "silver"}}, "0.60"),
        ({"$fact": {"step": "s2", "name": {"$ref": "s2.data.tier"}, "of": "doc_1"}}, "0.80"),
        ({"$text": ["Due: ", {"$ref": "s1.data.items.0.balance"}, " EUR"]}, "Due: 1740.00 EUR"),
        ({"$add": [{"$ref": "s1.data.items.0.balance"}, "0.10", 1]}, "1741.10"),
        ({"$sub": ["10", "0.1", "0.2"]}, "9.7"),
        ({"$mul": ["0.1", "3"]}, "0.3"),
        ({"$round": [{"$mul": [{"$fact": {"step": "s2", "name": "silver"}}, "20.975"]}, 2]}, "12.59"),
        ({"$pick": {"from": {"$ref": "s1.data.items"}, "where": {}, "most": "balance", "take": "id"}}, "acc_1"),
        ({"$pick": {"from": {"$ref": "s1.data.items"}, "where": {}, "least": "balance", "take": "id"}}, "acc_2"),
        ({"$pick": {"from": {"$ref": "s1.data.items"}, "where": {}, "nth": 1, "take": "id"}}, "acc_2"),
        ({"$sum": {"from": {"$ref": "s1.data.items"}, "where": {}, "take": "balance"}}, "1752.50"),
        ({"$sum": {"from": {"$ref": "s1.data.items"}, "where": {"id": "acc_2"}, "take": "balance"}}, "12.50"),
        ({"$shift": ["2026-02-27", "3"]}, "2026-03-02"),
        ({"$choose": {"on": {"$ref": "s2.data.tier"}, "cases": {"silver": "low"}, "otherwise": "high"}}, "low"),
        ({"$choose": {"on": "gold", "cases": {"silver": "low"}, "otherwise": "high"}}, "high"),
        ({"to": [{"$value": "owner"}], "cc": []}, {"to": ["b@x.example"], "cc": []}),
        ({"$ref": "s1.data", "more": 1}, {"$ref": "s1.data", "more": 1}),
    ],
)
def test_a_binding_stands_for_its_value(binding: Any, value: Any) -> None:
    assert answers().evaluate(binding) == value


@pytest.mark.parametrize(
    ("number", "places", "rounded"),
    [
        ("2.345", 2, "2.35"),
        ("2.5", 0, "3"),
        ("3.5", 0, "4"),
        ("-2.345", 2, "-2.35"),
        ("1.0049", 2, "1.00"),
        ("7", 2, "7.00"),
    ],
)
def test_rounding_is_decimal_and_half_up(number: str, places: int, rounded: str) -> None:
    assert answers().evaluate({"$round": [number, places]}) == rounded


@pytest.mark.parametrize(
    "binding",
    [
        {"$ref": "s9.data"},
        {"$ref": "s1.data.items.5.id"},
        {"$ref": "s1.data.items.0.phone"},
        {"$ref": "s1.data.items.0.email"},
        {"$value": "nobody"},
        {"$pick": {"from": {"$ref": "s1.data.items"}, "where": {"name": "Opti"}, "take": "id"}},
        {"$pick": {"from": {"$ref": "s1.data.items"}, "where": {"id": "acc_1"}, "take": "phone"}},
        {"$fact": {"step": "s2", "name": "gold"}},
        {"$fact": {"step": "s1", "name": "silver"}},
        {"$add": ["1", "many"]},
        {"$text": ["Dear ", {"$ref": "s9.data"}]},
    ],
)
def test_what_is_not_there_is_unresolved(binding: Any) -> None:
    with pytest.raises(Unresolved):
        answers().evaluate(binding)


def test_a_value_can_be_evaluated_once_its_step_was_answered() -> None:
    early = Answers({}, {"name": {"$ref": "s1.data.name"}})
    with pytest.raises(Unresolved):
        early.evaluate({"$value": "name"})

    early.add("s1", "crm", success({"name": "Optik"}))

    assert early.evaluate({"$value": "name"}) == "Optik"


def test_a_second_answer_of_a_step_replaces_the_first() -> None:
    found = Answers({}, {"name": {"$ref": "s1.data"}})
    found.add("s1", "crm", success("stale"))
    assert found.evaluate({"$value": "name"}) == "stale"

    found.add("s1", "crm", success("fresh"))

    assert found.evaluate({"$value": "name"}) == "fresh"


def test_copies_are_independent() -> None:
    found = answers()
    twin = found.copy()

    twin.add("s3", "mail", success({"id": "msg_1"}))
    twin.name("new", {"$ref": "s3.data.id"})

    assert twin.evaluate({"$value": "new"}) == "msg_1"
    with pytest.raises(Unresolved):
        found.evaluate({"$value": "new"})


def test_bindings_are_found_where_they_stand() -> None:
    pick = {"from": {"$ref": "s1.data"}, "where": {"name": {"$value": "who"}}, "take": "id"}
    arguments = {"to": [{"$value": "owner"}], "body": {"$text": ["x", {"$ref": "s2.data"}]}, "id": {"$pick": pick}}

    found = dict(bindings_in(arguments))

    assert found == {
        ("to", 0): {"$value": "owner"},
        ("body", "$text", 1): {"$ref": "s2.data"},
        ("id",): {"$pick": pick},
        ("id", "$pick", "where", "name"): {"$value": "who"},
    }


def test_the_steps_that_a_value_reads_include_those_behind_names() -> None:
    assert steps_read({"body": {"$value": "greeting"}}, VALUES) == {"s1"}
    assert steps_read([{"$fact": {"step": "s4", "name": {"$ref": "s2.data.tier"}}}], VALUES) == {"s2", "s4"}
    assert steps_read("s1.data", VALUES) == set()


@pytest.mark.parametrize(
    ("value", "operator"),
    [({"$ref": "s1"}, "$ref"), ({"$else": 1}, None), ({"$ref": "s1", "x": 1}, None), ({}, None), ("$ref", None)],
)
def test_only_an_object_with_one_known_key_is_a_binding(value: Any, operator: str | None) -> None:
    assert binding_operator(value) == operator
