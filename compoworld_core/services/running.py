"""A running service: state, backend and context, and the transaction around every call.

This is the one place that decides whether a call's staged writes are kept. An error keeps none; a `read` tool that
wrote, or any exception that is not a `ToolError`, is a bug: nothing is kept and the evidence goes to whoever drives the
service.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any, NamedTuple

from compoworld_core.errors import NotFound
from compoworld_core.services.backend import ToolBackend, broken
from compoworld_core.services.context import Context
from compoworld_core.services.envelope import Envelope, failure
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.state import RowChange, State
from compoworld_core.services.universe import Universe


class CallResult(NamedTuple):
    """What a call answered and changed.

    Attributes:
        bug: Evidence that the service did what no service may do; the tool is to be quarantined.
        world_model: Whether a world model was asked what to answer.
    """

    envelope: Envelope
    changes: tuple[RowChange, ...] = ()
    bug: str | None = None
    world_model: bool = False

    @property
    def succeeded(self) -> bool:
        """Whether the envelope carries data."""
        return self.envelope["success"] is True


class RunningService:
    """One service of a world."""

    __slots__ = ("_effects", "backend", "context", "package", "state")

    def __init__(self, package: ServicePackage, backend: ToolBackend, context: Context, state: State) -> None:
        self.package = package
        self.backend = backend
        self.context = context
        self.state = state
        self._effects = {tool.name: tool.effect for tool in (*package.spec.tools, *package.modelled)}

    @classmethod
    def start(
        cls, package: ServicePackage, backend: ToolBackend, context: Context, universe: Universe
    ) -> RunningService:
        """A service with the rows that the universe gives it; seal the state before the first call."""
        state = backend.new_state()
        rng = random.Random(f"{context.seed}/{context.service}/populate")
        backend.populate(state, universe, rng, context.start)
        state.journal.clear()
        return cls(package, backend, context, state)

    def call(self, tool: str, arguments: Mapping[str, Any]) -> CallResult:
        """Run one call as a transaction."""
        state = self.state
        effect = self._effects.get(tool)
        if effect is None:
            return CallResult(failure(NotFound(f"{self.context.service} has no tool {tool!r}")))
        try:
            outcome = self.backend.execute(state, tool, arguments, self.context)
        except BaseException:
            state.rollback()
            raise
        if not outcome.envelope["success"]:
            state.rollback()
            return CallResult(outcome.envelope, (), outcome.bug, outcome.world_model)
        if effect == "read" and state.journal:
            state.rollback()
            outcome = broken(f"{tool} is declared read-only but wrote")
            return CallResult(outcome.envelope, (), outcome.bug)
        return CallResult(outcome.envelope, state.commit(), world_model=outcome.world_model)

    def fork(self) -> RunningService:
        """The same service with a forked state."""
        return RunningService(self.package, self.backend, self.context, self.state.fork())
