"""The business that a new world starts with: stock, customers and orders, made by the functions that tools use."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import datetime, timedelta
from decimal import Decimal
from typing import TYPE_CHECKING, Final

from compoworld_core.library.commerce.order_desk import UNDER_WAY
from compoworld_core.library.commerce.order_rows import (
    Carrier,
    Location,
    NewOrderLine,
    Order,
    OrderCustomer,
    OrdersState,
    OrderStatus,
    ReturnReason,
    StockMovement,
    Supplier,
)
from compoworld_core.library.commerce.order_stock import (
    TRANSIT_DAYS,
    cents,
    credit_value,
    deliver,
    level_of,
    move_stock,
    next_number,
    order_line,
    release,
    reserve,
    ship,
    sums,
)

if TYPE_CHECKING:
    from compoworld_core.services.universe import Universe

_MOST_ORDERS: Final = 240
_STATUSES: Final[tuple[OrderStatus, ...]] = (
    "delivered",
    "draft",
    "placed",
    "allocated",
    "shipped",
    "delivered",
    "placed",
    "cancelled",
    "draft",
    "draft",
    "delivered",
    "backordered",
    "allocated",
    "shipped",
)
_CANCELLED: Final = (
    "The customer found it cheaper elsewhere.",
    "Ordered twice by mistake.",
    "The project was put off.",
)
_RETURNED: Final[tuple[tuple[ReturnReason, str], ...]] = (
    ("damaged", "The box was crushed on one side."),
    ("not_needed", "We counted wrong; unopened."),
    ("defective", "It does not switch on."),
    ("wrong_item", "We had ordered another one."),
)
_REJECTED: Final = "The goods show signs of heavy use."
_COUNTED: Final = ("Yearly count.", "Broken in the warehouse.", "Found behind a shelf.")
_CARRIERS: Final[tuple[Carrier, ...]] = tuple(carrier for carrier, _ in TRANSIT_DAYS)


def seed_orders(state: OrdersState, universe: Universe, rng: random.Random, start: datetime) -> None:
    """Fill an empty order desk.

    Billing ids count the organisations of the universe, as those of the accounts in `Crm` do.
    """
    _Seed(state, universe, rng, start).run()


class _Seed:
    """Adds believable rows."""

    def __init__(self, state: OrdersState, universe: Universe, rng: random.Random, start: datetime) -> None:
        self.state, self.universe, self.rng, self.start = state, universe, rng, start
        handlers = [person.email for person in universe.staff if person.department in ("Operations", "Procurement")]
        sellers = [person.email for person in universe.staff if person.department in ("Sales", "Support")]
        everybody = [person.email for person in universe.staff]
        self.handlers, self.sellers = handlers or everybody, sellers or everybody
        self.seed = rng.randrange(1_000_000)

    def run(self) -> None:
        """Everything, what others refer to first."""
        locations = self._add_locations()
        self._add_products(locations)
        customers = self._add_customers()
        suppliers = self._add_suppliers()
        self._add_transfers(locations)
        count = min(_MOST_ORDERS, max(28, 2 * len(customers)))
        chosen = [customers[number % len(customers)] for number in range(count)]
        days = sorted((self.rng.randint(0, 75) for _ in chosen), reverse=True)
        for number, (customer, days_ago) in enumerate(zip(chosen, days, strict=True)):
            self._add_order(customer, locations, _STATUSES[number % len(_STATUSES)], days_ago)
        self._add_returns()
        self._add_replenishments(locations, suppliers)
        self._let_some_run_low()
        self._fit_credit_limits(customers)
        self._block_somebody(customers)
        self._put_movements_in_order()

    def _ago(self, days: int) -> datetime:
        return self.start - timedelta(days=days, minutes=15 * self.rng.randint(1, 20))

    # What there is

    def _add_locations(self) -> list[Location]:
        places = {(item.city, item.country) for item in (self.universe.home, *self.universe.organisations)}
        home = (self.universe.home.city, self.universe.home.country)
        others = self.rng.sample(sorted(places - {home}), min(3, len(places) - 1))
        kinds = ("main warehouse", "warehouse", "shop", "old warehouse")
        return [
            self.state.locations.insert(
                name=f"{city} {kind}", city=city, country=country, is_open=not kind.startswith("old")
            )
            for (city, country), kind in zip((home, *others), kinds, strict=False)
        ]

    def _add_products(self, locations: Sequence[Location]) -> None:
        rng = self.rng
        for number, product in enumerate(self.universe.products):
            self.state.products.insert(
                sku=product.sku,
                name=product.name,
                price=product.price,
                status="discontinued" if number % 12 == 11 else "active",
            )
            kept_at = [locations[0], *rng.sample(locations[1:], rng.randint(1, min(2, len(locations) - 1)))]
            for location in kept_at:
                at = self._ago(rng.randint(100, 200))
                count = rng.randint(40, 160) if location is locations[0] else rng.randint(8, 60)
                self._move(location, product.sku, count, at, "Opening stock.")
                level = level_of(self.state, location.id, product.sku)
                if level is not None and location.is_open:
                    self.state.stock_levels.update(level.id, reorder_level=rng.choice((5, 8, 10, 12, 20)))
        for level in rng.sample(tuple(self.state.stock_levels), min(4, len(self.state.stock_levels))):
            location = self.state.locations.get(level.location_id)
            self._move(location, level.sku, rng.choice((-3, -2, -1, 2)), self._ago(80), rng.choice(_COUNTED))

    def _move(self, location: Location, sku: str, change: int, at: datetime, reason: str) -> None:
        by = self.rng.choice(self.handlers)
        move_stock(self.state, location.id, sku, change, kind="adjustment", at=at, by=by, reason=reason)

    def _add_transfers(self, locations: Sequence[Location]) -> None:
        main, *others = [location for location in locations if location.is_open]
        for sku in self.rng.sample([product.sku for product in self.state.products], 3):
            to, at, by = self.rng.choice(others or [main]), self._ago(self.rng.randint(76, 90)), self.handlers[0]
            quantity = self.rng.randint(2, 8)
            if to is main:
                continue
            note = "Evens out the stock."
            move_stock(self.state, main.id, sku, -quantity, kind="transfer_out", at=at, by=by, reason=note)
            move_stock(self.state, to.id, sku, quantity, kind="transfer_in", at=at, by=by, reason=note)
            self.state.transfers.insert(
                sku=sku, quantity=quantity, from_location_id=main.id, to_location_id=to.id, note=note, moved_at=at
            )

    # Who there is

    def _add_customers(self) -> list[OrderCustomer]:
        people = {person.organisation: person for person in reversed(self.universe.contacts)}
        return [
            self.state.customers.insert(
                organisation=organisation.name,
                contact_name=people[organisation.name].name,
                contact_email=people[organisation.name].email,
                billing_id=f"BP-{10001 + number}",
                city=organisation.city,
                country=organisation.country,
                credit_limit=Decimal(self.rng.choice((40, 60, 80, 120, 200, 250))) * 1000,
            )
            for number, organisation in enumerate(self.universe.organisations)
            if organisation.name in people and number % 6 != 5  # some organisations have not bought anything yet
        ]

    def _fit_credit_limits(self, customers: Sequence[OrderCustomer]) -> None:
        """Nobody has been let past their limit."""
        for customer in customers:
            rows = self.state.orders.where(lambda row: row.status in UNDER_WAY, customer_id=customer.id)
            if (value := sum(row.total for row in rows)) > customer.credit_limit:
                self.state.customers.update(customer.id, credit_limit=(value // 10_000 + 2) * 10_000)

    def _block_somebody(self, customers: Sequence[OrderCustomer]) -> None:
        for customer in self.rng.sample(customers, min(len(customers), max(2, len(customers) // 25))):
            self.state.customers.update(customer.id, status="blocked", block_reason="Two invoices are long overdue.")

    def _add_suppliers(self) -> list[Supplier]:
        """Some organisations are suppliers too; every active product is offered by one to three of them."""
        rng = self.rng
        count = min(len(self.universe.organisations), max(4, len(self.universe.organisations) // 12))
        suppliers = []
        for organisation in rng.sample(self.universe.organisations, count):
            person = next(iter(self.universe.contacts_of(organisation.name)), None)
            if person is not None:
                suppliers.append(
                    self.state.suppliers.insert(
                        organisation=organisation.name, contact_name=person.name, contact_email=person.email
                    )
                )
        for product in self.state.products.where(status="active"):
            for supplier in rng.sample(suppliers, rng.randint(min(2, len(suppliers)), min(3, len(suppliers)))):
                self.state.supplier_offers.insert(
                    supplier_id=supplier.id,
                    organisation=supplier.organisation,
                    sku=product.sku,
                    unit_cost=max(cents(product.price * rng.randint(45, 75) / 100), Decimal("0.01")),
                    minimum_quantity=rng.choice((1, 5, 10, 20)),
                    lead_days=rng.choice((3, 5, 7, 10, 14, 21)),
                )
        return suppliers

    # What has been going on

    def _add_order(
        self, customer: OrderCustomer, locations: Sequence[Location], status: OrderStatus, days_ago: int
    ) -> None:
        rng = self.rng
        if status in ("shipped", "delivered"):
            days_ago = max(days_ago, 8)
        created = self._ago(days_ago)
        by = rng.choice(self.sellers)
        location = locations[0] if rng.random() < 0.7 else rng.choice([item for item in locations if item.is_open])
        stocked = self.state.stock_levels.where(lambda row: self._is_sold(row.sku), location_id=location.id)
        chosen = rng.sample(stocked, min(len(stocked), rng.choice((1, 2, 2, 3))))
        if status == "backordered":  # of what is nearly sold out
            chosen = sorted(stocked, key=lambda level: level.on_hand - level.reserved)[:2]
        lines = []
        for place, level in enumerate(chosen):
            free = level.on_hand - level.reserved
            most = min(6, max(1, free // 4))
            quantity = free + rng.randint(2, 6) if status == "backordered" and place == 0 else rng.randint(1, most)
            lines.append(NewOrderLine(sku=level.sku, quantity=max(quantity, 1)))
        order = self.state.orders.insert(
            number=next_number(f"SO-{created.year}-", (row.number for row in self.state.orders)),
            customer_id=customer.id,
            organisation=customer.organisation,
            owner_email=by,
            created_on=created.date(),
            customer_reference=f"{customer.organisation[:3].upper()}-{rng.randint(2000, 9999)}"
            if rng.random() < 0.6
            else None,
            needed_by=(created + timedelta(days=rng.randint(10, 30))).date() if rng.random() < 0.5 else None,
            **sums(
                tuple(order_line(self.state, line) for line in lines),
                Decimal(rng.choice((0, 0, 0, 5, 10, 15))),
            ),
        )
        self._advance(order, location, status, created, by)

    def _is_sold(self, sku: str) -> bool:
        product = self.state.products.first(sku=sku)
        return product is not None and product.status == "active"

    def _advance(self, order: Order, location: Location, status: OrderStatus, created: datetime, by: str) -> None:
        """Take a draft as far as the status says, or as far as the stock allows."""
        rng = self.rng
        if status == "draft":
            return
        placed = created + timedelta(minutes=rng.randint(10, 200))
        order = self.state.orders.update(order.id, status="placed", placed_on=min(placed, self.start).date())
        if status == "cancelled":
            release(self.state, order, status="cancelled", cancel_reason=rng.choice(_CANCELLED))
        if status in ("placed", "cancelled"):
            return
        order = reserve(self.state, order, location.id, min(placed + timedelta(hours=1), self.start))
        if order.status != "allocated" or status == "allocated":
            return
        shipped = placed + timedelta(days=rng.randint(0, 2))
        if status == "shipped":
            shipped = max(shipped, self._ago(rng.randint(1, 5)))
        carrier = rng.choice(_CARRIERS)
        shipment = ship(self.state, order, carrier, min(shipped, self.start), rng.choice(self.handlers), self.seed)
        if status == "delivered":
            late = rng.choice((0, 0, 0, 1))
            deliver(self.state, shipment, min(shipment.expected_on + timedelta(days=late), self.start.date()))

    def _add_returns(self) -> None:
        rng = self.rng
        delivered = self.state.orders.where(status="delivered")
        statuses = ("requested", "received", "requested", "rejected")
        for place, order in enumerate(rng.sample(delivered, max(min(len(delivered), 6), len(delivered) // 4))):
            line = rng.choice(order.lines)
            reason, note = rng.choice(_RETURNED)
            status = statuses[place % len(statuses)]
            quantity = rng.randint(1, min(line.quantity, 3))
            day = min((order.delivered_on or self.start.date()) + timedelta(days=rng.randint(1, 12)), self.start.date())
            returned = self.state.returns.insert(
                order_id=order.id,
                sku=line.sku,
                quantity=quantity,
                reason=reason,
                note=note,
                credit_value=credit_value(order, line, quantity),
                requested_on=day,
                status="rejected" if status == "rejected" else "requested",
                rejection_reason=_REJECTED if status == "rejected" else "",
            )
            if status == "received" and order.location_id is not None:
                restocked = quantity if reason in ("not_needed", "wrong_item") else 0
                at = min(datetime.combine(day, self.start.timetz()) + timedelta(days=1), self.start)
                if restocked:
                    move_stock(
                        self.state,
                        order.location_id,
                        line.sku,
                        restocked,
                        kind="return",
                        at=at,
                        by=self.handlers[0],
                        reason=reason,
                        reference=order.number,
                    )
                self.state.returns.update(
                    returned.id,
                    status="received",
                    received_on=at.date(),
                    location_id=order.location_id,
                    restocked=restocked,
                )

    def _add_replenishments(self, locations: Sequence[Location], suppliers: Sequence[Supplier]) -> None:
        rng = self.rng
        names = {supplier.id: supplier.organisation for supplier in suppliers}
        offers = tuple(self.state.supplier_offers)
        open_locations = [location for location in locations if location.is_open]
        for number, offer in enumerate(rng.sample(offers, min(len(offers), max(9, len(self.state.products) // 10)))):
            status = ("ordered", "received", "ordered", "partly_received", "cancelled")[number % 5]
            days_ago = rng.randint(30, 60) if status == "received" else rng.randint(1, 20)
            ordered = self._ago(days_ago)
            quantity = offer.minimum_quantity + rng.choice((0, 5, 10, 20))
            location = rng.choice(open_locations)
            due = ordered + timedelta(days=offer.lead_days)
            row = self.state.replenishments.insert(
                number=next_number(f"PO-{ordered.year}-", (row.number for row in self.state.replenishments)),
                supplier_id=offer.supplier_id,
                organisation=names[offer.supplier_id],
                sku=offer.sku,
                location_id=location.id,
                quantity=quantity,
                unit_cost=offer.unit_cost,
                cost=cents(quantity * offer.unit_cost),
                status="cancelled" if status == "cancelled" else "ordered",
                ordered_on=ordered.date(),
                expected_on=due.date(),
            )
            received = {"received": quantity, "partly_received": quantity // 2}.get(status, 0)
            if received:
                move_stock(
                    self.state,
                    location.id,
                    offer.sku,
                    received,
                    kind="receipt",
                    at=min(due, self._ago(1)),
                    by=rng.choice(self.handlers),
                    reference=row.number,
                )
                self.state.replenishments.update(
                    row.id, received=received, status="received" if received == quantity else "partly_received"
                )

    def _put_movements_in_order(self) -> None:
        """Number the movements by their times, and work out anew what was on hand after each."""
        movements = tuple(self.state.movements)
        for movement in movements:
            self.state.movements.delete(movement.id)
        on_hand: dict[tuple[str, str], int] = {}
        in_order = sorted(movements, key=lambda row: row.moved_at)
        for key, movement in zip([row.id for row in movements], in_order, strict=True):
            place = (movement.location_id, movement.sku)
            on_hand[place] = on_hand.get(place, 0) + movement.change
            fields = {name: getattr(movement, name) for name in StockMovement.model_fields}
            self.state.movements.insert(**{**fields, "id": key, "on_hand_after": on_hand[place]})

    def _let_some_run_low(self) -> None:
        """Raise some reorder levels above what is available, as after a busy season."""
        levels = self.state.stock_levels.where(lambda row: row.reorder_level > 0 and self._is_sold(row.sku))
        for level in self.rng.sample(levels, min(len(levels), max(3, len(levels) // 10))):
            available = level.on_hand - level.reserved
            self.state.stock_levels.update(level.id, reorder_level=max(1, available + self.rng.randint(0, 9)))
