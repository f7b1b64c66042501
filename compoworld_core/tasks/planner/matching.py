"""Matching: which known value may be used where."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from compoworld_core.services.schema import semantic_of

JOINING = frozenset(
    {"email", "person_name", "organisation_name", "product_name", "sku", "project_name", "username", "billing_id"}
)
"""Meanings by which a row of one service is found from a row of another."""
NAMING = frozenset({"person_name", "organisation_name", "product_name", "project_name", "sku", "title"})
"""Meanings whose values a title or a file name may carry."""
NUMERIC = frozenset({"money", "percent", "quantity"})
_TYPED = JOINING | NUMERIC | {"phone", "date", "timestamp", "url", "city", "country", "currency"}


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


def joins(word: str | None, schema: Mapping[str, Any]) -> bool:
    """Whether a row can be found by a value of a meaning in a field of this schema."""
    return word in JOINING and fits(word, schema)


def label(name: str) -> str:
    """How a person calls a field: `owner_email` is the `owner e-mail`."""
    words = name.replace("-", "_").split("_")
    if len(words) > 1 and words[-1] in ("on", "at"):
        words = [*words[:-1], "date" if words[-1] == "on" else "time"]
    text = " ".join(word for word in words if word)
    return text.replace("email", "e-mail").replace("sku", "SKU")


def noun(entity: str) -> str:
    """How a person calls an entity."""
    return entity.replace("_", " ")
