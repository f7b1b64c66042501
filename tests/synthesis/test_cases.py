import string
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compoworld_core.synthesis.cases import MAX_CASES, Case, generate_cases

RICH: dict[str, Any] = {
    "type": "object",
    "properties": {
        "ticket_id": {"type": "string", "x-semantic": "id:ticket"},
        "status": {"type": "string", "enum": ["open", "solved"]},
        "note": {"anyOf": [{"type": "string", "maxLength": 50}, {"type": "null"}]},
        "count": {"type": "integer", "minimum": 1, "maximum": 9},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 3},
        "where": {"$ref": "#/$defs/Place"},
        "flag": {"type": "boolean"},
    },
    "required": ["ticket_id", "status"],
    "additionalProperties": False,
    "$defs": {"Place": {"type": "object", "properties": {"city": {"type": "string"}}}},
}
NORMAL = {"ticket_id": "tkt_1", "status": "open", "count": 4, "tags": ["a"]}


def _cases(**kinds: Any) -> list[Case]:
    return [
        case
        for case in generate_cases(RICH, NORMAL, limit=1000)
        if all(getattr(case, k) == v for k, v in kinds.items())
    ]


def test_every_kind_of_case_is_generated() -> None:
    kinds = {case.kind for case in generate_cases(RICH, NORMAL)}

    assert kinds == set(
        "repeated extra missing dangling wrong_type null enum_miss unicode empty boundary number huge".split()
    )


@pytest.mark.parametrize(
    ("kind", "parameter", "is_legal"),
    [
        ("missing", "status", False),
        ("extra", "", False),
        ("wrong_type", "flag", False),
        ("null", "ticket_id", False),
        ("null", "note", True),
        ("null", "count", None),
        ("enum_miss", "status", False),
        ("dangling", "ticket_id", True),
        ("repeated", "", True),
        ("huge", "note", False),
        ("huge", "ticket_id", True),
        ("wrong_type", "where", False),
    ],
)
def test_the_schema_decides_what_is_legal(kind: str, parameter: str, is_legal: bool | None) -> None:
    found = _cases(kind=kind, parameter=parameter)

    assert found
    assert {case.is_legal for case in found} == {is_legal}


def test_bounds_are_met_on_both_sides() -> None:
    values = {case.arguments["count"]: case.is_legal for case in _cases(kind="boundary", parameter="count")}

    assert values == {0: False, 1: True, 10: False, 9: True}


def test_texts_cover_what_breaks_naive_code() -> None:
    texts = {value for case in _cases() for value in case.arguments.values() if isinstance(value, str)}

    for part in ("\x00", "\u200b", "\ud800", "🧾", "ש"):
        assert any(part in text for text in texts), part
    assert "" in texts
    assert any(len(text) > 100_000 for text in texts)


def test_one_thing_is_varied_at_a_time() -> None:
    for case in _cases():
        varied = {key for key in {*case.arguments, *NORMAL} if case.arguments.get(key) != NORMAL.get(key)}
        assert len(varied) <= 1, case.label


def test_few_cases_still_cover_all_kinds() -> None:
    many = {f"text_{number}": {"type": "string", "maxLength": 20} for number in range(40)}
    parameters = {"type": "object", "properties": many, "required": list(many)}

    cases = generate_cases(parameters, dict.fromkeys(many, "x"))

    counts = Counter(case.kind for case in cases)
    assert len(cases) == MAX_CASES
    assert min(counts[kind] for kind in ("missing", "wrong_type", "null", "boundary", "huge")) >= 5


_SCALARS = st.sampled_from(["string", "integer", "number", "boolean", "array", "object", "null"])
_PROPERTY = st.fixed_dictionaries(
    {},
    optional={
        "type": st.one_of(_SCALARS, st.lists(_SCALARS, min_size=1, max_size=2, unique=True)),
        "enum": st.lists(st.integers() | st.text(string.printable, max_size=3), min_size=1, max_size=3),
        "minimum": st.integers(-5, 5),
        "maxLength": st.integers(0, 9),
        "items": st.just({"type": "string"}) | st.just({}),
        "maxItems": st.integers(0, 3),
        "x-semantic": st.sampled_from(["id:thing", "email"]),
    },
)


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.text(string.ascii_lowercase, min_size=1, max_size=4), _PROPERTY, max_size=5))
def test_any_schema_gives_the_same_cases_twice(properties: dict[str, Any]) -> None:
    parameters = {"type": "object", "properties": properties, "required": sorted(properties)[:2]}

    first = generate_cases(parameters, {})

    assert first == generate_cases(parameters, {})
    assert 0 < len(first) <= MAX_CASES
