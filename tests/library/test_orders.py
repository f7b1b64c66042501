"""The order desk's own promises: stock is never negative, promised units stay promised, orders move one way."""

from __future__ import annotations

import random
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compoworld_core.services.running import RunningService
from tests.library.conformance import UNIVERSE, answer, draw, fresh, plant, refusal, rows, start
from tests.library.order_desk import (
    adjust,
    alter,
    check_books,
    customer,
    day,
    delivered,
    draft,
    locations,
    main,
    placed,
    stock,
)


@pytest.fixture
def desk() -> RunningService:
    """An order desk with a customer of its own and two products that nobody else orders."""
    running = fresh("orders")
    plant(running, "products", sku="OPT-1", name="Opal Lamp", price="100.00")
    plant(running, "products", sku="OPT-2", name="Opal Desk", price="33.35")
    for sku, count in (("OPT-1", 10), ("OPT-2", 4)):
        adjust(running, sku, main(running), count)
    return running


# Start state


@pytest.mark.parametrize("seed", range(6))
def test_start_state_is_in_balance_and_has_orders_in_every_status(seed: int) -> None:
    running = start("orders", seed)

    check_books(running)

    statuses = {row["status"] for row in rows(running.state)["orders"]}
    assert statuses == {"draft", "placed", "backordered", "allocated", "shipped", "delivered", "cancelled"}
    assert answer(running, "list_low_stock")["total"] > 0
    customers = answer(running, "search_order_customers", limit=200)["items"]
    assert all(Decimal(row["credit_left"]) >= 0 for row in customers)


def test_all_products_of_the_universe_are_sold_and_customers_are_organisations(desk: RunningService) -> None:
    organisations = {item.name for item in UNIVERSE.organisations}

    for product in UNIVERSE.products:
        found = answer(desk, "get_product", sku=product.sku)
        assert (found["name"], Decimal(found["price"])) == (product.name, product.price)
    for row in answer(desk, "search_order_customers", limit=200)["items"]:
        assert row["organisation"] in organisations
        assert row["contact_email"] in {person.email for person in UNIVERSE.contacts_of(row["organisation"])}


@settings(max_examples=60, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10_000))
def test_books_stay_in_balance_whatever_is_called(seed: int) -> None:
    running = fresh("orders")
    rng = random.Random(seed)
    writes = [tool for tool in running.package.spec.tools if tool.effect == "write"]
    for _ in range(40):
        tool = rng.choice(writes)
        arguments = draw(running, tool, rng, rng.choice((0.0, 0.5))) or {}
        running.call(tool.name, arguments)

    check_books(running)


# Orders


def test_sums_are_rounded_half_up(desk: RunningService) -> None:
    order_id = draft(desk, OPT_2=1)

    order = answer(desk, "set_order_discount", order_id=order_id, discount_percent="10")

    assert (order["goods_total"], order["discount_amount"], order["total"]) == ("33.35", "3.34", "30.01")


def test_line_keeps_its_price_when_the_list_price_changes(desk: RunningService) -> None:
    order_id = draft(desk, OPT_1=1)

    answer(desk, "change_product_price", sku="OPT-1", price="120.00")
    order = answer(desk, "change_order_line_quantity", order_id=order_id, sku="OPT-1", quantity=3)

    assert order["total"] == "300.00"
    assert answer(desk, "get_order", order_id=draft(desk, OPT_1=1))["total"] == "120.00"


def test_each_product_is_on_one_line(desk: RunningService) -> None:
    order_id = draft(desk, OPT_1=1)
    twice = [{"sku": "OPT-1", "quantity": 1}, {"sku": "OPT-1", "quantity": 2}]

    assert refusal(desk, "add_order_line", order_id=order_id, sku="OPT-1", quantity=1) == "already_exists"
    assert refusal(desk, "create_order", customer_id=customer(desk), lines=twice) == "invalid_arguments"
    assert refusal(desk, "remove_order_line", order_id=order_id, sku="OPT-2") == "not_found"


def test_empty_order_cannot_be_placed(desk: RunningService) -> None:
    order_id = draft(desk, OPT_1=1)
    answer(desk, "remove_order_line", order_id=order_id, sku="OPT-1")

    assert refusal(desk, "place_order", order_id=order_id) == "failed_precondition"


def test_credit_limit_counts_all_undelivered_orders(desk: RunningService) -> None:
    answer(desk, "update_order_customer", customer_id=customer(desk), credit_limit="250.00")
    first = placed(desk, OPT_1=2)
    second = draft(desk, OPT_1=1)

    assert refusal(desk, "place_order", order_id=second) == "limit_exceeded"
    overview = answer(desk, "get_order_customer", customer_id=customer(desk))
    answer(desk, "cancel_order", order_id=first, reason="Wrong colour")

    assert (overview["open_orders"], overview["open_order_value"], overview["credit_left"]) == (1, "200.00", "50.00")
    assert answer(desk, "place_order", order_id=second)["status"] == "placed"


def test_blocked_customer_places_nothing(desk: RunningService) -> None:
    order_id = draft(desk, OPT_1=1)
    answer(desk, "block_order_customer", customer_id=customer(desk), reason="Overdue")

    assert refusal(desk, "place_order", order_id=order_id) == "failed_precondition"
    line = [{"sku": "OPT-1", "quantity": 1}]
    assert refusal(desk, "create_order", customer_id=customer(desk), lines=line) == "failed_precondition"
    answer(desk, "unblock_order_customer", customer_id=customer(desk))
    assert answer(desk, "place_order", order_id=order_id)["status"] == "placed"


def test_discontinued_product_is_neither_sold_nor_bought(desk: RunningService) -> None:
    order_id = draft(desk, OPT_1=1)
    answer(desk, "discontinue_product", sku="OPT-1")

    assert refusal(desk, "place_order", order_id=order_id) == "failed_precondition"
    assert refusal(desk, "add_order_line", order_id=draft(desk, OPT_2=1), sku="OPT-1", quantity=1) == (
        "failed_precondition"
    )


def test_order_numbers_count_up(desk: RunningService) -> None:
    numbers = [answer(desk, "get_order", order_id=draft(desk, OPT_1=1))["number"] for _ in range(2)]

    first, second = (int(number.removeprefix("SO-2026-")) for number in numbers)
    assert second == first + 1
    assert answer(desk, "list_orders", number=numbers[0])["total"] == 1


STEPS: dict[str, dict[str, Any]] = {
    "set_order_discount": {"discount_percent": "5"},
    "place_order": {},
    "allocate_order": {"location_id": "loc_1001"},
    "release_order_allocation": {},
    "ship_order": {"carrier": "Falconway"},
    "confirm_order_delivery": {},
    "cancel_order": {"reason": "No longer needed"},
    "request_order_return": {"sku": "OPT-1", "quantity": 1, "reason": "damaged"},
}
ALLOWED = {
    "draft": {"set_order_discount", "place_order", "cancel_order"},
    "placed": {"allocate_order", "cancel_order"},
    "allocated": {"release_order_allocation", "ship_order", "cancel_order"},
    "shipped": {"confirm_order_delivery"},
    "delivered": {"request_order_return"},
    "cancelled": set(),
}


@pytest.mark.parametrize("status", ALLOWED)
def test_each_status_allows_its_own_steps_only(desk: RunningService, status: str) -> None:
    order_id = draft(desk, OPT_1=2)
    path = ("place_order", "allocate_order", "ship_order", "confirm_order_delivery")
    taken = ("cancel_order",) if status == "cancelled" else path[: list(ALLOWED).index(status)]
    for step in taken:
        answer(desk, step, order_id=order_id, **STEPS[step])
    assert answer(desk, "get_order", order_id=order_id)["status"] == status

    for step, arguments in STEPS.items():
        twin = desk.fork()
        if step in ALLOWED[status]:
            answer(twin, step, order_id=order_id, **arguments)
        else:
            assert refusal(twin, step, order_id=order_id, **arguments) == "failed_precondition", step


# Allocation and shipping


def test_allocation_promises_units_and_shipping_takes_them(desk: RunningService) -> None:
    order_id = placed(desk, OPT_1=6, OPT_2=4)

    answer(desk, "allocate_order", order_id=order_id, location_id=main(desk))
    while_allocated = stock(desk, "OPT-1", main(desk))
    shipment = answer(desk, "ship_order", order_id=order_id, carrier="Northline")

    assert while_allocated == (10, 6, 4)
    assert stock(desk, "OPT-1", main(desk)) == (4, 0, 4)
    assert (shipment["expected_on"], shipment["status"]) == (day(3), "in_transit")
    movements = answer(desk, "list_stock_movements", sku="OPT-2", kind="shipment")["items"]
    number = answer(desk, "get_order", order_id=order_id)["number"]
    assert [(row["change"], row["reference"]) for row in movements] == [(-4, number)]
    assert answer(desk, "list_order_shipments", tracking_code=shipment["tracking_code"])["total"] == 1


def test_partial_allocation_is_refused_as_a_whole(desk: RunningService) -> None:
    order_id = placed(desk, OPT_1=2, OPT_2=5)

    assert refusal(desk, "allocate_order", order_id=order_id, location_id=main(desk)) == "failed_precondition"
    assert stock(desk, "OPT-1", main(desk)) == (10, 0, 10)


def test_backorder_is_filled_once_goods_come_in(desk: RunningService) -> None:
    order_id = placed(desk, OPT_1=2, OPT_2=5)
    allocation = {"order_id": order_id, "location_id": main(desk)}

    waiting = answer(desk, "allocate_order", **allocation, allow_backorder=True)
    assert (waiting["status"], [line["allocated"] for line in waiting["lines"]]) == ("backordered", [2, 4])
    assert refusal(desk, "ship_order", order_id=order_id, carrier="Parcelis") == "failed_precondition"
    assert refusal(desk, "allocate_order", **allocation, allow_backorder=True) == "failed_precondition"
    other = {**allocation, "location_id": locations(desk)[1]}
    assert refusal(desk, "allocate_order", **other) == "failed_precondition"
    adjust(desk, "OPT-2", main(desk), 6)
    filled = answer(desk, "allocate_order", **allocation)

    assert filled["status"] == "allocated"
    assert stock(desk, "OPT-2", main(desk)) == (6, 5, 1)
    check_books(desk)


@pytest.mark.parametrize("step", ["cancel_order", "release_order_allocation"])
def test_units_become_available_again(desk: RunningService, step: str) -> None:
    order_id = placed(desk, OPT_1=6)
    answer(desk, "allocate_order", order_id=order_id, location_id=main(desk))

    answer(desk, step, order_id=order_id, **STEPS[step])

    assert stock(desk, "OPT-1", main(desk)) == (10, 0, 10)
    reservations = answer(desk, "list_stock_reservations", order_id=order_id)["items"]
    assert [row["status"] for row in reservations] == ["released"]


def test_promised_units_can_be_neither_moved_nor_counted_away(desk: RunningService) -> None:
    order_id = placed(desk, OPT_1=6)
    answer(desk, "allocate_order", order_id=order_id, location_id=main(desk))
    here, there = locations(desk)[:2]

    move = {"sku": "OPT-1", "from_location_id": here, "to_location_id": there}
    assert refusal(desk, "transfer_stock", **move, quantity=5) == "failed_precondition"
    count = {"sku": "OPT-1", "location_id": here, "reason": "Count"}
    assert refusal(desk, "adjust_stock", **count, counted=5) == "failed_precondition"
    answer(desk, "transfer_stock", **move, quantity=4)

    assert stock(desk, "OPT-1", here) == (6, 6, 0)
    assert stock(desk, "OPT-1", there) == (4, 0, 4)


def test_closed_location_moves_nothing(desk: RunningService) -> None:
    order_id = placed(desk, OPT_1=1)
    alter(desk, "locations", main(desk), is_open=False)

    closed = next(row["id"] for row in rows(desk.state)["locations"] if not row["is_open"])
    assert refusal(desk, "allocate_order", order_id=order_id, location_id=closed) == "failed_precondition"
    count = {"sku": "OPT-1", "location_id": closed, "counted": 3, "reason": "Count"}
    assert refusal(desk, "adjust_stock", **count) == "failed_precondition"


@pytest.mark.parametrize("offset", [-1, 1], ids=["before shipping", "tomorrow"])
def test_delivery_is_between_shipping_and_today(desk: RunningService, offset: int) -> None:
    order_id = placed(desk, OPT_1=1)
    answer(desk, "allocate_order", order_id=order_id, location_id=main(desk))
    answer(desk, "ship_order", order_id=order_id, carrier="Parcelis")

    assert refusal(desk, "confirm_order_delivery", order_id=order_id, delivered_on=day(offset)) == (
        "failed_precondition"
    )


def test_tracking_code_does_not_depend_on_other_work(desk: RunningService) -> None:
    order_id = placed(desk, OPT_1=1)
    answer(desk, "allocate_order", order_id=order_id, location_id=main(desk))
    twin = desk.fork()
    adjust(twin, "OPT-2", main(twin), 40)

    codes = [answer(one, "ship_order", order_id=order_id, carrier="Parcelis")["tracking_code"] for one in (desk, twin)]

    assert codes[0] == codes[1]


# Returns


def test_never_more_comes_back_than_was_delivered(desk: RunningService) -> None:
    order_id = delivered(desk, OPT_1=5)
    asked = {"order_id": order_id, "sku": "OPT-1", "reason": "damaged"}
    first = answer(desk, "request_order_return", **asked, quantity=3)

    assert refusal(desk, "request_order_return", **asked, quantity=3) == "limit_exceeded"
    answer(desk, "reject_order_return", return_id=first["id"], reason="Used")
    answer(desk, "request_order_return", **asked, quantity=5)

    assert refusal(desk, "request_order_return", **asked, quantity=1) == "limit_exceeded"


def test_credit_is_what_was_paid(desk: RunningService) -> None:
    order_id = draft(desk, OPT_2=3)
    answer(desk, "set_order_discount", order_id=order_id, discount_percent="10")
    for step in ("place_order", "allocate_order", "ship_order", "confirm_order_delivery"):
        answer(desk, step, order_id=order_id, **STEPS[step])

    returned = answer(desk, "request_order_return", order_id=order_id, sku="OPT-2", quantity=1, reason="not_needed")

    assert returned["credit_value"] == "30.02"  # 33.35 less 10 % is 30.015


@pytest.mark.parametrize(("restock", "expected"), [(None, 10), (1, 8), (0, 7)])
def test_restocked_units_are_on_hand_again(desk: RunningService, restock: int | None, expected: int) -> None:
    order_id = delivered(desk, OPT_1=3)
    asked = {"order_id": order_id, "sku": "OPT-1", "quantity": 3, "reason": "not_needed"}
    return_id = answer(desk, "request_order_return", **asked)["id"]
    arrival = {"return_id": return_id, "location_id": main(desk)}

    assert refusal(desk, "receive_order_return", **arrival, restock_quantity=4) == "failed_precondition"
    answer(desk, "receive_order_return", **arrival, **({} if restock is None else {"restock_quantity": restock}))

    assert stock(desk, "OPT-1", main(desk))[0] == expected
    assert refusal(desk, "reject_order_return", return_id=return_id, reason="Too late") == "failed_precondition"


def test_goods_come_back_within_sixty_days(desk: RunningService) -> None:
    order_id = delivered(desk, OPT_1=2)
    asked = {"order_id": order_id, "sku": "OPT-1", "quantity": 1, "reason": "defective"}

    alter(desk, "orders", order_id, delivered_on=day(-61))
    assert refusal(desk, "request_order_return", **asked) == "failed_precondition"
    alter(desk, "orders", order_id, delivered_on=day(-60))

    assert answer(desk, "request_order_return", **asked)["status"] == "requested"


# Supply


def offer(running: RunningService, sku: str = "OPT-1", minimum: int = 5) -> str:
    supplier = rows(running.state)["suppliers"][0]
    plant(
        running,
        "supplier_offers",
        supplier_id=supplier["id"],
        organisation=supplier["organisation"],
        sku=sku,
        unit_cost="40.00",
        minimum_quantity=minimum,
        lead_days=7,
    )
    return str(supplier["id"])


def test_low_stock_counts_what_is_available(desk: RunningService) -> None:
    answer(desk, "set_reorder_level", sku="OPT-1", location_id=main(desk), reorder_level=5)

    def low() -> list[Any]:
        items = answer(desk, "list_low_stock", location_id=main(desk), limit=200)["items"]
        return [row for row in items if row["sku"] == "OPT-1"]

    before = low()
    order_id = placed(desk, OPT_1=7)
    answer(desk, "allocate_order", order_id=order_id, location_id=main(desk))
    answer(desk, "order_replenishment", supplier_id=offer(desk), sku="OPT-1", location_id=main(desk), quantity=20)

    assert before == []
    assert [(row["available"], row["shortfall"], row["incoming"]) for row in low()] == [(3, 2, 20)]
    shortfalls = [row["shortfall"] for row in answer(desk, "list_low_stock", limit=200)["items"]]
    assert shortfalls == sorted(shortfalls, reverse=True)


def test_replenishment_arrives_in_parts(desk: RunningService) -> None:
    supplier_id = offer(desk)
    row = answer(desk, "order_replenishment", supplier_id=supplier_id, sku="OPT-1", location_id=main(desk), quantity=8)
    assert (row["cost"], row["expected_on"]) == ("320.00", day(7))

    first = answer(desk, "receive_replenishment", replenishment_id=row["id"], quantity=3)
    assert first["status"] == "partly_received"
    assert refusal(desk, "cancel_replenishment", replenishment_id=row["id"]) == "failed_precondition"
    assert refusal(desk, "receive_replenishment", replenishment_id=row["id"], quantity=6) == "limit_exceeded"
    last = answer(desk, "receive_replenishment", replenishment_id=row["id"])

    assert (last["status"], last["received"]) == ("received", 8)
    assert stock(desk, "OPT-1", main(desk)) == (18, 0, 18)
    assert refusal(desk, "receive_replenishment", replenishment_id=row["id"]) == "failed_precondition"


def test_supplier_delivers_on_the_terms_of_the_offer_only(desk: RunningService) -> None:
    order = {"supplier_id": offer(desk, minimum=10), "location_id": main(desk)}

    assert refusal(desk, "order_replenishment", **order, sku="OPT-2", quantity=10) == "not_found"
    assert refusal(desk, "order_replenishment", **order, sku="OPT-1", quantity=9) == "failed_precondition"


def test_product_that_is_on_order_is_not_discontinued(desk: RunningService) -> None:
    row = answer(desk, "order_replenishment", supplier_id=offer(desk), sku="OPT-1", location_id=main(desk), quantity=8)

    assert refusal(desk, "discontinue_product", sku="OPT-1") == "failed_precondition"
    answer(desk, "cancel_replenishment", replenishment_id=row["id"])
    assert answer(desk, "discontinue_product", sku="OPT-1")["status"] == "discontinued"


def test_rescheduled_replenishment_is_not_in_the_past(desk: RunningService) -> None:
    row = next(row for row in rows(desk.state)["replenishments"] if row["status"] == "ordered")

    assert refusal(desk, "reschedule_replenishment", replenishment_id=row["id"], expected_on=day(-1)) == (
        "failed_precondition"
    )
    moved = answer(desk, "reschedule_replenishment", replenishment_id=row["id"], expected_on=day(33))
    assert moved["expected_on"] == day(33)


# Rows that come from outside


def test_stock_that_a_plant_lowers_shows_at_once(desk: RunningService) -> None:
    level = next(row for row in rows(desk.state)["stock_levels"] if row["sku"] == "OPT-1")

    alter(desk, "stock_levels", level["id"], on_hand=2)

    assert stock(desk, "OPT-1", main(desk)) == (2, 0, 2)
    assert answer(desk, "get_product", sku="OPT-1")["available"] == 2
