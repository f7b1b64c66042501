"""Leave: counted in working days and halves of them, never twice at once, decided on by the manager alone."""

from __future__ import annotations

from datetime import date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compoworld_core.library.hr.people_desk import half_days, prorated
from compoworld_core.services.running import RunningService
from tests.library.conformance import answer, fresh, refusal, rows
from tests.library.staff import USER, alter, by_email, clear_leave, day, team


@pytest.fixture
def people() -> RunningService:
    return fresh("people")


@pytest.mark.parametrize(
    ("first", "last", "starts_at_noon", "ends_at_noon", "expected"),
    [
        ("2026-02-16", "2026-02-20", False, False, "5.0"),
        ("2026-02-13", "2026-02-16", False, False, "2.0"),
        ("2026-02-16", "2026-02-20", True, False, "4.5"),
        ("2026-02-16", "2026-02-20", True, True, "4.0"),
        ("2026-02-16", "2026-02-16", False, True, "0.5"),
        ("2026-04-02", "2026-04-07", False, False, "2.0"),  # Good Friday and Easter Monday
        ("2026-05-14", "2026-05-15", False, False, "1.0"),  # Ascension Day
    ],
)
def test_leave_counts_working_days(
    people: RunningService, first: str, last: str, starts_at_noon: bool, ends_at_noon: bool, expected: str
) -> None:
    clear_leave(people)
    user = by_email(people, USER)
    asked = {
        "employee_id": user["id"],
        "first_day": first,
        "last_day": last,
        "starts_at_noon": starts_at_noon,
        "ends_at_noon": ends_at_noon,
    }

    preview = answer(people, "preview_leave", **asked)
    request = answer(people, "request_leave", kind="annual", **asked)

    assert preview["working_days"] == request["working_days"] == expected
    assert Decimal(preview["remaining_before"]) - Decimal(expected) == Decimal(preview["remaining_after"])


@pytest.mark.parametrize(
    ("asked", "code"),
    [
        ({"first_day": "2026-02-21", "last_day": "2026-02-22"}, "failed_precondition"),
        ({"first_day": "2026-02-20", "last_day": "2026-02-19"}, "invalid_arguments"),
        ({"first_day": "2026-12-28", "last_day": "2027-01-04"}, "invalid_arguments"),
        ({"first_day": "2026-02-11", "last_day": "2026-02-13"}, "failed_precondition"),
        (
            {"first_day": "2026-02-16", "last_day": "2026-02-16", "starts_at_noon": True, "ends_at_noon": True},
            "invalid_arguments",
        ),
        ({"first_day": "2026-02-21", "last_day": "2026-02-24", "starts_at_noon": True}, "failed_precondition"),
        ({"first_day": "2026-02-16", "last_day": "2026-04-30"}, "limit_exceeded"),
    ],
    ids=["weekend", "backwards", "turn of year", "past", "nothing left", "half a Saturday", "more than the allowance"],
)
def test_leave_that_makes_no_sense_is_refused(people: RunningService, asked: dict[str, Any], code: str) -> None:
    clear_leave(people)

    assert refusal(people, "request_leave", employee_id=by_email(people, USER)["id"], kind="annual", **asked) == code


def test_leave_does_not_overlap_unless_the_other_was_called_off(people: RunningService) -> None:
    clear_leave(people)
    asked = {"employee_id": by_email(people, USER)["id"], "kind": "unpaid"}
    first = answer(people, "request_leave", **asked, first_day="2026-03-02", last_day="2026-03-06")

    clash = {**asked, "first_day": "2026-03-06", "last_day": "2026-03-09"}
    assert refusal(people, "request_leave", **clash) == "failed_precondition"
    answer(people, "cancel_leave_request", leave_request_id=first["id"])

    assert answer(people, "request_leave", **clash)["status"] == "pending"


def test_balance_follows_requests(people: RunningService) -> None:
    clear_leave(people)
    person = team(people)[0]

    def balance() -> tuple[str, str, str]:
        found = answer(people, "list_leave_balances", employee_id=person["id"], year=2026, kind="annual")["items"][0]
        return found["taken"], found["pending"], found["remaining"]

    taken, pending, whole = balance()
    asked = {"employee_id": person["id"], "kind": "annual", "first_day": "2026-03-02", "last_day": "2026-03-04"}
    request = answer(people, "request_leave", **asked)["id"]
    after_request = balance()
    answer(people, "approve_leave_request", leave_request_id=request)
    after_approval = balance()
    answer(people, "cancel_leave_request", leave_request_id=request)

    left = str(Decimal(whole) - 3)
    assert (taken, pending) == ("0.0", "0.0")
    assert after_request == ("0.0", "3.0", left)
    assert after_approval == ("3.0", "0.0", left)
    assert balance() == ("0.0", "0.0", whole)


def test_only_the_direct_manager_decides(people: RunningService) -> None:
    clear_leave(people)
    stranger = next(
        row
        for row in rows(people.state)["employees"]
        if row["manager_email"] not in (None, USER) and row["email"] != USER
    )
    asked = {"kind": "unpaid", "first_day": "2026-03-02", "last_day": "2026-03-02"}
    alter(people, "employees", stranger["id"], status="active", ended_on=None)
    theirs = answer(people, "request_leave", employee_id=stranger["id"], **asked)["id"]
    own = answer(people, "request_leave", employee_id=by_email(people, USER)["id"], **asked)["id"]

    for request in (theirs, own):
        assert refusal(people, "approve_leave_request", leave_request_id=request) == "permission_denied"
        assert refusal(people, "reject_leave_request", leave_request_id=request, reason="No") == "permission_denied"
    answer(people, "assign_manager", employee_id=stranger["id"], manager_email=USER)

    decided = answer(people, "reject_leave_request", leave_request_id=theirs, reason="The audit is that day")
    assert (decided["status"], decided["decided_by_email"]) == ("rejected", USER)
    assert refusal(people, "approve_leave_request", leave_request_id=theirs) == "failed_precondition"


def test_approved_leave_is_cancelled_only_before_it_starts(people: RunningService) -> None:
    clear_leave(people)
    person = team(people)[0]
    sick = answer(people, "request_leave", employee_id=person["id"], kind="sick", first_day=day(-2), last_day=day(1))

    assert sick["status"] == "approved"
    assert refusal(people, "cancel_leave_request", leave_request_id=sick["id"]) == "failed_precondition"
    late = {"employee_id": person["id"], "kind": "sick", "first_day": day(-31), "last_day": day(-31)}
    assert refusal(people, "request_leave", **late) == "failed_precondition"


def test_rescheduled_leave_keeps_its_working_days(people: RunningService) -> None:
    clear_leave(people)
    person = team(people)[0]
    asked = {"kind": "annual", "first_day": "2026-03-02", "last_day": "2026-03-04", "ends_at_noon": True}
    request = answer(people, "request_leave", employee_id=person["id"], **asked)

    moved = answer(people, "reschedule_leave", leave_request_id=request["id"], first_day="2026-04-02")

    assert (moved["last_day"], moved["working_days"]) == ("2026-04-08", "2.5")
    assert refusal(people, "reschedule_leave", leave_request_id=request["id"], first_day="2026-04-04") == (
        "failed_precondition"
    )
    assert refusal(people, "reschedule_leave", leave_request_id=request["id"], first_day="2026-12-31") == (
        "failed_precondition"
    )


@settings(max_examples=60, deadline=None, derandomize=True)
@given(first=st.dates(date(2026, 2, 12), date(2026, 11, 1)), length=st.integers(0, 30), to=st.integers(1, 50))
def test_any_rescheduled_leave_keeps_its_working_days(first: date, length: int, to: int) -> None:
    running = fresh("people")
    clear_leave(running)
    asked = {"first_day": first.isoformat(), "last_day": (first + timedelta(days=length)).isoformat()}
    result = running.call("request_leave", {"employee_id": team(running)[0]["id"], "kind": "unpaid", **asked})
    if not result.succeeded:
        return
    before = result.envelope["data"]

    moved = running.call(
        "reschedule_leave",
        {"leave_request_id": before["id"], "first_day": (first + timedelta(days=to)).isoformat()},
    )

    if moved.succeeded:
        assert moved.envelope["data"]["working_days"] == before["working_days"]


def test_absences_are_approved_leave_on_a_working_day(people: RunningService) -> None:
    clear_leave(people)
    person = team(people)[0]
    asked = {"kind": "unpaid", "first_day": "2026-03-06", "last_day": "2026-03-09", "ends_at_noon": True}
    request = answer(people, "request_leave", employee_id=person["id"], **asked)

    assert answer(people, "list_absences", day="2026-03-06")["total"] == 0
    answer(people, "approve_leave_request", leave_request_id=request["id"])

    friday = answer(people, "list_absences", day="2026-03-06")["items"]
    monday = answer(people, "list_absences", day="2026-03-09", department_id=person["department_id"])["items"]
    assert [(row["employee_email"], row["is_half_day"]) for row in friday] == [(person["email"], False)]
    assert [(row["employee_email"], row["is_half_day"]) for row in monday] == [(person["email"], True)]
    assert answer(people, "list_absences", day="2026-03-07")["total"] == 0
    assert answer(people, "list_absences", day="2026-03-10")["total"] == 0


def test_allowance_cannot_go_below_what_is_used(people: RunningService) -> None:
    clear_leave(people)
    person = team(people)[0]
    asked = {"kind": "annual", "first_day": "2026-03-02", "last_day": "2026-03-04"}
    answer(people, "request_leave", employee_id=person["id"], **asked)
    allowance = {"employee_id": person["id"], "kind": "annual", "year": 2026}

    assert refusal(people, "set_leave_allowance", **allowance, days="2.5") == "failed_precondition"
    assert answer(people, "set_leave_allowance", **allowance, days="3.0")["remaining"] == "0.0"


@pytest.mark.parametrize(
    ("started_on", "expected"),
    [
        (date(2026, 1, 1), "26.0"),
        (date(2026, 2, 15), "24.0"),  # 26 * 11 / 12 = 23.83
        (date(2026, 2, 16), "21.5"),  # 26 * 10 / 12 = 21.67
        (date(2026, 10, 1), "6.5"),
        (date(2026, 12, 16), "0.0"),
    ],
)
def test_first_years_allowance_is_a_share(started_on: date, expected: str) -> None:
    assert str(prorated(26, started_on)) == expected


@given(quarters=st.integers(0, 2000))
def test_half_days_are_rounded_half_up(quarters: int) -> None:
    days = Decimal(quarters) / 4

    assert half_days(days) - days in (Decimal(0), Decimal("0.25"))
