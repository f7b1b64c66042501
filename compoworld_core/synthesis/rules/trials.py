"""Trials: the self-tests that a plan implies, for each thing that a tool has to do or to refuse.

A test of a tool that is about one row has another row in front of it, which the tool must leave alone.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import partial
from typing import Any

from compoworld_core.specs.model import JsonObject
from compoworld_core.storage.digest import canonical_json
from compoworld_core.synthesis.rules.examples import Examples, NoExample, is_legal
from compoworld_core.synthesis.rules.listing_trials import ListingTrials
from compoworld_core.synthesis.rules.model import EntityModel, Operation, ServicePlan, Setting
from compoworld_core.synthesis.rules.reading import Parameter
from compoworld_core.synthesis.rules.signature import default_of
from compoworld_core.synthesis.rules.testing import Maker, self_test, step
from compoworld_core.synthesis.rules.types import TypeExpr
from compoworld_core.synthesis.selftest import REF, GivenRow, SelfTest, Step

_MOST_STATES = 8
"""States from which a tool is tried."""


class Trials:
    """Makes the self-tests of one service."""

    def __init__(self, plan: ServicePlan, examples: Examples) -> None:
        self._plan = plan
        self._examples = examples
        self._properties = {
            item.reading.tool.name: {parameter.wire: parameter.schema for parameter in item.reading.parameters}
            for item in plan.operations
        }

    def tests(self) -> tuple[SelfTest, ...]:
        """The tests of each tool, as far as examples are found."""
        return tuple(test for operation in self._plan.operations for test in self._of(operation))

    def _of(self, operation: Operation) -> Iterator[SelfTest]:
        for maker in self._makers(operation):
            try:
                test = maker()
            except NoExample:
                continue
            if all(self._is_possible(step) for step in test.steps):
                yield test

    def _is_possible(self, step: Step) -> bool:
        """Whether the spec allows a step's arguments; the ids of examples may not look as a service wants them."""
        if step.expect.error == "invalid_arguments":
            return True
        properties = self._properties[step.tool]
        return all(
            is_legal(properties[name], value)
            for name, value in step.arguments.items()
            if name in properties and not (isinstance(value, dict) and REF in value)
        )

    def _makers(self, operation: Operation) -> Iterator[Maker]:
        if operation.kind in ("list", "count"):
            yield from ListingTrials(operation, self._examples).makers()
        elif operation.kind == "get":
            yield partial(self._get, operation)
        elif operation.kind == "create":
            yield from self._creations(operation)
        elif operation.kind == "delete":
            yield partial(self._delete, operation)
        else:
            yield from self._changes(operation)
        yield partial(self._error, operation)
        if operation.kind != "create" and operation.key is not None and not operation.key.is_required:
            yield partial(self._keyless, operation)
        if operation.kind not in ("list", "count"):
            for item in operation.match:
                yield partial(self._mismatch, operation, item)
            for item in operation.settings:
                if item.parameter.name in operation.references:
                    yield partial(self._dangling, operation, item)
            yield from self._by_state(operation)

    # Reading

    def _get(self, operation: Operation) -> SelfTest:
        given, arguments = self._subject(operation)
        row = given[-1].row
        expected = {f"data.{name}": value for name, value in row.items() if self._is_comparable(operation, name)}
        first = self._decoy(operation, given)
        if operation.is_latest:
            first = self._examples.another(operation.entity, row)
        return self_test(operation, "normal", _before(given, first), step(operation, arguments, expected))

    # Creating

    def _creations(self, operation: Operation) -> Iterator[Maker]:
        yield partial(self._create, operation, is_full=False)
        if any(not item.parameter.is_required for item in operation.settings):
            yield partial(self._create, operation, is_full=True)
        for item in operation.settings:
            if item.field in operation.entity.natural:
                yield partial(self._taken, operation, item)
        if operation.key is not None:
            yield partial(self._taken, operation, None)

    def _create(self, operation: Operation, *, is_full: bool) -> SelfTest:
        """Every argument is stored; what is not given has its default."""
        given, arguments = self._creation(operation, is_full=is_full)
        expected = self._stored(operation, arguments)
        for field in operation.entity.fields.values():
            place = f"data.{field.name}"
            if place not in expected and field.name not in self._set(operation, arguments) and not field.automatic:
                if field.default is not None:
                    default = ast.literal_eval(field.default)
                    expected[place] = list(default) if isinstance(default, tuple) else default
                elif field.is_optional:
                    expected[place] = None
        steps = [step(operation, arguments, expected)]
        reader = self._reader(operation.entity)
        if reader is not None and reader.key is not None and (reader.types[reader.key.name].kind != "integer"):
            binding = {reader.key.wire: {REF: "s1.data.id"}}
            steps.append(step(reader, binding, {**expected, "data.id": {REF: "s1.data.id"}}))
        return self_test(operation, "normal", given, *steps, name="stores_everything" if is_full else "")

    def _set(self, operation: Operation, arguments: JsonObject) -> set[str]:
        """Fields that a creation with these arguments fills in itself."""
        return {
            item.field
            for item in operation.settings
            if item.parameter.wire in arguments or default_of(item.parameter, operation) not in (None, "None")
        }

    def _taken(self, operation: Operation, item: Setting | None) -> SelfTest:
        """What identifies a row can be given once only."""
        given, arguments = self._creation(operation, is_full=False)
        entity = operation.entity
        if item is None:
            assert operation.key is not None
            given = [*given, *_unknown(self._examples.rows(entity, {}), given)]
            arguments[operation.key.wire] = self._examples.reference(entity, operation.types[operation.key.name])
        else:
            wire, type_ = item.parameter.wire, operation.types[item.parameter.name]
            if not item.parameter.is_required or item.parameter.name in operation.references:
                raise NoExample(wire)
            value = self._examples.kept(type_, arguments[wire])
            given = [*given, *_unknown(self._examples.rows(entity, {item.field: value}), given)]
        return self_test(
            operation,
            "error",
            given,
            step(operation, arguments, {}, error="already_exists"),
            name=f"{item.field if item else 'id'}_taken",
        )

    # Changing

    def _changes(self, operation: Operation) -> Iterator[Maker]:
        optional = [item for item in operation.settings if not item.parameter.is_required]
        yield partial(self._change, operation, optional[:1] if len(optional) == len(operation.settings) else [])
        if optional:
            yield partial(self._change, operation, optional, name="stores_everything")

    def _change(self, operation: Operation, optional: list[Setting], name: str = "") -> SelfTest:
        """What is given is stored, in that row only; what is not given stays."""
        given, arguments = self._subject(operation, self._start(operation))
        row = given[-1].row
        for item in operation.settings:
            if item.parameter.is_required or item in optional:
                arguments[item.parameter.wire] = self._new_value(operation, item.parameter, row.get(item.field), given)
        changed = {item.field for item in operation.settings if item.parameter.wire in arguments}
        defaults = {
            item.field
            for item in operation.settings
            if item.parameter.wire not in arguments and default_of(item.parameter, operation) not in (None, "None")
        }
        expected = {
            f"data.{field}": value
            for field, value in row.items()
            if field not in changed | defaults and self._is_comparable(operation, field)
        }
        expected |= self._stored(operation, arguments)
        if operation.flag is not None:
            expected[f"data.{operation.flag[0]}"] = operation.flag[1]
        elif operation.target:
            expected[f"data.{operation.entity.status}"] = operation.target
        decoy = self._decoy(operation, given)
        steps = [step(operation, arguments, expected), *self._looks(operation, expected, decoy)]
        return self_test(operation, "normal", _before(given, decoy), *steps, name=name)

    def _looks(self, operation: Operation, expected: JsonObject, decoy: GivenRow | None) -> Iterator[Step]:
        """Reads of the changed row and of the other one."""
        reader, entity = self._reader(operation.entity), operation.entity
        if reader is None or reader.key is None:
            return
        type_ = reader.types[reader.key.name]
        yield step(reader, {reader.key.wire: self._examples.reference(entity, type_)}, expected)
        if decoy is not None:
            same = {f"data.{name}": value for name, value in decoy.row.items() if self._is_comparable(operation, name)}
            yield step(reader, {reader.key.wire: self._examples.reference(entity, type_, number=2)}, same)

    def _delete(self, operation: Operation) -> SelfTest:
        given, arguments = self._subject(operation, self._start(operation))
        steps = [
            step(operation, arguments, {"data.id": given[-1].row["id"]}),
            step(operation, arguments, {}, error="not_found"),
        ]
        decoy = self._decoy(operation, given)
        reader = self._reader(operation.entity)
        if decoy is not None and reader is not None and reader.key is not None:
            type_ = reader.types[reader.key.name]
            other = self._examples.reference(operation.entity, type_, number=2)
            steps.append(step(reader, {reader.key.wire: other}, {"data.id": decoy.row["id"]}))
        return self_test(operation, "normal", _before(given, decoy), *steps)

    def _decoy(self, operation: Operation, given: list[GivenRow]) -> GivenRow | None:
        """A row that the tool must not take for the one that it is about."""
        entity = operation.entity
        row = _row_of(given, entity)
        try:
            changed: JsonObject = {}
            if operation.key is None:
                item = operation.match[0]
                if item.field in entity.natural:
                    return self._examples.another(entity, row)
                changed = {item.field: self._examples.unlike(entity, item.field, row[item.field])}
            return self._examples.another(entity, row, changed=changed)
        except NoExample:
            return None

    # Refusals

    def _error(self, operation: Operation) -> SelfTest:
        """A call that points at nothing, or leaves something out."""
        if operation.kind in ("get", "update", "transition", "delete") and operation.key is not None:
            given, arguments = self._subject(operation, self._start(operation))
            for item in operation.settings:
                if item.parameter.is_required:
                    arguments[item.parameter.wire] = self._new_value(operation, item.parameter, None, [])
            arguments[operation.key.wire] = self._missing(operation, operation.key)
            return self_test(operation, "error", given, step(operation, arguments, {}, error="not_found"))
        if operation.reading.required:
            return self_test(operation, "error", [], step(operation, {}, {}, error="invalid_arguments"))
        if operation.paging.limit is not None:
            arguments = {operation.paging.limit.wire: 0}
            return self_test(operation, "error", [], step(operation, arguments, {}, error="invalid_arguments"))
        return self_test(
            operation, "error", [], step(operation, {"no_such_argument": 1}, {}, error="invalid_arguments")
        )

    def _keyless(self, operation: Operation) -> SelfTest:
        """Nothing says which row it is about."""
        assert operation.key is not None
        given, arguments = self._subject(operation, self._start(operation))
        if operation.kind in ("list", "count"):
            raise NoExample(operation.kind)
        for item in operation.settings:
            if item.parameter.is_required:
                arguments[item.parameter.wire] = self._new_value(operation, item.parameter, None, given)
        arguments.pop(operation.key.wire)
        call = step(operation, arguments, {}, error="invalid_arguments")
        return self_test(operation, "error", given, call, name="without_id")

    def _mismatch(self, operation: Operation, item: Setting) -> SelfTest:
        """A row that has the id, or all else that was asked for, but not this."""
        given, arguments = self._subject(operation, self._start(operation))
        for setting in operation.settings:
            if setting.parameter.is_required:
                arguments[setting.parameter.wire] = self._new_value(operation, setting.parameter, None, [])
        parameter, wire = item.parameter, item.parameter.wire
        referred = operation.references.get(parameter.name)
        if referred is not None:
            arguments[wire] = self._examples.reference(referred, operation.types[parameter.name], missing=True)
        else:
            other = self._examples.argument(parameter, operation.types[parameter.name], arguments[wire])
            arguments[wire] = other
        call = step(operation, arguments, {}, error="not_found")
        return self_test(operation, "error", given, call, name=f"other_{item.field}")

    def _dangling(self, operation: Operation, item: Setting) -> SelfTest:
        """A new reference to a row that does not exist."""
        field = operation.entity.fields[item.field]
        if field.reference is None:
            raise NoExample(item.field)
        if operation.kind == "create":
            given, arguments = self._creation(operation, is_full=False)
        else:
            given, arguments = self._subject(operation, self._start(operation))
            for setting in operation.settings:
                if setting.parameter.is_required:
                    arguments[setting.parameter.wire] = self._new_value(operation, setting.parameter, None, given)
        type_ = operation.types[item.parameter.name]
        arguments[item.parameter.wire] = self._examples.reference(field.reference, type_, missing=True)
        call = step(operation, arguments, {}, error="not_found")
        return self_test(operation, "error", given, call, name=f"unknown_{item.field}")

    def _by_state(self, operation: Operation) -> Iterator[Maker]:
        """From each state that the tool's row, or its parent, can be in: the tool works or refuses."""
        is_made = operation.kind == "create"
        owner = operation.parent if is_made else operation.entity
        if owner is None or not owner.status or operation.flag is not None or operation.kind == "get":
            if operation.flag is not None:
                yield partial(self._flagged_already, operation)
            return
        chosen = next((item for item in operation.settings if item.field == owner.status and not is_made), None)
        if chosen is not None:
            if operation.kind == "update" and chosen.parameter.is_required:
                yield partial(self._same_state, operation, chosen)
            return
        if is_made and not any(
            operation.references.get(item.parameter.name) is owner and item.parameter.is_required
            for item in operation.settings
        ):
            return
        refused = {*operation.forbids, *([operation.target] if operation.target else [])}
        if operation.requires:
            refused = {state for state in owner.states if state not in operation.requires}
        if refused:
            for state in owner.states[:_MOST_STATES]:
                yield partial(self._from_state, operation, owner, state, is_refused=state in refused)

    def _from_state(self, operation: Operation, owner: EntityModel, state: str, *, is_refused: bool) -> SelfTest:
        if operation.kind == "create":
            given, arguments = self._creation(operation, is_full=False, state=state)
        else:
            given, arguments = self._subject(operation, {owner.status or "": state})
            for item in operation.settings:
                if item.parameter.is_required:
                    arguments[item.parameter.wire] = self._new_value(operation, item.parameter, None, given)
        call = step(operation, arguments, {}, error="failed_precondition" if is_refused else None)
        name = f"refused_when_{state}" if is_refused else f"works_when_{state}"
        return self_test(operation, "error" if is_refused else "normal", given, call, name=name)

    def _same_state(self, operation: Operation, chosen: Setting) -> SelfTest:
        """A row can't be put into the state that it is in."""
        given, arguments = self._subject(operation, self._start(operation))
        for item in operation.settings:
            if item.parameter.is_required:
                arguments[item.parameter.wire] = self._new_value(operation, item.parameter, None, given)
        arguments[chosen.parameter.wire] = _row_of(given, operation.entity)[chosen.field]
        call = step(operation, arguments, {}, error="failed_precondition")
        return self_test(operation, "error", given, call, name="refused_by_state")

    def _flagged_already(self, operation: Operation) -> SelfTest:
        assert operation.flag is not None
        given, arguments = self._subject(operation, dict([operation.flag]))
        for item in operation.settings:
            if item.parameter.is_required:
                arguments[item.parameter.wire] = self._new_value(operation, item.parameter, None, given)
        call = step(operation, arguments, {}, error="failed_precondition")
        return self_test(operation, "error", given, call, name="refused_by_state")

    # Pieces

    def _start(self, operation: Operation) -> JsonObject:
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
                if field.reference is None:
                    raise NoExample(parameter.name)
                arguments[parameter.wire] = self._examples.reference(field.reference, type_)
            elif type_.kind != field.type.kind or type_.kind in ("json", "part") or "pattern=" in type_.taken:
                raise NoExample(parameter.name)
            else:
                value = row[item.field]
                arguments[parameter.wire] = float(value) if type_.kind == "decimal" else value
        return given, arguments

    def _creation(
        self, operation: Operation, *, is_full: bool, state: str | None = None
    ) -> tuple[list[GivenRow], JsonObject]:
        """Arguments of a creation, after the rows that it needs; the parent's state may be chosen."""
        given: list[GivenRow] = []
        arguments: JsonObject = {}
        parent = operation.parent
        if parent is not None and parent.status and (operation.requires or operation.forbids):
            allowed = operation.requires or [item for item in parent.states if item not in operation.forbids]
            chosen = state or next(iter(allowed), None)
            given = self._examples.rows(parent, {parent.status: chosen} if chosen else {})
        if operation.key is not None and operation.key.is_required:
            arguments[operation.key.wire] = self._examples.reference(
                operation.entity, operation.types[operation.key.name], missing=True
            )
        for item in operation.settings:
            if item.parameter.is_required:
                arguments[item.parameter.wire] = self._new_value(operation, item.parameter, None, given)
            elif is_full:
                try:
                    default = self._examples_default(operation, item)
                    arguments[item.parameter.wire] = self._new_value(operation, item.parameter, default, given)
                except NoExample:
                    continue
        return given, arguments

    def _examples_default(self, operation: Operation, item: Setting) -> Any:
        """What the field would hold without the argument."""
        text = default_of(item.parameter, operation) or "None"
        return ast.literal_eval(text if text != "None" else operation.entity.fields[item.field].default or "None")

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
            wire, type_ = item.parameter.wire, operation.types[item.parameter.name]
            field = operation.entity.fields[item.field]
            default = default_of(item.parameter, operation)
            if wire in arguments:
                value = arguments[wire]
            elif default not in (None, "None"):
                value = ast.literal_eval(default or "None")
                value = list(value) if isinstance(value, tuple) else value
            else:
                continue
            if "|" in field.type.kept:
                continue
            if item.parameter.name in operation.references:
                expected[f"data.{item.field}"] = [str(key) for key in value] if isinstance(value, list) else str(value)
            elif type_.kind == "json" and field.type.kind == "json" and "float" not in type_.taken:
                expected[f"data.{item.field}"] = canonical_json(value)
            elif field.type.kind == type_.kind and _is_plain(field.type):
                expected[f"data.{item.field}"] = self._examples.kept(field.type, value)
        return expected

    def _is_comparable(self, operation: Operation, name: str) -> bool:
        field = operation.entity.fields.get(name)
        return name == "id" or (field is not None and _is_plain(field.type))

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


def _row_of(given: list[GivenRow], entity: EntityModel) -> JsonObject:
    """The given row of an entity."""
    return next(part.row for part in given if part.table == entity.table)


def _before(given: list[GivenRow], other: GivenRow | None) -> list[GivenRow]:
    """The given rows with another one in front of that of its table."""
    if other is None:
        return given
    at = next(at for at, part in enumerate(given) if part.table == other.table)
    return [*given[:at], other, *given[at:]]


def _unknown(rows: list[GivenRow], given: list[GivenRow]) -> list[GivenRow]:
    tables = {part.table for part in given}
    return [row for row in rows if row.table not in tables]


def _is_plain(type_: TypeExpr) -> bool:
    """Whether rows show a value of the type as it was given."""
    if "|" in type_.kept:
        return False
    return _is_plain(type_.item) if type_.kind == "list" and type_.item is not None else type_.kind != "json"
