"""Two services as untrusted source, and what tests see of a service that runs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from compoworld_core.services.backend import ToolBackend
from compoworld_core.services.context import Context, User
from compoworld_core.services.hosted import HostPool
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.running import CallResult, RunningService
from compoworld_core.services.schema import ServiceSchema
from compoworld_core.services.universe import Universe
from compoworld_core.specs.model import ServiceSpec

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
