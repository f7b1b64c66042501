"""The issue tracker: what is said on issues, who watches them, and the time that they take."""

from __future__ import annotations

import random
from datetime import datetime
from typing import TYPE_CHECKING

from compoworld_core.library.devops import tracker_seed
from compoworld_core.library.devops.tracker_issues import Issues
from compoworld_core.library.devops.tracker_lookup import Lookup
from compoworld_core.library.devops.tracker_rows import (
    MAX_MINUTES_A_DAY,
    Issue,
    IssueComment,
    IssueCommentId,
    IssueId,
    Minutes,
    Remark,
    TrackerState,
    WorkEntry,
    WorkEntryId,
)
from compoworld_core.library.devops.tracker_sprints import Sprints
from compoworld_core.services.sdk import (
    Day,
    Email,
    FailedPrecondition,
    LimitExceeded,
    PermissionDenied,
    Text,
    tool,
)

if TYPE_CHECKING:
    from compoworld_core.services.universe import Universe


class Tracker(Lookup, Issues, Sprints):
    """Bugs, tasks and stories of our projects: workflow, blockers, sprints, comments, watchers and logged work."""

    domain = "devops"

    # Comments

    @tool(effect="write")
    def comment_on_issue(self, issue_id: IssueId, body: Remark) -> IssueComment:
        """Comment on an issue in your name, whatever its status.

        Args:
            issue_id: The issue.
            body: Text of the comment.
        """
        self.state.issues.get(issue_id)
        return self.state.comments.insert(issue_id=issue_id, author_email=self.me(), body=body, created_at=self.now)

    @tool(effect="write")
    def edit_issue_comment(self, comment_id: IssueCommentId, body: Remark) -> IssueComment:
        """Replace the text of a comment that you wrote.

        Args:
            comment_id: The comment.
            body: New text.
        """
        comment = self.state.comments.get(comment_id)
        if comment.author_email != self.me():
            raise PermissionDenied(f"{comment_id} was written by {comment.author_email}; only they can change it")
        if comment.body == body:
            raise FailedPrecondition(f"{comment_id} has this text already")
        return self.state.comments.update(comment_id, body=body, edited_at=self.now)

    @tool(effect="write")
    def delete_issue_comment(self, comment_id: IssueCommentId) -> IssueComment:
        """Delete a comment that you wrote, or any comment in a project that you lead.

        Args:
            comment_id: The comment.
        """
        comment = self.state.comments.get(comment_id)
        project = self.state.projects.get(self.state.issues.get(comment.issue_id).project_id)
        if self.me() not in (comment.author_email, project.lead_email):
            raise PermissionDenied(f"only {comment.author_email} and {project.lead_email} can delete {comment_id}")
        return self.state.comments.delete(comment_id)

    # Watchers

    @tool(effect="write")
    def watch_issue(self, issue_id: IssueId, watcher_email: Email | None = None) -> Issue:
        """Add a watcher to an issue.

        Args:
            issue_id: The issue.
            watcher_email: E-mail address of a colleague; you, if left out.
        """
        issue = self.state.issues.get(issue_id)
        watcher = self.member(watcher_email or self.me())
        if watcher in issue.watchers:
            raise FailedPrecondition(f"{watcher} watches {issue.key} already")
        return self.state.issues.update(issue_id, watchers=(*issue.watchers, watcher))

    @tool(effect="write")
    def unwatch_issue(self, issue_id: IssueId, watcher_email: Email | None = None) -> Issue:
        """Remove a watcher from an issue.

        Args:
            issue_id: The issue.
            watcher_email: E-mail address of somebody who watches it; you, if left out.
        """
        issue = self.state.issues.get(issue_id)
        watcher = (watcher_email or self.me()).lower()
        if watcher not in issue.watchers:
            raise FailedPrecondition(f"{watcher} does not watch {issue.key}")
        return self.state.issues.update(issue_id, watchers=tuple(item for item in issue.watchers if item != watcher))

    # Work

    @tool(effect="write")
    def log_work(self, issue_id: IssueId, minutes: Minutes, worked_on: Day | None = None, note: Text = "") -> WorkEntry:
        """Record time that you spent on an issue. All your entries of a day come to 24 hours at most.

        Args:
            issue_id: The issue.
            minutes: How long it took.
            worked_on: Day of the work, not in the future; today, if left out.
            note: What was done.
        """
        self.state.issues.get(issue_id)
        day = worked_on or self.today
        if day > self.today:
            raise FailedPrecondition(f"worked_on: {day} has not come yet; today is {self.today}")
        total = minutes + sum(row.minutes for row in self.state.work.where(author_email=self.me(), worked_on=day))
        if total > MAX_MINUTES_A_DAY:
            raise LimitExceeded(f"your work on {day} would come to {total} minutes, more than a day has")
        return self.state.work.insert(
            issue_id=issue_id, author_email=self.me(), minutes=minutes, worked_on=day, note=note
        )

    @tool(effect="write")
    def delete_work_entry(self, entry_id: WorkEntryId) -> WorkEntry:
        """Delete an entry of your own work.

        Args:
            entry_id: The entry.
        """
        entry = self.state.work.get(entry_id)
        if entry.author_email != self.me():
            raise PermissionDenied(f"{entry_id} is work of {entry.author_email}; only they can delete it")
        return self.state.work.delete(entry_id)

    @classmethod
    def populate(cls, state: TrackerState, universe: Universe, rng: random.Random, start: datetime) -> None:
        """A tracker in use: every project of the universe with components, sprints and issues in every status."""
        tracker_seed.populate(state, universe, rng, start)
