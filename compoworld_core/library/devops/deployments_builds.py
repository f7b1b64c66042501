"""Apps and their builds: a build is queued, runs, and then has passed, failed or been cancelled for good."""

from __future__ import annotations

from typing import Any, Literal

from compoworld_core.library.devops.deployments_desk import UNDER_WAY, Platform
from compoworld_core.library.devops.deployments_rows import (
    App,
    AppId,
    AppName,
    Branch,
    Build,
    BuildId,
    BuildLog,
    BuildStatus,
    Commit,
    PlatformEngineer,
    Reason,
)
from compoworld_core.library.filters import changes, given
from compoworld_core.services.sdk import (
    Cursor,
    Email,
    FailedPrecondition,
    InvalidArguments,
    Limit,
    LimitExceeded,
    NotFound,
    Page,
    ProjectName,
    Query,
    Text,
    Url,
    paginate,
    tool,
)

MAX_UNFINISHED = 5
"""Builds of one app that may be queued or running at the same time."""

MAX_LOG = 20_000
"""Characters of a build's log."""


class Builds(Platform):
    """Tools on colleagues, apps and builds."""

    @tool(effect="read")
    def list_platform_engineers(
        self, name: Query | None = None, limit: Limit = 20, cursor: Cursor | None = None
    ) -> Page[PlatformEngineer]:
        """List the colleagues who can own apps and approve deployments, in alphabetical order of their names.

        Args:
            name: Part of the person's name, in any case.
            limit: Most colleagues to return.
            cursor: `next_cursor` of the previous page.
        """
        part = (name or "").casefold()
        rows = self.state.engineers.where(lambda row: part in row.name.casefold())
        return paginate(sorted(rows, key=lambda row: row.name.casefold()), limit, cursor)

    # Apps

    @tool(effect="read")
    def list_apps(
        self,
        name: Query | None = None,
        project_name: ProjectName | None = None,
        owner_email: Email | None = None,
        include_archived: bool = False,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[App]:
        """List apps that satisfy all given filters, in alphabetical order of their names.

        Args:
            name: Part of the app's name, in any case.
            project_name: Only apps of this project, exactly as it is written.
            owner_email: Only apps of this colleague.
            include_archived: Whether to return archived apps too.
            limit: Most apps to return.
            cursor: `next_cursor` of the previous page.
        """
        part = (name or "").casefold()
        rows = self.state.apps.where(
            lambda row: part in row.name.casefold() and (include_archived or row.status == "active"),
            **given(project_name=project_name, owner_email=owner_email),
        )
        return paginate(sorted(rows, key=lambda row: row.name.casefold()), limit, cursor)

    @tool(effect="read")
    def get_app(self, app_id: AppId) -> App:
        """Get an app.

        Args:
            app_id: The app.
        """
        return self.state.apps.get(app_id)

    @tool(effect="write")
    def register_app(
        self,
        name: AppName,
        project_name: ProjectName,
        repository_url: Url,
        owner_email: Email | None = None,
        default_branch: Branch = "main",
        description: Text = "",
    ) -> App:
        """Register an app with its repository; its name must not be taken. It has no environments yet.

        Args:
            name: Short name, e.g. "aurora-api".
            project_name: Project that the app belongs to.
            repository_url: Where its source code is.
            owner_email: Colleague who owns it; you, if left out.
            default_branch: Branch that is built unless told otherwise.
            description: What the app does.
        """
        return self.state.apps.insert(
            name=name,
            project_name=project_name,
            owner_email=self.engineer(owner_email or self.user.email),
            repository_url=repository_url,
            default_branch=default_branch,
            description=description,
            registered_on=self.today,
        )

    @tool(effect="write")
    def update_app(
        self,
        app_id: AppId,
        owner_email: Email | None = None,
        project_name: ProjectName | None = None,
        default_branch: Branch | None = None,
        description: Text | None = None,
    ) -> App:
        """Change the given fields of an active app. Only its owner may do this.

        Args:
            app_id: The app.
            owner_email: Colleague who owns it from now on.
            project_name: Project that it belongs to.
            default_branch: Branch that is built unless told otherwise.
            description: What the app does.
        """
        self.owned_app(app_id)
        owner = None if owner_email is None else self.engineer(owner_email)
        return self.state.apps.update(
            app_id,
            **changes(
                owner_email=owner, project_name=project_name, default_branch=default_branch, description=description
            ),
        )

    @tool(effect="write")
    def archive_app(self, app_id: AppId) -> App:
        """Archive an app, for good. Only its owner may do this, once no build and no deployment of it is unfinished.

        Args:
            app_id: The app.
        """
        self.owned_app(app_id)
        busy = [row.id for row in self._unfinished(app_id)]
        busy += [row.id for row in self.state.deployments.where(lambda row: row.status in UNDER_WAY, app_id=app_id)]
        if busy:
            raise FailedPrecondition(f"{app_id} still has unfinished work: {', '.join(busy)}")
        return self.state.apps.update(app_id, status="archived")

    # Builds

    @tool(effect="read")
    def list_builds(
        self,
        app_id: AppId | None = None,
        status: BuildStatus | None = None,
        branch: Branch | None = None,
        commit: Commit | None = None,
        triggered_by: Email | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Build]:
        """List builds that satisfy all given filters, the one queued last first.

        Args:
            app_id: Only builds of this app.
            status: Only builds with this status.
            branch: Only builds of exactly this branch.
            commit: Only builds whose commit starts with these digits.
            triggered_by: Only builds that this colleague triggered.
            limit: Most builds to return.
            cursor: `next_cursor` of the previous page.
        """
        if app_id is not None:
            self.state.apps.get(app_id)
        rows = self.state.builds.where(
            lambda row: row.commit.startswith(commit or ""),
            **given(app_id=app_id, status=status, branch=branch, triggered_by=triggered_by),
        )
        return paginate(sorted(rows, key=lambda row: row.queued_at)[::-1], limit, cursor)

    @tool(effect="read")
    def get_build(self, build_id: BuildId) -> Build:
        """Get a build.

        Args:
            build_id: The build.
        """
        return self.state.builds.get(build_id)

    @tool(effect="read")
    def get_build_log(self, build_id: BuildId) -> BuildLog:
        """Get what a build printed so far.

        Args:
            build_id: The build.
        """
        log = self.state.logs.first(build_id=self.state.builds.get(build_id).id)
        if log is None:
            raise NotFound(f"{build_id} has no log")
        return log

    @tool(effect="write")
    def trigger_build(self, app_id: AppId, branch: Branch | None = None, commit: Commit | None = None) -> Build:
        """Queue a build of an active app; an app has five queued or running builds at most.

        Args:
            app_id: The app.
            branch: Branch to build; the app's default branch, if left out.
            commit: Commit to build; the head of the branch, if left out.
        """
        app = self.active_app(app_id)
        return self._queue(
            app,
            branch=branch or app.default_branch,
            commit=commit or f"{self.rng.getrandbits(48):012x}",
            note=f"Queued by {self.user.email}",
        )

    @tool(effect="write")
    def retry_build(self, build_id: BuildId) -> Build:
        """Queue a failed or cancelled build again, as a new build of the same commit.

        Args:
            build_id: The build to repeat, which must not have an unfinished or passed retry.
        """
        build = self.state.builds.get(build_id)
        if build.status not in ("failed", "cancelled"):
            raise FailedPrecondition(f"{build_id} is {build.status}; only a failed or cancelled build can be retried")
        for other in self.state.builds.where(retry_of=build_id):
            if other.status in ("queued", "running", "passed"):
                raise FailedPrecondition(f"{build_id} was retried already: {other.id} is {other.status}")
        return self._queue(
            self.active_app(build.app_id),
            branch=build.branch,
            commit=build.commit,
            retry_of=build_id,
            note=f"Retry of build {build.number}, queued by {self.user.email}",
        )

    @tool(effect="write")
    def start_build(self, build_id: BuildId) -> Build:
        """Mark a queued build as running, as a runner does that picks it up.

        Args:
            build_id: The build.
        """
        self._in_status(build_id, "queued")
        self._print(build_id, "Started")
        return self.state.builds.update(build_id, status="running", started_at=self.now)

    @tool(effect="write")
    def append_build_log(self, build_id: BuildId, line: Reason) -> BuildLog:
        """Add a line to the log of a running build; a log has 20,000 characters at most.

        Args:
            build_id: The build.
            line: What to add.
        """
        self._in_status(build_id, "running")
        return self._print(build_id, line, MAX_LOG)

    @tool(effect="write")
    def finish_build(
        self, build_id: BuildId, outcome: Literal["passed", "failed"], failure_reason: Reason | None = None
    ) -> Build:
        """Record how a running build ended.

        Args:
            build_id: The build.
            outcome: How it ended.
            failure_reason: Why it failed; required for failed builds and not accepted for passed ones.
        """
        self._in_status(build_id, "running")
        if (outcome == "failed") != (failure_reason is not None):
            raise InvalidArguments("failure_reason: give it for a failed build, and only for one")
        self._print(build_id, f"Finished: {outcome}" if failure_reason is None else f"Failed: {failure_reason}")
        return self.state.builds.update(build_id, status=outcome, finished_at=self.now, failure_reason=failure_reason)

    @tool(effect="write")
    def cancel_build(self, build_id: BuildId) -> Build:
        """Cancel a queued or running build. Only whoever triggered it or the app's owner may do this.

        Args:
            build_id: The build.
        """
        build = self.state.builds.get(build_id)
        if build.triggered_by != self.user.email:
            self.require_owner(self.state.apps.get(build.app_id))
        if build.status not in ("queued", "running"):
            raise FailedPrecondition(f"{build_id} is {build.status} already")
        self._print(build_id, f"Cancelled by {self.user.email}")
        return self.state.builds.update(build_id, status="cancelled", finished_at=self.now)

    def _unfinished(self, app_id: str) -> tuple[Build, ...]:
        return self.state.builds.where(lambda row: row.status in ("queued", "running"), app_id=app_id)

    def _queue(self, app: App, *, note: str, **fields: Any) -> Build:
        if len(self._unfinished(app.id)) >= MAX_UNFINISHED:
            raise LimitExceeded(f"{app.name} has {MAX_UNFINISHED} queued or running builds; wait or cancel one")
        number = max((row.number for row in self.state.builds.where(app_id=app.id)), default=0) + 1
        build = self.state.builds.insert(
            app_id=app.id, number=number, triggered_by=self.user.email, queued_at=self.now, **fields
        )
        self._print(build.id, note)
        return build

    def _in_status(self, build_id: str, status: BuildStatus) -> Build:
        build = self.state.builds.get(build_id)
        if build.status != status:
            raise FailedPrecondition(f"{build_id} is {build.status}, not {status}")
        return build

    def _print(self, build_id: str, line: str, most: int = 2 * MAX_LOG) -> BuildLog:
        """Add a line to the log. Only what callers print is limited: a full log must not keep a build from ending."""
        line = f"{self.now:%H:%M:%S} {line}"
        log = self.state.logs.first(build_id=build_id)
        if log is None:
            return self.state.logs.insert(build_id=build_id, text=line)
        if len(log.text) + len(line) >= most:
            raise LimitExceeded(f"the log of {build_id} would have more than {most} characters")
        return self.state.logs.update(log.id, text=f"{log.text}\n{line}")
