"""The order desk: its tools together."""

from __future__ import annotations

import random
from datetime import datetime
from typing import TYPE_CHECKING

from compoworld_core.library.commerce.order_book import OrderBook
from compoworld_core.library.commerce.order_fulfilment import Fulfilment
from compoworld_core.library.commerce.order_goods import Goods
from compoworld_core.library.commerce.order_rows import OrdersState
from compoworld_core.library.commerce.order_seed import seed_orders
from compoworld_core.library.commerce.order_supply import Supply

if TYPE_CHECKING:
    from compoworld_core.services.universe import Universe


class Orders(Goods, OrderBook, Fulfilment, Supply):
    """Products, stock at warehouses and shops, customers' orders from draft to return, and goods from suppliers."""

    domain = "commerce"

    @classmethod
    def populate(cls, state: OrdersState, universe: Universe, rng: random.Random, start: datetime) -> None:
        """All products and organisations of the universe, with orders in every state and stock that runs low."""
        seed_orders(state, universe, rng, start)
