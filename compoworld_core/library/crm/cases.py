"""Cases, which end in a resolution, and activities, which only ever add up."""

from __future__ import annotations

from typing import Final, Literal

from compoworld_core.library.crm.desk import Desk
from compoworld_core.library.crm.records import (
    AccountId,
    Activity,
    ActivityKind,
    Case,
    CaseId,
    CaseKind,
    CaseStatus,
    ContactId,
    Priority,
    Reason,
)
from compoworld_core.library.filters import changes, given
from compoworld_core.services.sdk import (
    Cursor,
    Email,
    FailedPrecondition,
    Limit,
    Page,
    Text,
    Timestamp,
    Title,
    paginate,
    tool,
)

_URGENCY: Final[tuple[Priority, ...]] = ("urgent", "high", "normal", "low")


class Cases(Desk):
    """Tools on cases and activities."""

    @tool(effect="read")
    def list_cases(
        self,
        account_id: AccountId | None = None,
        status: CaseStatus | None = None,
        kind: CaseKind | None = None,
        owner_email: Email | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Case]:
        """List cases that satisfy all given filters, most urgent first, then longest open first.

        Args:
            account_id: Only cases of this account.
            status: Only cases with this status; all, if left out.
            kind: Only cases of this kind.
            owner_email: Only cases of this colleague.
            limit: Most cases to return.
            cursor: `next_cursor` of the previous page.
        """
        if account_id is not None:
            self.state.accounts.get(account_id)
        rows = self.state.cases.where(**given(account_id=account_id, status=status, kind=kind, owner_email=owner_email))
        return paginate(sorted(rows, key=lambda row: (_URGENCY.index(row.priority), row.opened_at)), limit, cursor)

    @tool(effect="read")
    def get_case(self, case_id: CaseId) -> Case:
        """Get a case.

        Args:
            case_id: The case.
        """
        return self.state.cases.get(case_id)

    @tool(effect="write")
    def create_case(
        self,
        account_id: AccountId,
        kind: CaseKind,
        summary: Title,
        description: Text = "",
        priority: Priority = "normal",
        contact_id: ContactId | None = None,
        owner_email: Email | None = None,
    ) -> Case:
        """Open a case for an active account.

        Args:
            account_id: The account that it is about.
            kind: What the customer wants.
            summary: The matter in one line.
            description: Details.
            priority: How urgent it is.
            contact_id: The contact who asked, who must belong to the account.
            owner_email: E-mail address of the colleague who handles it; the account's owner, if left out.
        """
        account = self.active_account(account_id)
        return self.state.cases.insert(
            account_id=account_id,
            contact_id=self.contact_of(account_id, contact_id),
            kind=kind,
            priority=priority,
            summary=summary,
            description=description,
            owner_email=self.owner(owner_email or account.owner_email),
            opened_at=self.now,
        )

    @tool(effect="write")
    def update_case(
        self,
        case_id: CaseId,
        status: Literal["in_progress", "waiting"] | None = None,
        priority: Priority | None = None,
        summary: Title | None = None,
        contact_id: ContactId | None = None,
        owner_email: Email | None = None,
    ) -> Case:
        """Change the given fields of a case that is not closed. It is closed with `close_case`.

        Args:
            case_id: The case.
            status: `in_progress` while we work on it, `waiting` while the customer has to answer.
            priority: How urgent it is.
            summary: The matter in one line.
            contact_id: The contact who asked, who must belong to the case's account.
            owner_email: E-mail address of the colleague who takes over.
        """
        case = self._open_case(case_id)
        return self.state.cases.update(
            case_id,
            **changes(
                status=status,
                priority=priority,
                summary=summary,
                contact_id=self.contact_of(case.account_id, contact_id),
                owner_email=None if owner_email is None else self.owner(owner_email),
            ),
        )

    @tool(effect="write")
    def close_case(self, case_id: CaseId, resolution: Reason) -> Case:
        """Close a case with how it was resolved.

        Args:
            case_id: The case.
            resolution: What was done about it.
        """
        self._open_case(case_id)
        return self.state.cases.update(case_id, status="closed", closed_at=self.now, resolution=resolution)

    @tool(effect="write")
    def reopen_case(self, case_id: CaseId, reason: Reason) -> Case:
        """Take up a closed case again; the reason and the earlier resolution are added to its description.

        Args:
            case_id: The case.
            reason: Why it has to be looked at again.
        """
        case = self.state.cases.get(case_id)
        if case.status != "closed":
            raise FailedPrecondition(f"{case_id} is {case.status}, not closed")
        self.active_account(case.account_id)
        note = f"Reopened on {self.today}: {reason}\nEarlier resolution: {case.resolution}"
        return self.state.cases.update(
            case_id,
            status="in_progress",
            closed_at=None,
            resolution=None,
            description=f"{case.description}\n\n{note}".strip(),
        )

    # Activities

    @tool(effect="read")
    def list_activities(
        self,
        account_id: AccountId,
        kind: ActivityKind | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Activity]:
        """List the activities on an account, newest first.

        Args:
            account_id: The account.
            kind: Only activities of this kind.
            limit: Most activities to return.
            cursor: `next_cursor` of the previous page.
        """
        self.state.accounts.get(account_id)
        rows = self.state.activities.where(**given(account_id=account_id, kind=kind))
        return paginate(sorted(rows, key=lambda row: row.occurred_at)[::-1], limit, cursor)

    @tool(effect="write")
    def log_activity(
        self,
        account_id: AccountId,
        kind: ActivityKind,
        subject: Title,
        notes: Text = "",
        contact_id: ContactId | None = None,
        occurred_at: Timestamp | None = None,
    ) -> Activity:
        """Record a call, message, meeting or note on an active account, in your name.

        Args:
            account_id: The account.
            kind: What it was.
            subject: What it was about, in one line.
            notes: What was said.
            contact_id: The contact who took part, who must belong to the account.
            occurred_at: When it happened, not in the future; now, if left out.
        """
        self.active_account(account_id)
        if occurred_at is not None and occurred_at > self.now:
            raise FailedPrecondition(f"occurred_at: {occurred_at.isoformat()} has not come yet; log what has happened")
        return self.state.activities.insert(
            account_id=account_id,
            contact_id=self.contact_of(account_id, contact_id),
            kind=kind,
            subject=subject,
            notes=notes,
            author_email=self.user.email,
            occurred_at=occurred_at or self.now,
        )

    def _open_case(self, case_id: str) -> Case:
        case = self.state.cases.get(case_id)
        if case.status == "closed":
            raise FailedPrecondition(f"{case_id} is closed; reopen it first")
        return case
