"""The order book: customers, and orders until they are placed or called off."""

from __future__ import annotations

from decimal import Decimal
from operator import attrgetter
from typing import Annotated, Final, Literal

from compoworld_core.library.commerce.order_desk import OrderDesk
from compoworld_core.library.commerce.order_rows import (
    Amount,
    BillingId,
    CustomerReference,
    Discount,
    NewOrderLine,
    Order,
    OrderCustomer,
    OrderCustomerId,
    OrderCustomerOverview,
    OrderId,
    OrderNumber,
    OrderStatus,
    Reason,
    UnitPrice,
    Units,
)
from compoworld_core.library.commerce.order_stock import next_number, order_line, release, sums
from compoworld_core.library.filters import changes, given
from compoworld_core.services.sdk import (
    AlreadyExists,
    City,
    Country,
    Cursor,
    Day,
    Email,
    FailedPrecondition,
    Field,
    InvalidArguments,
    Limit,
    LimitExceeded,
    NotFound,
    OrganisationName,
    Page,
    PersonName,
    Query,
    Sku,
    paginate,
    tool,
)

MAX_LINES: Final = 50

OrderSort = Literal["created_on", "-created_on", "total", "-total"]


class OrderBook(OrderDesk):
    """Tools on customers and orders."""

    # Customers

    @tool(effect="read")
    def search_order_customers(
        self,
        organisation: Query | None = None,
        contact_email: Email | None = None,
        billing_id: BillingId | None = None,
        status: Literal["active", "blocked"] | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[OrderCustomerOverview]:
        """Find customers that satisfy all given filters, in alphabetical order of their names.

        Args:
            organisation: Part of the organisation's name, in any case.
            contact_email: E-mail address of the person who orders for them.
            billing_id: Number under which finance bills the organisation.
            status: Only active, or only blocked customers.
            limit: Most customers to return.
            cursor: `next_cursor` of the previous page.
        """
        part = (organisation or "").casefold()
        rows = self.state.customers.where(
            lambda row: part in row.organisation.casefold(),
            **given(contact_email=contact_email, billing_id=billing_id, status=status),
        )
        ordered = sorted(rows, key=lambda row: row.organisation.casefold())
        return paginate([self.customer_overview(row) for row in ordered], limit, cursor)

    @tool(effect="read")
    def get_order_customer(self, customer_id: OrderCustomerId) -> OrderCustomerOverview:
        """Get a customer with their credit limit and what is left of it.

        Args:
            customer_id: The customer.
        """
        return self.customer_overview(self.state.customers.get(customer_id))

    @tool(effect="write")
    def create_order_customer(
        self,
        organisation: OrganisationName,
        contact_name: PersonName,
        contact_email: Email,
        city: City,
        country: Country,
        credit_limit: Amount,
        billing_id: BillingId | None = None,
    ) -> OrderCustomer:
        """Add a customer; neither the organisation nor the billing id may be one that another customer has.

        Args:
            organisation: The organisation's full name.
            contact_name: Name of the person who orders for them.
            contact_email: That person's e-mail address.
            city: City that goods are delivered to.
            country: Country that goods are delivered to.
            credit_limit: Most that undelivered orders may add up to, in euros.
            billing_id: Number under which finance bills the organisation.
        """
        return self.state.customers.insert(
            organisation=organisation,
            contact_name=contact_name,
            contact_email=contact_email.lower(),
            city=city,
            country=country,
            credit_limit=credit_limit,
            billing_id=billing_id,
        )

    @tool(effect="write")
    def update_order_customer(
        self,
        customer_id: OrderCustomerId,
        contact_name: PersonName | None = None,
        contact_email: Email | None = None,
        city: City | None = None,
        country: Country | None = None,
        credit_limit: Amount | None = None,
    ) -> OrderCustomer:
        """Change the given fields of a customer. A lower credit limit leaves orders that are under way alone.

        Args:
            customer_id: The customer.
            contact_name: Name of the person who orders for them now.
            contact_email: That person's e-mail address.
            city: City that goods are delivered to.
            country: Country that goods are delivered to.
            credit_limit: Most that undelivered orders may add up to, in euros.
        """
        fields = changes(
            contact_name=contact_name,
            contact_email=contact_email,
            city=city,
            country=country,
            credit_limit=credit_limit,
        )
        return self.state.customers.update(customer_id, **fields)

    @tool(effect="write")
    def block_order_customer(self, customer_id: OrderCustomerId, reason: Reason) -> OrderCustomer:
        """Keep a customer from placing orders. Orders that are placed already go on.

        Args:
            customer_id: The customer.
            reason: Why.
        """
        self.active_customer(customer_id)
        return self.state.customers.update(customer_id, status="blocked", block_reason=reason)

    @tool(effect="write")
    def unblock_order_customer(self, customer_id: OrderCustomerId) -> OrderCustomer:
        """Let a blocked customer place orders again.

        Args:
            customer_id: The customer.
        """
        if self.state.customers.get(customer_id).status == "active":
            raise FailedPrecondition(f"{customer_id} is not blocked")
        return self.state.customers.update(customer_id, status="active", block_reason="")

    # Orders

    @tool(effect="read")
    def list_orders(
        self,
        customer_id: OrderCustomerId | None = None,
        status: OrderStatus | None = None,
        number: OrderNumber | None = None,
        sku: Sku | None = None,
        customer_reference: CustomerReference | None = None,
        owner_email: Email | None = None,
        placed_from: Day | None = None,
        placed_to: Day | None = None,
        sort: OrderSort = "-created_on",
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Order]:
        """List orders that satisfy all given filters, the latest created first unless sorted otherwise.

        Args:
            customer_id: Only orders of this customer.
            status: Only orders with this status.
            number: Only the order with this number, e.g. "SO-2026-0007".
            sku: Only orders that have a line with this product.
            customer_reference: Only orders with this order number of the customer's own.
            owner_email: Only orders that this colleague looks after.
            placed_from: Only orders placed on this day or later, which leaves out drafts.
            placed_to: Only orders placed on this day or earlier, which leaves out drafts.
            sort: Field to sort by, descending with a leading minus. Equal ones stay in the order of their creation.
            limit: Most orders to return.
            cursor: `next_cursor` of the previous page.
        """
        self.check_known(customer_id=customer_id, sku=sku)

        def fits(row: Order) -> bool:
            is_dated = placed_from is None and placed_to is None
            if row.placed_on is not None:
                is_dated = (placed_from is None or row.placed_on >= placed_from) and (
                    placed_to is None or row.placed_on <= placed_to
                )
            return is_dated and (sku is None or any(line.sku == sku for line in row.lines))

        rows = self.state.orders.where(
            fits,
            **given(
                customer_id=customer_id,
                status=status,
                number=number,
                customer_reference=customer_reference,
                owner_email=owner_email,
            ),
        )
        ordered = sorted(rows, key=attrgetter(sort.removeprefix("-")), reverse=sort.startswith("-"))
        return paginate(ordered, limit, cursor)

    @tool(effect="read")
    def get_order(self, order_id: OrderId) -> Order:
        """Get an order with its lines and sums.

        Args:
            order_id: The order.
        """
        return self.state.orders.get(order_id)

    @tool(effect="write")
    def create_order(
        self,
        customer_id: OrderCustomerId,
        lines: Annotated[tuple[NewOrderLine, ...], Field(min_length=1, max_length=MAX_LINES)],
        needed_by: Day | None = None,
        customer_reference: CustomerReference | None = None,
    ) -> Order:
        """Create a draft order, which gets the next number and is yours to look after. It takes effect when placed.

        Args:
            customer_id: The customer, who must not be blocked.
            lines: What is ordered, each product once.
            needed_by: Day on which the customer needs the goods, today or later.
            customer_reference: The customer's own order number.
        """
        customer = self.active_customer(customer_id)
        if needed_by is not None and needed_by < self.today:
            raise FailedPrecondition(f"needed_by: {needed_by} is past; today is {self.today}")
        skus = [line.sku for line in lines]
        if len(set(skus)) < len(skus):
            raise InvalidArguments("lines: a product is on one line only")
        return self.state.orders.insert(
            number=next_number(f"SO-{self.today.year}-", (row.number for row in self.state.orders)),
            customer_id=customer_id,
            organisation=customer.organisation,
            needed_by=needed_by,
            customer_reference=customer_reference,
            owner_email=self.user.email,
            created_on=self.today,
            **sums(tuple(order_line(self.state, line) for line in lines), Decimal(0)),
        )

    @tool(effect="write")
    def add_order_line(
        self, order_id: OrderId, sku: Sku, quantity: Units, unit_price: UnitPrice | None = None
    ) -> Order:
        """Add a product at the end of a draft order.

        Args:
            order_id: The draft.
            sku: Stock-keeping unit of a product that is not on the order yet.
            quantity: Number of units.
            unit_price: Price of one unit; the list price, if left out.
        """
        order = self.order_in(order_id, "draft")
        line = order_line(self.state, NewOrderLine(sku=sku, quantity=quantity, unit_price=unit_price))
        if any(other.sku == sku for other in order.lines):
            raise AlreadyExists(f"{sku} is on {order_id} already; change its quantity instead")
        if len(order.lines) >= MAX_LINES:
            raise LimitExceeded(f"{order_id} has {MAX_LINES} lines, the most that an order can have")
        return self.state.orders.update(order_id, **sums((*order.lines, line), order.discount_percent))

    @tool(effect="write")
    def change_order_line_quantity(self, order_id: OrderId, sku: Sku, quantity: Units) -> Order:
        """Change how many units of a product are on a draft order; the line keeps its price.

        Args:
            order_id: The draft.
            sku: Stock-keeping unit of a product that is on the order.
            quantity: New number of units, other than now.
        """
        order = self.order_in(order_id, "draft")
        line = next((line for line in order.lines if line.sku == sku), None)
        if line is None:
            raise NotFound(f"{order_id} has no line with the SKU {sku!r}")
        if line.quantity == quantity:
            raise FailedPrecondition(f"{quantity} units of {sku} are on {order_id} already")
        new = order_line(self.state, NewOrderLine(sku=sku, quantity=quantity, unit_price=line.unit_price))
        lines = tuple(new if other.sku == sku else other for other in order.lines)
        return self.state.orders.update(order_id, **sums(lines, order.discount_percent))

    @tool(effect="write")
    def remove_order_line(self, order_id: OrderId, sku: Sku) -> Order:
        """Take a product off a draft order.

        Args:
            order_id: The draft.
            sku: Stock-keeping unit of a product that is on the order.
        """
        order = self.order_in(order_id, "draft")
        lines = tuple(line for line in order.lines if line.sku != sku)
        if len(lines) == len(order.lines):
            raise NotFound(f"{order_id} has no line with the SKU {sku!r}")
        return self.state.orders.update(order_id, **sums(lines, order.discount_percent))

    @tool(effect="write")
    def set_order_discount(self, order_id: OrderId, discount_percent: Discount) -> Order:
        """Set the discount on all lines of a draft order; it is rounded half up to cents on their sum.

        Args:
            order_id: The draft.
            discount_percent: Percent of the goods' total, from 0 to 40 in halves, other than now.
        """
        order = self.order_in(order_id, "draft")
        if order.discount_percent == discount_percent:
            raise FailedPrecondition(f"the discount is {discount_percent} % already")
        return self.state.orders.update(order_id, **sums(order.lines, discount_percent))

    @tool(effect="write")
    def place_order(self, order_id: OrderId) -> Order:
        """Make a draft binding. The customer's undelivered orders may not add up to more than their credit limit.

        Args:
            order_id: The draft, with at least one line; all its products must still be sold.
        """
        order = self.order_in(order_id, "draft")
        customer = self.active_customer(order.customer_id)
        if not order.lines:
            raise FailedPrecondition(f"{order_id} has no lines")
        for line in order.lines:
            if self.product(line.sku).status == "discontinued":
                raise FailedPrecondition(f"{line.product_name} ({line.sku}) is discontinued; remove the line")
        left = self.customer_overview(customer).credit_left
        if order.total > left:
            raise LimitExceeded(f"{order_id} comes to {order.total}; {customer.organisation} has {left} of credit left")
        return self.state.orders.update(order_id, status="placed", placed_on=self.today)

    @tool(effect="write")
    def cancel_order(self, order_id: OrderId, reason: Reason) -> Order:
        """Call off an order that has not been shipped. What is reserved for it becomes available again.

        Args:
            order_id: The order.
            reason: Why.
        """
        order = self.order_in(order_id, "draft", "placed", "backordered", "allocated")
        return release(self.state, order, status="cancelled", cancel_reason=reason)
