"""Matching: which known value may be used where."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from compoworld_core.services.schema import semantic_of

JOINING = frozenset(
    {"email", "person_name", "organisation_name", "product_name", "sku", "project_name", "username", "billing_id"}
)
"""Meanings by which a row of one service is found from a row of another."""
NAMING = frozenset({"person_name", "organisation_name", "product_name", "project_name", "sku", "title"})
"""Meanings whose values a title or a file name may carry."""
PERSONAL = frozenset({"person_name", "email", "phone", "username"})
"""Meanings of values that describe one person."""
_MEASURES = frozenset({"percent", "quantity", "date", "timestamp"})
_TYPED = JOINING | _MEASURES | {"money", "phone", "url", "city", "country", "currency"}
_COMMON = frozenset(
    """
    active call case closed customer document done draft email high inactive item lost mail meeting message normal note
    open order paid pending phone project question refund report request return task team text total urgent user visit
    waiting
""".split()
)


_NO_ROLE = frozenset("email name id address phone full first last display".split())


def kinds(schema: Mapping[str, Any]) -> frozenset[str]:
    """JSON types that a schema allows."""
    found: set[str] = set()
    kind = schema.get("type")
    found.update([kind] if isinstance(kind, str) else kind or ())
    for part in (*schema.get("anyOf", ()), *schema.get("oneOf", ())):
        if isinstance(part, dict):
            found |= kinds(part)
    return frozenset(found)


def is_choice(schema: Mapping[str, Any]) -> bool:
    """Whether a schema lists its values."""
    return "enum" in schema or "const" in schema or any(is_choice(part) for part in schema.get("anyOf", ()))


def is_plain_text(schema: Mapping[str, Any]) -> bool:
    """Whether any short text fits, whatever it means."""
    patterned = "pattern" in schema or "format" in schema or any("pattern" in part for part in schema.get("anyOf", ()))
    return "string" in kinds(schema) and not is_choice(schema) and not patterned


def is_title(schema: Mapping[str, Any]) -> bool:
    """Whether a heading fits."""
    return semantic_of(schema) == "title" and is_plain_text(schema)


def is_long_text(schema: Mapping[str, Any]) -> bool:
    """Whether a body of text fits."""
    return semantic_of(schema) == "text" and "string" in kinds(schema)


def fits(word: str | None, schema: Mapping[str, Any]) -> bool:
    """Whether a value of a meaning is what a schema asks for."""
    return word in _TYPED and word == semantic_of(schema) and not is_choice(schema)


def is_measure_of_another(word: str | None, field: str, parameter: str) -> bool:
    """Whether a number or a date counts something else than what is asked for: a due date is no creation date."""
    return word in _MEASURES and not set(field.split("_")) & set(parameter.split("_")) - {"on", "at", "date", "of"}


def joins(word: str | None, schema: Mapping[str, Any]) -> bool:
    """Whether a row can be found by a value of a meaning in a field of this schema."""
    return word in JOINING and fits(word, schema)


def is_distinctive(value: Any) -> bool:
    """Whether finding the value in a text means that the text is about it: `14` or `open` may be there by chance."""
    if isinstance(value, bool) or value is None:
        return False
    text = str(value)
    if isinstance(value, int | float) or re.fullmatch(r"[\d.,]+", text):
        return len(re.sub(r"\D", "", text).lstrip("0")) >= 3
    return len(text) >= 4 and text.casefold() not in _COMMON


def person_role(name: str) -> str:
    """The role that a field speaks of: `owner` for `owner_email`, nothing for `email`."""
    return next((part for part in name.lower().split("_") if part not in _NO_ROLE), "")
