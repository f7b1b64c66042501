"""Examples: rows and arguments that fit a plan, as self-tests need them.

Values are drawn like a world's own, but with random numbers that depend on the service alone, so the same spec always
gives the same tests.
"""

from __future__ import annotations

import ast
import random
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

from compoworld_core.services.drawing import Drawing
from compoworld_core.services.universe import Universe
from compoworld_core.specs.model import JsonObject
from compoworld_core.specs.validation import validator
from compoworld_core.synthesis.rules.expressions import is_strict
from compoworld_core.synthesis.rules.model import EntityField, EntityModel, Filter, Operation
from compoworld_core.synthesis.rules.reading import Parameter
from compoworld_core.synthesis.rules.types import TypeExpr, Vocabulary
from compoworld_core.synthesis.selftest import GivenRow

START = datetime(2026, 3, 2, 9, 0, tzinfo=UTC)
MISSING_NUMBER = 999_999


class NoExample(Exception):
    """The rules find no value that would do; the test is left out."""


class Examples:
    """Rows and arguments for the tests of one service."""

    def __init__(self, service: str, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._drawing = Drawing(Universe.generate(1), random.Random(f"{service}/examples"), START)

    def draw(self, name: str, schema: JsonObject) -> Any:
        """A legal value.

        Raises:
            NoExample: None is found.
        """
        try:
            return self._drawing.fresh().value(name, schema)
        except (ValueError, ArithmeticError):
            raise NoExample(name) from None

    def argument(self, item: Parameter, type_: TypeExpr, unlike: Any = None) -> Any:
        """A value that a tool accepts for a parameter, other than the one given."""
        if type_.kind == "json":
            try:
                return self.draw(item.field, type_.wire)
            except NoExample:
                return _free_form(type_.taken)
        if "pattern=" in type_.taken:
            raise NoExample(item.name)
        for _ in range(12):
            value = self.draw(item.field, type_.schema)
            if value != unlike:
                return value
        raise NoExample(item.name)

    def rows(self, entity: EntityModel, needed: dict[str, Any], wanted: set[str] = frozenset()) -> list[GivenRow]:  # type: ignore[assignment]
        """A row of an entity, after the rows that it refers to.

        Args:
            needed: Values that the row must have.
            wanted: Optional fields that it must also have.
        """
        given: dict[str, GivenRow] = {}
        self._add(entity, needed, set(wanted), given, ())
        return list(given.values())

    def _add(
        self,
        entity: EntityModel,
        needed: dict[str, Any],
        wanted: set[str],
        given: dict[str, GivenRow],
        above: tuple[str, ...],
    ) -> None:
        if entity.name in above:
            raise NoExample(f"{entity.name} needs another {entity.name}")
        row: JsonObject = {"id": self.id_of(entity)}
        for field in entity.fields.values():
            if field.name in needed:
                row[field.name] = needed[field.name]
            elif field.is_given or field.automatic or field.name in wanted:
                row[field.name] = self._value(entity, field, given, (*above, entity.name))
            elif field.default is not None:
                default = ast.literal_eval(field.default)
                row[field.name] = list(default) if isinstance(default, tuple) else default
            else:
                row[field.name] = None
        given[entity.table] = GivenRow(table=entity.table, row=row)

    def _value(
        self, entity: EntityModel, field: EntityField, given: dict[str, GivenRow], above: tuple[str, ...]
    ) -> Any:
        if field.reference is not None:
            if field.reference.table not in given:
                self._add(field.reference, {}, set(), given, above)
            key = self.id_of(field.reference)
            return [key] if field.type.kind == "list" else key
        if field.automatic:
            return self.kept(field.type, START.isoformat())
        return self.kept(field.type, self.draw(field.name, field.type.schema))

    def id_of(self, entity: EntityModel, number: int = 1) -> str:
        """The id of a row that tests give an entity."""
        return str(number) if entity.is_numeric else f"{entity.name}_{number}"

    def another(
        self, entity: EntityModel, row: JsonObject, number: int = 2, changed: JsonObject | None = None
    ) -> GivenRow:
        """A row like another one, with an id and keys of its own.

        Args:
            changed: Values that it has instead.
        """
        other = {**row, "id": self.id_of(entity, number)}
        for name in entity.natural:
            if name in entity.fields and row.get(name) is not None:
                other[name] = self._numbered(entity, name, row[name], number)
        return GivenRow(table=entity.table, row={**other, **(changed or {})})

    def _numbered(self, entity: EntityModel, name: str, value: Any, number: int) -> Any:
        """A value that differs from those of all other numbers, where such a value is easily made."""
        type_ = entity.fields[name].type
        is_plain = type_.kind == "text" and isinstance(value, str) and not type_.values
        if is_plain and entity.fields[name].reference is None and not {"maxLength", "format"} & set(type_.schema):
            return f"p{number}.{value}" if type_.word == "email" else f"{value}{number}"
        if type_.kind == "integer" and is_legal(type_.schema, value + number):
            return value + number
        return self.unlike(entity, name, value)

    def unlike(self, entity: EntityModel, name: str, value: Any) -> Any:
        """Another value of a field that refers to nothing."""
        field = entity.fields[name]
        states = entity.states if name == entity.status else []
        for other in states or field.type.values:
            if other != value:
                return other
        if field.type.values or field.reference is not None:
            raise NoExample(name)
        if field.type.kind == "boolean":
            return not value
        for _ in range(12):
            other = self.kept(field.type, self.draw(name, field.type.schema))
            if other != value and not (isinstance(value, list) and set(map(str, value)) & set(map(str, other))):
                return other
        raise NoExample(name)

    def edge(self, operation: Operation, item: Filter, value: Any) -> tuple[Any, Any]:
        """A bound that a row's value just keeps, and a value that just doesn't."""
        type_, field = operation.types[item.parameter.name], operation.entity.fields[item.field]
        beyond = -1 if item.test == "at_least" else 1
        outside = _stepped(value, field.type, beyond)
        at = outside if is_strict(item) else value
        argument: Any
        if field.type.kind in ("day", "moment"):
            argument = at if type_.kind == field.type.kind else at[:10]
            if type_.kind == "moment" and field.type.kind == "day":
                argument = f"{at}T09:00:00+00:00"
        else:
            number = Decimal(str(at))
            argument = int(number) if number == int(number) else float(number)
            if type_.kind == "integer" and isinstance(argument, float):
                raise NoExample(item.parameter.name)
        if not is_legal(item.parameter.schema, argument):
            raise NoExample(item.parameter.name)
        if field.type.kind not in ("day", "moment") and not is_legal(
            field.type.schema, float(outside) if field.type.kind == "decimal" else outside
        ):
            raise NoExample(item.parameter.name)
        return argument, outside

    def kept(self, type_: TypeExpr, value: Any) -> Any:
        """An argument as the row's JSON view shows it."""
        if value is None:
            return None
        if type_.kind == "moment":
            return _moment(datetime.fromisoformat(value))
        if type_.kind == "decimal":
            amount = Decimal(str(value))
            return format(amount.quantize(Decimal("0.01")), "f") if type_.word == "money" else format(amount, "f")
        if type_.kind == "list" and type_.item is not None:
            return [self.kept(type_.item, item) for item in value]
        if type_.kind == "part":
            fields = self._vocabulary.parts[type_.kept.split(" | ")[0]]
            return {item.name: self.kept(item.type, value.get(item.name)) for item in fields}
        return value

    def reference(self, entity: EntityModel, type_: TypeExpr, *, missing: bool = False, number: int = 1) -> Any:
        """The id of an entity's row as an argument, or one that no row has."""
        is_number = (type_.item or type_).kind == "integer"
        key: Any = self.id_of(entity, number)
        if missing:
            key = MISSING_NUMBER if is_number else f"{entity.name}_0"
        elif is_number:
            key = number
        return [key] if type_.kind == "list" else key

    def filter_argument(self, operation: Operation, item: Filter, row: JsonObject) -> Any:
        """An argument that the row passes."""
        value = self._filter_argument(operation, item, row)
        if not is_legal(item.parameter.schema, value):
            raise NoExample(item.parameter.name)
        return value

    def _filter_argument(self, operation: Operation, item: Filter, row: JsonObject) -> Any:
        parameter = item.parameter
        type_ = operation.types[parameter.name]
        if "pattern=" in type_.taken:
            raise NoExample(parameter.name)
        if item.test in ("key", "among") and item.field == "id":
            return self.reference(operation.entity, type_)
        if parameter.name in operation.references:
            if operation.entity.fields[item.field].reference is None:
                raise NoExample(parameter.name)
            return self.reference(operation.references[parameter.name], type_)
        if item.test == "words":
            for text in operation.entity.texts():
                value = row.get(text.name)
                value = value[0] if isinstance(value, list) and value else value
                if isinstance(value, str) and value.split():
                    return value.split()[0]
            raise NoExample(parameter.name)
        if item.test == "hides":
            return True
        value = row.get(item.field)
        if value is None or value == []:
            raise NoExample(parameter.name)
        field = operation.entity.fields[item.field]
        if item.test in ("at_least", "at_most"):
            return _bound(value, type_, field.type, -1 if item.test == "at_least" else 1)
        if item.test == "member":
            return value[0]
        if item.test == "among":
            return [value]
        if {type_.kind, field.type.kind} == {"day", "moment"}:
            return value[:10] if type_.kind == "day" else f"{value}T09:00:00+00:00"
        if field.type.kind == "decimal":
            return float(value)
        if type_.kind != field.type.kind or type_.kind in ("json", "part"):
            raise NoExample(parameter.name)
        return value


def _moment(moment: datetime) -> str:
    """A time as rows show it."""
    return moment.isoformat().replace("+00:00", "Z")


def _stepped(value: Any, kept: TypeExpr, step: int) -> Any:
    """The value a day or a unit before or after one."""
    if kept.kind in ("day", "moment"):
        moment = datetime.fromisoformat(value) + timedelta(days=step)
        return moment.date().isoformat() if kept.kind == "day" else _moment(moment)
    if kept.kind == "decimal":
        number = Decimal(str(value)) + step
        return format(number.quantize(Decimal("0.01")), "f") if kept.word == "money" else format(number, "f")
    return value + step


def is_legal(schema: JsonObject, value: Any) -> bool:
    """Whether a parameter's schema, less what it refers to, allows a value."""
    try:
        return validator({key: part for key, part in schema.items() if key != "$ref"}).is_valid(value)
    except ValueError:
        return False


def is_free_text(type_: TypeExpr) -> bool:
    """Whether any short text will do."""
    bounds = {"minLength", "maxLength", "pattern", "format"}
    return type_.is_textual and type_.word in (None, "text", "title", "tag") and not bounds & set(type_.schema)


def _bound(value: Any, taken: TypeExpr, kept: TypeExpr, direction: int) -> Any:
    """A bound that the value lies inside of."""
    if kept.kind in ("day", "moment"):
        moment = (
            datetime.fromisoformat(value)
            if "T" in value
            else datetime.combine(date.fromisoformat(value), START.timetz())
        )
        moment += timedelta(days=direction)
        return moment.date().isoformat() if taken.kind == "day" else moment.isoformat()
    number = Decimal(str(value)) + direction
    low, high = taken.schema.get("minimum"), taken.schema.get("maximum")
    if (low is not None and number < low) or (high is not None and number > high):
        raise NoExample("bound")
    return int(number) if taken.kind == "integer" or number == int(number) else float(number)


def _free_form(taken: str) -> Any:
    if taken.startswith("tuple[dict"):
        return [{"key": "value"}]
    if taken.startswith("tuple["):
        return _scalars(taken.removeprefix("tuple["))
    return {"key": "value"} if taken.startswith("dict") else _scalars(taken)[0]


def _scalars(text: str) -> list[Any]:
    first = text.split(",")[0].split("|")[0].strip()
    known: dict[str, list[Any]] = {"str": ["value"], "int": [3], "float": [2.5], "bool": [True]}
    if text.startswith("tuple["):
        return [_scalars(text.removeprefix("tuple["))]
    return known.get(first, ["value"])
