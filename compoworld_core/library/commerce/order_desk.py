"""What all tools of the order desk share: how goods, customers and orders are looked up and shown."""

from __future__ import annotations

from typing import Any, Final

from compoworld_core.library.commerce.order_rows import (
    Location,
    Order,
    OrderCustomer,
    OrderCustomerOverview,
    OrdersState,
    OrderStatus,
    Product,
    ProductOverview,
    StockLevel,
    StockLevelOverview,
)
from compoworld_core.library.commerce.order_stock import ZERO, product_of
from compoworld_core.library.filters import given
from compoworld_core.services.sdk import FailedPrecondition, Service, Table

UNDER_WAY: Final[tuple[OrderStatus, ...]] = ("placed", "backordered", "allocated", "shipped")
"""Statuses of orders that count against a customer's credit limit."""


class OrderDesk(Service[OrdersState]):
    """Base of the order desk's tools."""

    def product(self, sku: str) -> Product:
        """The product with a SKU."""
        return product_of(self.state, sku)

    def open_location(self, location_id: str) -> Location:
        """The location, which must not be closed."""
        location = self.state.locations.get(location_id)
        if not location.is_open:
            raise FailedPrecondition(f"{location.name} ({location_id}) is closed")
        return location

    def active_customer(self, customer_id: str) -> OrderCustomer:
        """The customer, who must not be blocked."""
        customer = self.state.customers.get(customer_id)
        if customer.status == "blocked":
            raise FailedPrecondition(f"{customer.organisation} is blocked: {customer.block_reason}")
        return customer

    def order_in(self, order_id: str, *statuses: OrderStatus) -> Order:
        """The order, which must have one of these statuses."""
        order = self.state.orders.get(order_id)
        if order.status not in statuses:
            raise FailedPrecondition(f"{order.number} ({order_id}) is {order.status}, not {' or '.join(statuses)}")
        return order

    def check_known(self, **references: str | None) -> None:
        """Refuse filters that name nothing, rather than answer with an empty list."""
        tables: dict[str, Table[Any]] = {
            "location_id": self.state.locations,
            "customer_id": self.state.customers,
            "order_id": self.state.orders,
            "supplier_id": self.state.suppliers,
        }
        for name, value in references.items():
            if value is not None and name == "sku":
                self.product(value)
            elif value is not None:
                tables[name].get(value)

    def incoming(self, sku: str, location_id: str | None = None) -> int:
        """Units of a product that suppliers still have to deliver."""
        rows = self.state.replenishments.where(
            lambda row: row.status in ("ordered", "partly_received"), **given(sku=sku, location_id=location_id)
        )
        return sum(row.quantity - row.received for row in rows)

    def product_overview(self, product: Product) -> ProductOverview:
        """The product as tools show it."""
        levels = self.state.stock_levels.where(sku=product.sku)
        on_hand, reserved = sum(row.on_hand for row in levels), sum(row.reserved for row in levels)
        return ProductOverview(
            **{name: getattr(product, name) for name in Product.model_fields},
            on_hand=on_hand,
            reserved=reserved,
            available=on_hand - reserved,
            incoming=self.incoming(product.sku),
        )

    def level_fields(self, level: StockLevel) -> dict[str, Any]:
        """The fields of a stock level as tools show it."""
        return {
            **{name: getattr(level, name) for name in StockLevel.model_fields},
            "product_name": self.product(level.sku).name,
            "location_name": self.state.locations.get(level.location_id).name,
            "available": level.on_hand - level.reserved,
        }

    def level_overview(self, level: StockLevel) -> StockLevelOverview:
        """The stock level as tools show it."""
        return StockLevelOverview(**self.level_fields(level))

    def customer_overview(self, customer: OrderCustomer) -> OrderCustomerOverview:
        """The customer as tools show them."""
        under_way = self.state.orders.where(lambda row: row.status in UNDER_WAY, customer_id=customer.id)
        value = sum((row.total for row in under_way), ZERO)
        return OrderCustomerOverview(
            **{name: getattr(customer, name) for name in OrderCustomer.model_fields},
            open_orders=len(under_way),
            open_order_value=value,
            credit_left=customer.credit_limit - value,
        )
