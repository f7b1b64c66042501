"""Accounts and contacts: the organisations that we deal with and the people there."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from compoworld_core.library.crm.desk import PIPELINE, Desk
from compoworld_core.library.crm.records import (
    Account,
    AccountId,
    AccountOverview,
    BillingId,
    Contact,
    ContactId,
    CrmUser,
    Deal,
    Industry,
    JobRole,
    Tier,
)
from compoworld_core.library.filters import changes, given
from compoworld_core.services.sdk import (
    City,
    Country,
    Cursor,
    Email,
    FailedPrecondition,
    Limit,
    NotFound,
    OrganisationName,
    Page,
    PersonName,
    Phone,
    Query,
    paginate,
    tool,
)


def _total(deals: Sequence[Deal]) -> Decimal:
    return sum((deal.amount for deal in deals), Decimal(0))


class Accounts(Desk):
    """Tools on accounts, contacts and the colleagues who own them."""

    @tool(effect="read")
    def search_accounts(
        self,
        name: Query | None = None,
        industry: Industry | None = None,
        tier: Tier | None = None,
        owner_email: Email | None = None,
        city: City | None = None,
        country: Country | None = None,
        billing_id: BillingId | None = None,
        include_archived: bool = False,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Account]:
        """Find accounts that satisfy all given filters, in alphabetical order of their names.

        Args:
            name: Part of the organisation's name, in any case.
            industry: Exact industry, e.g. "logistics".
            tier: Service tier.
            owner_email: E-mail address of the colleague who owns the account.
            city: Exact city.
            country: Exact country, e.g. "Norway".
            billing_id: Number under which finance bills the organisation.
            include_archived: Whether to return archived accounts too.
            limit: Most accounts to return.
            cursor: `next_cursor` of the previous page.
        """
        part = (name or "").casefold()
        rows = self.state.accounts.where(
            lambda row: part in row.name.casefold() and (include_archived or row.status == "active"),
            **given(
                industry=industry, tier=tier, owner_email=owner_email, city=city, country=country, billing_id=billing_id
            ),
        )
        return paginate(sorted(rows, key=lambda row: row.name.casefold()), limit, cursor)

    @tool(effect="read")
    def get_account(self, account_id: AccountId) -> Account:
        """Get an account.

        Args:
            account_id: The account.
        """
        return self.state.accounts.get(account_id)

    @tool(effect="read")
    def get_account_overview(self, account_id: AccountId) -> AccountOverview:
        """Get an account with its primary contact, sums of deals, number of open cases and time of last activity.

        Args:
            account_id: The account.
        """
        account = self.state.accounts.get(account_id)
        contacts = self.state.contacts.where(account_id=account_id)
        deals = self.state.deals.where(account_id=account_id)
        is_open = [deal for deal in deals if deal.stage in PIPELINE]
        return AccountOverview(
            account=account,
            primary_contact=next((contact for contact in contacts if contact.is_primary), None),
            contacts=len(contacts),
            open_deals=len(is_open),
            open_deal_amount=_total(is_open),
            won_amount=_total([deal for deal in deals if deal.stage == "won"]),
            open_cases=len(self.open_cases(account_id)),
            last_activity_at=max(
                (row.occurred_at for row in self.state.activities.where(account_id=account_id)), default=None
            ),
        )

    @tool(effect="write")
    def create_account(
        self,
        name: OrganisationName,
        industry: Industry,
        city: City,
        country: Country,
        owner_email: Email | None = None,
        tier: Tier = "bronze",
        billing_id: BillingId | None = None,
        phone: Phone | None = None,
    ) -> Account:
        """Create an account; its name and billing id must not be taken.

        Args:
            name: The organisation's full name.
            industry: Industry, e.g. "logistics".
            city: City of its main office.
            country: Country of its main office.
            owner_email: E-mail address of the colleague who owns it; you, if left out.
            tier: Service tier.
            billing_id: Number under which finance bills the organisation; prospects have none.
            phone: Main phone number.
        """
        return self.state.accounts.insert(
            name=name,
            industry=industry,
            city=city,
            country=country,
            owner_email=self.owner(owner_email or self.user.email),
            tier=tier,
            billing_id=billing_id,
            phone=phone,
            created_on=self.today,
        )

    @tool(effect="write")
    def update_account(
        self,
        account_id: AccountId,
        name: OrganisationName | None = None,
        industry: Industry | None = None,
        tier: Tier | None = None,
        city: City | None = None,
        country: Country | None = None,
        billing_id: BillingId | None = None,
        phone: Phone | None = None,
    ) -> Account:
        """Change the given fields of an active account. The owner is changed with `assign_account_owner`.

        Args:
            account_id: The account.
            name: New name.
            industry: New industry.
            tier: New service tier.
            city: New city.
            country: New country.
            billing_id: New billing number.
            phone: New main phone number.
        """
        fields = changes(
            name=name, industry=industry, tier=tier, city=city, country=country, billing_id=billing_id, phone=phone
        )
        return self.state.accounts.update(self.active_account(account_id).id, **fields)

    @tool(effect="write")
    def assign_account_owner(
        self, account_id: AccountId, owner_email: Email, include_open_work: bool = False
    ) -> Account:
        """Give an active account to another colleague.

        Args:
            account_id: The account.
            owner_email: E-mail address of the new owner, who must be a CRM user.
            include_open_work: Whether the account's open deals and cases change hands too.
        """
        owner = self.owner(owner_email)
        account = self.state.accounts.update(self.active_account(account_id).id, owner_email=owner)
        if include_open_work:
            for deal in self.open_deals(account_id):
                self.state.deals.update(deal.id, owner_email=owner)
            for case in self.open_cases(account_id):
                self.state.cases.update(case.id, owner_email=owner)
        return account

    @tool(effect="write")
    def archive_account(self, account_id: AccountId) -> Account:
        """Archive an account. It must have no open deal and no open case; nothing can be added to it afterwards.

        Args:
            account_id: The account.
        """
        self.active_account(account_id)
        deals, cases = self.open_deals(account_id), self.open_cases(account_id)
        if deals or cases:
            blocking = ", ".join([*(deal.id for deal in deals), *(case.id for case in cases)])
            raise FailedPrecondition(f"{account_id} still has open deals or cases ({blocking}); close them first")
        return self.state.accounts.update(account_id, status="archived")

    @tool(effect="write")
    def restore_account(self, account_id: AccountId) -> Account:
        """Make an archived account active again.

        Args:
            account_id: The account.
        """
        if self.state.accounts.get(account_id).status == "active":
            raise FailedPrecondition(f"{account_id} is not archived")
        return self.state.accounts.update(account_id, status="active")

    # Contacts

    @tool(effect="read")
    def list_contacts(
        self,
        account_id: AccountId | None = None,
        name: Query | None = None,
        primary_only: bool = False,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Contact]:
        """List contacts that satisfy all given filters, in alphabetical order of their names.

        Args:
            account_id: Only contacts of this account.
            name: Part of the person's name, in any case.
            primary_only: Whether to leave out contacts that are not their account's primary one.
            limit: Most contacts to return.
            cursor: `next_cursor` of the previous page.
        """
        if account_id is not None:
            self.state.accounts.get(account_id)
        part = (name or "").casefold()
        rows = self.state.contacts.where(
            lambda row: part in row.name.casefold() and (row.is_primary or not primary_only),
            **given(account_id=account_id),
        )
        return paginate(sorted(rows, key=lambda row: row.name.casefold()), limit, cursor)

    @tool(effect="read")
    def get_contact(self, contact_id: ContactId) -> Contact:
        """Get a contact.

        Args:
            contact_id: The contact.
        """
        return self.state.contacts.get(contact_id)

    @tool(effect="read")
    def find_contact_by_email(self, email: Email) -> Contact:
        """Get the contact with an e-mail address; an address belongs to one contact at most.

        Args:
            email: The address, in any case.
        """
        contact = self.state.contacts.first(email=email.lower())
        if contact is None:
            raise NotFound(f"no contact has the e-mail address {email!r}")
        return contact

    @tool(effect="write")
    def create_contact(
        self,
        account_id: AccountId,
        name: PersonName,
        email: Email,
        phone: Phone | None = None,
        role: JobRole | None = None,
    ) -> Contact:
        """Add a contact to an active account; the account's first contact becomes its primary one.

        Args:
            account_id: The account at which the person works.
            name: Full name.
            email: E-mail address, which no other contact may have.
            phone: Phone number.
            role: What the person does there, e.g. "Purchasing Manager".
        """
        self.active_account(account_id)
        is_first = self.state.contacts.first(account_id=account_id) is None
        return self.state.contacts.insert(
            account_id=account_id, name=name, email=email.lower(), phone=phone, role=role, is_primary=is_first
        )

    @tool(effect="write")
    def update_contact(
        self,
        contact_id: ContactId,
        name: PersonName | None = None,
        email: Email | None = None,
        phone: Phone | None = None,
        role: JobRole | None = None,
    ) -> Contact:
        """Change the given fields of a contact.

        Args:
            contact_id: The contact.
            name: New full name.
            email: New e-mail address, which no other contact may have.
            phone: New phone number.
            role: New role.
        """
        return self.state.contacts.update(contact_id, **changes(name=name, email=email, phone=phone, role=role))

    @tool(effect="write")
    def set_primary_contact(self, contact_id: ContactId) -> Contact:
        """Make a contact the primary one of its account, instead of whoever is now.

        Args:
            contact_id: The contact.
        """
        contact = self.state.contacts.get(contact_id)
        if contact.is_primary:
            raise FailedPrecondition(f"{contact_id} is the primary contact already")
        for other in self.state.contacts.where(account_id=contact.account_id, is_primary=True):
            self.state.contacts.update(other.id, is_primary=False)
        return self.state.contacts.update(contact_id, is_primary=True)

    @tool(effect="write")
    def delete_contact(self, contact_id: ContactId) -> Contact:
        """Delete a contact that no case or activity mentions; a primary contact only if the account has no other.

        Args:
            contact_id: The contact.
        """
        contact = self.state.contacts.get(contact_id)
        if contact.is_primary and len(self.state.contacts.where(account_id=contact.account_id)) > 1:
            raise FailedPrecondition(
                f"{contact_id} is the primary contact of {contact.account_id}; choose another one first"
            )
        return self.state.contacts.delete(contact_id)

    @tool(effect="read")
    def list_crm_users(
        self, name: Query | None = None, limit: Limit = 20, cursor: Cursor | None = None
    ) -> Page[CrmUser]:
        """List the colleagues who can own accounts, deals and cases, in alphabetical order of their names.

        Args:
            name: Part of the person's name, in any case.
            limit: Most colleagues to return.
            cursor: `next_cursor` of the previous page.
        """
        part = (name or "").casefold()
        rows = self.state.users.where(lambda row: part in row.name.casefold())
        return paginate(sorted(rows, key=lambda row: row.name.casefold()), limit, cursor)
