"""Careers: how people come, change jobs and go, and the checklists that come with it."""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any, Final, Literal

from compoworld_core.library.filters import given
from compoworld_core.library.hr.people_desk import YEARLY_DAYS, PeopleDesk, prorated
from compoworld_core.library.hr.people_rows import (
    Checklist,
    ChecklistId,
    ChecklistItem,
    ChecklistItemId,
    ChecklistKind,
    ChecklistOverview,
    DepartmentId,
    Employee,
    EmployeeId,
    EmployeeProfile,
    JobChange,
    JobChangeId,
    JobChangeKind,
    JobChangeStatus,
    JobTitle,
    PeopleState,
)
from compoworld_core.services.sdk import (
    City,
    Cursor,
    Day,
    Email,
    FailedPrecondition,
    Limit,
    LimitExceeded,
    Page,
    PermissionDenied,
    PersonName,
    Phone,
    Text,
    Title,
    Username,
    paginate,
    tool,
)

MAX_DAYS_AHEAD: Final = 365
MAX_CHECKLIST_ITEMS: Final = 40
ONBOARDING_DAYS: Final = 30
"""Days after the first one by which an onboarding checklist is due."""

TEMPLATES: Final[tuple[tuple[ChecklistKind, tuple[str, ...]], ...]] = (
    (
        "onboarding",
        (
            "Sign the employment contract",
            "Hand over laptop and badge",
            "Safety briefing on site",
            "First review with the manager",
        ),
    ),
    (
        "offboarding",
        (
            "Hand over running work",
            "Return laptop and badge",
            "Close accounts and access",
            "Exit interview",
        ),
    ),
)


def open_checklist(state: PeopleState, employee: Employee, kind: ChecklistKind, due_on: date, owner: str) -> Checklist:
    """Start the checklist of a kind with its standard items."""
    checklist = state.checklists.insert(employee_id=employee.id, kind=kind, due_on=due_on)
    for title in dict(TEMPLATES)[kind]:
        state.checklist_items.insert(checklist_id=checklist.id, title=title, owner_email=owner)
    return checklist


class Careers(PeopleDesk):
    """Tools on hiring, transfers, promotions and leaving."""

    @tool(effect="write")
    def hire_employee(
        self,
        name: PersonName,
        email: Email,
        username: Username,
        department_id: DepartmentId,
        job_title: JobTitle,
        office: City,
        starts_on: Day,
        manager_email: Email | None = None,
        phone: Phone | None = None,
    ) -> EmployeeProfile:
        """Add a new employee, who is `onboarding` until their onboarding checklist is closed.

        The checklist starts with the standard items, owned by the manager. The leave allowance of the first year is
        its share of the full year, rounded half up to half days; a month counts if they start by its fifteenth.

        Args:
            name: Full name.
            email: Work e-mail address, which no employee has or had.
            username: Username, which no employee has or had.
            department_id: The department, which needs a vacancy.
            job_title: Job title.
            office: City of the office.
            starts_on: First day, from 31 days ago to a year from now.
            manager_email: E-mail address of the manager; the head of the department, if left out.
            phone: Phone number.
        """
        department = self.department_with_room(department_id)
        self._within(starts_on, "starts_on", earliest=self.today - timedelta(days=31))
        manager = self.colleague(manager_email or self._head(department_id))
        employee = self.state.employees.insert(
            name=name,
            email=email.lower(),
            username=username,
            department_id=department.id,
            job_title=job_title,
            manager_email=manager.email,
            office=office,
            phone=phone,
            status="onboarding",
            started_on=starts_on,
        )
        for kind, days in YEARLY_DAYS:
            self.state.leave_allowances.insert(
                employee_id=employee.id, year=starts_on.year, kind=kind, days=prorated(days, starts_on)
            )
        open_checklist(
            self.state, employee, "onboarding", starts_on + timedelta(days=ONBOARDING_DAYS), owner=manager.email
        )
        return self.profile(employee)

    # Job changes

    @tool(effect="read")
    def list_job_changes(
        self,
        employee_id: EmployeeId | None = None,
        kind: JobChangeKind | None = None,
        status: JobChangeStatus | None = None,
        effective_by: Day | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[JobChange]:
        """List transfers and promotions that satisfy all given filters, the latest effective day first.

        Args:
            employee_id: Only changes of this employee.
            kind: Only changes of this kind.
            status: Only changes with this status.
            effective_by: Only changes with effect on this day or earlier.
            limit: Most changes to return.
            cursor: `next_cursor` of the previous page.
        """
        if employee_id is not None:
            self.state.employees.get(employee_id)
        rows = self.state.job_changes.where(
            lambda row: effective_by is None or row.effective_on <= effective_by,
            **given(employee_id=employee_id, kind=kind, status=status),
        )
        return paginate(sorted(rows, key=lambda row: row.effective_on, reverse=True), limit, cursor)

    @tool(effect="write")
    def transfer_employee(
        self,
        employee_id: EmployeeId,
        department_id: DepartmentId,
        effective_on: Day,
        manager_email: Email | None = None,
        job_title: JobTitle | None = None,
        reason: Text = "",
    ) -> JobChange:
        """Move a colleague to another department. With effect today it is applied at once, else it is scheduled.

        The head of a department can only be transferred once somebody else heads it. Nobody changes their own job, and
        an employee has one scheduled change at a time.

        Args:
            employee_id: The employee, who must be onboarding or active.
            department_id: The new department, which needs a vacancy.
            effective_on: First day in the new department, from today to a year from now.
            manager_email: E-mail address of the new manager; the new department's head, if left out.
            job_title: New job title, if it changes.
            reason: Why.
        """
        employee = self._changeable(employee_id, effective_on)
        if employee.department_id == department_id:
            raise FailedPrecondition(f"{employee.name} is in that department already")
        headed = self.headed_by(employee)
        if headed is not None:
            raise FailedPrecondition(f"{employee.name} heads {headed.name}; appoint another head first")
        self.department_with_room(department_id)
        manager = self.new_manager(employee, manager_email or self._head(department_id))
        return self._change_job(
            employee,
            kind="transfer",
            effective_on=effective_on,
            new_department_id=department_id,
            new_manager_email=manager.email,
            new_job_title=job_title,
            reason=reason,
        )

    @tool(effect="write")
    def promote_employee(
        self, employee_id: EmployeeId, job_title: JobTitle, effective_on: Day, reason: Text = ""
    ) -> JobChange:
        """Give a colleague another job title. With effect today it is applied at once, else it is scheduled.

        Nobody changes their own job, and an employee has one scheduled change at a time.

        Args:
            employee_id: The employee, who must be onboarding or active.
            job_title: New job title.
            effective_on: First day with the new title, from today to a year from now.
            reason: Why.
        """
        employee = self._changeable(employee_id, effective_on)
        if employee.job_title == job_title:
            raise FailedPrecondition(f"{employee.name} is {job_title} already")
        return self._change_job(
            employee, kind="promotion", effective_on=effective_on, new_job_title=job_title, reason=reason
        )

    @tool(effect="write")
    def cancel_job_change(self, job_change_id: JobChangeId) -> JobChange:
        """Call off a scheduled transfer or promotion.

        Args:
            job_change_id: The change.
        """
        change = self.state.job_changes.get(job_change_id)
        if change.status != "scheduled":
            raise FailedPrecondition(f"{job_change_id} is {change.status}, not scheduled")
        return self.state.job_changes.update(job_change_id, status="cancelled")

    @tool(effect="write")
    def start_offboarding(self, employee_id: EmployeeId, last_day: Day) -> EmployeeProfile:
        """Record that a colleague leaves, and open their offboarding checklist, owned by their manager.

        People who still have reports, head a department or are not through with their onboarding can't leave yet.
        Scheduled job changes and leave that starts after the last day are called off.

        Args:
            employee_id: The employee, who must be active.
            last_day: Their last day, from today to a year from now.
        """
        employee = self.employed(employee_id)
        self._not_oneself(employee)
        self._within(last_day, "last_day", earliest=self.today)
        if employee.status == "onboarding":
            raise FailedPrecondition(f"{employee.name} is still onboarding; close that checklist first")
        reports = self.reports_of(employee)
        if reports:
            names = ", ".join(row.name for row in reports[:5])
            raise FailedPrecondition(f"{employee.name} still manages {len(reports)} people ({names}); reassign them")
        headed = self.headed_by(employee)
        if headed is not None:
            raise FailedPrecondition(f"{employee.name} heads {headed.name}; appoint another head first")
        for leave in self.state.leave_requests.where(lambda row: row.first_day > last_day, employee_id=employee_id):
            if leave.status in ("pending", "approved"):
                self.state.leave_requests.update(leave.id, status="cancelled")
        for change in self.state.job_changes.where(employee_id=employee_id, status="scheduled"):
            self.state.job_changes.update(change.id, status="cancelled")
        open_checklist(self.state, employee, "offboarding", last_day, owner=employee.manager_email or self.user.email)
        return self.profile(self.state.employees.update(employee_id, status="leaving", ended_on=last_day))

    # Inner workings

    def _within(self, day: date, name: str, earliest: date) -> None:
        latest = self.today + timedelta(days=MAX_DAYS_AHEAD)
        if not earliest <= day <= latest:
            raise FailedPrecondition(f"{name}: {day} is not from {earliest} to {latest}")

    def _not_oneself(self, employee: Employee) -> None:
        if employee.email == self.user.email:
            raise PermissionDenied("nobody changes their own job; ask your manager")

    def _head(self, department_id: str) -> str:
        department = self.state.departments.get(department_id)
        if department.head_email is None:
            raise FailedPrecondition(f"{department.name} has no head; name a manager")
        return department.head_email

    def _changeable(self, employee_id: str, effective_on: date) -> Employee:
        employee = self.employed(employee_id)
        self._not_oneself(employee)
        self._within(effective_on, "effective_on", earliest=self.today)
        scheduled = self.state.job_changes.first(employee_id=employee_id, status="scheduled")
        if scheduled is not None:
            raise FailedPrecondition(f"{scheduled.id} is scheduled for {scheduled.effective_on}; cancel it first")
        return employee

    def _change_job(self, employee: Employee, effective_on: date, **details: Any) -> JobChange:
        is_due = effective_on <= self.today
        if is_due:
            new = {name.removeprefix("new_"): value for name, value in details.items() if name.startswith("new_")}
            self.state.employees.update(employee.id, **given(**new))
        return self.state.job_changes.insert(
            employee_id=employee.id,
            employee_email=employee.email,
            effective_on=effective_on,
            status="applied" if is_due else "scheduled",
            requested_by_email=self.user.email,
            **details,
        )


class Checklists(PeopleDesk):
    """Tools on onboarding and offboarding checklists."""

    @tool(effect="read")
    def list_hr_checklists(
        self,
        employee_id: EmployeeId | None = None,
        kind: ChecklistKind | None = None,
        status: Literal["open", "closed"] | None = None,
        due_by: Day | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[ChecklistOverview]:
        """List onboarding and offboarding checklists that satisfy all given filters, the earliest due first.

        Args:
            employee_id: Only checklists about this employee.
            kind: Only checklists of this kind.
            status: Only open, or only closed ones.
            due_by: Only checklists due on this day or earlier.
            limit: Most checklists to return.
            cursor: `next_cursor` of the previous page.
        """
        if employee_id is not None:
            self.state.employees.get(employee_id)
        rows = self.state.checklists.where(
            lambda row: due_by is None or row.due_on <= due_by,
            **given(employee_id=employee_id, kind=kind, status=status),
        )
        return paginate([self._seen(row) for row in sorted(rows, key=lambda row: row.due_on)], limit, cursor)

    @tool(effect="read")
    def list_hr_checklist_items(
        self,
        checklist_id: ChecklistId | None = None,
        owner_email: Email | None = None,
        open_only: bool = False,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[ChecklistItem]:
        """List items of onboarding and offboarding checklists, in the order in which they were added.

        Args:
            checklist_id: Only what is on this checklist.
            owner_email: Only what the employee with this address has to do.
            open_only: Whether to leave out items that are done.
            limit: Most items to return.
            cursor: `next_cursor` of the previous page.
        """
        if checklist_id is not None:
            self.state.checklists.get(checklist_id)
        rows = self.state.checklist_items.where(
            lambda row: not (open_only and row.is_done), **given(checklist_id=checklist_id, owner_email=owner_email)
        )
        return paginate(rows, limit, cursor)

    @tool(effect="write")
    def add_hr_checklist_item(
        self, checklist_id: ChecklistId, title: Title, owner_email: Email | None = None
    ) -> ChecklistItem:
        """Add an item to an open checklist.

        Args:
            checklist_id: The checklist.
            title: What has to be done.
            owner_email: E-mail address of the colleague who has to do it; you, if left out.
        """
        self._open(checklist_id)
        owner = self.colleague(owner_email or self.user.email)
        if len(self.state.checklist_items.where(checklist_id=checklist_id)) >= MAX_CHECKLIST_ITEMS:
            raise LimitExceeded(f"{checklist_id} has {MAX_CHECKLIST_ITEMS} items, the most that a checklist can have")
        return self.state.checklist_items.insert(checklist_id=checklist_id, title=title, owner_email=owner.email)

    @tool(effect="write")
    def complete_hr_checklist_item(self, item_id: ChecklistItemId) -> ChecklistItem:
        """Tick off an item of an open checklist, as done today by you.

        Args:
            item_id: The item.
        """
        item = self.state.checklist_items.get(item_id)
        self._open(item.checklist_id)
        if item.is_done:
            raise FailedPrecondition(f"{item_id} was done on {item.done_on} by {item.done_by_email}")
        return self.state.checklist_items.update(
            item_id, is_done=True, done_on=self.today, done_by_email=self.user.email
        )

    @tool(effect="write")
    def reassign_hr_checklist_item(self, item_id: ChecklistItemId, owner_email: Email) -> ChecklistItem:
        """Give an open item of an open checklist to another colleague.

        Args:
            item_id: The item.
            owner_email: E-mail address of the colleague.
        """
        item = self.state.checklist_items.get(item_id)
        self._open(item.checklist_id)
        owner = self.colleague(owner_email)
        if item.is_done:
            raise FailedPrecondition(f"{item_id} is done")
        if item.owner_email == owner.email:
            raise FailedPrecondition(f"{item_id} is with {owner.name} already")
        return self.state.checklist_items.update(item_id, owner_email=owner.email)

    @tool(effect="write")
    def close_hr_checklist(self, checklist_id: ChecklistId) -> ChecklistOverview:
        """Close a checklist whose items are all done.

        It makes somebody who was onboarding active, from their first day on, and somebody who was leaving leave for
        good, from their last day on.

        Args:
            checklist_id: The checklist.
        """
        checklist = self._open(checklist_id)
        left = self.state.checklist_items.where(checklist_id=checklist_id, is_done=False)
        if left:
            raise FailedPrecondition(f"{checklist_id} has open items: {', '.join(item.id for item in left)}")
        employee = self.state.employees.get(checklist.employee_id)
        day = employee.started_on if checklist.kind == "onboarding" else employee.ended_on
        if day is not None and self.today < day:
            raise FailedPrecondition(f"{checklist_id} can't be closed before {day}")
        if checklist.kind == "onboarding" and employee.status == "onboarding":
            self.state.employees.update(employee.id, status="active")
        if checklist.kind == "offboarding" and employee.status == "leaving":
            self.state.employees.update(employee.id, status="left")
        return self._seen(self.state.checklists.update(checklist_id, status="closed", closed_on=self.today))

    def _open(self, checklist_id: str) -> Checklist:
        checklist = self.state.checklists.get(checklist_id)
        if checklist.status == "closed":
            raise FailedPrecondition(f"{checklist_id} was closed on {checklist.closed_on}")
        return checklist

    def _seen(self, checklist: Checklist) -> ChecklistOverview:
        items = self.state.checklist_items.where(checklist_id=checklist.id)
        return ChecklistOverview(
            **{name: getattr(checklist, name) for name in Checklist.model_fields},
            employee_name=self.state.employees.get(checklist.employee_id).name,
            items=len(items),
            open_items=sum(not item.is_done for item in items),
        )
