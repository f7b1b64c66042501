"""The dataset of this room."""

from __future__ import annotations

from compoworld_core.services.package import ServicePackage
from compoworld_core.storage import DatasetType

SERVICES = DatasetType("services", 2, ServicePackage)
