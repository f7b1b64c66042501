from __future__ import annotations

from dataclasses import dataclass

import pytest

from compoworld_core.tasks.planner.matching import is_distinctive, person_role
from compoworld_core.tasks.planner.wording import (
    addressed,
    creating,
    enumerated,
    label,
    phrase,
    phrases,
    setting,
    spoken,
    with_article,
)


@dataclass(frozen=True)
class Told:
    what: str
    of: str = ""


@pytest.mark.parametrize(
    ("name", "word", "called"),
    [
        ("city", "city", "city"),
        ("owner_email", "email", "owner e-mail address"),
        ("sender", "email", "sender address"),
        ("created_on", "date", "creation date"),
        ("ends_at", "timestamp", "end time"),
        ("expires_on", "date", "expiry date"),
        ("due_on", "date", "due date"),
        ("verified_by", "email", "verifier e-mail address"),
        ("created_by", "username", "creator username"),
        ("signed_by", "person_name", "signer"),
        ("needed_by", "date", "needed by"),
        ("salary_max", "money", "maximum salary"),
        ("timezone", None, "time zone"),
        ("sent_at", "timestamp", "sent time"),
        ("payment_terms_days", "quantity", "payment terms in days"),
        ("phone", "phone", "phone number"),
        ("refunded", "money", "refunded amount"),
        ("amount_due", "money", "amount due"),
        ("paid", "money", "paid amount"),
        ("total", "money", "total"),
        ("sku", "sku", "SKU"),
        ("billing_id", None, "billing ID"),
        ("receipt_url", "url", "receipt URL"),
        ("vat_percent", "percent", "VAT in percent"),
    ],
)
def test_fields_are_called_what_people_call_them(name: str, word: str | None, called: str) -> None:
    assert label(name, word) == called


def test_values_of_one_row_are_told_together() -> None:
    tier, city, code = Told("tier", "the account"), Told("city", "the account"), Told("approval code")

    assert phrase(tier) == "the tier of the account"
    assert phrase(code) == "the approval code"
    assert phrases([tier, city]) == "the tier and city of the account"
    assert phrases([tier, code]) == "the tier of the account and the approval code"
    assert phrase(Told("project name", "the project")) == "the name of the project"
    assert phrases([tier, city, code]) == "the tier and city of the account; the approval code"


@pytest.mark.parametrize(
    ("value", "told"),
    [("Optik", '"Optik"'), (3, "3"), (True, "true"), (["a", "b"], '"a" and "b"'), ([], "none"), ("1.50", '"1.50"')],
)
def test_literals_have_visible_ends(value: object, told: str) -> None:
    assert spoken(value) == told


def test_sentences_are_put_together() -> None:
    assert enumerated(["a", "b", "c"]) == "a, b and c"
    assert with_article("account") == "an account"
    assert with_article("case") == "a case"
    assert addressed("to", "the sender") == "addressed to the sender"
    assert addressed("subject", "x") is None
    assert creating("Open a case for an active account.") == "Open"
    assert creating("Answer a message in its conversation.") == "Create"
    assert setting("the case", [("status", '"closed"'), ("priority", '"low"')], []) == (
        'Set the status of the case to "closed" and its priority to "low"'
    )
    assert setting("the contact", [], ["primary"]) == "Mark the contact as primary"


@pytest.mark.parametrize(
    ("value", "sure"),
    [
        (14, False),
        ("14", False),
        (1490, True),
        ("0.00", False),
        ("30.50", True),
        ("open", False),
        ("Tampere", True),
        (True, False),
        (None, False),
    ],
)
def test_only_what_is_not_there_by_chance_is_distinctive(value: object, sure: bool) -> None:
    assert is_distinctive(value) == sure


@pytest.mark.parametrize(("name", "role"), [("owner_email", "owner"), ("email", ""), ("contact_name", "contact")])
def test_fields_of_one_person_share_a_role(name: str, role: str) -> None:
    assert person_role(name) == role
