"""Calendar: who may change an event, what stands in its way, and when people are free."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from itertools import combinations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compoworld_core.services.record import Row
from compoworld_core.services.running import RunningService
from tests.library.conformance import START, UNIVERSE, answer, fresh, plant, refusal, rows, start

ME = UNIVERSE.user.email
ANN, BEN = (person.email for person in UNIVERSE.staff[1:3])
CUSTOMER = UNIVERSE.contacts[0].email
SUNDAY = datetime(2026, 3, 15, tzinfo=UTC)
"""A day on which nothing happens yet."""
TEN = SUNDAY + timedelta(hours=10)


@pytest.fixture
def calendar() -> RunningService:
    return fresh("calendar")


@pytest.fixture
def room(calendar: RunningService) -> str:
    return str(plant(calendar, "rooms", name="Sandbox", city="Ghent", capacity=3, features=("video",))["id"])


def at(hours: float) -> str:
    return (SUNDAY + timedelta(hours=hours)).isoformat()


def created(calendar: RunningService, hours: float = 10, **fields: Any) -> Row:
    return answer(calendar, "create_calendar_event", **{"title": "Quince tasting", "start": at(hours), **fields})  # type: ignore[no-any-return]


def planted(calendar: RunningService, **fields: Any) -> Row:
    return plant(calendar, "events", **{"title": "Planted", "organiser_email": ANN, "start": TEN, **fields})


# Creating


def test_new_event_asks_everybody_but_the_organiser(calendar: RunningService) -> None:
    event = created(calendar, attendees=[ANN, ANN.upper(), ME, CUSTOMER], minutes=20)

    assert (event["organiser_email"], event["attendees"]) == (ME, [ANN, CUSTOMER])
    assert event["needs_action"] == [ANN, CUSTOMER]
    assert (event["start"], event["end"]) == ("2026-03-15T10:00:00Z", "2026-03-15T10:20:00Z")


def test_times_are_kept_at_the_offset_of_the_calendar(calendar: RunningService) -> None:
    event = answer(calendar, "create_calendar_event", title="Call", start="2026-03-15T01:30:00+02:00")

    assert event["start"] == "2026-03-14T23:30:00Z"
    assert event["id"] in listed(calendar, from_day="2026-03-14", to_day="2026-03-14")
    assert event["id"] not in listed(calendar, from_day="2026-03-15")


@pytest.mark.parametrize(
    ("begin", "code"),
    [
        ("2026-02-12T08:29:59+00:00", "failed_precondition"),
        ("2026-02-12T09:00:00+01:00", "failed_precondition"),
        ("2028-06-01T10:00:00+00:00", "invalid_arguments"),
        ("2026-03-15T10:00:00", "invalid_arguments"),
    ],
    ids=["just past", "past in its own zone", "too far ahead", "without offset"],
)
def test_senseless_times_are_refused(calendar: RunningService, begin: str, code: str) -> None:
    assert refusal(calendar, "create_calendar_event", title="Call", start=begin) == code


# Conflicts


@pytest.mark.parametrize(
    ("hours", "minutes", "clashes"),
    [(9, 60, False), (9, 61, True), (10.25, 5, True), (10.5, 30, False), (9, 300, True)],
    ids=["ends as it starts", "ends later", "inside", "starts as it ends", "around"],
)
def test_room_is_never_booked_twice(
    calendar: RunningService, room: str, hours: float, minutes: int, clashes: bool
) -> None:
    planted(calendar, room_id=room, minutes=30)
    request = {"title": "Call", "start": at(hours), "minutes": minutes, "room_id": room, "allow_conflicts": True}

    if clashes:
        assert refusal(calendar, "create_calendar_event", **request) == "failed_precondition"
    else:
        assert answer(calendar, "create_calendar_event", **request)["room_name"] == "Sandbox"


def test_busy_attendee_is_refused_unless_allowed(calendar: RunningService) -> None:
    event = planted(calendar)
    request = {"title": "Call", "start": at(10), "attendees": [BEN, ANN]}

    assert refusal(calendar, "create_calendar_event", **request) == "failed_precondition"
    report = answer(calendar, "check_event_conflicts", start=at(10), minutes=30, attendees=[BEN, ANN])
    assert [(item["email"], item["event_id"]) for item in report["attendee_conflicts"]] == [(ANN, event["id"])]
    assert report["can_be_booked"]

    assert answer(calendar, "create_calendar_event", **request, allow_conflicts=True)["attendees"] == [BEN, ANN]


@pytest.mark.parametrize(
    "fields", [{"attendees": (BEN,), "declined": (BEN,)}, {"attendees": (BEN,), "status": "cancelled"}], ids=str
)
def test_who_declined_is_free(calendar: RunningService, fields: dict[str, Any]) -> None:
    planted(calendar, **fields)

    assert created(calendar, attendees=[BEN])["attendees"] == [BEN]


def test_room_must_hold_everybody(calendar: RunningService, room: str) -> None:
    crowd = [ANN, BEN, CUSTOMER]
    assert refusal(calendar, "create_calendar_event", title="C", start=at(10), attendees=crowd, room_id=room) == (
        "limit_exceeded"
    )

    event = created(calendar, attendees=crowd[:2], room_id=room)["id"]
    assert refusal(calendar, "invite_to_event", event_id=event, email=CUSTOMER) == "limit_exceeded"
    answer(calendar, "release_event_room", event_id=event)
    assert len(answer(calendar, "invite_to_event", event_id=event, email=CUSTOMER)["attendees"]) == 3
    assert refusal(calendar, "book_event_room", event_id=event, room_id=room) == "limit_exceeded"


def test_room_out_of_service_can_not_be_booked(calendar: RunningService) -> None:
    closed = plant(calendar, "rooms", name="Ruin", city="Ghent", capacity=9, is_in_service=False)["id"]

    assert refusal(calendar, "create_calendar_event", title="C", start=at(10), room_id=closed) == "failed_precondition"
    assert refusal(calendar, "find_free_slots", emails=[ME], room_id=closed) == "failed_precondition"
    assert closed not in [row["id"] for row in answer(calendar, "find_available_rooms", start=at(10))["items"]]


# Changing


def test_only_the_organiser_changes_an_event(calendar: RunningService, room: str) -> None:
    event = planted(calendar, attendees=(ME,))["id"]

    for tool, arguments in (
        ("update_event_details", {"title": "Mine"}),
        ("reschedule_event", {"start": at(12)}),
        ("cancel_event", {}),
        ("invite_to_event", {"email": BEN}),
        ("uninvite_from_event", {"attendee": ME}),
        ("hand_over_event", {"organiser_email": ME}),
        ("book_event_room", {"room_id": room}),
        ("release_event_room", {}),
    ):
        assert refusal(calendar, tool, event_id=event, **arguments) == "permission_denied"


def test_new_time_asks_attendees_again(calendar: RunningService) -> None:
    event = planted(calendar, organiser_email=ME, attendees=(ANN, BEN), accepted=(ANN,), declined=(BEN,))["id"]

    moved = answer(calendar, "reschedule_event", event_id=event, start=at(14))

    assert moved["needs_action"] == [ANN, BEN]
    assert (moved["start"], moved["minutes"]) == ("2026-03-15T14:00:00Z", 30)
    assert refusal(calendar, "reschedule_event", event_id=event, start="2026-03-15T15:00:00+01:00") == (
        "failed_precondition"
    )


def test_event_is_not_in_its_own_way(calendar: RunningService, room: str) -> None:
    event = created(calendar, attendees=[ANN], room_id=room)["id"]

    assert answer(calendar, "reschedule_event", event_id=event, start=at(10.25))["room_id"] == room


def test_new_details_keep_answers(calendar: RunningService) -> None:
    event = planted(calendar, organiser_email=ME, attendees=(ANN,), accepted=(ANN,))["id"]

    assert answer(calendar, "update_event_details", event_id=event, title="Jam tasting")["accepted"] == [ANN]
    assert refusal(calendar, "update_event_details", event_id=event) == "invalid_arguments"


def test_cancelled_event_frees_room_and_people_for_good(calendar: RunningService, room: str) -> None:
    event = created(calendar, attendees=[ANN], room_id=room)["id"]
    assert answer(calendar, "cancel_event", event_id=event, reason="Rain")["cancel_reason"] == "Rain"

    for tool, arguments in (("cancel_event", {}), ("reschedule_event", {"start": at(12)})):
        assert refusal(calendar, tool, event_id=event, **arguments) == "failed_precondition"
    assert event not in listed(calendar)
    assert event in listed(calendar, include_cancelled=True)
    assert created(calendar, attendees=[ANN], room_id=room)["id"] != event


def test_past_events_stay_as_they_are(calendar: RunningService) -> None:
    event = planted(calendar, organiser_email=ME, attendees=(ANN,), start=START - timedelta(hours=2))["id"]

    assert refusal(calendar, "cancel_event", event_id=event) == "failed_precondition"
    assert refusal(calendar, "uninvite_from_event", event_id=event, attendee=ANN) == "failed_precondition"


def test_handing_over_swaps_the_parts(calendar: RunningService) -> None:
    event = planted(calendar, organiser_email=ME, attendees=(ANN, BEN), accepted=(BEN, ANN))["id"]

    handed = answer(calendar, "hand_over_event", event_id=event, organiser_email=ANN)

    assert (handed["organiser_email"], handed["attendees"]) == (ANN, [BEN, ME])
    assert handed["accepted"] == [BEN, ME]
    assert refusal(calendar, "cancel_event", event_id=event) == "permission_denied"


def test_uninvited_person_is_free_again(calendar: RunningService) -> None:
    event = created(calendar, attendees=[ANN])["id"]

    assert refusal(calendar, "invite_to_event", event_id=event, email=ANN) == "already_exists"
    assert answer(calendar, "uninvite_from_event", event_id=event, attendee=ANN)["attendees"] == []
    assert refusal(calendar, "uninvite_from_event", event_id=event, attendee=ANN) == "not_found"


# Answering


def test_later_answer_replaces_an_earlier_one(calendar: RunningService) -> None:
    event = planted(calendar, attendees=(ME, BEN))["id"]
    assert event in pending(calendar)

    for response in ("tentative", "declined", "accepted", "accepted"):
        shown = answer(calendar, "respond_to_event", event_id=event, response=response)
        assert [name for name in ("accepted", "tentative", "declined") if ME in shown[name]] == [response]
    assert shown["needs_action"] == [BEN]
    assert event not in pending(calendar)


def test_only_the_invited_answer(calendar: RunningService) -> None:
    own, other = created(calendar)["id"], planted(calendar, start=TEN + timedelta(hours=5))["id"]

    assert refusal(calendar, "respond_to_event", event_id=own, response="accepted") == "failed_precondition"
    assert refusal(calendar, "respond_to_event", event_id=other, response="accepted") == "permission_denied"


# Privacy


def test_private_events_of_others_show_as_busy_and_nothing_else(calendar: RunningService) -> None:
    event = planted(calendar, is_private=True, title="Secret quince")["id"]

    assert refusal(calendar, "get_calendar_event", event_id=event) == "permission_denied"
    assert event not in listed(calendar, person_email=ANN)
    agenda = answer(calendar, "get_day_agenda", person_email=ANN, day="2026-03-15")
    assert (agenda["events"], agenda["private_events"], agenda["busy_minutes"]) == ([], 1, 30)
    free_busy = answer(calendar, "get_free_busy", emails=[ANN], from_day="2026-03-15", to_day="2026-03-15")
    assert [(item["event_id"], item["title"]) for item in free_busy["items"][0]["busy"]] == [(None, None)]
    refused = calendar.call("create_calendar_event", {"title": "C", "start": at(10), "attendees": [ANN]}).envelope
    assert event not in refused["error"]["message"]


def test_private_event_is_open_to_those_who_take_part(calendar: RunningService) -> None:
    event = planted(calendar, is_private=True, attendees=(ME,))["id"]

    assert answer(calendar, "get_calendar_event", event_id=event)["title"] == "Planted"


# Looking up


def listed(calendar: RunningService, **filters: Any) -> list[str]:
    return [row["id"] for row in answer(calendar, "list_calendar_events", limit=200, **filters)["items"]]


def pending(calendar: RunningService) -> list[str]:
    return [row["id"] for row in answer(calendar, "list_pending_invitations", limit=200)["items"]]


@pytest.mark.parametrize(
    ("filters", "hit"),
    [
        ({"query": "TASTING quince"}, True),
        ({"query": "tasting plum"}, False),
        ({"from_day": "2026-03-16"}, True),
        ({"from_day": "2026-03-17"}, False),
        ({"to_day": "2026-03-15"}, True),
        ({"to_day": "2026-03-14"}, False),
        ({"person_email": ANN.upper()}, True),
        ({"person_email": BEN}, False),
        ({"organiser_email": ME}, True),
        ({"organiser_email": ANN}, False),
        ({"project": "Project Quince"}, True),
        ({"project": "Quince"}, False),
    ],
    ids=str,
)
def test_list_applies_each_filter(calendar: RunningService, filters: dict[str, Any], hit: bool) -> None:
    event = created(calendar, hours=23.75, attendees=[ANN], project="Project Quince")["id"]

    assert (event in listed(calendar, **filters)) is hit


def test_room_bookings_and_available_rooms_agree(calendar: RunningService, room: str) -> None:
    created(calendar, room_id=room)
    free = [
        [row["id"] for row in answer(calendar, "find_available_rooms", start=at(hours), city="Ghent")["items"]]
        for hours in (10, 10.5)
    ]

    bookings = answer(calendar, "list_room_bookings", room_id=room, day="2026-03-15")["items"]
    assert bookings == [{"start": "2026-03-15T10:00:00Z", "end": "2026-03-15T10:30:00Z"}]
    assert [room in rooms for rooms in free] == [False, True]
    assert answer(calendar, "check_event_conflicts", start=at(10), minutes=30, room_id=room)["room_conflicts"]


def test_slots_keep_to_working_hours_at_each_ones_offset(calendar: RunningService) -> None:
    early = plant(calendar, "people", name="Ada", email="ada@home.example", city="Tampere", utc_offset="+02:00")
    late = plant(calendar, "people", name="Bo", email="bo@home.example", city="Porto", start_hour=10, end_hour=18)

    slots = answer(
        calendar,
        "find_free_slots",
        emails=[early["email"], late["email"]],
        minutes=60,
        from_day="2026-03-14",
        to_day="2026-03-16",
        limit=200,
    )["items"]

    assert [slot["start"][:16] for slot in slots] == [
        f"2026-03-16T{hour}"
        for hour in ("10:00", "10:30", "11:00", "11:30", "12:00", "12:30", "13:00", "13:30", "14:00")
    ]


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(
    people=st.lists(st.sampled_from([person.email for person in UNIVERSE.staff]), min_size=1, max_size=4, unique=True),
    minutes=st.integers(5, 240),
    days=st.integers(0, 20),
)
def test_free_slots_can_be_booked_by_all(people: list[str], minutes: int, days: int) -> None:
    calendar = fresh("calendar")
    first = (START + timedelta(days=days)).date().isoformat()

    slots = answer(calendar, "find_free_slots", emails=people, minutes=minutes, from_day=first)["items"]

    for slot in slots[:3]:
        report = answer(calendar, "check_event_conflicts", start=slot["start"], minutes=minutes, attendees=people)
        assert not {item["email"] for item in report["attendee_conflicts"]} & set(people)
        assert not set(report["outside_working_hours"]) & set(people)
        assert report["can_be_booked"]


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    bookings=st.lists(st.tuples(st.integers(0, 96), st.integers(5, 240), st.sampled_from((-11, 0, 2, 14))), max_size=12)
)
def test_no_order_of_bookings_puts_two_events_into_a_room(bookings: list[tuple[int, int, int]]) -> None:
    calendar = fresh("calendar")
    room = next(row["id"] for row in rows(calendar.state)["rooms"] if row["is_in_service"])

    for quarter, minutes, offset in bookings:
        begin = (SUNDAY + timedelta(minutes=15 * quarter)).astimezone(timezone(timedelta(hours=offset)))
        calendar.call(
            "create_calendar_event",
            {
                "title": "C",
                "start": begin.isoformat(),
                "minutes": minutes,
                "room_id": room,
                "allow_conflicts": True,
            },
        )

    taken = [_span(row) for row in rows(calendar.state)["events"] if row["room_id"] == room]
    assert not any(one[0] < other[1] and other[0] < one[1] for one, other in combinations(taken, 2))


def _span(event: Row) -> tuple[datetime, datetime]:
    begin = datetime.fromisoformat(event["start"])
    return begin, begin + timedelta(minutes=event["minutes"])


@pytest.mark.parametrize("seed", range(4))
def test_new_world_has_no_conflicts(seed: int) -> None:
    events = [row for row in rows(start("calendar", seed).state)["events"] if row["status"] == "confirmed"]

    for one, other in combinations(events, 2):
        if _span(one)[0] < _span(other)[1] and _span(other)[0] < _span(one)[1]:
            assert one["room_id"] is None or one["room_id"] != other["room_id"]
            assert not {one["organiser_email"], *one["attendees"]} & {other["organiser_email"], *other["attendees"]}


# Working hours


def test_user_sets_own_working_hours_only_in_order(calendar: RunningService) -> None:
    hours = answer(calendar, "set_working_hours", start_hour=7, end_hour=12, workdays=["fri", "mon"])

    assert (hours["email"], hours["workdays"]) == (ME, ["mon", "fri"])
    assert answer(calendar, "get_working_hours", email=ME.upper()) == hours
    assert refusal(calendar, "set_working_hours", start_hour=12, end_hour=12) == "invalid_arguments"


@pytest.mark.parametrize(
    ("from_day", "to_day"), [("2026-03-02", "2026-03-01"), ("2026-03-01", "2026-04-01"), ("2031-01-01", "2031-01-02")]
)
def test_periods_are_bounded(calendar: RunningService, from_day: str, to_day: str) -> None:
    for tool in ("get_free_busy", "find_free_slots"):
        assert refusal(calendar, tool, emails=[ME], from_day=from_day, to_day=to_day) == "invalid_arguments"


def test_strangers_have_no_calendar(calendar: RunningService) -> None:
    assert refusal(calendar, "get_free_busy", emails=[ME, CUSTOMER]) == "not_found"
    assert answer(calendar, "check_event_conflicts", start=at(10), minutes=5, attendees=[CUSTOMER])["unknown"] == [
        CUSTOMER
    ]
