"""Stock-keeping: the arithmetic of orders, and the only functions that move or promise units.

For every location and product, `reserved` is the sum of the active reservations, and the last movement's
`on_hand_after` is what is on hand. Amounts are decimal and rounded half up.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final

from compoworld_core.library.commerce.order_rows import (
    Carrier,
    MovementKind,
    NewOrderLine,
    Order,
    OrderLine,
    OrdersState,
    Product,
    Shipment,
    StockLevel,
    StockMovement,
)
from compoworld_core.services.sdk import FailedPrecondition, LimitExceeded, NotFound

ZERO: Final = Decimal("0.00")
MAX_TOTAL: Final = Decimal(1_000_000_000)
MAX_ON_HAND: Final = 10_000_000
TRANSIT_DAYS: Final[tuple[tuple[Carrier, int], ...]] = (
    ("Falconway", 1),
    ("Northline", 3),
    ("Parcelis", 2),
    ("Quaycargo", 6),
)
"""Days that each carrier takes."""


def cents(amount: Decimal) -> Decimal:
    """The amount with two decimals, half up."""
    return amount.quantize(Decimal("0.01"), rounding=ROUND_HALF_UP)


def product_of(state: OrdersState, sku: str) -> Product:
    """The product with a stock-keeping unit."""
    product = state.products.first(sku=sku)
    if product is None:
        raise NotFound(f"no product has the SKU {sku!r}")
    return product


def order_line(state: OrdersState, line: NewOrderLine) -> OrderLine:
    """A line with its amount; the product must still be sold."""
    product = product_of(state, line.sku)
    if product.status == "discontinued":
        raise FailedPrecondition(f"{product.name} ({line.sku}) is discontinued")
    price = product.price if line.unit_price is None else line.unit_price
    return OrderLine(
        sku=line.sku,
        product_name=product.name,
        quantity=line.quantity,
        unit_price=price,
        amount=cents(line.quantity * price),
    )


def sums(lines: tuple[OrderLine, ...], discount_percent: Decimal) -> dict[str, Any]:
    """The fields of an order with these lines and this discount.

    Raises:
        LimitExceeded: The total is too large.
    """
    goods = sum((line.amount for line in lines), ZERO)
    if goods > MAX_TOTAL:
        raise LimitExceeded(f"the lines add up to {goods}; an order can have {MAX_TOTAL} at most")
    discount = cents(goods * discount_percent / 100)
    return {
        "lines": lines,
        "goods_total": goods,
        "discount_percent": discount_percent,
        "discount_amount": discount,
        "total": goods - discount,
    }


def next_number(prefix: str, taken: Iterable[str]) -> str:
    """The number after the highest of those that start with the prefix."""
    tails = (number.removeprefix(prefix) for number in taken if number.startswith(prefix))
    return f"{prefix}{max((int(tail) for tail in tails if tail.isdecimal() and len(tail) < 12), default=0) + 1:04d}"


# Stock


def level_of(state: OrdersState, location_id: str, sku: str) -> StockLevel | None:
    """The product's stock at a location, or None where it never had any."""
    return state.stock_levels.first(location_id=location_id, sku=sku)


def move_stock(
    state: OrdersState,
    location_id: str,
    sku: str,
    change: int,
    *,
    kind: MovementKind,
    at: datetime,
    by: str,
    reason: str = "",
    reference: str | None = None,
) -> StockMovement:
    """Change the units on hand and record why. Reserved units stay.

    Raises:
        FailedPrecondition: Fewer units are available than are to go.
        LimitExceeded: More units would be on hand than a location can have.
    """
    level = level_of(state, location_id, sku)
    if level is None:
        level = state.stock_levels.insert(location_id=location_id, sku=sku, on_hand=0)
    on_hand = level.on_hand + change
    if on_hand < level.reserved:
        raise FailedPrecondition(
            f"{level.on_hand - level.reserved} units of {sku} are available at {location_id}, not {-change}"
        )
    if on_hand > MAX_ON_HAND:
        raise LimitExceeded(f"{on_hand} units of {sku} are more than a location can hold ({MAX_ON_HAND})")
    state.stock_levels.update(level.id, on_hand=on_hand)
    return state.movements.insert(
        location_id=location_id,
        sku=sku,
        kind=kind,
        change=change,
        on_hand_after=on_hand,
        reason=reason,
        reference=reference,
        moved_at=at,
        moved_by_email=by,
    )


def reserve(state: OrdersState, order: Order, location_id: str, at: datetime) -> Order:
    """Promise the order's units at a location, as far as they are available."""
    lines = []
    for line in order.lines:
        level = level_of(state, location_id, line.sku)
        available = 0 if level is None else level.on_hand - level.reserved
        quantity = min(line.quantity - line.allocated, max(available, 0))
        if level is not None and quantity:
            state.stock_levels.update(level.id, reserved=level.reserved + quantity)
            state.reservations.insert(
                order_id=order.id, location_id=location_id, sku=line.sku, quantity=quantity, reserved_at=at
            )
        lines.append(_with_allocated(line, line.allocated + quantity))
    is_complete = all(line.allocated == line.quantity for line in lines)
    return state.orders.update(
        order.id,
        lines=tuple(lines),
        location_id=location_id,
        status="allocated" if is_complete else "backordered",
    )


def release(state: OrdersState, order: Order, **fields: Any) -> Order:
    """Take back all that is promised to the order, and change its fields."""
    for reservation in state.reservations.where(order_id=order.id, status="active"):
        level = level_of(state, reservation.location_id, reservation.sku)
        if level is not None:
            state.stock_levels.update(level.id, reserved=max(level.reserved - reservation.quantity, 0))
        state.reservations.update(reservation.id, status="released")
    lines = tuple(_with_allocated(line, 0) for line in order.lines)
    return state.orders.update(order.id, lines=lines, location_id=None, **fields)


def ship(state: OrdersState, order: Order, carrier: Carrier, at: datetime, by: str, seed: int) -> Shipment:
    """Hand over the reserved units of an allocated order to a carrier."""
    for reservation in state.reservations.where(order_id=order.id, status="active"):
        level = level_of(state, reservation.location_id, reservation.sku)
        if level is None or level.reserved < reservation.quantity:
            raise FailedPrecondition(f"{reservation.id} is no longer covered by stock")
        state.stock_levels.update(level.id, reserved=level.reserved - reservation.quantity)
        state.reservations.update(reservation.id, status="shipped")
        move_stock(
            state,
            reservation.location_id,
            reservation.sku,
            -reservation.quantity,
            kind="shipment",
            at=at,
            by=by,
            reference=order.number,
        )
    state.orders.update(order.id, status="shipped")
    return state.shipments.insert(
        order_id=order.id,
        location_id=order.location_id,
        carrier=carrier,
        tracking_code=_tracking_code(state, carrier, seed),
        shipped_on=at.date(),
        expected_on=at.date() + timedelta(days=dict(TRANSIT_DAYS)[carrier]),
    )


def deliver(state: OrdersState, shipment: Shipment, day: date) -> Order:
    """Record that an order has arrived."""
    state.shipments.update(shipment.id, status="delivered", delivered_on=day)
    return state.orders.update(shipment.order_id, status="delivered", delivered_on=day)


def credit_value(order: Order, line: OrderLine, quantity: int) -> Decimal:
    """What the customer pays for some units of a line, less the order's discount."""
    return cents(quantity * line.unit_price * (100 - order.discount_percent) / 100)


def _with_allocated(line: OrderLine, allocated: int) -> OrderLine:
    return OrderLine(**{**{name: getattr(line, name) for name in OrderLine.model_fields}, "allocated": allocated})


def _tracking_code(state: OrdersState, carrier: Carrier, seed: int) -> str:
    """A code that follows from the seed and the number of shipments alone, whatever else was written in between."""
    rng = random.Random(f"tracking/{seed}/{len(state.shipments)}")
    while state.shipments.first(tracking_code=(code := f"{carrier[:2].upper()}{rng.randrange(10**9, 10**10)}")):
        pass
    return code
