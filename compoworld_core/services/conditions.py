"""Conditions: the one declarative language over rows.

A service's invariants, a world's reactions and a rubric's criteria are all conditions. They are data (they travel in
packages, recipes and tasks), they see nothing but JSON row views, and they are evaluated here only.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, Protocol, Self

from pydantic import Field, JsonValue, model_validator

from compoworld_core.data import Data
from compoworld_core.services.facts import Fact, FactKind, fact_of, states
from compoworld_core.services.record import Row

Op = Literal["eq", "ne", "lt", "le", "gt", "ge", "in", "contains", "mentions"]


class Test(Data):
    """One comparison on a row: the field on the left, exactly one of `value`, `other` and `row` on the right.

    Attributes:
        field: Field of the row; dots reach into nested objects and list positions (`lines.0.sku`).
        op: `contains`: the list has the value, or the text has it as a part, whatever its case. `mentions`: the text
            states the fact (`kind`) in any usual notation. `in`: the value is a list that has the field's value.
            Texts that are decimal numbers compare as numbers, texts that are times with an offset as times.
        value: A literal.
        other: Another field of the same row.
        row: A field of some other row, found when the test is evaluated.
    """

    __test__ = False  # not a pytest class

    field: str
    op: Op = "eq"
    value: JsonValue = None
    other: str | None = None
    row: RowRef | None = None
    kind: FactKind | None = None

    @model_validator(mode="after")
    def _has_one_right_side(self) -> Self:
        if (self.value is not None) + (self.other is not None) + (self.row is not None) > 1:
            raise ValueError("a test compares with one of `value`, `other` and `row`, not with several")
        return self


class Rule(Data):
    """A rule that every row of a table keeps: if it passes `where`, it also passes `satisfies`.

    Tests of a rule compare a row's fields with literals or with each other, never with other rows.
    """

    where: tuple[Test, ...] = ()
    satisfies: tuple[Test, ...]
    message: str

    @model_validator(mode="after")
    def _sees_one_row(self) -> Self:
        if any(test.row is not None for test in (*self.where, *self.satisfies)):
            raise ValueError("a rule sees one row only; its tests can't refer to others")
        return self

    def broken_by(self, row: Mapping[str, Any]) -> bool:
        """Whether the row breaks the rule."""
        return passes(self.where, row) and not passes(self.satisfies, row)


class RowRef(Data):
    """A field of the first row that passes all tests."""

    service: str
    table: str
    where: tuple[Test, ...]
    field: str
    change: Change | None = None


Change = Literal["created", "updated", "deleted"]


class Rows(Data):
    """Some number of rows pass all tests: exists (the default), absent (`at_most=0`), or a count.

    Attributes:
        change: Consider only rows that were created, updated or deleted since the start. Deleted rows are tested as
            they were at the start, all others as they are now.
    """

    kind: Literal["rows"] = "rows"
    service: str
    table: str
    where: tuple[Test, ...] = ()
    change: Change | None = None
    at_least: int = Field(default=1, ge=0)
    at_most: int | None = Field(default=None, ge=0)


class Unchanged(Data):
    """Rows that passed all tests at the start are as they were, and no row that passes them has been added."""

    kind: Literal["unchanged"] = "unchanged"
    service: str
    table: str
    where: tuple[Test, ...] = ()


class Event(Data):
    """A logged change of a row that passes all tests as it was after the change (before it, if deleted)."""

    service: str
    table: str
    change: Change
    where: tuple[Test, ...] = ()


class Before(Data):
    """The first `earlier` event was logged before the first `later` event; both must have happened."""

    kind: Literal["before"] = "before"
    earlier: Event
    later: Event


class Stated(Data):
    """Either a fact, or a fact taken from a row when evaluated."""

    fact: Fact | None = None
    row: RowRef | None = None
    kind: FactKind | None = None

    @model_validator(mode="after")
    def _has_one_source(self) -> Self:
        if (self.fact is None) == (self.row is None):
            raise ValueError("a stated fact needs either `fact` or `row`")
        return self


class Answer(Data):
    """The final answer states every fact of `states` and none of `omits`."""

    kind: Literal["answer"] = "answer"
    states: tuple[Stated, ...] = ()
    omits: tuple[Stated, ...] = ()


class All(Data):
    """Every part holds."""

    kind: Literal["all"] = "all"
    parts: tuple[Condition, ...]


class AnyOf(Data):
    """At least one part holds."""

    kind: Literal["any"] = "any"
    parts: tuple[Condition, ...]


class Not(Data):
    """The part does not hold."""

    kind: Literal["not"] = "not"
    part: Condition


Condition = Annotated[
    Rows | Unchanged | Before | Answer | All | AnyOf | Not,
    Field(discriminator="kind"),
]

for _model in (Test, Rule, RowRef, Rows, All, AnyOf, Not):
    _model.model_rebuild()


class LoggedChange(Protocol):
    """A logged row change, as conditions see it."""

    @property
    def service(self) -> str:
        """The row's service."""
        ...

    @property
    def table(self) -> str:
        """The row's table."""
        ...

    @property
    def before(self) -> Row | None:
        """The row before the change; None if it is new."""
        ...

    @property
    def after(self) -> Row | None:
        """The row after the change; None if it was deleted."""
        ...


class Evidence(Protocol):
    """What conditions are evaluated against."""

    def rows(self, service: str, table: str) -> Iterable[Row]:
        """Rows as they are now."""
        ...

    def initial_rows(self, service: str, table: str) -> Iterable[Row]:
        """Rows as they were at the start."""
        ...

    def changed_rows(self, service: str, table: str) -> Iterable[tuple[Row | None, Row | None]]:
        """(at the start, now) of every row that differs from the start."""
        ...

    def events(self) -> Iterable[LoggedChange]:
        """All committed row changes, in the order of the log."""
        ...

    @property
    def answer(self) -> str | None:
        """The agent's final answer, once there is one."""
        ...


_ABSENT: Any = object()


def holds(condition: Condition, evidence: Evidence) -> bool:
    """Whether the condition holds.

    Raises:
        KeyError: It names a service or table that the evidence does not have.
    """
    match condition:
        case Rows():
            count = sum(1 for _ in matching_rows(condition, evidence))
            return count >= condition.at_least and (condition.at_most is None or count <= condition.at_most)
        case Unchanged():
            return not any(
                (row is not None and passes(condition.where, row, evidence))
                for change in evidence.changed_rows(condition.service, condition.table)
                for row in change
            )
        case Before():
            earlier = _first(condition.earlier, evidence)
            later = _first(condition.later, evidence)
            return earlier is not None and later is not None and earlier < later
        case Answer():
            text = evidence.answer
            if text is None:
                return False
            return all(_stated(item, text, evidence) for item in condition.states) and not any(
                _stated(item, text, evidence) for item in condition.omits
            )
        case All():
            return all(holds(part, evidence) for part in condition.parts)
        case AnyOf():
            return any(holds(part, evidence) for part in condition.parts)
        case Not():
            return not holds(condition.part, evidence)


def watched_tables(condition: Condition) -> frozenset[tuple[str, str]]:
    """The (service, table) pairs whose changes can alter the condition."""
    match condition:
        case Rows() | Unchanged():
            return frozenset(_tables(condition))
        case Before():
            return frozenset(_tables(condition.earlier) | _tables(condition.later))
        case Answer():
            rows = (item.row for item in (*condition.states, *condition.omits) if item.row)
            return frozenset().union(*map(_tables, rows))
        case All() | AnyOf():
            return frozenset().union(*(watched_tables(part) for part in condition.parts))
        case Not():
            return watched_tables(condition.part)


def _tables(part: Rows | Unchanged | Event | RowRef) -> set[tuple[str, str]]:
    """The table that a part is about, and those that its tests refer to."""
    referred = (_tables(test.row) for test in part.where if test.row)
    return {(part.service, part.table)}.union(*referred)


def matching_rows(condition: Rows | RowRef, evidence: Evidence) -> Iterator[Row]:
    """Rows that pass the tests of a condition or reference."""
    if condition.change is None:
        candidates: Iterable[Row] = evidence.rows(condition.service, condition.table)
    else:
        candidates = _changed(condition.change, evidence.changed_rows(condition.service, condition.table))
    return (row for row in candidates if passes(condition.where, row, evidence))


def _changed(change: Change, pairs: Iterable[tuple[Row | None, Row | None]]) -> Iterator[Row]:
    for before, after in pairs:
        kind: Change = "created" if before is None else "updated" if after is not None else "deleted"
        row = before if after is None else after
        if kind == change and row is not None:
            yield row


def _first(event: Event, evidence: Evidence) -> int | None:
    for index, change in enumerate(evidence.events()):
        if (change.service, change.table) != (event.service, event.table):
            continue
        row = next(_changed(event.change, [(change.before, change.after)]), None)
        if row is not None and passes(event.where, row, evidence):
            return index
    return None


def passes(tests: Sequence[Test], row: Mapping[str, Any], evidence: Evidence | None = None) -> bool:
    """Whether a row passes all tests. Tests that refer to other rows need the evidence."""
    return all(_passes(test, row, evidence) for test in tests)


def _passes(test: Test, row: Mapping[str, Any], evidence: Evidence | None) -> bool:
    left = value_at(row, test.field)
    if left is _ABSENT:
        return False
    right: Any = test.value
    if test.other is not None:
        right = value_at(row, test.other)
    elif test.row is not None:
        right = _resolve(test.row, evidence)
    if right is _ABSENT:
        return False
    return _compare(left, test, right)


def _compare(left: Any, test: Test, right: Any) -> bool:
    match test.op:
        case "eq":
            return equal(left, right)
        case "ne":
            return not equal(left, right)
        case "in":
            return isinstance(right, list | tuple) and any(equal(left, item) for item in right)
        case "contains":
            if isinstance(left, str):
                return isinstance(right, str) and right.casefold() in left.casefold()
            return isinstance(left, list | tuple) and any(equal(item, right) for item in left)
        case "mentions":
            fact = Fact(kind=test.kind, value=str(right)) if test.kind else fact_of(right)
            return isinstance(left, str) and states(left, fact)
        case _:
            return _ordered(left, test.op, right)


_DECIMAL = re.compile(r"[+-]?[0-9]{1,40}(\.[0-9]{1,40})?")
_INSTANT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9:]+)")


def _decimal(value: Any) -> Decimal | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    if isinstance(value, str) and not _DECIMAL.fullmatch(value):
        return None
    number = Decimal(value) if isinstance(value, int) else Decimal(str(value))
    return number if number.is_finite() else None


def _instant(value: Any) -> datetime | None:
    if not isinstance(value, str) or not _INSTANT.fullmatch(value):
        return None
    try:
        return datetime.fromisoformat(value)
    except ValueError:
        return None


def equal(left: Any, right: Any) -> bool:
    """JSON equality, except that a decimal text equals the same number and a time is the same in any offset.

    Of two texts, at least one needs a decimal point to be compared as numbers: `7` and `007` are two ids.
    """
    if isinstance(left, str) and isinstance(right, str):
        if left == right:
            return True
        if (moment := _instant(left)) is not None:
            return moment == _instant(right)
        if "." not in left and "." not in right:
            return False
    a, b = _decimal(left), _decimal(right)
    if a is not None and b is not None:
        return a == b
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(equal, left, right))
    if isinstance(left, Mapping) and isinstance(right, Mapping):
        return left.keys() == right.keys() and all(equal(value, right[key]) for key, value in left.items())
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


def _ordered(left: Any, op: Op, right: Any) -> bool:
    a: Any = _decimal(left)
    b: Any = _decimal(right)
    if a is None or b is None:
        if not (isinstance(left, str) and isinstance(right, str)):
            return False
        a, b = _instant(left), _instant(right)
        if a is None or b is None:
            a, b = left, right
    match op:
        case "lt":
            return bool(a < b)
        case "le":
            return bool(a <= b)
        case "gt":
            return bool(a > b)
        case _:
            return bool(a >= b)


def value_at(row: Mapping[str, Any], path: str) -> Any:
    """The value at a dotted path; a private marker that equals nothing where the path ends early."""
    value: Any = row
    for part in path.split("."):
        if isinstance(value, Mapping) and part in value:
            value = value[part]
        elif isinstance(value, list | tuple) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return _ABSENT
    return value


def _resolve(ref: RowRef, evidence: Evidence | None) -> Any:
    if evidence is None:
        raise ValueError(f"a test on another row ({ref.service}.{ref.table}) cannot be part of a row rule")
    for row in matching_rows(ref, evidence):
        return value_at(row, ref.field)
    return _ABSENT


def _stated(item: Stated, text: str, evidence: Evidence) -> bool:
    if item.fact is not None:
        return states(text, item.fact)
    assert item.row is not None
    value = _resolve(item.row, evidence)
    if value is _ABSENT or value is None:
        return False
    return states(text, Fact(kind=item.kind, value=str(value)) if item.kind else fact_of(value))
