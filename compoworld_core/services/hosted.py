"""Hosted services: untrusted code behind the same contract as library code.

    arguments ─ schema ─► request {rows, call} ─► guest ─► envelope and writes ─► the parent's own tables

The state never leaves this process for good. A guest sees a copy of it, and what it claims to have written is repeated
here, write by write, through the table operations: they validate rows, issue ids and check every constraint, so a guest
can neither store what its schema forbids nor take a counter out of step. Whatever else it does is the bug of one call.
"""

from __future__ import annotations

import contextlib
import random
from collections import OrderedDict
from collections.abc import Mapping
from datetime import datetime
from types import TracebackType
from typing import Any, Final, Self

from pydantic import ValidationError
from pydantic_core import to_json

from compoworld_core.errors import ServiceBug, ToolError
from compoworld_core.services import seeding
from compoworld_core.services.backend import Outcome, ToolBackend, broken
from compoworld_core.services.context import Context
from compoworld_core.services.envelope import failure
from compoworld_core.services.host.confinement import Limits
from compoworld_core.services.host.reply import CodeRefused, HostFault, Refusal, Rewritten, Success, Write, parse_call
from compoworld_core.services.host.transport import DEFAULT_HANDLERS, Guest, GuestFailure
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.parameters import Parameters
from compoworld_core.services.record import describe_validation_error
from compoworld_core.services.state import State
from compoworld_core.services.universe import Universe
from compoworld_core.storage.digest import digest

CALL_S: Final = 2.0
"""Wall time that a call may take."""

LOAD_S: Final = 10.0
"""Wall time for defining a service, and what a call that brings base rows may take longer."""

_ATTEMPTS: Final = 5
"""Requests that a call may need until its guest has the code and the rows; a process may be replaced in between."""


class HostPool:
    """Guests for packages, each with a process of its own, of which only so many live at a time.

    Safe to use from several threads. Closing it ends all processes; it may be used again.
    """

    def __init__(
        self,
        *,
        capacity: int = 24,
        call_s: float = CALL_S,
        limits: Limits | None = None,
        handlers: str = DEFAULT_HANDLERS,
    ) -> None:
        """A pool without processes.

        Args:
            capacity: Processes that are kept; the least recently used ends first.
            call_s: Wall time that a call may take.
            limits: What each process may use up.
            handlers: Module that answers in the guests.
        """
        self.call_s = call_s
        self._capacity = capacity
        self._limits = limits
        self._handlers = handlers
        self._live: OrderedDict[int, Host] = OrderedDict()  # Each operation on it is atomic; it needs no lock.

    def backend(self, package: ServicePackage) -> HostedBackend:
        """What executes the package's tools."""
        return HostedBackend(package, self.host(package.code))

    def host(self, code: Mapping[str, str]) -> Host:
        """A place for code, with a process from its first request on."""
        return Host(self, code, Guest(handlers=self._handlers, limits=self._limits))

    def used(self, host: Host) -> None:
        """Note that a host was just used, and end the processes of others beyond the capacity."""
        self.ended(host)
        self._live[id(host)] = host
        while len(self._live) > self._capacity:
            self._live.popitem(last=False)[1].close()

    def ended(self, host: Host) -> None:
        """Note that a host has no process."""
        self._live.pop(id(host), None)

    def close(self) -> None:
        """End all processes."""
        while self._live:
            self._live.popitem()[1].close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Host:
    """Untrusted code and the guest that runs it."""

    def __init__(self, pool: HostPool, code: Mapping[str, str], guest: Guest) -> None:
        self._pool = pool
        self._code = dict(code)
        self._guest = guest
        self._name = digest(self._code)

    @property
    def pid(self) -> int | None:
        """Process id of the guest, if it has one now."""
        return self._guest.pid

    def export(self) -> dict[str, Any]:
        """The service as its code declares it: `tables` and `spec`, JSON that nothing is certain about.

        Raises:
            CodeRefused: The code is not a service.
            GuestFailure: It did not survive its own definition.
            HostFault: It answered nonsense.
        """
        return self._ask({"op": "export"}, State({}), LOAD_S)

    def call(self, state: State, tool: str, arguments: Any, context: Context) -> dict[str, Any]:
        """Run a call on a copy of the state; what comes back is JSON that nothing is certain about.

        Raises:
            CodeRefused: The code is not a service.
            GuestFailure: It did not survive the call.
            HostFault: It answered nonsense.
        """
        request = {
            "op": "call",
            "bases": state.base_digests(),
            "overlays": {name: table.overlay_rows() for name, table in state.tables.items()},
            "counters": {name: table.counter for name, table in state.tables.items()},
            "rows": {},
            "writes": state.writes,
            "tool": tool,
            "arguments": arguments,
            "context": {
                "service": context.service,
                "seed": context.seed,
                "start": context.start.isoformat(),
                "name": context.user.name,
                "email": context.user.email,
            },
        }
        return self._ask(request, state, self._pool.call_s)

    def rewritten(self, state: State) -> dict[str, Any]:
        """The state's rows as the service would write them, None for those that it refuses; nothing else is certain.

        Raises:
            CodeRefused: The code is not a service.
            GuestFailure: It did not survive.
            HostFault: It answered nonsense.
        """
        rows = {table.name: [table.type.view(record) for record in table] for table in state.tables.values()}
        return self._ask({"op": "rewrite", "tables": rows}, state, LOAD_S)

    def close(self) -> None:
        """End the process; the next request starts another."""
        self._pool.ended(self)
        self._guest.close()

    def _ask(self, request: dict[str, Any], state: State, timeout_s: float) -> dict[str, Any]:
        """Have a request answered, sending before it what the guest lacks."""
        request["package"] = self._name
        try:
            for _ in range(_ATTEMPTS):
                reply = self._request(request, timeout_s + (LOAD_S if request.get("rows") else 0))
                if "unknown_package" in reply:
                    self._load()
                elif "unknown_base" in reply:
                    request["rows"] |= _base_rows(state, reply["unknown_base"])
                else:
                    return reply
            raise HostFault("it keeps asking for what it was sent")
        finally:
            if self.pid is not None:
                self._pool.used(self)

    def _load(self) -> None:
        reply = self._request({"op": "load", "package": self._name, "code": self._code}, LOAD_S)
        if reply:
            try:
                refusal = Refusal.model_validate(reply.get("refused"))
            except ValidationError as error:
                raise HostFault(f"its answer is malformed: {describe_validation_error(error)}") from None
            raise CodeRefused(refusal.reason, refusal.lines())

    def _request(self, request: dict[str, Any], timeout_s: float) -> dict[str, Any]:
        try:
            reply = self._guest.request(request, timeout_s)
        except ValueError as error:
            raise HostFault(f"the request can't be sent: {error}") from None
        if "error" in reply:
            said = reply["error"]
            parts = [said.get(part) for part in ("kind", "message", "traceback")] if isinstance(said, dict) else []
            raise HostFault("it failed while answering: " + ", ".join(map(str, parts)))
        return reply


def _base_rows(state: State, names: Any) -> dict[str, Any]:
    if not isinstance(names, list) or not all(isinstance(name, str) and name in state.tables for name in names):
        raise HostFault("it asked for the rows of tables that don't exist")
    tables = [state.tables[name] for name in names]
    return {table.name: [table.type.view(record) for record in table.base_rows()] for table in tables}


class HostedBackend(ToolBackend):
    """Runs the tools of a package in a host. The same backend serves all worlds and all their forks."""

    __slots__ = ("_host", "_package", "_parameters")

    def __init__(self, package: ServicePackage, host: Host) -> None:
        self._package = package
        self._host = host
        self._parameters = Parameters(package.name, package.spec.tools)

    def new_state(self) -> State:
        """An empty state whose rows are validated by the package's schemas."""
        return State.from_schema(self._package.tables)

    def populate(self, state: State, universe: Universe, rng: random.Random, start: datetime) -> None:
        """Fill an empty state by the semantic types of its fields, in the service's own way of writing values.

        Raises:
            IsolationError: Untrusted code can't be confined here.
            TransientError: The machine can't start a process now.
        """
        seeding.populate(state, universe, rng, start)
        with contextlib.suppress(ServiceBug):  # The first call will meet it again, and report it.
            _rewrite(state, self._host.rewritten(state))

    def execute(self, state: State, tool: str, arguments: Mapping[str, Any], context: Context) -> Outcome:
        """Run one call in the guest and repeat its writes in the state's open transaction.

        Raises:
            IsolationError: Untrusted code can't be confined here.
            TransientError: The machine can't start a process now.
        """
        try:
            plain = self._parameters.checked(tool, arguments)
            reply = parse_call(self._host.call(state, tool, plain, context))
            if reply.bug is not None:
                return broken(reply.bug)
            if isinstance(reply.envelope, Success):
                _stage(state, reply.writes)
            return Outcome(reply.envelope.envelope())
        except ToolError as error:
            return Outcome(failure(error))
        except GuestFailure as error:
            return broken(f"{error}\n{error.output}".rstrip())
        except ServiceBug as error:
            return broken(str(error))


def _rewrite(state: State, reply: dict[str, Any]) -> None:
    """Give rows the form that the service gives them; what the tables don't accept stays as it is.

    Raises:
        HostFault: The reply is not about these rows.
    """
    try:
        tables = Rewritten.model_validate(reply).tables
        writes = [
            Write(table=name, key=key, row=row, issued=False)
            for name, rows in tables.items()
            for key, row in zip(
                [state.tables[name].type.field(old, "id") for old in state.tables[name]], rows, strict=True
            )
        ]
    except (ValidationError, KeyError, ValueError) as error:
        raise HostFault(f"its answer is malformed: {str(error)[:200]}") from None
    for write in writes:
        with contextlib.suppress(Exception):  # Rows are whatever the guest made them.
            _repeat(state, write)


def _stage(state: State, writes: list[Write]) -> None:
    """Repeat a guest's writes on the state's own tables.

    Raises:
        HostFault: A write is not what these tables accept.
    """
    for place, write in enumerate(writes):
        try:
            _repeat(state, write)
        except Exception as error:  # Rows and keys are whatever the guest made them.
            raise HostFault(
                f"its write {place} to {write.table[:80]!r} at {write.key[:80]!r} is refused: "
                f"{type(error).__name__}: {str(error)[:400]}"
            ) from None


def _repeat(state: State, write: Write) -> None:
    table = state.tables[write.table]
    if write.row is None:
        table.delete(write.key)
        return
    if write.row.get("id") != write.key:
        raise ValueError("the row has another id")
    current = table.find(write.key)
    if current is not None:
        before = table.type.view(current)
        if gone := before.keys() - write.row.keys():
            raise ValueError(f"the row lost {', '.join(sorted(gone))}")
        table.update(write.key, **{k: v for k, v in write.row.items() if k not in before or _differ(before[k], v)})
    elif write.issued:
        made = table.insert(**{**write.row, "id": None})
        if table.type.field(made, "id") != write.key:
            raise ValueError(f"the next id is {table.type.field(made, 'id')!r}")
    else:
        table.insert(**write.row)


def _differ(old: Any, new: Any) -> bool:
    """Whether two JSON values differ; to Python, `1`, `1.0` and `true` are equal."""
    return bool(to_json(old) != to_json(new))
