"""Access: the owner of a dataset grants rights to persons or roles, on request or not."""

from __future__ import annotations

from typing import Any, Literal

from compoworld_core.library.data.warehouse_desk import Desk
from compoworld_core.library.data.warehouse_rows import (
    AccessAnswer,
    AccessRequestId,
    DatasetAccessRequest,
    DatasetGrant,
    DatasetId,
    GrantId,
    Level,
    Reason,
    Role,
)
from compoworld_core.library.filters import given
from compoworld_core.services.sdk import (
    AlreadyExists,
    Cursor,
    Day,
    Email,
    FailedPrecondition,
    Limit,
    Page,
    Text,
    paginate,
    tool,
)


class Access(Desk):
    """Tools on grants and access requests."""

    @tool(effect="read")
    def list_dataset_grants(
        self,
        dataset_id: DatasetId | None = None,
        grantee_email: Email | None = None,
        role: Role | None = None,
        include_revoked: bool = False,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[DatasetGrant]:
        """List grants that satisfy all given filters, oldest first, expired ones included.

        Args:
            dataset_id: Only grants on this dataset.
            grantee_email: Only grants to this person; not those of the person's role.
            role: Only grants to this role.
            include_revoked: Whether to return revoked grants too.
            limit: Most grants to return.
            cursor: `next_cursor` of the previous page.
        """
        if dataset_id is not None:
            self.state.datasets.get(dataset_id)
        rows = self.state.grants.where(
            lambda row: include_revoked or row.status == "active",
            **given(dataset_id=dataset_id, grantee_email=grantee_email, role=role),
        )
        return paginate(rows, limit, cursor)

    @tool(effect="read")
    def check_dataset_access(self, dataset_id: DatasetId, email: Email) -> AccessAnswer:
        """Say what a colleague may do with a dataset today, which rule or grant says so, and who owns the dataset.

        Args:
            dataset_id: The dataset.
            email: The colleague's e-mail address.
        """
        dataset = self.state.datasets.get(dataset_id)
        person = self.colleague(email)
        level, because = self.access_of(dataset, person.email)
        return AccessAnswer(
            dataset_id=dataset_id,
            owner_email=dataset.owner_email,
            email=person.email,
            name=person.name,
            role=person.role,
            level=level,
            because=because,
        )

    @tool(effect="write")
    def grant_dataset_access(
        self, dataset_id: DatasetId, grantee_email: Email, level: Level, expires_on: Day | None = None
    ) -> DatasetGrant:
        """Let a colleague read or write a dataset that you own.

        Args:
            dataset_id: The dataset.
            grantee_email: The colleague, who must not have such a grant yet.
            level: `write` includes reading.
            expires_on: Last day of the grant, today or later; it stays until revoked, if left out.
        """
        self.owned(dataset_id)
        return self._grant(dataset_id, level, expires_on, grantee_email=self.colleague(grantee_email).email)

    @tool(effect="write")
    def grant_role_dataset_access(
        self, dataset_id: DatasetId, role: Role, level: Level, expires_on: Day | None = None
    ) -> DatasetGrant:
        """Let everybody with a role read or write a dataset that you own.

        Args:
            dataset_id: The dataset.
            role: The role, which must not have such a grant yet.
            level: `write` includes reading.
            expires_on: Last day of the grant, today or later; it stays until revoked, if left out.
        """
        self.owned(dataset_id)
        return self._grant(dataset_id, level, expires_on, role=role)

    @tool(effect="write")
    def revoke_dataset_access(self, grant_id: GrantId) -> DatasetGrant:
        """Revoke a grant on a dataset that you own.

        Args:
            grant_id: The grant.
        """
        grant = self.state.grants.get(grant_id)
        self.owned(grant.dataset_id)
        if grant.status == "revoked":
            raise FailedPrecondition(f"{grant_id} was revoked already")
        return self.state.grants.update(grant_id, status="revoked")

    # Requests

    @tool(effect="read")
    def list_dataset_access_requests(
        self,
        dataset_id: DatasetId | None = None,
        requester_email: Email | None = None,
        status: Literal["pending", "approved", "declined"] | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[DatasetAccessRequest]:
        """List access requests that satisfy all given filters, the latest first.

        Args:
            dataset_id: Only requests for this dataset.
            requester_email: Only requests of this colleague.
            status: Only requests with this status.
            limit: Most requests to return.
            cursor: `next_cursor` of the previous page.
        """
        if dataset_id is not None:
            self.state.datasets.get(dataset_id)
        rows = self.state.access_requests.where(
            **given(dataset_id=dataset_id, requester_email=requester_email, status=status)
        )
        return paginate(sorted(rows, key=lambda row: row.requested_at)[::-1], limit, cursor)

    @tool(effect="write")
    def request_dataset_access(
        self, dataset_id: DatasetId, level: Level, justification: Reason
    ) -> DatasetAccessRequest:
        """Ask the owner of a dataset for a right that you don't have.

        Args:
            dataset_id: The dataset, for which you must not have a pending request.
            level: `write` includes reading.
            justification: What you need it for.
        """
        dataset = self.active(self.state.datasets.get(dataset_id))
        me = self.user.email
        if self.allows(dataset, me, level):
            raise FailedPrecondition(f"you may {level} {dataset.name} already")
        pending = self.state.access_requests.first(dataset_id=dataset_id, requester_email=me, status="pending")
        if pending is not None:
            raise AlreadyExists(f"your request {pending.id} for {dataset.name} is still pending")
        return self.state.access_requests.insert(
            dataset_id=dataset_id,
            requester_email=me,
            level=level,
            justification=justification,
            requested_at=self.now,
        )

    @tool(effect="write")
    def approve_dataset_access_request(
        self, request_id: AccessRequestId, expires_on: Day | None = None
    ) -> DatasetAccessRequest:
        """Approve a pending request for a dataset that you own; the person gets the grant at once.

        Args:
            request_id: The request.
            expires_on: Last day of the grant, today or later; it stays until revoked, if left out.
        """
        request = self._pending(request_id)
        grant = self._grant(request.dataset_id, request.level, expires_on, grantee_email=request.requester_email)
        return self.state.access_requests.update(
            request_id, status="approved", decided_by=self.user.email, grant_id=grant.id
        )

    @tool(effect="write")
    def decline_dataset_access_request(self, request_id: AccessRequestId, note: Text = "") -> DatasetAccessRequest:
        """Decline a pending request for a dataset that you own.

        Args:
            request_id: The request.
            note: Why, for the person who asked.
        """
        self._pending(request_id)
        return self.state.access_requests.update(
            request_id, status="declined", decided_by=self.user.email, decision_note=note
        )

    def _pending(self, request_id: str) -> DatasetAccessRequest:
        request = self.state.access_requests.get(request_id)
        self.owned(request.dataset_id)
        if request.status != "pending":
            raise FailedPrecondition(f"{request_id} was {request.status} already")
        return request

    def _grant(self, dataset_id: str, level: Level, expires_on: Day | None, **grantee: Any) -> DatasetGrant:
        if expires_on is not None and expires_on < self.today:
            raise FailedPrecondition(f"expires_on: {expires_on} is past; today is {self.today}")
        for other in self.state.grants.where(dataset_id=dataset_id, status="active", level=level, **grantee):
            if other.expires_on is None or other.expires_on >= self.today:
                raise AlreadyExists(f"{other.id} grants this already; revoke it first to change its last day")
        return self.state.grants.insert(
            dataset_id=dataset_id,
            level=level,
            expires_on=expires_on,
            granted_by=self.user.email,
            granted_at=self.now,
            **grantee,
        )
