"""What all tools of the CRM share: how accounts, owners and contacts are looked up, and what counts as open."""

from __future__ import annotations

from typing import Final

from compoworld_core.library.crm.records import Account, Case, CrmState, Deal, DealStage
from compoworld_core.services.sdk import FailedPrecondition, NotFound, Service

PIPELINE: Final[tuple[DealStage, ...]] = ("qualification", "proposal", "negotiation")
"""Stages of an open deal, in the order in which it moves through them."""


class Desk(Service[CrmState]):
    """Base of the CRM's tools."""

    def active_account(self, account_id: str) -> Account:
        """The account, which must not be archived."""
        account = self.state.accounts.get(account_id)
        if account.status == "archived":
            raise FailedPrecondition(f"{account_id} is archived; restore it first")
        return account

    def owner(self, email: str) -> str:
        """The stored address of a CRM user."""
        email = email.lower()
        if self.state.users.first(email=email) is None:
            raise NotFound(f"no CRM user has the e-mail address {email!r}")
        return email

    def contact_of(self, account_id: str, contact_id: str | None) -> str | None:
        """The contact's id, once it is known to belong to the account."""
        if contact_id is not None and self.state.contacts.get(contact_id).account_id != account_id:
            raise FailedPrecondition(f"{contact_id} is not a contact of {account_id}")
        return contact_id

    def open_deals(self, account_id: str) -> tuple[Deal, ...]:
        """The account's deals that are neither won nor lost."""
        return self.state.deals.where(lambda row: row.stage in PIPELINE, account_id=account_id)

    def open_cases(self, account_id: str) -> tuple[Case, ...]:
        """The account's cases that are not closed."""
        return self.state.cases.where(lambda row: row.status != "closed", account_id=account_id)
