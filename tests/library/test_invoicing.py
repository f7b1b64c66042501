"""Invoicing's own promises: exact sums, a one-way life of invoices, and nothing ever given back twice."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compoworld_core.errors import FailedPrecondition
from compoworld_core.services.running import RunningService
from tests.library.conformance import UNIVERSE, fresh, rows
from tests.library.test_crm import ask, plant, refusal


@pytest.fixture
def books() -> RunningService:
    return fresh("invoicing")


def new_customer(running: RunningService, tax_rate: str = "20.00") -> str:
    customer_id: str = ask(
        running, "create_customer", name="Nordwind Optik GmbH", email="Pay@nordwind-optik.example", tax_rate=tax_rate
    )["id"]
    return customer_id


def draft(running: RunningService, customer_id: str, unit_price: str = "1000.00", quantity: int = 1) -> str:
    line = {"product_name": "Amber Lamp", "quantity": quantity, "unit_price": unit_price}
    invoice_id: str = ask(running, "create_invoice", customer_id=customer_id, lines=[line])["id"]
    return invoice_id


def issued(running: RunningService, customer_id: str, unit_price: str = "1000.00") -> str:
    """An open invoice of 1.2 times the price, at the tax rate of `new_customer`."""
    invoice_id = draft(running, customer_id, unit_price)
    ask(running, "finalize_invoice", invoice_id=invoice_id)
    return invoice_id


def paid(running: RunningService, customer_id: str) -> tuple[str, str]:
    """A paid invoice of 1200.00 and its payment."""
    invoice_id = issued(running, customer_id)
    return invoice_id, ask(running, "record_payment", invoice_id=invoice_id, amount="1200.00")["id"]


def total(values: Iterable[str]) -> Decimal:
    return sum(map(Decimal, values), Decimal(0))


# Start state


def test_crm_and_invoicing_know_an_organisation_by_the_same_keys(books: RunningService) -> None:
    accounts = {row["billing_id"]: row for row in rows(fresh("crm").state)["accounts"]}
    contacts = {row["email"]: row for row in rows(fresh("crm").state)["contacts"]}

    customers = rows(books.state)["customers"]

    assert len(customers) == len(UNIVERSE.organisations)
    for customer in customers:
        account = accounts[customer["billing_id"]]
        assert customer["name"] == account["name"]
        contact = contacts[customer["email"]]
        assert (contact["account_id"], contact["name"]) == (account["id"], customer["contact_name"])


def test_start_state_has_invoices_of_every_status_and_balanced_books(books: RunningService) -> None:
    invoices = rows(books.state)["invoices"]

    assert {row["status"] for row in invoices} == {"draft", "open", "overdue", "paid", "void"}
    assert {row["customer_id"] for row in invoices if row["status"] == "paid"} == {
        row["id"] for row in rows(books.state)["customers"]
    }
    check_books(books)


# Sums


@pytest.mark.parametrize(
    ("unit_price", "quantity", "tax_rate", "tax", "total_"),
    [
        ("0.50", 1, "21", "0.11", "0.61"),
        ("0.10", 1, "5", "0.01", "0.11"),
        ("33.33", 3, "19", "19.00", "118.99"),
        ("10.00", 1, "0", "0.00", "10.00"),
        ("1.00", 1, "24.5", "0.25", "1.25"),
    ],
    ids=["half-cent-up-21", "half-cent-up-5", "exact-19", "no-tax", "fractional-rate"],
)
def test_tax_is_rounded_half_up_on_the_net_sum(
    books: RunningService, unit_price: str, quantity: int, tax_rate: str, tax: str, total_: str
) -> None:
    invoice_id = draft(books, new_customer(books, tax_rate), unit_price, quantity)

    invoice = ask(books, "get_invoice", invoice_id=invoice_id)

    assert (invoice["tax"], invoice["total"], invoice["amount_due"]) == (tax, total_, total_)


@settings(max_examples=50, deadline=None, derandomize=True, database=None)
@given(
    lines=st.lists(st.tuples(st.integers(0, 10_000_000), st.integers(1, 99)), min_size=1, max_size=8),
    rate=st.integers(0, 10_000),
)
def test_sums_follow_from_the_lines(lines: list[tuple[int, int]], rate: int) -> None:
    books = fresh("invoicing")
    customer_id = new_customer(books, str(Decimal(rate) / 100))
    given_lines = [
        {"product_name": f"Lamp {place}", "unit_price": str(Decimal(price) / 100), "quantity": quantity}
        for place, (price, quantity) in enumerate(lines)
    ]

    invoice_id = ask(books, "create_invoice", customer_id=customer_id, lines=given_lines[:1])["id"]
    for line in given_lines[1:]:
        ask(books, "add_invoice_line", invoice_id=invoice_id, **line)
    invoice = ask(books, "get_invoice", invoice_id=invoice_id)

    net = sum(price * quantity for price, quantity in lines)
    assert Decimal(invoice["net"]) == Decimal(net) / 100
    assert Decimal(invoice["tax"]) * 100 == (net * rate + 5000) // 10000
    assert Decimal(invoice["total"]) == Decimal(invoice["net"]) + Decimal(invoice["tax"])


@pytest.mark.parametrize("amount", ["0", "-1.00", "0.001", "NaN", "1e30"])
def test_amounts_are_positive_cents(books: RunningService, amount: str) -> None:
    invoice_id = issued(books, new_customer(books))

    assert refusal(books, "record_payment", invoice_id=invoice_id, amount=amount) == "invalid_arguments"


def test_invoice_cannot_outgrow_its_limit(books: RunningService) -> None:
    invoice_id = draft(books, new_customer(books), "80000.00", 10_000)
    line = {"product_name": "Amber Lamp", "quantity": 10_000, "unit_price": "80000.00"}

    assert refusal(books, "add_invoice_line", invoice_id=invoice_id, **line) == "limit_exceeded"


# Life of an invoice


def test_finalizing_numbers_and_dates_an_invoice_and_ends_editing(books: RunningService) -> None:
    customer_id = new_customer(books)
    first, second = issued(books, customer_id), draft(books, customer_id)
    number = ask(books, "get_invoice", invoice_id=first)["number"]

    invoice = ask(books, "finalize_invoice", invoice_id=second)

    assert (invoice["status"], invoice["issued_on"], invoice["due_on"]) == ("open", "2026-02-12", "2026-03-14")
    assert int(invoice["number"].removeprefix("INV-2026-")) == int(number.removeprefix("INV-2026-")) + 1
    assert refusal(books, "finalize_invoice", invoice_id=second) == "failed_precondition"
    assert refusal(books, "remove_invoice_line", invoice_id=second, product_name="Amber Lamp") == "failed_precondition"
    assert refusal(books, "discard_draft_invoice", invoice_id=second) == "failed_precondition"


def test_empty_draft_cannot_be_issued(books: RunningService) -> None:
    invoice_id = draft(books, new_customer(books))
    ask(books, "remove_invoice_line", invoice_id=invoice_id, product_name="Amber Lamp")

    assert refusal(books, "finalize_invoice", invoice_id=invoice_id) == "failed_precondition"
    ask(books, "discard_draft_invoice", invoice_id=invoice_id)
    assert refusal(books, "get_invoice", invoice_id=invoice_id) == "not_found"


def test_customer_on_hold_gets_no_new_invoice_but_can_pay(books: RunningService) -> None:
    customer_id = new_customer(books)
    waiting, unpaid = draft(books, customer_id), issued(books, customer_id)
    ask(books, "place_customer_on_hold", customer_id=customer_id, reason="Bankrupt?")

    assert refusal(books, "finalize_invoice", invoice_id=waiting) == "failed_precondition"
    ask(books, "record_payment", invoice_id=unpaid, amount="1200.00")
    ask(books, "release_customer_hold", customer_id=customer_id)
    ask(books, "finalize_invoice", invoice_id=waiting)


def test_only_an_untouched_invoice_can_be_voided(books: RunningService) -> None:
    customer_id = new_customer(books)
    untouched, touched = issued(books, customer_id), issued(books, customer_id)
    ask(books, "record_payment", invoice_id=touched, amount="0.01")

    invoice = ask(books, "void_invoice", invoice_id=untouched, reason="Duplicate")

    assert (invoice["status"], invoice["amount_due"]) == ("void", "0.00")
    assert refusal(books, "void_invoice", invoice_id=touched, reason="Duplicate") == "failed_precondition"
    assert refusal(books, "record_payment", invoice_id=untouched, amount="1.00") == "failed_precondition"


def test_more_time_makes_an_overdue_invoice_open(books: RunningService) -> None:
    late = ask(books, "list_overdue_invoices")["items"][0]
    assert refusal(books, "extend_due_date", invoice_id=late["id"], due_on=late["due_on"]) == "failed_precondition"

    invoice = ask(books, "extend_due_date", invoice_id=late["id"], due_on="2026-02-12")

    assert invoice["status"] == "open"
    assert late["id"] not in {row["id"] for row in ask(books, "list_overdue_invoices")["items"]}


def test_overdue_list_goes_by_the_day_not_by_the_stored_status(books: RunningService) -> None:
    invoice_id = issued(books, new_customer(books))
    plant(books, "invoices", invoice_id, issued_on="2026-01-01", due_on="2026-02-01")

    found = ask(books, "list_overdue_invoices", min_days_overdue=11)["items"]

    assert invoice_id in {row["id"] for row in found}
    assert invoice_id not in {row["id"] for row in ask(books, "list_overdue_invoices", min_days_overdue=12)["items"]}
    assert [row["due_on"] for row in found] == sorted(row["due_on"] for row in found)


def test_reminders_keep_their_distance_and_end_at_three(books: RunningService) -> None:
    invoice_id = issued(books, new_customer(books))
    assert refusal(books, "send_payment_reminder", invoice_id=invoice_id) == "failed_precondition"
    plant(books, "invoices", invoice_id, issued_on="2026-01-01", due_on="2026-01-15")

    reminders = []
    for level in (1, 2, 3):
        reminders.append(ask(books, "send_payment_reminder", invoice_id=invoice_id))
        assert refusal(books, "send_payment_reminder", invoice_id=invoice_id) == "failed_precondition"
        plant(books, "reminders", reminders[-1]["id"], sent_on=f"2026-01-{15 + level}")

    assert [item["level"] for item in reminders] == [1, 2, 3]
    assert refusal(books, "send_payment_reminder", invoice_id=invoice_id) == "failed_precondition"


@pytest.mark.parametrize("sort", ["issued_on", "-issued_on", "due_on", "-due_on", "total", "-total"])
def test_invoices_are_sorted_as_asked_with_drafts_after_the_dated(books: RunningService, sort: str) -> None:
    field = sort.removeprefix("-")

    values = [row[field] for row in ask(books, "list_invoices", sort=sort, limit=200)["items"]]

    present = [Decimal(value) if field == "total" else value for value in values if value is not None]
    assert present == sorted(present, reverse=sort.startswith("-"))
    assert values == [*(value for value in values if value is not None), *(value for value in values if value is None)]


def test_invoice_filters_combine(books: RunningService) -> None:
    invoices = [row for row in rows(books.state)["invoices"] if row["status"] == "paid"]
    wanted = invoices[0]

    found = ask(books, "list_invoices", customer_id=wanted["customer_id"], status="paid", issued_to=wanted["issued_on"])

    assert wanted in found["items"]
    assert ask(books, "list_invoices", number=wanted["number"])["items"] == [wanted]
    day = wanted["issued_on"]
    assert {row["issued_on"] for row in ask(books, "list_invoices", issued_from=day, issued_to=day)["items"]} == {day}


# Money


def test_payment_is_at_most_what_is_due_and_arrived_by_now(books: RunningService) -> None:
    invoice_id = issued(books, new_customer(books))
    pay = {"invoice_id": invoice_id, "reference": "TX-1"}

    assert refusal(books, "record_payment", **pay, amount="1200.01") == "failed_precondition"
    assert refusal(books, "record_payment", **pay, amount="1.00", received_on="2026-02-13") == "failed_precondition"
    assert refusal(books, "record_payment", **pay, amount="1.00", received_on="2026-02-11") == "failed_precondition"
    ask(books, "record_payment", **pay, amount="1199.99")
    assert ask(books, "get_invoice", invoice_id=invoice_id)["status"] == "open"
    assert refusal(books, "record_payment", **pay, amount="0.01") == "already_exists"
    ask(books, "record_payment", invoice_id=invoice_id, amount="0.01")

    assert ask(books, "get_invoice", invoice_id=invoice_id)["status"] == "paid"


def test_refund_is_at_most_the_refundable_balance(books: RunningService) -> None:
    invoice_id, payment_id = paid(books, new_customer(books))
    refund = {"payment_id": payment_id, "reason": "Damaged"}

    first = ask(books, "create_refund", **refund, amount="1000.00")

    assert refusal(books, "create_refund", **refund, amount="200.01") == "failed_precondition"
    second = ask(books, "create_refund", **refund, amount="200.00")
    assert first["reference"] != second["reference"]
    payment = ask(books, "get_payment", payment_id=payment_id)
    assert (payment["refunded"], payment["refundable_balance"]) == ("1200.00", "0.00")
    invoice = ask(books, "get_invoice", invoice_id=invoice_id)
    assert (invoice["status"], invoice["refunded"], invoice["amount_due"]) == ("paid", "1200.00", "0.00")


def test_credit_note_lowers_what_is_refundable_and_becomes_credit(books: RunningService) -> None:
    customer_id = new_customer(books)
    invoice_id, payment_id = paid(books, customer_id)

    note = ask(books, "create_credit_note", invoice_id=invoice_id, amount="310.00", reason="Late delivery")

    assert (note["applied"], note["added_to_credit"]) == ("0.00", "310.00")
    assert ask(books, "get_payment", payment_id=payment_id)["refundable_balance"] == "890.00"
    assert refusal(books, "create_refund", payment_id=payment_id, amount="890.01", reason="x") == "failed_precondition"
    assert ask(books, "get_customer_balance", customer_id=customer_id)["credit_balance"] == "310.00"


def test_credit_pays_another_invoice_and_is_not_refundable(books: RunningService) -> None:
    customer_id = new_customer(books)
    invoice_id, _ = paid(books, customer_id)
    ask(books, "create_credit_note", invoice_id=invoice_id, amount="310.00", reason="Late delivery")
    other = issued(books, customer_id, "100.00")

    assert refusal(books, "apply_customer_credit", invoice_id=other, amount="120.01") == "failed_precondition"
    payment = ask(books, "apply_customer_credit", invoice_id=other)

    assert (payment["amount"], payment["refundable_balance"]) == ("120.00", "0.00")
    assert ask(books, "get_invoice", invoice_id=other)["status"] == "paid"
    assert ask(books, "get_customer", customer_id=customer_id)["credit_balance"] == "190.00"


def test_credit_note_settles_what_is_due_first(books: RunningService) -> None:
    customer_id = new_customer(books)
    invoice_id = issued(books, customer_id)
    ask(books, "record_payment", invoice_id=invoice_id, amount="700.00")
    credit = {"invoice_id": invoice_id, "reason": "Late delivery"}

    assert refusal(books, "create_credit_note", **credit, amount="1200.01") == "failed_precondition"
    note = ask(books, "create_credit_note", **credit, amount="600.00")

    assert (note["applied"], note["added_to_credit"]) == ("500.00", "100.00")
    assert ask(books, "get_invoice", invoice_id=invoice_id)["status"] == "paid"


def test_table_itself_refuses_refunds_above_the_payment(books: RunningService) -> None:
    payment = rows(books.state)["payments"][0]

    with pytest.raises(FailedPrecondition):
        books.state.tables["payments"].update(payment["id"], refunded=str(Decimal(payment["amount"]) + 1))


_OPERATIONS = ("record_payment", "create_refund", "create_credit_note", "apply_customer_credit", "void_invoice")
_operation = st.tuples(st.sampled_from(_OPERATIONS), st.integers(0, 5), st.integers(1, 150_000))


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(operations=st.lists(_operation, max_size=25))
def test_no_sequence_of_bookings_unbalances_the_books(operations: list[tuple[str, int, int]]) -> None:
    books = fresh("invoicing")
    customer_id = new_customer(books)
    invoices = [issued(books, customer_id, price) for price in ("1000.00", "333.33", "0.50")]

    for tool, place, cents in operations:
        amount = str(Decimal(cents) / 100)
        payments = [row["id"] for row in ask(books, "list_payments", customer_id=customer_id, limit=200)["items"]]
        arguments: dict[str, Any] = {"invoice_id": invoices[place % 3], "amount": amount}
        if tool == "create_refund":
            if not payments:
                continue
            arguments = {"payment_id": payments[place % len(payments)], "amount": amount, "reason": "Return"}
        elif tool == "create_credit_note":
            arguments["reason"] = "Discount"
        elif tool == "void_invoice":
            arguments = {"invoice_id": invoices[place % 3], "reason": "Mistake"}
        result = books.call(tool, arguments)
        assert result.succeeded or result.envelope["error"]["code"] == "failed_precondition"

    check_books(books)


def check_books(books: RunningService) -> None:
    """What holds for all invoices, payments and customers after any bookings."""
    state = rows(books.state)
    notes, payments = state["credit_notes"], state["payments"]
    for invoice in state["invoices"]:
        own = [row for row in payments if row["invoice_id"] == invoice["id"]]
        credits = [row for row in notes if row["invoice_id"] == invoice["id"]]
        cash = [row for row in own if row["method"] != "account_credit"]
        assert Decimal(invoice["amount_due"]) >= 0
        assert total(row["amount"] for row in own) == Decimal(invoice["paid"])
        assert total(row["amount"] for row in credits) == Decimal(invoice["credited"])
        assert total(row["refunded"] for row in own) == Decimal(invoice["refunded"])
        if invoice["status"] != "void":
            settled = total([invoice["amount_due"], invoice["paid"], *(row["applied"] for row in credits)])
            assert settled == Decimal(invoice["total"])
        assert total(row["amount"] for row in cash) == total(
            [
                *(row["refunded"] for row in own),
                *(row["refundable_balance"] for row in own),
                *(row["added_to_credit"] for row in credits),
            ]
        )
    for customer in state["customers"]:
        balance = ask(books, "get_customer_balance", customer_id=customer["id"])
        statement = ask(books, "get_customer_statement", customer_id=customer["id"])
        assert Decimal(balance["credit_balance"]) >= 0
        owed = Decimal(balance["outstanding"]) - Decimal(balance["credit_balance"])
        assert Decimal(statement["closing_balance"]) == owed


def test_statement_of_some_days_opens_where_the_days_before_ended(books: RunningService) -> None:
    customer_id = ask(books, "list_overdue_invoices")["items"][0]["customer_id"]
    whole = ask(books, "get_customer_statement", customer_id=customer_id)
    cut = whole["entries"][1]["day"]

    part = ask(books, "get_customer_statement", customer_id=customer_id, from_day=cut)

    assert [*(entry for entry in whole["entries"] if entry["day"] < cut), *part["entries"]] == whole["entries"]
    assert part["closing_balance"] == whole["closing_balance"]
    assert part["opening_balance"] == whole["entries"][0]["balance"]
    assert (
        refusal(books, "get_customer_statement", customer_id=customer_id, from_day="2026-03-01") == "invalid_arguments"
    )


def test_new_customer_gets_the_next_billing_id(books: RunningService) -> None:
    taken = {row["billing_id"] for row in rows(books.state)["customers"]}

    customer = ask(books, "get_customer", customer_id=new_customer(books))

    assert customer["billing_id"] not in taken
    assert customer["billing_id"] == f"BP-{10001 + len(taken)}"
    assert ask(books, "search_customers", billing_id=customer["billing_id"])["items"] == [customer]
    assert ask(books, "search_customers", email="PAY@nordwind-optik.example")["items"] == [customer]
