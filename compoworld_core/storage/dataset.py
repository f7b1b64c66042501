"""Typed datasets: one frozen row model, one declared Arrow schema, and the rule that ties them.

The rule: a scalar field is a scalar column, `tuple[str, ...]` is a list of strings, and everything nested is text: its
canonical JSON. (An inferred Arrow struct would invent nulls for keys that a row does not have.) An optional field is
a nullable column. Text-like scalars (enumerations, decimals, dates) are stored as their JSON text. A row that was
stored comes back equal, less the fields that are left out of a dump (`exclude=True`), which have no column.
"""

from __future__ import annotations

import json
import types
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, time
from decimal import Decimal
from enum import Enum
from functools import cached_property
from typing import Annotated, Any, Generic, Literal, NewType, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ValidationError

from compoworld_core.errors import InputError, StorageError
from compoworld_core.storage.digest import dump_plain, to_plain

Row = TypeVar("Row", bound=BaseModel)
ColumnKind = Literal["bool", "int64", "float64", "string", "list<string>", "json"]


@dataclass(frozen=True)
class Column:
    """One column: `json` is a string column that holds canonical JSON."""

    name: str
    kind: ColumnKind
    nullable: bool


@dataclass(frozen=True)
class DatasetType(Generic[Row]):
    """What the rows of a dataset are; declared once, next to the row model.

    Attributes:
        name: Noun of the rows, such as `tasks`.
        version: Grows with every change of the row model; readers refuse other versions.
        row: Pydantic model of a row, frozen and without extra fields.
        ordered_by: Column by which the rows of every shard strictly ascend (so it is unique there too), if any.
    """

    name: str
    version: int
    row: type[Row]
    ordered_by: str | None = None

    def __post_init__(self) -> None:
        if not self.row.model_config.get("frozen") or self.row.model_config.get("extra") != "forbid":
            raise InputError(
                f'{self.name}: {self.row.__name__} needs model_config = ConfigDict(frozen=True, extra="forbid")'
            )
        if self.ordered_by and self.ordered_by not in {c.name for c in self.columns if c.kind in ("string", "int64")}:
            raise InputError(f"{self.name}: ordered_by={self.ordered_by!r} is not a text or integer column")

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The declared columns, in the order of the model's fields."""
        return tuple(
            Column(info.serialization_alias or info.alias or name, *_column_kind(info.annotation))
            for name, info in self.row.model_fields.items()
            if not info.exclude
        )

    @cached_property
    def arrow_schema(self) -> Any:
        """The declared `pyarrow.Schema`, which carries name and version as metadata."""
        import pyarrow as pa

        arrow = {
            "bool": pa.bool_(),
            "int64": pa.int64(),
            "float64": pa.float64(),
            "string": pa.string(),
            "list<string>": pa.list_(pa.string()),
            "json": pa.string(),
        }
        return pa.schema(
            [pa.field(column.name, arrow[column.kind], column.nullable) for column in self.columns],
            metadata={"compoworld.type": self.name, "compoworld.version": str(self.version)},
        )

    def plain(self, row: Row) -> dict[str, Any]:
        """The row as JSON values, by column.

        Raises:
            InputError: A value has no JSON form; names type and column.
        """
        if type(row) is not self.row:  # the fields of a subclass have no columns and would be lost
            raise InputError(f"{self.name}: a row is a {self.row.__name__}, not a {type(row).__name__}")
        try:
            plain: dict[str, Any] = to_plain(row)
        except InputError as error:
            raise InputError(f"{self.name}: {error}") from None
        for column in self.columns:
            value = plain[column.name]
            if column.kind == "int64" and value is not None and not -(2**63) <= value < 2**63:
                raise InputError(f"{self.name}: $.{column.name}: {value} does not fit a column of 64-bit integers")
        return plain

    def table(self, rows: Iterable[Mapping[str, Any]]) -> Any:
        """Rows from `plain` as a `pyarrow.Table` of the declared schema."""
        import pyarrow as pa

        rows = list(rows)
        arrays = []
        for column, field in zip(self.columns, self.arrow_schema, strict=True):
            arrays.append(pa.array([_stored(column, row[column.name]) for row in rows], field.type))
        return pa.Table.from_arrays(arrays, schema=self.arrow_schema)

    def rows(self, table: Any) -> Iterator[Row]:
        """The rows of a table of the declared schema.

        Raises:
            StorageError: A row does not validate: its model changed and the version did not.
        """
        keys = [json.dumps(column.name) for column in self.columns]
        is_json = [column.kind == "json" for column in self.columns]
        for values in zip(*(column.to_pylist() for column in table.columns), strict=True):
            # Validating JSON text keeps strict models possible: JSON has no tuples or dates, and Pydantic knows it.
            members = (
                f"{key}:{value if verbatim and value is not None else dump_plain(value)}"
                for key, verbatim, value in zip(keys, is_json, values, strict=True)
            )
            try:
                yield self.row.model_validate_json("{" + ",".join(members) + "}")
            except ValidationError as error:
                raise StorageError(
                    f"{self.name} version {self.version}: a stored row is no {self.row.__name__} any more; "
                    f"a changed model needs a new version: {error}"
                ) from None


def _stored(column: Column, value: Any) -> Any:
    if column.kind == "json" and not (column.nullable and value is None):
        return dump_plain(value)
    return value


def _column_kind(annotation: Any) -> tuple[ColumnKind, bool]:
    """The rule: the column of a field's type, and whether it is nullable."""
    annotation = _bare(annotation)
    if get_origin(annotation) in (Union, types.UnionType):
        members = [member for member in get_args(annotation) if member is not types.NoneType]
        nullable = len(members) < len(get_args(annotation))
        kind = _column_kind(members[0])[0] if len(members) == 1 else "json"
        return kind, nullable
    if get_origin(annotation) is Literal:
        choices = [choice for choice in get_args(annotation) if choice is not None]
        return _kind_of_values(choices), len(choices) < len(get_args(annotation))
    if get_origin(annotation) is tuple:
        return _tuple_kind(get_args(annotation)), False
    return _scalar_kind(annotation), False


def _bare(annotation: Any) -> Any:
    """The type below `Annotated`, aliases and new types."""
    while True:
        if get_origin(annotation) is Annotated:
            annotation = get_args(annotation)[0]
        elif hasattr(annotation, "__value__"):
            annotation = annotation.__value__
        elif isinstance(annotation, NewType):
            annotation = annotation.__supertype__
        else:
            return annotation


def _tuple_kind(members: tuple[Any, ...]) -> ColumnKind:
    if len(members) == 2 and members[1] is Ellipsis and _column_kind(members[0]) == ("string", False):
        return "list<string>"
    return "json"


def _scalar_kind(annotation: Any) -> ColumnKind:
    if not isinstance(annotation, type):
        return "json"
    if issubclass(annotation, Enum):
        return _kind_of_values([member.value for member in annotation])
    if issubclass(annotation, bool):
        return "bool"
    if issubclass(annotation, int):
        return "int64"
    if issubclass(annotation, float):
        return "float64"
    if issubclass(annotation, str | Decimal | date | time):
        return "string"
    return "json"


def _kind_of_values(values: list[Any]) -> ColumnKind:
    kinds = {_scalar_kind(type(value)) for value in values}
    return kinds.pop() if len(kinds) == 1 else "json"
