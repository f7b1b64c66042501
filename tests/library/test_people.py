"""The HR directory's own promises: no circles in the org chart, job changes by the day, checklists that count."""

from __future__ import annotations

import random
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compoworld_core.services.running import RunningService
from tests.library.conformance import UNIVERSE, answer, draw, fresh, plant, refusal, rows, start
from tests.library.staff import USER, alter, by_email, chain_of, clear_job_changes, clear_leave, day, hire, team


@pytest.fixture
def people() -> RunningService:
    return fresh("people")


# Start state


def test_all_staff_are_in_the_directory_with_their_departments(people: RunningService) -> None:
    for person in UNIVERSE.staff:
        employee = by_email(people, person.email.upper())
        assert (employee["name"], employee["username"], employee["department"]) == (
            person.name,
            person.username,
            person.department,
        )


@pytest.mark.parametrize("seed", range(6))
def test_everybody_reports_to_one_chief_and_the_user_manages_somebody(seed: int) -> None:
    running = start("people", seed)

    chiefs = [row for row in rows(running.state)["employees"] if row["manager_email"] is None]
    for row in rows(running.state)["employees"]:
        chain = chain_of(running, row["id"])
        assert row["id"] not in chain
        assert [row["id"], *chain][-1] == chiefs[0]["id"]

    assert len(chiefs) == 1
    user = running.context.user.email
    assert chiefs[0]["email"] != user
    assert answer(running, "list_leave_requests", manager_email=user, status="pending")["total"] > 0


@pytest.mark.parametrize("seed", range(6))
def test_start_state_keeps_the_rules_that_tools_keep(seed: int) -> None:
    running = start("people", seed)

    requests = [row for row in rows(running.state)["leave_requests"] if row["status"] in ("pending", "approved")]
    for one in requests:
        for other in requests:
            if one["id"] != other["id"] and one["employee_id"] == other["employee_id"]:
                assert one["last_day"] < other["first_day"] or other["last_day"] < one["first_day"]
    balances = answer(running, "list_leave_balances", limit=200)["items"]
    departments = answer(running, "list_departments")["items"]

    assert all(Decimal(balance["remaining"]) >= 0 for balance in balances)
    assert all(department["members"] <= department["headcount_limit"] for department in departments)


# The directory


def test_people_who_left_are_found_only_when_asked_for(people: RunningService) -> None:
    gone = team(people)[0]
    alter(people, "employees", gone["id"], status="left", ended_on=day(-1))

    assert answer(people, "search_employees", name=gone["name"])["total"] == 0
    assert answer(people, "search_employees", name=gone["name"], status="left")["total"] == 1
    assert gone["id"] not in [row["id"] for row in answer(people, "list_reports", employee_id=gone["id"])["items"]]


def test_search_by_skill_finds_those_who_have_it(people: RunningService) -> None:
    someone = team(people)[0]
    missing = next(
        skill for skill in ("welding", "french", "python", "german", "negotiation") if skill not in someone["skills"]
    )
    before = answer(people, "search_employees", skill=missing)["total"]

    answer(people, "add_employee_skill", employee_id=someone["id"], skill=missing)

    assert answer(people, "search_employees", skill=missing)["total"] == before + 1
    assert refusal(people, "add_employee_skill", employee_id=someone["id"], skill=missing) == "already_exists"
    answer(people, "remove_employee_skill", employee_id=someone["id"], skill=missing)
    assert refusal(people, "remove_employee_skill", employee_id=someone["id"], skill=missing) == "not_found"


def test_indirect_reports_are_everybody_below(people: RunningService) -> None:
    chief = next(row for row in rows(people.state)["employees"] if row["manager_email"] is None)

    everybody = answer(people, "list_reports", employee_id=chief["id"], include_indirect=True)

    assert everybody["total"] == len(UNIVERSE.staff) - 1
    assert answer(people, "list_reports", employee_id=chief["id"])["total"] < everybody["total"]


def test_a_manager_cannot_come_to_report_to_their_own_people(people: RunningService) -> None:
    user = by_email(people, USER)
    report = team(people)[0]

    assert refusal(people, "assign_manager", employee_id=user["id"], manager_email=report["email"]) == (
        "failed_precondition"
    )
    assert refusal(people, "assign_manager", employee_id=user["id"], manager_email=USER) == "failed_precondition"
    outsider = UNIVERSE.contacts[0].email
    assert refusal(people, "assign_manager", employee_id=report["id"], manager_email=outsider) == "not_found"


def test_new_department_head_takes_over_the_team(people: RunningService) -> None:
    user = by_email(people, USER)
    manager = user["manager_email"]
    answer(people, "update_department", department_id=user["department_id"], headcount_limit=20)
    heir, member = hire(people, department_id=user["department_id"], manager_email=USER), None
    member = hire(
        people,
        department_id=user["department_id"],
        manager_email=USER,
        email="m@nordwind.example",
        username="m",
        name="Mo Brand",
    )

    department = answer(
        people, "appoint_department_head", department_id=user["department_id"], head_email=heir["email"]
    )

    assert department["head_email"] == heir["email"]
    assert by_email(people, heir["email"])["manager_email"] == manager
    assert by_email(people, member["email"])["manager_email"] == heir["email"]
    assert by_email(people, USER)["manager_email"] == heir["email"]


def test_department_limit_cannot_go_below_its_members(people: RunningService) -> None:
    department = answer(people, "list_departments")["items"][0]

    too_few = department["members"] - 1
    assert refusal(people, "update_department", department_id=department["id"], headcount_limit=too_few) == (
        "failed_precondition"
    )


@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_org_chart_never_gets_a_circle(seed: int) -> None:
    running = fresh("people")
    rng = random.Random(seed)
    emails = [row["email"] for row in rows(running.state)["employees"]]
    for _ in range(15):
        tool = rng.choice(("assign_manager", "appoint_department_head", "transfer_employee"))
        arguments = draw(running, running.package.tool(tool), rng, optional=0.0) or {}
        for name in ("manager_email", "head_email"):
            if name in arguments:
                arguments[name] = rng.choice(emails)
        if tool == "transfer_employee":
            arguments["effective_on"] = day(0)
        running.call(tool, arguments)

    for row in rows(running.state)["employees"]:
        above = running.state.tables["employees"].get(row["id"])
        seen = set()
        while above.manager_email is not None:
            assert above.email not in seen
            seen.add(above.email)
            above = running.state.tables["employees"].first(email=above.manager_email)


# Careers


def test_new_colleague_becomes_active_once_the_checklist_is_done(people: RunningService) -> None:
    employee = hire(people)
    checklist = answer(people, "list_hr_checklists", employee_id=employee["id"])["items"][0]

    assert employee["status"] == "onboarding"
    assert refusal(people, "close_hr_checklist", checklist_id=checklist["id"]) == "failed_precondition"
    for item in answer(people, "list_hr_checklist_items", checklist_id=checklist["id"])["items"]:
        assert item["owner_email"] == employee["manager_email"]
        answer(people, "complete_hr_checklist_item", item_id=item["id"])
    answer(people, "close_hr_checklist", checklist_id=checklist["id"])

    assert answer(people, "get_employee", employee_id=employee["id"])["status"] == "active"
    assert refusal(people, "add_hr_checklist_item", checklist_id=checklist["id"], title="More") == (
        "failed_precondition"
    )


def test_checklist_is_not_closed_before_the_first_day(people: RunningService) -> None:
    employee = hire(people, starts_on=day(10))
    checklist = answer(people, "list_hr_checklists", employee_id=employee["id"])["items"][0]
    for item in answer(people, "list_hr_checklist_items", checklist_id=checklist["id"])["items"]:
        answer(people, "complete_hr_checklist_item", item_id=item["id"])

    assert refusal(people, "close_hr_checklist", checklist_id=checklist["id"]) == "failed_precondition"


def test_full_department_takes_nobody(people: RunningService) -> None:
    clear_job_changes(people)
    department = answer(people, "list_departments", with_vacancies=True)["items"][0]
    full = department["members"]
    answer(people, "update_department", department_id=department["id"], headcount_limit=full)
    outsider = next(row for row in team(people) if row["department_id"] != department["id"])

    arguments = {"employee_id": outsider["id"], "department_id": department["id"], "effective_on": day(0)}
    assert refusal(people, "transfer_employee", **arguments) == "limit_exceeded"


def test_places_promised_to_scheduled_transfers_are_taken(people: RunningService) -> None:
    home = by_email(people, USER)["department_id"]
    department = next(row for row in answer(people, "list_departments")["items"] if row["id"] != home)
    clear_job_changes(people)
    limit = department["members"] + 1
    if limit != department["headcount_limit"]:
        answer(people, "update_department", department_id=department["id"], headcount_limit=limit)
    first = next(row for row in team(people) if row["department_id"] != department["id"])

    answer(people, "transfer_employee", employee_id=first["id"], department_id=department["id"], effective_on=day(7))

    assert answer(people, "get_employee", employee_id=first["id"])["department_id"] == first["department_id"]
    assert refusal(
        people,
        "hire_employee",
        name="Lena Ahrens",
        email="lena@nordwind.example",
        username="lena",
        department_id=department["id"],
        job_title="Buyer",
        office="Essen",
        starts_on=day(0),
    ) == ("limit_exceeded")


def test_promotion_is_applied_today_or_scheduled(people: RunningService) -> None:
    clear_job_changes(people)
    person = team(people)[0]

    now = answer(people, "promote_employee", employee_id=person["id"], job_title="Head of Q", effective_on=day(0))
    later = answer(people, "promote_employee", employee_id=person["id"], job_title="Chief of Q", effective_on=day(9))

    assert (now["status"], later["status"]) == ("applied", "scheduled")
    assert answer(people, "get_employee", employee_id=person["id"])["job_title"] == "Head of Q"
    again = {"employee_id": person["id"], "job_title": "Director", "effective_on": day(0)}
    assert refusal(people, "promote_employee", **again) == "failed_precondition"
    answer(people, "cancel_job_change", job_change_id=later["id"])
    assert refusal(people, "cancel_job_change", job_change_id=now["id"]) == "failed_precondition"
    assert refusal(people, "promote_employee", **{**again, "effective_on": day(-1)}) == "failed_precondition"


def test_nobody_changes_their_own_job(people: RunningService) -> None:
    own = by_email(people, USER)["id"]

    assert refusal(people, "promote_employee", employee_id=own, job_title="Chief", effective_on=day(0)) == (
        "permission_denied"
    )
    assert refusal(people, "start_offboarding", employee_id=own, last_day=day(30)) == "permission_denied"


def test_leaving_calls_off_later_leave_and_scheduled_changes(people: RunningService) -> None:
    clear_leave(people)
    person = hire(people)
    alter(people, "employees", person["id"], status="active")
    asked = {"employee_id": person["id"], "kind": "unpaid"}
    kept = answer(people, "request_leave", **asked, first_day="2026-03-02", last_day="2026-03-03")
    lost = answer(people, "request_leave", **asked, first_day="2026-04-20", last_day="2026-04-21")
    change = answer(people, "promote_employee", employee_id=person["id"], job_title="Lead", effective_on=day(9))

    leaving = answer(people, "start_offboarding", employee_id=person["id"], last_day="2026-03-31")

    assert (leaving["status"], leaving["ended_on"]) == ("leaving", "2026-03-31")
    assert answer(people, "get_leave_request", leave_request_id=kept["id"])["status"] == "pending"
    assert answer(people, "get_leave_request", leave_request_id=lost["id"])["status"] == "cancelled"
    changes = answer(people, "list_job_changes", employee_id=person["id"])["items"]
    assert [(row["id"], row["status"]) for row in changes] == [(change["id"], "cancelled")]
    assert refusal(people, "start_offboarding", employee_id=person["id"], last_day=day(3)) == "failed_precondition"


def test_last_checklist_ends_the_employment(people: RunningService) -> None:
    person = hire(people)
    alter(people, "employees", person["id"], status="active")
    answer(people, "start_offboarding", employee_id=person["id"], last_day=day(0))
    checklist = answer(people, "list_hr_checklists", employee_id=person["id"], kind="offboarding")["items"][0]
    for item in answer(people, "list_hr_checklist_items", checklist_id=checklist["id"])["items"]:
        answer(people, "complete_hr_checklist_item", item_id=item["id"])

    answer(people, "close_hr_checklist", checklist_id=checklist["id"])

    assert by_email(people, person["email"])["status"] == "left"
    asked = {"kind": "unpaid", "first_day": day(4), "last_day": day(4)}
    assert refusal(people, "request_leave", employee_id=person["id"], **asked) == "failed_precondition"


def test_managers_and_heads_cannot_leave_yet(people: RunningService) -> None:
    head = next(
        row
        for row in answer(people, "list_departments")["items"]
        if row["head_email"] is not None and row["head_email"] != USER
    )["head_email"]

    assert refusal(people, "start_offboarding", employee_id=by_email(people, head)["id"], last_day=day(30)) == (
        "failed_precondition"
    )


def test_planted_employee_is_a_colleague_like_any_other(people: RunningService) -> None:
    like = rows(people.state)["employees"][3]
    twin = {**like, "id": None, "name": "Mona Brandt", "email": "mona.brandt@nordwind.example", "username": "mona"}
    plant(people, "employees", **{**twin, "status": "active", "ended_on": None, "manager_email": USER})

    assert by_email(people, "mona.brandt@nordwind.example")["department_id"] == like["department_id"]
    assert "Mona Brandt" in [row["name"] for row in team(people)]
