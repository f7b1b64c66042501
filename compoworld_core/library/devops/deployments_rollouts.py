"""Deployments: requested, approved by somebody else where that is needed, started, finished; and rollbacks."""

from __future__ import annotations

from typing import Literal

from compoworld_core.library.devops.deployments_desk import Platform, version_key
from compoworld_core.library.devops.deployments_rows import (
    App,
    AppId,
    Deployment,
    DeploymentApproval,
    DeploymentId,
    DeploymentStatus,
    Environment,
    EnvironmentId,
    Readiness,
    Reason,
    Release,
    ReleaseId,
    Tier,
)
from compoworld_core.library.filters import given
from compoworld_core.services.sdk import (
    Cursor,
    Email,
    FailedPrecondition,
    Limit,
    Page,
    PermissionDenied,
    Text,
    paginate,
    tool,
)


class Rollouts(Platform):
    """Tools on deployments, their approvals, and rollbacks."""

    @tool(effect="read")
    def list_deployments(
        self,
        app_id: AppId | None = None,
        environment_id: EnvironmentId | None = None,
        release_id: ReleaseId | None = None,
        status: DeploymentStatus | None = None,
        tier: Tier | None = None,
        requested_by: Email | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Deployment]:
        """List deployments and rollbacks that satisfy all given filters, the one requested last first.

        Args:
            app_id: Only deployments of this app.
            environment_id: Only deployments to this environment.
            release_id: Only deployments of this release.
            status: Only deployments with this status.
            tier: Only deployments to environments of this tier.
            requested_by: Only deployments that this colleague requested.
            limit: Most deployments to return.
            cursor: `next_cursor` of the previous page.
        """
        if app_id is not None:
            self.state.apps.get(app_id)
        if environment_id is not None:
            self.state.environments.get(environment_id)
        if release_id is not None:
            self.state.releases.get(release_id)
        rows = self.state.deployments.where(
            **given(
                app_id=app_id,
                environment_id=environment_id,
                release_id=release_id,
                status=status,
                tier=tier,
                requested_by=requested_by,
            )
        )
        return paginate(sorted(rows, key=lambda row: row.requested_at)[::-1], limit, cursor)

    @tool(effect="read")
    def get_deployment(self, deployment_id: DeploymentId) -> Deployment:
        """Get a deployment.

        Args:
            deployment_id: The deployment.
        """
        return self.state.deployments.get(deployment_id)

    @tool(effect="read")
    def check_deployment_readiness(self, deployment_id: DeploymentId) -> Readiness:
        """Say whether a deployment can start now, and what stands in its way: approval, locks, freeze windows.

        Args:
            deployment_id: The deployment.
        """
        blockers = tuple(self.blockers(self.state.deployments.get(deployment_id)))
        return Readiness(deployment_id=deployment_id, is_ready=not blockers, blockers=blockers)

    @tool(effect="read")
    def list_deployment_approvals(
        self,
        deployment_id: DeploymentId | None = None,
        decision: Literal["approved", "rejected"] | None = None,
        decided_by: Email | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[DeploymentApproval]:
        """List decisions on deployments that satisfy all given filters, latest first.

        Args:
            deployment_id: Only the decision on this deployment.
            decision: Only such decisions.
            decided_by: Only decisions of this colleague.
            limit: Most decisions to return.
            cursor: `next_cursor` of the previous page.
        """
        if deployment_id is not None:
            self.state.deployments.get(deployment_id)
        rows = self.state.approvals.where(
            **given(deployment_id=deployment_id, decision=decision, decided_by=decided_by)
        )
        return paginate(sorted(rows, key=lambda row: row.decided_at)[::-1], limit, cursor)

    @tool(effect="write")
    def request_deployment(self, release_id: ReleaseId, tier: Tier, note: Text = "") -> Deployment:
        """Request that a release be deployed to its app's environment of a tier.

        It waits for approval where the environment has approvers, and is approved at once where it has none. The
        environment must not be locked, have another deployment under way, or run this or a newer version; production
        takes only releases that were deployed to staging successfully, where the app has staging.

        Args:
            release_id: The release, which must not be withdrawn.
            tier: Where it is to run.
            note: What those who approve it should know.
        """
        release = self.state.releases.get(release_id)
        app = self.active_app(release.app_id)
        environment = self.environment_of(app, tier)
        self._check_deployable(app, release, environment)
        return self.state.deployments.insert(
            app_id=app.id,
            environment_id=environment.id,
            release_id=release_id,
            tier=tier,
            version=release.version,
            status="pending_approval" if environment.approver_emails else "approved",
            requested_by=self.user.email,
            requested_at=self.now,
            note=note,
        )

    @tool(effect="write")
    def approve_deployment(self, deployment_id: DeploymentId, comment: Text = "") -> Deployment:
        """Approve a deployment that waits for it. You must be one of its approvers and not have requested it.

        Args:
            deployment_id: The deployment.
            comment: Remark on the decision.
        """
        return self._decide(deployment_id, "approved", comment)

    @tool(effect="write")
    def reject_deployment(self, deployment_id: DeploymentId, reason: Reason) -> Deployment:
        """Reject a deployment that waits for approval. You must be one of its approvers and not have requested it.

        Args:
            deployment_id: The deployment.
            reason: Why it must not go ahead.
        """
        return self._decide(deployment_id, "rejected", reason)

    @tool(effect="write")
    def start_deployment(self, deployment_id: DeploymentId) -> Deployment:
        """Start an approved deployment. Its environment must not be locked, and production not be frozen now.

        Args:
            deployment_id: The deployment.
        """
        deployment = self.state.deployments.get(deployment_id)
        blockers = self.blockers(deployment)
        if blockers:
            raise FailedPrecondition("; ".join(blockers))
        return self.state.deployments.update(deployment_id, status="running", started_at=self.now)

    @tool(effect="write")
    def finish_deployment(
        self, deployment_id: DeploymentId, outcome: Literal["succeeded", "failed"], outcome_note: Text = ""
    ) -> Deployment:
        """Record how a running deployment ended; after a success, its release is the environment's current one.

        Args:
            deployment_id: The deployment.
            outcome: How it ended.
            outcome_note: What was seen, e.g. the error.
        """
        deployment = self.state.deployments.get(deployment_id)
        if deployment.status != "running":
            raise FailedPrecondition(f"{deployment_id} is {deployment.status}; only a running deployment can finish")
        if outcome == "succeeded":
            self._make_current(deployment.environment_id, deployment.release_id)
        return self.state.deployments.update(
            deployment_id, status=outcome, finished_at=self.now, outcome_note=outcome_note
        )

    @tool(effect="write")
    def cancel_deployment(self, deployment_id: DeploymentId, reason: Reason) -> Deployment:
        """Call off a deployment that has not started. Only whoever requested it or the app's owner may do this.

        Args:
            deployment_id: The deployment.
            reason: Why it is called off.
        """
        deployment = self.state.deployments.get(deployment_id)
        if deployment.requested_by != self.user.email:
            self.require_owner(self.state.apps.get(deployment.app_id))
        if deployment.status not in ("pending_approval", "approved"):
            raise FailedPrecondition(f"{deployment_id} is {deployment.status}; only one that waits can be called off")
        return self.state.deployments.update(deployment_id, status="cancelled", outcome_note=reason)

    @tool(effect="write")
    def rollback_environment(
        self, environment_id: EnvironmentId, reason: Reason, release_id: ReleaseId | None = None
    ) -> Deployment:
        """Put an environment back to an earlier release at once. It needs no approval and works during a freeze.

        Where the environment has approvers, only they and the app's owner may do this. No deployment may be running
        there. The deployment that brought the current release counts as rolled back.

        Args:
            environment_id: The environment.
            reason: What is wrong with the current release.
            release_id: One of the environment's rollback targets; the newest of them, if left out.
        """
        environment = self.state.environments.get(environment_id)
        if release_id is not None:
            self.state.releases.get(release_id)
        app = self.active_app(environment.app_id)
        if environment.approver_emails and self.user.email not in environment.approver_emails:
            self.require_owner(app)
        running = [row.id for row in self.under_way(environment_id) if row.status == "running"]
        if running:
            raise FailedPrecondition(f"{running[0]} is running in {environment_id}; let it finish first")
        targets = self.rollback_targets(environment)
        target = next((row for row in targets if release_id in (None, row.id)), None)
        if target is None:
            allowed = ", ".join(f"{row.id} ({row.version})" for row in targets) or "none"
            raise FailedPrecondition(
                f"{release_id or environment_id}: an environment goes back only to an earlier release that ran there "
                f"successfully; possible here: {allowed}"
            )
        for undone in self.state.deployments.where(
            environment_id=environment_id, release_id=environment.current_release_id, status="succeeded"
        ):
            self.state.deployments.update(undone.id, status="rolled_back")
        self._make_current(environment_id, target.id)
        return self.state.deployments.insert(
            app_id=app.id,
            environment_id=environment_id,
            release_id=target.id,
            tier=environment.tier,
            version=target.version,
            kind="rollback",
            status="succeeded",
            requested_by=self.user.email,
            requested_at=self.now,
            note=reason,
            started_at=self.now,
            finished_at=self.now,
        )

    def _check_deployable(self, app: App, release: Release, environment: Environment) -> None:
        if release.status == "withdrawn":
            raise FailedPrecondition(f"{release.id} was withdrawn: {release.withdrawal_reason}")
        if environment.locked_by is not None:
            raise FailedPrecondition(
                f"{environment.id} is locked by {environment.locked_by}: {environment.lock_reason}"
            )
        for other in self.under_way(environment.id):
            raise FailedPrecondition(f"{other.id} ({other.status}) is under way in {environment.id} already")
        current = environment.current_version
        if current is not None and version_key(release.version) <= version_key(current):
            raise FailedPrecondition(
                f"{environment.id} runs {current}, which is not older than {release.version}; older releases come back "
                "by rollback only"
            )
        if environment.tier == "production":
            staging = self.state.environments.first(app_id=app.id, tier="staging")
            if staging is not None and not self.state.deployments.where(
                environment_id=staging.id, release_id=release.id, status="succeeded"
            ):
                raise FailedPrecondition(f"{release.version} was not deployed to staging successfully yet")

    def _decide(self, deployment_id: str, decision: Literal["approved", "rejected"], comment: str) -> Deployment:
        deployment = self.state.deployments.get(deployment_id)
        if deployment.status != "pending_approval":
            raise FailedPrecondition(f"{deployment_id} is {deployment.status}; it doesn't wait for approval")
        me = self.user.email
        if deployment.requested_by == me:
            raise PermissionDenied("who requests a deployment can't decide on it; ask another approver")
        approvers = self.state.environments.get(deployment.environment_id).approver_emails
        if me not in approvers:
            raise PermissionDenied(f"only {', '.join(approvers)} may decide on {deployment_id}")
        self.state.approvals.insert(
            deployment_id=deployment_id, decision=decision, decided_by=me, comment=comment, decided_at=self.now
        )
        approved_by = me if decision == "approved" else None
        return self.state.deployments.update(deployment_id, status=decision, approved_by=approved_by)

    def _make_current(self, environment_id: str, release_id: str) -> None:
        release = self.state.releases.get(release_id)
        self.state.environments.update(environment_id, current_release_id=release_id, current_version=release.version)
