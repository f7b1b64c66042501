"""Hosted services behave as the same code does in process; what misbehaves costs its call and nothing else."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compoworld_core.errors import IsolationError
from compoworld_core.services.backend import InProcessBackend, ToolBackend
from compoworld_core.services.context import Context, User
from compoworld_core.services.host import confinement, runtime
from compoworld_core.services.host.confinement import Limits
from compoworld_core.services.hosted import HostedBackend, HostPool
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.running import CallResult, RunningService
from compoworld_core.services.schema import ServiceSchema
from compoworld_core.services.universe import Universe
from compoworld_core.specs.model import ServiceSpec, ToolSpec
from tests.services.host.processes import children

DESK = '''"""Support tickets and those who answer them."""

from __future__ import annotations

from typing import Annotated, Literal

from compoworld_core.services.sdk import (
    Cursor,
    Email,
    Entity,
    FailedPrecondition,
    Id,
    Limit,
    Money,
    Page,
    Quantity,
    Rule,
    Service,
    State,
    Table,
    Test,
    Timestamp,
    Title,
    paginate,
    table,
    tool,
)

AgentId = Annotated[str, Id("agent", prefix="agt")]
TicketId = Annotated[str, Id("ticket", prefix="")]


class Agent(Entity):
    """Someone who answers."""

    id: AgentId
    email: Email


class Ticket(Entity):
    """A request."""

    id: TicketId
    subject: Title
    place: int | None = None
    agent_id: AgentId | None = None
    price: Money | None = None
    paid: Money | None = None
    watchers: tuple[AgentId, ...] = ()
    status: Literal["open", "solved"] = "open"
    opened: Timestamp | None = None


class DeskState(State):
    """Everything that the desk keeps."""

    agents: Table[Agent] = table(unique=("email",))
    tickets: Table[Ticket] = table(
        unique=("place",),
        rules=(
            Rule(
                where=(Test(field="status", value="solved"),),
                satisfies=(Test(field="paid", op="ge", value=1),),
                message="solved without pay",
            ),
        ),
    )


class Desk(Service[DeskState]):
    """Support tickets."""

    domain = "support"

    @tool(effect="write")
    def open_ticket(self, subject: Title, place: int | None = None, agent_id: AgentId | None = None) -> Ticket:
        """Open a ticket."""
        price = self.rng.randint(1, 9)
        return self.state.tickets.insert(
            subject=subject, place=place, agent_id=agent_id, price=price, paid="0", opened=self.now
        )

    @tool(effect="write")
    def open_named(self, ticket_id: TicketId, subject: Title) -> Ticket:
        """Open a ticket under an id."""
        return self.state.tickets.insert(id=ticket_id, subject=subject)

    @tool(effect="write")
    def pay(self, ticket_id: TicketId, amount: Money) -> Ticket:
        """Pay a ticket."""
        return self.state.tickets.update(ticket_id, paid=amount)

    @tool(effect="write")
    def solve(self, ticket_id: TicketId) -> Ticket:
        """Solve a ticket."""
        return self.state.tickets.update(ticket_id, status="solved")

    @tool(effect="write")
    def watch(self, ticket_id: TicketId, agent_id: AgentId) -> Ticket:
        """Add a watcher."""
        ticket = self.state.tickets.get(ticket_id)
        return self.state.tickets.update(ticket_id, watchers=(*ticket.watchers, agent_id))

    @tool(effect="write")
    def swap(self, first: TicketId, second: TicketId) -> str:
        """Swap the places of two tickets."""
        one, two = self.state.tickets.get(first), self.state.tickets.get(second)
        self.state.tickets.update(first, place=-1)
        self.state.tickets.update(second, place=one.place)
        self.state.tickets.update(first, place=two.place)
        return "swapped"

    @tool(effect="write")
    def open_many(self, count: Quantity, keep: Quantity) -> list[str]:
        """Open tickets, drop all but some of them, and fail for three."""
        made = [self.state.tickets.insert(subject=f"Number {n}").id for n in range(count % 6)]
        for key in made[keep:]:
            self.state.tickets.delete(key)
        if count % 6 == 3:
            raise FailedPrecondition("not three")
        return made

    @tool(effect="write")
    def hire(self, email: Email) -> Agent:
        """Add an agent."""
        return self.state.agents.insert(email=email)

    @tool(effect="write")
    def dismiss(self, agent_id: AgentId, cascade: bool = False) -> Agent:
        """Remove an agent, if asked with their tickets."""
        if cascade:
            for ticket in self.state.tickets.where(agent_id=agent_id):
                self.state.tickets.delete(ticket.id)
        return self.state.agents.delete(agent_id)

    @tool(effect="read")
    def get_ticket(self, ticket_id: TicketId) -> Ticket:
        """Read a ticket."""
        return self.state.tickets.get(ticket_id)

    @tool(effect="read")
    def list_tickets(self, limit: Limit = 20, cursor: Cursor | None = None) -> Page[Ticket]:
        """All tickets."""
        return paginate(self.state.tickets.where(), limit, cursor)

    @tool(effect="read")
    def sly(self, subject: Title) -> Ticket:
        """Says that it reads, and writes."""
        return self.state.tickets.insert(subject=subject)

    @tool(effect="write")
    def fail_after_writing(self, divisor: int) -> Ticket:
        """Writes, then divides."""
        ticket = self.state.tickets.insert(subject="Lost")
        return self.state.tickets.update(ticket.id, place=1 // divisor)
'''

HOSTILE = '''"""Misbehaves."""

from __future__ import annotations

from compoworld_core.services.sdk import Service, State, tool


class Nothing(State):
    """Nothing."""


class Hostile(Service[Nothing]):
    """Misbehaves on request."""

    domain = "security"

    @tool(effect="read")
    def behave(self) -> str:
        """Answer."""
        return "well"

    @tool(effect="read")
    def hang(self) -> str:
        """Never ends."""
        while True:
            pass

    @tool(effect="read")
    def recurse(self, depth: int = 0) -> int:
        """Calls itself."""
        return self.recurse(depth + 1)

    @tool(effect="read")
    def eat(self) -> int:
        """Takes all memory."""
        kept = []
        while True:
            kept.append("x" * 10_000_000)

    @tool(effect="read")
    def flood(self) -> str:
        """Says too much."""
        return "x" * 20_000_000

    @tool(effect="read")
    def large(self) -> str:
        """Says more than an envelope holds."""
        return "x" * 3_000_000

    @tool(effect="read")
    def nan(self) -> float:
        """Says what is no number."""
        return float("nan")

    @tool(effect="read")
    def deep(self) -> list[object]:
        """Says something nested."""
        value: list[object] = []
        for _ in range(600):
            value = [value]
        return value
'''

# A guest that replies whatever the call's argument holds. This module is loaded as the handlers of such guests.


def _obey(request: dict[str, Any]) -> dict[str, Any]:
    match request["arguments"]:
        case {"reply": dict(reply)}:
            text = json.dumps(reply).replace('"DEEP"', "[" * 300 + "]" * 300)
            return json.loads(text)  # type: ignore[no-any-return]
        case {"open": str(path)}:
            os.open(path, os.O_RDONLY)
        case {"connect": int(port)}:
            socket.create_connection(("127.0.0.1", port))
    raise ValueError("nothing asked")


handlers = {"load": lambda request: {}, "rewrite": lambda request: {}, "call": _obey}

HERE = "tests.services.test_hosted"
CONTEXT = Context("desk", 1, datetime(2026, 1, 12, 9, 0, tzinfo=UTC), User("Ada Holm", "ada@example.com"))


def packaged(source: str, pool: HostPool) -> ServicePackage:
    said = pool.host({"service.py": source}).export()
    spec = ServiceSpec.model_validate(said["spec"])
    tables = ServiceSchema.model_validate(said["tables"])
    return ServicePackage(
        name=spec.name, origin="synthesised", author="rules", code={"service.py": source}, spec=spec, tables=tables
    )


def changed(package: ServicePackage, **fields: Any) -> ServicePackage:
    return ServicePackage.model_validate({**package.model_dump(), **fields})


def start(package: ServicePackage, backend: ToolBackend, universe: Universe) -> RunningService:
    running = RunningService.start(package, backend, CONTEXT, universe)
    running.state.seal()
    return running


def seen(result: CallResult) -> tuple[Any, ...]:
    """Everything that a call did, less the wording of what the two sides word differently."""
    envelope = result.envelope
    if not envelope["success"] and envelope["error"]["code"] == "invalid_arguments":
        envelope = {"code": "invalid_arguments"}
    changes = [(change.table.name, change.key, change.before_row, change.after_row) for change in result.changes]
    return envelope, changes, result.bug is None


def held(running: RunningService) -> tuple[Any, ...]:
    """The whole state, its rows in order."""
    tables = running.state.tables.values()
    return (
        running.state.writes,
        {table.name: table.counter for table in tables},
        {table.name: [table.type.view(row) for row in table] for table in tables},
        running.state.base_digests(),
    )


@pytest.fixture(scope="module")
def pool() -> Iterator[HostPool]:
    with HostPool(call_s=5.0, limits=Limits(memory_bytes=256 * 1024 * 1024)) as pool:
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
    with HostPool(call_s=1.0, limits=Limits(memory_bytes=192 * 1024 * 1024)) as pool:
        package = packaged(HOSTILE, pool)
        running = start(package, pool.backend(package), universe)

        result = running.call(tool, {})

        assert result.envelope["error"]["code"] == "unavailable"
        assert result.bug is not None
        assert evidence in result.bug
        assert running.call("behave", {}).envelope == {"success": True, "data": "well"}


@pytest.fixture(scope="module")
def forger(desk: ServicePackage, universe: Universe) -> Iterator[RunningService]:
    """A service whose guest says what it is told to."""
    with HostPool(handlers=HERE, call_s=5.0) as pool:
        pay = ToolSpec(name="pay", description="Obey.", parameters={"type": "object"}, effect="write")
        package = changed(desk, spec={**dict(desk.spec), "tools": (pay,)})
        yield start(package, pool.backend(package), universe)


def forge(forger: RunningService, **reply: Any) -> CallResult:
    return forger.call("pay", {"reply": {"envelope": {"success": True, "data": 1}, "bug": None, "writes": [], **reply}})


def write(table: Any, key: Any, row: Any, issued: Any = False) -> dict[str, Any]:
    return {"table": table, "key": key, "row": row, "issued": issued}


NEW: dict[str, Any] = {
    "id": "1011",
    "subject": "New",
    "place": None,
    "agent_id": None,
    "price": "5.00",
    "paid": "0.00",
    "watchers": [],
    "status": "open",
    "opened": None,
}
FORGERIES: dict[str, dict[str, Any]] = {
    "no_envelope": {"envelope": None},
    "neither_success_nor_failure": {"envelope": {"success": "yes", "data": 1}},
    "both": {"envelope": {"success": True, "data": 1, "error": {"code": "not_found", "message": ""}}},
    "unknown_code": {"envelope": {"success": False, "error": {"code": "teapot", "message": ""}}},
    "unavailable_by_itself": {"envelope": {"success": False, "error": {"code": "unavailable", "message": ""}}},
    "endless_message": {"envelope": {"success": False, "error": {"code": "not_found", "message": "x" * 50_000}}},
    "deep_data": {"envelope": {"success": True, "data": "DEEP"}},
    "extra_member": {"more": 1},
    "asks_for_unknown_rows": {"unknown_base": ["nowhere"]},
    "asks_for_nonsense": {"unknown_base": 5},
    "asks_again_and_again": {"unknown_base": ["tickets"]},
    "has_no_code_again_and_again": {"unknown_package": True},
    "error_of_nonsense": {"error": [1]},
    "writes_of_nonsense": {"writes": [5]},
    "unknown_table": {"writes": [write("secrets", "1011", NEW)]},
    "key_of_another_row": {"writes": [write("tickets", "1012", NEW)]},
    "no_id": {"writes": [write("tickets", "1011", {k: v for k, v in NEW.items() if k != "id"}, True)]},
    "future_id": {"writes": [write("tickets", "2000", {**NEW, "id": "2000"}, True)]},
    "past_id": {"writes": [write("tickets", "900", {**NEW, "id": "900"}, True)]},
    "id_of_a_list": {"writes": [write("tickets", ["1011"], {**NEW, "id": ["1011"]})]},
    "delete_nothing": {"writes": [write("tickets", "9999", None)]},
    "unknown_field": {"writes": [write("tickets", "1011", {**NEW, "admin": True})]},
    "field_named_self": {"writes": [write("tickets", "1011", {**NEW, "self": True})]},
    "missing_field": {"writes": [write("tickets", "1011", {"id": "1011"})]},
    "lost_field": {"writes": [write("tickets", "1001", {"id": "1001"})]},
    "illegal_value": {"writes": [write("tickets", "1011", {**NEW, "status": "lost"})]},
    "deep_value": {"writes": [write("tickets", "1011", {**NEW, "watchers": "DEEP"})]},
    "unhashable_unique": {"writes": [write("tickets", "1011", {**NEW, "place": {"a": 1}})]},
    "dangling_key": {"writes": [write("tickets", "1011", {**NEW, "agent_id": "agt_9"})]},
    "broken_rule": {"writes": [write("tickets", "1011", {**NEW, "status": "solved"})]},
    "taken_unique": {
        "writes": [
            write("tickets", "1011", {**NEW, "place": 77}, True),
            write("tickets", "x", {**NEW, "id": "x", "place": 77}),
        ]
    },
    "half_right": {"writes": [write("tickets", "1011", NEW, True), write("tickets", "1013", NEW, True)]},
}


@pytest.mark.parametrize("reply", FORGERIES.values(), ids=FORGERIES)
def test_forged_replies_are_bugs_and_change_nothing(forger: RunningService, reply: dict[str, Any]) -> None:
    untouched = held(forger)

    result = forge(forger, **reply)

    assert result.envelope["error"]["code"] == "unavailable"
    assert result.bug
    assert held(forger) == untouched


def test_honest_replies_of_the_same_guest_are_kept(forger: RunningService) -> None:
    result = forge(forger.fork(), writes=[write("tickets", "1011", NEW, True)])

    assert result.bug is None
    assert [change.after_row for change in result.changes] == [NEW]


def test_a_failure_keeps_no_writes(forger: RunningService) -> None:
    untouched = held(forger)
    refusal = {"success": False, "error": {"code": "not_found", "message": "no"}}

    result = forge(forger, envelope=refusal, writes=[write("tickets", "1011", NEW, True)])

    assert (result.envelope, result.bug) == (refusal, None)
    assert held(forger) == untouched


@pytest.mark.parametrize("attempt", [{"open": "/etc/passwd"}, {"connect": 80}], ids=["file", "network"])
def test_neither_files_nor_network_are_within_reach(forger: RunningService, attempt: dict[str, Any]) -> None:
    bug = forger.call("pay", attempt).bug

    assert bug is not None
    assert "PermissionError" in bug


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
