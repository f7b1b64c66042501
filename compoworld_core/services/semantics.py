"""Semantic types: what a field means, beyond its JSON type.

A field typed `Email` in one service and a parameter typed `Email` in another can carry the same value. That one fact
drives seeding from the universe, information edges between services and generated tasks. The meaning travels in the
JSON Schema as `x-semantic`, so that stored packages and tool specs keep it without any Python class.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import Annotated, Any, Final

from pydantic import (
    AfterValidator,
    AwareDatetime,
    Field,
    GetJsonSchemaHandler,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
)
from pydantic_core import CoreSchema

SEMANTIC_KEY: Final = "x-semantic"
"""JSON Schema keyword that carries a semantic type's word."""


@dataclass(frozen=True, slots=True)
class Semantic:
    """Marks an annotated type with the word for what its values mean."""

    word: str

    def __get_pydantic_json_schema__(self, core_schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        schema = handler(core_schema)
        return {**schema, SEMANTIC_KEY: self.word}


@dataclass(frozen=True, slots=True)
class Id(Semantic):
    """Marks the identifier of an entity; `prefix` starts the ids that a table hands out.

    `TicketId = Annotated[str, Id("ticket", prefix="tkt")]`: a table keyed by it issues `tkt_1001`, `tkt_1002`, …, and
    any other field of this type in the same service is a foreign key to that table. With an empty prefix the ids are
    numbers written as text, `1001`, `1002`, …
    """

    prefix: str = ""

    def __init__(self, entity: str, prefix: str | None = None) -> None:
        object.__setattr__(self, "word", f"id:{entity}")
        object.__setattr__(self, "prefix", entity if prefix is None else prefix)


def _to_cents(value: Decimal) -> Decimal:
    return value.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP) + 0  # -0.00 is 0.00


_decimal_text = PlainSerializer(lambda value: format(value, "f"), return_type=str, when_used="json")

Email = Annotated[str, StringConstraints(pattern=r"^[^@\s]+@[^@\s]+\.[^@\s]+$", max_length=254), Semantic("email")]
PersonName = Annotated[str, StringConstraints(min_length=1, max_length=120), Semantic("person_name")]
OrganisationName = Annotated[str, StringConstraints(min_length=1, max_length=160), Semantic("organisation_name")]
Username = Annotated[str, StringConstraints(min_length=1, max_length=64), Semantic("username")]
Phone = Annotated[str, StringConstraints(pattern=r"^\+?[0-9 ()./-]{4,24}$"), Semantic("phone")]
Url = Annotated[str, StringConstraints(pattern=r"^https?://\S+$", max_length=2000), Semantic("url")]
Country = Annotated[str, StringConstraints(min_length=2, max_length=60), Semantic("country")]
City = Annotated[str, StringConstraints(min_length=1, max_length=80), Semantic("city")]
Title = Annotated[str, StringConstraints(min_length=1, max_length=300), Semantic("title")]
Text = Annotated[str, StringConstraints(max_length=100_000), Semantic("text")]
Tag = Annotated[str, StringConstraints(min_length=1, max_length=64), Semantic("tag")]
ProductName = Annotated[str, StringConstraints(min_length=1, max_length=160), Semantic("product_name")]
Sku = Annotated[str, StringConstraints(min_length=1, max_length=64), Semantic("sku")]
ProjectName = Annotated[str, StringConstraints(min_length=1, max_length=160), Semantic("project_name")]
Currency = Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$"), Semantic("currency")]
Money = Annotated[
    Decimal,
    Field(max_digits=15, decimal_places=2),
    AfterValidator(_to_cents),
    _decimal_text,
    WithJsonSchema({"type": "string", "pattern": r"^-?\d+\.\d\d$"}, mode="serialization"),
    Semantic("money"),
]
"""An amount; in JSON always text with two decimals (`"1392.00"`)."""
Percent = Annotated[
    Decimal,
    Field(ge=0, le=100),
    AfterValidator(Decimal.copy_abs),  # -0 is 0
    _decimal_text,
    WithJsonSchema({"type": "string", "pattern": r"^\d+(\.\d+)?$"}, mode="serialization"),
    Semantic("percent"),
]
Quantity = Annotated[int, Field(ge=0), Semantic("quantity")]
Day = Annotated[date, Semantic("date")]
"""A calendar day, `2026-02-19` in JSON."""
Timestamp = Annotated[AwareDatetime, Semantic("timestamp")]
"""A point in time with an offset, ISO 8601 in JSON."""
Query = Annotated[str, StringConstraints(max_length=400), Semantic("query")]
Limit = Annotated[int, Field(ge=1, le=200), Semantic("limit")]
Cursor = Annotated[str, StringConstraints(max_length=200), Semantic("cursor")]

__all__ = [
    "SEMANTIC_KEY",
    "City",
    "Country",
    "Currency",
    "Cursor",
    "Day",
    "Email",
    "Id",
    "Limit",
    "Money",
    "OrganisationName",
    "Percent",
    "PersonName",
    "Phone",
    "ProductName",
    "ProjectName",
    "Quantity",
    "Query",
    "Semantic",
    "Sku",
    "Tag",
    "Text",
    "Timestamp",
    "Title",
    "Url",
    "Username",
]
