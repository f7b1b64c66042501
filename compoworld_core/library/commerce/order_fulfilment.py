"""Fulfilment: stock is allocated, shipped, delivered, and sometimes comes back."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from compoworld_core.library.commerce.order_desk import OrderDesk
from compoworld_core.library.commerce.order_rows import (
    Carrier,
    LocationId,
    Order,
    OrderId,
    OrderReturn,
    Reason,
    Reservation,
    ReservationStatus,
    ReturnId,
    ReturnReason,
    ReturnStatus,
    Shipment,
    ShipmentId,
    ShipmentStatus,
    TrackingCode,
    Units,
)
from compoworld_core.library.commerce.order_stock import credit_value, deliver, move_stock, release, reserve, ship
from compoworld_core.library.filters import given
from compoworld_core.services.sdk import (
    Cursor,
    Day,
    FailedPrecondition,
    Limit,
    LimitExceeded,
    NotFound,
    Page,
    Quantity,
    Sku,
    Text,
    paginate,
    tool,
)

RETURN_DAYS: Final = 60
"""Days after delivery within which goods can be sent back."""


class Fulfilment(OrderDesk):
    """Tools on allocation, shipments and returns."""

    @tool(effect="write")
    def allocate_order(self, order_id: OrderId, location_id: LocationId, allow_backorder: bool = False) -> Order:
        """Reserve the units of a placed order at a location.

        If the location does not have enough of every product, nothing is reserved, unless backorders are allowed: then
        what is available is reserved and the order is `backordered`. Allocating a backordered order again reserves what
        has come in since; it must be the same location.

        Args:
            order_id: The order, placed or backordered.
            location_id: Where the units are taken from; it must be open.
            allow_backorder: Whether to reserve a part if there is not enough of everything.
        """
        order = self.order_in(order_id, "placed", "backordered")
        location = self.open_location(location_id)
        if order.status == "backordered" and order.location_id != location_id:
            raise FailedPrecondition(f"a part is reserved at {order.location_id}; allocate there or release it first")
        allocated = reserve(self.state, order, location_id, self.now)
        missing = {line.sku: line.quantity - line.allocated for line in allocated.lines}
        shown = ", ".join(f"{count} of {sku}" for sku, count in missing.items() if count)
        if allocated.status == "backordered" and not allow_backorder:
            raise FailedPrecondition(f"{location.name} lacks {shown}")
        if allocated.lines == order.lines:
            raise FailedPrecondition(f"{location.name} has nothing to reserve and lacks {shown}")
        return allocated

    @tool(effect="write")
    def release_order_allocation(self, order_id: OrderId) -> Order:
        """Make what is reserved for an order available again; the order is `placed` as before.

        Args:
            order_id: The order, allocated or backordered.
        """
        return release(self.state, self.order_in(order_id, "allocated", "backordered"), status="placed")

    @tool(effect="read")
    def list_stock_reservations(
        self,
        order_id: OrderId | None = None,
        sku: Sku | None = None,
        location_id: LocationId | None = None,
        status: ReservationStatus | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Reservation]:
        """List units that are or were promised to orders, in the order in which they were reserved.

        Args:
            order_id: Only reservations for this order.
            sku: Only reservations of this product.
            location_id: Only reservations at this location.
            status: Only reservations with this status.
            limit: Most reservations to return.
            cursor: `next_cursor` of the previous page.
        """
        self.check_known(order_id=order_id, sku=sku, location_id=location_id)
        rows = self.state.reservations.where(
            **given(order_id=order_id, sku=sku, location_id=location_id, status=status)
        )
        return paginate(rows, limit, cursor)

    # Shipments

    @tool(effect="write")
    def ship_order(self, order_id: OrderId, carrier: Carrier) -> Shipment:
        """Hand over all units of an allocated order to a carrier, who gives a tracking code.

        Falconway takes 1 day, Parcelis 2, Northline 3 and Quaycargo 6.

        Args:
            order_id: The order.
            carrier: Who delivers it.
        """
        order = self.order_in(order_id, "allocated")
        self.open_location(order.location_id or "")
        return ship(self.state, order, carrier, self.now, self.user.email, self.context.seed)

    @tool(effect="write")
    def confirm_order_delivery(self, order_id: OrderId, delivered_on: Day | None = None) -> Order:
        """Record that a shipped order has arrived.

        Args:
            order_id: The order.
            delivered_on: Day of arrival, from the day of shipping to today; today, if left out.
        """
        self.order_in(order_id, "shipped")
        shipment = self.state.shipments.first(order_id=order_id, status="in_transit")
        if shipment is None:
            raise NotFound(f"no shipment of {order_id} is in transit")
        day = delivered_on or self.today
        if not shipment.shipped_on <= day <= self.today:
            raise FailedPrecondition(f"delivered_on: {day} is not from {shipment.shipped_on} to {self.today}")
        return deliver(self.state, shipment, day)

    @tool(effect="read")
    def list_order_shipments(
        self,
        order_id: OrderId | None = None,
        location_id: LocationId | None = None,
        carrier: Carrier | None = None,
        status: ShipmentStatus | None = None,
        tracking_code: TrackingCode | None = None,
        expected_by: Day | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Shipment]:
        """List shipments that satisfy all given filters, the latest shipped first.

        Args:
            order_id: Only the shipment of this order.
            location_id: Only shipments from this location.
            carrier: Only shipments with this carrier.
            status: Only shipments that are on their way, or only delivered ones.
            tracking_code: Only the shipment with this tracking code.
            expected_by: Only shipments expected on this day or earlier.
            limit: Most shipments to return.
            cursor: `next_cursor` of the previous page.
        """
        self.check_known(order_id=order_id, location_id=location_id)
        rows = self.state.shipments.where(
            lambda row: expected_by is None or row.expected_on <= expected_by,
            **given(
                order_id=order_id, location_id=location_id, carrier=carrier, status=status, tracking_code=tracking_code
            ),
        )
        return paginate(sorted(rows, key=lambda row: row.shipped_on, reverse=True), limit, cursor)

    @tool(effect="read")
    def get_order_shipment(self, shipment_id: ShipmentId) -> Shipment:
        """Get a shipment with its tracking code and expected day of arrival.

        Args:
            shipment_id: The shipment.
        """
        return self.state.shipments.get(shipment_id)

    # Returns

    @tool(effect="write")
    def request_order_return(
        self, order_id: OrderId, sku: Sku, quantity: Units, reason: ReturnReason, note: Text = ""
    ) -> OrderReturn:
        """Register that a customer sends units back, at most 60 days after delivery.

        All returns of a product that are not rejected together never exceed what was delivered. The credit is the price
        on the order less its discount, rounded half up to cents.

        Args:
            order_id: The delivered order.
            sku: Stock-keeping unit of a product on it.
            quantity: Number of units.
            reason: Why they come back.
            note: What the customer says.
        """
        order = self.order_in(order_id, "delivered")
        line = next((line for line in order.lines if line.sku == sku), None)
        if line is None:
            raise NotFound(f"{order_id} has no line with the SKU {sku!r}")
        if order.delivered_on is not None and self.today > order.delivered_on + timedelta(days=RETURN_DAYS):
            raise FailedPrecondition(f"{order_id} was delivered on {order.delivered_on}, over {RETURN_DAYS} days ago")
        earlier = self.state.returns.where(lambda row: row.status != "rejected", order_id=order_id, sku=sku)
        left = line.quantity - sum(row.quantity for row in earlier)
        if quantity > left:
            raise LimitExceeded(f"{left} of the {line.quantity} delivered units can still come back, not {quantity}")
        return self.state.returns.insert(
            order_id=order_id,
            sku=sku,
            quantity=quantity,
            reason=reason,
            note=note,
            credit_value=credit_value(order, line, quantity),
            requested_on=self.today,
        )

    @tool(effect="write")
    def receive_order_return(
        self, return_id: ReturnId, location_id: LocationId, restock_quantity: Quantity | None = None
    ) -> OrderReturn:
        """Record that returned units have arrived, and put those that can be sold again back into stock.

        Args:
            return_id: The return, which must be requested.
            location_id: Where the units have arrived; it must be open.
            restock_quantity: Units that can be sold again, not more than come back; all, if left out.
        """
        returned = self._requested(return_id)
        location = self.open_location(location_id)
        restocked = returned.quantity if restock_quantity is None else restock_quantity
        if restocked > returned.quantity:
            raise FailedPrecondition(f"{returned.quantity} units come back, not {restocked}")
        if restocked:
            move_stock(
                self.state,
                location.id,
                returned.sku,
                restocked,
                kind="return",
                at=self.now,
                by=self.user.email,
                reason=returned.reason,
                reference=self.state.orders.get(returned.order_id).number,
            )
        return self.state.returns.update(
            return_id,
            status="received",
            received_on=self.today,
            location_id=location_id,
            restocked=restocked,
        )

    @tool(effect="write")
    def reject_order_return(self, return_id: ReturnId, reason: Reason) -> OrderReturn:
        """Refuse a requested return.

        Args:
            return_id: The return.
            reason: Why, for the customer.
        """
        self._requested(return_id)
        return self.state.returns.update(return_id, status="rejected", rejection_reason=reason)

    @tool(effect="read")
    def list_order_returns(
        self,
        order_id: OrderId | None = None,
        sku: Sku | None = None,
        status: ReturnStatus | None = None,
        reason: ReturnReason | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[OrderReturn]:
        """List returns that satisfy all given filters, the latest requested first.

        Args:
            order_id: Only returns of this order.
            sku: Only returns of this product.
            status: Only returns with this status.
            reason: Only returns for this reason.
            limit: Most returns to return.
            cursor: `next_cursor` of the previous page.
        """
        self.check_known(order_id=order_id, sku=sku)
        rows = self.state.returns.where(**given(order_id=order_id, sku=sku, status=status, reason=reason))
        return paginate(sorted(rows, key=lambda row: row.requested_on)[::-1], limit, cursor)

    def _requested(self, return_id: str) -> OrderReturn:
        returned = self.state.returns.get(return_id)
        if returned.status != "requested":
            raise FailedPrecondition(f"{return_id} is {returned.status} already")
        return returned
