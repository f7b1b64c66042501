"""What an order desk holds: goods at their locations, who buys them, and every step from draft to return."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from compoworld_core.services.sdk import (
    City,
    Country,
    Day,
    Email,
    Entity,
    Field,
    Id,
    Money,
    OrganisationName,
    Percent,
    PersonName,
    ProductName,
    Quantity,
    Rule,
    Semantic,
    Sku,
    State,
    Table,
    Test,
    Text,
    Timestamp,
    table,
)

ProductId = Annotated[str, Id("stock_product", prefix="prd")]
LocationId = Annotated[str, Id("stock_location", prefix="loc")]
StockLevelId = Annotated[str, Id("stock_level", prefix="stk")]
MovementId = Annotated[str, Id("stock_movement", prefix="mov")]
StockTransferId = Annotated[str, Id("stock_transfer", prefix="trf")]
OrderCustomerId = Annotated[str, Id("order_customer", prefix="ocu")]
OrderId = Annotated[str, Id("order", prefix="ord")]
ReservationId = Annotated[str, Id("stock_reservation", prefix="rsv")]
ShipmentId = Annotated[str, Id("order_shipment", prefix="shp")]
ReturnId = Annotated[str, Id("order_return", prefix="ret")]
SupplierId = Annotated[str, Id("stock_supplier", prefix="sup")]
SupplierOfferId = Annotated[str, Id("supplier_offer", prefix="off")]
ReplenishmentId = Annotated[str, Id("replenishment", prefix="rpl")]

BillingId = Annotated[str, Field(min_length=1, max_length=40), Semantic("billing_id")]
"""The number under which the finance system bills an organisation."""
LocationName = Annotated[str, Field(min_length=1, max_length=80), Semantic("location_name")]
OrderNumber = Annotated[str, Field(min_length=1, max_length=40), Semantic("order_number")]
TrackingCode = Annotated[str, Field(min_length=6, max_length=40), Semantic("tracking_code")]
CustomerReference = Annotated[str, Field(min_length=1, max_length=60), Semantic("customer_reference")]
Reason = Annotated[str, Field(pattern=r"\S", max_length=2000), Semantic("text")]
"""A text that says something."""
Units = Annotated[int, Field(ge=1, le=100_000), Semantic("quantity")]
UnitPrice = Annotated[Money, Field(gt=0, le=1_000_000)]
Amount = Annotated[Money, Field(ge=0)]
Discount = Annotated[Percent, Field(le=40, multiple_of=Decimal("0.5"))]

ProductStatus = Literal["active", "discontinued"]
OrderStatus = Literal["draft", "placed", "backordered", "allocated", "shipped", "delivered", "cancelled"]
MovementKind = Literal["adjustment", "transfer_out", "transfer_in", "shipment", "return", "receipt"]
ReservationStatus = Literal["active", "released", "shipped"]
ShipmentStatus = Literal["in_transit", "delivered"]
Carrier = Literal["Falconway", "Northline", "Parcelis", "Quaycargo"]
ReturnReason = Literal["damaged", "defective", "wrong_item", "not_needed"]
ReturnStatus = Literal["requested", "received", "rejected"]
ReplenishmentStatus = Literal["ordered", "partly_received", "received", "cancelled"]


class Product(Entity):
    """Something that we sell, and its list price."""

    id: ProductId
    sku: Sku
    name: ProductName
    price: UnitPrice
    status: ProductStatus = "active"


class ProductOverview(Product):
    """A product with its stock over all locations, and what is on its way from suppliers."""

    on_hand: Quantity
    reserved: Quantity
    available: int
    incoming: Quantity


class Location(Entity):
    """A warehouse or shop that holds stock. A closed one ships and receives nothing."""

    id: LocationId
    name: LocationName
    city: City
    country: Country
    is_open: bool = True


class StockLevel(Entity):
    """Units of a product at a location; `reserved` ones are promised to orders and still on hand."""

    id: StockLevelId
    location_id: LocationId
    sku: Sku
    on_hand: Quantity
    reserved: Quantity = 0
    reorder_level: Quantity = 0


class StockLevelOverview(StockLevel):
    """A stock level with the names of product and location, and the units that can still be promised."""

    product_name: ProductName
    location_name: LocationName
    available: int


class LowStock(StockLevelOverview):
    """Stock at or below its reorder level. `shortfall` is how far below; `incoming` is ordered for the location."""

    shortfall: Quantity
    incoming: Quantity


class StockMovement(Entity):
    """A change of the units on hand. It is a record of the past and never changes."""

    id: MovementId
    location_id: LocationId
    sku: Sku
    kind: MovementKind
    change: int
    on_hand_after: Quantity
    reason: Text = ""
    reference: OrderNumber | None = None
    moved_at: Timestamp
    moved_by_email: Email


class StockTransfer(Entity):
    """Units that went from one location to another."""

    id: StockTransferId
    sku: Sku
    quantity: Units
    from_location_id: LocationId
    to_location_id: LocationId
    note: Text = ""
    moved_at: Timestamp


class OrderCustomer(Entity):
    """An organisation that buys from us. A blocked one can't place orders."""

    id: OrderCustomerId
    organisation: OrganisationName
    contact_name: PersonName
    contact_email: Email
    billing_id: BillingId | None = None
    city: City
    country: Country
    credit_limit: Amount
    status: Literal["active", "blocked"] = "active"
    block_reason: Text = ""


class OrderCustomerOverview(OrderCustomer):
    """A customer with what their undelivered orders add up to."""

    open_orders: Quantity
    open_order_value: Amount
    credit_left: Money


class NewOrderLine(Entity):
    """A line of an order that is being created."""

    sku: Sku = Field(description="Stock-keeping unit of the product; each product is on one line only.")
    quantity: Units = Field(description="Number of units.")
    unit_price: UnitPrice | None = Field(default=None, description="Price of one unit; the list price, if left out.")


class OrderLine(Entity):
    """Units of a product on an order. `allocated` of them are reserved, or have been shipped."""

    sku: Sku
    product_name: ProductName
    quantity: Units
    unit_price: UnitPrice
    amount: Amount
    allocated: Quantity = 0


class Order(Entity):
    """A customer's order. `total` is the sum of the lines less the discount, which is rounded half up to cents."""

    id: OrderId
    number: OrderNumber
    customer_id: OrderCustomerId
    organisation: OrganisationName
    status: OrderStatus = "draft"
    lines: tuple[OrderLine, ...] = ()
    goods_total: Amount
    discount_percent: Discount = Decimal(0)
    discount_amount: Amount
    total: Amount
    location_id: LocationId | None = None
    customer_reference: CustomerReference | None = None
    needed_by: Day | None = None
    owner_email: Email
    created_on: Day
    placed_on: Day | None = None
    delivered_on: Day | None = None
    cancel_reason: Text = ""


class Reservation(Entity):
    """Units at a location that are promised to an order, until they are shipped or released."""

    id: ReservationId
    order_id: OrderId
    location_id: LocationId
    sku: Sku
    quantity: Units
    status: ReservationStatus = "active"
    reserved_at: Timestamp


class Shipment(Entity):
    """What a carrier takes to a customer: all of one order."""

    id: ShipmentId
    order_id: OrderId
    location_id: LocationId
    carrier: Carrier
    tracking_code: TrackingCode
    status: ShipmentStatus = "in_transit"
    shipped_on: Day
    expected_on: Day
    delivered_on: Day | None = None


class OrderReturn(Entity):
    """Units of a delivered order that come back. `credit_value` is what the customer paid for them."""

    id: ReturnId
    order_id: OrderId
    sku: Sku
    quantity: Units
    reason: ReturnReason
    note: Text = ""
    status: ReturnStatus = "requested"
    credit_value: Amount
    requested_on: Day
    received_on: Day | None = None
    location_id: LocationId | None = None
    restocked: Quantity = 0
    rejection_reason: Text = ""


class Supplier(Entity):
    """An organisation that we buy goods from."""

    id: SupplierId
    organisation: OrganisationName
    contact_name: PersonName
    contact_email: Email


class SupplierOffer(Entity):
    """The terms on which a supplier delivers a product."""

    id: SupplierOfferId
    supplier_id: SupplierId
    organisation: OrganisationName
    sku: Sku
    unit_cost: UnitPrice
    minimum_quantity: Units
    lead_days: Annotated[int, Field(ge=1, le=120)]


class Replenishment(Entity):
    """Units ordered from a supplier for a location."""

    id: ReplenishmentId
    number: OrderNumber
    supplier_id: SupplierId
    organisation: OrganisationName
    sku: Sku
    location_id: LocationId
    quantity: Units
    received: Quantity = 0
    unit_cost: UnitPrice
    cost: Amount
    status: ReplenishmentStatus = "ordered"
    ordered_on: Day
    expected_on: Day


_PROMISED = ["backordered", "allocated", "shipped", "delivered"]


class OrdersState(State):
    """Tables of the order desk."""

    products: Table[Product] = table(unique=("sku",))
    locations: Table[Location] = table(unique=("name",))
    stock_levels: Table[StockLevel] = table(
        unique=(("location_id", "sku"),),
        rules=(
            Rule(
                satisfies=(Test(field="reserved", op="le", other="on_hand"),),
                message="no more units can be reserved than are on hand",
            ),
        ),
    )
    movements: Table[StockMovement] = table(
        rules=(Rule(satisfies=(Test(field="change", op="ne", value=0),), message="a movement moves something"),)
    )
    transfers: Table[StockTransfer] = table(
        rules=(
            Rule(
                satisfies=(Test(field="from_location_id", op="ne", other="to_location_id"),),
                message="a transfer goes to another location",
            ),
        )
    )
    customers: Table[OrderCustomer] = table(unique=("organisation", "billing_id"))
    orders: Table[Order] = table(
        unique=("number",),
        rules=(
            Rule(
                where=(Test(field="status", op="in", value=["placed", *_PROMISED]),),
                satisfies=(Test(field="placed_on", op="ne"),),
                message="an order that is under way needs the day on which it was placed",
            ),
            Rule(
                where=(Test(field="status", op="in", value=_PROMISED),),
                satisfies=(Test(field="location_id", op="ne"),),
                message="an order that stock is allocated to needs the location of the stock",
            ),
            Rule(
                where=(Test(field="status", value="delivered"),),
                satisfies=(Test(field="delivered_on", op="ne"),),
                message="a delivered order needs its day of delivery",
            ),
            Rule(
                where=(Test(field="status", value="cancelled"),),
                satisfies=(Test(field="cancel_reason", op="ne", value=""),),
                message="a cancelled order needs the reason why",
            ),
        ),
    )
    reservations: Table[Reservation] = table()
    shipments: Table[Shipment] = table(unique=("tracking_code",))
    returns: Table[OrderReturn] = table(
        rules=(
            Rule(
                satisfies=(Test(field="restocked", op="le", other="quantity"),),
                message="no more units can be restocked than came back",
            ),
            Rule(
                where=(Test(field="status", value="rejected"),),
                satisfies=(Test(field="rejection_reason", op="ne", value=""),),
                message="a rejected return needs the reason why",
            ),
        )
    )
    suppliers: Table[Supplier] = table(unique=("organisation",))
    supplier_offers: Table[SupplierOffer] = table(unique=(("supplier_id", "sku"),))
    replenishments: Table[Replenishment] = table(
        unique=("number",),
        rules=(
            Rule(
                satisfies=(Test(field="received", op="le", other="quantity"),),
                message="no more units can be received than were ordered",
            ),
        ),
    )
