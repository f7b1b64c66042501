"""The delivery platform: its tools together."""

from __future__ import annotations

import random
from datetime import datetime
from typing import TYPE_CHECKING

from compoworld_core.library.devops import deployments_seed
from compoworld_core.library.devops.deployments_builds import Builds
from compoworld_core.library.devops.deployments_releases import Releases
from compoworld_core.library.devops.deployments_rollouts import Rollouts
from compoworld_core.library.devops.deployments_rows import DeploymentsState

if TYPE_CHECKING:
    from compoworld_core.services.universe import Universe


class Deployments(Builds, Releases, Rollouts):
    """Apps with their builds, releases and environments: what was built, what runs where, and who approved it."""

    domain = "devops"

    @classmethod
    def populate(cls, state: DeploymentsState, universe: Universe, rng: random.Random, start: datetime) -> None:
        """All staff, an app for each project, and what has been built and deployed in the last two months."""
        deployments_seed.populate(state, universe, rng, start)
