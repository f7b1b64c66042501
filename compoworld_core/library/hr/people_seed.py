"""The staff that a new world starts with: a company that has been running for years, with things left to decide."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta
from typing import TYPE_CHECKING, Final, get_args

from compoworld_core.library.hr.people_careers import open_checklist
from compoworld_core.library.hr.people_desk import HALF, NONE, YEARLY_DAYS, prorated
from compoworld_core.library.hr.people_rows import (
    ChecklistKind,
    Department,
    Employee,
    LeaveKind,
    LeaveStatus,
    PeopleState,
    Skill,
)

if TYPE_CHECKING:
    from compoworld_core.services.universe import Person, Universe

_SKILLS: Final[tuple[str, ...]] = get_args(get_args(Skill)[0])
_NOTES: Final = (
    "Family visit abroad.",
    "",
    "Moving house.",
    "Course in the next town; back in the office the day after.",
    "",
    "Agreed with the team in advance.",
    "School holidays.",
)
_REFUSALS: Final = ("Two colleagues are away that week already.", "The audit falls on these days.")
_PROMOTIONS: Final = ("Senior", "Lead", "Deputy")
_REASONS: Final = ("Takes over the northern region.", "Agreed in the yearly review.", "At their own request.")
_FIXED_HOLIDAYS: Final = (
    (1, 1, "New Year's Day"),
    (5, 1, "Labour Day"),
    (12, 24, "Christmas Eve"),
    (12, 25, "Christmas Day"),
    (12, 26, "Boxing Day"),
)


def seed_people(state: PeopleState, universe: Universe, rng: random.Random, start: datetime) -> None:
    """Fill an empty directory.

    One colleague runs the company and has no manager. The user heads a department, and manages at least three people.
    """
    today = start.date()
    seed = _Seed(state, rng, start, universe.user.email)
    for year in range(today.year - 1, today.year + 2):
        seed.add_holidays(year)
    departments = seed.add_departments(universe.staff)
    for person, manager in _org_chart(universe, departments):
        seed.add_employee(person, manager, departments[person.department].id)
    for department in departments.values():
        room = rng.choice((0, 1, 2, 3))
        state.departments.update(department.id, headcount_limit=len(_in(state, department)) + room)
    seed.add_movements()
    for employee in tuple(state.employees):
        seed.add_allowances(employee)
        seed.add_leave(employee)
    seed.add_job_changes(tuple(departments.values()))


def _in(state: PeopleState, department: Department) -> tuple[Employee, ...]:
    return state.employees.where(department_id=department.id)


def _org_chart(universe: Universe, departments: dict[str, Department]) -> list[tuple[Person, str | None]]:
    """Everybody with the address of their manager, managers before those whom they manage."""
    user = universe.user
    heads = {department.head_email for department in departments.values()}
    chief = next(
        (person for person in universe.staff if person.email in heads and person.email != user.email),
        next((person for person in universe.staff if person.email != user.email), user),
    )
    chart: list[tuple[Person, str | None]] = [(chief, None)]
    if chief is not user:
        chart.append((user, chief.email))
    members = [person for person in universe.staff if person not in (chief, user)]
    direct = [person for person in members if person.department == user.department]
    others = [person for person in members if person.department != user.department]
    lone = [person for person in others if person.email not in heads]
    while len(direct) < 3 and lone:  # a small department lends its head some people of others
        direct.append(lone.pop())
    managed = {person.email for person in direct}
    chart += [(person, chief.email) for person in members if person.email in heads and person.email not in managed]
    chart += [(person, user.email) for person in direct]
    chart += [
        (person, departments[person.department].head_email)
        for person in others
        if person.email not in heads and person.email not in managed
    ]
    return chart


def _easter(year: int) -> date:
    """Easter Sunday by the Gregorian computus (Meeus, Astronomical Algorithms, chapter 8)."""
    a, (b, c) = year % 19, divmod(year, 100)
    d, e = divmod(b, 4)
    h = (19 * a + b - d - (b - (b + 8) // 25 + 1) // 3 + 15) % 30
    i, k = divmod(c, 4)
    weekday = (32 + 2 * e + 2 * i - h - k) % 7
    m = (a + 11 * h + 22 * weekday) // 451
    month, day = divmod(h + weekday - 7 * m + 114, 31)
    return date(year, month, day + 1)


class _Seed:
    """Adds believable rows."""

    def __init__(self, state: PeopleState, rng: random.Random, start: datetime, user: str) -> None:
        self.state, self.rng, self.start, self.today, self.user = state, rng, start, start.date(), user

    def add_holidays(self, year: int) -> None:
        easter = _easter(year)
        movable = ((-2, "Good Friday"), (1, "Easter Monday"), (39, "Ascension Day"), (50, "Whit Monday"))
        days = {easter + timedelta(days=offset): name for offset, name in movable}
        days = {**{date(year, month, day): name for month, day, name in _FIXED_HOLIDAYS}, **days}
        for day in sorted(days):
            self.state.holidays.insert(day=day, name=days[day])

    def add_departments(self, staff: tuple[Person, ...]) -> dict[str, Department]:
        """The departments of the staff; the first of each one's staff heads it, and the user is the first of all."""
        heads: dict[str, str] = {}
        for person in staff:
            heads.setdefault(person.department, person.email)
        return {
            name: self.state.departments.insert(
                name=name, head_email=heads[name], cost_centre=f"CC-{410 + 10 * place}", headcount_limit=0
            )
            for place, name in enumerate(sorted(heads))
        }

    def add_employee(self, person: Person, manager: str | None, department_id: str) -> None:
        rng = self.rng
        self.state.employees.insert(
            name=person.name,
            email=person.email,
            username=person.username,
            department_id=department_id,
            job_title=person.role,
            manager_email=manager,
            office=person.city,
            phone=person.phone,
            started_on=self.today - timedelta(days=rng.randint(60, 3600)),
            skills=tuple(sorted(rng.sample(_SKILLS, rng.randint(2, 4)))),
        )

    # Coming and going

    def add_movements(self) -> None:
        """Some people who have just come, or are about to go, one of each with nothing left to do."""
        heads = {department.head_email for department in self.state.departments}
        managers = {row.manager_email for row in self.state.employees}
        free = [row for row in self.state.employees if row.email not in heads | managers and row.email != self.user]
        self.rng.shuffle(free)
        free.sort(key=lambda row: row.manager_email == self.user)  # the user's own people rather stay
        movable = free[: max(3, len(free) // 12)]
        for place, employee in enumerate(movable):
            kind: ChecklistKind = "offboarding" if place % 2 else "onboarding"
            is_through = place % 4 < 2
            if kind == "onboarding":
                started = self.today - timedelta(days=self.rng.randint(5, 25))
                self.state.employees.update(employee.id, status="onboarding", started_on=started)
                due = started + timedelta(days=30)
            else:
                due = self.today + timedelta(days=-self.rng.randint(1, 3) if is_through else self.rng.randint(12, 40))
                self.state.employees.update(employee.id, status="leaving", ended_on=due)
            self._add_checklist(employee, kind, due, is_through)
        for employee in free[len(movable) : len(movable) + 3]:
            due = employee.started_on + timedelta(days=30)
            checklist = self._add_checklist(employee, "onboarding", due, is_through=True)
            self.state.checklists.update(checklist, status="closed", closed_on=due)

    def _add_checklist(self, employee: Employee, kind: ChecklistKind, due: date, is_through: bool) -> str:
        owner = employee.manager_email or self.user
        checklist = open_checklist(self.state, employee, kind, due, owner)
        items = self.state.checklist_items.where(checklist_id=checklist.id)
        for item in items if is_through else items[: self.rng.randint(0, 2)]:
            done = min(due, self.today) - timedelta(days=self.rng.randint(0, 3))
            self.state.checklist_items.update(item.id, is_done=True, done_on=done, done_by_email=owner)
        return checklist.id

    def add_job_changes(self, departments: tuple[Department, ...]) -> None:
        """Past and scheduled changes; a scheduled transfer only to where there is room."""
        heads = {department.head_email for department in departments}
        active = self.state.employees.where(
            lambda row: row.status == "active" and row.email not in heads and row.email != self.user
        )
        chosen = self.rng.sample(active, min(len(active), max(4, len(active) // 10)))
        for place, employee in enumerate(chosen):
            is_past = place % 2 == 0
            offset = -self.rng.randint(60, 400) if is_past else self.rng.randint(5, 45)
            day = max(self.today + timedelta(days=offset), employee.started_on)
            target = next((item for item in departments if self._has_room(item, employee)), None)
            details: dict[str, object] = {"kind": "promotion", "new_job_title": employee.job_title}
            if not is_past and target is not None and place % 4 == 1:
                details = {"kind": "transfer", "new_department_id": target.id, "new_manager_email": target.head_email}
            elif not is_past:
                details["new_job_title"] = f"{self.rng.choice(_PROMOTIONS)} {employee.job_title}"
            self.state.job_changes.insert(
                employee_id=employee.id,
                employee_email=employee.email,
                effective_on=day,
                status=self.rng.choice(("applied", "applied", "cancelled")) if is_past else "scheduled",
                reason=self.rng.choice(_REASONS),
                requested_by_email=employee.manager_email or self.user,
                **details,
            )

    def _has_room(self, department: Department, employee: Employee) -> bool:
        current = self.state.departments.get(department.id)
        expected = self.state.job_changes.where(new_department_id=department.id, status="scheduled")
        return (
            department.id != employee.department_id
            and department.head_email != employee.email
            and len(_in(self.state, department)) + len(expected) < current.headcount_limit
        )

    # Leave

    def add_allowances(self, employee: Employee) -> None:
        """The leave that somebody may take this year and next."""
        for year in (self.today.year, self.today.year + 1):
            for kind, days in YEARLY_DAYS:
                started = employee.started_on if employee.started_on.year == year else date(year, 1, 1)
                self.state.leave_allowances.insert(
                    employee_id=employee.id, year=year, kind=kind, days=prorated(days, started)
                )

    def add_leave(self, employee: Employee) -> None:
        """Leave behind and ahead of somebody; those who report to the user have more to decide on."""
        if employee.status == "leaving":
            return
        rng = self.rng
        is_ours = employee.manager_email == self.user
        if rng.random() < 0.5:
            self._leave(employee, "sick", -rng.randint(8, 20), rng.randint(0, 2), "approved")
        if rng.random() < 0.4:
            self._leave(employee, rng.choice(("annual", "annual", "unpaid")), -1, rng.randint(2, 6), "approved")
        asked: LeaveStatus = "pending" if employee.manager_email else "approved"
        if is_ours or rng.random() < 0.35:
            self._leave(employee, "annual", rng.randint(8, 20), rng.randint(0, 9), asked)
        if is_ours or rng.random() < 0.2:
            self._leave(employee, rng.choice(("training", "unpaid", "annual")), rng.randint(32, 40), 1, asked)
        if rng.random() < 0.4:
            self._leave(employee, "annual", rng.randint(44, 60), rng.randint(1, 6), "approved")
        if rng.random() < 0.2:
            self._leave(employee, "annual", rng.randint(70, 90), 3, rng.choice(("rejected", "cancelled")))

    def _leave(self, employee: Employee, kind: LeaveKind, offset: int, length: int, status: LeaveStatus) -> None:
        first = self.today + timedelta(days=offset)
        while first.weekday() > 4:
            first += timedelta(days=1)
        last = first + timedelta(days=length)
        holidays = {row.day for row in self.state.holidays}
        span = [first + timedelta(days=number) for number in range(length + 1)]
        working = [day for day in span if day.weekday() < 5 and day not in holidays]
        if not working or first.year != last.year or first < employee.started_on:
            return
        is_half = working[0] == first and self.rng.random() < 0.25
        allowance = self.state.leave_allowances.first(employee_id=employee.id, year=first.year, kind=kind)
        earlier = self.state.leave_requests.where(employee_id=employee.id, kind=kind)
        if allowance is not None and sum(row.working_days for row in earlier) + len(working) > allowance.days:
            return
        asked = min(self.start, datetime.combine(first, self.start.timetz())) - timedelta(
            days=self.rng.randint(1, 15), minutes=15 * self.rng.randint(0, 20)
        )
        decided = status in ("approved", "rejected") and kind != "sick" and employee.manager_email is not None
        self.state.leave_requests.insert(
            employee_id=employee.id,
            employee_email=employee.email,
            kind=kind,
            first_day=first,
            last_day=last,
            starts_at_noon=is_half,
            working_days=len(working) - HALF * is_half + NONE,
            status=status,
            note="" if kind == "sick" else self.rng.choice(_NOTES),
            requested_at=asked,
            decided_by_email=employee.manager_email if decided else None,
            decision_note=self.rng.choice(_REFUSALS) if status == "rejected" else "",
        )
