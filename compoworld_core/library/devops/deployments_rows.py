"""What a delivery platform holds: apps, their builds and releases, and what runs where."""

from __future__ import annotations

from typing import Annotated, Literal

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
    Test,
    Text,
    Timestamp,
    Title,
    Url,
    Username,
    table,
)

EngineerId = Annotated[str, Id("platform_engineer", prefix="eng")]
AppId = Annotated[str, Id("app", prefix="app")]
BuildId = Annotated[str, Id("build", prefix="bld")]
BuildLogId = Annotated[str, Id("build_log", prefix="log")]
ReleaseId = Annotated[str, Id("release", prefix="rel")]
EnvironmentId = Annotated[str, Id("environment", prefix="env")]
DeploymentId = Annotated[str, Id("deployment", prefix="dep")]
ApprovalId = Annotated[str, Id("deployment_approval", prefix="apr")]
FreezeId = Annotated[str, Id("freeze_window", prefix="frz")]

AppName = Annotated[str, Field(min_length=1, max_length=60, pattern=r"\S"), Semantic("app_name")]
Branch = Annotated[str, Field(min_length=1, max_length=120, pattern=r"\S"), Semantic("branch")]
Commit = Annotated[str, Field(pattern=r"^[0-9a-f]{7,40}$", examples=["9f2c41d07be3"]), Semantic("commit")]
Version = Annotated[str, Field(pattern=r"^\d{1,6}\.\d{1,6}\.\d{1,6}$"), Semantic("release_version")]
Reason = Annotated[str, Field(pattern=r"\S", max_length=2000), Semantic("text")]
"""A text that says something."""

Tier = Literal["development", "testing", "staging", "production"]
BuildStatus = Literal["queued", "running", "passed", "failed", "cancelled"]
DeploymentStatus = Literal[
    "pending_approval",
    "approved",
    "running",
    "succeeded",
    "failed",
    "rejected",
    "cancelled",
    "rolled_back",
]


class PlatformEngineer(Entity):
    """A colleague who can own apps and approve deployments."""

    id: EngineerId
    name: PersonName
    email: Email
    username: Username
    team: Annotated[str, Field(min_length=1, max_length=80), Semantic("department")]


class App(Entity):
    """An application with its repository."""

    id: AppId
    name: AppName
    project_name: ProjectName
    owner_email: Email
    repository_url: Url
    default_branch: Branch = "main"
    description: Text = ""
    status: Literal["active", "archived"] = "active"
    registered_on: Day


class Build(Entity):
    """One run of an app's pipeline; `number` counts the app's builds, `retry_of` is the build that it repeats."""

    id: BuildId
    app_id: AppId
    number: Annotated[Quantity, Field(ge=1)]
    branch: Branch
    commit: Commit
    status: BuildStatus = "queued"
    triggered_by: Email
    retry_of: BuildId | None = None
    queued_at: Timestamp
    started_at: Timestamp | None = None
    finished_at: Timestamp | None = None
    failure_reason: Reason | None = None


class BuildLog(Entity):
    """What a build printed, line after line."""

    id: BuildLogId
    build_id: BuildId
    text: Text = ""


class Release(Entity):
    """A passed build with a version, ready to be deployed. A withdrawn release is never deployed again."""

    id: ReleaseId
    app_id: AppId
    build_id: BuildId
    version: Version
    notes: Text = ""
    status: Literal["available", "withdrawn"] = "available"
    withdrawal_reason: Reason | None = None
    created_by: Email
    created_at: Timestamp


class Environment(Entity):
    """Where an app runs, and which release runs there now.

    Attributes:
        approver_emails: Who may approve deployments to it; without any, deployments need no approval.
        locked_by: Who locked it; nothing is deployed to a locked environment.
    """

    id: EnvironmentId
    app_id: AppId
    tier: Tier
    url: Url
    approver_emails: Annotated[tuple[Email, ...], Field(max_length=20)] = ()
    current_release_id: ReleaseId | None = None
    current_version: Version | None = None
    locked_by: Email | None = None
    lock_reason: Reason | None = None


class Deployment(Entity):
    """A release on its way to an environment, or what became of it."""

    id: DeploymentId
    app_id: AppId
    environment_id: EnvironmentId
    release_id: ReleaseId
    tier: Tier
    version: Version
    kind: Literal["deploy", "rollback"] = "deploy"
    status: DeploymentStatus
    requested_by: Email
    requested_at: Timestamp
    note: Text = ""
    approved_by: Email | None = None
    started_at: Timestamp | None = None
    finished_at: Timestamp | None = None
    outcome_note: Text = ""


class DeploymentApproval(Entity):
    """Somebody's decision on a deployment; it never changes."""

    id: ApprovalId
    deployment_id: DeploymentId
    decision: Literal["approved", "rejected"]
    decided_by: Email
    comment: Text = ""
    decided_at: Timestamp


class FreezeWindow(Entity):
    """A time in which no deployment to production starts: of one app, or of all where `app_id` is empty."""

    id: FreezeId
    name: Title
    reason: Text = ""
    app_id: AppId | None = None
    starts_at: Timestamp
    ends_at: Timestamp
    created_by: Email
    status: Literal["scheduled", "lifted"] = "scheduled"


class Readiness(Entity):
    """Whether a deployment can start now, and every reason why not."""

    deployment_id: DeploymentId
    is_ready: bool
    blockers: tuple[str, ...]


def _needs(field: str, statuses: list[str], message: str) -> Rule:
    return Rule(
        where=(Test(field="status", op="in", value=list(statuses)),),
        satisfies=(Test(field=field, op="ne"),),
        message=message,
    )


def _lacks(field: str, statuses: list[str], message: str) -> Rule:
    return Rule(
        where=(Test(field="status", op="in", value=list(statuses)),), satisfies=(Test(field=field),), message=message
    )


class DeploymentsState(State):
    """Tables of the delivery platform."""

    engineers: Table[PlatformEngineer] = table(unique=("email", "username"))
    apps: Table[App] = table(unique=("name",))
    builds: Table[Build] = table(
        unique=(("app_id", "number"),),
        rules=(
            _needs("finished_at", ["passed", "failed", "cancelled"], "a finished build needs its finishing time"),
            _lacks("finished_at", ["queued", "running"], "a build that is not finished has no finishing time"),
            _needs("failure_reason", ["failed"], "a failed build needs the reason"),
        ),
    )
    logs: Table[BuildLog] = table(unique=("build_id",))
    releases: Table[Release] = table(
        unique=("build_id", ("app_id", "version")),
        rules=(_needs("withdrawal_reason", ["withdrawn"], "a withdrawn release needs the reason"),),
    )
    environments: Table[Environment] = table(
        unique=(("app_id", "tier"),),
        rules=(
            Rule(
                where=(Test(field="locked_by", op="ne"),),
                satisfies=(Test(field="lock_reason", op="ne"),),
                message="a locked environment needs the reason",
            ),
        ),
    )
    deployments: Table[Deployment] = table(
        rules=(
            _needs("finished_at", ["succeeded", "failed", "rolled_back"], "a finished deployment needs its time"),
            _lacks("started_at", ["pending_approval", "approved", "rejected"], "this deployment has not started"),
        )
    )
    approvals: Table[DeploymentApproval] = table(unique=("deployment_id",))
    freezes: Table[FreezeWindow] = table(
        rules=(
            Rule(
                satisfies=(Test(field="starts_at", op="lt", other="ends_at"),),
                message="a freeze window ends after it starts",
            ),
        )
    )
