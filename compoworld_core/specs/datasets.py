"""The datasets of this room."""

from __future__ import annotations

from compoworld_core.specs.model import Rejection, ServiceSpec
from compoworld_core.storage import DatasetType

SPECS = DatasetType("specs", 1, ServiceSpec)
REJECTIONS = DatasetType("rejections", 1, Rejection)
"""What a source describes and no spec could be made of."""
