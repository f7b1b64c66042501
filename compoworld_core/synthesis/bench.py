"""The bench on which a service is tested: worlds to call it in, and other states to compare them with.

Every test runs in a fork, so no test sees another's writes. Answers are compared between states in the same context
and after the same number of writes, so that what differs can only come from the rows: a tool that makes its answer up
from the clock or from random numbers looks constant here.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from compoworld_core.errors import ToolError
from compoworld_core.services.arguments import Vocabulary
from compoworld_core.services.backend import ToolBackend
from compoworld_core.services.context import Context, User
from compoworld_core.services.drawing import Drawing
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.record import Row
from compoworld_core.services.running import CallResult, RunningService
from compoworld_core.services.state import State
from compoworld_core.services.table import Base, Table
from compoworld_core.services.universe import Universe
from compoworld_core.synthesis.finding import printable

START: Final = datetime(2026, 1, 12, 9, 0, tzinfo=UTC)
"""When the worlds of the bench begin."""

MAX_CALLS: Final = 260
"""Most calls that one tool's checks make; testing ends there."""

_EDITED_ROWS = 40
_DRAWN_ROWS = 3
_SPARE = 3


class Misbehaved(Exception):
    """A tool did what no service may do, or its host did not survive the call. Its testing ends."""

    def __init__(self, tool: str, fault: str) -> None:
        super().__init__(fault)
        self.tool = tool
        self.fault = fault


@dataclass(frozen=True)
class World:
    """A populated service and the values that occur in it."""

    running: RunningService
    vocabulary: Vocabulary


class Bench:
    """Calls one service's tools and counts the calls.

    Attributes:
        home: The world that tools are tested in.
        away: A world of another seed.
        faults: Evidence by tool that misbehaved; such a tool is never called again.
        calls: Calls made for each tool under test.
    """

    def __init__(self, package: ServicePackage, backend: ToolBackend, seed: int) -> None:
        self.package = package
        self.backend = backend
        self._seed = seed
        self.home = self._world(seed)
        self.away = self._world(seed + 1)
        self._spare: dict[int, World] = {}
        self.faults: dict[str, str] = {}
        self.calls: dict[str, int] = {}
        self.subject = ""
        self._fragile: set[str] = set()
        self._drawn: dict[str, list[Row]] = {}

    def spare_worlds(self) -> Iterator[World]:
        """Worlds of further seeds, for tools that find nothing to do at home."""
        for seed in range(self._seed + 2, self._seed + 2 + _SPARE):
            if seed not in self._spare:
                self._spare[seed] = self._world(seed)
            yield self._spare[seed]

    def _world(self, seed: int) -> World:
        universe = Universe.generate(seed)
        user = User(universe.user.name, universe.user.email)
        context = Context(self.package.name, seed, START, user)
        running = RunningService.start(self.package, self.backend, context, universe)
        running.state.seal()
        return World(running, Vocabulary(running, universe))

    def call(self, running: RunningService, tool: str, arguments: Mapping[str, Any]) -> CallResult:
        """Call a tool on behalf of the tool under test.

        Raises:
            Misbehaved: The tool, now or earlier, did what no service may do.
        """
        if tool in self.faults:
            raise Misbehaved(tool, self.faults[tool])
        self.calls[self.subject] = self.calls.get(self.subject, 0) + 1
        result = running.call(tool, arguments)
        fault = fault_of(result)
        if fault is not None:
            self.faults[tool] = fault
            raise Misbehaved(tool, fault)
        return result

    def call_elsewhere(self, running: RunningService, tool: str, arguments: Mapping[str, Any]) -> CallResult | None:
        """Call a tool in rows that the service did not write itself; None where it can't cope with them."""
        if tool in self.faults or tool in self._fragile:
            return None
        self.calls[self.subject] = self.calls.get(self.subject, 0) + 1
        result = running.call(tool, arguments)
        if fault_of(result) is not None:
            self._fragile.add(tool)
            return None
        return result

    def can_call(self, tool: str) -> bool:
        """Whether the tool under test has calls left, and this tool has not misbehaved."""
        return tool not in self.faults and self.calls.get(self.subject, 0) < MAX_CALLS

    # Other states in the same context

    def other_states(self, running: RunningService, arguments: Mapping[str, Any]) -> Iterator[RunningService]:
        """The service with edited rows, with another world's rows and with none; all else is as it was."""
        yield self.edited(running, arguments)
        yield _placed(running, self.away.running.state.fork())
        yield _placed(running, self.backend.new_state())

    def edited(self, running: RunningService, arguments: Mapping[str, Any]) -> RunningService:
        """The service with rows whose values are taken from another world's.

        Ids, references and whatever the arguments speak about stay, so that a call still finds what it found.
        """
        twin = running.fork()
        spoken = [_folded(value) for value in scalars(arguments)]
        for name, table in twin.state.tables.items():
            _edit(table, self._donors(name), spoken)
        twin.state.journal.clear()
        twin.state.writes = running.state.writes
        return twin

    def _donors(self, name: str) -> list[Row]:
        """Rows of another world, or drawn ones where it has none."""
        if name not in self._drawn:
            table = self.away.running.state.tables[name]
            rows = [table.type.view(record) for record in table]
            drawing = Drawing(self.away.vocabulary.universe, random.Random(f"donors/{name}"), START)
            for _ in range(0 if rows else _DRAWN_ROWS):
                with suppress(ValueError):
                    rows.append(drawing.fresh().object(table.schema.row, optional=1))
            self._drawn[name] = rows
        return self._drawn[name]

    def rekeyed(self, running: RunningService, arguments: Mapping[str, Any]) -> RunningService:
        """The service in which rows that the arguments describe, but don't name, have other ids."""
        twin = running.fork()
        spoken = [_folded(value) for value in scalars(arguments)]
        for table in twin.state.tables.values():
            for row in [table.type.view(record) for record in table]:
                if _folded(row["id"]) not in spoken and any(_mentions(value, spoken) for value in row.values()):
                    with suppress(ToolError):
                        table.delete(row["id"])
                        table.insert(**{**row, "id": None})
        twin.state.journal.clear()
        twin.state.writes = running.state.writes
        return twin

    def reloaded(self, running: RunningService) -> RunningService:
        """The service with a new state, into which the rows were read back from JSON text."""
        state = self.backend.new_state()
        for name, table in running.state.tables.items():
            rows = json.loads(json.dumps([table.type.view(record) for record in table]))
            built = {row["id"]: state.tables[name].type.build(row) for row in rows}
            state.tables[name].load(Base(built), {}, table.counter)
        return _placed(running, state)


def fault_of(result: CallResult) -> str | None:
    """The evidence that a call was not answered by the service, in one line."""
    if result.bug is not None:
        lines = [line.strip() for line in result.bug.strip().splitlines() if line.strip()]
        return printable(lines[-1] if lines else "bug")
    if not result.succeeded and result.envelope.get("error", {}).get("code") == "unavailable":
        return printable(f"unavailable: {result.envelope['error'].get('message', '')}")
    return None


def scalars(value: Any) -> Iterator[Any]:
    """Strings and numbers inside a JSON value; truth values and null are too common to mean anything."""
    if isinstance(value, Mapping):
        for item in value.values():
            yield from scalars(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from scalars(item)
    elif isinstance(value, str | int | float) and not isinstance(value, bool) and value != "":
        yield value


def _placed(running: RunningService, state: State) -> RunningService:
    state.journal.clear()
    state.writes = running.state.writes
    return RunningService(running.package, running.backend, running.context, state)


def _edit(table: Table[Any], donors: list[Row], spoken: list[str]) -> None:
    keys = {key.field for key in table.schema.foreign_keys}
    kept = {"id", *keys, *(name for name, word in table.schema.semantics.items() if word.startswith("id:"))}
    rows = [table.type.view(record) for record in table]
    mentioned = [row for row in rows if any(_mentions(value, spoken) for value in row.values())]
    others = [row for row in rows if row not in mentioned]
    for place, row in enumerate([*mentioned, *others][: _EDITED_ROWS if donors else 0]):
        donor = donors[place % len(donors)]
        fields = {
            name: donor[name]
            for name, value in row.items()
            if name not in kept and name in donor and donor[name] != value and not _mentions(value, spoken)
        }
        if not _update(table, row["id"], fields):
            for name, value in fields.items():
                _update(table, row["id"], {name: value})


def _update(table: Table[Any], key: str, fields: Mapping[str, Any]) -> bool:
    try:
        table.update(key, **fields)
    except ToolError:
        return False
    return True


def _mentions(value: Any, spoken: list[str]) -> bool:
    return any(
        _folded(part) == word or (len(word) > 2 and word in _folded(part)) for part in scalars(value) for word in spoken
    )


def _folded(value: Any) -> str:
    return str(value).casefold()
