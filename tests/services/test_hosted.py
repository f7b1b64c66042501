"""Hosted services behave as the same code does in process; what misbehaves costs its call and nothing else."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compoworld_core.errors import IsolationError
from compoworld_core.services.backend import InProcessBackend
from compoworld_core.services.host import confinement, runtime
from compoworld_core.services.host.confinement import Limits
from compoworld_core.services.hosted import HostedBackend, HostPool
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.running import RunningService
from compoworld_core.services.universe import Universe
from tests.services.desk import CONTEXT, DESK, HOSTILE, changed, held, packaged, seen, start
from tests.services.host.processes import children


@pytest.fixture(scope="module")
def pool() -> Iterator[HostPool]:
    with HostPool(call_s=20.0, limits=Limits(memory_bytes=256 * 1024 * 1024)) as pool:
        yield pool


@pytest.fixture(scope="module")
def desk(pool: HostPool) -> ServicePackage:
    return packaged(DESK, pool)


@pytest.fixture(scope="module")
def universe() -> Universe:
    return Universe.generate(7)


@pytest.fixture(scope="module")
def pair(pool: HostPool, desk: ServicePackage, universe: Universe) -> tuple[RunningService, RunningService]:
    """The same service in process and hosted."""
    service = runtime._define(DESK)
    return start(desk, InProcessBackend(service), universe), start(desk, pool.backend(desk), universe)


tickets = st.integers(1001, 1016).map(str)
agents = st.integers(1001, 1013).map(lambda number: f"agt_{number}")
words = st.text(min_size=0, max_size=12)
places = st.none() | st.integers(0, 4)
amounts = st.sampled_from(["0", "1.00", "2.5", "3.999", "7.00", "100000.00", "x", ""])
arguments: dict[str, dict[str, st.SearchStrategy[Any]]] = {
    "open_ticket": {"subject": words, "place": places, "agent_id": st.none() | agents},
    "open_named": {"ticket_id": tickets | st.just("own"), "subject": words},
    "pay": {"ticket_id": tickets, "amount": amounts},
    "solve": {"ticket_id": tickets},
    "watch": {"ticket_id": tickets, "agent_id": agents},
    "swap": {"first": tickets, "second": tickets},
    "open_many": {"count": st.integers(-1, 5), "keep": st.integers(0, 4)},
    "hire": {"email": st.sampled_from(["a@example.com", "b@example.com", "é@example.com", "none"])},
    "dismiss": {"agent_id": agents, "cascade": st.booleans()},
    "get_ticket": {"ticket_id": tickets | words},
    "list_tickets": {"limit": st.integers(0, 201), "cursor": st.none() | st.sampled_from(["0", "5", "11", "x"])},
    "sly": {"subject": words},
    "fail_after_writing": {"divisor": st.integers(0, 1)},
    "unheard_of": {},
}
calls = st.sampled_from(sorted(arguments)).flatmap(
    lambda name: st.tuples(st.just(name), st.fixed_dictionaries(arguments[name]))
)
steps = st.lists(st.sampled_from(["fork", "back", "seal"]) | calls, max_size=14)


@settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
@given(steps=steps)
def test_equals_the_same_code_in_process(pair: tuple[RunningService, RunningService], steps: list[Any]) -> None:
    lines = [(pair[0].fork(), pair[1].fork())]
    for step in steps:
        inside, hosted = lines[-1]
        match step:
            case "fork":
                lines.append((inside.fork(), hosted.fork()))
            case "back" if len(lines) > 1:
                lines.pop()
            case "seal":
                inside.state.seal()
                hosted.state.seal()
            case (tool, values):
                assert seen(hosted.call(tool, values)) == seen(inside.call(tool, values))
        inside, hosted = lines[-1]
        assert held(hosted) == held(inside)


def test_seeds_the_same_rows_as_in_process(pair: tuple[RunningService, RunningService]) -> None:
    inside, hosted = pair

    assert len(hosted.state.tables["tickets"]) == 10
    assert held(hosted) == held(inside)


def test_writes_reach_the_state_only_through_its_own_transaction(
    desk: ServicePackage, pool: HostPool, universe: Universe
) -> None:
    running = start(desk, pool.backend(desk), universe)
    untouched = held(running)

    outcome = running.backend.execute(running.state, "open_ticket", {"subject": "Printer"}, CONTEXT)
    staged = len(running.state.journal)
    running.state.rollback()

    assert outcome.envelope["success"]
    assert staged == 1
    assert held(running) == untouched
    assert running.call("open_ticket", {"subject": "Printer"}).envelope == outcome.envelope


def test_failed_calls_issue_no_ids(desk: ServicePackage, pool: HostPool, universe: Universe) -> None:
    running = start(desk, pool.backend(desk), universe)
    first = running.call("open_ticket", {"subject": "One"}).envelope["data"]["id"]

    running.call("fail_after_writing", {"divisor": 0})
    running.call("open_many", {"count": 3, "keep": 0})
    running.call("sly", {"subject": "Two"})

    assert running.call("open_ticket", {"subject": "Two"}).envelope["data"]["id"] == str(int(first) + 1)


def test_survives_losing_its_process_between_calls(desk: ServicePackage, pool: HostPool, universe: Universe) -> None:
    host = pool.host(desk.code)
    running = start(desk, HostedBackend(desk, host), universe)
    made = running.call("open_ticket", {"subject": "One"}).envelope["data"]

    host.close()

    assert running.call("get_ticket", {"ticket_id": made["id"]}).envelope == {"success": True, "data": made}


UNACCEPTABLE = {
    "missing": ({}, "invalid_arguments", "ticket_id"),
    "wrong_type": ({"ticket_id": 5}, "invalid_arguments", "ticket_id"),
    "extra": ({"ticket_id": "1001", "bogus": 1}, "invalid_arguments", "bogus"),
    "surrogate": ({"ticket_id": "\ud800"}, "invalid_arguments", "not JSON"),
    "not_json": ({"ticket_id": object()}, "invalid_arguments", "not JSON"),
    "nan": ({"ticket_id": float("nan")}, "invalid_arguments", "not JSON"),
    "huge_number": ({"ticket_id": 10**5000}, "invalid_arguments", "not JSON"),
    "too_large": ({"ticket_id": "x" * 2_000_000}, "limit_exceeded", "2000016 bytes"),
}


@pytest.mark.parametrize(("values", "code", "message"), UNACCEPTABLE.values(), ids=UNACCEPTABLE)
def test_unacceptable_arguments_never_reach_the_guest(
    desk: ServicePackage, universe: Universe, values: dict[str, Any], code: str, message: str
) -> None:
    with HostPool() as pool:
        host = pool.host(desk.code)
        running = start(desk, HostedBackend(desk, host), universe)
        host.close()
        result = running.call("get_ticket", values)

        assert result.envelope["error"]["code"] == code
        assert message in result.envelope["error"]["message"]
        assert result.bug is None
        assert host.pid is None


MISDEEDS = {
    "hang": "timeout",
    "recurse": "RecursionError",
    "eat": "MemoryError",
    "flood": "flood",
    "large": "more than the",
    "nan": "not JSON compliant",
    "deep": "",
}


@pytest.mark.parametrize(("tool", "evidence"), MISDEEDS.items(), ids=MISDEEDS)
def test_misdeeds_cost_their_call_only(universe: Universe, tool: str, evidence: str) -> None:
    hang_s, patient_s = 0.5, 30.0
    with HostPool(
        call_s=hang_s if tool == "hang" else patient_s, limits=Limits(memory_bytes=192 * 1024 * 1024)
    ) as pool:
        package = packaged(HOSTILE, pool)
        running = start(package, pool.backend(package), universe)

        result = running.call(tool, {})
        pool.call_s = patient_s

        assert result.envelope["error"]["code"] == "unavailable"
        assert result.bug is not None
        assert evidence in result.bug
        assert running.call("behave", {}).envelope == {"success": True, "data": "well"}


def test_packages_share_no_process(desk: ServicePackage, pool: HostPool, universe: Universe) -> None:
    hosts = [pool.host(desk.code), pool.host(packaged(HOSTILE, pool).code)]
    for host in hosts:
        host.export()

    assert len({host.pid for host in hosts}) == 2


def test_least_recently_used_processes_end(desk: ServicePackage, universe: Universe) -> None:
    with HostPool(capacity=2) as pool:
        hosts = [pool.host(desk.code) for _ in range(3)]
        for host in (hosts[0], hosts[1], hosts[0], hosts[2]):
            host.export()

        assert [host.pid is not None for host in hosts] == [True, False, True]
        assert hosts[1].export() == hosts[0].export()


def test_a_closed_pool_leaves_no_process(desk: ServicePackage) -> None:
    with HostPool() as pool:
        host = pool.host(desk.code)
        host.export()
        pid = host.pid

    assert host.pid is None
    assert all(pid not in children(parent) for parent in children(os.getpid()))


def test_many_worlds_share_a_backend(desk: ServicePackage, pool: HostPool, universe: Universe) -> None:
    backend = pool.backend(desk)
    worlds = [start(desk, backend, universe) for _ in range(3)]
    worlds[1].call("open_ticket", {"subject": "Only here"})

    totals = [world.call("list_tickets", {}).envelope["data"]["total"] for world in worlds]

    assert totals == [10, 11, 10]


def test_gives_the_same_answers_again_in_another_process(
    desk: ServicePackage, pool: HostPool, universe: Universe
) -> None:
    def story() -> list[Any]:
        with HostPool() as own:
            running = start(desk, own.backend(desk), universe)
            script = [("open_ticket", {"subject": f"Number {n}"}) for n in range(5)]
            return [seen(running.call(tool, values)) for tool, values in script] + [held(running)]

    assert story() == story()


def test_no_isolation_no_run(desk: ServicePackage, universe: Universe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confinement, "probe", lambda: ["no walls"])
    with HostPool(handlers="tests.services.host.breached_handlers") as pool, pytest.raises(IsolationError):
        start(desk, pool.backend(desk), universe)


def test_a_package_whose_code_is_refused_answers_with_the_evidence(
    desk: ServicePackage, pool: HostPool, universe: Universe
) -> None:
    package = changed(desk, code={"service.py": "import os\n" + DESK})
    running = start(package, pool.backend(package), universe)

    bug = running.call("get_ticket", {"ticket_id": "1001"}).bug

    assert bug is not None
    assert "import of 'os' is not allowed" in bug
