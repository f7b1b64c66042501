"""The trial of one tool: its normal calls, its answers to hostile ones, and where they are compared."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, Final, Literal, TypeVar

from compoworld_core.services.arguments import Arguments
from compoworld_core.services.running import CallResult, RunningService
from compoworld_core.services.schema import semantic_of
from compoworld_core.specs.model import ToolSpec
from compoworld_core.synthesis.bench import Bench, World, scalars
from compoworld_core.synthesis.cases import Case, generate_cases

T = TypeVar("T")

SAMPLES: Final = 3
"""Successful normal calls that are kept."""

_READ_SAMPLES = 6


@dataclass(frozen=True)
class Sample:
    """A normal call that succeeded."""

    arguments: Mapping[str, Any]
    result: CallResult

    @cached_property
    def weight(self) -> int:
        """How much it shows: changes first, then values in the answer."""
        return 1000 * bool(self.result.changes) + min(sum(1 for _ in scalars(self.result.envelope["data"])), 999)


@dataclass(frozen=True)
class Tried:
    """A case and how the tool answered it."""

    case: Case
    result: CallResult
    changed_state: bool
    """Whether the state was afterwards not as before."""


@dataclass
class Trial:
    """One tool under test.

    Attributes:
        world: Where its normal calls succeed.
        samples: Successful normal calls, the most telling first.
        refusals: Error code by how often a normal call got it.
        peers: The trials of all tools of the service, this one included.
    """

    bench: Bench
    tool: ToolSpec
    world: World
    rng: random.Random
    samples: list[Sample] = field(default_factory=list)
    refusals: dict[str, int] = field(default_factory=dict)
    peers: tuple[Trial, ...] = ()
    _studies: dict[Any, Any] = field(default_factory=dict)

    @cached_property
    def arguments(self) -> Arguments:
        """The source of the tool's arguments in its world."""
        return Arguments(self.tool, self.world.vocabulary, self.rng)

    @property
    def name(self) -> str:
        """The tool's name."""
        return self.tool.name

    @cached_property
    def effect(self) -> Literal["read", "write"]:
        """The declared effect, else the one that was seen."""
        if self.tool.effect != "unknown":
            return self.tool.effect
        return "write" if any(sample.result.changes for sample in self.samples) else "read"

    @cached_property
    def entities(self) -> frozenset[str]:
        """Entities whose ids the tool takes."""
        words = (semantic_of(part) or "" for part in self.tool.properties.values())
        return frozenset(word.removeprefix("id:") for word in words if word.startswith("id:"))

    @property
    def is_convincing(self) -> bool:
        """Whether a normal call succeeded and wrote something, or a read's answer held something."""
        if self.tool.effect == "write":
            return any(sample.result.changes for sample in self.samples)
        return any(item != 0 for sample in self.samples for item in scalars(sample.result.envelope["data"]))

    def shared(self, study: Callable[[Trial], T]) -> T:
        """A study of this tool that several checks draw on, made once."""
        if study not in self._studies:
            self._studies[study] = study(self)
        return self._studies[study]  # type: ignore[no-any-return]

    def call(self, arguments: Mapping[str, Any]) -> CallResult:
        """Call the tool in a fork of its world."""
        return self.bench.call(self.world.running.fork(), self.name, arguments)

    def sample(self, attempts: int) -> None:
        """Make normal calls until enough have succeeded, or that many were made."""
        found: list[Sample] = []
        for arguments in islice(self.arguments.candidates(), attempts):
            result = self.call(arguments)
            if result.succeeded:
                found.append(Sample(arguments, result))
            else:
                code = result.envelope["error"]["code"]
                self.refusals[code] = self.refusals.get(code, 0) + 1
            self.samples = sorted(found, key=lambda sample: -sample.weight)[:SAMPLES]
            if len(found) >= (SAMPLES if self.tool.effect == "write" else _READ_SAMPLES) and self.is_convincing:
                break

    def sample_in(self, world: World, attempts: int) -> None:
        """Look for normal calls in another world, and stay there if some convince."""
        former = self.world, self.samples
        self.world = world
        self.__dict__.pop("arguments", None)
        try:
            self.sample(attempts)
        finally:
            if not self.is_convincing:
                self.world, self.samples = former
                self.__dict__.pop("arguments", None)

    @cached_property
    def tried(self) -> tuple[Tried, ...]:
        """All generated cases with their answers."""
        normal = self.samples[0].arguments if self.samples else next(self.arguments.candidates(), {})
        return tuple(self._try(case) for case in generate_cases(self.tool.parameters, normal))

    def _try(self, case: Case) -> Tried:
        running = self.world.running.fork()
        for _ in range(case.times):
            before = overlay(running)
            result = self.bench.call(running, self.name, case.arguments)
        return Tried(case, result, overlay(running) != before)


def overlay(running: RunningService) -> str:
    """Everything of a state that a call could have changed, as text."""
    state = running.state
    parts = {name: (table.overlay_rows(), table.counter) for name, table in state.tables.items()}
    return json.dumps([parts, state.writes, len(state.journal)], sort_keys=True, default=str)


def shown(result: CallResult) -> str:
    """A call's answer and changes, as text that equals another's only if both do."""
    changes = [(change.table.name, change.key, change.before_row, change.after_row) for change in result.changes]
    return json.dumps([result.envelope, changes], sort_keys=True, default=str)
