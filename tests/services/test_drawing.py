"""Drawn values are legal, and seeded states keep their constraints."""

from __future__ import annotations

import random
import time
from functools import cache
from typing import Annotated, Any

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compoworld_core.services.drawing import Drawing
from compoworld_core.services.schema import ForeignKey, ServiceSchema, TableSchema
from compoworld_core.services.sdk import Day, Email, Entity, Id, Money, Quantity, State, Table, Title, table
from compoworld_core.services.seeding import ROWS, populate, seeding_order
from compoworld_core.services.universe import Universe
from compoworld_core.specs.sources import BundledSource, read_specs
from tests.services.workshop import START, rows

CAST = Universe.generate(3)


def drawing(seed: object = 0, **ids: list[str]) -> Drawing:
    return Drawing(CAST, random.Random(str(seed)), START, ids)


@cache
def bundled() -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{spec.name}.{item.name}", item.parameters) for spec in read_specs(BundledSource())[0] for item in spec.tools
    ]


@pytest.mark.parametrize("optional", [0.0, 0.5, 1.0])
def test_every_bundled_tool_can_be_given_arguments(optional: float) -> None:
    for name, schema in bundled():
        drawn = drawing(name).object(schema, optional=optional)

        jsonschema_rs.Draft202012Validator(schema).validate(drawn)
        assert drawn == drawing(name).object(schema, optional=optional)


WORDS = """
    email person_name organisation_name username phone url country city title text tag product_name sku project_name
    currency money percent quantity date timestamp query limit cursor id:ticket id:nothing nonsense
""".split()
SCALARS = st.one_of(
    st.fixed_dictionaries({"type": st.just("string")}, optional={"maxLength": st.integers(0, 40)}),
    st.fixed_dictionaries({"type": st.just("string"), "minLength": st.integers(0, 40)}),
    st.builds(
        lambda low, size, kind, step: {"type": kind, "minimum": low, "maximum": low + size, **step},
        st.integers(-1000, 1000),
        st.integers(0, 50),
        st.sampled_from(["integer", "number"]),
        st.just({}),
    ),
    st.builds(lambda low: {"type": "number", "exclusiveMinimum": low, "exclusiveMaximum": low + 1}, st.integers(-9, 9)),
    st.fixed_dictionaries({"type": st.sampled_from(["boolean", "integer", "number", "null"])}),
    st.fixed_dictionaries({"enum": st.lists(st.none() | st.integers() | st.text(), min_size=1, max_size=4)}),
    st.fixed_dictionaries({"const": st.none() | st.integers() | st.text()}),
    st.fixed_dictionaries({"type": st.just("string"), "x-semantic": st.sampled_from(WORDS)}),
)


def _objects(part: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    def build(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
        return {"type": "object", "properties": properties, "required": sorted({*required, *list(properties)[:1]})}

    return st.builds(
        build, st.dictionaries(st.text(max_size=4), part, max_size=3), st.lists(st.text(max_size=2), max_size=1)
    )


SCHEMAS = st.recursive(
    SCALARS,
    lambda part: st.one_of(
        st.builds(lambda item, low: {"type": "array", "items": item, "minItems": low}, part, st.integers(0, 2)),
        st.builds(lambda parts: {"anyOf": parts}, st.lists(part, min_size=1, max_size=3)),
        _objects(part),
    ),
    max_leaves=6,
)


@settings(deadline=None)
@given(SCHEMAS, st.integers())
def test_what_is_drawn_satisfies_the_schema(schema: dict[str, Any], seed: int) -> None:
    value = drawing(seed, ticket=["tkt_1", "tkt_2"]).value("field", schema)

    jsonschema_rs.Draft202012Validator(schema).validate(value)
    assert value == drawing(seed, ticket=["tkt_1", "tkt_2"]).value("field", schema)


def test_recursive_schemas_come_to_an_end() -> None:
    node = {
        "type": "object",
        "properties": {"children": {"type": "array", "items": {"$ref": "#/$defs/Node"}}, "name": {"type": "string"}},
        "required": ["children", "name"],
    }
    tree = {
        "$defs": {"Node": node},
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/Node"}},
        "required": ["root"],
    }

    jsonschema_rs.Draft202012Validator(tree).validate(drawing().object(tree))


LIST: dict[str, Any] = {"type": "array", "minItems": 60}
NESTED: dict[str, Any] = {**LIST, "items": {**LIST, "items": {**LIST, "items": {**LIST, "items": {"type": "string"}}}}}
ENDLESS: dict[str, Any] = {
    "type": "object",
    "properties": {"kids": {"type": "array", "items": {"$ref": "#/$defs/node"}, "minItems": 3}},
    "required": ["kids"],
}


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "string", "minLength": 50_000_000},
        {"type": "array", "items": {"type": "string", "minLength": 10_000}, "minItems": 1_000_000},
        {"$defs": {"node": ENDLESS}, **ENDLESS},
        NESTED,
    ],
    ids=["text", "list", "recursive", "nested"],
)
def test_what_would_be_too_large_is_said_soon(schema: dict[str, Any]) -> None:
    start = time.process_time()
    with pytest.raises(ValueError, match=r"."):
        drawing().value("field", schema)
    assert time.process_time() - start < 5


@pytest.mark.parametrize("keyword", ["oneOf", "anyOf"])
@pytest.mark.parametrize("optional", [0.0, 1.0])
def test_alternatives_of_an_object_are_kept(keyword: str, optional: float) -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "href": {"type": "string"}},
        keyword: [{"required": ["name"]}, {"required": ["href"]}],
    }

    jsonschema_rs.Draft202012Validator(schema).validate(drawing().object(schema, optional=optional))


def test_what_has_no_legal_value_is_said_and_left_out_where_it_may_be() -> None:
    impossible = {"type": "string", "pattern": "^[q]{40}$"}
    schema = {"type": "object", "properties": {"a": impossible, "b": {"type": "array", "items": impossible}}}

    assert drawing().object(schema, optional=1) == {"b": []}
    with pytest.raises(ValueError, match="no value found for 'a'"):
        drawing().object({**schema, "required": ["a"]})


def test_one_row_speaks_of_one_person() -> None:
    text = {"type": "string"}
    schema = {
        "type": "object",
        "properties": {
            "owner_email": {**text, "x-semantic": "email"},
            "owner_name": {**text, "x-semantic": "person_name"},
            "client_email": {**text, "x-semantic": "email"},
            "client_name": {**text, "x-semantic": "person_name"},
            "ticket_id": {**text, "x-semantic": "id:ticket"},
        },
    }
    people = {person.email: person for person in CAST.people}

    for seed in range(20):
        row = drawing(seed, ticket=["tkt_1"]).object(schema, optional=1)
        owner = people[row["owner_email"]]
        assert owner.name == row["owner_name"]
        assert owner in CAST.staff
        assert people[row["client_email"]].name == row["client_name"]
        assert row["ticket_id"] == "tkt_1"


# Seeding

ShelfId = Annotated[str, Id("shelf", prefix="shf")]
BookId = Annotated[str, Id("book", prefix="")]


class Book(Entity):
    id: BookId
    title: Title
    shelf_id: ShelfId
    sequel_of: BookId | None = None
    donors: tuple[Email, ...] = ()
    price: Money | None = None
    bought: Day | None = None
    copies: Quantity = 0


class Shelf(Entity):
    id: ShelfId
    title: Title
    keeper: Email


class LibraryState(State):
    books: Table[Book] = table(unique=("title",))
    shelves: Table[Shelf]


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("typed", [True, False])
def test_seeded_rows_keep_every_constraint(seed: int, typed: bool) -> None:
    schema = LibraryState.declaration()[0]

    def seeded() -> State:
        state = LibraryState.empty() if typed else State.from_schema(schema)
        populate(state, CAST, random.Random(seed), START)
        return state

    state = seeded()
    seen = rows(state)
    assert seen == rows(seeded())
    assert len(seen["shelves"]) == ROWS
    assert len(seen["books"]) > ROWS / 2
    assert {row["shelf_id"] for row in seen["books"]} <= {row["id"] for row in seen["shelves"]}
    assert {row["sequel_of"] for row in seen["books"]} <= {None, *(row["id"] for row in seen["books"])}
    assert {row["keeper"] for row in seen["shelves"]} <= {person.email for person in CAST.people}
    for name, item in schema.tables.items():
        for row in seen[name]:
            jsonschema_rs.Draft202012Validator(item.row, validate_formats=True).validate(row)


def test_ids_without_prefix_are_numbers_as_text() -> None:
    state = LibraryState.empty()
    shelf = state.shelves.insert(title="S", keeper="a@b.co")

    assert state.books.insert(title="B", shelf_id=shelf.id).id == "1001"


def test_a_row_that_refers_to_itself_can_go() -> None:
    state = LibraryState.empty()
    shelf = state.shelves.insert(title="S", keeper="a@b.co")
    book = state.books.insert(title="B", shelf_id=shelf.id)
    state.books.update(book.id, sequel_of=book.id)

    state.books.delete(book.id)

    assert len(state.books) == 0


def test_tables_come_after_those_that_they_refer_to() -> None:
    assert seeding_order(LibraryState.empty()) == ["shelves", "books"]


def test_a_table_whose_rows_cannot_be_drawn_stays_empty() -> None:
    row = {
        "type": "object",
        "properties": {"id": {"type": "string"}, "code": {"type": "string", "pattern": "^[q]{40}$"}},
        "required": ["id", "code"],
    }
    open_row = {"type": "object", "properties": {"id": {"type": "string"}, "of": {"type": "string"}}}
    schema = ServiceSchema(
        tables={
            "odd": TableSchema(entity="odd", row=row, id_prefix="odd"),
            "after": TableSchema(
                entity="after", row=open_row, id_prefix="aft", foreign_keys=(ForeignKey(field="of", table="odd"),)
            ),
        }
    )
    state = State.from_schema(schema)
    populate(state, CAST, random.Random(1), START)

    assert len(state.tables["odd"]) == 0
