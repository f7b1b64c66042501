"""What invoicing holds: customers, their invoices, and the money that came in, went back or was credited."""

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
    Percent,
    PersonName,
    ProductName,
    Quantity,
    Rule,
    Semantic,
    Sku,
    State,
    Table,
    Test,
    Text,
    table,
)

CustomerId = Annotated[str, Id("customer", prefix="cus")]
InvoiceId = Annotated[str, Id("invoice", prefix="inv")]
PaymentId = Annotated[str, Id("payment", prefix="pay")]
RefundId = Annotated[str, Id("refund", prefix="ref")]
CreditNoteId = Annotated[str, Id("credit_note", prefix="cn")]
ReminderId = Annotated[str, Id("payment_reminder", prefix="rem")]

BillingId = Annotated[str, Field(min_length=1, max_length=40), Semantic("billing_id")]
"""The number under which other systems know a customer."""
InvoiceNumber = Annotated[str, Field(min_length=1, max_length=40), Semantic("invoice_number")]
CreditNoteNumber = Annotated[str, Field(min_length=1, max_length=40), Semantic("credit_note_number")]
PaymentReference = Annotated[str, Field(min_length=1, max_length=60), Semantic("payment_reference")]
RefundReference = Annotated[str, Field(min_length=1, max_length=60), Semantic("refund_reference")]
PurchaseOrder = Annotated[str, Field(min_length=1, max_length=60), Semantic("purchase_order")]
Reason = Annotated[str, Field(pattern=r"\S", max_length=2000), Semantic("text")]
"""A text that says something."""

Amount = Annotated[Money, Field(ge=0)]
PositiveAmount = Annotated[Money, Field(gt=0)]
UnitPrice = Annotated[Money, Field(ge=0, le=1_000_000)]
TaxRate = Annotated[Percent, Field(decimal_places=2, max_digits=5)]
LineQuantity = Annotated[Quantity, Field(ge=1, le=10_000)]
TermsDays = Annotated[int, Field(ge=0, le=120)]

InvoiceStatus = Literal["draft", "open", "overdue", "paid", "void"]
PaymentMethod = Literal["bank_transfer", "card", "direct_debit", "cash"]


class Customer(Entity):
    """An organisation that we bill. `credit_balance` is credit that it has not used yet."""

    id: CustomerId
    name: OrganisationName
    contact_name: PersonName | None = None
    email: Email
    billing_id: BillingId
    currency: Currency = "EUR"
    payment_terms_days: TermsDays = 30
    tax_rate: TaxRate
    city: City | None = None
    country: Country | None = None
    status: Literal["active", "on_hold"] = "active"
    hold_reason: Reason | None = None
    credit_balance: Amount


class NewLine(Entity):
    """A line to put on an invoice."""

    product_name: ProductName = Field(description="What is sold.")
    quantity: LineQuantity = Field(description="Number of units.")
    unit_price: UnitPrice = Field(description="Net price of one unit.")
    sku: Sku | None = Field(default=None, description="Stock-keeping unit of the product.")


class Line(NewLine):
    """A line of an invoice; `amount` is quantity times unit price, net of tax."""

    amount: Amount


class Invoice(Entity):
    """An invoice. A draft has no number and no dates yet.

    Attributes:
        paid: Payments received, including credit that was applied to it.
        credited: Credit notes issued on it.
        refunded: Refunds of its payments.
        amount_due: What the customer still has to pay.
    """

    id: InvoiceId
    number: InvoiceNumber | None = None
    customer_id: CustomerId
    status: InvoiceStatus = "draft"
    currency: Currency
    lines: tuple[Line, ...]
    tax_rate: TaxRate
    net: Amount
    tax: Amount
    total: Amount
    paid: Amount
    credited: Amount
    refunded: Amount
    amount_due: Amount
    issued_on: Day | None = None
    due_on: Day | None = None
    purchase_order: PurchaseOrder | None = None
    void_reason: Reason | None = None


class Payment(Entity):
    """Money received for an invoice, or account credit that was applied to it (which is never refundable).

    Attributes:
        refunded: What was paid back.
        refundable_balance: What may still be paid back; refunds and credit notes lower it.
    """

    id: PaymentId
    invoice_id: InvoiceId
    customer_id: CustomerId
    amount: PositiveAmount
    method: Literal["bank_transfer", "card", "direct_debit", "cash", "account_credit"]
    reference: PaymentReference | None = None
    received_on: Day
    refunded: Amount
    refundable_balance: Amount


class Refund(Entity):
    """Money paid back out of a payment."""

    id: RefundId
    reference: RefundReference
    payment_id: PaymentId
    invoice_id: InvoiceId
    customer_id: CustomerId
    amount: PositiveAmount
    reason: Reason
    booked_on: Day


class CreditNote(Entity):
    """A correction of an invoice in the customer's favour.

    Attributes:
        applied: The part that lowered the amount due.
        added_to_credit: The part that the customer had paid already and can use on other invoices.
    """

    id: CreditNoteId
    number: CreditNoteNumber
    invoice_id: InvoiceId
    customer_id: CustomerId
    amount: PositiveAmount
    applied: Amount
    added_to_credit: Amount
    reason: Reason
    issued_on: Day


class PaymentReminder(Entity):
    """A reminder of an overdue invoice; `level` 3 is the last one."""

    id: ReminderId
    invoice_id: InvoiceId
    customer_id: CustomerId
    level: Annotated[int, Field(ge=1, le=3)]
    sent_to: Email
    sent_on: Day
    amount_due: PositiveAmount
    message: Text = ""


class CustomerBalance(Entity):
    """Where a customer stands today."""

    customer_id: CustomerId
    currency: Currency
    outstanding: Amount
    overdue: Amount
    unpaid_invoices: int
    overdue_invoices: int
    oldest_due_on: Day | None
    credit_balance: Amount
    refundable: Amount


class StatementEntry(Entity):
    """A document on a statement; `balance` is what the customer owes after it."""

    day: Day
    kind: Literal["invoice", "payment", "credit_note", "refund"]
    document_id: str
    reference: str | None
    debit: Amount
    credit: Amount
    balance: Money


class CustomerStatement(Entity):
    """A customer's account over some days. A negative balance is in the customer's favour."""

    customer_id: CustomerId
    currency: Currency
    from_day: Day | None
    to_day: Day
    opening_balance: Money
    entries: tuple[StatementEntry, ...]
    closing_balance: Money


def _at_most(field: str, other: str, message: str) -> Rule:
    return Rule(satisfies=(Test(field=field, op="le", other=other),), message=message)


class InvoicingState(State):
    """Tables of invoicing."""

    customers: Table[Customer] = table(
        unique=("name", "billing_id"),
        rules=(
            Rule(
                where=(Test(field="status", value="on_hold"),),
                satisfies=(Test(field="hold_reason", op="ne"),),
                message="a customer on hold needs the reason for it",
            ),
        ),
    )
    invoices: Table[Invoice] = table(
        unique=("number",),
        rules=(
            Rule(
                where=(Test(field="status", value="draft"),),
                satisfies=(Test(field="number"), Test(field="issued_on"), Test(field="paid", value=0)),
                message="a draft has no number, no date and no payment",
            ),
            Rule(
                where=(Test(field="status", op="ne", value="draft"),),
                satisfies=tuple(Test(field=name, op="ne") for name in ("number", "issued_on", "due_on")),
                message="an invoice that is not a draft needs a number, an issue date and a due date",
            ),
            Rule(
                where=(Test(field="status", op="in", value=["open", "overdue"]),),
                satisfies=(Test(field="amount_due", op="gt", value=0),),
                message="an open or overdue invoice has something due",
            ),
            Rule(
                where=(Test(field="status", op="in", value=["paid", "void"]),),
                satisfies=(Test(field="amount_due", value=0),),
                message="a paid or void invoice has nothing due",
            ),
            Rule(
                where=(Test(field="status", value="void"),),
                satisfies=(Test(field="paid", value=0), Test(field="void_reason", op="ne")),
                message="a void invoice has no payment, and a reason",
            ),
            _at_most("amount_due", "total", "the amount due can't be above the total"),
            _at_most("paid", "total", "the payments can't be above the total"),
            _at_most("credited", "total", "the credit notes can't be above the total"),
            _at_most("refunded", "paid", "the refunds can't be above the payments"),
        ),
    )
    payments: Table[Payment] = table(
        unique=("reference",),
        rules=(
            _at_most("refunded", "amount", "the refunds can't be above the payment"),
            _at_most("refundable_balance", "amount", "the refundable balance can't be above the payment"),
        ),
    )
    refunds: Table[Refund] = table(unique=("reference",))
    credit_notes: Table[CreditNote] = table(unique=("number",))
    reminders: Table[PaymentReminder] = table(unique=(("invoice_id", "level"),))
