"""The directory: employees, departments and the org chart."""

from __future__ import annotations

from compoworld_core.library.filters import changes, given
from compoworld_core.library.hr.people_desk import PeopleDesk
from compoworld_core.library.hr.people_rows import (
    CostCentre,
    DepartmentId,
    DepartmentName,
    DepartmentOverview,
    Employee,
    EmployeeId,
    EmployeeProfile,
    EmploymentStatus,
    JobTitle,
    ReportingLine,
    Skill,
)
from compoworld_core.services.sdk import (
    AlreadyExists,
    City,
    Cursor,
    Email,
    FailedPrecondition,
    Limit,
    NotFound,
    Page,
    Phone,
    Quantity,
    Query,
    Username,
    paginate,
    tool,
)


class Directory(PeopleDesk):
    """Tools on employees, departments and who reports to whom."""

    @tool(effect="read")
    def search_employees(
        self,
        name: Query | None = None,
        department_id: DepartmentId | None = None,
        job_title: JobTitle | None = None,
        skill: Skill | None = None,
        manager_email: Email | None = None,
        office: City | None = None,
        username: Username | None = None,
        status: EmploymentStatus | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[EmployeeProfile]:
        """Find employees who satisfy all given filters, in alphabetical order of their names.

        Args:
            name: Part of the person's name, in any case.
            department_id: Only people of this department.
            job_title: Part of the job title, in any case.
            skill: Only people who have this skill.
            manager_email: Only people who report directly to the employee with this address.
            office: Exact city of the office.
            username: Exact username.
            status: Only people with this employment status; without it, everybody who has not left.
            limit: Most employees to return.
            cursor: `next_cursor` of the previous page.
        """
        if department_id is not None:
            self.state.departments.get(department_id)
        part, title = (name or "").casefold(), (job_title or "").casefold()

        def fits(row: Employee) -> bool:
            return (
                part in row.name.casefold()
                and title in row.job_title.casefold()
                and (skill is None or skill in row.skills)
                and (status is not None or row.status != "left")
            )

        rows = self.state.employees.where(
            fits,
            **given(
                department_id=department_id,
                manager_email=manager_email,
                office=office,
                username=username,
                status=status,
            ),
        )
        return paginate([self.profile(row) for row in _by_name(rows)], limit, cursor)

    @tool(effect="read")
    def get_employee(self, employee_id: EmployeeId) -> EmployeeProfile:
        """Get an employee.

        Args:
            employee_id: The employee.
        """
        return self.profile(self.state.employees.get(employee_id))

    @tool(effect="read")
    def find_employee_by_email(self, email: Email) -> EmployeeProfile:
        """Get the employee with an e-mail address, also one who has left.

        Args:
            email: The address, in any case.
        """
        employee = self.state.employees.first(email=email.lower())
        if employee is None:
            raise NotFound(f"no employee has the e-mail address {email!r}")
        return self.profile(employee)

    @tool(effect="read")
    def get_reporting_line(self, employee_id: EmployeeId) -> ReportingLine:
        """Get an employee and the chain of managers above them, the direct manager first.

        Args:
            employee_id: The employee.
        """
        employee = self.state.employees.get(employee_id)
        managers = tuple(self.profile(manager) for manager in self.managers_above(employee))
        return ReportingLine(employee=self.profile(employee), managers=managers)

    @tool(effect="read")
    def list_reports(
        self,
        employee_id: EmployeeId,
        include_indirect: bool = False,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[EmployeeProfile]:
        """List the people who report to an employee and have not left, in alphabetical order of their names.

        Args:
            employee_id: The manager.
            include_indirect: Whether to return the reports of reports too.
            limit: Most employees to return.
            cursor: `next_cursor` of the previous page.
        """
        found: dict[str, Employee] = {}
        layer = [self.state.employees.get(employee_id)]
        while layer:
            layer = [row for manager in layer for row in self.reports_of(manager) if row.id not in found]
            found.update({row.id: row for row in layer})
            if not include_indirect:
                break
        found.pop(employee_id, None)
        return paginate([self.profile(row) for row in _by_name(tuple(found.values()))], limit, cursor)

    @tool(effect="write")
    def update_employee_contact(
        self, employee_id: EmployeeId, phone: Phone | None = None, office: City | None = None
    ) -> EmployeeProfile:
        """Change the phone number or the office of somebody who has not left.

        Args:
            employee_id: The employee.
            phone: New phone number.
            office: City of the new office.
        """
        employee = self.state.employees.get(employee_id)
        if employee.status == "left":
            raise FailedPrecondition(f"{employee.name} left on {employee.ended_on}")
        return self.profile(self.state.employees.update(employee_id, **changes(phone=phone, office=office)))

    @tool(effect="write")
    def add_employee_skill(self, employee_id: EmployeeId, skill: Skill) -> EmployeeProfile:
        """Record that an employee has a skill.

        Args:
            employee_id: The employee, who must be onboarding or active.
            skill: The skill, which they must not have yet.
        """
        employee = self.employed(employee_id)
        if skill in employee.skills:
            raise AlreadyExists(f"{employee.name} has the skill {skill} already")
        return self.profile(self.state.employees.update(employee_id, skills=tuple(sorted((*employee.skills, skill)))))

    @tool(effect="write")
    def remove_employee_skill(self, employee_id: EmployeeId, skill: Skill) -> EmployeeProfile:
        """Take a skill off an employee's record.

        Args:
            employee_id: The employee, who must be onboarding or active.
            skill: The skill.
        """
        employee = self.employed(employee_id)
        if skill not in employee.skills:
            raise NotFound(f"{employee.name} does not have the skill {skill}")
        kept = tuple(item for item in employee.skills if item != skill)
        return self.profile(self.state.employees.update(employee_id, skills=kept))

    @tool(effect="write")
    def assign_manager(self, employee_id: EmployeeId, manager_email: Email) -> EmployeeProfile:
        """Give an employee another manager, from now on. Nobody can come to report to themselves through others.

        Args:
            employee_id: The employee, who must be onboarding or active.
            manager_email: E-mail address of the new manager, a colleague who is onboarding or active.
        """
        employee = self.employed(employee_id)
        manager = self.new_manager(employee, manager_email)
        if manager.email == employee.manager_email:
            raise FailedPrecondition(f"{employee.name} reports to {manager.name} already")
        return self.profile(self.state.employees.update(employee_id, manager_email=manager.email))

    # Departments

    @tool(effect="read")
    def list_departments(
        self,
        name: DepartmentName | None = None,
        cost_centre: CostCentre | None = None,
        head_email: Email | None = None,
        with_vacancies: bool = False,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[DepartmentOverview]:
        """List departments that satisfy all given filters, in alphabetical order of their names.

        Args:
            name: Part of the department's name, in any case.
            cost_centre: Exact cost centre.
            head_email: Only the department that the employee with this address heads.
            with_vacancies: Whether to leave out departments that have as many people as they may have.
            limit: Most departments to return.
            cursor: `next_cursor` of the previous page.
        """
        part = (name or "").casefold()
        found = self.state.departments.where(
            lambda row: part in row.name.casefold(), **given(cost_centre=cost_centre, head_email=head_email)
        )
        rows = [self.overview(row) for row in sorted(found, key=lambda row: row.name.casefold())]
        return paginate([row for row in rows if row.vacancies or not with_vacancies], limit, cursor)

    @tool(effect="read")
    def get_department(self, department_id: DepartmentId) -> DepartmentOverview:
        """Get a department with its head, cost centre, number of people and vacancies.

        Args:
            department_id: The department.
        """
        return self.overview(self.state.departments.get(department_id))

    @tool(effect="write")
    def update_department(
        self,
        department_id: DepartmentId,
        cost_centre: CostCentre | None = None,
        headcount_limit: Quantity | None = None,
    ) -> DepartmentOverview:
        """Change a department's cost centre or how many people it may employ.

        Args:
            department_id: The department.
            cost_centre: New cost centre, e.g. "CC-410".
            headcount_limit: New limit, not below the number of people who are in the department now.
        """
        members = len(self.members_of(department_id))
        if headcount_limit is not None and headcount_limit < members:
            raise FailedPrecondition(f"the department has {members} people; the limit can't be {headcount_limit}")
        fields = changes(cost_centre=cost_centre, headcount_limit=headcount_limit)
        return self.overview(self.state.departments.update(department_id, **fields))

    @tool(effect="write")
    def appoint_department_head(self, department_id: DepartmentId, head_email: Email) -> DepartmentOverview:
        """Put one of its members at the head of a department.

        Members who reported to the former head report to the new one from now on, and so does the former head. The new
        head reports to whoever the former head reported to.

        Args:
            department_id: The department.
            head_email: E-mail address of the member, who must be onboarding or active.
        """
        department = self.state.departments.get(department_id)
        head = self.colleague(head_email)
        if head.department_id != department_id:
            raise FailedPrecondition(f"{head.name} is not in {department.name}; transfer them first")
        if head.email == department.head_email:
            raise FailedPrecondition(f"{head.name} is the head of {department.name} already")
        former = department.head_email and self.state.employees.first(email=department.head_email)
        if former:
            self._hand_over(former, head)
        return self.overview(self.state.departments.update(department_id, head_email=head.email))

    def _hand_over(self, former: Employee, head: Employee) -> None:
        members = [row for row in self.reports_of(former) if row.department_id == head.department_id]
        if all(above.id != head.id for above in self.managers_above(former)):
            self.state.employees.update(head.id, manager_email=former.manager_email)
        for member in members:
            if member.id != head.id:
                self.state.employees.update(member.id, manager_email=head.email)
        self.state.employees.update(former.id, manager_email=head.email)


def _by_name(rows: tuple[Employee, ...]) -> list[Employee]:
    return sorted(rows, key=lambda row: row.name.casefold())
