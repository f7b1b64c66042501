"""What a CRM holds: accounts, and everything that hangs on one."""

from __future__ import annotations

from typing import Annotated, Literal

from compoworld_core.services.sdk import (
    City,
    Country,
    Currency,
    Day,
    Email,
    Entity,
    Field,
    Id,
    Money,
    OrganisationName,
    PersonName,
    Phone,
    Rule,
    Semantic,
    State,
    Table,
    Test,
    Text,
    Timestamp,
    Title,
    table,
)

UserId = Annotated[str, Id("crm_user", prefix="usr")]
AccountId = Annotated[str, Id("account", prefix="acc")]
ContactId = Annotated[str, Id("contact", prefix="con")]
DealId = Annotated[str, Id("deal", prefix="deal")]
CaseId = Annotated[str, Id("case", prefix="case")]
ActivityId = Annotated[str, Id("activity", prefix="act")]

BillingId = Annotated[str, Field(min_length=1, max_length=40), Semantic("billing_id")]
"""The number under which the finance system bills an organisation."""
Industry = Annotated[str, Field(min_length=1, max_length=80), Semantic("industry")]
JobRole = Annotated[str, Field(min_length=1, max_length=120), Semantic("job_role")]
Reason = Annotated[str, Field(pattern=r"\S", max_length=4000), Semantic("text")]
"""A text that says something."""

Tier = Literal["bronze", "silver", "gold"]
OpenStage = Literal["qualification", "proposal", "negotiation"]
DealStage = Literal["qualification", "proposal", "negotiation", "won", "lost"]
CaseKind = Literal["question", "complaint", "refund", "return", "change"]
CaseStatus = Literal["open", "in_progress", "waiting", "closed"]
Priority = Literal["low", "normal", "high", "urgent"]
ActivityKind = Literal["call", "email", "meeting", "note"]
DealAmount = Annotated[Money, Field(ge=0, le=1_000_000_000)]


class CrmUser(Entity):
    """A colleague who can own accounts, deals and cases."""

    id: UserId
    name: PersonName
    email: Email
    role: JobRole


class Account(Entity):
    """An organisation that we deal with. A prospect has no billing id yet."""

    id: AccountId
    name: OrganisationName
    industry: Industry
    tier: Tier = "bronze"
    status: Literal["active", "archived"] = "active"
    owner_email: Email
    billing_id: BillingId | None = None
    phone: Phone | None = None
    city: City
    country: Country
    created_on: Day


class Contact(Entity):
    """A person at an account; one of an account's contacts is the primary one."""

    id: ContactId
    account_id: AccountId
    name: PersonName
    email: Email
    phone: Phone | None = None
    role: JobRole | None = None
    is_primary: bool = False


class Deal(Entity):
    """A sale in the making. `close_date` is when we expect to close it, `closed_on` when we did."""

    id: DealId
    account_id: AccountId
    name: Title
    stage: DealStage = "qualification"
    amount: DealAmount
    currency: Currency = "EUR"
    close_date: Day
    closed_on: Day | None = None
    lost_reason: Reason | None = None
    owner_email: Email


class Case(Entity):
    """Something that a customer asked us to deal with."""

    id: CaseId
    account_id: AccountId
    contact_id: ContactId | None = None
    kind: CaseKind
    priority: Priority = "normal"
    status: CaseStatus = "open"
    summary: Title
    description: Text = ""
    owner_email: Email
    opened_at: Timestamp
    closed_at: Timestamp | None = None
    resolution: Reason | None = None


class Activity(Entity):
    """A call, message, meeting or note on an account. It is a record of the past and never changes."""

    id: ActivityId
    account_id: AccountId
    contact_id: ContactId | None = None
    kind: ActivityKind
    subject: Title
    notes: Text = ""
    author_email: Email
    occurred_at: Timestamp


class AccountOverview(Entity):
    """An account at a glance."""

    account: Account
    primary_contact: Contact | None
    contacts: int
    open_deals: int
    open_deal_amount: Money
    won_amount: Money
    open_cases: int
    last_activity_at: Timestamp | None


_IS_CLOSED = Test(field="stage", op="in", value=["won", "lost"])


class CrmState(State):
    """Tables of the CRM."""

    users: Table[CrmUser] = table(unique=("email",))
    accounts: Table[Account] = table(unique=("name", "billing_id"))
    contacts: Table[Contact] = table(unique=("email",))
    deals: Table[Deal] = table(
        rules=(
            Rule(
                where=(_IS_CLOSED,),
                satisfies=(Test(field="closed_on", op="ne"),),
                message="a won or lost deal needs the day on which it was closed",
            ),
            Rule(
                where=(Test(field="closed_on", op="ne"),),
                satisfies=(_IS_CLOSED,),
                message="a deal that is still open can't have a closing day",
            ),
            Rule(
                where=(Test(field="stage", value="lost"),),
                satisfies=(Test(field="lost_reason", op="ne"),),
                message="a lost deal needs the reason why it was lost",
            ),
            Rule(
                where=(Test(field="stage", value="won"),),
                satisfies=(Test(field="amount", op="gt", value=0),),
                message="a won deal needs an amount above zero",
            ),
        )
    )
    cases: Table[Case] = table(
        rules=(
            Rule(
                where=(Test(field="status", value="closed"),),
                satisfies=(Test(field="resolution", op="ne"), Test(field="closed_at", op="ne")),
                message="a closed case needs a resolution and a closing time",
            ),
            Rule(
                where=(Test(field="status", op="ne", value="closed"),),
                satisfies=(Test(field="resolution"), Test(field="closed_at")),
                message="a case that is not closed has no resolution and no closing time",
            ),
        )
    )
    activities: Table[Activity] = table()
