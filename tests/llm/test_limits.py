"""An endpoint is asked no more often than it allows, in the order of arrival, and left alone while it fails."""

from __future__ import annotations

import asyncio

import pytest

from compoworld_core.llm.circuit import Circuit
from compoworld_core.llm.config import Endpoint
from compoworld_core.llm.failures import Unanswered
from compoworld_core.llm.limits import Limits, Rate
from compoworld_core.llm.model import ModelFailure


def waits(rate: Rate, times: list[float], units: int = 1) -> list[float]:
    return [now + rate.take(units, now) for now in times]


def test_a_rate_spreads_what_comes_at_once() -> None:
    starts = waits(Rate(60), [100.0] * 120)

    assert starts[:3] == [100.0] * 3
    assert starts == sorted(starts)
    assert starts[-1] - starts[2] == pytest.approx(117)


def test_in_no_minute_a_rate_lets_through_much_more_than_it_should() -> None:
    starts = waits(Rate(600), [i * 0.01 for i in range(3000)])

    most = max(sum(start <= other < start + 60 for other in starts) for start in starts[::50])

    assert most <= 600 + 25


def test_what_an_estimate_got_wrong_is_put_right() -> None:
    generous, exact = Rate(6000), Rate(6000)

    generous.take(5000, 0.0)
    generous.correct(-4000)
    exact.take(1000, 0.0)

    assert generous.take(1, 0.0) == exact.take(1, 0.0)


def test_places_are_few_and_given_in_the_order_of_arrival() -> None:
    entered: list[int] = []
    inside = most = 0

    async def request(limits: Limits, number: int) -> None:
        nonlocal inside, most
        async with limits.place(1):
            entered.append(number)
            inside += 1
            most = max(most, inside)
            await asyncio.sleep(0)
            inside -= 1

    async def main() -> None:
        limits = Limits(Endpoint(base_url="http://x/v1", concurrency=3))
        await asyncio.gather(*(request(limits, number) for number in range(20)))

    asyncio.run(main())

    assert entered == list(range(20))
    assert most == 3


def test_who_goes_away_while_waiting_gives_the_place_back(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []

    async def leave(seconds: float) -> None:
        slept.append(seconds)
        raise asyncio.CancelledError

    async def main() -> None:
        limits = Limits(Endpoint(base_url="http://x/v1", requests_per_minute=1, concurrency=1))
        async with limits.place(1):
            pass
        for _ in range(3):
            with pytest.raises(asyncio.CancelledError):
                async with limits.place(1):
                    pass
        assert not limits.are_reached

    monkeypatch.setattr(asyncio, "sleep", leave)
    asyncio.run(main())

    assert slept == [pytest.approx(58, abs=1)] * 3


def fail(circuit: Circuit, error: Exception | None = None) -> None:
    try:
        with circuit.watch():
            raise error or Unanswered("down")
    except type(error or Unanswered("")):
        pass


async def opened() -> tuple[Circuit, float]:
    """A circuit that has just opened, and when it may be tried."""
    circuit = Circuit()
    for _ in range(100):
        now = asyncio.get_running_loop().time()
        if circuit.ready_at(now) > now:
            return circuit, circuit.ready_at(now)
        fail(circuit)
    raise AssertionError("it never opened")


def test_a_circuit_opens_after_failures_in_a_row_only() -> None:
    async def main() -> None:
        circuit = Circuit()
        for _ in range(50):
            for _ in range(3):
                fail(circuit)
            with circuit.watch():
                pass
        assert circuit.ready_at(0.0) == 0.0
        _, ready = await opened()
        assert ready > asyncio.get_running_loop().time()

    asyncio.run(main())


@pytest.mark.parametrize(
    "error", [Unanswered("busy", is_busy=True), ModelFailure("context", "too long")], ids=["busy", "refused"]
)
def test_an_endpoint_that_refuses_works(error: Exception) -> None:
    async def main() -> None:
        circuit = Circuit()
        for _ in range(50):
            fail(circuit, error)
        assert circuit.ready_at(0.0) == 0.0

    asyncio.run(main())


def test_one_probe_decides_whether_an_open_circuit_closes() -> None:
    async def main() -> None:
        circuit, ready = await opened()
        with circuit.watch():
            assert circuit.ready_at(ready) > ready
        assert circuit.ready_at(ready) == ready

        again, first = await opened()
        now = asyncio.get_running_loop().time()
        fail(again)
        assert again.ready_at(first) - now > first - now

    asyncio.run(main())


def test_a_probe_that_nobody_waits_for_decides_nothing() -> None:
    async def main() -> None:
        circuit, ready = await opened()
        with pytest.raises(asyncio.CancelledError), circuit.watch():
            raise asyncio.CancelledError
        assert circuit.ready_at(ready) == ready
        assert circuit.ready_at(ready - 1) == ready

    asyncio.run(main())
