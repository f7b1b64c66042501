"""Meanings told from names, types, formats and descriptions."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compoworld_core.specs.model import JsonObject
from compoworld_core.specs.payload import payload
from compoworld_core.specs.semantics import infer_semantic

TEXT: JsonObject = {"type": "string"}
WHOLE: JsonObject = {"type": "integer"}
NUMBER: JsonObject = {"type": "number"}


@pytest.mark.parametrize(
    ("name", "schema", "entity", "expected"),
    [
        ("assignee_email", TEXT, None, "email"),
        ("ownerEmail", TEXT, None, "email"),
        ("contact", {"type": "string", "format": "email"}, None, "email"),
        ("attendees", {"type": "array", "items": {"type": "string", "format": "email"}}, None, "email"),
        ("customer_id", TEXT, None, "id:customer"),
        ("customerId", TEXT, None, "id:customer"),
        ("customer-ids", {"type": "array", "items": TEXT}, None, "id:customer"),
        ("purchaseOrderNumber", TEXT, None, "id:purchase_order"),
        ("parent_page_id", TEXT, None, "id:page"),
        ("from_bin_code", TEXT, None, "id:bin"),
        ("id", WHOLE, "ticket", "id:ticket"),
        ("id", WHOLE, None, None),
        ("parent_id", TEXT, "folder", "id:folder"),
        ("number", WHOLE, "ticket", None),
        ("zip_code", TEXT, None, None),
        ("page_number", WHOLE, None, "offset"),
        ("country_code", TEXT, None, "country"),
        ("full_name", TEXT, None, "person_name"),
        ("traveller_name", TEXT, None, "person_name"),
        ("name", TEXT, "employee", "person_name"),
        ("name", TEXT, "project", "project_name"),
        ("name", TEXT, "flag", "title"),
        ("name", TEXT, None, None),
        ("vendor_name", TEXT, None, "organisation_name"),
        ("product_name", TEXT, None, "product_name"),
        ("part_number", TEXT, None, "sku"),
        ("sku", TEXT, None, "sku"),
        ("unit_price", NUMBER, None, "money"),
        ("totalAmount", TEXT, None, "money"),
        ("currency", {"type": "string", "enum": ["EUR", "USD"]}, None, "currency"),
        ("due_date", TEXT, None, "date"),
        ("created_at", TEXT, None, "timestamp"),
        ("starts", {"type": "string", "format": "date-time"}, None, "timestamp"),
        ("when", {"type": "string", "description": "Day as YYYY-MM-DD"}, None, "date"),
        ("phone_number", TEXT, None, "phone"),
        ("callback_url", TEXT, None, "url"),
        ("description", TEXT, None, "text"),
        ("release_notes", TEXT, None, "text"),
        ("subject", TEXT, None, "title"),
        ("destination_city", TEXT, None, "city"),
        ("quantity", WHOLE, None, "quantity"),
        ("vat_percent", NUMBER, None, "percent"),
        ("username", TEXT, None, "username"),
        ("labels", {"type": "array", "items": TEXT}, None, "tag"),
        ("q", TEXT, None, "query"),
        ("limit", NUMBER, None, "limit"),
        ("pageSize", WHOLE, None, "limit"),
        ("cursor", TEXT, None, "cursor"),
        ("next_page_token", {"type": ["string", "null"]}, None, "cursor"),
        ("offset", WHOLE, None, "offset"),
        ("payload", {"type": "string", "description": "JSON string of the record"}, None, "json"),
        ("fields", {"type": "string", "description": "Comma-separated names"}, None, "list"),
        ("status", {"type": "string", "enum": ["open", "closed"]}, None, None),
        ("is_active", {"type": "boolean"}, None, None),
        ("amount", {"type": "boolean"}, None, None),
        ("whatever", {"type": "string", "x-semantic": "id:thing"}, None, "id:thing"),
        ("", TEXT, None, None),
    ],
)
def test_meaning(name: str, schema: JsonObject, entity: str | None, expected: str | None) -> None:
    assert infer_semantic(name, schema, entity) == expected


@given(st.text(), st.sampled_from([TEXT, WHOLE, {}, {"type": ["string", "null"]}, {"type": "object"}]), st.text())
def test_any_name_has_a_meaning_or_none(name: str, schema: JsonObject, entity: str) -> None:
    assert infer_semantic(name, schema, entity) != ""


def test_wrapped_arguments_are_looked_through() -> None:
    inner: Any = {"type": "object", "properties": {"branch": TEXT}}
    wrapped: Any = {"type": "object", "properties": {"params": inner}}

    assert payload(wrapped) == ("params", inner)
    assert payload(inner) == (None, inner)
