"""A small repair shop: the service on which the core's promises are tested."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from typing import Annotated, Any, Literal

from compoworld_core.services.backend import InProcessBackend
from compoworld_core.services.context import Context, User
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.running import RunningService
from compoworld_core.services.sdk import (
    Cursor,
    Day,
    Email,
    Entity,
    FailedPrecondition,
    Id,
    Limit,
    Money,
    Page,
    PersonName,
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
from compoworld_core.services.universe import Universe

START = datetime(2026, 2, 12, 8, 30, tzinfo=UTC)
USER = User("Ada Voss", "ada.voss@shop.example")

CustomerId = Annotated[str, Id("customer", prefix="cus")]
JobId = Annotated[str, Id("job", prefix="job")]


class Customer(Entity):
    """Somebody who brings things."""

    id: CustomerId
    name: PersonName
    email: Email


class Job(Entity):
    """A thing to repair. `key` hangs on the board."""

    id: JobId
    title: Title
    number: int | None = None
    customer_id: CustomerId | None = None
    helpers: tuple[CustomerId, ...] = ()
    price: Money | None = None
    status: Literal["open", "done"] = "open"
    key: str = ""
    due: Day | None = None
    opened: Timestamp | None = None


class WorkshopState(State):
    """All that the shop writes down."""

    customers: Table[Customer] = table(unique=("email",))
    jobs: Table[Job] = table(
        unique=("number", ("title", "key")),
        rules=(
            Rule(
                where=(Test(field="status", value="done"),),
                satisfies=(Test(field="price", op="gt", value=0),),
                message="a job that is done has a price",
            ),
        ),
    )


class Interrupted(BaseException):
    """What a test uses as a signal from outside."""


class Workshop(Service[WorkshopState]):
    """Repairs."""

    domain = "commerce"

    @classmethod
    def populate(cls, state: WorkshopState, universe: Universe, rng: random.Random, start: datetime) -> None:
        for person in universe.contacts[:3]:
            state.customers.insert(name=person.name, email=person.email)
        for number in range(3):
            state.jobs.insert(title=f"Job {number}", number=number, customer_id="cus_1001", opened=start)

    @tool(effect="write")
    def add_job(self, title: Title, customer_id: CustomerId | None = None, due: Day | None = None) -> Job:
        """Take in a thing.

        Args:
            title: What is to be done.
            customer_id: Whose it is.
        """
        return self.state.jobs.insert(title=title, customer_id=customer_id, due=due, opened=self.now)

    @tool(effect="write")
    def set_price(self, job_id: JobId, price: Money) -> Job:
        """Agree on a price."""
        return self.state.jobs.update(job_id, price=price)

    @tool(effect="write")
    def set_key(self, job_id: JobId, key: str) -> Job:
        """Hang the job on the board."""
        return self.state.jobs.update(job_id, key=key)

    @tool(effect="write")
    def finish_job(self, job_id: JobId) -> Job:
        """Mark a job as done."""
        return self.state.jobs.update(job_id, status="done")

    @tool(effect="write")
    def drop_job(self, job_id: JobId) -> None:
        """Throw a job away."""
        self.state.jobs.delete(job_id)

    @tool(effect="write")
    def draw_lot(self, job_id: JobId) -> Job:
        """Give the job a number by chance."""
        return self.state.jobs.update(job_id, number=self.rng.randint(100, 10**9))

    @tool(effect="read")
    def search(self, limit: Limit = 20, cursor: Cursor | None = None) -> Page[Job]:
        """List jobs."""
        return paginate(tuple(self.state.jobs), limit, cursor)

    @tool(effect="read")
    def glance(self, job_id: JobId) -> Job:
        """Claim to read, and write."""
        return self.state.jobs.update(job_id, key="seen")

    @tool(effect="write")
    def refuse(self, job_id: JobId) -> Job:
        """Write, then refuse."""
        self.state.jobs.insert(title="half done")
        self.state.jobs.update(job_id, title="half done too")
        raise FailedPrecondition("changed my mind")

    @tool(effect="write")
    def crash(self, job_id: JobId) -> Job:
        """Write, then break."""
        self.state.jobs.delete(job_id)
        raise ZeroDivisionError

    @tool(effect="write")
    def interrupt(self, job_id: JobId) -> Job:
        """Write, then be stopped from outside."""
        self.state.jobs.delete(job_id)
        raise Interrupted


def package_of(service: type[Service[Any]]) -> ServicePackage:
    return ServicePackage(
        name=service.name,
        origin="library",
        author="library",
        code={"service.py": service.__name__},
        spec=service.spec(),
        tables=service.state_class.declaration()[0],
    )


def start(service: type[Service[Any]] = Workshop, seed: int = 7) -> RunningService:
    """A running service, sealed."""
    context = Context(service.name, seed, START, USER)
    running = RunningService.start(package_of(service), InProcessBackend(service), context, Universe.generate(seed))
    running.state.seal()
    return running


def shop() -> WorkshopState:
    """A sealed state with three customers and three jobs."""
    state = start().state
    assert isinstance(state, WorkshopState)
    return state


def rows(state: State) -> dict[str, list[Any]]:
    """Everything that can be seen of a state, in order, with what decides the next call."""
    seen: dict[str, list[Any]] = {
        name: [item.type.view(record) for record in item] for name, item in state.tables.items()
    }
    return {**seen, "counters": [item.counter for item in state.tables.values()], "writes": [state.writes]}
