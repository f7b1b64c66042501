"""Trials: the self-tests that a plan implies, one where the tool does its work and one where it refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from compoworld_core.errors import ErrorCode
from compoworld_core.specs.model import JsonObject
from compoworld_core.synthesis.rules.examples import Examples, NoExample
from compoworld_core.synthesis.rules.model import EntityModel, Operation, ServicePlan
from compoworld_core.synthesis.rules.naming import quoted
from compoworld_core.synthesis.rules.reading import Parameter
from compoworld_core.synthesis.rules.signature import default_of
from compoworld_core.synthesis.rules.words import ALL_VALUES
from compoworld_core.synthesis.selftest import REF, Expectation, GivenRow, SelfTest, Step

_COMPARABLE = ("text", "integer", "boolean", "day")


class Trials:
    """Makes the self-tests of one service."""

    def __init__(self, plan: ServicePlan, examples: Examples) -> None:
        self._plan = plan
        self._examples = examples

    def tests(self) -> tuple[SelfTest, ...]:
        """A normal and an error test of each tool, where examples are found."""
        return tuple(test for operation in self._plan.operations for test in self._of(operation))

    def _of(self, operation: Operation) -> Iterator[SelfTest]:
        makers: dict[str, Callable[[Operation], SelfTest]] = {
            "get": self._get,
            "list": self._list,
            "count": self._list,
            "create": self._create,
            "update": self._change,
            "transition": self._change,
            "delete": self._delete,
        }
        for maker in (makers[operation.kind], self._error, self._precondition):
            try:
                yield maker(operation)
            except NoExample:
                continue

    # Normal calls

    def _get(self, operation: Operation) -> SelfTest:
        given, arguments = self._subject(operation)
        return _test(operation, "normal", given, _step(operation, arguments, {"data.id": given[-1].row["id"]}))

    def _list(self, operation: Operation) -> SelfTest:
        entity = operation.entity
        required = [item for item in operation.filters if item.parameter.is_required]
        wanted = {item.field for item in required if item.field in entity.fields}
        if any(item.test == "words" for item in required) and not any(text.is_given for text in entity.texts()):
            wanted |= {text.name for text in entity.texts()[:1]}
        needed: JsonObject = {entity.status: operation.state} if operation.state and entity.status else {}
        for item in operation.filters:
            default = default_of(item.parameter, operation)
            if (
                item.test == "equal"
                and default not in (None, "None", "False", *(quoted(value) for value in ALL_VALUES))
                and item.field not in wanted
            ):
                needed[item.field] = item.parameter.default
            if item.test == "hides":
                needed[item.field] = next((state for state in entity.states if state != item.value), None)
        given = self._examples.rows(entity, needed, wanted)
        row = given[-1].row
        arguments: JsonObject = {}
        for parameter in operation.reading.required:
            arguments[parameter.wire] = self._listing_argument(operation, parameter, row)
        for item in operation.filters:
            is_bound = item.test in ("at_least", "at_most")
            if is_bound and default_of(item.parameter, operation) not in (None, "None"):
                arguments[item.parameter.wire] = self._examples.filter_argument(operation, item, row)
        if operation.kind == "count":
            expected = {f"data.{row[operation.group]}": 1} if operation.group else {"data": 1}
        elif operation.paging.parameters:
            expected = {"data.total": 1, "data.items.0.id": row["id"]}
        else:
            expected = {"data.0.id": row["id"]}
        return _test(operation, "normal", given, _step(operation, arguments, expected))

    def _listing_argument(self, operation: Operation, parameter: Parameter, row: JsonObject) -> Any:
        paging = operation.paging
        if parameter == paging.limit:
            return 1
        if parameter == paging.offset:
            return 0
        if parameter == paging.cursor:
            return "0"
        if parameter == paging.page:
            return 0 if parameter.schema.get("minimum") == 0 or "index" in parameter.words else 1
        found = next(item for item in operation.filters if item.parameter == parameter)
        return self._examples.filter_argument(operation, found, row)

    def _create(self, operation: Operation) -> SelfTest:
        given, arguments = self._creation(operation)
        expected = self._stored(operation, arguments)
        steps = [_step(operation, arguments, expected)]
        reader = self._reader(operation.entity)
        if reader is not None and reader.key is not None and (reader.types[reader.key.name].kind != "integer"):
            binding = {reader.key.wire: {REF: "s1.data.id"}}
            steps.append(_step(reader, binding, {"data.id": {REF: "s1.data.id"}}))
        return _test(operation, "normal", given, *steps)

    def _change(self, operation: Operation) -> SelfTest:
        given, arguments = self._subject(operation, self._before(operation))
        row = given[-1].row
        optional = [item for item in operation.settings if not item.parameter.is_required]
        chosen = [item for item in operation.settings if item.parameter.is_required] or optional[:1]
        for item in chosen:
            arguments[item.parameter.wire] = self._new_value(operation, item.parameter, row.get(item.field), given)
        expected = self._stored(operation, arguments)
        if operation.flag is not None:
            expected[f"data.{operation.flag[0]}"] = operation.flag[1]
        elif operation.target:
            expected[f"data.{operation.entity.status}"] = operation.target
        return _test(operation, "normal", given, _step(operation, arguments, expected))

    def _delete(self, operation: Operation) -> SelfTest:
        given, arguments = self._subject(operation, self._before(operation))
        steps = [
            _step(operation, arguments, {"data.id": given[-1].row["id"]}),
            _step(operation, arguments, {}, error="not_found"),
        ]
        return _test(operation, "normal", given, *steps)

    # Refusals

    def _error(self, operation: Operation) -> SelfTest:
        """A call that points at nothing, or leaves something out."""
        if operation.kind in ("get", "update", "transition", "delete") and operation.key is not None:
            given, arguments = self._subject(operation, self._before(operation))
            for item in operation.settings:
                if item.parameter.is_required:
                    arguments[item.parameter.wire] = self._new_value(operation, item.parameter, None, [])
            arguments[operation.key.wire] = self._missing(operation, operation.key)
            return _test(operation, "error", given, _step(operation, arguments, {}, error="not_found"))
        if operation.reading.required:
            return _test(operation, "error", [], _step(operation, {}, {}, error="invalid_arguments"))
        if operation.paging.limit is not None:
            arguments = {operation.paging.limit.wire: 0}
            return _test(operation, "error", [], _step(operation, arguments, {}, error="invalid_arguments"))
        return _test(operation, "error", [], _step(operation, {"no_such_argument": 1}, {}, error="invalid_arguments"))

    def _precondition(self, operation: Operation) -> SelfTest:
        """A transition of a row that is not in the right state."""
        entity = operation.entity
        refused = [*operation.forbids, operation.target] if not operation.requires else []
        refused += [state for state in entity.states if operation.requires and state not in operation.requires]
        if operation.kind != "transition" or operation.flag is not None or not entity.status or not refused:
            raise NoExample(operation.kind)
        given, arguments = self._subject(operation, {entity.status: refused[0]})
        for item in operation.settings:
            if item.parameter.is_required:
                arguments[item.parameter.wire] = self._new_value(operation, item.parameter, None, [])
        step = _step(operation, arguments, {}, error="failed_precondition")
        return _test(operation, "error", given, step, name="refused_by_state")

    # Pieces

    def _before(self, operation: Operation) -> JsonObject:
        """The state that a row must be in for the tool to work on it."""
        entity = operation.entity
        if operation.flag is not None:
            return {operation.flag[0]: not operation.flag[1]}
        if not entity.status:
            return {}
        if operation.requires:
            return {entity.status: operation.requires[0]}
        excluded = {*operation.forbids, operation.target}
        free = [state for state in (entity.initial, *entity.states) if state and state not in excluded]
        return {entity.status: free[0]} if free else {}

    def _subject(self, operation: Operation, needed: JsonObject | None = None) -> tuple[list[GivenRow], JsonObject]:
        """The row that a tool is about, and the arguments that point at it."""
        entity = operation.entity
        wanted = {item.field for item in operation.match}
        given = self._examples.rows(entity, needed or {}, wanted)
        row = given[-1].row
        arguments: JsonObject = {}
        if operation.key is not None:
            arguments[operation.key.wire] = self._examples.reference(entity, operation.types[operation.key.name])
        for item in operation.match:
            parameter = item.parameter
            type_, field = operation.types[parameter.name], entity.fields[item.field]
            if parameter.name in operation.references:
                arguments[parameter.wire] = self._examples.reference(operation.references[parameter.name], type_)
            elif type_.kind != field.type.kind or type_.kind in ("json", "part") or "pattern=" in type_.taken:
                raise NoExample(parameter.name)
            else:
                value = row[item.field]
                arguments[parameter.wire] = float(value) if type_.kind == "decimal" else value
        return given, arguments

    def _creation(self, operation: Operation) -> tuple[list[GivenRow], JsonObject]:
        given: list[GivenRow] = []
        arguments: JsonObject = {}
        parent = operation.parent
        if parent is not None and parent.status and (operation.requires or operation.forbids):
            allowed = operation.requires or [state for state in parent.states if state not in operation.forbids]
            given = self._examples.rows(parent, {parent.status: allowed[0]} if allowed else {})
        if operation.key is not None and operation.key.is_required:
            arguments[operation.key.wire] = self._examples.reference(
                operation.entity, operation.types[operation.key.name], missing=True
            )
        for item in operation.settings:
            if item.parameter.is_required:
                arguments[item.parameter.wire] = self._new_value(operation, item.parameter, None, given)
        return given, arguments

    def _new_value(self, operation: Operation, parameter: Parameter, unlike: Any, given: list[GivenRow]) -> Any:
        """A value to store; rows that it refers to are added to the given ones."""
        type_ = operation.types[parameter.name]
        referred = operation.references.get(parameter.name)
        if referred is not None:
            known = {row.table for row in given}
            if referred.table not in known:
                given += [row for row in self._examples.rows(referred, {}) if row.table not in known]
            return self._examples.reference(referred, type_)
        return self._examples.argument(parameter, type_, unlike)

    def _stored(self, operation: Operation, arguments: JsonObject) -> JsonObject:
        """What the answer must show of the arguments."""
        expected: JsonObject = {}
        for item in operation.settings:
            type_, field = operation.types[item.parameter.name], operation.entity.fields[item.field]
            is_plain = type_.kind in _COMPARABLE and field.type.kind == type_.kind
            if item.parameter.wire in arguments and is_plain and item.parameter.name not in operation.references:
                expected[f"data.{item.field}"] = arguments[item.parameter.wire]
        return expected

    def _missing(self, operation: Operation, key: Parameter) -> Any:
        return self._examples.reference(operation.entity, operation.types[key.name], missing=True)

    def _reader(self, entity: EntityModel) -> Operation | None:
        found = (
            item
            for item in self._plan.operations
            if item.kind == "get"
            and item.entity is entity
            and item.key is not None
            and item.reading.required == (item.key,)
        )
        return next(found, None)


def _step(operation: Operation, arguments: JsonObject, equals: JsonObject, error: ErrorCode | None = None) -> Step:
    return Step(
        tool=operation.reading.tool.name, arguments=dict(arguments), expect=Expectation(error=error, equals=equals)
    )


def _test(operation: Operation, kind: Any, given: list[GivenRow], *steps: Step, name: str = "") -> SelfTest:
    tool = operation.reading.tool.name
    return SelfTest(name=f"{tool}: {name or kind}", tool=tool, kind=kind, given=tuple(given), steps=steps)
