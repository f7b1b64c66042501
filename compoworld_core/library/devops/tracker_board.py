"""What all tools of the tracker share: people, what blocks what, and how an issue's status moves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from compoworld_core.library.devops.tracker_rows import (
    ISSUE_PRIORITIES,
    MAX_LABELS,
    Issue,
    Sprint,
    TrackerState,
)
from compoworld_core.services.sdk import FailedPrecondition, LimitExceeded, NotFound, Service


def labelled(labels: Iterable[str]) -> tuple[str, ...]:
    """Labels in lower case, each once."""
    found = tuple(dict.fromkeys(label.lower() for label in labels))
    if len(found) > MAX_LABELS:
        raise LimitExceeded(f"{len(found)} labels are more than the {MAX_LABELS} that an issue can carry")
    return found


def by_priority(issue: Issue) -> tuple[int, str, int, str]:
    """Sorts issues highest priority first, then by due day (those without one last)."""
    due = "9999-99-99" if issue.due_on is None else issue.due_on.isoformat()
    return -ISSUE_PRIORITIES.index(issue.priority), due, len(issue.id), issue.id


class Board(Service[TrackerState]):
    """Base of the tracker's tools."""

    def member(self, email: str) -> str:
        """The stored address of a tracker user."""
        email = email.lower()
        if self.state.users.first(email=email) is None:
            raise NotFound(f"no tracker user has the e-mail address {email!r}")
        return email

    def me(self) -> str:
        """The acting user's address, as it is stored."""
        return self.user.email.lower()

    def open_issue(self, issue_id: str) -> Issue:
        """The issue, which must not be done."""
        issue = self.state.issues.get(issue_id)
        if issue.status == "done":
            raise FailedPrecondition(f"{issue.key} is done; reopen it first")
        return issue

    def open_blockers(self, issue_id: str) -> list[Issue]:
        """Issues that block an issue and are not done."""
        links = self.state.links.where(kind="blocks", target_id=issue_id)
        sources = [self.state.issues.get(link.source_id) for link in links]
        return [issue for issue in sources if issue.status != "done"]

    def open_sprint(self, sprint_id: str, project_id: str) -> Sprint:
        """The sprint, which must be of the project and not closed."""
        sprint = self.state.sprints.get(sprint_id)
        if sprint.project_id != project_id:
            raise FailedPrecondition(f"{sprint_id} belongs to another project, {sprint.project_id}")
        if sprint.status == "closed":
            raise FailedPrecondition(f"{sprint_id} is closed")
        return sprint

    def is_overdue(self, issue: Issue) -> bool:
        """Whether the issue should have been done before today."""
        return issue.status != "done" and issue.due_on is not None and issue.due_on < self.today

    def touched(self, issue: Issue, **fields: Any) -> Issue:
        """The issue with changed fields and a new time of its last change."""
        return self.state.issues.update(issue.id, updated_at=self.now, **fields)

    def resolved(self, issue: Issue, resolution: str) -> Issue:
        """The issue, done for a reason."""
        return self.touched(issue, status="done", resolution=resolution, resolved_at=self.now)
