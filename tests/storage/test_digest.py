"""Equal values have one text; what JSON cannot say exactly is refused with its place."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import StrEnum

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from compoworld_core.errors import InputError
from compoworld_core.storage import canonical_json, digest, digest_bytes

text = st.text(st.characters(exclude_categories=["Cs"]))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | text,
    lambda inner: st.lists(inner) | st.dictionaries(text, inner),
    max_leaves=12,
)


class Colour(StrEnum):
    RED = "red"


class Line(BaseModel):
    model_config = ConfigDict(frozen=True)

    colour: Colour
    price: Decimal
    from_: str = Field(alias="from")
    parts: tuple[int, ...] = ()


@given(json_values)
def test_canonical_text_parses_back_to_the_value(value: object) -> None:
    assert json.loads(canonical_json(value)) == value


@given(st.dictionaries(text, json_values))
def test_order_of_keys_does_not_matter(value: dict[str, object]) -> None:
    assert digest(value) == digest(dict(reversed(value.items())))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param({"b": 1, "a": (1, 2.5, None)}, '{"a":[1,2.5,null],"b":1}', id="sorted, no spaces, tuple"),
        pytest.param("ü✓\n", '"ü✓\\n"', id="not escaped to ASCII"),
        pytest.param(Decimal("1.50"), '"1.50"', id="decimal keeps its digits"),
        pytest.param(datetime(2026, 1, 2, 3, tzinfo=UTC), '"2026-01-02T03:00:00+00:00"', id="datetime"),
        pytest.param(date(2026, 1, 2), '"2026-01-02"', id="date"),
        pytest.param(
            {"line": Line.model_validate({"colour": "red", "price": "2.0", "from": "x", "parts": [1]})},
            '{"line":{"colour":"red","from":"x","parts":[1],"price":"2.0"}}',
            id="model by its aliases",
        ),
    ],
)
def test_canonical_text(value: object, expected: str) -> None:
    assert canonical_json(value) == expected
    assert digest(value) == digest_bytes(expected.encode())


@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param({"rows": [{"price": float("nan")}]}, r"\$\.rows\[0\]\.price: nan has no JSON form", id="nan"),
        pytest.param(Decimal("Infinity"), r"\$: Infinity has no JSON form", id="infinite decimal"),
        pytest.param({"a": {1, 2}}, r"\$\.a: a set has no canonical JSON form", id="set"),
        pytest.param([b"x"], r"\$\[0\]: a bytes has no canonical JSON form", id="bytes"),
        pytest.param({1: "x"}, r"key 1 is not text", id="integer key"),
        pytest.param(["\ud800"], r"\$\[0\]: text with an unpaired surrogate", id="surrogate"),
    ],
)
def test_what_has_no_exact_json_form_is_refused_with_its_place(value: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        canonical_json(value)


def test_value_that_contains_itself_is_refused() -> None:
    loop: list[object] = []
    loop.append(loop)

    with pytest.raises(InputError, match="nested too deeply"):
        canonical_json(loop)
