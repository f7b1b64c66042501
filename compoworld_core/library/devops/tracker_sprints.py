"""Planning: sprints, which one starts and which closes, and how projects are divided."""

from __future__ import annotations

from compoworld_core.library.devops.tracker_board import Board
from compoworld_core.library.devops.tracker_rows import (
    ComponentId,
    ComponentName,
    Issue,
    IssueId,
    ProjectComponent,
    ProjectId,
    Sprint,
    SprintClosed,
    SprintId,
    SprintName,
    SprintReport,
    SprintStatus,
    TrackedProject,
)
from compoworld_core.library.filters import given
from compoworld_core.services.sdk import (
    Cursor,
    Day,
    Email,
    FailedPrecondition,
    InvalidArguments,
    Limit,
    Page,
    Text,
    paginate,
    tool,
)


class Sprints(Board):
    """Tools on sprints, components and the people responsible for them."""

    @tool(effect="read")
    def list_sprints(
        self,
        project_id: ProjectId | None = None,
        status: SprintStatus | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Sprint]:
        """List sprints that satisfy all given filters, the one that starts last first.

        Args:
            project_id: Only sprints of this project.
            status: Only planned, active or closed ones.
            limit: Most sprints to return.
            cursor: `next_cursor` of the previous page.
        """
        if project_id is not None:
            self.state.projects.get(project_id)
        rows = self.state.sprints.where(**given(project_id=project_id, status=status))
        return paginate(sorted(rows, key=lambda row: row.starts_on)[::-1], limit, cursor)

    @tool(effect="read")
    def get_sprint_report(self, sprint_id: SprintId) -> SprintReport:
        """Tell how far a sprint is: its issues, what is done and blocked, and estimated and spent time.

        Args:
            sprint_id: The sprint.
        """
        sprint = self.state.sprints.get(sprint_id)
        issues = self.state.issues.where(sprint_id=sprint_id)
        done = sum(issue.status == "done" for issue in issues)
        spent = sum(entry.minutes for issue in issues for entry in self.state.work.where(issue_id=issue.id))
        return SprintReport(
            id=sprint.id,
            project_id=sprint.project_id,
            name=sprint.name,
            status=sprint.status,
            ends_on=sprint.ends_on,
            issues=len(issues),
            done=done,
            unfinished=len(issues) - done,
            blocked=sum(issue.status != "done" and bool(self.open_blockers(issue.id)) for issue in issues),
            estimated_hours=sum(issue.estimate_hours or 0 for issue in issues),
            spent_minutes=spent,
            percent_done=100 * done // len(issues) if issues else 0,
        )

    @tool(effect="write")
    def create_sprint(
        self, project_id: ProjectId, name: SprintName, starts_on: Day, ends_on: Day, goal: Text = ""
    ) -> Sprint:
        """Plan a sprint.

        Args:
            project_id: The project.
            name: Its name, which no other sprint of the project may have.
            starts_on: First day.
            ends_on: Last day, not before the first and not before today.
            goal: What is to be reached.
        """
        self.state.projects.get(project_id)
        if ends_on < starts_on:
            raise InvalidArguments(f"ends_on: {ends_on} is before starts_on, {starts_on}")
        if ends_on < self.today:
            raise FailedPrecondition(f"ends_on: {ends_on} is past; today is {self.today}")
        return self.state.sprints.insert(
            project_id=project_id, name=name, starts_on=starts_on, ends_on=ends_on, goal=goal
        )

    @tool(effect="write")
    def start_sprint(self, sprint_id: SprintId) -> Sprint:
        """Start a planned sprint today. It needs an issue, and no other sprint of its project may be active.

        Args:
            sprint_id: The sprint, whose last day must not be past.
        """
        sprint = self.state.sprints.get(sprint_id)
        if sprint.status != "planned":
            raise FailedPrecondition(f"{sprint_id} is {sprint.status}; only a planned sprint can be started")
        active = self.state.sprints.first(project_id=sprint.project_id, status="active")
        if active is not None:
            raise FailedPrecondition(f"{active.id} ({active.name}) is active in the same project; close it first")
        if sprint.ends_on < self.today:
            raise FailedPrecondition(f"{sprint_id} was to end on {sprint.ends_on}, which is past")
        if self.state.issues.first(sprint_id=sprint_id) is None:
            raise FailedPrecondition(f"{sprint_id} has no issues; add one first")
        return self.state.sprints.update(sprint_id, status="active", starts_on=self.today)

    @tool(effect="write")
    def close_sprint(self, sprint_id: SprintId, move_to_sprint_id: SprintId | None = None) -> SprintClosed:
        """Close an active sprint. Issues that are not done go to another sprint or leave it; the others stay in it.

        Args:
            sprint_id: The active sprint.
            move_to_sprint_id: Planned sprint of the same project that gets the unfinished issues; if left out, they
                are in no sprint afterwards.
        """
        sprint = self.state.sprints.get(sprint_id)
        following = None if move_to_sprint_id is None else self.state.sprints.get(move_to_sprint_id)
        if sprint.status != "active":
            raise FailedPrecondition(f"{sprint_id} is {sprint.status}, not active")
        if following is not None and (following.project_id != sprint.project_id or following.status != "planned"):
            raise FailedPrecondition(f"{following.id} is not a planned sprint of the same project")
        issues = self.state.issues.where(sprint_id=sprint_id)
        unfinished = [issue for issue in issues if issue.status != "done"]
        for issue in unfinished:
            self.touched(issue, sprint_id=move_to_sprint_id)
        return SprintClosed(
            sprint=self.state.sprints.update(sprint_id, status="closed", closed_on=self.today),
            finished=len(issues) - len(unfinished),
            moved=tuple(issue.id for issue in unfinished),
            moved_to=move_to_sprint_id,
        )

    @tool(effect="write")
    def add_issue_to_sprint(self, issue_id: IssueId, sprint_id: SprintId) -> Issue:
        """Put an issue that is not done into a planned or active sprint of its project, instead of any other one.

        Args:
            issue_id: The issue.
            sprint_id: The sprint.
        """
        self.state.sprints.get(sprint_id)
        issue = self.open_issue(issue_id)
        self.open_sprint(sprint_id, issue.project_id)
        if issue.sprint_id == sprint_id:
            raise FailedPrecondition(f"{issue.key} is in {sprint_id} already")
        return self.touched(issue, sprint_id=sprint_id)

    @tool(effect="write")
    def remove_issue_from_sprint(self, issue_id: IssueId) -> Issue:
        """Take an issue that is not done out of its sprint.

        Args:
            issue_id: The issue.
        """
        issue = self.open_issue(issue_id)
        if issue.sprint_id is None:
            raise FailedPrecondition(f"{issue.key} is in no sprint")
        return self.touched(issue, sprint_id=None)

    # Responsibilities

    @tool(effect="write")
    def create_project_component(
        self, project_id: ProjectId, name: ComponentName, owner_email: Email
    ) -> ProjectComponent:
        """Add a component to a project.

        Args:
            project_id: The project.
            name: Its name, which no other component of the project may have.
            owner_email: E-mail address of the colleague who gets new issues of it that name nobody.
        """
        self.state.projects.get(project_id)
        return self.state.components.insert(project_id=project_id, name=name, owner_email=self.member(owner_email))

    @tool(effect="write")
    def set_component_owner(self, component_id: ComponentId, owner_email: Email) -> ProjectComponent:
        """Make another colleague the owner of a component; its issues stay with whoever works on them.

        Args:
            component_id: The component.
            owner_email: E-mail address of the new owner.
        """
        component = self.state.components.get(component_id)
        owner = self.member(owner_email)
        if component.owner_email == owner:
            raise FailedPrecondition(f"{owner} owns {component_id} already")
        return self.state.components.update(component_id, owner_email=owner)

    @tool(effect="write")
    def set_project_lead(self, project_id: ProjectId, lead_email: Email) -> TrackedProject:
        """Make another colleague the lead of a project.

        Args:
            project_id: The project.
            lead_email: E-mail address of the new lead.
        """
        project = self.state.projects.get(project_id)
        lead = self.member(lead_email)
        if project.lead_email == lead:
            raise FailedPrecondition(f"{lead} leads {project_id} already")
        return self.state.projects.update(project_id, lead_email=lead)
