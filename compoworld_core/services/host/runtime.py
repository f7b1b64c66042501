"""What a guest answers: it holds the code of one package and runs its tools on the rows that come with each call.

A guest owns nothing. Its parent sends every call with the state's changed rows and names the unchanged ones by digest;
a guest that does not know a digest says so and is sent the rows. It replies with the envelope and with the call's
writes in their order, which the parent repeats on its own tables: nothing here is believed.
"""

from __future__ import annotations

import builtins
import linecache
import sys
import traceback
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import lru_cache
from types import ModuleType
from typing import Any, Final

from pydantic_core import to_json

from compoworld_core.errors import ToolError
from compoworld_core.services import sdk
from compoworld_core.services.backend import InProcessBackend
from compoworld_core.services.context import Context, User
from compoworld_core.services.host import vocabulary as words
from compoworld_core.services.host.allowlist import DisallowedCode, check_source
from compoworld_core.services.host.guest import Handler
from compoworld_core.services.record import Row
from compoworld_core.services.service import Service
from compoworld_core.services.state import State
from compoworld_core.services.table import Base, Table

FILENAME: Final = "service.py"
"""How a package calls the file that defines its service."""

MAX_BASES: Final = 512
MAX_BASE_BYTES: Final = 64 * 1024 * 1024
"""What a guest keeps of the rows that it was sent, in tables and in bytes of JSON."""

_MODULE: Final = "service"
_BUG_CHARS: Final = 4000
_IMPLICIT: Final = (*words.BUILTIN_DECORATORS, *words.BUILTIN_TYPES, "NotImplemented", "__build_class__")


class Refused(Exception):
    """The code can't be used as a service; `problems` are pairs of line and message."""

    def __init__(self, reason: str, problems: Iterable[tuple[int, str]]) -> None:
        super().__init__(reason)
        self.reason = reason
        self.problems = [list(item) for item in problems]


class Runtime:
    """The one package of a guest, and the rows it remembers."""

    def __init__(self) -> None:
        self._package: str | None = None
        self._service: type[Service[Any]]
        self._backend: InProcessBackend
        self._template: State
        self._bases = _Bases()

    def load(self, request: dict[str, Any]) -> dict[str, Any]:
        """Check and define a package's service.

        Returns:
            Nothing, or under `refused` the reason (`disallowed`, `definition` or `service`) and the problems found.
        """
        if self._package is not None:
            raise RuntimeError("a guest holds one package")
        try:
            self._service = _define(request["code"][FILENAME])
        except Refused as refusal:
            return {"refused": {"reason": refusal.reason, "problems": refusal.problems}}
        self._backend = InProcessBackend(self._service)
        self._template = self._service.state_class.empty()
        self._package = request["package"]
        return {}

    def export(self, request: dict[str, Any]) -> dict[str, Any]:
        """The loaded service as data: its tables and its spec."""
        if self._package != request["package"]:
            return {"unknown_package": True}
        tables, _ = self._service.state_class.declaration()
        return {"tables": tables.model_dump(mode="json"), "spec": self._service.spec().model_dump(mode="json")}

    def rewrite(self, request: dict[str, Any]) -> dict[str, Any]:
        """Rows in the form that the service gives them, None for those that it refuses."""
        if self._package != request["package"]:
            return {"unknown_package": True}
        tables = self._template.tables
        return {
            "tables": {
                name: [_rewritten(tables[name], row) for row in rows] for name, rows in request["tables"].items()
            }
        }

    def call(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run a call on the rows that the request gives or names.

        Returns:
            `envelope`, `bug` and `writes`, or what has to be sent first: `unknown_package`, or `unknown_base` with the
            tables whose base rows are not known here.
        """
        if self._package != request["package"]:
            return {"unknown_package": True}
        state = self._template.fork()
        places = [(name, request["bases"][name]) for name in state.tables]
        for name, rows in request["rows"].items():
            self._bases.learn((name, request["bases"][name]), rows, state.tables[name])
        bases = {name: self._bases.recall((name, digest)) for name, digest in places}
        if unknown := [name for name, base in bases.items() if base is None]:
            return {"unknown_base": unknown}
        self._bases.trim(len(places))
        for name, base in bases.items():
            _load_table(state.tables[name], base, request["overlays"][name], request["counters"][name])
        state.writes = request["writes"]
        outcome = self._backend.execute(state, request["tool"], request["arguments"], _context(**request["context"]))
        return {
            "envelope": outcome.envelope,
            "bug": None if outcome.bug is None else outcome.bug[-_BUG_CHARS:],
            "writes": _writes(state) if outcome.envelope["success"] else [],
        }


class _Bases:
    """Validated base rows by table and digest; the least recently used are forgotten first."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[str, str], tuple[Base[Any], int]] = OrderedDict()
        self._bytes = 0

    def recall(self, place: tuple[str, str]) -> Base[Any] | None:
        if place not in self._known:
            return None
        self._known.move_to_end(place)
        return self._known[place][0]

    def learn(self, place: tuple[str, str], rows: list[Row], table: Table[Any]) -> None:
        if place not in self._known:
            records = [table.type.build(row) for row in rows]
            size = len(to_json(rows))
            self._known[place] = Base({table.type.field(record, "id"): record for record in records}), size
            self._bytes += size

    def trim(self, in_use: int) -> None:
        """Forget down to the limits, but not what was used last."""
        while len(self._known) > in_use and (len(self._known) > MAX_BASES or self._bytes > MAX_BASE_BYTES):
            self._bytes -= self._known.popitem(last=False)[1][1]


def _load_table(table: Table[Any], base: Any, overlay: Mapping[str, Row | None], counter: int) -> None:
    build = table.type.build
    table.load(base, {key: None if row is None else build(row) for key, row in overlay.items()}, counter)


def _rewritten(table: Table[Any], row: Row) -> Row | None:
    try:
        return table.type.view(table.type.build(row))
    except ToolError:
        return None


@lru_cache(maxsize=256)
def _context(service: str, seed: int, start: str, name: str, email: str) -> Context:
    return Context(service, seed, datetime.fromisoformat(start), User(name, email))


def _writes(state: State) -> list[dict[str, Any]]:
    """All writes of the open transaction in their order; `issued` where the table chose the new row's id."""
    counters = {name: table.counter for name, table in state.tables.items()}
    writes = []
    for entry in reversed(state.journal):
        table = entry.table
        row = None if entry.after is None else table.type.view(entry.after)
        issued = counters[table.name] != entry.counter
        counters[table.name] = entry.counter
        writes.append({"table": table.name, "key": entry.key, "row": row, "issued": issued})
    return writes[::-1]


# Defining the service


def _define(source: str) -> type[Service[Any]]:
    """The one service class of a module's source.

    Raises:
        Refused: The source is not allowed, does not run or defines no service that could run.
    """
    try:
        check_source(source, FILENAME)
    except DisallowedCode as error:
        raise Refused("disallowed", [(item.line, item.message) for item in error.violations]) from None
    module = ModuleType(_MODULE)
    module.__dict__["__builtins__"] = _builtins()
    sys.modules[_MODULE] = module  # Where annotations are resolved.
    linecache.cache[FILENAME] = (len(source), None, source.splitlines(keepends=True), FILENAME)
    try:
        exec(compile(source, FILENAME, "exec"), module.__dict__)  # noqa: S102 - checked above, in a confined process
        return _only_service(module)
    except Refused:
        raise
    except Exception as error:
        raise Refused("definition", [(_line(error), f"{type(error).__name__}: {error}")]) from None


def _only_service(module: ModuleType) -> type[Service[Any]]:
    services = [
        value
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, Service) and value.__module__ == _MODULE
    ]
    if len(services) != 1:
        names = ", ".join(service.__name__ for service in services) or "none"
        raise Refused("service", [(1, f"a module defines one subclass of Service; found {names}")])
    service = services[0]
    for attribute, what in (("state_class", "name its state: Service[MyState]"), ("domain", "set its domain")):
        if not hasattr(service, attribute):
            raise Refused("service", [(1, f"{service.__name__} has to {what}")])
    if not service.tools:
        raise Refused("service", [(1, f"{service.__name__} has no tools; decorate its methods with @tool")])
    service.state_class.declaration()
    return service


def _line(error: Exception) -> int:
    """The last line of the module that an exception came through."""
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno or 1 for frame in reversed(frames) if frame.filename == FILENAME), 1)


def _builtins() -> dict[str, Any]:
    return {name: getattr(builtins, name) for name in (*words.BUILTINS, *_IMPLICIT)} | {"__import__": _import}


def _import(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> ModuleType:
    if level or name not in {*words.MODULES, sdk.__name__}:
        raise ImportError(f"import of {name!r} is not allowed")
    return __import__(name, globals, locals, fromlist)


_runtime = Runtime()

handlers: Mapping[str, Handler] = {
    "load": _runtime.load,
    "export": _runtime.export,
    "rewrite": _runtime.rewrite,
    "call": _runtime.call,
}
