"""Entities are valid by construction, and frozen all the way down."""

from __future__ import annotations

import collections.abc as abc
from collections import deque
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Annotated, Any, ForwardRef, Literal, NamedTuple, Optional

import pytest
from pydantic import AwareDatetime, BaseModel, ConfigDict, JsonValue, ValidationError, create_model

from compoworld_core.services.entity import Entity, Page, require_frozen
from compoworld_core.services.record import EntityRecords
from compoworld_core.services.semantics import Email, Money


class Part(Entity):
    sku: str
    amount: Money = Decimal(1)


class Colour(Enum):
    RED = "red"


class Thing(Entity):
    id: str
    parts: tuple[Part, ...] = ()
    nested: tuple[tuple[int, str], ...] | None = None
    colour: Colour | Literal["none"] = "none"
    on: date | None = None
    at: AwareDatetime | None = None
    mail: Email | None = None
    inner: Thing | None = None
    size: float = 0


class Model(BaseModel):
    model_config = ConfigDict(frozen=True)


class Pair(NamedTuple):
    a: list[int]


MUTABLE_OR_OPEN: tuple[Any, ...] = (
    list[int],
    list,
    dict[str, int],
    set[int],
    frozenset[str],
    bytes,
    deque[int],
    abc.Sequence[int],
    abc.Mapping[str, int],
    abc.Iterable[int],
    Any,
    object,
    JsonValue,
    Model,
    Pair,
    tuple,
    tuple[list[int], ...],
    tuple[tuple[dict[str, int], ...], ...],
    list[int] | None,
    Optional[dict[str, int]],  # noqa: UP045
    Annotated[list[int], "meaning"],
    Page[int],
)


@pytest.mark.parametrize("annotation", MUTABLE_OR_OPEN, ids=str)
def test_fields_that_could_change_are_refused_when_the_class_is_defined(annotation: Any) -> None:
    with pytest.raises(TypeError, match=r"field: .* frozen all the way down"):
        create_model("Holder", __base__=Entity, field=(annotation, ...))


def test_a_type_that_is_known_only_later_is_checked_before_rows_are_made() -> None:
    later: Any = ForwardRef("Later")
    holder = create_model("Holder", __base__=Entity, field=(later, ...))
    holder.model_rebuild(_types_namespace={"Later": list[int]})

    with pytest.raises(TypeError, match="frozen all the way down"):
        require_frozen(holder)
    with pytest.raises(TypeError, match="frozen all the way down"):
        EntityRecords(holder)


def test_entities_and_their_parts_do_not_change() -> None:
    thing = Thing(id="1", parts=(Part(sku="a"),))

    with pytest.raises(ValidationError, match="frozen"):
        thing.id = "2"  # type: ignore[misc]
    with pytest.raises(ValidationError, match="frozen"):
        thing.parts[0].sku = "b"  # type: ignore[misc]
    assert isinstance(hash(thing), int)


@pytest.mark.parametrize(
    "fields",
    [
        {"id": "1", "unknown": 1},
        {},
        {"id": 5},
        {"id": "1", "parts": [{"sku": "a", "unknown": 1}]},
        {"id": "1", "parts": [{"sku": "a", "amount": "1.234"}]},
        {"id": "1", "mail": "nobody"},
        {"id": "1", "at": "2026-02-12T08:30:00"},
        {"id": "1", "size": float("nan")},
        {"id": "1", "size": float("inf")},
    ],
    ids=str,
)
def test_unknown_fields_and_illegal_values_are_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Thing.model_validate(fields)


def test_defaults_are_validated_too() -> None:
    broken = create_model("Broken", __base__=Entity, mail=(Email, "nobody"))

    with pytest.raises(ValidationError):
        broken()


@pytest.mark.parametrize(
    ("given", "shown"),
    [("5", "5.00"), (5, "5.00"), ("1392.5", "1392.50"), ("-0", "0.00"), ("1e3", "1000.00"), (0.1, "0.10")],
)
def test_an_amount_is_text_with_two_decimals(given: Any, shown: str) -> None:
    assert Part(sku="a", amount=given).model_dump(mode="json")["amount"] == shown
