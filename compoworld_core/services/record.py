"""Record types: how a table validates, keys and shows its rows.

Library services hold entities; hosted services hold plain frozen rows, validated against the package's JSON Schema, so
that the parent process never imports a class of untrusted code. Both show the same JSON row view, and everything
outside a service (conditions, diffs, the viewer) sees only that view.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from types import MappingProxyType
from typing import Any, Protocol, TypeVar

from pydantic import ValidationError

from compoworld_core.errors import InvalidArguments
from compoworld_core.services.entity import Entity, require_frozen
from compoworld_core.specs.validation import validator

Row = dict[str, Any]
"""JSON view of a record: only str, int, float, bool, None, lists and dicts."""

R = TypeVar("R")


class RecordType(Protocol[R]):
    """Builds and shows the records of one table."""

    def build(self, fields: Mapping[str, Any]) -> R:
        """Validate fields into a record.

        Raises:
            InvalidArguments: A field is unknown, missing or has an illegal value.
        """
        ...

    def change(self, record: R, fields: Mapping[str, Any]) -> R:
        """A new, fully validated record with some fields replaced."""
        ...

    def field(self, record: R, name: str) -> Any:
        """A field's value, hashable where it is used as a key."""
        ...

    def view(self, record: R) -> Row:
        """A fresh JSON row of the record."""
        ...

    def same(self, record: R, other: R) -> bool:
        """Whether two records have the same values."""
        ...


def describe_validation_error(error: ValidationError) -> str:
    """One sentence for people and agents: which field, what is wrong."""
    parts = []
    for item in error.errors(include_url=False, include_context=False)[:3]:
        where = ".".join(str(part) for part in item["loc"])
        parts.append(f"{where}: {item['msg']}" if where else item["msg"])
    return "; ".join(parts)


E_ = TypeVar("E_", bound=Entity)


class EntityRecords(RecordType[E_]):
    """Rows that are instances of an entity class."""

    __slots__ = ("_dump", "_text", "_validate", "entity")

    def __init__(self, entity: type[E_]) -> None:
        require_frozen(entity)
        self.entity = entity
        self._validate = entity.__pydantic_validator__.validate_python
        self._dump = entity.__pydantic_serializer__.to_python
        self._text = entity.__pydantic_serializer__.to_json

    def build(self, fields: Mapping[str, Any]) -> E_:
        """Validate fields (Python or JSON values) into an entity."""
        try:
            return self._validate(dict(fields))  # type: ignore[no-any-return]
        except ValidationError as error:
            raise InvalidArguments(f"{self.entity.__name__}: {describe_validation_error(error)}") from None

    def change(self, record: E_, fields: Mapping[str, Any]) -> E_:
        """Validate the entity anew with some fields replaced."""
        try:
            return self._validate({**record.__dict__, **fields})  # type: ignore[no-any-return]
        except ValidationError as error:
            raise InvalidArguments(f"{self.entity.__name__}: {describe_validation_error(error)}") from None

    def field(self, record: E_, name: str) -> Any:
        """The attribute's value."""
        return getattr(record, name)

    def view(self, record: E_) -> Row:
        """The entity as JSON values."""
        return self._dump(record, mode="json")  # type: ignore[no-any-return]

    def same(self, record: E_, other: E_) -> bool:
        """Whether all fields are equal, and shown alike: 10:00+02:00 is the time 08:00Z but another value."""
        return record.__dict__ == other.__dict__ and self._text(record) == self._text(other)


FrozenRow = Mapping[str, Any]


def freeze(value: Any) -> Any:
    """An immutable copy of a JSON value: dicts become read-only mappings, lists become tuples."""
    if isinstance(value, Mapping):
        return MappingProxyType({key: freeze(item) for key, item in value.items()})
    if isinstance(value, list | tuple):
        return tuple(freeze(item) for item in value)
    return value


def thaw(value: Any) -> Any:
    """The fresh, mutable JSON value of what `freeze` made."""
    if isinstance(value, Mapping):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [thaw(item) for item in value]
    return value


def _reads(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def reads(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return reads


_FORMATS = {
    "date": _reads(date.fromisoformat),
    "date-time": _reads(datetime.fromisoformat),
    "time": _reads(time.fromisoformat),
}
"""Formats that entities' rows have; unlike RFC 3339, they allow times without offset."""


def _text(row: FrozenRow) -> str:
    return json.dumps(thaw(row), sort_keys=True)


class SchemaRecords(RecordType[FrozenRow]):
    """Rows that are immutable mappings, validated by a JSON Schema."""

    __slots__ = ("_validator", "name")

    def __init__(self, name: str, schema: Mapping[str, Any]) -> None:
        self.name = name
        self._validator = validator(schema, validate_formats=True, formats=_FORMATS)

    def build(self, fields: Mapping[str, Any]) -> FrozenRow:
        """Validate a JSON row and freeze it."""
        row = thaw(fields)
        error = next(self._validator.iter_errors(row), None)
        if error is not None:
            where = ".".join(str(part) for part in error.instance_path)
            raise InvalidArguments(f"{self.name}: {where + ': ' if where else ''}{error.message[:300]}")
        return freeze(row)  # type: ignore[no-any-return]

    def change(self, record: FrozenRow, fields: Mapping[str, Any]) -> FrozenRow:
        """Validate the row anew with some fields replaced."""
        return self.build({**record, **fields})

    def field(self, record: FrozenRow, name: str) -> Any:
        """The field's value, or None where the row has no such field."""
        return record.get(name)

    def view(self, record: FrozenRow) -> Row:
        """The row as a fresh dict."""
        return thaw(record)  # type: ignore[no-any-return]

    def same(self, record: FrozenRow, other: FrozenRow) -> bool:
        """Whether all fields are equal, as JSON: `1`, `1.0` and `true` differ."""
        return record == other and _text(record) == _text(other)
