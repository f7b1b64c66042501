"""The data warehouse: its tools together."""

from __future__ import annotations

import random
from datetime import datetime
from typing import TYPE_CHECKING

from compoworld_core.library.data import warehouse_seed
from compoworld_core.library.data.warehouse_access import Access
from compoworld_core.library.data.warehouse_catalogue import Catalogue
from compoworld_core.library.data.warehouse_facts import Facts
from compoworld_core.library.data.warehouse_quality import Quality
from compoworld_core.library.data.warehouse_reports import Reports
from compoworld_core.library.data.warehouse_rows import WarehouseState

if TYPE_CHECKING:
    from compoworld_core.services.universe import Universe


class Warehouse(Catalogue, Facts, Access, Quality, Reports):
    """Datasets about revenue, sales and hours: queries, corrections with an audit trail, access, quality, lineage."""

    domain = "data"

    @classmethod
    def populate(cls, state: WarehouseState, universe: Universe, rng: random.Random, start: datetime) -> None:
        """All staff as users, and eight datasets about the universe's organisations, products and projects."""
        warehouse_seed.populate(state, universe, rng, start)
