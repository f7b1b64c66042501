"""What all tools of the HR directory share: who is who, who is above whom, and how working days are counted."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Final

from compoworld_core.library.hr.people_rows import (
    CompanyHoliday,
    Department,
    DepartmentOverview,
    Employee,
    EmployeeProfile,
    LeaveAllowance,
    LeaveBalance,
    PeopleState,
)
from compoworld_core.services.sdk import FailedPrecondition, InvalidArguments, LimitExceeded, NotFound, Service

HALF: Final = Decimal("0.5")
NONE: Final = Decimal("0.0")
MAX_LEAVE_SPAN_DAYS: Final = 366
YEARLY_DAYS: Final[tuple[tuple[str, int], ...]] = (("annual", 26), ("training", 5))
"""Working days of leave that somebody has who works here for the whole year."""


def half_days(days: Decimal) -> Decimal:
    """Days rounded half up to half days."""
    return (days * 2).quantize(Decimal(1), rounding=ROUND_HALF_UP) / 2 + NONE


def prorated(days: int, started_on: date) -> Decimal:
    """A yearly allowance of somebody who starts within the year; a month counts if they start by its fifteenth."""
    months = 12 - started_on.month + (1 if started_on.day <= 15 else 0)
    return half_days(Decimal(days) * months / 12)


class PeopleDesk(Service[PeopleState]):
    """Base of the HR directory's tools."""

    # Employees

    def profile(self, employee: Employee) -> EmployeeProfile:
        """The employee as tools show them."""
        department = self.state.departments.get(employee.department_id)
        fields = {name: getattr(employee, name) for name in Employee.model_fields}
        return EmployeeProfile(**fields, department=department.name, cost_centre=department.cost_centre)

    def employed(self, employee_id: str) -> Employee:
        """The employee, who must be onboarding or active."""
        employee = self.state.employees.get(employee_id)
        if employee.status not in ("onboarding", "active"):
            raise FailedPrecondition(f"{employee.name} ({employee_id}) is {employee.status}")
        return employee

    def colleague(self, email: str) -> Employee:
        """The employee with an e-mail address, who must be onboarding or active."""
        employee = self.state.employees.first(email=email.lower())
        if employee is None:
            raise NotFound(f"no employee has the e-mail address {email!r}")
        return self.employed(employee.id)

    def manager_of(self, employee: Employee) -> Employee | None:
        """The employee's manager, or None at the top."""
        return None if employee.manager_email is None else self.state.employees.first(email=employee.manager_email)

    def managers_above(self, employee: Employee) -> Iterator[Employee]:
        """The managers above an employee, nearest first."""
        seen = {employee.id}
        manager = self.manager_of(employee)
        while manager is not None and manager.id not in seen:
            seen.add(manager.id)
            yield manager
            manager = self.manager_of(manager)

    def reports_of(self, employee: Employee) -> tuple[Employee, ...]:
        """The people whose manager the employee is, less those who left."""
        return self.state.employees.where(lambda row: row.status != "left", manager_email=employee.email)

    def new_manager(self, employee: Employee, manager_email: str) -> Employee:
        """The colleague who is to manage the employee, once it is known that this makes no circle."""
        manager = self.colleague(manager_email)
        if manager.id == employee.id:
            raise FailedPrecondition(f"{employee.name} can't be their own manager")
        if any(above.id == employee.id for above in self.managers_above(manager)):
            raise FailedPrecondition(f"{manager.name} reports to {employee.name}, directly or through others")
        return manager

    # Departments

    def overview(self, department: Department) -> DepartmentOverview:
        """The department as tools show it."""
        members = len(self.members_of(department.id))
        fields = {name: getattr(department, name) for name in Department.model_fields}
        return DepartmentOverview(**fields, members=members, vacancies=max(department.headcount_limit - members, 0))

    def members_of(self, department_id: str) -> tuple[Employee, ...]:
        """The people of a department, less those who left."""
        return self.state.employees.where(lambda row: row.status != "left", department_id=department_id)

    def department_with_room(self, department_id: str) -> Department:
        """The department, which must have a place that is neither taken nor promised to a scheduled transfer."""
        department = self.state.departments.get(department_id)
        expected = self.state.job_changes.where(new_department_id=department_id, status="scheduled")
        places = department.headcount_limit - len(self.members_of(department_id)) - len(expected)
        if places < 1:
            raise LimitExceeded(f"{department.name} has no vacancy: its limit is {department.headcount_limit} people")
        return department

    def headed_by(self, employee: Employee) -> Department | None:
        """The department that the employee heads, or None."""
        return self.state.departments.first(head_email=employee.email)

    # Leave

    def holidays_within(self, first_day: date, last_day: date) -> tuple[CompanyHoliday, ...]:
        """The company's holidays from the first to the last day, in their order."""
        rows = self.state.holidays.where(lambda row: first_day <= row.day <= last_day)
        return tuple(sorted(rows, key=lambda row: row.day))

    def is_working_day(self, day: date) -> bool:
        """Whether it is neither a weekend nor a holiday."""
        return day.weekday() < 5 and self.state.holidays.first(day=day) is None

    def working_days(
        self, first_day: date, last_day: date, starts_at_noon: bool = False, ends_at_noon: bool = False
    ) -> Decimal:
        """Working days from the first to the last day, both included, less a half where one starts or ends at noon.

        Raises:
            InvalidArguments: The days are in the wrong order, in two years, or leave nothing of the only day.
            FailedPrecondition: There is no working day among them, or a day to be halved is none.
        """
        if last_day < first_day:
            raise InvalidArguments(f"last_day: {last_day} is before {first_day}")
        if last_day.year != first_day.year:
            raise InvalidArguments("last_day: leave over the turn of the year is asked for in two requests")
        if first_day == last_day and starts_at_noon and ends_at_noon:
            raise InvalidArguments("ends_at_noon: leave that starts and ends at the same noon is no leave")
        holidays = {row.day for row in self.holidays_within(first_day, last_day)}
        working = [
            day
            for day in (first_day + timedelta(days=number) for number in range((last_day - first_day).days + 1))
            if day.weekday() < 5 and day not in holidays
        ]
        if not working:
            raise FailedPrecondition(f"there is no working day from {first_day} to {last_day}")
        for name, wanted, day in (("starts", starts_at_noon, first_day), ("ends", ends_at_noon, last_day)):
            if wanted and day not in working:
                raise FailedPrecondition(f"{name}_at_noon: {day} is not a working day")
        return len(working) - HALF * (starts_at_noon + ends_at_noon) + NONE

    def balance(self, allowance: LeaveAllowance) -> LeaveBalance:
        """What is left of an allowance."""
        used = {"approved": NONE, "pending": NONE}
        for request in self.state.leave_requests.where(employee_id=allowance.employee_id, kind=allowance.kind):
            if request.first_day.year == allowance.year and request.status in used:
                used[request.status] += request.working_days
        fields = {name: getattr(allowance, name) for name in LeaveAllowance.model_fields}
        return LeaveBalance(
            **fields,
            taken=used["approved"],
            pending=used["pending"],
            remaining=allowance.days - used["approved"] - used["pending"],
        )
