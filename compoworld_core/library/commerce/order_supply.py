"""Supply: what suppliers offer, and goods ordered from them until they are in stock."""

from __future__ import annotations

from datetime import timedelta

from compoworld_core.library.commerce.order_desk import OrderDesk
from compoworld_core.library.commerce.order_rows import (
    LocationId,
    OrderNumber,
    Replenishment,
    ReplenishmentId,
    ReplenishmentStatus,
    Supplier,
    SupplierId,
    SupplierOffer,
    Units,
)
from compoworld_core.library.commerce.order_stock import cents, move_stock, next_number
from compoworld_core.library.filters import given
from compoworld_core.services.sdk import (
    Cursor,
    Day,
    FailedPrecondition,
    Limit,
    LimitExceeded,
    NotFound,
    Page,
    Query,
    Sku,
    paginate,
    tool,
)


class Supply(OrderDesk):
    """Tools on suppliers and replenishment."""

    @tool(effect="read")
    def search_stock_suppliers(
        self, organisation: Query | None = None, limit: Limit = 20, cursor: Cursor | None = None
    ) -> Page[Supplier]:
        """Find suppliers by name, in alphabetical order.

        Args:
            organisation: Part of the organisation's name, in any case.
            limit: Most suppliers to return.
            cursor: `next_cursor` of the previous page.
        """
        part = (organisation or "").casefold()
        rows = self.state.suppliers.where(lambda row: part in row.organisation.casefold())
        return paginate(sorted(rows, key=lambda row: row.organisation.casefold()), limit, cursor)

    @tool(effect="read")
    def list_supplier_offers(
        self,
        sku: Sku | None = None,
        supplier_id: SupplierId | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[SupplierOffer]:
        """List at what cost, from what quantity and how fast suppliers deliver, by SKU, the cheapest first.

        Args:
            sku: Only offers of this product.
            supplier_id: Only offers of this supplier.
            limit: Most offers to return.
            cursor: `next_cursor` of the previous page.
        """
        self.check_known(sku=sku, supplier_id=supplier_id)
        rows = self.state.supplier_offers.where(**given(sku=sku, supplier_id=supplier_id))
        return paginate(sorted(rows, key=lambda row: (row.sku, row.unit_cost)), limit, cursor)

    @tool(effect="write")
    def order_replenishment(
        self, supplier_id: SupplierId, sku: Sku, location_id: LocationId, quantity: Units
    ) -> Replenishment:
        """Order units from a supplier on the terms of their offer. They are expected after the offer's lead days.

        Args:
            supplier_id: The supplier, who must offer the product.
            sku: Stock-keeping unit of an active product.
            location_id: Where the units shall go; it must be open.
            quantity: Number of units, not below the offer's minimum.
        """
        supplier = self.state.suppliers.get(supplier_id)
        product = self.product(sku)
        self.open_location(location_id)
        if product.status == "discontinued":
            raise FailedPrecondition(f"{product.name} is discontinued")
        offer = self.state.supplier_offers.first(supplier_id=supplier_id, sku=sku)
        if offer is None:
            raise NotFound(f"{supplier.organisation} does not offer {sku}")
        if quantity < offer.minimum_quantity:
            raise FailedPrecondition(f"{supplier.organisation} delivers no fewer than {offer.minimum_quantity} units")
        return self.state.replenishments.insert(
            number=next_number(f"PO-{self.today.year}-", (row.number for row in self.state.replenishments)),
            supplier_id=supplier_id,
            organisation=supplier.organisation,
            sku=sku,
            location_id=location_id,
            quantity=quantity,
            unit_cost=offer.unit_cost,
            cost=cents(quantity * offer.unit_cost),
            ordered_on=self.today,
            expected_on=self.today + timedelta(days=offer.lead_days),
        )

    @tool(effect="write")
    def receive_replenishment(self, replenishment_id: ReplenishmentId, quantity: Units | None = None) -> Replenishment:
        """Put units that a supplier has delivered into stock.

        Args:
            replenishment_id: The replenishment, of which something is still to come.
            quantity: Units that have arrived, not more than are still to come; all of these, if left out.
        """
        row = self._awaited(replenishment_id)
        self.open_location(row.location_id)
        left = row.quantity - row.received
        arrived = left if quantity is None else quantity
        if arrived > left:
            raise LimitExceeded(f"{left} units are still to come, not {arrived}")
        move_stock(
            self.state,
            row.location_id,
            row.sku,
            arrived,
            kind="receipt",
            at=self.now,
            by=self.user.email,
            reference=row.number,
        )
        return self.state.replenishments.update(
            replenishment_id,
            received=row.received + arrived,
            status="received" if arrived == left else "partly_received",
        )

    @tool(effect="write")
    def reschedule_replenishment(self, replenishment_id: ReplenishmentId, expected_on: Day) -> Replenishment:
        """Record that a supplier will deliver on another day than expected.

        Args:
            replenishment_id: The replenishment, of which something is still to come.
            expected_on: The new day, today or later.
        """
        row = self._awaited(replenishment_id)
        if expected_on < self.today:
            raise FailedPrecondition(f"expected_on: {expected_on} is past; today is {self.today}")
        if expected_on == row.expected_on:
            raise FailedPrecondition(f"{replenishment_id} is expected on {expected_on} already")
        return self.state.replenishments.update(replenishment_id, expected_on=expected_on)

    @tool(effect="write")
    def cancel_replenishment(self, replenishment_id: ReplenishmentId) -> Replenishment:
        """Call off a replenishment of which nothing has arrived.

        Args:
            replenishment_id: The replenishment.
        """
        row = self._awaited(replenishment_id)
        if row.received:
            raise FailedPrecondition(f"{row.received} units of {replenishment_id} have arrived already")
        return self.state.replenishments.update(replenishment_id, status="cancelled")

    @tool(effect="read")
    def list_replenishments(
        self,
        sku: Sku | None = None,
        supplier_id: SupplierId | None = None,
        location_id: LocationId | None = None,
        status: ReplenishmentStatus | None = None,
        number: OrderNumber | None = None,
        expected_by: Day | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Replenishment]:
        """List orders to suppliers that satisfy all given filters, the earliest expected first.

        Args:
            sku: Only replenishments of this product.
            supplier_id: Only replenishments from this supplier.
            location_id: Only replenishments for this location.
            status: Only replenishments with this status.
            number: Only the replenishment with this number, e.g. "PO-2026-0003".
            expected_by: Only replenishments expected on this day or earlier.
            limit: Most replenishments to return.
            cursor: `next_cursor` of the previous page.
        """
        self.check_known(sku=sku, supplier_id=supplier_id, location_id=location_id)
        rows = self.state.replenishments.where(
            lambda row: expected_by is None or row.expected_on <= expected_by,
            **given(sku=sku, supplier_id=supplier_id, location_id=location_id, status=status, number=number),
        )
        return paginate(sorted(rows, key=lambda row: row.expected_on), limit, cursor)

    def _awaited(self, replenishment_id: str) -> Replenishment:
        row = self.state.replenishments.get(replenishment_id)
        if row.status not in ("ordered", "partly_received"):
            raise FailedPrecondition(f"{replenishment_id} is {row.status}; nothing is to come")
        return row
