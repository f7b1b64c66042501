"""What every bundled service is seeded with, whoever reads it: people, dates and texts that could be true."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from functools import cache
from typing import Any
from zoneinfo import available_timezones

import pytest

from compoworld_core.pipeline.work.synthesize import synthesize
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.schema import TableSchema
from compoworld_core.services.seeding import populate
from compoworld_core.services.state import State
from compoworld_core.services.timeline import PAST, stage_of
from compoworld_core.services.universe import _PLACES, Universe
from compoworld_core.specs.sources import BundledSource, read_specs
from compoworld_core.specs.verbs import tokenise
from compoworld_core.synthesis.rules import RulesAuthor
from tests.services.test_timeline import ordered_pairs
from tests.services.workshop import START

SEEDS = (0, 7)
TODAY = START.isoformat()
_PERSONAL = {"email", "name", "full", "phone"}

Row = dict[str, Any]


@cache
def packages() -> tuple[ServicePackage, ...]:
    author = RulesAuthor()
    made = [item for spec in read_specs(BundledSource())[0] for item in synthesize(spec, author)]
    return tuple(item for item in made if isinstance(item, ServicePackage))


@cache
def seeded(seed: int) -> tuple[tuple[str, TableSchema, tuple[Row, ...]], ...]:
    return tuple(table for package in packages() for table in tables(package, seed))


def tables(package: ServicePackage, seed: int) -> Iterator[tuple[str, TableSchema, tuple[Row, ...]]]:
    state = State.from_schema(package.tables)
    populate(state, Universe.generate(seed), random.Random(f"{seed}/{package.name}"), START)
    for name, table in state.tables.items():
        yield f"{package.name}.{name}", table.schema, tuple(table.type.view(record) for record in table)


def every_row(seed: int) -> Iterator[tuple[str, TableSchema, Row]]:
    return ((place, table, row) for place, table, items in seeded(seed) for row in items)


def of_meaning(table: TableSchema, *words: str) -> list[str]:
    return [name for name, word in table.semantics.items() if word in words]


def texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from texts(list(value.values()))
    elif isinstance(value, list):
        for item in value:
            yield from texts(item)


pytestmark = pytest.mark.parametrize("seed", SEEDS)


def test_every_table_has_rows(seed: int) -> None:
    assert [place for place, _, items in seeded(seed) if len(items) < 5] == []


def test_no_row_ends_before_it_starts(seed: int) -> None:
    wrong = [
        (place, one, row[one], other, row[other])
        for place, table, row in every_row(seed)
        for one, other in ordered_pairs(of_meaning(table, "date", "timestamp"), table.entity)
        if row[one] and row[other] and row[one][: len(row[other])] > row[other][: len(row[one])]
    ]
    assert wrong == []


def test_what_has_happened_lies_before_today_and_what_is_due_not_long_ago(seed: int) -> None:
    wrong = []
    for place, table, row in every_row(seed):
        for name in of_meaning(table, "date", "timestamp"):
            stage, value = stage_of(name, table.entity), row[name]
            if value and (stage in PAST) and value > TODAY[: len(value)]:
                wrong.append((place, name, value))
            if value and stage == "due" and value < "2026-01":
                wrong.append((place, name, value))
    assert wrong == []


def test_one_role_is_one_person(seed: int) -> None:
    people = {person.email: person for person in Universe.generate(seed).people}
    compared = 0
    for place, table, row in every_row(seed):
        for name in of_meaning(table, "person_name", "phone"):
            role = set(tokenise(name)) - _PERSONAL
            emails = [
                row[other]
                for other in of_meaning(table, "email")
                if set(tokenise(other)) - _PERSONAL == role and isinstance(row[other], str)
            ]
            for email in emails:
                compared += 1
                assert row[name] in (people[email].name, people[email].phone), (place, name)
    assert compared > 100


def test_an_organisation_has_its_own_website_people_and_place(seed: int) -> None:
    cast = Universe.generate(seed)
    organisations = {item.name: item for item in cast.organisations}
    compared = 0
    for place, table, row in every_row(seed):
        for name in of_meaning(table, "organisation_name"):
            organisation = organisations[row[name]]
            role = set(tokenise(name)) - {"name"}
            for other in ("website", "city", "country", *of_meaning(table, "email")):
                value = row.get(other)
                if not isinstance(value, str) or (
                    other in of_meaning(table, "email") and not role & set(tokenise(other))
                ):
                    continue
                compared += 1
                assert value in (organisation.city, organisation.country) or organisation.domain in value, (
                    place,
                    other,
                )
    assert compared > 50


def test_cities_lie_in_their_countries(seed: int) -> None:
    for place, table, row in every_row(seed):
        for city in of_meaning(table, "city"):
            country = row.get(city.replace("city", "country"))
            assert country is None or (row[city], country) in _PLACES, place


def test_ranges_have_their_lower_end_first(seed: int) -> None:
    for place, table, row in every_row(seed):
        for name in of_meaning(table, "money"):
            upper = row.get(name.replace("min", "max"))
            assert "min" not in tokenise(name) or upper is None or float(row[name]) < float(upper), place


def test_no_text_is_a_field_name_with_a_number(seed: int) -> None:
    filler = [
        (place, text)
        for place, _, row in every_row(seed)
        for text in texts(row)
        if re.search(r"^\w+( \w+)? \d{3,}$", text)
    ]
    assert filler == []


def test_plain_fields_hold_what_their_names_say(seed: int) -> None:
    zones = available_timezones()
    for place, _, row in every_row(seed):
        for name, value in row.items():
            tokens = tokenise(name)
            if "timezone" in tokens:
                assert value in zones, place
            if tokens[-1] in ("percent", "percentage"):
                assert value is None or 0 <= float(value) <= 100, place
            if tokens == ("version",):
                assert re.fullmatch(r"\d+\.\d+\.\d+", value), place


def test_the_same_seed_gives_the_same_rows(seed: int) -> None:
    package = packages()[seed]

    assert list(tables(package, seed)) == [item for item in seeded(seed) if item[0].startswith(f"{package.name}.")]
