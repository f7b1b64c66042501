"""What a call knows besides state and arguments: who acts, when, and with which randomness.

Nothing here is shared by the whole world. A service's clock and its random numbers depend on that service's own writes
only, so two valid orders of work over several services leave the same rows behind.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True)
class User:
    """The person on whose behalf the agent works."""

    name: str
    email: str


@dataclass(frozen=True, slots=True)
class Context:
    """A service's place in its world.

    Attributes:
        service: The service's name in the world.
        seed: The world's seed.
        start: The world's start time, with offset.
        user: Who is acting.
    """

    service: str
    seed: int
    start: datetime
    user: User

    def now(self, writes: int) -> datetime:
        """The service's clock: one second later after each of its committed writes."""
        return self.start + timedelta(seconds=writes)

    def rng(self, writes: int) -> random.Random:
        """Random numbers of the call that follows this many committed writes."""
        return random.Random(f"{self.seed}/{self.service}/{writes}")
