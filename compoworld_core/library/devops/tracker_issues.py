"""Issues on their way: who works on them, what they wait for, and how they end."""

from __future__ import annotations

from typing import Literal

from compoworld_core.library.devops.tracker_board import Board, labelled
from compoworld_core.library.devops.tracker_rows import (
    TRANSITIONS,
    ComponentId,
    Estimate,
    Issue,
    IssueId,
    IssueKind,
    IssueLink,
    IssueLinkId,
    IssuePriority,
    IssueStatus,
    ProjectId,
    Remark,
)
from compoworld_core.library.filters import changes
from compoworld_core.services.sdk import (
    AlreadyExists,
    Day,
    Email,
    FailedPrecondition,
    InvalidArguments,
    Tag,
    Text,
    Title,
    tool,
)


class Issues(Board):
    """Tools that change issues and the links between them."""

    @tool(effect="write")
    def create_issue(
        self,
        project_id: ProjectId,
        title: Title,
        kind: IssueKind = "task",
        description: Text = "",
        priority: IssuePriority = "medium",
        assignee_email: Email | None = None,
        component_id: ComponentId | None = None,
        estimate_hours: Estimate | None = None,
        due_on: Day | None = None,
        labels: tuple[Tag, ...] = (),
    ) -> Issue:
        """Report an issue in your name. It starts in `todo`, in no sprint, with its project's next key.

        Args:
            project_id: The project.
            title: The matter in one line.
            kind: Whether it is a bug, a task or a story.
            description: Details.
            priority: How much it matters.
            assignee_email: E-mail address of the colleague who is to work on it; the component's owner, if left out.
            component_id: Part of the project that it is about.
            estimate_hours: Working hours that it is expected to take.
            due_on: Day by which it has to be done, today or later.
            labels: Labels, kept in lower case; ten at most.
        """
        project = self.state.projects.get(project_id)
        owner = None if component_id is None else self._component_owner(component_id, project_id)
        self._not_past(due_on)
        keys = [issue.key.rpartition("-") for issue in self.state.issues.where(project_id=project_id)]
        numbers = [int(tail) for head, _, tail in keys if head == project.code and tail.isdecimal() and len(tail) < 10]
        return self.state.issues.insert(
            project_id=project_id,
            key=f"{project.code}-{max(numbers, default=0) + 1}",
            kind=kind,
            title=title,
            description=description,
            priority=priority,
            reporter_email=self.member(self.me()),
            assignee_email=owner if assignee_email is None else self.member(assignee_email),
            component_id=component_id,
            estimate_hours=estimate_hours,
            due_on=due_on,
            labels=labelled(labels),
            watchers=(self.me(),),
            created_at=self.now,
            updated_at=self.now,
        )

    @tool(effect="write")
    def update_issue(
        self,
        issue_id: IssueId,
        title: Title | None = None,
        description: Text | None = None,
        kind: IssueKind | None = None,
        priority: IssuePriority | None = None,
        estimate_hours: Estimate | None = None,
        due_on: Day | None = None,
    ) -> Issue:
        """Change the given fields of an issue that is not done. Its status is changed with `transition_issue`.

        Args:
            issue_id: The issue.
            title: The matter in one line.
            description: Details, in place of the old ones.
            kind: Whether it is a bug, a task or a story.
            priority: How much it matters.
            estimate_hours: Working hours that it is expected to take.
            due_on: Day by which it has to be done, today or later.
        """
        issue = self.open_issue(issue_id)
        self._not_past(due_on)
        fields = changes(
            title=title,
            description=description,
            kind=kind,
            priority=priority,
            estimate_hours=estimate_hours,
            due_on=due_on,
        )
        return self.touched(issue, **fields)

    @tool(effect="write")
    def set_issue_component(self, issue_id: IssueId, component_id: ComponentId) -> Issue:
        """Say which part of its project an issue that is not done is about; its assignee stays.

        Args:
            issue_id: The issue.
            component_id: Another component of the issue's project than the one that it has.
        """
        self.state.components.get(component_id)
        issue = self.open_issue(issue_id)
        self._component_owner(component_id, issue.project_id)
        if issue.component_id == component_id:
            raise FailedPrecondition(f"{issue.key} is in {component_id} already")
        return self.touched(issue, component_id=component_id)

    @tool(effect="write")
    def assign_issue(self, issue_id: IssueId, assignee_email: Email) -> Issue:
        """Give an issue that is not done to a colleague.

        Args:
            issue_id: The issue.
            assignee_email: E-mail address of the colleague, who must be a tracker user.
        """
        issue = self.open_issue(issue_id)
        email = self.member(assignee_email)
        if issue.assignee_email == email:
            raise FailedPrecondition(f"{issue.key} is assigned to {email} already")
        return self.touched(issue, assignee_email=email)

    @tool(effect="write")
    def unassign_issue(self, issue_id: IssueId) -> Issue:
        """Take an issue in `todo` from its assignee; one in progress or in review needs somebody.

        Args:
            issue_id: The issue.
        """
        issue = self.state.issues.get(issue_id)
        if issue.status != "todo":
            raise FailedPrecondition(f"{issue.key} is {issue.status}; only an issue in todo can be nobody's")
        if issue.assignee_email is None:
            raise FailedPrecondition(f"{issue.key} is assigned to nobody")
        return self.touched(issue, assignee_email=None)

    @tool(effect="write")
    def transition_issue(self, issue_id: IssueId, status: IssueStatus) -> Issue:
        """Move an issue along its workflow: todo, in_progress, in_review, done, one step at a time.

        From in_progress it can go back to todo, from in_review back to in_progress. It needs an assignee to be started,
        and to be done, all issues that block it must be done.

        Args:
            issue_id: The issue.
            status: The status to move to.
        """
        issue = self.open_issue(issue_id)
        if status not in TRANSITIONS[issue.status]:
            allowed = " or ".join(TRANSITIONS[issue.status])
            raise FailedPrecondition(f"{issue.key} is {issue.status}; it can go to {allowed}, not to {status}")
        if status == "in_progress" and issue.assignee_email is None:
            raise FailedPrecondition(f"{issue.key} is assigned to nobody; assign it first")
        if status != "done":
            return self.touched(issue, status=status)
        if blockers := self.open_blockers(issue_id):
            names = ", ".join(f"{blocker.key} ({blocker.status})" for blocker in blockers)
            raise FailedPrecondition(f"{issue.key} is blocked by {names}")
        return self.resolved(issue, "completed")

    @tool(effect="write")
    def reject_issue(self, issue_id: IssueId, reason: Remark) -> Issue:
        """Decide that an issue will not be done: it is done with the resolution `wont_do`, whatever its status was.

        Args:
            issue_id: The issue, which must not be done.
            reason: Why not; it becomes a comment.
        """
        issue = self.open_issue(issue_id)
        self._comment(issue, reason)
        return self.resolved(issue, "wont_do")

    @tool(effect="write")
    def mark_issue_duplicate(self, issue_id: IssueId, original_id: IssueId) -> Issue:
        """Close an issue as a duplicate: it is done, linked to the original, and its watchers watch the original.

        Args:
            issue_id: The duplicate, which must not be done.
            original_id: The issue that stays, which must not be a duplicate itself.
        """
        original = self.state.issues.get(original_id)
        issue = self.open_issue(issue_id)
        if issue_id == original_id:
            raise InvalidArguments("original_id: an issue can't be a duplicate of itself")
        if original.resolution == "duplicate":
            raise FailedPrecondition(f"{original.key} is a duplicate itself; name the issue that it duplicates")
        self.state.links.insert(kind="duplicates", source_id=issue_id, target_id=original_id)
        watchers = tuple(dict.fromkeys((*original.watchers, *issue.watchers)))
        if watchers != original.watchers:
            self.touched(original, watchers=watchers)
        return self.resolved(issue, "duplicate")

    @tool(effect="write")
    def reopen_issue(self, issue_id: IssueId, reason: Remark) -> Issue:
        """Take an issue that is done back to `todo`.

        It leaves a sprint that is closed, and one that was closed as a duplicate is no longer linked to the original.

        Args:
            issue_id: The issue.
            reason: Why it has to be looked at again; it becomes a comment.
        """
        issue = self.state.issues.get(issue_id)
        if issue.status != "done":
            raise FailedPrecondition(f"{issue.key} is {issue.status}, not done")
        self._comment(issue, reason)
        if issue.resolution == "duplicate":
            for link in self.state.links.where(kind="duplicates", source_id=issue_id):
                self.state.links.delete(link.id)
        if issue.sprint_id is not None and self.state.sprints.get(issue.sprint_id).status == "closed":
            issue = self.touched(issue, sprint_id=None)
        return self.touched(issue, status="todo", resolution=None, resolved_at=None)

    @tool(effect="write")
    def label_issue(self, issue_id: IssueId, label: Tag) -> Issue:
        """Put a label on an issue, whatever its status; it can carry ten.

        Args:
            issue_id: The issue.
            label: The label, kept in lower case.
        """
        issue = self.state.issues.get(issue_id)
        if label.lower() in issue.labels:
            raise FailedPrecondition(f"{issue.key} carries the label {label.lower()!r} already")
        return self.touched(issue, labels=labelled((*issue.labels, label)))

    @tool(effect="write")
    def unlabel_issue(self, issue_id: IssueId, label: Tag) -> Issue:
        """Take a label off an issue.

        Args:
            issue_id: The issue.
            label: A label that it carries, in any case.
        """
        issue = self.state.issues.get(issue_id)
        if label.lower() not in issue.labels:
            raise FailedPrecondition(f"{issue.key} does not carry the label {label.lower()!r}")
        return self.touched(issue, labels=tuple(item for item in issue.labels if item != label.lower()))

    # Links

    @tool(effect="write")
    def link_issues(self, source_id: IssueId, kind: Literal["blocks", "relates_to"], target_id: IssueId) -> IssueLink:
        """Link two issues. Duplicates are linked with `mark_issue_duplicate`.

        Args:
            source_id: The issue that blocks the other one, or relates to it.
            kind: `blocks`: the target can't be done before the source; neither may be done, and no circle may arise.
            target_id: The other issue; it may belong to another project.
        """
        source, target = self.state.issues.get(source_id), self.state.issues.get(target_id)
        if source_id == target_id:
            raise InvalidArguments("target_id: an issue can't be linked with itself")
        if kind == "blocks":
            self.open_issue(source_id)
            self.open_issue(target_id)
            if self._blocks(target_id, source_id):
                raise FailedPrecondition(f"{target.key} blocks {source.key} already, directly or through other issues")
        elif self.state.links.first(kind=kind, source_id=target_id, target_id=source_id) is not None:
            raise AlreadyExists(f"{target.key} and {source.key} are related already")
        return self.state.links.insert(kind=kind, source_id=source_id, target_id=target_id)

    @tool(effect="write")
    def unlink_issues(self, link_id: IssueLinkId) -> IssueLink:
        """Remove a link between two issues, other than that of a duplicate with its original.

        Args:
            link_id: The link, as `list_issue_links` shows it.
        """
        link = self.state.links.get(link_id)
        if link.kind == "duplicates":
            raise FailedPrecondition(f"{link_id} names a duplicate's original; reopen the duplicate instead")
        return self.state.links.delete(link_id)

    # Inner workings

    def _comment(self, issue: Issue, body: str) -> None:
        self.state.comments.insert(issue_id=issue.id, author_email=self.me(), body=body, created_at=self.now)

    def _blocks(self, source_id: str, target_id: str) -> bool:
        """Whether one issue blocks another, directly or through others."""
        seen: set[str] = set()
        ahead = [source_id]
        while ahead:
            current = ahead.pop()
            if current == target_id:
                return True
            if current not in seen:
                seen.add(current)
                ahead += [link.target_id for link in self.state.links.where(kind="blocks", source_id=current)]
        return False

    def _component_owner(self, component_id: str, project_id: str) -> str:
        component = self.state.components.get(component_id)
        if component.project_id != project_id:
            raise FailedPrecondition(f"{component_id} belongs to another project, {component.project_id}")
        return component.owner_email

    def _not_past(self, due_on: Day | None) -> None:
        if due_on is not None and due_on < self.today:
            raise FailedPrecondition(f"due_on: {due_on} is past; today is {self.today}")
