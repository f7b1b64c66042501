"""Bookings: the arithmetic of invoices, and the only functions that move money.

What a customer owes on an invoice changes here and nowhere else, so that for every invoice
`total = amount_due + paid + applied credit notes`, and for every payment in money
`amount = refunded + refundable_balance + what credit notes turned into credit`.
All amounts are decimal and rounded half up.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import date
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

from compoworld_core.library.finance.ledger import (
    CreditNote,
    Customer,
    Invoice,
    InvoiceStatus,
    InvoicingState,
    Line,
    NewLine,
    Payment,
    Refund,
)
from compoworld_core.services.sdk import FailedPrecondition, LimitExceeded, Service

ZERO: Final = Decimal("0.00")
MAX_TOTAL: Final = Decimal(1_000_000_000)
"""Largest total of an invoice, so that the sum of any customer's invoices is a legal amount too."""


def cents(amount: Decimal) -> Decimal:
    """The amount with two decimals, half up."""
    return amount.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)


def total_of(amounts: Iterable[Decimal]) -> Decimal:
    """Sum with two decimals."""
    return sum(amounts, ZERO)


def priced(line: NewLine) -> Line:
    """A line with its net amount."""
    return Line(
        product_name=line.product_name,
        sku=line.sku,
        quantity=line.quantity,
        unit_price=line.unit_price,
        amount=cents(line.quantity * line.unit_price),
    )


def sums(lines: tuple[Line, ...], tax_rate: Decimal) -> dict[str, Any]:
    """The fields of an unpaid invoice with these lines; tax is computed on the net sum, not line by line.

    Raises:
        LimitExceeded: The total is too large.
    """
    net = total_of(line.amount for line in lines)
    tax = cents(net * tax_rate / 100)
    total = net + tax
    if total > MAX_TOTAL:
        raise LimitExceeded(f"the total would be {total}; an invoice can have {MAX_TOTAL} at most")
    return {"lines": lines, "net": net, "tax": tax, "total": total, "amount_due": total}


def standing(amount_due: Decimal, due_on: date | None, today: date) -> InvoiceStatus:
    """Status of an issued invoice."""
    if not amount_due:
        return "paid"
    return "overdue" if due_on is not None and due_on < today else "open"


def next_number(prefix: str, taken: Iterable[str | None]) -> str:
    """The number after the highest of those that start with the prefix."""
    tails = (number.removeprefix(prefix) for number in taken if number and number.startswith(prefix))
    return f"{prefix}{max((int(tail) for tail in tails if tail.isdecimal() and len(tail) < 12), default=0) + 1:04d}"


def book_payment(state: InvoicingState, invoice: Invoice, amount: Decimal, today: date, **details: Any) -> Payment:
    """Receive money, or use account credit, for an invoice."""
    due = invoice.amount_due - amount
    state.invoices.update(
        invoice.id, paid=invoice.paid + amount, amount_due=due, status=standing(due, invoice.due_on, today)
    )
    return state.payments.insert(
        invoice_id=invoice.id,
        customer_id=invoice.customer_id,
        amount=amount,
        refunded=ZERO,
        refundable_balance=ZERO if details["method"] == "account_credit" else amount,
        **details,
    )


def book_refund(state: InvoicingState, payment: Payment, amount: Decimal, **details: Any) -> Refund:
    """Pay money back out of a payment."""
    invoice = state.invoices.get(payment.invoice_id)
    state.invoices.update(invoice.id, refunded=invoice.refunded + amount)
    state.payments.update(
        payment.id, refunded=payment.refunded + amount, refundable_balance=payment.refundable_balance - amount
    )
    return state.refunds.insert(
        payment_id=payment.id, invoice_id=invoice.id, customer_id=payment.customer_id, amount=amount, **details
    )


def book_credit_note(
    state: InvoicingState, invoice: Invoice, amount: Decimal, today: date, **details: Any
) -> CreditNote:
    """Credit an invoice: first what is due, then, newest payment first, what was paid and not yet given back."""
    applied = min(amount, invoice.amount_due)
    left = amount - applied
    for payment in reversed(state.payments.where(invoice_id=invoice.id)):
        withdrawn = min(left, payment.refundable_balance)
        if withdrawn:
            state.payments.update(payment.id, refundable_balance=payment.refundable_balance - withdrawn)
            left -= withdrawn
    due = invoice.amount_due - applied
    state.invoices.update(
        invoice.id, credited=invoice.credited + amount, amount_due=due, status=standing(due, invoice.due_on, today)
    )
    if amount > applied:
        customer = state.customers.get(invoice.customer_id)
        state.customers.update(customer.id, credit_balance=customer.credit_balance + amount - applied)
    return state.credit_notes.insert(
        invoice_id=invoice.id,
        customer_id=invoice.customer_id,
        amount=amount,
        applied=applied,
        added_to_credit=amount - applied,
        **details,
    )


class Books(Service[InvoicingState]):
    """Base of invoicing's tools."""

    def draft(self, invoice_id: str) -> Invoice:
        """The invoice, which must be a draft."""
        invoice = self.state.invoices.get(invoice_id)
        if invoice.status != "draft":
            raise FailedPrecondition(f"{invoice_id} is {invoice.status}; only a draft can be edited")
        return invoice

    def unpaid(self, invoice_id: str) -> Invoice:
        """The invoice, which must be open or overdue."""
        invoice = self.state.invoices.get(invoice_id)
        if invoice.status not in ("open", "overdue"):
            raise FailedPrecondition(f"{invoice_id} is {invoice.status}, not open or overdue")
        return invoice

    def billable(self, customer_id: str) -> Customer:
        """The customer, who must not be on hold."""
        customer = self.state.customers.get(customer_id)
        if customer.status == "on_hold":
            raise FailedPrecondition(f"{customer_id} is on hold: {customer.hold_reason}")
        return customer

    def is_overdue(self, invoice: Invoice) -> bool:
        """Whether the due day has passed and something is still due, whatever the stored status says."""
        return bool(invoice.amount_due and invoice.due_on is not None and invoice.due_on < self.today)

    def check_known(self, customer_id: str | None = None, invoice_id: str | None = None) -> None:
        """Refuse filters that name nothing, rather than answer with an empty list."""
        if customer_id is not None:
            self.state.customers.get(customer_id)
        if invoice_id is not None:
            self.state.invoices.get(invoice_id)
