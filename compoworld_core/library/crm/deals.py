"""Deals: a pipeline that moves one stage at a time and ends in won or lost."""

from __future__ import annotations

from typing import Final, Literal

from compoworld_core.library.crm.desk import PIPELINE, Desk
from compoworld_core.library.crm.records import (
    AccountId,
    Deal,
    DealAmount,
    DealId,
    DealStage,
    OpenStage,
    Reason,
)
from compoworld_core.library.filters import changes, given
from compoworld_core.services.sdk import (
    Cursor,
    Day,
    Email,
    FailedPrecondition,
    InvalidArguments,
    Limit,
    Page,
    Title,
    paginate,
    tool,
)

REOPEN_DAYS: Final = 90
"""Days after which a lost deal stays lost."""


class Deals(Desk):
    """Tools on deals."""

    @tool(effect="read")
    def list_deals(
        self,
        account_id: AccountId | None = None,
        stage: DealStage | None = None,
        owner_email: Email | None = None,
        closing_by: Day | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Deal]:
        """List deals that satisfy all given filters, earliest expected closing date first.

        Args:
            account_id: Only deals with this account.
            stage: Only deals in this stage.
            owner_email: Only deals of this colleague.
            closing_by: Only deals whose expected closing date is this day or earlier.
            limit: Most deals to return.
            cursor: `next_cursor` of the previous page.
        """
        if account_id is not None:
            self.state.accounts.get(account_id)
        rows = self.state.deals.where(
            lambda row: closing_by is None or row.close_date <= closing_by,
            **given(account_id=account_id, stage=stage, owner_email=owner_email),
        )
        return paginate(sorted(rows, key=lambda row: row.close_date), limit, cursor)

    @tool(effect="read")
    def get_deal(self, deal_id: DealId) -> Deal:
        """Get a deal.

        Args:
            deal_id: The deal.
        """
        return self.state.deals.get(deal_id)

    @tool(effect="write")
    def create_deal(
        self,
        account_id: AccountId,
        name: Title,
        amount: DealAmount,
        close_date: Day,
        owner_email: Email | None = None,
    ) -> Deal:
        """Open a deal in the stage `qualification`.

        Args:
            account_id: The account, which must be active.
            name: What is to be sold.
            amount: Expected amount in euros.
            close_date: Day by which we expect to close it, today or later.
            owner_email: E-mail address of the colleague in charge; the account's owner, if left out.
        """
        account = self.active_account(account_id)
        self._not_past(close_date)
        owner = self.owner(owner_email or account.owner_email)
        return self.state.deals.insert(
            account_id=account_id, name=name, amount=amount, close_date=close_date, owner_email=owner
        )

    @tool(effect="write")
    def update_deal(
        self,
        deal_id: DealId,
        name: Title | None = None,
        amount: DealAmount | None = None,
        close_date: Day | None = None,
        owner_email: Email | None = None,
    ) -> Deal:
        """Change the given fields of an open deal. Stages are changed with `move_deal_stage` and `close_deal`.

        Args:
            deal_id: The deal.
            name: What is to be sold.
            amount: New expected amount.
            close_date: New expected closing day, today or later.
            owner_email: E-mail address of the colleague who takes over.
        """
        deal = self._open_deal(deal_id)
        if close_date is not None:
            self._not_past(close_date)
        owner = None if owner_email is None else self.owner(owner_email)
        return self.state.deals.update(
            deal.id, **changes(name=name, amount=amount, close_date=close_date, owner_email=owner)
        )

    @tool(effect="write")
    def move_deal_stage(self, deal_id: DealId, stage: OpenStage) -> Deal:
        """Move an open deal one stage forward, or back to any earlier stage.

        The order is qualification, proposal, negotiation; no stage is skipped on the way forward.

        Args:
            deal_id: The deal.
            stage: The stage to move to.
        """
        deal = self._open_deal(deal_id)
        here, there = PIPELINE.index(deal.stage), PIPELINE.index(stage)
        if here == there:
            raise FailedPrecondition(f"{deal_id} is in {stage} already")
        if there > here + 1:
            raise FailedPrecondition(
                f"{deal_id} is in {deal.stage}; the next stage is {PIPELINE[here + 1]}, not {stage}"
            )
        return self.state.deals.update(deal_id, stage=stage)

    @tool(effect="write")
    def close_deal(self, deal_id: DealId, outcome: Literal["won", "lost"], reason: Reason | None = None) -> Deal:
        """Close an open deal as won or lost. Only a deal in negotiation can be won; a won deal is final.

        Args:
            deal_id: The deal.
            outcome: How it ended.
            reason: Why it was lost; required for lost deals and not accepted for won ones.
        """
        deal = self._open_deal(deal_id)
        if outcome == "won" and reason is not None:
            raise InvalidArguments("reason: only a lost deal has one")
        if outcome == "lost" and reason is None:
            raise InvalidArguments("reason: say why the deal was lost")
        if outcome == "won" and deal.stage != "negotiation":
            raise FailedPrecondition(f"{deal_id} is in {deal.stage}; only a deal in negotiation can be won")
        return self.state.deals.update(deal_id, stage=outcome, closed_on=self.today, lost_reason=reason)

    @tool(effect="write")
    def reopen_deal(self, deal_id: DealId, close_date: Day) -> Deal:
        """Take a lost deal back to qualification, at most 90 days after it was lost. A won deal is never reopened.

        Args:
            deal_id: The deal.
            close_date: New expected closing day, today or later.
        """
        deal = self.state.deals.get(deal_id)
        if deal.stage != "lost" or deal.closed_on is None:
            raise FailedPrecondition(f"{deal_id} is {deal.stage}; only a lost deal can be reopened")
        if (self.today - deal.closed_on).days > REOPEN_DAYS:
            raise FailedPrecondition(f"{deal_id} was lost on {deal.closed_on}, more than {REOPEN_DAYS} days ago")
        self.active_account(deal.account_id)
        self._not_past(close_date)
        return self.state.deals.update(
            deal_id, stage="qualification", closed_on=None, lost_reason=None, close_date=close_date
        )

    def _open_deal(self, deal_id: str) -> Deal:
        deal = self.state.deals.get(deal_id)
        if deal.stage not in PIPELINE:
            raise FailedPrecondition(f"{deal_id} is {deal.stage}; only an open deal can change")
        return deal

    def _not_past(self, day: Day) -> None:
        if day < self.today:
            raise FailedPrecondition(f"close_date: {day} is past; today is {self.today}")
