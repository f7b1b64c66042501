"""Payments, refunds and credit notes: nothing is given back twice."""

from __future__ import annotations

from typing import Final

from compoworld_core.library.filters import given
from compoworld_core.library.finance.books import (
    Books,
    book_credit_note,
    book_payment,
    book_refund,
    next_number,
    total_of,
)
from compoworld_core.library.finance.ledger import (
    CreditNote,
    CustomerId,
    InvoiceId,
    Payment,
    PaymentId,
    PaymentMethod,
    PaymentReference,
    PositiveAmount,
    Reason,
    Refund,
    RefundId,
)
from compoworld_core.services.sdk import Cursor, Day, FailedPrecondition, Limit, Page, paginate, tool

REFERENCE_LETTERS: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"


class Payments(Books):
    """Tools on payments, refunds and credit notes."""

    @tool(effect="read")
    def list_payments(
        self,
        customer_id: CustomerId | None = None,
        invoice_id: InvoiceId | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Payment]:
        """List payments that satisfy all given filters, latest first.

        Args:
            customer_id: Only payments by this customer.
            invoice_id: Only payments for this invoice.
            limit: Most payments to return.
            cursor: `next_cursor` of the previous page.
        """
        self.check_known(customer_id, invoice_id)
        rows = self.state.payments.where(**given(customer_id=customer_id, invoice_id=invoice_id))
        return paginate(sorted(rows, key=lambda row: row.received_on)[::-1], limit, cursor)

    @tool(effect="read")
    def get_payment(self, payment_id: PaymentId) -> Payment:
        """Get a payment with its refundable balance as it is now.

        Args:
            payment_id: The payment.
        """
        return self.state.payments.get(payment_id)

    @tool(effect="write")
    def record_payment(
        self,
        invoice_id: InvoiceId,
        amount: PositiveAmount,
        method: PaymentMethod = "bank_transfer",
        received_on: Day | None = None,
        reference: PaymentReference | None = None,
    ) -> Payment:
        """Book money received for an open or overdue invoice; the invoice is paid once nothing is due.

        Args:
            invoice_id: The invoice.
            amount: What was received, at most the amount due.
            method: How it was paid.
            received_on: When it arrived, from the issue day to today; today, if left out.
            reference: The bank's or the card processor's reference, which no other payment may have.
        """
        invoice = self.unpaid(invoice_id)
        if amount > invoice.amount_due:
            raise FailedPrecondition(f"amount: {amount} is more than the {invoice.amount_due} due on {invoice_id}")
        day = received_on or self.today
        if day > self.today or (invoice.issued_on is not None and day < invoice.issued_on):
            raise FailedPrecondition(f"received_on: {day} is not between {invoice.issued_on} and {self.today}")
        return book_payment(
            self.state, invoice, amount, self.today, method=method, received_on=day, reference=reference
        )

    @tool(effect="write")
    def apply_customer_credit(self, invoice_id: InvoiceId, amount: PositiveAmount | None = None) -> Payment:
        """Pay an open or overdue invoice, wholly or in part, with the customer's unused credit.

        Args:
            invoice_id: The invoice.
            amount: Credit to use; as much as there is and is due, if left out.
        """
        invoice = self.unpaid(invoice_id)
        customer = self.state.customers.get(invoice.customer_id)
        usable = min(customer.credit_balance, invoice.amount_due)
        if not usable or (amount is not None and amount > usable):
            raise FailedPrecondition(
                f"{usable} of credit can be used: {customer.id} has {customer.credit_balance}, "
                f"and {invoice.amount_due} is due on {invoice_id}"
            )
        used = usable if amount is None else amount
        self.state.customers.update(customer.id, credit_balance=customer.credit_balance - used)
        return book_payment(self.state, invoice, used, self.today, method="account_credit", received_on=self.today)

    @tool(effect="write")
    def create_refund(self, payment_id: PaymentId, amount: PositiveAmount, reason: Reason) -> Refund:
        """Pay back a payment, wholly or in part, and get the refund's reference.

        Args:
            payment_id: The payment.
            amount: What to pay back, at most the payment's refundable balance.
            reason: Why it is paid back.
        """
        payment = self.state.payments.get(payment_id)
        if amount > payment.refundable_balance:
            raise FailedPrecondition(
                f"amount: {amount} is more than the refundable balance of {payment_id}, {payment.refundable_balance}"
            )
        reference = "RF-" + "".join(self.rng.choices(REFERENCE_LETTERS, k=8))
        return book_refund(self.state, payment, amount, reason=reason, reference=reference, booked_on=self.today)

    @tool(effect="read")
    def get_refund(self, refund_id: RefundId) -> Refund:
        """Get a refund.

        Args:
            refund_id: The refund.
        """
        return self.state.refunds.get(refund_id)

    @tool(effect="read")
    def list_refunds(
        self,
        customer_id: CustomerId | None = None,
        invoice_id: InvoiceId | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Refund]:
        """List refunds that satisfy all given filters, latest first.

        Args:
            customer_id: Only refunds to this customer.
            invoice_id: Only refunds of this invoice's payments.
            limit: Most refunds to return.
            cursor: `next_cursor` of the previous page.
        """
        self.check_known(customer_id, invoice_id)
        rows = self.state.refunds.where(**given(customer_id=customer_id, invoice_id=invoice_id))
        return paginate(sorted(rows, key=lambda row: row.booked_on)[::-1], limit, cursor)

    @tool(effect="write")
    def create_credit_note(self, invoice_id: InvoiceId, amount: PositiveAmount, reason: Reason) -> CreditNote:
        """Credit an issued invoice: what is still due is lowered first, and the rest becomes the customer's credit.

        Money that was paid and becomes credit is not refundable any more.

        Args:
            invoice_id: The invoice: open, overdue or paid.
            amount: Gross amount, at most what is due plus what is refundable of the invoice's payments.
            reason: Why it is credited.
        """
        invoice = self.state.invoices.get(invoice_id)
        if invoice.status in ("draft", "void"):
            raise FailedPrecondition(f"{invoice_id} is {invoice.status}; only an issued invoice can be credited")
        payments = self.state.payments.where(invoice_id=invoice_id)
        most = invoice.amount_due + total_of(payment.refundable_balance for payment in payments)
        if amount > most:
            raise FailedPrecondition(f"amount: {amount} is more than the {most} of {invoice_id} that can be credited")
        number = next_number(f"CN-{self.today.year}-", (row.number for row in self.state.credit_notes))
        return book_credit_note(
            self.state, invoice, amount, self.today, number=number, reason=reason, issued_on=self.today
        )

    @tool(effect="read")
    def list_credit_notes(
        self,
        customer_id: CustomerId | None = None,
        invoice_id: InvoiceId | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[CreditNote]:
        """List credit notes that satisfy all given filters, latest first.

        Args:
            customer_id: Only credit notes to this customer.
            invoice_id: Only credit notes on this invoice.
            limit: Most credit notes to return.
            cursor: `next_cursor` of the previous page.
        """
        self.check_known(customer_id, invoice_id)
        rows = self.state.credit_notes.where(**given(customer_id=customer_id, invoice_id=invoice_id))
        return paginate(sorted(rows, key=lambda row: row.issued_on)[::-1], limit, cursor)
