"""Customers: whom we bill, on which terms, and where they stand."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from compoworld_core.library.filters import changes, given
from compoworld_core.library.finance.books import ZERO, Books, next_number, total_of
from compoworld_core.library.finance.ledger import (
    BillingId,
    Customer,
    CustomerBalance,
    CustomerId,
    CustomerStatement,
    Reason,
    StatementEntry,
    TaxRate,
    TermsDays,
)
from compoworld_core.services.sdk import (
    City,
    Country,
    Currency,
    Cursor,
    Day,
    Email,
    FailedPrecondition,
    InvalidArguments,
    Limit,
    OrganisationName,
    Page,
    PersonName,
    Query,
    paginate,
    tool,
)

_Kind = Literal["invoice", "payment", "credit_note", "refund"]
_Booking = tuple[Day, int, _Kind, str, str | None, Decimal, Decimal]


class Customers(Books):
    """Tools on customers, their balances and statements."""

    @tool(effect="read")
    def search_customers(
        self,
        name: Query | None = None,
        email: Email | None = None,
        billing_id: BillingId | None = None,
        status: Literal["active", "on_hold"] | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Customer]:
        """Find customers that satisfy all given filters, in alphabetical order of their names.

        Args:
            name: Part of the organisation's name, in any case.
            email: Address to which invoices are sent, in any case.
            billing_id: Exact billing id.
            status: Only customers with this status.
            limit: Most customers to return.
            cursor: `next_cursor` of the previous page.
        """
        part = (name or "").casefold()
        rows = self.state.customers.where(
            lambda row: part in row.name.casefold(), **given(email=email, billing_id=billing_id, status=status)
        )
        return paginate(sorted(rows, key=lambda row: row.name.casefold()), limit, cursor)

    @tool(effect="read")
    def get_customer(self, customer_id: CustomerId) -> Customer:
        """Get a customer.

        Args:
            customer_id: The customer.
        """
        return self.state.customers.get(customer_id)

    @tool(effect="write")
    def create_customer(
        self,
        name: OrganisationName,
        email: Email,
        tax_rate: TaxRate,
        billing_id: BillingId | None = None,
        contact_name: PersonName | None = None,
        currency: Currency = "EUR",
        payment_terms_days: TermsDays = 30,
        city: City | None = None,
        country: Country | None = None,
    ) -> Customer:
        """Create a customer; its name and billing id must not be taken.

        Args:
            name: The organisation's full name.
            email: Address to which invoices are sent.
            tax_rate: Tax on its invoices, in percent of the net amount.
            billing_id: Number under which other systems know the customer; the next free one, if left out.
            contact_name: Person to whom invoices are addressed.
            currency: Three-letter code of the currency of its invoices; it can't be changed later.
            payment_terms_days: Days from issue to due date of its invoices.
            city: City of the billing address.
            country: Country of the billing address.
        """
        return self.state.customers.insert(
            name=name,
            email=email.lower(),
            tax_rate=tax_rate,
            billing_id=billing_id or next_number("BP-", (row.billing_id for row in self.state.customers)),
            contact_name=contact_name,
            currency=currency,
            payment_terms_days=payment_terms_days,
            city=city,
            country=country,
            credit_balance=ZERO,
        )

    @tool(effect="write")
    def update_customer(
        self,
        customer_id: CustomerId,
        name: OrganisationName | None = None,
        email: Email | None = None,
        contact_name: PersonName | None = None,
        payment_terms_days: TermsDays | None = None,
        tax_rate: TaxRate | None = None,
        city: City | None = None,
        country: Country | None = None,
    ) -> Customer:
        """Change the given fields of a customer. Existing invoices keep their terms and rates.

        Args:
            customer_id: The customer.
            name: New name.
            email: New address to which invoices are sent.
            contact_name: New person to whom invoices are addressed.
            payment_terms_days: New days from issue to due date.
            tax_rate: New tax rate in percent.
            city: New city.
            country: New country.
        """
        return self.state.customers.update(
            customer_id,
            **changes(
                name=name,
                email=email,
                contact_name=contact_name,
                payment_terms_days=payment_terms_days,
                tax_rate=tax_rate,
                city=city,
                country=country,
            ),
        )

    @tool(effect="write")
    def place_customer_on_hold(self, customer_id: CustomerId, reason: Reason) -> Customer:
        """Stop new invoices to a customer until the hold is released. Payments and refunds stay possible.

        Args:
            customer_id: The customer.
            reason: Why no invoices are to be issued.
        """
        if self.state.customers.get(customer_id).status == "on_hold":
            raise FailedPrecondition(f"{customer_id} is on hold already")
        return self.state.customers.update(customer_id, status="on_hold", hold_reason=reason)

    @tool(effect="write")
    def release_customer_hold(self, customer_id: CustomerId) -> Customer:
        """Allow new invoices to a customer on hold again.

        Args:
            customer_id: The customer.
        """
        if self.state.customers.get(customer_id).status != "on_hold":
            raise FailedPrecondition(f"{customer_id} is not on hold")
        return self.state.customers.update(customer_id, status="active", hold_reason=None)

    @tool(effect="read")
    def get_customer_balance(self, customer_id: CustomerId) -> CustomerBalance:
        """Get what a customer owes in all and overdue, its unused credit, and how much of its payments is refundable.

        Args:
            customer_id: The customer.
        """
        customer = self.state.customers.get(customer_id)
        unpaid = [
            row for row in self.state.invoices.where(customer_id=customer_id) if row.status in ("open", "overdue")
        ]
        overdue = [row for row in unpaid if self.is_overdue(row)]
        return CustomerBalance(
            customer_id=customer_id,
            currency=customer.currency,
            outstanding=total_of(row.amount_due for row in unpaid),
            overdue=total_of(row.amount_due for row in overdue),
            unpaid_invoices=len(unpaid),
            overdue_invoices=len(overdue),
            oldest_due_on=min((row.due_on for row in unpaid if row.due_on), default=None),
            credit_balance=customer.credit_balance,
            refundable=total_of(row.refundable_balance for row in self.state.payments.where(customer_id=customer_id)),
        )

    @tool(effect="read")
    def get_customer_statement(
        self, customer_id: CustomerId, from_day: Day | None = None, to_day: Day | None = None
    ) -> CustomerStatement:
        """Get a customer's invoices, payments, credit notes and refunds over some days, with the balance after each.

        Drafts, void invoices and uses of credit are left out. A refund gives up the claim that it pays back, so it
        leaves the balance as it is.

        Args:
            customer_id: The customer.
            from_day: First day; the beginning, if left out.
            to_day: Last day; today, if left out.
        """
        customer = self.state.customers.get(customer_id)
        last = to_day or self.today
        if from_day is not None and from_day > last:
            raise InvalidArguments(f"from_day: {from_day} is after the last day, {last}")
        opening = balance = ZERO
        entries = []
        for day, _, kind, document_id, reference, debit, credit in sorted(
            self._bookings(customer_id), key=lambda b: b[:4]
        ):
            if day > last:
                break
            balance += debit - credit
            if from_day is not None and day < from_day:
                opening = balance
                continue
            entries.append(
                StatementEntry(
                    day=day,
                    kind=kind,
                    document_id=document_id,
                    reference=reference,
                    debit=debit,
                    credit=credit,
                    balance=balance,
                )
            )
        return CustomerStatement(
            customer_id=customer_id,
            currency=customer.currency,
            from_day=from_day,
            to_day=last,
            opening_balance=opening,
            entries=tuple(entries),
            closing_balance=balance,
        )

    def _bookings(self, customer_id: str) -> list[_Booking]:
        state = self.state
        found: list[_Booking] = []
        for invoice in state.invoices.where(customer_id=customer_id):
            if invoice.issued_on is not None and invoice.status != "void":
                found.append((invoice.issued_on, 0, "invoice", invoice.id, invoice.number, invoice.total, ZERO))
        for payment in state.payments.where(customer_id=customer_id):
            if payment.method != "account_credit":
                found.append((payment.received_on, 1, "payment", payment.id, payment.reference, ZERO, payment.amount))
        for note in state.credit_notes.where(customer_id=customer_id):
            found.append((note.issued_on, 2, "credit_note", note.id, note.number, ZERO, note.amount))
        for refund in state.refunds.where(customer_id=customer_id):
            found.append((refund.booked_on, 3, "refund", refund.id, refund.reference, refund.amount, refund.amount))
        return found
