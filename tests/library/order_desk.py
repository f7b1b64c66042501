"""An order desk under test: short words for its orders and its stock, and what holds whatever was called."""

from __future__ import annotations

from collections import Counter
from datetime import timedelta
from decimal import Decimal
from typing import Any

from compoworld_core.services.running import RunningService
from tests.library.conformance import START, answer, rows

TODAY = START.date()
ELSEWHERE = "Nordwind Optik GmbH"


def day(offset: int) -> str:
    return (TODAY + timedelta(days=offset)).isoformat()


def alter(running: RunningService, table: str, key: str, **fields: Any) -> None:
    """Change a row behind the tools' back, as the world's own row changes do."""
    running.state.tables[table].update(key, **fields)
    running.state.commit(counted=False)


def locations(running: RunningService) -> list[str]:
    return [row["id"] for row in rows(running.state)["locations"] if row["is_open"]]


def main(running: RunningService) -> str:
    return locations(running)[0]


def adjust(running: RunningService, sku: str, location_id: str, counted: int) -> Any:
    arguments = {"sku": sku, "location_id": location_id, "counted": counted, "reason": "Count"}
    return answer(running, "adjust_stock", **arguments)


def stock(running: RunningService, sku: str, location_id: str) -> tuple[int, int, int]:
    items = answer(running, "list_stock_levels", sku=sku, location_id=location_id)["items"]
    return (items[0]["on_hand"], items[0]["reserved"], items[0]["available"]) if items else (0, 0, 0)


def customer(running: RunningService, credit_limit: str = "100000.00") -> str:
    found = answer(running, "search_order_customers", organisation=ELSEWHERE)["items"]
    if found:
        return str(found[0]["id"])
    made = answer(
        running,
        "create_order_customer",
        organisation=ELSEWHERE,
        contact_name="Lena Ahrens",
        contact_email="Lena.Ahrens@nordwind.example",
        city="Essen",
        country="Germany",
        credit_limit=credit_limit,
    )
    return str(made["id"])


def draft(running: RunningService, **quantities: int) -> str:
    """A draft with so many units of `OPT_1` and `OPT_2`."""
    lines = [{"sku": name.replace("_", "-"), "quantity": quantity} for name, quantity in quantities.items()]
    return str(answer(running, "create_order", customer_id=customer(running), lines=lines)["id"])


def placed(running: RunningService, **quantities: int) -> str:
    order_id = draft(running, **quantities)
    answer(running, "place_order", order_id=order_id)
    return order_id


def delivered(running: RunningService, **quantities: int) -> str:
    order_id = placed(running, **quantities)
    answer(running, "allocate_order", order_id=order_id, location_id=main(running))
    answer(running, "ship_order", order_id=order_id, carrier="Parcelis")
    answer(running, "confirm_order_delivery", order_id=order_id)
    return order_id


def check_books(running: RunningService) -> None:
    """What holds whatever was called: reservations, movements and stock agree, and nothing is negative."""
    state = rows(running.state)
    reserved: Counter[tuple[str, str]] = Counter()
    for row in state["reservations"]:
        if row["status"] == "active":
            reserved[row["location_id"], row["sku"]] += row["quantity"]
    moved: Counter[tuple[str, str]] = Counter()
    for row in state["movements"]:
        moved[row["location_id"], row["sku"]] += row["change"]
        assert row["on_hand_after"] == moved[row["location_id"], row["sku"]]
    for level in state["stock_levels"]:
        place = (level["location_id"], level["sku"])
        assert level["on_hand"] == moved[place]
        assert level["reserved"] == reserved[place]
        assert 0 <= level["reserved"] <= level["on_hand"]
    returned: Counter[tuple[str, str]] = Counter()
    for row in state["returns"]:
        if row["status"] != "rejected":
            returned[row["order_id"], row["sku"]] += row["quantity"]
    for order in state["orders"]:
        goods = sum(Decimal(line["amount"]) for line in order["lines"])
        assert Decimal(order["goods_total"]) == goods
        assert Decimal(order["total"]) == goods - Decimal(order["discount_amount"])
        for line in order["lines"]:
            assert line["allocated"] <= line["quantity"]
            if order["status"] in ("allocated", "shipped", "delivered"):
                assert line["allocated"] == line["quantity"]
            if order["status"] in ("draft", "placed", "cancelled"):
                assert line["allocated"] == 0
            assert returned[order["id"], line["sku"]] <= line["quantity"]
