"""Invoicing: its tools together, and the books that a new world starts with."""

from __future__ import annotations

import random
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Final

from compoworld_core.library.finance.books import (
    ZERO,
    book_credit_note,
    book_payment,
    book_refund,
    cents,
    next_number,
    priced,
    standing,
    sums,
)
from compoworld_core.library.finance.customers import Customers
from compoworld_core.library.finance.invoices import Invoices
from compoworld_core.library.finance.ledger import Customer, Invoice, InvoicingState, NewLine
from compoworld_core.library.finance.payments import REFERENCE_LETTERS, Payments

if TYPE_CHECKING:
    from compoworld_core.services.universe import Product, Universe

_TAX: Final = {
    "Belgium": "21.00",
    "Denmark": "25.00",
    "Finland": "25.50",
    "France": "20.00",
    "Germany": "19.00",
    "Ireland": "23.00",
    "Italy": "22.00",
    "Netherlands": "21.00",
    "Norway": "25.00",
    "Portugal": "23.00",
    "Spain": "21.00",
    "Sweden": "25.00",
}
_FATES: Final = ("open", "open", "overdue", "overdue", "part_paid", "draft", "void", "credited")
"""What became of the later invoices of a customer; the first one is always paid."""
_REFUND_REASONS: Final = ("One unit arrived damaged.", "Charged twice for freight.", "Part of the order was returned.")


class Invoicing(Customers, Invoices, Payments):
    """Customers, invoices, payments, refunds, credit notes and payment reminders of the finance department."""

    domain = "finance"

    @classmethod
    def populate(cls, state: InvoicingState, universe: Universe, rng: random.Random, start: datetime) -> None:
        """Each organisation as a customer with a paid invoice and, for two in three, another one in any other state.

        Billing ids count the organisations of the universe, as those of the accounts in `Crm` do.
        """
        books = _OpeningBooks(state, universe.products, rng, start.date())
        contacts = {person.organisation: person for person in reversed(universe.contacts)}
        fates = rng.sample(_FATES, len(_FATES))
        plan: list[tuple[date, str, Customer]] = []
        for number, organisation in enumerate(universe.organisations):
            contact = contacts.get(organisation.name)
            customer = state.customers.insert(
                name=organisation.name,
                contact_name=contact.name if contact else None,
                email=contact.email if contact else f"accounts@{organisation.domain}",
                billing_id=f"BP-{10001 + number}",
                payment_terms_days=rng.choice((14, 30, 30)),
                tax_rate=_TAX.get(organisation.country, "21.00"),
                city=organisation.city,
                country=organisation.country,
                credit_balance=ZERO,
            )
            plan.append((books.days_ago(35, 110), "paid", customer))
            if number % 3 != 2:
                fate = fates[(number - number // 3) % len(fates)]
                plan.append((books.issue_day(fate, customer), fate, customer))
        plan.sort(key=lambda item: item[0])
        for issued_on, fate, customer in plan:
            books.add(issued_on, fate, customer)
        for _, _, late in [item for item in plan if item[1] == "overdue"][::10]:
            state.customers.update(late.id, status="on_hold", hold_reason="Does not answer our payment reminders.")


class _OpeningBooks:
    """Books invoices of the past, oldest first, through the same functions as the tools."""

    def __init__(self, state: InvoicingState, products: tuple[Product, ...], rng: random.Random, today: date) -> None:
        self.state, self.products, self.rng, self.today = state, products, rng, today

    def days_ago(self, fewest: int, most: int) -> date:
        return self.today - timedelta(days=self.rng.randint(fewest, most))

    def issue_day(self, fate: str, customer: Customer) -> date:
        terms = customer.payment_terms_days
        if fate == "draft":
            return self.today
        return self.days_ago(terms + 3, terms + 45) if fate == "overdue" else self.days_ago(2, terms - 2)

    def add(self, issued_on: date, fate: str, customer: Customer) -> None:
        """Book an invoice and what followed from it."""
        invoice = self._invoice(issued_on, fate, customer)
        if fate == "paid":
            payment = self._pay(invoice, invoice.total)
            if self.rng.random() < 0.2:
                self._refund(payment.id)
        elif fate == "part_paid":
            self._pay(invoice, cents(invoice.total * self.rng.choice((Decimal("0.25"), Decimal("0.50")))))
        elif fate == "credited":
            self._credit(self.state.invoices.first(customer_id=customer.id, status="paid") or invoice)
        elif fate == "overdue":
            self._remind(invoice, customer)
        elif fate == "void":
            self.state.invoices.update(invoice.id, status="void", amount_due=ZERO, void_reason="Issued by mistake.")

    def _invoice(self, issued_on: date, fate: str, customer: Customer) -> Invoice:
        lines = tuple(
            priced(
                NewLine(
                    product_name=product.name,
                    sku=product.sku,
                    quantity=self.rng.randint(1, 8),
                    unit_price=product.price,
                )
            )
            for product in self.rng.sample(self.products, self.rng.randint(1, 3))
        )
        fields: dict[str, Any] = sums(lines, customer.tax_rate)
        if fate != "draft":
            fields["number"] = next_number(f"INV-{issued_on.year}-", (row.number for row in self.state.invoices))
            fields["issued_on"] = issued_on
            fields["due_on"] = issued_on + timedelta(days=customer.payment_terms_days)
            fields["status"] = standing(fields["total"], fields["due_on"], self.today)
        return self.state.invoices.insert(
            customer_id=customer.id,
            currency=customer.currency,
            tax_rate=customer.tax_rate,
            paid=ZERO,
            credited=ZERO,
            refunded=ZERO,
            purchase_order=f"PO-{self.rng.randint(10000, 99999)}" if self.rng.random() < 0.6 else None,
            **fields,
        )

    def _credit(self, invoice: Invoice) -> None:
        issued_on = self.today - timedelta(days=1)
        number = next_number(f"CN-{issued_on.year}-", (row.number for row in self.state.credit_notes))
        book_credit_note(
            self.state,
            invoice,
            cents(invoice.total / 10),
            self.today,
            number=number,
            reason="Discount agreed after a late delivery.",
            issued_on=issued_on,
        )

    def _remind(self, invoice: Invoice, customer: Customer) -> None:
        self.state.reminders.insert(
            invoice_id=invoice.id,
            customer_id=customer.id,
            level=1,
            sent_to=customer.email,
            sent_on=self._after(invoice.due_on or self.today, 10),
            amount_due=invoice.amount_due,
        )

    def _after(self, day: date, most: int) -> date:
        return min(self.today, day + timedelta(days=self.rng.randint(1, most)))

    def _reference(self, prefix: str) -> str:
        return prefix + "".join(self.rng.choices(REFERENCE_LETTERS, k=8))

    def _pay(self, invoice: Invoice, amount: Decimal) -> Any:
        return book_payment(
            self.state,
            invoice,
            amount,
            self.today,
            method=self.rng.choice(("bank_transfer", "bank_transfer", "card", "direct_debit")),
            received_on=self._after(invoice.issued_on or self.today, 30),
            reference=self._reference("TX-"),
        )

    def _refund(self, payment_id: str) -> None:
        payment = self.state.payments.get(payment_id)
        book_refund(
            self.state,
            payment,
            cents(payment.amount / 10),
            reason=self.rng.choice(_REFUND_REASONS),
            reference=self._reference("RF-"),
            booked_on=self._after(payment.received_on, 15),
        )
