"""Bench: how fast services and worlds are here, and how that compares with the bare minimum.

What is compared is measured in many short batches that take turns, and the median counts: whatever else the machine
does then hits both sides. Absolute numbers say something about the machine, the two ratios about the code.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from compoworld_core.data import Data
from compoworld_core.errors import CompoWorldError
from compoworld_core.library.crm.records import Contact
from compoworld_core.library.registry import library_package, library_services
from compoworld_core.pipeline.work.opening import host_pool
from compoworld_core.pipeline.work.synthesize import synthesize
from compoworld_core.services.package import ServicePackage
from compoworld_core.specs.sources import BundledSource, read_specs
from compoworld_core.synthesis.rules.author import RulesAuthor
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.recipe import ServicePin, UniverseSeed, WorldRecipe
from compoworld_core.worlds.world import World, open_world

ROWS: Final = 10_000
SERVICES: Final = 10
BATCHES: Final = 20
CALLS: Final = 1_000
"""Calls in a batch."""

LEAST_UPDATE_RATIO: Final = 0.2
"""Slowest that a call may be, as a part of the speed of the bare minimum."""
MOST_FORK_RATIO: Final = 2.0
"""Most that ten times the rows may cost a fork, as a multiple."""

_START: Final = datetime(2026, 1, 12, 9, tzinfo=UTC)
_TOOLS: Final = ("get_contact", "update_contact")


class BenchResult(Data):
    """Medians of many batches.

    Attributes:
        rows: Rows of the worlds; the small one has a tenth.
        updates_per_s: `World.call` that changes one field of one row.
        bare_updates_per_s: Validating a changed row with Pydantic and putting it into a dict.
        update_ratio: The former by the latter; `LEAST_UPDATE_RATIO` or more is wanted.
        fork_and_first_calls_us: A fork of a world of ten services, with the first read and the first write in it.
        small_fork_and_first_calls_us: The same at a tenth of the rows.
        fork_ratio: The former by the latter; `MOST_FORK_RATIO` or less is wanted.
        hosted_calls_per_s: Reads of a synthesised service in its host.
    """

    rows: int
    updates_per_s: float
    bare_updates_per_s: float
    update_ratio: float
    reads_per_s: float
    forks_per_s: float
    fork_and_first_calls_us: float
    small_fork_and_first_calls_us: float
    fork_ratio: float
    hosted_calls_per_s: float


def measure(rows: int = ROWS, batches: int = BATCHES, calls: int = CALLS) -> BenchResult:
    """Measure everything; with the defaults it takes some ten seconds."""
    update_s, bare_s, read_s = _take_turns(batches, *_point_calls(_crm_world(1, rows), calls))
    fork_s, whole_s, small_s = _take_turns(
        batches,
        _forks(_crm_world(SERVICES, rows), calls),
        _first_calls(_crm_world(SERVICES, rows), calls),
        _first_calls(_crm_world(SERVICES, rows // 10), calls),
    )
    (hosted_s,) = _take_turns(batches, _hosted_calls(calls))
    return BenchResult(
        rows=rows,
        updates_per_s=1 / update_s,
        bare_updates_per_s=1 / bare_s,
        update_ratio=bare_s / update_s,
        reads_per_s=1 / read_s,
        forks_per_s=1 / fork_s,
        fork_and_first_calls_us=whole_s * 1e6,
        small_fork_and_first_calls_us=small_s * 1e6,
        fork_ratio=whole_s / small_s,
        hosted_calls_per_s=1 / hosted_s,
    )


@dataclass(frozen=True)
class Line:
    """One measurement for people.

    Attributes:
        compared: What it is to be seen beside, with its value.
        verdict: Empty where the number says something about the machine only.
    """

    what: str
    value: str
    unit: str
    compared: str = ""
    verdict: str = ""


def explain(result: BenchResult) -> tuple[Line, ...]:
    """The result for people: each number with its unit, and a verdict on those that the code is responsible for."""
    few = result.rows // 10
    return (
        Line("update one row by a tool call", f"{result.updates_per_s:,.0f}", "calls/s"),
        Line(
            "  as a part of the bare minimum",
            f"{result.update_ratio:.2f}",
            "×",
            f"{LEAST_UPDATE_RATIO:g} or more is wanted; only validating the row: {result.bare_updates_per_s:,.0f}/s",
            "fine" if result.update_ratio >= LEAST_UPDATE_RATIO else "TOO SLOW",
        ),
        Line("read one row by a tool call", f"{result.reads_per_s:,.0f}", "calls/s"),
        Line("fork a world", f"{result.forks_per_s:,.0f}", "forks/s", f"{SERVICES} services, {result.rows:,} rows"),
        Line(
            "fork, then read and write once",
            f"{result.fork_and_first_calls_us:,.0f}",
            "µs",
            f"with {few:,} rows: {result.small_fork_and_first_calls_us:,.0f} µs",
        ),
        Line(
            "  what ten times the rows cost",
            f"{result.fork_ratio:.2f}",
            "×",
            f"{MOST_FORK_RATIO:g} or less is wanted; copying every row would cost 10",
            "fine" if result.fork_ratio <= MOST_FORK_RATIO else "TOO SLOW",
        ),
        Line("read from a service in the sandbox", f"{result.hosted_calls_per_s:,.0f}", "calls/s"),
    )


Batch = Callable[[], int]
"""Does something a number of times and returns that number."""


def _take_turns(batches: int, *sides: Batch) -> list[float]:
    """Median seconds per thing of each side, whose batches alternate; a first round only warms up."""
    times: list[list[float]] = [[] for _ in sides]
    for number in range(batches + 1):
        for side, taken in zip(sides, times, strict=True):
            start = time.perf_counter()
            count = side()
            if number:
                taken.append((time.perf_counter() - start) / count)
    return [statistics.median(taken) for taken in times]


def _crm_world(services: int, rows: int) -> World:
    """A world of CRMs with so many contacts in all, beside the rows that a CRM starts with."""
    package = library_package("crm")
    names = [f"crm_{number}" for number in range(services)]
    world = _open_world(package, names, _TOOLS)
    for name in names:
        state = world.services[name].state
        accounts = [account.id for account in state.tables["accounts"]]
        for number in range(rows // services):
            state.tables["contacts"].insert(
                account_id=accounts[number % len(accounts)],
                name=f"Bench Person {number}",
                email=f"person-{number}@bench.example",
                phone="+45 20 1000000",
            )
        state.journal.clear()
        state.seal()
    return world


def _open_world(package: ServicePackage, names: list[str], tools: tuple[str, ...]) -> World:
    recipe = WorldRecipe(
        services=tuple(ServicePin(name=name, package=package.digest, tools=tools) for name in names),
        universe=UniverseSeed(seed=1),
        start_time=_START,
    )
    return open_world(recipe, Catalogue([package], library_services(), host_pool().backend))


def _point_calls(world: World, calls: int) -> tuple[Batch, Batch, Batch]:
    """Updates by a call, bare updates, and reads by a call; all of the same rows in the same order."""
    rows = {row.id: row.model_dump() for row in world.services["crm_0"].state.tables["contacts"]}
    keys = _endlessly(list(rows))
    bare: dict[str, Contact] = {}

    def update() -> int:
        twin = world.fork()
        for number in range(calls):
            twin.call("update_contact", {"contact_id": next(keys), "phone": f"+45 30 {1000000 + number}"})
        return calls

    def update_bare() -> int:
        for number in range(calls):
            key = next(keys)
            bare[key] = Contact.model_validate({**rows[key], "phone": f"+45 30 {1000000 + number}"})
        return calls

    def read() -> int:
        for _ in range(calls):
            world.call("get_contact", {"contact_id": next(keys)})
        return calls

    _require(world.fork().call("update_contact", {"contact_id": next(keys), "phone": "+45 30 1000000"}).envelope)
    return update, update_bare, read


def _endlessly(keys: list[str]) -> Iterator[str]:
    """The keys over and over, in an order that jumps about."""
    step = next(size for size in (7919, 1009, 7) if len(keys) % size)
    position = 0
    while True:
        position = (position + step) % len(keys)
        yield keys[position]


def _forks(world: World, calls: int) -> Batch:
    def fork() -> int:
        for _ in range(calls):
            world.fork()
        return calls

    return fork


def _first_calls(world: World, calls: int) -> Batch:
    names = [(f"crm_{number}__get_contact", f"crm_{number}__update_contact") for number in range(SERVICES)]
    key = next(iter(world.services["crm_0"].state.tables["contacts"])).id

    def use() -> int:
        for number in range(calls):
            read, write = names[number % SERVICES]
            twin = world.fork()
            twin.call(read, {"contact_id": key})
            twin.call(write, {"contact_id": key, "phone": "+45 30 1000000"})
        return calls

    _require(world.fork().call(names[0][1], {"contact_id": key, "phone": "+45 30 1000000"}).envelope)
    return use


def _hosted_calls(calls: int) -> Batch:
    """Calls of the first reading tool without required arguments that a synthesised bundled service has."""
    specs, _ = read_specs(BundledSource(), limit=5)
    packages = (item for spec in specs for item in synthesize(spec, RulesAuthor()) if isinstance(item, ServicePackage))
    package, tool = next(
        (package, tool.name)
        for package in packages
        for tool in package.spec.tools
        if tool.effect == "read" and not tool.parameters.get("required")
    )
    world = _open_world(package, [package.name], (tool,))

    def call() -> int:
        for _ in range(calls):
            world.call(tool, {})
        return calls

    _require(world.call(tool, {}).envelope)
    return call


def _require(envelope: Any) -> None:
    """A refused call is quick and would be measured as such."""
    if envelope["success"] is not True:
        raise CompoWorldError(f"the benchmark's own call was refused: {envelope['error']['message']}")
