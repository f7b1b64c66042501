"""The rows of an issue tracker: projects, their issues, and everything that hangs on an issue."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from compoworld_core.services.sdk import (
    Day,
    Email,
    Entity,
    Field,
    Id,
    PersonName,
    ProjectName,
    Quantity,
    Rule,
    Semantic,
    State,
    Table,
    Tag,
    Test,
    Text,
    Timestamp,
    Title,
    Username,
    table,
)

TrackerUserId = Annotated[str, Id("tracker_user", prefix="tus")]
ProjectId = Annotated[str, Id("tracker_project", prefix="prj")]
ComponentId = Annotated[str, Id("project_component", prefix="cmp")]
SprintId = Annotated[str, Id("sprint", prefix="spr")]
IssueId = Annotated[str, Id("issue", prefix="iss")]
IssueLinkId = Annotated[str, Id("issue_link", prefix="lnk")]
IssueCommentId = Annotated[str, Id("issue_comment", prefix="icm")]
WorkEntryId = Annotated[str, Id("work_entry", prefix="wrk")]

ProjectCode = Annotated[str, Field(min_length=1, max_length=20), Semantic("project_code")]
IssueKey = Annotated[str, Field(min_length=1, max_length=40), Semantic("issue_key")]
"""What people call an issue: the project's code and a number, `AUR-42-7`."""
ComponentName = Annotated[str, Field(pattern=r"\S", max_length=80), Semantic("component_name")]
SprintName = Annotated[str, Field(pattern=r"\S", max_length=120), Semantic("sprint_name")]
Remark = Annotated[str, Field(pattern=r"\S", max_length=20_000), Semantic("text")]
"""A text that says something."""
Estimate = Annotated[int, Field(ge=1, le=2000)]
Minutes = Annotated[int, Field(ge=1, le=1440)]

IssueKind = Literal["bug", "task", "story"]
IssueStatus = Literal["todo", "in_progress", "in_review", "done"]
IssuePriority = Literal["low", "medium", "high", "critical"]
Resolution = Literal["completed", "wont_do", "duplicate"]
LinkKind = Literal["blocks", "duplicates", "relates_to"]
SprintStatus = Literal["planned", "active", "closed"]

ISSUE_PRIORITIES: Final[tuple[IssuePriority, ...]] = ("low", "medium", "high", "critical")
TRANSITIONS: Final[dict[IssueStatus, tuple[IssueStatus, ...]]] = {
    "todo": ("in_progress",),
    "in_progress": ("in_review", "todo"),
    "in_review": ("done", "in_progress"),
    "done": (),
}
"""Where an issue may go from each status; out of `done` it only comes by being reopened."""
MAX_LABELS = 10
MAX_MINUTES_A_DAY = 1440


class TrackerUser(Entity):
    """A colleague who can report, work on and watch issues."""

    id: TrackerUserId
    name: PersonName
    email: Email
    username: Username


class TrackedProject(Entity):
    """A project whose work is tracked."""

    id: ProjectId
    name: ProjectName
    code: ProjectCode
    lead_email: Email


class ProjectOverview(Entity):
    """A project with its issues in numbers."""

    id: ProjectId
    name: ProjectName
    code: ProjectCode
    lead_email: Email
    todo: Quantity
    in_progress: Quantity
    in_review: Quantity
    done: Quantity
    blocked: Quantity
    overdue: Quantity
    active_sprint_id: SprintId | None


class ProjectComponent(Entity):
    """A part of a project; its owner gets new issues that name nobody."""

    id: ComponentId
    project_id: ProjectId
    name: ComponentName
    owner_email: Email


class Sprint(Entity):
    """A stretch of a project's work. A project has at most one that is active."""

    id: SprintId
    project_id: ProjectId
    name: SprintName
    goal: Text = ""
    status: SprintStatus = "planned"
    starts_on: Day
    ends_on: Day
    closed_on: Day | None = None


class Issue(Entity):
    """A bug, task or story."""

    id: IssueId
    project_id: ProjectId
    key: IssueKey
    kind: IssueKind
    title: Title
    description: Text = ""
    status: IssueStatus = "todo"
    priority: IssuePriority = "medium"
    reporter_email: Email
    assignee_email: Email | None = None
    component_id: ComponentId | None = None
    sprint_id: SprintId | None = None
    estimate_hours: Estimate | None = None
    due_on: Day | None = None
    labels: tuple[Tag, ...] = ()
    watchers: tuple[Email, ...] = ()
    created_at: Timestamp
    updated_at: Timestamp
    resolved_at: Timestamp | None = None
    resolution: Resolution | None = None


class IssueLink(Entity):
    """A relation between two issues: the source blocks, duplicates or relates to the target."""

    id: IssueLinkId
    kind: LinkKind
    source_id: IssueId
    target_id: IssueId


class LinkedIssue(Entity):
    """A link as seen from one of its issues, with the issue at the other end."""

    id: IssueLinkId
    relation: Literal["blocks", "is_blocked_by", "duplicates", "is_duplicated_by", "relates_to"]
    issue_id: IssueId
    key: IssueKey
    title: Title
    status: IssueStatus
    assignee_email: Email | None


class IssueComment(Entity):
    """Something said on an issue."""

    id: IssueCommentId
    issue_id: IssueId
    author_email: Email
    body: Remark
    created_at: Timestamp
    edited_at: Timestamp | None = None


class WorkEntry(Entity):
    """Time that somebody spent on an issue."""

    id: WorkEntryId
    issue_id: IssueId
    author_email: Email
    minutes: Minutes
    worked_on: Day
    note: Text = ""


class IssueEffort(Entity):
    """Estimated and spent time of an issue."""

    issue_id: IssueId
    key: IssueKey
    estimate_hours: Estimate | None
    spent_minutes: Quantity
    remaining_minutes: Quantity | None
    is_over_estimate: bool
    people: tuple[Email, ...]


class SprintReport(Entity):
    """A sprint in numbers."""

    id: SprintId
    project_id: ProjectId
    name: SprintName
    status: SprintStatus
    ends_on: Day
    issues: Quantity
    done: Quantity
    unfinished: Quantity
    blocked: Quantity
    estimated_hours: Quantity
    spent_minutes: Quantity
    percent_done: Quantity


class SprintClosed(Entity):
    """What closing a sprint did."""

    sprint: Sprint
    finished: Quantity
    moved: tuple[IssueId, ...]
    moved_to: SprintId | None


_IS_DONE = Test(field="status", value="done")


class TrackerState(State):
    """Tables of the issue tracker."""

    users: Table[TrackerUser] = table(unique=("email", "username"))
    projects: Table[TrackedProject] = table(unique=("name", "code"))
    components: Table[ProjectComponent] = table(unique=(("project_id", "name"),))
    sprints: Table[Sprint] = table(
        unique=(("project_id", "name"),),
        rules=(
            Rule(
                satisfies=(Test(field="ends_on", op="ge", other="starts_on"),),
                message="a sprint can't end before it starts",
            ),
            Rule(
                where=(Test(field="status", value="closed"),),
                satisfies=(Test(field="closed_on", op="ne"),),
                message="a closed sprint needs the day on which it was closed",
            ),
        ),
    )
    issues: Table[Issue] = table(
        unique=("key",),
        rules=(
            Rule(
                where=(_IS_DONE,),
                satisfies=(Test(field="resolution", op="ne"), Test(field="resolved_at", op="ne")),
                message="an issue that is done needs a resolution and the time at which it was resolved",
            ),
            Rule(
                where=(Test(field="status", op="ne", value="done"),),
                satisfies=(Test(field="resolution"), Test(field="resolved_at")),
                message="an issue that is not done has no resolution",
            ),
            Rule(
                where=(Test(field="status", op="in", value=["in_progress", "in_review"]),),
                satisfies=(Test(field="assignee_email", op="ne"),),
                message="an issue in progress or in review needs an assignee",
            ),
        ),
    )
    links: Table[IssueLink] = table(
        unique=(("kind", "source_id", "target_id"),),
        rules=(
            Rule(
                satisfies=(Test(field="source_id", op="ne", other="target_id"),),
                message="an issue can't be linked with itself",
            ),
        ),
    )
    comments: Table[IssueComment]
    work: Table[WorkEntry]
