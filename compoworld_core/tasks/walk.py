"""Walks: the order in which a task visits its services, drawn exactly uniformly.

A valid walk of length L over K services visits each of them, and neighbours differ; L > K implies a revisit. Walks are
counted by a dynamic programme over (services visited, current service, steps left), and the counts drive the draw, so
no walk is ever rejected and none is more likely than another. Weights on the steps make counts sums of products.
"""

from __future__ import annotations

import random
from collections.abc import Collection, Mapping, Sequence
from functools import cache
from typing import TypeVar

from compoworld_core.errors import InputError

T = TypeVar("T")


def sample_walk(
    services: Sequence[T],
    length: int,
    rng: random.Random,
    weights: Mapping[tuple[T, T], int] | None = None,
    starts: Collection[T] | None = None,
) -> tuple[T, ...]:
    """Draw a walk of this length that visits every service, in proportion to the product of its steps' weights.

    Args:
        services: The K distinct services.
        weights: Non-negative whole weight of stepping from one service to another; 1 where absent.
        starts: The services that a walk may start with; any where absent.

    Raises:
        InputError: No valid walk exists.
    """
    walks = _Walks(services, weights or {}, starts)
    total = walks.total(length)
    if total == 0:
        raise InputError(f"no walk of length {length} visits {len(services)} services with neighbours that differ")
    chosen: list[int] = []
    visited, ticket = 0, rng.randrange(total)
    for position in range(length):
        for service in range(len(services)):
            if chosen and service == chosen[-1]:
                continue
            step = walks.weight(chosen[-1], service) if chosen else 1
            ahead = walks.ahead(visited | 1 << service, service, length - position - 1)
            share = step * ahead if chosen or walks.may_start(service) else 0
            if ticket < share:
                ticket //= step
                chosen.append(service)
                visited |= 1 << service
                break
            ticket -= share
    return tuple(services[index] for index in chosen)


def count_walks(services: int, length: int) -> int:
    """How many valid walks of a length there are over so many services."""
    return _Walks(range(services), {}, None).total(length)


class _Walks:
    """Weighted counts of the ways to finish a walk."""

    def __init__(self, services: Sequence[T], weights: Mapping[tuple[T, T], int], starts: Collection[T] | None) -> None:
        self._size = len(services)
        self._starts = [starts is None or service in starts for service in services]
        self._weights = [[weights.get((a, b), 1) for b in services] for a in services]
        self.ahead = cache(self._ahead)

    def weight(self, here: int, there: int) -> int:
        return self._weights[here][there]

    def may_start(self, service: int) -> bool:
        return self._starts[service]

    def total(self, length: int) -> int:
        if length == 0:
            return 0
        return sum(self.ahead(1 << first, first, length - 1) for first in range(self._size) if self._starts[first])

    def _ahead(self, visited: int, here: int, steps: int) -> int:
        missing = self._size - visited.bit_count()
        if steps < missing:
            return 0
        if steps == 0:
            return 1
        return sum(
            self.weight(here, there) * self.ahead(visited | 1 << there, there, steps - 1)
            for there in range(self._size)
            if there != here
        )
