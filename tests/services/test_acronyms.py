"""Acronyms are written in capitals, and take the article that they are spoken with."""

from __future__ import annotations

import pytest

from compoworld_core.services.acronyms import with_acronyms, with_article


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("Crm", "CRM"),
        ("crm", "CRM"),
        ("receipt url", "receipt URL"),
        ("billing id", "billing ID"),
        ("order ids", "order IDs"),
        ("product SKU", "product SKU"),
        ("Hr portal", "HR portal"),
        ("faq answer", "FAQ answer"),
        ("hidden idea", "hidden idea"),
        ("Help desk", "Help desk"),
    ],
)
def test_acronyms_are_written_in_capitals(name: str, written: str) -> None:
    assert with_acronyms(name) == written
    assert with_acronyms(written) == written


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ("account", "an account"),
        ("case", "a case"),
        ("user", "a user"),
        ("unit price", "a unit price"),
        ("umbrella", "an umbrella"),
        ("hourly rate", "an hourly rate"),
        ("house", "a house"),
        ("URL", "a URL"),
        ("SKU", "an SKU"),
        ("FAQ answer", "an FAQ answer"),
        ("VAT rate", "a VAT rate"),
        ("minutes", "minutes"),
        ("interview feedback", "interview feedback"),
    ],
)
def test_articles_follow_the_sound(words: str, told: str) -> None:
    assert with_article(words) == told
