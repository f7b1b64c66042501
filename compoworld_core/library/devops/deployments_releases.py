"""Releases, the environments in which they run, and the times in which nothing may start."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Literal

from compoworld_core.library.devops.deployments_desk import Platform, version_key
from compoworld_core.library.devops.deployments_rows import (
    AppId,
    BuildId,
    Environment,
    EnvironmentId,
    FreezeId,
    FreezeWindow,
    Reason,
    Release,
    ReleaseId,
    Tier,
    Version,
)
from compoworld_core.library.filters import given
from compoworld_core.services.sdk import (
    Cursor,
    Email,
    FailedPrecondition,
    Field,
    InvalidArguments,
    Limit,
    Page,
    PermissionDenied,
    Text,
    Timestamp,
    Title,
    Url,
    paginate,
    tool,
)

LONGEST_FREEZE = timedelta(days=60)

Approvers = Annotated[tuple[Email, ...], Field(max_length=20)]


class Releases(Platform):
    """Tools on releases, environments and freeze windows."""

    @tool(effect="read")
    def list_releases(
        self,
        app_id: AppId | None = None,
        status: Literal["available", "withdrawn"] | None = None,
        version: Version | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Release]:
        """List releases that satisfy all given filters, the one created last first.

        Args:
            app_id: Only releases of this app.
            status: Only releases with this status.
            version: Only releases with exactly this version, e.g. "2.4.1".
            limit: Most releases to return.
            cursor: `next_cursor` of the previous page.
        """
        if app_id is not None:
            self.state.apps.get(app_id)
        rows = self.state.releases.where(**given(app_id=app_id, status=status, version=version))
        return paginate(sorted(rows, key=lambda row: row.created_at)[::-1], limit, cursor)

    @tool(effect="read")
    def get_release(self, release_id: ReleaseId) -> Release:
        """Get a release with its notes.

        Args:
            release_id: The release.
        """
        return self.state.releases.get(release_id)

    @tool(effect="write")
    def create_release(
        self, build_id: BuildId, notes: Reason, bump: Literal["major", "minor", "patch"] = "minor"
    ) -> Release:
        """Make a release of a passed build; it gets the version after the app's highest one.

        Args:
            build_id: The build, which must have passed, be newer than the build of every release of the app, and have
                no release yet.
            notes: What is new, for the people who use the app.
            bump: Which part of the version goes up; the parts after it become 0.
        """
        build = self.state.builds.get(build_id)
        app = self.active_app(build.app_id)
        if build.status != "passed":
            raise FailedPrecondition(f"{build_id} is {build.status}; only a passed build can be released")
        earlier = self.state.releases.where(app_id=app.id)
        newest = max((self.state.builds.get(row.build_id).number for row in earlier), default=0)
        if build.number <= newest:
            raise FailedPrecondition(f"build {newest} of {app.name} was released already; {build.number} isn't newer")
        major, minor, patch = max((version_key(row.version) for row in earlier), default=(0, 0, 0))
        version = {
            "major": f"{major + 1}.0.0",
            "minor": f"{major}.{minor + 1}.0",
            "patch": f"{major}.{minor}.{patch + 1}",
        }[bump]
        return self.state.releases.insert(
            app_id=app.id,
            build_id=build_id,
            version=version,
            notes=notes,
            created_by=self.user.email,
            created_at=self.now,
        )

    @tool(effect="write")
    def update_release_notes(self, release_id: ReleaseId, notes: Reason) -> Release:
        """Replace the notes of an available release.

        Args:
            release_id: The release.
            notes: What is new, for the people who use the app.
        """
        return self.state.releases.update(self._available(release_id).id, notes=notes)

    @tool(effect="write")
    def withdraw_release(self, release_id: ReleaseId, reason: Reason) -> Release:
        """Withdraw a release for good, so that nobody deploys it or rolls back to it. It must not run anywhere now.

        Only whoever created it or the app's owner may do this.

        Args:
            release_id: The release.
            reason: What is wrong with it.
        """
        release = self._available(release_id)
        if release.created_by != self.user.email:
            self.require_owner(self.state.apps.get(release.app_id))
        running = self.state.environments.where(current_release_id=release_id)
        if running:
            where = ", ".join(f"{row.tier} ({row.id})" for row in running)
            raise FailedPrecondition(f"{release_id} still runs in {where}; roll back or deploy another one first")
        arriving = self.state.deployments.first(release_id=release_id, status="running")
        if arriving is not None:
            raise FailedPrecondition(f"{arriving.id} is deploying {release_id} now; let it finish first")
        return self.state.releases.update(release_id, status="withdrawn", withdrawal_reason=reason)

    def _available(self, release_id: str) -> Release:
        release = self.state.releases.get(release_id)
        if release.status == "withdrawn":
            raise FailedPrecondition(f"{release_id} was withdrawn: {release.withdrawal_reason}")
        return release

    # Environments

    @tool(effect="read")
    def list_environments(
        self,
        app_id: AppId | None = None,
        tier: Tier | None = None,
        approver_email: Email | None = None,
        locked_only: bool = False,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Environment]:
        """List environments that satisfy all given filters, with the release that runs there, oldest first.

        Args:
            app_id: Only environments of this app.
            tier: Only environments of this tier.
            approver_email: Only environments whose deployments this colleague may approve.
            locked_only: Whether to leave out environments that are not locked.
            limit: Most environments to return.
            cursor: `next_cursor` of the previous page.
        """
        if app_id is not None:
            self.state.apps.get(app_id)
        approver = approver_email and approver_email.lower()
        rows = self.state.environments.where(
            lambda row: (
                (approver is None or approver in row.approver_emails) and (row.locked_by is not None or not locked_only)
            ),
            **given(app_id=app_id, tier=tier),
        )
        return paginate(rows, limit, cursor)

    @tool(effect="read")
    def get_environment(self, environment_id: EnvironmentId) -> Environment:
        """Get an environment with the release that runs there, its approvers and its lock.

        Args:
            environment_id: The environment.
        """
        return self.state.environments.get(environment_id)

    @tool(effect="read")
    def list_rollback_targets(
        self, environment_id: EnvironmentId, limit: Limit = 20, cursor: Cursor | None = None
    ) -> Page[Release]:
        """List the releases to which an environment can be rolled back, newest version first.

        These are older than the current one, ran there successfully, and were not withdrawn or rolled back.

        Args:
            environment_id: The environment.
            limit: Most releases to return.
            cursor: `next_cursor` of the previous page.
        """
        return paginate(self.rollback_targets(self.state.environments.get(environment_id)), limit, cursor)

    @tool(effect="write")
    def create_environment(self, app_id: AppId, tier: Tier, url: Url, approver_emails: Approvers = ()) -> Environment:
        """Give an app an environment of a tier that it doesn't have yet; nothing runs there at first.

        Args:
            app_id: The app, which must be active.
            tier: The tier.
            url: Where the app will answer.
            approver_emails: Colleagues who may approve deployments to it. Production has at least one: the app's owner,
                if left out. Other tiers need no approval, if left out.
        """
        app = self.active_app(app_id)
        approvers = self._approvers(approver_emails)
        if tier == "production" and not approvers:
            approvers = (app.owner_email,)
        return self.state.environments.insert(app_id=app_id, tier=tier, url=url, approver_emails=approvers)

    @tool(effect="write")
    def set_environment_approvers(self, environment_id: EnvironmentId, approver_emails: Approvers) -> Environment:
        """Replace the colleagues who may approve deployments to an environment. Only the app's owner may do this.

        Args:
            environment_id: The environment.
            approver_emails: All approvers from now on; production needs at least one.
        """
        environment = self.state.environments.get(environment_id)
        self.owned_app(environment.app_id)
        approvers = self._approvers(approver_emails)
        if environment.tier == "production" and not approvers:
            raise InvalidArguments("approver_emails: production needs at least one approver")
        return self.state.environments.update(environment_id, approver_emails=approvers)

    @tool(effect="write")
    def lock_environment(self, environment_id: EnvironmentId, reason: Reason) -> Environment:
        """Lock an environment: no deployment to it is requested or started until it is unlocked.

        Args:
            environment_id: The environment.
            reason: Why nothing may change there.
        """
        environment = self.state.environments.get(environment_id)
        if environment.locked_by is not None:
            raise FailedPrecondition(f"{environment_id} is locked by {environment.locked_by} already")
        return self.state.environments.update(environment_id, locked_by=self.user.email, lock_reason=reason)

    @tool(effect="write")
    def unlock_environment(self, environment_id: EnvironmentId) -> Environment:
        """Unlock an environment. Only whoever locked it or the app's owner may do this.

        Args:
            environment_id: The environment.
        """
        environment = self.state.environments.get(environment_id)
        if environment.locked_by is None:
            raise FailedPrecondition(f"{environment_id} is not locked")
        if environment.locked_by != self.user.email:
            self.require_owner(self.state.apps.get(environment.app_id))
        return self.state.environments.update(environment_id, locked_by=None, lock_reason=None)

    def _approvers(self, emails: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(self.engineer(email) for email in emails))

    # Freeze windows

    @tool(effect="read")
    def list_freeze_windows(
        self,
        app_id: AppId | None = None,
        active_at: Timestamp | None = None,
        include_lifted: bool = False,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[FreezeWindow]:
        """List freeze windows, the one that starts first first. No deployment to production starts in one.

        Args:
            app_id: Only windows that hold for this app: its own and those for all apps.
            active_at: Only windows that hold at this time.
            include_lifted: Whether to return lifted windows too.
            limit: Most windows to return.
            cursor: `next_cursor` of the previous page.
        """
        if app_id is not None:
            self.state.apps.get(app_id)
        rows = self.state.freezes.where(
            lambda row: (
                (app_id is None or row.app_id in (None, app_id))
                and (include_lifted or row.status == "scheduled")
                and (active_at is None or row.starts_at <= active_at < row.ends_at)
            )
        )
        return paginate(sorted(rows, key=lambda row: row.starts_at), limit, cursor)

    @tool(effect="read")
    def get_freeze_window(self, freeze_id: FreezeId) -> FreezeWindow:
        """Get a freeze window.

        Args:
            freeze_id: The freeze window.
        """
        return self.state.freezes.get(freeze_id)

    @tool(effect="write")
    def schedule_freeze_window(
        self, name: Title, starts_at: Timestamp, ends_at: Timestamp, app_id: AppId | None = None, reason: Text = ""
    ) -> FreezeWindow:
        """Schedule a time in which no deployment to production starts. Rollbacks stay possible.

        Args:
            name: What it is called.
            starts_at: When it starts.
            ends_at: When it ends: after it starts, not in the past, and at most 60 days later.
            app_id: The app for which it holds; all apps, if left out.
            reason: Why nothing may change then.
        """
        if app_id is not None:
            self.active_app(app_id)
        if ends_at <= starts_at:
            raise InvalidArguments("ends_at: a freeze window ends after it starts")
        if ends_at <= self.now:
            raise FailedPrecondition(f"ends_at: {ends_at.isoformat()} is past; it is {self.now.isoformat()}")
        if ends_at - starts_at > LONGEST_FREEZE:
            raise InvalidArguments(f"ends_at: a freeze window lasts {LONGEST_FREEZE.days} days at most")
        return self.state.freezes.insert(
            name=name,
            reason=reason,
            app_id=app_id,
            starts_at=starts_at,
            ends_at=ends_at,
            created_by=self.user.email,
        )

    @tool(effect="write")
    def lift_freeze_window(self, freeze_id: FreezeId) -> FreezeWindow:
        """End a freeze window early, or call it off. Only whoever created it may do this.

        Args:
            freeze_id: The freeze window, which must not be over.
        """
        freeze = self.state.freezes.get(freeze_id)
        if freeze.created_by != self.user.email:
            raise PermissionDenied(f"only {freeze.created_by}, who created {freeze_id}, may lift it")
        if freeze.status == "lifted":
            raise FailedPrecondition(f"{freeze_id} was lifted already")
        if freeze.ends_at <= self.now:
            raise FailedPrecondition(f"{freeze_id} ended on {freeze.ends_at.isoformat()}")
        return self.state.freezes.update(freeze_id, status="lifted")
