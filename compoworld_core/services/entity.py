"""Entities: rows that are valid by construction and frozen all the way down.

A row can only come into being through validation, and can never change afterwards; a table replaces it by another.
That is why the rest of the system may share rows freely between forks, threads and logs.
"""

from __future__ import annotations

from datetime import date, time, timedelta
from decimal import Decimal
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, ForwardRef, Generic, Literal, TypeVar, Union, get_args, get_origin

from pydantic import AwareDatetime, BaseModel, ConfigDict, NaiveDatetime

_SCALARS: tuple[Any, ...] = (
    str,
    int,
    float,
    Decimal,
    date,
    time,
    timedelta,
    Enum,
    NoneType,
    AwareDatetime,
    NaiveDatetime,
)


def _unfit_part(annotation: Any) -> Any | None:
    """The first part of an annotation whose values could change, or would have no steady JSON view; None if it is fit.

    A name that is not resolved yet passes here and is looked at again when the entity becomes a table's row.
    """
    origin = get_origin(annotation)
    if origin is Literal or annotation in (None, ...) or isinstance(annotation, TypeVar | str | ForwardRef):
        return None
    if origin is Annotated:
        return _unfit_part(get_args(annotation)[0])
    if origin in (Union, UnionType, tuple) and get_args(annotation):
        return next((bad for part in get_args(annotation) if (bad := _unfit_part(part)) is not None), None)
    if isinstance(annotation, type) and origin is None and issubclass(annotation, (*_SCALARS, Entity)):
        return None
    return annotation


class Entity(BaseModel):
    """A row of a table, or a part of one.

    Subclasses annotate fields with immutable types only (scalars, semantic types, `tuple`, other entities); anything
    else is refused when the class is defined. A row's key is its field `id`.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        validate_default=True,
        allow_inf_nan=False,
        json_schema_serialization_defaults_required=True,
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        require_frozen(cls)


def require_frozen(entity: type[Entity]) -> None:
    """Check that no field of an entity can hold a value that changes.

    Raises:
        TypeError: One can; the message names it.
    """
    for name, field in entity.model_fields.items():
        bad = _unfit_part(field.annotation)
        if bad is not None:
            raise TypeError(
                f"{entity.__qualname__}.{name}: {bad!r} is mutable or open; entities are frozen all the way down. "
                "Use scalars, tuple[...] or another Entity."
            )


ItemT = TypeVar("ItemT")


class Page(BaseModel, Generic[ItemT]):
    """A slice of a longer list, as tools return it.

    Attributes:
        items: Rows of this page, in the order asked for.
        total: Matching rows on all pages.
        next_cursor: Pass it to the same tool to get the next page; absent on the last.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    items: tuple[ItemT, ...]
    total: int
    next_cursor: str | None = None
