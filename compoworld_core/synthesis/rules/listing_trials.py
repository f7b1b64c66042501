"""Listing trials: the self-tests of tools that list or count, one for each thing that decides which rows come.

Every test of a filter gives one row that passes and one that fails by that filter alone, on the edge if there is one.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from compoworld_core.specs.model import JsonObject
from compoworld_core.synthesis.rules.examples import Examples, NoExample, is_free_text
from compoworld_core.synthesis.rules.model import Filter, Operation
from compoworld_core.synthesis.rules.naming import quoted
from compoworld_core.synthesis.rules.reading import Parameter
from compoworld_core.synthesis.rules.signature import DEFAULT_LIMIT, default_of, page_base
from compoworld_core.synthesis.rules.testing import Maker, self_test, step
from compoworld_core.synthesis.rules.types import TypeExpr
from compoworld_core.synthesis.rules.words import ALL_VALUES
from compoworld_core.synthesis.selftest import REF, GivenRow, SelfTest, Step

_MOST_ROWS = 60
"""Default limits above this are not tested; so many rows would be needed."""
_QUERY, _HIT, _MISS = "QUOKKA zebra", "A zebra and a quokka", "A zebra alone"


class ListingTrials:
    """Makes the self-tests of one tool that lists or counts."""

    def __init__(self, operation: Operation, examples: Examples) -> None:
        self._operation = operation
        self._examples = examples
        self._entity = operation.entity

    def makers(self) -> Iterator[Maker]:
        """What makes each of the tests; a maker without an example raises."""
        operation = self._operation
        yield self._normal
        for item in operation.filters:
            yield partial(self._filter, item)
        if operation.state:
            yield self._of_state
        if operation.kind == "list":
            yield self._order
            if operation.paging.parameters:
                yield self._page
                yield self._default_limit
        for item in operation.filters:
            if item.parameter.name in operation.references and item.parameter.is_required:
                yield partial(self._of_nothing, item)

    # The rows that a test is about

    def _given(self, wanted: set[str] = frozenset()) -> list[GivenRow]:  # type: ignore[assignment]
        """A row that a call with the usual arguments returns, after the rows that it refers to."""
        operation, entity = self._operation, self._entity
        required = [item for item in operation.filters if item.parameter.is_required]
        wanted = wanted | {item.field for item in required if item.field in entity.fields}
        if any(item.test == "words" for item in required) and not any(text.is_given for text in entity.texts()):
            wanted |= {text.name for text in entity.texts()[:1]}
        needed: JsonObject = {entity.status: operation.state} if operation.state and entity.status else {}
        for item in operation.filters:
            field = entity.fields.get(item.field)
            if field is not None and item.field in wanted and item.field not in needed:
                shared = _shared_values(operation.types[item.parameter.name], field.type)
                if shared:
                    needed[item.field] = shared[:1] if field.type.kind == "list" else shared[0]
            default = default_of(item.parameter, operation)
            if (
                item.test == "equal"
                and default not in (None, "None", "False", *(quoted(value) for value in ALL_VALUES))
                and item.field not in wanted
            ):
                needed[item.field] = item.parameter.default
            if item.test == "hides":
                needed[item.field] = next((state for state in entity.states if state != item.value), None)
        return self._examples.rows(entity, needed, wanted)

    def _arguments(self, row: JsonObject) -> JsonObject:
        """Arguments that a row passes: those that a call must give, and others whose default would shut it out."""
        operation = self._operation
        arguments: JsonObject = {}
        for parameter in operation.reading.required:
            arguments[parameter.wire] = self._argument(parameter, row)
        for item in operation.filters:
            is_bound = item.test in ("at_least", "at_most")
            if is_bound and default_of(item.parameter, operation) not in (None, "None"):
                arguments[item.parameter.wire] = self._examples.filter_argument(operation, item, row)
        return arguments

    def _argument(self, parameter: Parameter, row: JsonObject) -> Any:
        paging = self._operation.paging
        if parameter == paging.limit:
            return 1
        if parameter == paging.offset:
            return 0
        if parameter == paging.cursor:
            return "0"
        if parameter == paging.page:
            return page_base(parameter)
        found = next(item for item in self._operation.filters if item.parameter == parameter)
        return self._examples.filter_argument(self._operation, found, row)

    def _call(self, arguments: JsonObject, rows: list[JsonObject], *, shown: int | None = None) -> Step:
        """A call that must return these rows in this order, or only the first of them."""
        operation = self._operation
        shown = len(rows) if shown is None else shown
        if operation.kind == "count":
            if operation.group is None:
                return step(operation, arguments, {"data": len(rows)})
            counts: dict[str, int] = {}
            for row in rows:
                counts[str(row[operation.group])] = counts.get(str(row[operation.group]), 0) + 1
            return step(operation, arguments, {"data": counts})
        place = "data.items" if operation.paging.parameters else "data"
        expected: JsonObject = {f"{place}.{at}.id": row["id"] for at, row in enumerate(rows[:shown])}
        if operation.paging.parameters:
            expected["data.total"] = len(rows)
        return step(operation, arguments, expected, sizes={place: shown})

    def _unlimited(self, arguments: JsonObject, count: int) -> JsonObject:
        """The arguments with room for that many rows."""
        limit = self._operation.paging.limit
        if limit is None:
            return arguments
        if limit.schema.get("maximum", count) < count:
            raise NoExample(limit.name)
        return {**arguments, limit.wire: count}

    # Tests

    def _normal(self) -> SelfTest:
        given = self._given()
        row = given[-1].row
        return self_test(self._operation, "normal", given, self._call(self._arguments(row), [row]))

    def _filter(self, item: Filter) -> SelfTest:
        operation, entity = self._operation, self._entity
        wanted = {item.field} if item.field in entity.fields else set()
        given = self._given(wanted)
        row = given[-1].row
        arguments = self._arguments(row)
        extra: list[GivenRow] = []
        hidden: list[JsonObject] = []
        name = item.parameter.wire
        if item.test == "words":
            used = {other.field for other in operation.filters if other is not item}
            text = next((one for one in entity.texts() if is_free_text(one.type) and one.name not in used), None)
            if text is None:
                raise NoExample(name)
            given[-1] = GivenRow(table=entity.table, row={**row, text.name: _HIT})
            hidden.append({text.name: _MISS})
            arguments = {**self._arguments(given[-1].row), name: _QUERY}
        elif item.test == "hides":
            hidden.append({item.field: item.value})
            if item.parameter.is_required:
                arguments[name] = False
        elif item.field == "id":
            arguments[name] = self._examples.filter_argument(operation, item, row)
            hidden.append({})
        elif item.test in ("at_least", "at_most"):
            arguments[name], outside = self._examples.edge(operation, item, row[item.field])
            hidden.append({item.field: outside})
            if entity.fields[item.field].is_optional:
                hidden.append({item.field: None})
        else:
            if item.test == "equal" and default_of(item.parameter, operation) == "False":
                given[-1] = GivenRow(table=entity.table, row={**row, item.field: True})
                row = given[-1].row
            arguments[name] = self._examples.filter_argument(operation, item, row)
            other, extra = self._other(item, row, given)
            hidden.append({item.field: other})
        row = given[-1].row
        others = [self._examples.another(entity, row, at, part) for at, part in enumerate(hidden, start=2)]
        steps = [self._call(arguments, [row])]
        if item.test == "hides":
            shown = self._ordered([others[0].row, row])
            steps.append(self._call(self._unlimited({**arguments, name: True}, 2), shown))
        return self_test(
            operation,
            "normal",
            [*given[:-1], *extra, *others, given[-1]],
            *steps,
            name=f"filters_by_{item.field or name}",
        )

    def _other(self, item: Filter, row: JsonObject, given: list[GivenRow]) -> tuple[Any, list[GivenRow]]:
        """Another value of a row's field, and the row that it refers to."""
        field = self._entity.fields[item.field]
        if field.reference is None:
            return self._examples.unlike(self._entity, item.field, row[item.field]), []
        if field.reference is self._entity:
            raise NoExample(item.field)
        referred = next((part.row for part in given if part.table == field.reference.table), None)
        if referred is None:
            raise NoExample(item.field)
        extra = self._examples.another(field.reference, referred)
        return [extra.row["id"]] if field.type.kind == "list" else extra.row["id"], [extra]

    def _of_state(self) -> SelfTest:
        given = self._given()
        row, entity = given[-1].row, self._entity
        other = next(state for state in entity.states if state != self._operation.state)
        decoy = self._examples.another(entity, row, 2, {entity.status or "": other})
        call = self._call(self._arguments(row), [row])
        return self_test(self._operation, "normal", [*given[:-1], decoy, given[-1]], call, name="filters_by_state")

    def _several(self, count: int) -> tuple[list[GivenRow], list[JsonObject]]:
        """Given rows, and those of them that a call returns, in order."""
        given = self._given()
        row, entity = given[-1].row, self._entity
        required = {item.field for item in self._operation.filters if item.parameter.is_required}
        if required & {"id", *entity.natural, self._operation.sort_field}:
            raise NoExample("only one row can pass")
        changes: list[JsonObject] = [{} for _ in range(count)]
        if (name := self._operation.sort_field) is not None:
            if entity.fields[name].reference is not None:
                raise NoExample(name)
            values = [row[name]]
            while len(values) < count:
                is_text = entity.fields[name].type.kind == "text"
                values.append(
                    f"{99 - len(values)} {row[name]}" if is_text else self._examples.unlike(entity, name, values[-1])
                )
            changes = [{name: value} for value in values]
        rows = [given[-1], *(self._examples.another(entity, row, at, changes[at - 1]) for at in range(2, count + 1))]
        return [*given[:-1], *rows], self._ordered([part.row for part in rows])

    def _ordered(self, rows: list[JsonObject]) -> list[JsonObject]:
        operation = self._operation
        if operation.sort_field is not None:
            name = operation.sort_field
            kind = self._entity.fields[name].type.kind
            return sorted(rows, key=lambda row: float(row[name]) if kind == "decimal" else row[name])
        return rows[::-1] if operation.newest_first else rows

    def _order(self) -> SelfTest:
        given, rows = self._several(3)
        arguments = self._unlimited(self._arguments(given[-3].row), 3)
        return self_test(self._operation, "normal", given, self._call(arguments, rows), name="in_order")

    def _page(self) -> SelfTest:
        """The rows behind the first page, by whatever means there is to ask for them."""
        operation, paging = self._operation, self._operation.paging
        given, rows = self._several(3)
        arguments = self._arguments(given[-3].row)
        if paging.limit is None:
            if paging.offset is None:
                raise NoExample("page")
            behind: JsonObject = {"data.total": 3, "data.items.0.id": rows[1]["id"]}
            call = step(operation, {**arguments, paging.offset.wire: 1}, behind, sizes={"data.items": 2})
            return self_test(operation, "normal", given, call, name="pages")
        arguments = self._unlimited(arguments, 2)
        steps = [self._call(arguments, rows, shown=2)]
        last: JsonObject = {"data.total": 3, "data.items.0.id": rows[2]["id"], "data.next_cursor": None}
        ways: list[tuple[Parameter | None, Any]] = [
            (paging.cursor, {REF: "s1.data.next_cursor"}),
            (paging.offset, 2),
            (paging.page, page_base(paging.page) + 1 if paging.page is not None else None),
        ]
        for parameter, value in ways:
            if parameter is not None:
                steps.append(step(operation, {**arguments, parameter.wire: value}, last, sizes={"data.items": 1}))
                if isinstance(value, int):
                    far = {**arguments, parameter.wire: value + 7}
                    steps.append(step(operation, far, {"data.total": 3}, sizes={"data.items": 0}))
                break
        return self_test(operation, "normal", given, *steps, name="pages")

    def _default_limit(self) -> SelfTest:
        limit = self._operation.paging.limit
        size = int(default_of(limit, self._operation) or 0) if limit is not None else DEFAULT_LIMIT
        if not 0 < size <= _MOST_ROWS:
            raise NoExample("limit")
        given, rows = self._several(size + 1)
        arguments = self._arguments(given[-size - 1].row)
        steps = [self._call(arguments, rows, shown=size)]
        if (cursor := self._operation.paging.cursor) is not None:
            rest: JsonObject = {"data.items.0.id": rows[-1]["id"], "data.next_cursor": None}
            after = {**arguments, cursor.wire: {REF: "s1.data.next_cursor"}}
            steps.append(step(self._operation, after, rest, sizes={"data.items": 1}))
        return self_test(self._operation, "normal", given, *steps, name="limits_by_default")

    def _of_nothing(self, item: Filter) -> SelfTest:
        """A list of what belongs to something that is not there is an error, where the module looks that up."""
        operation, field = self._operation, self._entity.fields.get(item.field)
        referred = field.reference if field is not None else None
        if item.test != "equal" or referred is None or referred is self._entity:
            raise NoExample(item.field)
        given = self._given()
        arguments = self._arguments(given[-1].row)
        type_ = operation.types[item.parameter.name]
        arguments[item.parameter.wire] = self._examples.reference(referred, type_, missing=True)
        call = step(operation, arguments, {}, error="not_found")
        return self_test(operation, "error", given, call, name=f"unknown_{item.field}")


def _shared_values(taken: TypeExpr, kept: TypeExpr) -> list[Any]:
    """Values that a row may have and a filter may ask for, where either lists them."""
    taken, kept = taken.item or taken, kept.item or kept
    return [
        value
        for value in kept.values or taken.values
        if value in (taken.values or kept.values) and value not in ALL_VALUES
    ]
