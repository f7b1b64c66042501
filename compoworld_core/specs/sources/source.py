"""What every source of service descriptions offers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from compoworld_core.specs.model import Rejection


@dataclass(frozen=True, slots=True)
class RawServer:
    """One server as its source describes it.

    Attributes:
        origin: Where it was read from, for people: `servers.jsonl:12`.
        raw: Any JSON value.
    """

    origin: str
    raw: object


class Source(Protocol):
    """Yields raw servers in a fixed order."""

    def servers(self) -> Iterator[RawServer | Rejection]:
        """The servers one by one, and a rejection for each place that cannot be read.

        Raises:
            InputError: Nothing can be read at all.
            TransientError: Nothing can be read now.
        """
        ...

    def fingerprint(self) -> str:
        """What stands for the content, where that can be told before reading: a file's digest; otherwise empty."""
        ...
