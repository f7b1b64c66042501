"""What goes wrong, and when: by the number of the request, or by rates.

Rates draw from the seed, the request and how often it was sent before, not from the order of requests: however many
conversations run side by side, each meets the same faults, and a request that is sent again draws anew.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

Fault = Literal[
    "rate_limit",
    "unauthorized",
    "error",
    "context",
    "hang",
    "cut",
    "half_json",
    "not_json",
    "no_choices",
    "wrong_tool",
    "empty",
]
"""What a request may meet.

`rate_limit`: 429 with Retry-After. `unauthorized`: 401 whatever the key. `error`: 500. `context`: 400, the
conversation is too long. `hang`: no byte ever comes. `cut`: the connection closes halfway through the answer.
`half_json`: an answer, or an event of the stream, that ends within its JSON. `not_json`: a web page with status 200.
`no_choices`: JSON that is no completion. `wrong_tool`: the answer calls a tool that is not there. `empty`: an answer
that says nothing.
"""


@dataclass(frozen=True)
class Faults:
    """When each fault strikes.

    Attributes:
        rates: Share of requests, by fault; together at most 1.
        at: Faults by the request's number among all, from 1; they go before rates.
        retry_after: What a 429 says in Retry-After; None leaves the header out.
    """

    rates: Mapping[Fault, float] = field(default_factory=dict)
    at: Mapping[int, Fault] = field(default_factory=dict)
    seed: int = 0
    retry_after: str | None = "0.05"

    def strike(self, number: int, digest: str, repetition: int) -> Fault | None:
        """What the request meets."""
        if number in self.at:
            return self.at[number]
        if not self.rates:
            return None
        drawn = hashlib.sha256(f"{self.seed}/{digest}/{repetition}".encode()).digest()
        place = int.from_bytes(drawn[:7]) / 256**7
        for fault, share in self.rates.items():
            if place < share:
                return fault
            place -= share
        return None


STORM = Faults(rates={"rate_limit": 0.20, "error": 0.05, "cut": 0.05, "half_json": 0.01, "not_json": 0.01})
"""A bad day: 20 % 429, 5 % 500, 5 % cut streams, 2 % garbage."""
