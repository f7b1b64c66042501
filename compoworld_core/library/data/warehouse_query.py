"""Queries: a small SELECT as data. Nothing is parsed but the values, and a query touches each row once.

Arithmetic is decimal and half-up. Empty values behave as in SQL: no comparison holds for them, aggregates leave them
out, a sum of nothing is empty.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final, NamedTuple

from compoworld_core.library.data.warehouse_rows import (
    MEASURES,
    Aggregate,
    Cell,
    Column,
    DatasetRow,
    Filter,
    QueryDefinition,
    Subject,
)
from compoworld_core.services.sdk import InvalidArguments

COLUMNS: Final[Mapping[Subject, tuple[Column, ...]]] = {
    "revenue": ("period", "organisation_name", "country", "amount"),
    "sales": ("period", "sku", "product_name", "units", "amount"),
    "hours": ("period", "project_name", "employee_email", "hours"),
}
"""Columns of a dataset by its subject."""

KEYS: Final[Mapping[Subject, tuple[Column, ...]]] = {
    "revenue": ("period", "organisation_name"),
    "sales": ("period", "sku"),
    "hours": ("period", "project_name", "employee_email"),
}
"""Columns that tell a dataset's current rows apart."""

_NUMBER = re.compile(r"-?[0-9]{1,15}(?:\.[0-9]{1,4})?")
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}(?:-[0-9]{2})?")

_COMPARE: Final[Mapping[str, Callable[[Any, Any], bool]]] = {
    "eq": lambda left, right: left == right,
    "ne": lambda left, right: left != right,
    "lt": lambda left, right: left < right,
    "le": lambda left, right: left <= right,
    "gt": lambda left, right: left > right,
    "ge": lambda left, right: left >= right,
}

Value = str | int | Decimal | date | None
Record = dict[str, Value]


class Answer(NamedTuple):
    """A result table; `total` counts rows before the limit."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    total: int


def run_query(rows: Iterable[DatasetRow], subject: Subject, query: QueryDefinition) -> Answer:
    """Compute a query over a dataset's rows.

    Without an order, plain rows come in the order given and groups in the order of their first rows.

    Raises:
        InvalidArguments: The query names a column that the dataset or the result doesn't have, or compares a column
            with a value that it can't have.
    """
    check_query(subject, query)
    tests = [_test(item) for item in query.where]
    kept = [row for row in rows if all(test(row) for test in tests)]
    if query.group_by or query.aggregates:
        shown = tuple(dict.fromkeys((*query.group_by, *map(column_name, query.aggregates))))
        records = _grouped(kept, query)
    else:
        shown = query.columns or COLUMNS[subject]
        records = [{name: getattr(row, name) for name in COLUMNS[subject]} for row in kept]
    for sort in reversed(query.order_by):
        filled = [record for record in records if record[sort.by] is not None]
        empty = [record for record in records if record[sort.by] is None]
        filled.sort(key=lambda record: record[sort.by], reverse=sort.direction == "desc")  # type: ignore[arg-type, return-value]
        records = filled + empty
    cut = records[: query.limit]
    return Answer(shown, tuple(tuple(cell(record[name]) for name in shown) for record in cut), len(records))


def check_query(subject: Subject, query: QueryDefinition) -> None:
    """Refuse a query that no dataset of the subject can answer.

    Raises:
        InvalidArguments: The message says which part is wrong.
    """
    known = COLUMNS[subject]
    used = [*query.columns, *query.group_by, *(item.column for item in query.where)]
    used += [item.column for item in query.aggregates if item.column is not None]
    for name in used:
        if name not in known:
            raise InvalidArguments(f"{name}: a dataset about {subject} has the columns {', '.join(known)}")
    is_grouped = bool(query.group_by or query.aggregates)
    if is_grouped and query.columns:
        raise InvalidArguments("columns: a query with groups or aggregates shows these; leave the columns out")
    for item in query.aggregates:
        if item.function != "count" and item.column is None:
            raise InvalidArguments(f"aggregates: {item.function} needs a column")
        if item.function in ("sum", "avg") and item.column not in MEASURES:
            raise InvalidArguments(f"aggregates: {item.function} needs a numeric column, not {item.column}")
    sortable = (*query.group_by, *map(column_name, query.aggregates)) if is_grouped else known
    for sort in query.order_by:
        if sort.by not in sortable:
            raise InvalidArguments(f"order_by: {sort.by!r} is none of {', '.join(sortable)}")
    for condition in query.where:
        _test(condition)


def column_name(item: Aggregate) -> str:
    """Name of the result column of an aggregate."""
    return item.function if item.column is None else f"{item.function}_{item.column}"


def cell(value: Value) -> Cell:
    """A value as it is shown: amounts and averages as text with two decimals, days as ISO text."""
    if isinstance(value, Decimal):
        return format(value, ".2f")
    return value.isoformat() if isinstance(value, date) else value


def read_value(column: Column, text: str) -> Value:
    """The value of a column that a text writes.

    Raises:
        InvalidArguments: The column can't have it.
    """
    if column == "period":
        try:
            if _DAY.fullmatch(text):
                return date.fromisoformat(text if len(text) == 10 else f"{text}-01")
        except ValueError:
            pass
        raise InvalidArguments(f"period: {text[:40]!r} is not a day such as 2026-01-01")
    if column in MEASURES:
        if not _NUMBER.fullmatch(text):
            raise InvalidArguments(f"{column}: {text[:40]!r} is not a number such as 250.00")
        return Decimal(text)
    return text.lower() if column == "employee_email" else text


def _test(item: Filter) -> Callable[[DatasetRow], bool]:
    name, op = item.column, item.op
    if op in ("is_null", "not_null"):
        if item.value is not None:
            raise InvalidArguments(f"where: {op} takes no value")
        return lambda row: (getattr(row, name) is None) == (op == "is_null")
    if item.value is None:
        raise InvalidArguments(f"where: {op} needs a value")
    if op == "contains":
        if name == "period" or name in MEASURES:
            raise InvalidArguments(f"where: contains is for texts, and {name} is none")
        part = item.value.casefold()
        return lambda row: getattr(row, name) is not None and part in getattr(row, name).casefold()
    if op == "in":
        accepted = [read_value(name, text.strip()) for text in item.value.split("|")]
        return lambda row: getattr(row, name) is not None and getattr(row, name) in accepted
    wanted = read_value(name, item.value)
    compare = _COMPARE[op]
    return lambda row: getattr(row, name) is not None and compare(getattr(row, name), wanted)


def _grouped(rows: Sequence[DatasetRow], query: QueryDefinition) -> list[Record]:
    groups: dict[tuple[Any, ...], list[DatasetRow]] = {} if query.group_by else {(): []}
    for row in rows:
        groups.setdefault(tuple(getattr(row, name) for name in query.group_by), []).append(row)
    return [
        {
            **dict(zip(query.group_by, values, strict=True)),
            **{column_name(item): _figure(item, members) for item in query.aggregates},
        }
        for values, members in groups.items()
    ]


def _figure(item: Aggregate, rows: Sequence[DatasetRow]) -> Value:
    if item.column is None:
        return len(rows)
    values: list[Any] = [value for row in rows if (value := getattr(row, item.column)) is not None]
    if item.function == "count":
        return len(values)
    if not values:
        return None
    if item.function == "min":
        return min(values)  # type: ignore[no-any-return]
    if item.function == "max":
        return max(values)  # type: ignore[no-any-return]
    if item.function == "sum":
        return sum(values)  # type: ignore[no-any-return]
    return (Decimal(sum(values)) / len(values)).quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)
