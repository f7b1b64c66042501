"""What the delivery platform's tools share: who may do what, and what stands in the way of a deployment."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from compoworld_core.library.devops.deployments_rows import (
    App,
    Deployment,
    DeploymentsState,
    Environment,
    FreezeWindow,
    Release,
)
from compoworld_core.services.sdk import FailedPrecondition, NotFound, PermissionDenied, Service

UNDER_WAY: Final = ("pending_approval", "approved", "running")
"""Statuses of a deployment that is not finished."""


def version_key(version: str) -> tuple[int, ...]:
    """Versions in their order: 1.10.0 comes after 1.9.3."""
    return tuple(int(part) for part in version.split("."))


class Platform(Service[DeploymentsState]):
    """Base of the delivery platform's tools."""

    def engineer(self, email: str) -> str:
        """The stored address of a colleague on the platform."""
        email = email.lower()
        if self.state.engineers.first(email=email) is None:
            raise NotFound(f"no colleague on this platform has the e-mail address {email!r}")
        return email

    def active_app(self, app_id: str) -> App:
        """The app, which must not be archived."""
        app = self.state.apps.get(app_id)
        if app.status == "archived":
            raise FailedPrecondition(f"{app_id} ({app.name}) is archived")
        return app

    def owned_app(self, app_id: str) -> App:
        """The app, which must be active and the user's own."""
        app = self.active_app(app_id)
        self.require_owner(app)
        return app

    def require_owner(self, app: App) -> None:
        """Refuse what only the app's owner may do.

        Raises:
            PermissionDenied: The user isn't the owner.
        """
        if app.owner_email != self.user.email:
            raise PermissionDenied(f"only the owner of {app.name}, {app.owner_email}, may do this")

    def environment_of(self, app: App, tier: str) -> Environment:
        """The app's environment of a tier."""
        found = self.state.environments.first(app_id=app.id, tier=tier)
        if found is None:
            raise NotFound(f"{app.name} has no {tier} environment")
        return found

    def under_way(self, environment_id: str) -> tuple[Deployment, ...]:
        """Deployments to the environment that are not finished."""
        return self.state.deployments.where(lambda row: row.status in UNDER_WAY, environment_id=environment_id)

    def is_active(self, freeze: FreezeWindow, moment: datetime) -> bool:
        """Whether nothing may start at the moment because of the window."""
        return freeze.status == "scheduled" and freeze.starts_at <= moment < freeze.ends_at

    def blockers(self, deployment: Deployment) -> list[str]:
        """Every reason why the deployment can't start now."""
        found = []
        environment = self.state.environments.get(deployment.environment_id)
        release = self.state.releases.get(deployment.release_id)
        if deployment.status == "pending_approval":
            found.append(f"{deployment.id} still waits for approval")
        elif deployment.status != "approved":
            found.append(f"{deployment.id} is {deployment.status}; only an approved deployment can start")
        if release.status == "withdrawn":
            found.append(f"release {release.version} was withdrawn: {release.withdrawal_reason}")
        if environment.locked_by is not None:
            found.append(f"{environment.id} is locked by {environment.locked_by}: {environment.lock_reason}")
        if deployment.tier == "production":
            found += [
                f"freeze window {freeze.id} ({freeze.name}) lasts until {freeze.ends_at.isoformat()}"
                for freeze in self.state.freezes
                if self.is_active(freeze, self.now) and freeze.app_id in (None, deployment.app_id)
            ]
        return found

    def rollback_targets(self, environment: Environment) -> list[Release]:
        """Releases older than the current one that ran there successfully, newest version first."""
        if environment.current_version is None:
            return []
        current = version_key(environment.current_version)
        ran = {
            row.release_id for row in self.state.deployments.where(environment_id=environment.id, status="succeeded")
        }
        releases = (self.state.releases.get(key) for key in sorted(ran))
        return sorted(
            (row for row in releases if row.status == "available" and version_key(row.version) < current),
            key=lambda row: version_key(row.version),
            reverse=True,
        )
