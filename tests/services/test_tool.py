"""A tool's signature is its contract: what agents see, and which arguments get through."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, cast

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compoworld_core.errors import InvalidArguments
from compoworld_core.services.schema import semantic_of
from compoworld_core.services.sdk import (
    Day,
    Email,
    Entity,
    Field,
    Id,
    Limit,
    Money,
    Percent,
    Service,
    State,
    Timestamp,
    tool,
)
from compoworld_core.services.tool import Tool, without_titles
from tests.services.workshop import Workshop

OrderId = Annotated[str, Id("order", prefix="ord")]


class Line(Entity):
    title: str = "unnamed"
    count: int


ONE = Line(count=1)


class OrderState(State):
    pass


class Orders(Service[OrderState]):
    """Orders."""

    domain = "commerce"

    @tool(effect="write")
    def place(
        self,
        customer: Email,
        lines: tuple[Line, ...],
        pace: Literal["slow", "fast"] = "slow",
        *,
        budget: Money | None = None,
        discount: Percent = Decimal(0),
        due: Day | None = None,
        at: Timestamp | None = None,
        rush: bool = False,
        weight: float = 1.0,
        limit: Limit = 20,
        tags: tuple[str, ...] = (),
        first: Line = ONE,
        note: Annotated[str, Field(max_length=5)] = "",
        extra: Any = None,
        json: str = "",
        schema: str = "",
    ) -> Line | None:
        """Place an order,
        with lines.

        It is shipped at once.

        Args:
            customer: Who orders.
            lines: What is ordered,
                line by line.
        """


PLACE = Orders.tools["place"]
OK: dict[str, Any] = {"customer": "a@b.co", "lines": []}


def test_the_docstring_describes_tool_and_parameters() -> None:
    properties = PLACE.spec.parameters["properties"]

    assert PLACE.spec.description == "Place an order, with lines.\n\nIt is shipped at once."
    assert properties["customer"]["description"] == "Who orders."
    assert properties["lines"]["description"] == "What is ordered,\nline by line."
    assert "description" not in properties["pace"]


def test_the_schema_is_a_closed_object_of_json_schema_2020_12() -> None:
    for item in (*Workshop.tools.values(), PLACE):
        jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **item.spec.parameters})
        jsonschema_rs.Draft202012Validator(item.spec.parameters)
        assert item.spec.parameters["type"] == "object"
        assert item.spec.parameters["additionalProperties"] is False
        assert "self" not in item.spec.parameters["properties"]
    assert PLACE.spec.parameters["required"] == ["customer", "lines"]
    assert PLACE.spec.returns is not None
    jsonschema_rs.Draft202012Validator(PLACE.spec.returns)


def test_titles_go_and_fields_named_title_stay() -> None:
    schema = PLACE.spec.parameters

    assert set(schema["$defs"]["Line"]["properties"]) == {"title", "count"}
    assert "title" not in schema["$defs"]["Line"]
    assert schema["properties"]["first"]["default"] == {"title": "unnamed", "count": 1}
    assert without_titles({"title": "T", "properties": {"title": {"title": "U", "enum": [{"title": "kept"}]}}}) == {
        "properties": {"title": {"enum": [{"title": "kept"}]}}
    }


def test_meanings_travel_in_rows_and_parameters() -> None:
    properties = PLACE.spec.parameters["properties"]

    assert properties["customer"]["x-semantic"] == "email"
    assert semantic_of(properties["budget"]) == "money"
    assert properties["discount"]["x-semantic"] == "percent"
    assert properties["limit"]["x-semantic"] == "limit"
    job = Workshop.tools["add_job"].spec.parameters["properties"]
    assert job["customer_id"]["anyOf"][0]["x-semantic"] == "id:customer"
    row = Workshop.state_class.declaration()[0].tables["jobs"].row["properties"]
    assert row["helpers"]["items"]["x-semantic"] == "id:customer"
    assert row["price"]["anyOf"][0]["x-semantic"] == "money"


def test_json_becomes_the_types_of_the_signature() -> None:
    bound = PLACE.bind(
        {
            **OK,
            "lines": [{"title": "A", "count": 2}],
            "tags": ["a", "b"],
            "budget": "13.9",
            "discount": 12.5,
            "due": "2026-02-19",
            "at": "2026-02-19T10:00:00+02:00",
            "weight": 3,
            "json": "{}",
        }
    )

    assert bound["lines"] == (Line(title="A", count=2),)
    assert bound["tags"] == ("a", "b")
    assert (bound["budget"], bound["discount"]) == (Decimal("13.90"), Decimal("12.5"))
    assert bound["due"] == date(2026, 2, 19)
    assert bound["at"] == datetime(2026, 2, 19, 8, tzinfo=UTC)
    assert bound["weight"] == 3.0
    assert bound["first"] == Line(count=1)
    assert bound["json"] == "{}"
    assert list(bound) == list(PLACE.spec.parameters["properties"])


def _deep(levels: int) -> Any:
    value: Any = None
    for _ in range(levels):
        value = [value]
    return value


REFUSED: dict[str, dict[str, Any]] = {
    "unknown": {"colour": "red"},
    "number as text": {"limit": "5"},
    "text as number": {"note": 5},
    "flag as number": {"rush": 1},
    "flag as text": {"rush": "true"},
    "number as flag": {"limit": True},
    "fraction as whole": {"limit": 1.5},
    "null where none is allowed": {"pace": None},
    "not one of": {"pace": "medium"},
    "out of range": {"limit": 0},
    "too long": {"note": "123456"},
    "no list": {"lines": {"title": "A", "count": 1}},
    "text as list": {"tags": "ab"},
    "wrong in a list": {"tags": ["a", 1]},
    "number as text, nested": {"lines": [{"title": "A", "count": "2"}]},
    "unknown, nested": {"lines": [{"title": "A", "count": 2, "colour": "red"}]},
    "missing, nested": {"lines": [{"title": "A"}]},
    "no e-mail": {"customer": "nobody"},
    "no amount": {"budget": "ten"},
    "third decimal": {"budget": "1.234"},
    "too much": {"budget": "1" * 30},
    "NaN amount": {"budget": "NaN"},
    "day as number": {"due": 20260219},
    "no day": {"due": "2026-02-30"},
    "time for a day": {"due": "2026-02-19T10:00:00Z"},
    "time without offset": {"at": "2026-02-19T10:00:00"},
    "time as number": {"at": 1770000000},
    "NaN": {"weight": float("nan")},
    "infinity": {"weight": float("-inf")},
    "NaN where anything goes": {"extra": [float("nan")]},
    "lone surrogate": {"note": "\ud800"},
    "lone surrogate where anything goes": {"extra": {"\udfff": 1}},
    "endless number": {"weight": 10**5000},
    "endless whole number": {"extra": 10**5000},
    "deep": {"extra": _deep(5000)},
    "bottomless": {"extra": _deep(100_000)},
    "bytes": {"extra": b"\xff"},
    "no JSON type": {"extra": object()},
}


@pytest.mark.parametrize("wrong", REFUSED.values(), ids=REFUSED)
def test_wrong_arguments_are_invalid_arguments(wrong: dict[str, Any]) -> None:
    with pytest.raises(InvalidArguments) as caught:
        PLACE.bind({**OK, **wrong})

    assert caught.value.message
    caught.value.message.encode()


def test_a_refusal_names_the_argument() -> None:
    with pytest.raises(InvalidArguments, match=r"lines\.0\.count: .*integer"):
        PLACE.bind({**OK, "lines": [{"count": "2"}]})
    with pytest.raises(InvalidArguments, match="customer: Field required; lines: Field required"):
        PLACE.bind({})


@pytest.mark.parametrize(
    "annotation",
    [
        float,
        Any,
        dict[str, Any],
        dict[str, float],
        list[Any],
        tuple[float, ...],
        Any | None,
        Line | dict[str, object],
        list,
    ],
    ids=str,
)
@pytest.mark.parametrize("constant", [math.nan, math.inf, -math.inf])
def test_constants_that_json_lacks_reach_no_parameter(annotation: Any, constant: float) -> None:
    def take(self: Any, value: Any) -> None:
        """Take."""

    take.__annotations__["value"] = annotation
    taking = Tool(tool(effect="read")(take))

    for value in (constant, [constant], {"a": constant}, {"a": [{"b": constant}]}, {"title": "A", "count": constant}):
        with pytest.raises(InvalidArguments):
            taking.bind({"value": value})


def test_words_that_look_like_constants_are_words() -> None:
    assert PLACE.bind({**OK, "note": "NaN"})["note"] == "NaN"
    assert PLACE.bind({**OK, "extra": "-Infinity"})["extra"] == "-Infinity"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda part: st.lists(part, max_size=3) | st.dictionaries(st.text(max_size=5), part, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from(list(PLACE.spec.parameters["properties"])) | st.text(max_size=4), JSON))
def test_arguments_are_bound_or_refused_and_nothing_else(arguments: dict[str, Any]) -> None:
    try:
        bound = PLACE.bind(arguments)
    except InvalidArguments:
        return
    jsonschema_rs.Draft202012Validator(PLACE.spec.parameters).validate(arguments)
    assert set(bound) == set(PLACE.spec.parameters["properties"])


def test_results_are_json() -> None:
    class Answers(Service[OrderState]):
        """Answers."""

        domain = "commerce"

        @tool(effect="read")
        def look(self) -> dict[str, Any]:
            """Look."""
            return {"line": Line(count=1), "at": datetime(2026, 1, 1, tzinfo=UTC), "some": ("a",), "amount": 1}

    assert Answers.tools["look"].run(object(), {}) == {
        "line": {"title": "unnamed", "count": 1},
        "at": "2026-01-01T00:00:00Z",
        "some": ["a"],
        "amount": 1,
    }


def test_tools_without_annotations_or_with_one_name_are_refused() -> None:
    def bare(self: Any, value) -> int:  # type: ignore[no-untyped-def]
        """Bare."""
        return cast(int, value)

    def silent(self: Any):  # type: ignore[no-untyped-def]
        """Silent."""

    with pytest.raises(TypeError, match="'value' has no annotation"):
        Tool(tool(effect="read")(bare))
    with pytest.raises(TypeError, match="return annotation"):
        Tool(tool(effect="read")(silent))
    with pytest.raises(TypeError, match="two tools named 'same'"):

        class Twice(Service[OrderState]):
            """Twice."""

            domain = "commerce"

            @tool(effect="read", name="same")
            def one(self) -> int:
                """One."""
                return 1

            @tool(effect="read", name="same")
            def other(self) -> int:
                """Other."""
                return 2


def test_a_service_tells_what_it_promises() -> None:
    spec = Workshop.spec()

    assert (spec.name, spec.domain, spec.source) == ("workshop", "commerce", "library")
    assert [item.name for item in spec.tools] == sorted(Workshop.tools)
    assert {item.effect for item in spec.tools} == {"read", "write"}
