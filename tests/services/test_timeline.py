"""The dates of a row fit each other and today."""

from __future__ import annotations

import random
from collections.abc import Collection
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compoworld_core.services.timeline import LATER, PAST, Timeline, stage_of

NOW = datetime(2026, 3, 2, 0, 10, tzinfo=UTC)
FIELDS = (
    *("birthday", "created_at", "applied_on", "purchase_date", "updated_at", "paid_on", "closed_at", "returned_on"),
    *("start_date", "departs_on", "end_date", "valid_until", "due_date", "next_review", "date", "last_seen_at"),
)


@pytest.mark.parametrize(
    ("name", "about", "stage"),
    [
        ("birthday", "", "born"),
        ("createdAt", "", "begun"),
        ("purchase_date", "", "begun"),
        ("last_updated", "", "changed"),
        ("paid_on", "", "changed"),
        ("resolved_at", "", "finished"),
        ("check_in", "", "start"),
        ("check_out", "", "end"),
        ("first_day", "", "start"),
        ("last_day", "", "end"),
        ("valid_from", "", "start"),
        ("warranty_until", "", "end"),
        ("expected_close_date", "", "due"),
        ("needed_by", "", "due"),
        ("date", "metric_value", "changed"),
        ("date", "flight", "start"),
        ("occurred_at", "event", "changed"),
    ],
)
def test_names_tell_the_stage(name: str, about: str, stage: str) -> None:
    assert stage_of(name, about) == stage


def ordered_pairs(fields: Collection[str], about: str = "") -> list[tuple[str, str]]:
    """Pairs of fields of which the first never comes after the second."""
    stages = {name: stage_of(name, about) for name in fields}
    return [(one, other) for one in fields for other in fields if stages[other] in LATER[stages[one]]]


@given(st.permutations(FIELDS), st.integers(1, len(FIELDS)), st.integers(), st.booleans())
def test_no_stage_comes_before_an_earlier_one(order: list[str], count: int, seed: int, is_day: bool) -> None:
    fields = order[:count]
    timeline = Timeline(random.Random(seed), NOW, FIELDS)
    drawn = {name: timeline.moment(name, is_day=is_day) for name in fields}

    assert all(drawn[one] <= drawn[other] for one, other in ordered_pairs(fields))
    assert all(moment <= NOW for name, moment in drawn.items() if stage_of(name) in PAST)
    assert all(moment > NOW - timedelta(days=60) for name, moment in drawn.items() if stage_of(name) == "due")


def test_a_field_has_one_moment() -> None:
    timeline = Timeline(random.Random(1), NOW)

    assert len({timeline.moment("due_date", is_day=True) for _ in range(5)}) == 1


def test_weeks_begin_on_mondays_and_meetings_end_the_same_day() -> None:
    for seed in range(30):
        timeline = Timeline(random.Random(seed), NOW, ("week_starting", "starts_at", "ends_at"))

        assert timeline.moment("week_starting", is_day=True).weekday() == 0
        starts, ends = (timeline.moment(name, is_day=False) for name in ("starts_at", "ends_at"))
        assert timedelta(0) < ends - starts <= timedelta(hours=3)
