"""Budgets: what may still be spent.

A budget is the price of what is made, not of one attempt at it: an answer out of the journal counts like a paid one.
Requests in flight count with what they are thought to take; one that might not fit waits until those before it are
settled, so a thousand in flight overrun a budget by no more than what the last of them was estimated wrong.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from decimal import Decimal

from compoworld_core.errors import BudgetExhausted
from compoworld_core.llm.config import Budget
from compoworld_core.llm.messages import Usage


class Purse:
    """What is left of a budget; times are those of the event loop."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._usd = Decimal(0)
        self._tokens = 0
        self._held_usd = Decimal(0)
        self._held_tokens = 0
        self._in_flight = 0
        self._gate = asyncio.Lock()
        self._settled = asyncio.Event()
        self._until: float | None = None

    def start(self, now: float) -> None:
        """Time runs from now on."""
        self._until = None if self._budget.seconds is None else now + self._budget.seconds

    def charge(self, usage: Usage, usd: Decimal) -> None:
        """Count an answer."""
        self._usd += usd
        self._tokens += usage.tokens

    @asynccontextmanager
    async def held(self, estimate: Usage, usd: Decimal) -> AsyncIterator[None]:
        """Hold back what a request is thought to take until the block ends; its answer is charged before that.

        Args:
            usd: What it is thought to cost.

        Raises:
            BudgetExhausted: Nothing is left.
        """
        async with self._gate:  # whose waiters are served in the order of arrival
            self.check()
            while self._in_flight and not self._fits(estimate, usd):
                self._settled.clear()
                await self._settled.wait()
                self.check()
            self._hold(estimate, usd, 1)
        try:
            yield
        finally:
            self._hold(estimate, usd, -1)
            self._settled.set()

    def _hold(self, estimate: Usage, usd: Decimal, sign: int) -> None:
        self._held_usd += sign * usd
        self._held_tokens += sign * estimate.tokens
        self._in_flight += sign

    def check(self) -> None:
        """Refuse to go on where nothing is left.

        Raises:
            BudgetExhausted: So it is; the message says of what.
        """
        budget = self._budget
        if budget.usd is not None and self._usd >= budget.usd:
            raise _exhausted(f"{self._usd:.4f} of {budget.usd} US dollars are spent", "usd")
        if budget.tokens is not None and self._tokens >= budget.tokens:
            raise _exhausted(f"{self._tokens} of {budget.tokens} tokens are used", "tokens")
        if self._until is not None and asyncio.get_running_loop().time() >= self._until:
            raise _exhausted(f"{budget.seconds:g} seconds are over", "seconds")

    def _fits(self, estimate: Usage, usd: Decimal) -> bool:
        budget = self._budget
        return (budget.usd is None or self._usd + self._held_usd + usd <= budget.usd) and (
            budget.tokens is None or self._tokens + self._held_tokens + estimate.tokens <= budget.tokens
        )


def _exhausted(what: str, field: str) -> BudgetExhausted:
    return BudgetExhausted(
        f"{what}. All that was paid for is kept: raise budget.{field} and run the same command to go on from there"
    )
