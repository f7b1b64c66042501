"""Text of unknown origin neither acts, hides nor floods."""

from __future__ import annotations

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compoworld_core.viewer.legible import clipped, digestible, embedded, legible

patient = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""A busy machine is no failure."""


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("\u2066x\u2069", "⟨U+2066⟩x⟨U+2069⟩"),
        ("line\u2028end", "line⟨U+2028⟩end"),
        ("\x00\x1b", "⟨U+0000⟩⟨U+001B⟩"),
        ("zero\u200bwidth", "zero⟨U+200B⟩width"),
        ("\ud800", "⟨U+D800⟩"),
        ("a\r\nb\tc\n", "a\nb\tc\n"),
        ("שלום, Grüße 👩‍🔬", "שלום, Grüße 👩‍🔬"),
    ],
    ids=ascii,
)
def test_characters_that_nobody_sees_are_shown_as_code_points(text: str, shown: str) -> None:
    assert legible(text) == shown


def test_long_texts_end_with_a_notice() -> None:
    assert clipped("x" * 1_000_000, 10) == "xxxxxxxxxx… [cut here: 1,000,000 characters in all]"


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@patient
@given(_JSON)
def test_any_value_becomes_json_without_markup(value: object) -> None:
    text = embedded(digestible(value))
    assert not set("<>&\u2028\u2029") & set(text)
    json.loads(text)


_ORDINARY = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**40), 10**40) | st.floats() | st.text(max_size=500),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=500), inner),
    max_leaves=20,
)


@patient
@given(_ORDINARY)
def test_ordinary_values_are_not_cut(value: object) -> None:
    assert "[cut here" not in json.dumps(digestible(value, 1_000_000), default=str)


@pytest.mark.parametrize(
    "value",
    [
        "x" * 1_000_000,
        ["x" * 1_000] * 1_000,
        {f"key{number}": "x" * 100 for number in range(10_000)},
        {"x" * 1_000_000: 1},
        [[]] * 100_000,
        list(range(1_000_000)),
    ],
    ids=["text", "list of texts", "wide object", "long key", "empty lists", "numbers"],
)
def test_large_values_are_cut_with_a_notice(value: object) -> None:
    text = embedded(digestible(value, 2_000))
    assert len(text) < 10_000
    assert "[cut here" in text


def test_deep_values_are_cut_with_a_notice() -> None:
    value: object = "bottom"
    for _ in range(500):
        value = [value]
    assert "nested too deep" in embedded(digestible(value))


def test_numbers_that_a_browser_would_change_become_text() -> None:
    assert digestible([2**53 + 1, float("nan"), 1.5, True]) == ["9007199254740993", "nan", 1.5, True]
    assert str(digestible(10**6000)).startswith("0x")
