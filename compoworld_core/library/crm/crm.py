"""The CRM: its tools together, and the customer base that a new world starts with."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from compoworld_core.library.crm.accounts import Accounts
from compoworld_core.library.crm.cases import Cases
from compoworld_core.library.crm.deals import Deals
from compoworld_core.library.crm.records import Account, CaseStatus, CrmState, DealStage

if TYPE_CHECKING:
    from compoworld_core.services.universe import Universe

_STAGES: Final[tuple[DealStage, ...]] = ("qualification", "proposal", "negotiation", "negotiation", "won", "lost")
_STATUSES: Final[tuple[CaseStatus, ...]] = ("open", "in_progress", "waiting", "closed", "closed")
_LOST: Final = (
    "Chose a cheaper supplier.",
    "The budget was cut for this year.",
    "No answer after three reminders.",
    "They will build it in house.",
)
_OFFERS: Final = ("framework order", "renewal", "first order", "extension")
_CASES: Final[tuple[tuple[str, str, str, str], ...]] = (
    ("question", "Which spare parts fit the {product}?", "They want a list before the next service.", "Sent the list."),
    ("complaint", "{product} arrived scratched", "Two of the units have scratches.", "Replaced the damaged units."),
    ("refund", "Refund for a {product} order", "They were charged for more than arrived.", "Refunded the difference."),
    ("return", "Return of one {product}", "Ordered one too many; it is unopened.", "Collected by the carrier."),
    ("change", "Different delivery address for the {product}", "The site has moved.", "Address changed in the order."),
    ("question", "When will the {product} be delivered?", "The confirmation gave no date.", "Gave the delivery week."),
)
_ACTIVITIES: Final = (
    ("call", "Call about the {product}", "They are happy with it so far and may order more next quarter."),
    ("meeting", "Visit on site", "Saw the new hall; delivery has to go through the north gate."),
    ("email", "Price list sent", "Sent the current price list as they asked."),
    ("note", "Prefers to be called in the morning", "The office is busiest after lunch."),
    ("call", "Check-in before the renewal", "No complaints; wants an offer for the {product}."),
)


class Crm(Accounts, Deals, Cases):
    """Customer accounts with their contacts, deals, cases and activities, and who of us owns them."""

    domain = "crm"

    @classmethod
    def populate(cls, state: CrmState, universe: Universe, rng: random.Random, start: datetime) -> None:
        """All staff as users, each organisation as an account with its contacts, and up to three of everything else.

        One account in five is quiet: all its deals and cases are closed.

        Billing ids count the organisations of the universe, as those of the customers in `Invoicing` do.
        """
        for person in universe.staff:
            state.users.insert(name=person.name, email=person.email, role=person.role)
        sales = [person.email for person in universe.staff if person.department in ("Sales", "Support", "Marketing")]
        owners = sales or [person.email for person in universe.staff]
        people: dict[str, list[Any]] = {}
        for person in universe.contacts:
            people.setdefault(person.organisation, []).append(person)
        products = [product.name for product in universe.products]
        for number, organisation in enumerate(universe.organisations):
            account = state.accounts.insert(
                name=organisation.name,
                industry=organisation.industry,
                tier=rng.choice(("bronze", "bronze", "silver", "silver", "gold")),
                owner_email=rng.choice(owners),
                billing_id=f"BP-{10001 + number}",
                phone=organisation.phone,
                city=organisation.city,
                country=organisation.country,
                created_on=(start - timedelta(days=rng.randint(120, 1500))).date(),
            )
            contacts = [
                state.contacts.insert(
                    account_id=account.id,
                    name=person.name,
                    email=person.email,
                    phone=person.phone,
                    role=person.role,
                    is_primary=place == 0,
                ).id
                for place, person in enumerate(people.get(organisation.name, ()))
            ]
            seed = _Seed(state, account, contacts, products, rng, start)
            is_quiet = number % 5 == 4
            for _ in range(rng.randint(1, 3)):
                seed.add_deal(("won", "lost") if is_quiet else _STAGES)
            for _ in range(rng.randint(1, 3)):
                seed.add_case(("closed",) if is_quiet else _STATUSES)
            for _ in range(rng.randint(1, 3)):
                seed.add_activity()


class _Seed:
    """Adds believable rows to one account."""

    def __init__(
        self,
        state: CrmState,
        account: Account,
        contacts: list[str],
        products: list[str],
        rng: random.Random,
        start: datetime,
    ) -> None:
        self.state, self.account, self.contacts, self.products = state, account, contacts, products
        self.rng, self.start = rng, start

    def _contact(self) -> str | None:
        return self.rng.choice(self.contacts) if self.contacts else None

    def _ago(self, most: int) -> datetime:
        return self.start - timedelta(days=self.rng.randint(1, most), minutes=15 * self.rng.randint(0, 30))

    def add_deal(self, stages: tuple[DealStage, ...]) -> None:
        rng = self.rng
        stage = rng.choice(stages)
        closed = self._ago(120).date() if stage in ("won", "lost") else None
        expected = self.start.date() + timedelta(days=rng.randint(7, 100))
        self.state.deals.insert(
            account_id=self.account.id,
            name=f"{rng.choice(self.products)}: {rng.choice(_OFFERS)}",
            stage=stage,
            amount=Decimal(rng.randint(15, 900)) * 100,
            close_date=closed + timedelta(days=rng.randint(-10, 10)) if closed else expected,
            closed_on=closed,
            lost_reason=rng.choice(_LOST) if stage == "lost" else None,
            owner_email=self.account.owner_email,
        )

    def add_case(self, statuses: tuple[CaseStatus, ...]) -> None:
        rng = self.rng
        kind, summary, description, resolution = rng.choice(_CASES)
        status = rng.choice(statuses)
        opened = self._ago(40)
        end: Mapping[str, Any] = (
            {"closed_at": opened + timedelta(minutes=rng.randint(30, 1400)), "resolution": resolution}
            if status == "closed"
            else {}
        )
        self.state.cases.insert(
            account_id=self.account.id,
            contact_id=self._contact(),
            kind=kind,
            priority=rng.choice(("low", "normal", "normal", "high", "urgent")),
            status=status,
            summary=summary.format(product=rng.choice(self.products)),
            description=description,
            owner_email=self.account.owner_email,
            opened_at=opened,
            **end,
        )

    def add_activity(self) -> None:
        kind, subject, notes = self.rng.choice(_ACTIVITIES)
        product = self.rng.choice(self.products)
        self.state.activities.insert(
            account_id=self.account.id,
            contact_id=self._contact(),
            kind=kind,
            subject=subject.format(product=product),
            notes=notes.format(product=product),
            author_email=self.account.owner_email,
            occurred_at=self._ago(60),
        )
