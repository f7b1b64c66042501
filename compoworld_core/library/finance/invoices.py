"""Invoices: a draft is edited until it is finalized; from then on only money and credit change it."""

from __future__ import annotations

from datetime import timedelta
from operator import attrgetter
from typing import Annotated, Final, Literal

from compoworld_core.library.filters import given
from compoworld_core.library.finance.books import ZERO, Books, next_number, priced, standing, sums
from compoworld_core.library.finance.ledger import (
    CustomerId,
    Invoice,
    InvoiceId,
    InvoiceNumber,
    InvoiceStatus,
    LineQuantity,
    NewLine,
    PaymentReminder,
    PurchaseOrder,
    Reason,
    UnitPrice,
)
from compoworld_core.services.sdk import (
    Cursor,
    Day,
    FailedPrecondition,
    Field,
    Limit,
    LimitExceeded,
    NotFound,
    Page,
    ProductName,
    Sku,
    Text,
    paginate,
    tool,
)

MAX_LINES: Final = 100
MAX_TERM_DAYS: Final = 180
REMINDER_GAP_DAYS: Final = 7

InvoiceSort = Literal["issued_on", "-issued_on", "due_on", "-due_on", "total", "-total"]


class Invoices(Books):
    """Tools on invoices and reminders."""

    @tool(effect="read")
    def list_invoices(
        self,
        customer_id: CustomerId | None = None,
        status: InvoiceStatus | None = None,
        number: InvoiceNumber | None = None,
        issued_from: Day | None = None,
        issued_to: Day | None = None,
        sort: InvoiceSort = "-issued_on",
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Invoice]:
        """List invoices that satisfy all given filters, the latest first unless sorted otherwise.

        Args:
            customer_id: Only invoices to this customer.
            status: Only invoices with this status.
            number: Only the invoice with this printed number, e.g. "INV-2026-0007".
            issued_from: Only invoices issued on this day or later, which leaves out drafts.
            issued_to: Only invoices issued on this day or earlier, which leaves out drafts.
            sort: Field to sort by, descending with a leading minus. Drafts have no dates and come last.
            limit: Most invoices to return.
            cursor: `next_cursor` of the previous page.
        """
        self.check_known(customer_id=customer_id)

        def in_range(row: Invoice) -> bool:
            if row.issued_on is None:
                return issued_from is None and issued_to is None
            return (issued_from is None or row.issued_on >= issued_from) and (
                issued_to is None or row.issued_on <= issued_to
            )

        rows = self.state.invoices.where(in_range, **given(customer_id=customer_id, status=status, number=number))
        value = attrgetter(sort.removeprefix("-"))
        dated = sorted((row for row in rows if value(row) is not None), key=value, reverse=sort.startswith("-"))
        return paginate([*dated, *(row for row in rows if value(row) is None)], limit, cursor)

    @tool(effect="read")
    def list_overdue_invoices(
        self,
        customer_id: CustomerId | None = None,
        min_days_overdue: Annotated[int, Field(ge=1, le=3650)] = 1,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Invoice]:
        """List invoices whose due day has passed and on which something is still due, longest overdue first.

        Args:
            customer_id: Only invoices to this customer.
            min_days_overdue: Fewest days since the due day.
            limit: Most invoices to return.
            cursor: `next_cursor` of the previous page.
        """
        self.check_known(customer_id=customer_id)
        latest = self.today - timedelta(days=min_days_overdue)
        rows = self.state.invoices.where(
            lambda row: row.status in ("open", "overdue") and row.due_on is not None and row.due_on <= latest,
            **given(customer_id=customer_id),
        )
        return paginate(sorted(rows, key=attrgetter("due_on")), limit, cursor)

    @tool(effect="read")
    def get_invoice(self, invoice_id: InvoiceId) -> Invoice:
        """Get an invoice with its lines and sums.

        Args:
            invoice_id: The invoice.
        """
        return self.state.invoices.get(invoice_id)

    @tool(effect="write")
    def create_invoice(
        self,
        customer_id: CustomerId,
        lines: Annotated[tuple[NewLine, ...], Field(min_length=1, max_length=MAX_LINES)],
        purchase_order: PurchaseOrder | None = None,
    ) -> Invoice:
        """Create a draft invoice in the customer's currency and with its tax rate. It is sent with `finalize_invoice`.

        Args:
            customer_id: The customer, who must not be on hold.
            lines: What is sold.
            purchase_order: The customer's order number.
        """
        customer = self.billable(customer_id)
        return self.state.invoices.insert(
            customer_id=customer_id,
            currency=customer.currency,
            tax_rate=customer.tax_rate,
            paid=ZERO,
            credited=ZERO,
            refunded=ZERO,
            purchase_order=purchase_order,
            **sums(tuple(priced(line) for line in lines), customer.tax_rate),
        )

    @tool(effect="write")
    def add_invoice_line(
        self,
        invoice_id: InvoiceId,
        product_name: ProductName,
        quantity: LineQuantity,
        unit_price: UnitPrice,
        sku: Sku | None = None,
    ) -> Invoice:
        """Add a line at the end of a draft invoice.

        Args:
            invoice_id: The draft.
            product_name: What is sold.
            quantity: Number of units.
            unit_price: Net price of one unit.
            sku: Stock-keeping unit of the product.
        """
        invoice = self.draft(invoice_id)
        if len(invoice.lines) >= MAX_LINES:
            raise LimitExceeded(f"{invoice_id} has {MAX_LINES} lines, the most that an invoice can have")
        line = NewLine(product_name=product_name, quantity=quantity, unit_price=unit_price, sku=sku)
        return self.state.invoices.update(invoice_id, **sums((*invoice.lines, priced(line)), invoice.tax_rate))

    @tool(effect="write")
    def remove_invoice_line(self, invoice_id: InvoiceId, product_name: ProductName) -> Invoice:
        """Remove a product from a draft invoice: all lines that sell it.

        Args:
            invoice_id: The draft.
            product_name: The product, exactly as it is on the line.
        """
        invoice = self.draft(invoice_id)
        lines = tuple(line for line in invoice.lines if line.product_name != product_name)
        if len(lines) == len(invoice.lines):
            raise NotFound(f"{invoice_id} has no line with the product {product_name!r}")
        return self.state.invoices.update(invoice_id, **sums(lines, invoice.tax_rate))

    @tool(effect="write")
    def discard_draft_invoice(self, invoice_id: InvoiceId) -> Invoice:
        """Delete a draft invoice. An invoice that was issued can only be voided or credited.

        Args:
            invoice_id: The draft.
        """
        return self.state.invoices.delete(self.draft(invoice_id).id)

    @tool(effect="write")
    def finalize_invoice(self, invoice_id: InvoiceId) -> Invoice:
        """Issue a draft invoice today: it gets the next number, and a due day by the customer's payment terms.

        Args:
            invoice_id: The draft, with a total above zero.
        """
        invoice = self.draft(invoice_id)
        customer = self.billable(invoice.customer_id)
        if not invoice.total:
            raise FailedPrecondition(f"{invoice_id} has a total of 0.00; add what is sold first")
        return self.state.invoices.update(
            invoice_id,
            status="open",
            number=next_number(f"INV-{self.today.year}-", (row.number for row in self.state.invoices)),
            issued_on=self.today,
            due_on=self.today + timedelta(days=customer.payment_terms_days),
        )

    @tool(effect="write")
    def extend_due_date(self, invoice_id: InvoiceId, due_on: Day) -> Invoice:
        """Give a customer more time for an open or overdue invoice.

        Args:
            invoice_id: The invoice.
            due_on: The new due day: later than the old one, not past, and at most 180 days after the issue.
        """
        invoice = self.unpaid(invoice_id)
        if invoice.due_on is not None and due_on <= invoice.due_on:
            raise FailedPrecondition(f"{invoice_id} is due on {invoice.due_on}; {due_on} is not later")
        if due_on < self.today:
            raise FailedPrecondition(f"due_on: {due_on} is past; today is {self.today}")
        if invoice.issued_on is not None and (due_on - invoice.issued_on).days > MAX_TERM_DAYS:
            raise FailedPrecondition(f"due_on: {due_on} is more than {MAX_TERM_DAYS} days after {invoice.issued_on}")
        return self.state.invoices.update(
            invoice_id, due_on=due_on, status=standing(invoice.amount_due, due_on, self.today)
        )

    @tool(effect="write")
    def void_invoice(self, invoice_id: InvoiceId, reason: Reason) -> Invoice:
        """Cancel an open or overdue invoice on which nothing was paid or credited. It keeps its number.

        Args:
            invoice_id: The invoice.
            reason: Why it is cancelled.
        """
        invoice = self.unpaid(invoice_id)
        if invoice.paid or invoice.credited:
            raise FailedPrecondition(f"{invoice_id} has payments or credit notes; credit the rest instead")
        return self.state.invoices.update(invoice_id, status="void", amount_due=ZERO, void_reason=reason)

    @tool(effect="write")
    def send_payment_reminder(self, invoice_id: InvoiceId, message: Text = "") -> PaymentReminder:
        """Remind a customer of an overdue invoice, at most three times and with 7 days or more in between.

        Args:
            invoice_id: The invoice, whose due day must have passed.
            message: Text to add to the standard wording.
        """
        invoice = self.unpaid(invoice_id)
        if not self.is_overdue(invoice):
            raise FailedPrecondition(f"{invoice_id} is not due before {invoice.due_on}")
        earlier = self.state.reminders.where(invoice_id=invoice_id)
        if len(earlier) >= 3:
            raise FailedPrecondition(f"the third and last reminder of {invoice_id} was sent on {earlier[-1].sent_on}")
        if earlier and (self.today - earlier[-1].sent_on).days < REMINDER_GAP_DAYS:
            raise FailedPrecondition(
                f"{invoice_id} was last reminded of on {earlier[-1].sent_on}, less than {REMINDER_GAP_DAYS} days ago"
            )
        return self.state.reminders.insert(
            invoice_id=invoice_id,
            customer_id=invoice.customer_id,
            level=len(earlier) + 1,
            sent_to=self.state.customers.get(invoice.customer_id).email,
            sent_on=self.today,
            amount_due=invoice.amount_due,
            message=message,
        )

    @tool(effect="read")
    def list_payment_reminders(
        self,
        customer_id: CustomerId | None = None,
        invoice_id: InvoiceId | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[PaymentReminder]:
        """List payment reminders that satisfy all given filters, oldest first.

        Args:
            customer_id: Only reminders to this customer.
            invoice_id: Only reminders of this invoice.
            limit: Most reminders to return.
            cursor: `next_cursor` of the previous page.
        """
        self.check_known(customer_id, invoice_id)
        rows = self.state.reminders.where(**given(customer_id=customer_id, invoice_id=invoice_id))
        return paginate(sorted(rows, key=lambda row: row.sent_on), limit, cursor)
