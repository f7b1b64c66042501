"""Listings: the statements that gather, order and cut the rows which a tool returns."""

from __future__ import annotations

from dataclasses import dataclass

from compoworld_core.synthesis.rules.expressions import alternatives, stored
from compoworld_core.synthesis.rules.layout import comprehension
from compoworld_core.synthesis.rules.model import Filter, Operation
from compoworld_core.synthesis.rules.naming import quoted
from compoworld_core.synthesis.rules.signature import DEFAULT_LIMIT, page_base

_BODY = 8


@dataclass(frozen=True)
class Rows:
    """Rows in source.

    Attributes:
        lines: Statements that come first.
        text: Expression of the rows.
        kind: What the expression is: a `table` can only be iterated.
    """

    lines: tuple[str, ...]
    text: str
    kind: str

    def named(self) -> Rows:
        """The same rows as a list or tuple under the name `rows`."""
        if self.text == "rows":
            return self
        text = f"tuple({self.text})" if self.kind == "table" else self.text
        return Rows((*self.lines, f"        rows = {text}"), "rows", "tuple")

    def sequence(self) -> str:
        """An expression that can be cut."""
        return f"tuple({self.text})" if self.kind == "table" else self.text

    def tuple(self) -> str:
        """An expression of a tuple."""
        return self.text if self.kind == "tuple" else f"tuple({self.text})"


def gather(operation: Operation, row: str) -> Rows:
    """The rows that an operation's filters leave, in its order."""
    table = f"self.state.{operation.entity.table}"
    direct = [item for item in operation.filters if _is_direct(operation, item)]
    equal = [f"{item.field}={stored(operation, item.parameter)}" for item in direct]
    if operation.state:
        equal.append(f"{operation.entity.status}={quoted(operation.state)}")
    tests = [alternatives(operation, item, row) for item in operation.filters if item not in direct]
    source = f"{table}.where({', '.join(equal)})" if equal else table
    found = Rows(tuple(_parent_checks(operation)), source, "tuple" if equal else "table")
    if tests:
        found = Rows((*found.lines, *comprehension("rows = ", row, source, tests, _BODY)), "rows", "list")
    if operation.sort_field is not None:
        order = f"sorted({found.text}, key=lambda {row}: {row}.{operation.sort_field})"
        found = Rows((*found.lines, f"        rows = {order}"), "rows", "list")
    elif operation.newest_first:
        line = f"        rows = {found.sequence()}[::-1]"
        found = Rows((*found.lines, line), "rows", "list" if tests else "tuple")
    return found


def write_list(operation: Operation, row: str) -> list[str]:
    """The body of a tool that lists."""
    found, paging = gather(operation, row), operation.paging
    if not paging.parameters:
        assigned = "        rows = "
        if found.kind == "tuple" and found.text == "rows" and found.lines[-1].startswith(assigned):
            return [*found.lines[:-1], f"        return {found.lines[-1].removeprefix(assigned)}"]
        return [*found.lines, f"        return {found.tuple()}"]
    limit = paging.limit.name if paging.limit else str(DEFAULT_LIMIT)
    if paging.cursor is not None:
        return [*found.lines, f"        return paginate({found.sequence()}, {limit}, {paging.cursor.name})"]
    if paging.offset is not None:
        start = paging.offset.name
    elif paging.page is not None:
        start = f"({paging.page.name} - 1) * {limit}" if page_base(paging.page) else f"{paging.page.name} * {limit}"
    else:
        return [*found.lines, f"        return paginate({found.sequence()}, {limit})"]
    return [*found.named().lines, f"        return paginate(rows, {limit}, str(min({start}, len(rows))))"]


def write_count(operation: Operation, row: str) -> list[str]:
    """The body of a tool that counts."""
    found = gather(operation, row)
    if operation.group is None:
        return [*found.lines, f"        return len({found.text})"]
    found = found.named()
    return [
        *found.lines,
        "        counts: dict[str, int] = {}",
        f"        for {row} in rows:",
        f"            key = str({row}.{operation.group})",
        "            counts[key] = counts.get(key, 0) + 1",
        "        return counts",
    ]


def _is_direct(operation: Operation, item: Filter) -> bool:
    """Whether the table's own index can answer a filter."""
    field = operation.entity.fields.get(item.field)
    if field is None or not item.parameter.is_required or item.test != "equal":
        return False
    type_ = operation.types[item.parameter.name]
    is_same = field.type.kind == type_.kind and (not type_.values or bool(field.type.values))
    return item.parameter.name in operation.references or is_same


def _parent_checks(operation: Operation) -> list[str]:
    """A list of what belongs to something that does not exist is an error, not empty."""
    lines = []
    for item in operation.filters:
        field = operation.entity.fields.get(item.field)
        referred = field.reference if field is not None else None
        is_asked = item.parameter.is_required and item.test == "equal"
        if is_asked and referred is not None and referred is not operation.entity:
            lines.append(f"        self.state.{referred.table}.get({stored(operation, item.parameter)})")
    return lines
