"""Conditions, bindings and row operations read as sentences."""

from __future__ import annotations

import pytest

from compoworld_core.services.conditions import (
    All,
    Answer,
    Before,
    Condition,
    Event,
    Not,
    RowRef,
    Rows,
    Stated,
    Test,
    Unchanged,
)
from compoworld_core.services.facts import Fact
from compoworld_core.viewer.wording import condition_in_words, operation_in_words, spoken
from compoworld_core.worlds.recipe import Delete, Insert, Update

_KIND = Test(field="kind", value="refund")
_NEW_ID = RowRef(service="crm", table="cases", where=(_KIND,), field="id", change="created")


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        (
            Rows(service="crm", table="cases", where=(_KIND,), change="created", at_most=1),
            'exactly 1 row created in crm.cases where kind is "refund"',
        ),
        (Rows(service="crm", table="cases", at_least=0, at_most=0), "no row of crm.cases"),
        (Rows(service="crm", table="cases", at_least=0, at_most=3), "at most 3 rows of crm.cases"),
        (
            Rows(service="mail", table="messages", where=(Test(field="body", op="mentions", row=_NEW_ID),)),
            'a row of mail.messages where body mentions the id of the row created in crm.cases where kind is "refund"',
        ),
        (Unchanged(service="crm", table="deals"), "crm.deals stays as it is"),
        (
            Before(
                earlier=Event(service="crm", table="cases", change="created"),
                later=Event(service="mail", table="messages", change="created"),
            ),
            "a row is created in crm.cases, before a row is created in mail.messages",
        ),
        (
            Answer(states=(Stated(fact=Fact(value="Ghent")),), omits=(Stated(fact=Fact(value="Toledo")),)),
            "the final answer states Ghent and does not state Toledo",
        ),
        (
            All(parts=(Unchanged(service="a", table="b"), Not(part=Unchanged(service="c", table="d")))),
            "a.b stays as it is; and not: c.d stays as it is",
        ),
    ],
    ids=lambda item: item if isinstance(item, str) else "",
)
def test_conditions_read_as_sentences(condition: Condition, words: str) -> None:
    assert condition_in_words(condition) == words


def test_operations_read_as_sentences() -> None:
    assert operation_in_words(Insert(service="a", table="b", values={})) == "adds a row to a.b"
    assert operation_in_words(Update(service="a", table="b", key="k", values={})) == "changes k in a.b"
    assert operation_in_words(Delete(service="a", table="b", key="k")) == "removes k from a.b"


@pytest.mark.parametrize(
    ("value", "parts"),
    [
        ("draft", [["text", '"draft"']]),
        ({"$value": "flag.owner"}, [["value", "flag.owner", "s1"]]),
        ({"$ref": "s3.data.id"}, [["value", "id", "s3"]]),
        ({"$text": ["Case ", {"$ref": "s3.data.id"}]}, [["text", "Case "], ["value", "id", "s3"]]),
        ([{"$value": "flag.owner"}], [["text", "["], ["value", "flag.owner", "s1"], ["text", "]"]]),
        ({"$fact": {"step": "s4", "name": "rate"}}, [["value", "rate", "s4"]]),
        (
            {"$round": [{"$mul": [{"$ref": "s2.data.rate"}, "10"]}, 2]},
            [["value", "rate", "s2"], ["text", " × "], ["text", "10"], ["text", " rounded to 2 places"]],
        ),
        ({"$ref": None, "more": 1}, [["text", "{"], ["text", "$ref: "], ["text", "null"], ["text", ", more: "]]),
    ],
    ids=["literal", "value", "ref", "text", "list", "fact", "arithmetic", "object"],
)
def test_arguments_name_the_values_in_them(value: object, parts: list[list[str]]) -> None:
    assert spoken(value, {"flag.owner": "s1"})[: len(parts)] == parts
