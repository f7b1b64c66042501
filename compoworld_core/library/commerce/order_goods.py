"""Goods: products, and where how many of them are."""

from __future__ import annotations

from typing import Annotated

from compoworld_core.library.commerce.order_desk import OrderDesk
from compoworld_core.library.commerce.order_rows import (
    Location,
    LocationId,
    LowStock,
    MovementKind,
    OrderNumber,
    Product,
    ProductOverview,
    ProductStatus,
    Reason,
    StockLevel,
    StockLevelOverview,
    StockMovement,
    StockTransfer,
    UnitPrice,
    Units,
)
from compoworld_core.library.commerce.order_stock import level_of, move_stock
from compoworld_core.library.filters import given
from compoworld_core.services.sdk import (
    City,
    Cursor,
    FailedPrecondition,
    Field,
    InvalidArguments,
    Limit,
    Page,
    Quantity,
    Query,
    Sku,
    Text,
    paginate,
    tool,
)

Counted = Annotated[Quantity, Field(le=100_000)]


class Goods(OrderDesk):
    """Tools on products and stock."""

    @tool(effect="read")
    def search_products(
        self,
        name: Query | None = None,
        sku: Sku | None = None,
        status: ProductStatus | None = None,
        max_price: UnitPrice | None = None,
        in_stock: bool = False,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[ProductOverview]:
        """Find products that satisfy all given filters, in alphabetical order of their names.

        Args:
            name: Part of the product's name, in any case.
            sku: Exact stock-keeping unit.
            status: Only products that are still sold, or only discontinued ones.
            max_price: Only products with this list price or a lower one.
            in_stock: Whether to leave out products of which no unit is available anywhere.
            limit: Most products to return.
            cursor: `next_cursor` of the previous page.
        """
        part = (name or "").casefold()
        found = self.state.products.where(
            lambda row: part in row.name.casefold() and (max_price is None or row.price <= max_price),
            **given(sku=sku, status=status),
        )
        rows = [self.product_overview(row) for row in sorted(found, key=lambda row: row.name.casefold())]
        return paginate([row for row in rows if row.available > 0 or not in_stock], limit, cursor)

    @tool(effect="read")
    def get_product(self, sku: Sku) -> ProductOverview:
        """Get a product with its list price, its stock over all locations and what is on its way from suppliers.

        Args:
            sku: Stock-keeping unit.
        """
        return self.product_overview(self.product(sku))

    @tool(effect="write")
    def change_product_price(self, sku: Sku, price: UnitPrice) -> Product:
        """Change a product's list price. Lines that are on orders already keep their price.

        Args:
            sku: Stock-keeping unit.
            price: New list price, other than now.
        """
        product = self.product(sku)
        if product.price == price:
            raise FailedPrecondition(f"{product.name} costs {price} already")
        return self.state.products.update(product.id, price=price)

    @tool(effect="write")
    def discontinue_product(self, sku: Sku) -> Product:
        """Stop selling a product: it can't be put on orders or bought from suppliers any more.

        Args:
            sku: Stock-keeping unit of an active product that suppliers don't still have to deliver.
        """
        product = self.product(sku)
        if product.status == "discontinued":
            raise FailedPrecondition(f"{product.name} is discontinued already")
        incoming = self.incoming(sku)
        if incoming:
            raise FailedPrecondition(f"{incoming} units of {product.name} are still on order; cancel or receive them")
        return self.state.products.update(product.id, status="discontinued")

    # Stock

    @tool(effect="read")
    def list_stock_locations(
        self,
        city: City | None = None,
        include_closed: bool = False,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Location]:
        """List warehouses and shops, in alphabetical order of their names.

        Args:
            city: Exact city.
            include_closed: Whether to return closed locations too.
            limit: Most locations to return.
            cursor: `next_cursor` of the previous page.
        """
        rows = self.state.locations.where(lambda row: row.is_open or include_closed, **given(city=city))
        return paginate(sorted(rows, key=lambda row: row.name.casefold()), limit, cursor)

    @tool(effect="read")
    def list_stock_levels(
        self,
        sku: Sku | None = None,
        location_id: LocationId | None = None,
        min_available: Quantity | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[StockLevelOverview]:
        """List how many units of which product are on hand, reserved and available where, by SKU, then by location.

        Args:
            sku: Only this product.
            location_id: Only this location.
            min_available: Only where at least so many units are available.
            limit: Most stock levels to return.
            cursor: `next_cursor` of the previous page.
        """
        self.check_known(sku=sku, location_id=location_id)
        rows = self.state.stock_levels.where(
            lambda row: min_available is None or row.on_hand - row.reserved >= min_available,
            **given(sku=sku, location_id=location_id),
        )
        ordered = sorted(rows, key=lambda row: (row.sku, row.location_id))
        return paginate([self.level_overview(row) for row in ordered], limit, cursor)

    @tool(effect="read")
    def list_low_stock(
        self, location_id: LocationId | None = None, limit: Limit = 20, cursor: Cursor | None = None
    ) -> Page[LowStock]:
        """List stock of active products that is at or below its reorder level, the greatest shortfall first.

        A reorder level of 0 means that the location does not keep the product in stock.

        Args:
            location_id: Only this location.
            limit: Most stock levels to return.
            cursor: `next_cursor` of the previous page.
        """
        self.check_known(location_id=location_id)

        def is_low(row: StockLevel) -> bool:
            return 0 < row.reorder_level >= row.on_hand - row.reserved and self.product(row.sku).status == "active"

        rows = [
            LowStock(
                **self.level_fields(row),
                shortfall=row.reorder_level - row.on_hand + row.reserved,
                incoming=self.incoming(row.sku, row.location_id),
            )
            for row in self.state.stock_levels.where(is_low, **given(location_id=location_id))
        ]
        return paginate(sorted(rows, key=lambda row: -row.shortfall), limit, cursor)

    @tool(effect="read")
    def list_stock_movements(
        self,
        sku: Sku | None = None,
        location_id: LocationId | None = None,
        kind: MovementKind | None = None,
        reference: OrderNumber | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[StockMovement]:
        """List changes of the units on hand that satisfy all given filters, the latest first.

        Args:
            sku: Only movements of this product.
            location_id: Only movements at this location.
            kind: Only movements of this kind.
            reference: Only movements for the order or replenishment with this number.
            limit: Most movements to return.
            cursor: `next_cursor` of the previous page.
        """
        self.check_known(sku=sku, location_id=location_id)
        rows = self.state.movements.where(**given(sku=sku, location_id=location_id, kind=kind, reference=reference))
        return paginate(sorted(rows, key=lambda row: row.moved_at)[::-1], limit, cursor)

    @tool(effect="write")
    def adjust_stock(self, sku: Sku, location_id: LocationId, counted: Counted, reason: Reason) -> StockMovement:
        """Correct the units on hand to what was counted. There can't be fewer than are reserved for orders.

        Args:
            sku: Stock-keeping unit.
            location_id: The location, which must be open.
            counted: Units that are there, reserved ones included; another number than on record.
            reason: Why the record was wrong.
        """
        self.product(sku)
        self.open_location(location_id)
        level = level_of(self.state, location_id, sku)
        change = counted - (0 if level is None else level.on_hand)
        if not change:
            raise FailedPrecondition(f"{counted} units of {sku} are on record at {location_id} already")
        return move_stock(
            self.state, location_id, sku, change, kind="adjustment", at=self.now, by=self.user.email, reason=reason
        )

    @tool(effect="write")
    def transfer_stock(
        self,
        sku: Sku,
        from_location_id: LocationId,
        to_location_id: LocationId,
        quantity: Units,
        note: Text = "",
    ) -> StockTransfer:
        """Move available units from one open location to another.

        Args:
            sku: Stock-keeping unit.
            from_location_id: Where the units are.
            to_location_id: Where they go.
            quantity: Number of units, not more than are available.
            note: Why.
        """
        self.product(sku)
        self.open_location(from_location_id)
        self.open_location(to_location_id)
        if from_location_id == to_location_id:
            raise InvalidArguments("to_location_id: the units are there already")
        for place, change in ((from_location_id, -quantity), (to_location_id, quantity)):
            move_stock(
                self.state,
                place,
                sku,
                change,
                kind="transfer_out" if change < 0 else "transfer_in",
                at=self.now,
                by=self.user.email,
                reason=note,
            )
        return self.state.transfers.insert(
            sku=sku,
            quantity=quantity,
            from_location_id=from_location_id,
            to_location_id=to_location_id,
            note=note,
            moved_at=self.now,
        )

    @tool(effect="read")
    def list_stock_transfers(
        self,
        sku: Sku | None = None,
        from_location_id: LocationId | None = None,
        to_location_id: LocationId | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[StockTransfer]:
        """List transfers between locations that satisfy all given filters, the latest first.

        Args:
            sku: Only transfers of this product.
            from_location_id: Only transfers out of this location.
            to_location_id: Only transfers into this location.
            limit: Most transfers to return.
            cursor: `next_cursor` of the previous page.
        """
        self.check_known(sku=sku)
        for location_id in (from_location_id, to_location_id):
            self.check_known(location_id=location_id)
        rows = self.state.transfers.where(
            **given(sku=sku, from_location_id=from_location_id, to_location_id=to_location_id)
        )
        return paginate(sorted(rows, key=lambda row: row.moved_at)[::-1], limit, cursor)

    @tool(effect="write")
    def set_reorder_level(self, sku: Sku, location_id: LocationId, reorder_level: Quantity) -> StockLevelOverview:
        """Set the number of available units at which a location should order more of a product.

        Args:
            sku: Stock-keeping unit of an active product.
            location_id: The location.
            reorder_level: The number, other than now; 0 if the location shall not keep the product in stock.
        """
        product = self.product(sku)
        self.state.locations.get(location_id)
        if product.status == "discontinued":
            raise FailedPrecondition(f"{product.name} is discontinued")
        level = level_of(self.state, location_id, sku)
        if (level.reorder_level if level else 0) == reorder_level:
            raise FailedPrecondition(f"the reorder level is {reorder_level} already")
        if level is None:
            level = self.state.stock_levels.insert(
                location_id=location_id, sku=sku, on_hand=0, reorder_level=reorder_level
            )
        else:
            level = self.state.stock_levels.update(level.id, reorder_level=reorder_level)
        return self.level_overview(level)
