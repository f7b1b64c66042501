"""Outages: where nobody answers any more, work stops and is done later, instead of ending in rows of failures."""

from __future__ import annotations

from typing import Final

from compoworld_core.errors import TransientError
from compoworld_core.rollouts.trajectory import Trajectory

_MOST: Final = 20
"""Episodes in a row that may fail for want of an answer: more are an outage, of which nothing should be kept."""


class OutageGuard:
    """Watches episodes in the order in which they are kept."""

    def __init__(self) -> None:
        self._in_a_row = 0

    def watch(self, trajectory: Trajectory) -> None:
        """Look at the next episode.

        Raises:
            TransientError: As many in a row as an outage has got no answer.
        """
        failure = trajectory.error if trajectory.error and trajectory.error.kind == "transient" else None
        self._in_a_row = self._in_a_row + 1 if failure else 0
        if failure and self._in_a_row == _MOST:
            raise TransientError(f"{_MOST} episodes in a row got no answer: {failure.message}")
