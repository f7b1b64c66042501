"""Leave: asked for by anybody, decided on by the manager, counted in working days and halves of them."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Final

from compoworld_core.library.filters import given
from compoworld_core.library.hr.people_desk import NONE, PeopleDesk
from compoworld_core.library.hr.people_rows import (
    Absence,
    CompanyHoliday,
    CountedKind,
    DepartmentId,
    Employee,
    EmployeeId,
    LeaveBalance,
    LeaveDays,
    LeaveKind,
    LeavePreview,
    LeaveRequest,
    LeaveRequestId,
    LeaveStatus,
    LeaveYear,
    Reason,
)
from compoworld_core.services.sdk import (
    Cursor,
    Day,
    Email,
    FailedPrecondition,
    Limit,
    LimitExceeded,
    Page,
    PermissionDenied,
    Text,
    paginate,
    tool,
)

SICK_DAYS_BACK: Final = 30
"""Days within which sick leave can still be reported."""


class Leave(PeopleDesk):
    """Tools on leave, absences, allowances and holidays."""

    @tool(effect="read")
    def list_leave_requests(
        self,
        employee_id: EmployeeId | None = None,
        manager_email: Email | None = None,
        kind: LeaveKind | None = None,
        status: LeaveStatus | None = None,
        from_day: Day | None = None,
        to_day: Day | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[LeaveRequest]:
        """List leave requests that satisfy all given filters, the earliest first day first.

        Args:
            employee_id: Only requests of this employee.
            manager_email: Only requests of people who report directly to the employee with this address.
            kind: Only this kind of leave.
            status: Only requests with this status.
            from_day: Only leave that ends on this day or later.
            to_day: Only leave that starts on this day or earlier.
            limit: Most requests to return.
            cursor: `next_cursor` of the previous page.
        """
        if employee_id is not None:
            self.state.employees.get(employee_id)
        team: frozenset[str] | None = None
        if manager_email is not None:
            team = frozenset(row.id for row in self.state.employees.where(manager_email=manager_email.lower()))
        rows = self.state.leave_requests.where(
            lambda row: (
                (from_day is None or row.last_day >= from_day)
                and (to_day is None or row.first_day <= to_day)
                and (team is None or row.employee_id in team)
            ),
            **given(employee_id=employee_id, kind=kind, status=status),
        )
        return paginate(sorted(rows, key=lambda row: row.first_day), limit, cursor)

    @tool(effect="read")
    def get_leave_request(self, leave_request_id: LeaveRequestId) -> LeaveRequest:
        """Get a leave request.

        Args:
            leave_request_id: The request.
        """
        return self.state.leave_requests.get(leave_request_id)

    @tool(effect="read")
    def preview_leave(
        self,
        employee_id: EmployeeId,
        first_day: Day,
        last_day: Day | None = None,
        kind: LeaveKind = "annual",
        starts_at_noon: bool = False,
        ends_at_noon: bool = False,
    ) -> LeavePreview:
        """Work out how many working days a leave would take, what would be left, and what it would overlap with.

        Args:
            employee_id: The employee.
            first_day: First day of the leave.
            last_day: Last day of the leave, in the same year; the first day, if left out.
            kind: Kind of leave.
            starts_at_noon: Whether the morning of the first day is worked.
            ends_at_noon: Whether the afternoon of the last day is worked.
        """
        self.state.employees.get(employee_id)
        last_day = last_day or first_day
        days = self.working_days(first_day, last_day, starts_at_noon, ends_at_noon)
        allowance = self.state.leave_allowances.first(employee_id=employee_id, year=first_day.year, kind=kind)
        remaining = None if allowance is None else self.balance(allowance).remaining
        holidays = self.holidays_within(first_day, last_day)
        return LeavePreview(
            employee_id=employee_id,
            kind=kind,
            working_days=days,
            holidays=holidays,
            remaining_before=remaining,
            remaining_after=None if remaining is None else remaining - days,
            overlapping=tuple(row.id for row in self._overlapping(employee_id, first_day, last_day)),
        )

    @tool(effect="write")
    def request_leave(
        self,
        employee_id: EmployeeId,
        kind: LeaveKind,
        first_day: Day,
        last_day: Day,
        starts_at_noon: bool = False,
        ends_at_noon: bool = False,
        note: Text = "",
    ) -> LeaveRequest:
        """Ask for leave for yourself or a colleague. Weekends and company holidays in it do not count.

        The leave may not overlap with another that is pending or approved, and annual and training leave must be left
        of the year's allowance. The manager decides; sick leave is approved at once, and so is any leave of the one
        employee who has no manager.

        Args:
            employee_id: Who wants to be away; onboarding or active.
            kind: Kind of leave.
            first_day: First day, today or later; sick leave may have started up to 30 days ago.
            last_day: Last day, in the same year.
            starts_at_noon: Whether the morning of the first day is worked.
            ends_at_noon: Whether the afternoon of the last day is worked.
            note: What the manager should know.
        """
        employee = self.employed(employee_id)
        days = self._checked(employee, kind, first_day, last_day, starts_at_noon, ends_at_noon)
        is_settled = kind == "sick" or employee.manager_email is None
        return self.state.leave_requests.insert(
            employee_id=employee_id,
            employee_email=employee.email,
            kind=kind,
            first_day=first_day,
            last_day=last_day,
            starts_at_noon=starts_at_noon,
            ends_at_noon=ends_at_noon,
            working_days=days,
            status="approved" if is_settled else "pending",
            note=note,
            requested_at=self.now,
        )

    @tool(effect="write")
    def reschedule_leave(self, leave_request_id: LeaveRequestId, first_day: Day) -> LeaveRequest:
        """Let a pending leave start on another day. It keeps its number of working days, so its last day moves along.

        The conditions of a new request hold for the new days too.

        Args:
            leave_request_id: The request.
            first_day: New first day, which must be a working day.
        """
        request = self._pending(leave_request_id)
        employee = self.employed(request.employee_id)
        if first_day == request.first_day:
            raise FailedPrecondition(f"{leave_request_id} starts on {first_day} already")
        if not self.is_working_day(first_day):
            raise FailedPrecondition(f"first_day: {first_day} is not a working day")
        full_days = int(self.working_days(request.first_day, request.last_day))
        last_day = self._nth_working_day(first_day, full_days)
        days = self._checked(
            employee, request.kind, first_day, last_day, request.starts_at_noon, request.ends_at_noon, instead=request
        )
        return self.state.leave_requests.update(
            leave_request_id, first_day=first_day, last_day=last_day, working_days=days
        )

    @tool(effect="write")
    def approve_leave_request(self, leave_request_id: LeaveRequestId, note: Text = "") -> LeaveRequest:
        """Approve a pending request of somebody who reports directly to you.

        Args:
            leave_request_id: The request.
            note: Something to tell the employee.
        """
        return self._decide(leave_request_id, "approved", note)

    @tool(effect="write")
    def reject_leave_request(self, leave_request_id: LeaveRequestId, reason: Reason) -> LeaveRequest:
        """Reject a pending request of somebody who reports directly to you.

        Args:
            leave_request_id: The request.
            reason: Why, for the employee.
        """
        return self._decide(leave_request_id, "rejected", reason)

    @tool(effect="write")
    def cancel_leave_request(self, leave_request_id: LeaveRequestId) -> LeaveRequest:
        """Call off leave: a pending request at any time, approved leave until the day before it starts.

        Args:
            leave_request_id: The request.
        """
        request = self.state.leave_requests.get(leave_request_id)
        if request.status not in ("pending", "approved"):
            raise FailedPrecondition(f"{leave_request_id} is {request.status} already")
        if request.status == "approved" and request.first_day <= self.today:
            raise FailedPrecondition(f"{leave_request_id} started on {request.first_day}; today is {self.today}")
        return self.state.leave_requests.update(leave_request_id, status="cancelled")

    @tool(effect="read")
    def list_absences(
        self,
        day: Day,
        department_id: DepartmentId | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Absence]:
        """List who is away on a day because of approved leave, in alphabetical order of their names.

        On weekends and company holidays nobody works, so nobody is listed.

        Args:
            day: The day.
            department_id: Only people of this department.
            limit: Most absences to return.
            cursor: `next_cursor` of the previous page.
        """
        if department_id is not None:
            self.state.departments.get(department_id)
        found = []
        if self.is_working_day(day):
            for leave in self.state.leave_requests.where(
                lambda row: row.first_day <= day <= row.last_day, status="approved"
            ):
                employee = self.state.employees.get(leave.employee_id)
                if department_id in (None, employee.department_id):
                    found.append(self._absence(leave, employee, day))
        return paginate(sorted(found, key=lambda row: row.employee_name.casefold()), limit, cursor)

    @tool(effect="read")
    def list_leave_balances(
        self,
        employee_id: EmployeeId | None = None,
        year: LeaveYear | None = None,
        kind: CountedKind | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[LeaveBalance]:
        """List yearly allowances of leave and what is left of them, in the order in which they were granted.

        Args:
            employee_id: Only allowances of this employee.
            year: Only allowances of this year.
            kind: Only allowances of this kind of leave.
            limit: Most balances to return.
            cursor: `next_cursor` of the previous page.
        """
        if employee_id is not None:
            self.state.employees.get(employee_id)
        rows = self.state.leave_allowances.where(**given(employee_id=employee_id, year=year, kind=kind))
        return paginate([self.balance(row) for row in rows], limit, cursor)

    @tool(effect="write")
    def set_leave_allowance(
        self, employee_id: EmployeeId, kind: CountedKind, year: LeaveYear, days: LeaveDays
    ) -> LeaveBalance:
        """Set how many working days of leave an employee may take in a year.

        Args:
            employee_id: The employee, who must be onboarding or active.
            kind: Kind of leave.
            year: The year.
            days: Working days in all, in halves; not fewer than are taken or asked for already.
        """
        self.employed(employee_id)
        found = self.state.leave_allowances.first(employee_id=employee_id, year=year, kind=kind)
        if found is None:
            found = self.state.leave_allowances.insert(employee_id=employee_id, year=year, kind=kind, days=days + NONE)
        elif found.days == days:
            raise FailedPrecondition(f"the allowance is {days} days already")
        else:
            found = self.state.leave_allowances.update(found.id, days=days + NONE)
        balance = self.balance(found)
        if balance.remaining < 0:
            raise FailedPrecondition(f"{balance.taken + balance.pending} days are taken or asked for already")
        return balance

    @tool(effect="read")
    def list_company_holidays(
        self,
        from_day: Day | None = None,
        to_day: Day | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[CompanyHoliday]:
        """List the days on which the company is closed, the earliest first.

        Args:
            from_day: Only holidays on this day or later.
            to_day: Only holidays on this day or earlier.
            limit: Most holidays to return.
            cursor: `next_cursor` of the previous page.
        """
        rows = self.state.holidays.where(
            lambda row: (from_day is None or row.day >= from_day) and (to_day is None or row.day <= to_day)
        )
        return paginate(sorted(rows, key=lambda row: row.day), limit, cursor)

    # Inner workings

    def _nth_working_day(self, first_day: date, count: int) -> date:
        """The last of so many working days, counted from one of them; at the latest the last day of its year."""
        day = first_day
        while count > 1 and (day.month, day.day) != (12, 31):
            day += timedelta(days=1)
            count -= self.is_working_day(day)
        if count > 1:
            raise FailedPrecondition(f"first_day: from {first_day} the leave would run into the next year")
        return day

    def _overlapping(self, employee_id: str, first_day: date, last_day: date) -> tuple[LeaveRequest, ...]:
        return self.state.leave_requests.where(
            lambda row: (
                row.status in ("pending", "approved") and row.first_day <= last_day and first_day <= row.last_day
            ),
            employee_id=employee_id,
        )

    def _checked(
        self,
        employee: Employee,
        kind: LeaveKind,
        first_day: date,
        last_day: date,
        starts_at_noon: bool,
        ends_at_noon: bool,
        instead: LeaveRequest | None = None,
    ) -> LeaveDays:
        """Working days of leave that may be taken; `instead` is the request that it would replace."""
        days = self.working_days(first_day, last_day, starts_at_noon, ends_at_noon)
        earliest = self.today - timedelta(days=SICK_DAYS_BACK if kind == "sick" else 0)
        if first_day < earliest:
            raise FailedPrecondition(f"first_day: {kind} leave can't start before {earliest}")
        if first_day < employee.started_on:
            raise FailedPrecondition(f"first_day: {employee.name} starts work on {employee.started_on}")
        for other in self._overlapping(employee.id, first_day, last_day):
            if instead is None or other.id != instead.id:
                raise FailedPrecondition(
                    f"it overlaps with {other.id}, {other.status}, from {other.first_day} to {other.last_day}"
                )
        if kind in ("annual", "training"):
            allowance = self.state.leave_allowances.first(employee_id=employee.id, year=first_day.year, kind=kind)
            remaining = NONE if allowance is None else self.balance(allowance).remaining
            if instead is not None and instead.first_day.year == first_day.year:
                remaining += instead.working_days
            if days > remaining:
                raise LimitExceeded(
                    f"{days} working days are more than the {remaining} days of {kind} leave left in {first_day.year}"
                )
        return days

    def _pending(self, leave_request_id: str) -> LeaveRequest:
        request = self.state.leave_requests.get(leave_request_id)
        if request.status != "pending":
            raise FailedPrecondition(f"{leave_request_id} is {request.status}, not pending")
        return request

    def _decide(self, leave_request_id: str, status: LeaveStatus, note: str) -> LeaveRequest:
        request = self._pending(leave_request_id)
        manager = self.state.employees.get(request.employee_id).manager_email
        if manager != self.user.email:
            raise PermissionDenied(f"only {manager}, the employee's manager, decides on {leave_request_id}")
        return self.state.leave_requests.update(
            leave_request_id, status=status, decided_by_email=self.user.email, decision_note=note
        )

    def _absence(self, leave: LeaveRequest, employee: Employee, day: date) -> Absence:
        is_half = (leave.starts_at_noon and day == leave.first_day) or (leave.ends_at_noon and day == leave.last_day)
        return Absence(
            id=leave.id,
            employee_id=employee.id,
            employee_name=employee.name,
            employee_email=employee.email,
            department=self.state.departments.get(employee.department_id).name,
            kind=leave.kind,
            first_day=leave.first_day,
            last_day=leave.last_day,
            is_half_day=is_half,
        )
