"""What an HR directory holds: who works here and under whom, when they are away, and how their jobs change.

A row states a fact once. What follows from other rows (days left of an allowance, the members of a department) is
worked out when it is read, so that no change from outside can leave two rows that contradict each other.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from compoworld_core.services.sdk import (
    City,
    Day,
    Email,
    Entity,
    Field,
    Id,
    PersonName,
    Phone,
    Quantity,
    Rule,
    Semantic,
    State,
    Table,
    Test,
    Text,
    Timestamp,
    Title,
    Username,
    table,
)

EmployeeId = Annotated[str, Id("employee", prefix="emp")]
DepartmentId = Annotated[str, Id("department", prefix="dpt")]
LeaveRequestId = Annotated[str, Id("leave_request", prefix="lvr")]
LeaveAllowanceId = Annotated[str, Id("leave_allowance", prefix="lva")]
HolidayId = Annotated[str, Id("company_holiday", prefix="hol")]
JobChangeId = Annotated[str, Id("job_change", prefix="jch")]
ChecklistId = Annotated[str, Id("hr_checklist", prefix="chk")]
ChecklistItemId = Annotated[str, Id("hr_checklist_item", prefix="chi")]

DepartmentName = Annotated[str, Field(min_length=1, max_length=80), Semantic("department")]
JobTitle = Annotated[str, Field(pattern=r"\S", max_length=120), Semantic("job_role")]
CostCentre = Annotated[str, Field(pattern=r"^[A-Z0-9][A-Z0-9-]{1,19}$"), Semantic("cost_centre")]
LeaveDays = Annotated[Decimal, Field(ge=0, le=366, multiple_of=Decimal("0.5")), Semantic("leave_days")]
"""Working days; half days count."""
LeaveYear = Annotated[int, Field(ge=2020, le=2040), Semantic("year")]
Reason = Annotated[str, Field(pattern=r"\S", max_length=2000), Semantic("text")]
"""A text that says something."""

EmploymentStatus = Literal["onboarding", "active", "leaving", "left"]
LeaveKind = Literal["annual", "training", "sick", "parental", "unpaid"]
LeaveStatus = Literal["pending", "approved", "rejected", "cancelled"]
CountedKind = Literal["annual", "training"]
"""Leave that is taken out of a yearly allowance."""
JobChangeKind = Literal["transfer", "promotion"]
JobChangeStatus = Literal["scheduled", "applied", "cancelled"]
ChecklistKind = Literal["onboarding", "offboarding"]
Skill = Annotated[
    Literal[
        "accounting",
        "contract_law",
        "data_analysis",
        "first_aid",
        "forklift_licence",
        "french",
        "german",
        "negotiation",
        "project_management",
        "public_speaking",
        "python",
        "spreadsheets",
        "technical_writing",
        "welding",
    ],
    Semantic("skill"),
]


class Department(Entity):
    """A part of the company. `headcount_limit` is how many people it may employ."""

    id: DepartmentId
    name: DepartmentName
    head_email: Email | None = None
    cost_centre: CostCentre
    headcount_limit: Quantity


class Employee(Entity):
    """Somebody who works here, or did. Only the head of the company has no manager."""

    id: EmployeeId
    name: PersonName
    email: Email
    username: Username
    department_id: DepartmentId
    job_title: JobTitle
    manager_email: Email | None = None
    office: City
    phone: Phone | None = None
    status: EmploymentStatus = "active"
    started_on: Day
    ended_on: Day | None = None
    skills: tuple[Skill, ...] = ()


class EmployeeProfile(Employee):
    """An employee with the department's name and cost centre."""

    department: DepartmentName
    cost_centre: CostCentre


class DepartmentOverview(Department):
    """A department with the number of people in it; those who left don't count."""

    members: Quantity
    vacancies: Quantity


class ReportingLine(Entity):
    """An employee and the managers above, nearest first."""

    employee: EmployeeProfile
    managers: tuple[EmployeeProfile, ...]


class CompanyHoliday(Entity):
    """A day on which nobody works."""

    id: HolidayId
    day: Day
    name: Title


class LeaveAllowance(Entity):
    """Working days of leave that an employee may take in a year."""

    id: LeaveAllowanceId
    employee_id: EmployeeId
    year: LeaveYear
    kind: CountedKind
    days: LeaveDays


class LeaveBalance(LeaveAllowance):
    """What is left of an allowance: `remaining` = `days` - `taken` - `pending`.

    `taken` counts approved leave of the year, past or to come; `pending` counts requests that are not decided yet.
    """

    taken: LeaveDays
    pending: LeaveDays
    remaining: Decimal


class LeaveRequest(Entity):
    """Leave from the first to the last day, both included, asked for, decided on or called off."""

    id: LeaveRequestId
    employee_id: EmployeeId
    employee_email: Email
    kind: LeaveKind
    first_day: Day
    last_day: Day
    starts_at_noon: bool = False
    ends_at_noon: bool = False
    working_days: LeaveDays
    status: LeaveStatus = "pending"
    note: Text = ""
    requested_at: Timestamp
    decided_by_email: Email | None = None
    decision_note: Text = ""


class LeavePreview(Entity):
    """What a leave would cost. The balance after is absent for kinds without an allowance."""

    employee_id: EmployeeId
    kind: LeaveKind
    working_days: LeaveDays
    holidays: tuple[CompanyHoliday, ...]
    remaining_before: Decimal | None
    remaining_after: Decimal | None
    overlapping: tuple[LeaveRequestId, ...]


class Absence(Entity):
    """A colleague's approved leave on a day; `id` is the leave request's."""

    id: LeaveRequestId
    employee_id: EmployeeId
    employee_name: PersonName
    employee_email: Email
    department: DepartmentName
    kind: LeaveKind
    first_day: Day
    last_day: Day
    is_half_day: bool


class JobChange(Entity):
    """A transfer or promotion. It is scheduled until the day on which it takes effect."""

    id: JobChangeId
    employee_id: EmployeeId
    employee_email: Email
    kind: JobChangeKind
    effective_on: Day
    status: JobChangeStatus
    new_department_id: DepartmentId | None = None
    new_manager_email: Email | None = None
    new_job_title: JobTitle | None = None
    reason: Text = ""
    requested_by_email: Email


class Checklist(Entity):
    """What has to be done before somebody is properly in, or out."""

    id: ChecklistId
    employee_id: EmployeeId
    kind: ChecklistKind
    due_on: Day
    status: Literal["open", "closed"] = "open"
    closed_on: Day | None = None


class ChecklistOverview(Checklist):
    """A checklist with how far it is."""

    employee_name: PersonName
    items: Quantity
    open_items: Quantity


class ChecklistItem(Entity):
    """One thing on a checklist, and whose job it is."""

    id: ChecklistItemId
    checklist_id: ChecklistId
    title: Title
    owner_email: Email
    is_done: bool = False
    done_on: Day | None = None
    done_by_email: Email | None = None


class PeopleState(State):
    """Tables of the HR directory."""

    departments: Table[Department] = table(unique=("name",))
    employees: Table[Employee] = table(
        unique=("email", "username"),
        rules=(
            Rule(
                where=(Test(field="status", op="in", value=["leaving", "left"]),),
                satisfies=(Test(field="ended_on", op="ne"),),
                message="somebody who is leaving or has left needs a last day",
            ),
            Rule(
                where=(Test(field="manager_email", op="ne"),),
                satisfies=(Test(field="manager_email", op="ne", other="email"),),
                message="nobody is their own manager",
            ),
        ),
    )
    holidays: Table[CompanyHoliday] = table(unique=("day",))
    leave_allowances: Table[LeaveAllowance] = table(unique=(("employee_id", "year", "kind"),))
    leave_requests: Table[LeaveRequest] = table(
        rules=(
            Rule(
                satisfies=(Test(field="first_day", op="le", other="last_day"),),
                message="a leave can't end before it starts",
            ),
        )
    )
    job_changes: Table[JobChange] = table()
    checklists: Table[Checklist] = table(
        rules=(
            Rule(
                where=(Test(field="status", value="closed"),),
                satisfies=(Test(field="closed_on", op="ne"),),
                message="a closed checklist needs the day on which it was closed",
            ),
        )
    )
    checklist_items: Table[ChecklistItem] = table(
        rules=(
            Rule(
                where=(Test(field="is_done", value=True),),
                satisfies=(Test(field="done_on", op="ne"), Test(field="done_by_email", op="ne")),
                message="a done item needs the day and who did it",
            ),
        )
    )
