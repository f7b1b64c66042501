"""A budget stops what begins, not what is under way, and however many ask at once it is hardly overrun."""

from __future__ import annotations

import asyncio
from decimal import Decimal

import pytest

from compoworld_core.errors import BudgetExhausted
from compoworld_core.llm.budget import Purse
from compoworld_core.llm.config import Budget
from compoworld_core.llm.messages import Usage


def usage(tokens: int) -> Usage:
    return Usage(prompt_tokens=tokens)


async def spend(purse: Purse, many: int, estimate: Usage, actual: Usage, usd: str = "0") -> tuple[int, list[str]]:
    """How many of so many requests at once were begun, and what the others were told."""
    begun = 0
    told: list[str] = []

    async def request() -> None:
        nonlocal begun
        try:
            async with purse.held(estimate, Decimal(usd)):
                begun += 1
                await asyncio.sleep(0)
                purse.charge(actual, Decimal(usd))
        except BudgetExhausted as error:
            told.append(str(error))

    await asyncio.gather(*(request() for _ in range(many)))
    return begun, told


@pytest.mark.parametrize(
    ("estimate", "actual", "most"),
    [
        pytest.param(usage(100), usage(100), 10, id="right"),
        pytest.param(usage(1), usage(100), 1000, id="far too low"),
        pytest.param(usage(5000), usage(100), 10, id="far too high"),
    ],
)
def test_of_a_thousand_at_once_only_those_begin_that_fit(estimate: Usage, actual: Usage, most: int) -> None:
    begun, told = asyncio.run(spend(Purse(Budget(tokens=1000)), 1000, estimate, actual))

    assert 10 <= begun <= most
    assert len(told) == 1000 - begun
    assert all("of 1000 tokens" in text and "budget.tokens" in text for text in told)


def test_money_is_counted_exactly() -> None:
    purse = Purse(Budget(usd=Decimal("0.3")))

    begun, told = asyncio.run(spend(purse, 50, usage(1), usage(1), "0.1"))

    assert begun == 3
    assert told[0].startswith("0.3000 of 0.3 US dollars are spent")
    assert "run the same command" in told[0]


def test_one_request_may_begin_although_more_than_the_rest_is_expected_of_it() -> None:
    begun, _ = asyncio.run(spend(Purse(Budget(tokens=10)), 1, usage(500), usage(5)))

    assert begun == 1


def test_time_runs_out_for_what_begins_later() -> None:
    async def main() -> None:
        purse = Purse(Budget(seconds=60))
        now = asyncio.get_running_loop().time()
        purse.start(now)
        purse.check()
        purse.start(now - 61)
        with pytest.raises(BudgetExhausted, match=r"60 seconds are over.*budget\.seconds"):
            purse.check()

    asyncio.run(main())


def test_who_is_cancelled_holds_nothing_back() -> None:
    async def main() -> int:
        purse = Purse(Budget(tokens=100))

        async def hold() -> None:
            async with purse.held(usage(100), Decimal(0)):
                await asyncio.get_running_loop().create_future()

        holder, waiter = asyncio.create_task(hold()), asyncio.create_task(hold())
        await asyncio.sleep(0)
        for task in (waiter, holder):
            task.cancel()
        await asyncio.gather(holder, waiter, return_exceptions=True)
        return (await spend(purse, 1, usage(100), usage(1)))[0]

    assert asyncio.run(main()) == 1
