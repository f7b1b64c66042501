"""Entities: rows that are valid by construction and frozen all the way down.

A row can only come into being through validation, and can never change afterwards; a table replaces it by another.
That is why the rest of the system may share rows freely between forks, threads and logs.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Any, Generic, Literal, TypeVar, Union, get_args, get_origin

from pydantic import BaseModel, ConfigDict

_MUTABLE: tuple[Any, ...] = (list, dict, set, bytearray)


def _mutable_part(annotation: Any) -> Any | None:
    """The first mutable container inside an annotation, if any."""
    origin = get_origin(annotation) or annotation
    if origin in _MUTABLE or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return annotation
    if origin is Literal:
        return None
    if isinstance(origin, type) and issubclass(origin, BaseModel) and not issubclass(origin, Entity):
        return annotation
    if origin in (Union, UnionType, tuple, frozenset) or get_args(annotation):
        return next((bad for part in get_args(annotation) if (bad := _mutable_part(part)) is not None), None)
    return None


class Entity(BaseModel):
    """A row of a table, or a part of one.

    Subclasses annotate fields with immutable types only (scalars, semantic types, `tuple`, other entities); anything
    else is refused when the class is defined. A row's key is its field `id`.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", validate_default=True, json_schema_serialization_defaults_required=True
    )

    @classmethod
    def __pydantic_init_subclass__(cls, **kwargs: Any) -> None:
        super().__pydantic_init_subclass__(**kwargs)
        for name, field in cls.model_fields.items():
            bad = _mutable_part(field.annotation)
            if bad is not None:
                raise TypeError(
                    f"{cls.__qualname__}.{name}: {bad!r} is mutable; entities are frozen all the way down. "
                    "Use tuple[...] or another Entity."
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
