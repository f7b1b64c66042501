"""Looking at projects, issues and what hangs on them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from compoworld_core.library.devops.tracker_board import Board, by_priority
from compoworld_core.library.devops.tracker_rows import (
    ComponentId,
    Issue,
    IssueComment,
    IssueEffort,
    IssueId,
    IssueKey,
    IssueKind,
    IssuePriority,
    IssueStatus,
    LinkedIssue,
    ProjectCode,
    ProjectComponent,
    ProjectId,
    ProjectOverview,
    SprintId,
    TrackedProject,
    TrackerUser,
    WorkEntry,
)
from compoworld_core.library.filters import given
from compoworld_core.services.sdk import Cursor, Day, Email, Limit, Page, ProjectName, Query, Tag, paginate, tool

_INVERSE: dict[str, Literal["is_blocked_by", "is_duplicated_by", "relates_to"]] = {
    "blocks": "is_blocked_by",
    "duplicates": "is_duplicated_by",
    "relates_to": "relates_to",
}


def _newest_first(issues: Iterable[Issue]) -> list[Issue]:
    return sorted(issues, key=lambda row: row.created_at)[::-1]


class Lookup(Board):
    """Tools that only look."""

    @tool(effect="read")
    def list_tracker_projects(
        self,
        name: ProjectName | None = None,
        code: ProjectCode | None = None,
        lead_email: Email | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[TrackedProject]:
        """List the tracked projects that satisfy all given filters, in alphabetical order of their names.

        Args:
            name: Part of the project's name, in any case.
            code: Exact code, in any case.
            lead_email: E-mail address of the colleague who leads it.
            limit: Most projects to return.
            cursor: `next_cursor` of the previous page.
        """
        part = (name or "").casefold()
        rows = self.state.projects.where(
            lambda row: part in row.name.casefold() and (code is None or row.code.casefold() == code.casefold()),
            **given(lead_email=lead_email),
        )
        return paginate(sorted(rows, key=lambda row: (row.name.casefold(), row.id)), limit, cursor)

    @tool(effect="read")
    def get_project_overview(self, project_id: ProjectId) -> ProjectOverview:
        """Get a project with its lead, its active sprint, and how many issues are in each status, blocked or overdue.

        Args:
            project_id: The project.
        """
        project = self.state.projects.get(project_id)
        issues = self.state.issues.where(project_id=project_id)
        active = self.state.sprints.first(project_id=project_id, status="active")
        return ProjectOverview(
            **project.model_dump(),
            todo=sum(issue.status == "todo" for issue in issues),
            in_progress=sum(issue.status == "in_progress" for issue in issues),
            in_review=sum(issue.status == "in_review" for issue in issues),
            done=sum(issue.status == "done" for issue in issues),
            blocked=sum(issue.status != "done" and bool(self.open_blockers(issue.id)) for issue in issues),
            overdue=sum(map(self.is_overdue, issues)),
            active_sprint_id=None if active is None else active.id,
        )

    @tool(effect="read")
    def search_issues(
        self,
        query: Query = "",
        project_id: ProjectId | None = None,
        key: IssueKey | None = None,
        kind: IssueKind | None = None,
        status: IssueStatus | None = None,
        priority: IssuePriority | None = None,
        assignee_email: Email | None = None,
        reporter_email: Email | None = None,
        component_id: ComponentId | None = None,
        sprint_id: SprintId | None = None,
        label: Tag | None = None,
        unassigned_only: bool = False,
        due_from: Day | None = None,
        due_to: Day | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Issue]:
        """Find issues that satisfy all given filters, newest first.

        Args:
            query: Words that must all occur in key, title or description, in any order and case; empty for all.
            project_id: Only issues of this project.
            key: Exact key of an issue, in any case.
            kind: Only bugs, tasks or stories.
            status: Exact status; issues of every status, if left out.
            priority: Exact priority.
            assignee_email: E-mail address of the colleague who works on it.
            reporter_email: E-mail address of the colleague who reported it.
            component_id: Only issues of this component.
            sprint_id: Only issues in this sprint.
            label: A label that the issue carries, in any case.
            unassigned_only: Whether to leave out issues that have an assignee.
            due_from: First due day; issues without a due day are left out.
            due_to: Last due day; issues without a due day are left out.
            limit: Most issues to return.
            cursor: `next_cursor` of the previous page.
        """
        if project_id is not None:
            self.state.projects.get(project_id)
        if component_id is not None:
            self.state.components.get(component_id)
        if sprint_id is not None:
            self.state.sprints.get(sprint_id)
        words = query.casefold().split()

        def matches(row: Issue) -> bool:
            text = f"{row.key}\n{row.title}\n{row.description}".casefold()
            return (
                all(word in text for word in words)
                and (key is None or row.key.casefold() == key.casefold())
                and (label is None or label.lower() in row.labels)
                and (row.assignee_email is None or not unassigned_only)
                and (due_from is None or (row.due_on is not None and row.due_on >= due_from))
                and (due_to is None or (row.due_on is not None and row.due_on <= due_to))
            )

        filters = given(
            project_id=project_id,
            kind=kind,
            status=status,
            priority=priority,
            assignee_email=assignee_email,
            reporter_email=reporter_email,
            component_id=component_id,
            sprint_id=sprint_id,
        )
        return paginate(_newest_first(self.state.issues.where(matches, **filters)), limit, cursor)

    @tool(effect="read")
    def get_issue(self, issue_id: IssueId) -> Issue:
        """Get an issue.

        Args:
            issue_id: The issue's id; `search_issues` finds it by its key.
        """
        return self.state.issues.get(issue_id)

    @tool(effect="read")
    def list_blocked_issues(
        self, project_id: ProjectId | None = None, limit: Limit = 20, cursor: Cursor | None = None
    ) -> Page[Issue]:
        """List issues that are not done and have a blocker that is not done, highest priority first, then by due day.

        Args:
            project_id: Only issues of this project; what blocks them may belong to another one.
            limit: Most issues to return.
            cursor: `next_cursor` of the previous page.
        """
        if project_id is not None:
            self.state.projects.get(project_id)
        rows = self.state.issues.where(
            lambda row: row.status != "done" and bool(self.open_blockers(row.id)), **given(project_id=project_id)
        )
        return paginate(sorted(rows, key=by_priority), limit, cursor)

    @tool(effect="read")
    def list_overdue_issues(
        self,
        project_id: ProjectId | None = None,
        assignee_email: Email | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Issue]:
        """List issues that should have been done before today, the longest overdue first.

        Args:
            project_id: Only issues of this project.
            assignee_email: Only issues of the colleague with this e-mail address.
            limit: Most issues to return.
            cursor: `next_cursor` of the previous page.
        """
        if project_id is not None:
            self.state.projects.get(project_id)
        rows = self.state.issues.where(self.is_overdue, **given(project_id=project_id, assignee_email=assignee_email))
        return paginate(sorted(rows, key=lambda row: (str(row.due_on), len(row.id), row.id)), limit, cursor)

    @tool(effect="read")
    def list_issue_links(self, issue_id: IssueId, limit: Limit = 20, cursor: Cursor | None = None) -> Page[LinkedIssue]:
        """List how an issue is linked with others, seen from its side, in the order in which the links were made.

        Args:
            issue_id: The issue.
            limit: Most links to return.
            cursor: `next_cursor` of the previous page.
        """
        self.state.issues.get(issue_id)
        rows = []
        for link in self.state.links.where(lambda row: issue_id in (row.source_id, row.target_id)):
            outward = link.source_id == issue_id
            other = self.state.issues.get(link.target_id if outward else link.source_id)
            rows.append(
                LinkedIssue(
                    id=link.id,
                    relation=link.kind if outward else _INVERSE[link.kind],
                    issue_id=other.id,
                    key=other.key,
                    title=other.title,
                    status=other.status,
                    assignee_email=other.assignee_email,
                )
            )
        return paginate(rows, limit, cursor)

    @tool(effect="read")
    def list_issue_comments(
        self, issue_id: IssueId, limit: Limit = 50, cursor: Cursor | None = None
    ) -> Page[IssueComment]:
        """List what was said on an issue, oldest first.

        Args:
            issue_id: The issue.
            limit: Most comments to return.
            cursor: `next_cursor` of the previous page.
        """
        self.state.issues.get(issue_id)
        rows = self.state.comments.where(issue_id=issue_id)
        return paginate(sorted(rows, key=lambda row: row.created_at), limit, cursor)

    @tool(effect="read")
    def list_project_components(
        self, project_id: ProjectId, limit: Limit = 20, cursor: Cursor | None = None
    ) -> Page[ProjectComponent]:
        """List the components of a project with their owners, in alphabetical order of their names.

        Args:
            project_id: The project.
            limit: Most components to return.
            cursor: `next_cursor` of the previous page.
        """
        self.state.projects.get(project_id)
        rows = self.state.components.where(project_id=project_id)
        return paginate(sorted(rows, key=lambda row: (row.name.casefold(), row.id)), limit, cursor)

    @tool(effect="read")
    def list_work_entries(
        self,
        issue_id: IssueId | None = None,
        author_email: Email | None = None,
        worked_from: Day | None = None,
        worked_to: Day | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[WorkEntry]:
        """List logged work that satisfies all given filters, the latest day first.

        Args:
            issue_id: Only work on this issue.
            author_email: Only work of the colleague with this e-mail address.
            worked_from: First day of work.
            worked_to: Last day of work.
            limit: Most entries to return.
            cursor: `next_cursor` of the previous page.
        """
        if issue_id is not None:
            self.state.issues.get(issue_id)
        rows = self.state.work.where(
            lambda row: (
                (worked_from is None or row.worked_on >= worked_from)
                and (worked_to is None or row.worked_on <= worked_to)
            ),
            **given(issue_id=issue_id, author_email=author_email),
        )
        return paginate(sorted(rows, key=lambda row: row.worked_on)[::-1], limit, cursor)

    @tool(effect="read")
    def get_issue_effort(self, issue_id: IssueId) -> IssueEffort:
        """Tell how much time was spent on an issue, by whom, and what is left of its estimate.

        Args:
            issue_id: The issue.
        """
        issue = self.state.issues.get(issue_id)
        entries = self.state.work.where(issue_id=issue_id)
        spent = sum(entry.minutes for entry in entries)
        estimate = None if issue.estimate_hours is None else 60 * issue.estimate_hours
        return IssueEffort(
            issue_id=issue.id,
            key=issue.key,
            estimate_hours=issue.estimate_hours,
            spent_minutes=spent,
            remaining_minutes=None if estimate is None else max(0, estimate - spent),
            is_over_estimate=estimate is not None and spent > estimate,
            people=tuple(sorted({entry.author_email for entry in entries})),
        )

    @tool(effect="read")
    def list_tracker_users(
        self, name: Query | None = None, limit: Limit = 20, cursor: Cursor | None = None
    ) -> Page[TrackerUser]:
        """List the colleagues who can report, work on and watch issues, in alphabetical order of their names.

        Args:
            name: Part of the person's name or username, in any case.
            limit: Most colleagues to return.
            cursor: `next_cursor` of the previous page.
        """
        part = (name or "").casefold()
        rows = self.state.users.where(lambda row: part in row.name.casefold() or part in row.username.casefold())
        return paginate(sorted(rows, key=lambda row: (row.name.casefold(), row.id)), limit, cursor)
