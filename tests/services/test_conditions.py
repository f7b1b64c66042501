"""Conditions: every operator and every kind, on evidence that a few dictionaries make up."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from compoworld_core.services.conditions import (
    All,
    Answer,
    AnyOf,
    Before,
    Condition,
    Event,
    Not,
    RowRef,
    Rows,
    Stated,
    Test,
    Unchanged,
    equal,
    holds,
    passes,
    value_at,
    watched_tables,
)
from compoworld_core.services.facts import Fact
from compoworld_core.services.record import Row
from compoworld_core.storage.digest import canonical_json

ROW: Row = {
    "id": "a",
    "title": "Kick-off Agenda",
    "total": "1392.00",
    "net": 1392,
    "count": 3,
    "ok": True,
    "none": None,
    "tags": ["red", "blue"],
    "on": "2026-02-09",
    "at": "2026-02-09T10:00:00Z",
    "lines": [{"sku": "x", "n": 1}],
    "note": "Please pay €1.392,00 by 9 February",
}

OPERATORS: list[tuple[str, str, Any, bool]] = [
    ("title", "eq", "Kick-off Agenda", True),
    ("title", "eq", "kick-off agenda", False),
    ("count", "eq", 3, True),
    ("count", "eq", 3.0, True),
    ("count", "eq", "3", True),
    ("count", "eq", True, False),
    ("ok", "eq", True, True),
    ("ok", "eq", 1, False),
    ("none", "eq", None, True),
    ("none", "ne", None, False),
    ("total", "eq", "1392.0", True),
    ("total", "eq", "1392", True),
    ("total", "eq", 1392, True),
    ("total", "eq", "1392.01", False),
    ("at", "eq", "2026-02-09T12:00:00+02:00", True),
    ("at", "eq", "2026-02-09T12:00:00Z", False),
    ("at", "eq", "2026-02-09T10:00:00", False),
    ("tags", "eq", ["red", "blue"], True),
    ("tags", "eq", ["blue", "red"], False),
    ("lines", "eq", [{"sku": "x", "n": 1.0}], True),
    ("lines", "eq", [{"sku": "x", "n": True}], False),
    ("title", "ne", "x", True),
    ("total", "ne", "1392.0", False),
    ("count", "lt", 4, True),
    ("count", "lt", 3, False),
    ("count", "le", 3, True),
    ("count", "gt", 2.5, True),
    ("count", "ge", 4, False),
    ("total", "gt", "200.00", True),
    ("total", "lt", "200.00", False),
    ("total", "ge", 1392, True),
    ("on", "lt", "2026-02-10", True),
    ("on", "gt", "2026-02-10", False),
    ("at", "lt", "2026-02-09T11:30:00+02:00", False),
    ("at", "gt", "2026-02-09T11:30:00+02:00", True),
    ("at", "le", "2026-02-09T12:00:00+02:00", True),
    ("none", "lt", 5, False),
    ("none", "ge", 0, False),
    ("ok", "ge", 0, False),
    ("title", "lt", 5, False),
    ("tags", "gt", "a", False),
    ("count", "in", [1, 3], True),
    ("count", "in", [], False),
    ("count", "in", 3, False),
    ("total", "in", ["5.00", "1392.0"], True),
    ("title", "contains", "AGENDA", True),
    ("title", "contains", "minutes", False),
    ("title", "contains", 5, False),
    ("tags", "contains", "red", True),
    ("tags", "contains", "re", False),
    ("none", "contains", "x", False),
    ("count", "contains", 3, False),
    ("note", "mentions", 1392, True),
    ("note", "mentions", 1393, False),
    ("note", "mentions", "2026-02-09", True),
    ("note", "mentions", "please  PAY", True),
    ("count", "mentions", 3, False),
    ("lines.0.sku", "eq", "x", True),
    ("lines.1.sku", "ne", "x", False),
    ("lines.²", "ne", "x", False),
    ("title.x", "eq", None, False),
    ("absent", "eq", None, False),
    ("absent", "ne", "x", False),
    ("absent", "lt", 1, False),
]


@pytest.mark.parametrize(("name", "op", "value", "expected"), OPERATORS)
def test_operators(name: str, op: Any, value: Any, expected: bool) -> None:
    assert passes((Test(field=name, op=op, value=value),), ROW) is expected


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        (Test(field="total", other="net"), True),
        (Test(field="count", op="lt", other="net"), True),
        (Test(field="count", other="absent"), False),
        (Test(field="note", op="mentions", other="total", kind="number"), True),
        (Test(field="note", op="mentions", value="1392.00", kind="text"), False),
        (Test(field="note", op="mentions", value="no number", kind="number"), False),
    ],
)
def test_the_right_side_may_be_another_field_and_a_mention_of_some_kind(test: Test, expected: bool) -> None:
    assert passes((test,), ROW) is expected


@pytest.mark.parametrize(("left", "right"), [("7", "007"), ("1e3", "1000.0"), ("1_0.0", "10.0"), ("1.0", " 1.0")])
def test_texts_that_only_look_like_numbers_are_texts(left: str, right: str) -> None:
    assert not equal(left, right)
    assert not equal(right, left)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.decimals().map(str),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=3), part, max_size=3),
    max_leaves=6,
)


@given(JSON, JSON)
def test_equality_is_reflexive_and_symmetric(left: Any, right: Any) -> None:
    assert equal(left, left)
    assert equal(left, right) is equal(right, left)


@given(JSON, JSON, st.sampled_from("eq ne lt le gt ge in contains mentions".split()))
def test_any_comparison_has_an_answer(left: Any, right: Any, op: Any) -> None:
    assert passes((Test(field="x", op=op, value=right),), {"x": left}) in (True, False)
    assert passes((Test(field="x", op=op, other="y"),), {"x": left, "y": right}) in (True, False)


@given(JSON, st.text(max_size=6))
def test_any_path_leads_somewhere_or_nowhere(value: Any, path: str) -> None:
    value_at({"x": value}, f"x.{path}")


# Whole conditions


@dataclass
class Change:
    service: str
    table: str
    before: Row | None
    after: Row | None


@dataclass
class Evidence:
    """Rows by table at the start and now, the log, and the answer."""

    start: dict[str, dict[str, Row]] = field(default_factory=dict)
    now: dict[str, dict[str, Row]] = field(default_factory=dict)
    log: list[Change] = field(default_factory=list)
    answer: str | None = None

    def rows(self, service: str, table: str) -> Iterable[Row]:
        return self.now[f"{service}.{table}"].values()

    def initial_rows(self, service: str, table: str) -> Iterable[Row]:
        return self.start[f"{service}.{table}"].values()

    def changed_rows(self, service: str, table: str) -> Iterable[tuple[Row | None, Row | None]]:
        start, now = self.start[f"{service}.{table}"], self.now[f"{service}.{table}"]
        return [(start.get(k), now.get(k)) for k in start | now if start.get(k) != now.get(k)]

    def events(self) -> Iterable[Change]:
        return self.log


def job(key: str, status: str = "open", **more: Any) -> Row:
    return {"id": key, "status": status, **more}


SHOP = Evidence(
    start={
        "shop.jobs": {"kept": job("kept"), "done": job("done"), "gone": job("gone", price="5.00")},
        "mail.sent": {},
    },
    now={
        "shop.jobs": {"kept": job("kept"), "done": job("done", "done"), "new": job("new", price="1392.00")},
        "mail.sent": {"m": {"id": "m", "body": "It costs 1.392,00 EUR", "job": "new"}},
    },
    log=[
        Change("shop", "jobs", job("done"), job("done", "done")),
        Change("mail", "sent", None, {"id": "m", "job": "new"}),
        Change("shop", "jobs", job("gone", price="5.00"), None),
        Change("shop", "jobs", None, job("new", price="1392.00")),
    ],
    answer="The new job costs €1,392.00.",
)


def rows(*tests: Test, **more: Any) -> Rows:
    return Rows(service="shop", table="jobs", where=tests, **more)


def unchanged(*tests: Test) -> Unchanged:
    return Unchanged(service="shop", table="jobs", where=tests)


def event(change: Any, *tests: Test, service: str = "shop", table: str = "jobs") -> Event:
    return Event(service=service, table=table, change=change, where=tests)


def ref(key: str, name: str = "price", **more: Any) -> RowRef:
    return RowRef(service="shop", table="jobs", where=(Test(field="id", value=key),), field=name, **more)


OPEN = Test(field="status", value="open")
DONE = Test(field="status", value="done")
SENT = event("created", service="mail", table="sent")

CONDITIONS: dict[str, tuple[Any, bool]] = {
    "exists": (rows(DONE), True),
    "no such row": (rows(Test(field="id", value="gone")), False),
    "absent": (rows(Test(field="id", value="gone"), at_most=0, at_least=0), True),
    "count": (rows(OPEN, at_least=2, at_most=2), True),
    "too few": (rows(OPEN, at_least=3), False),
    "too many": (rows(OPEN, at_most=1), False),
    "created": (rows(OPEN, change="created", at_most=1), True),
    "created, other row": (rows(DONE, change="created"), False),
    "updated": (rows(DONE, change="updated"), True),
    "updated is as it is now": (rows(OPEN, change="updated"), False),
    "deleted": (rows(Test(field="price", value=5), change="deleted"), True),
    "deleted, other row": (rows(DONE, change="deleted"), False),
    "unchanged": (unchanged(Test(field="id", value="kept")), True),
    "changed": (unchanged(Test(field="id", value="done")), False),
    "changed away": (unchanged(OPEN, Test(field="id", value="done")), False),
    "changed towards": (unchanged(DONE), False),
    "deleted is changed": (unchanged(Test(field="id", value="gone")), False),
    "added is changed": (unchanged(Test(field="id", value="new")), False),
    "before": (Before(earlier=event("updated", DONE), later=SENT), True),
    "after": (Before(earlier=event("created"), later=SENT), False),
    "deleted before": (Before(earlier=event("deleted", OPEN), later=event("created")), True),
    "never earlier": (Before(earlier=event("deleted", DONE), later=SENT), False),
    "never later": (Before(earlier=SENT, later=event("deleted", DONE)), False),
    "with itself": (Before(earlier=SENT, later=SENT), False),
    "row of a row": (
        Rows(service="mail", table="sent", where=(Test(field="job", row=ref("new", "id", change="created")),)),
        True,
    ),
    "mention of a row": (
        Rows(service="mail", table="sent", where=(Test(field="body", op="mentions", row=ref("new"), kind="number"),)),
        True,
    ),
    "row of no row": (rows(Test(field="id", op="ne", row=ref("gone"))), False),
    "row without the field": (rows(Test(field="id", op="ne", row=ref("kept"))), False),
    "states": (Answer(states=(Stated(fact=Fact(kind="number", value="1392")),)), True),
    "states a row": (Answer(states=(Stated(row=ref("new"), kind="number"),)), True),
    "states no row": (Answer(states=(Stated(row=ref("gone"), kind="number"),)), False),
    "omits": (Answer(omits=(Stated(fact=Fact(kind="number", value="5")), Stated(row=ref("gone")))), True),
    "does not omit": (
        Answer(states=(Stated(row=ref("new", "id")),), omits=(Stated(fact=Fact(value="new job")),)),
        False,
    ),
    "all": (All(parts=(rows(DONE), Not(part=rows(at_most=0)))), True),
    "not all": (All(parts=(rows(DONE), rows(at_least=9))), False),
    "any": (AnyOf(parts=(rows(at_least=9), rows(DONE))), True),
    "none of them": (AnyOf(parts=()), False),
    "not": (Not(part=rows(DONE)), False),
}
ADAPTER: TypeAdapter[Condition] = TypeAdapter(Condition)


@pytest.mark.parametrize(("condition", "expected"), CONDITIONS.values(), ids=CONDITIONS)
def test_conditions(condition: Condition, expected: bool) -> None:
    assert holds(condition, SHOP) is expected
    assert holds(Not(part=condition), SHOP) is not expected


@pytest.mark.parametrize("condition", [condition for condition, _ in CONDITIONS.values()], ids=CONDITIONS)
def test_conditions_are_data(condition: Condition) -> None:
    assert ADAPTER.validate_json(ADAPTER.dump_json(condition)) == condition
    assert ADAPTER.validate_json(canonical_json(condition)) == condition


def test_without_an_answer_nothing_is_stated_and_nothing_omitted() -> None:
    silent = Evidence(start=SHOP.start, now=SHOP.now)

    assert not holds(Answer(states=(Stated(row=ref("new")),)), silent)
    assert not holds(Answer(omits=(Stated(row=ref("new")),)), silent)


def test_a_table_that_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError):
        holds(Rows(service="shop", table="nothing"), SHOP)


def test_a_row_that_is_no_number_states_no_number() -> None:
    odd = Evidence(now={"shop.jobs": {"x": job("x", price="free of charge")}}, answer="It is free of charge")

    assert not holds(Answer(states=(Stated(row=ref("x"), kind="number"),)), odd)
    assert not holds(Answer(states=(Stated(row=ref("x"), kind="date"),)), odd)
    assert holds(Answer(states=(Stated(row=ref("x")),)), odd)


@pytest.mark.parametrize(
    ("condition", "tables"),
    [
        (rows(OPEN), {"shop.jobs"}),
        (unchanged(OPEN), {"shop.jobs"}),
        (Rows(service="mail", table="sent", where=(Test(field="job", row=ref("new")),)), {"mail.sent", "shop.jobs"}),
        (Before(earlier=SENT, later=event("created")), {"mail.sent", "shop.jobs"}),
        (
            Before(earlier=SENT, later=event("created", Test(field="id", row=ref("a")), service="a", table="b")),
            {"mail.sent", "a.b", "shop.jobs"},
        ),
        (Answer(states=(Stated(row=ref("new")),), omits=(Stated(fact=Fact(value="x")),)), {"shop.jobs"}),
        (Answer(omits=(Stated(row=RowRef(service="a", table="b", where=(), field="c")),)), {"a.b"}),
        (All(parts=(rows(), AnyOf(parts=(Not(part=unchanged()), Before(earlier=SENT, later=SENT))))), None),
        (All(parts=()), set()),
    ],
)
def test_watched_tables_are_all_that_a_condition_looks_at(condition: Condition, tables: set[str] | None) -> None:
    expected = {"shop.jobs", "mail.sent"} if tables is None else tables

    assert {".".join(pair) for pair in watched_tables(condition)} == expected


@pytest.mark.parametrize(
    "data",
    [
        {"kind": "rows", "service": "s"},
        {"kind": "rows", "service": "s", "table": "t", "at_least": -1},
        {"kind": "rows", "service": "s", "table": "t", "unknown": 1},
        {"kind": "rows", "service": "s", "table": "t", "where": [{"field": "a", "op": "like", "value": 1}]},
        {"kind": "rows", "service": "s", "table": "t", "where": [{"field": "a", "value": 1, "other": "b"}]},
        {"kind": "answer", "states": [{}]},
        {"kind": "answer", "states": [{"fact": {"value": "x"}, "row": ref("a").model_dump()}]},
        {"kind": "nothing"},
    ],
    ids=str,
)
def test_what_is_no_condition_is_refused(data: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ADAPTER.validate_python(data)
