"""Backends: what executes a tool, behind one contract.

A backend gets a state with an open transaction and a call. It stages its row changes in that transaction and answers
with an envelope; it never commits. Library code runs in process, untrusted code in a host, and both pass the same gate:
the table operations, which validate every staged row.
"""

from __future__ import annotations

import random
import traceback
from collections.abc import Mapping
from datetime import datetime
from typing import Any, NamedTuple, Protocol

from compoworld_core.errors import ToolError, Unavailable
from compoworld_core.services.context import Context
from compoworld_core.services.envelope import Envelope, failure, success
from compoworld_core.services.service import Service
from compoworld_core.services.state import State
from compoworld_core.services.universe import Universe


class Outcome(NamedTuple):
    """A call's envelope, and how it came about.

    Attributes:
        bug: Evidence, where the service did what no service may do.
        world_model: Whether a world model was asked what to answer.
    """

    envelope: Envelope
    bug: str | None = None
    world_model: bool = False


class ToolBackend(Protocol):
    """Executes the tools of one service."""

    def new_state(self) -> State:
        """An empty state of the service."""
        ...

    def populate(self, state: State, universe: Universe, rng: random.Random, start: datetime) -> None:
        """Fill an empty state from the universe."""
        ...

    def execute(self, state: State, tool: str, arguments: Mapping[str, Any], context: Context) -> Outcome:
        """Run one call, staging its row changes in the state's open transaction."""
        ...


def broken(bug: str) -> Outcome:
    """The outcome of a call that the service did not survive."""
    return Outcome(failure(Unavailable("the service failed to answer this call")), bug)


class InProcessBackend:
    """Runs the tools of a library service, as trusted code."""

    __slots__ = ("_service", "_tools")

    def __init__(self, service: type[Service[Any]]) -> None:
        self._service = service
        self._tools = service.tools

    def new_state(self) -> State:
        """An empty state of the service's own class."""
        return self._service.state_class.empty()

    def populate(self, state: State, universe: Universe, rng: random.Random, start: datetime) -> None:
        """Fill an empty state as the service itself likes it."""
        self._service.populate(state, universe, rng, start)

    def execute(self, state: State, tool: str, arguments: Mapping[str, Any], context: Context) -> Outcome:
        """Run one call; a `ToolError` is an answer, any other exception a bug."""
        try:
            return Outcome(success(self._tools[tool].run(self._service(state, context), arguments)))
        except ToolError as error:
            return Outcome(failure(error))
        except Exception:
            return broken(traceback.format_exc(limit=-8))
