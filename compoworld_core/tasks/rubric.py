"""Rubrics: executable checks of an episode, and their outcome.

A criterion is a condition with a sentence for people. A rubric says only what matters to the task, so every order of
calls that reaches it passes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import Field

from compoworld_core.data import Data
from compoworld_core.services.conditions import Condition, holds
from compoworld_core.services.record import Row
from compoworld_core.worlds.world import RowEvent, World


class Criterion(Data):
    """One condition of a rubric.

    Attributes:
        holds_initially: Whether doing nothing already satisfies it (something that must stay as it is).
    """

    id: str
    description: str
    condition: Condition
    holds_initially: bool


class Rubric(Data):
    """The criteria of a task; all must hold for a full pass. An empty rubric is an error."""

    criteria: tuple[Criterion, ...] = Field(min_length=1)


class Verdict(Data):
    """The outcome of a rubric, criterion by criterion, in the rubric's order."""

    criteria: tuple[str, ...]
    passed: tuple[bool, ...]

    @property
    def success(self) -> bool:
        """Whether every criterion holds."""
        return all(self.passed)

    @property
    def score(self) -> float:
        """Share of criteria that hold."""
        return sum(self.passed) / len(self.passed)

    @property
    def failed(self) -> tuple[str, ...]:
        """Ids of the criteria that do not hold."""
        return tuple(name for name, ok in zip(self.criteria, self.passed, strict=True) if not ok)


@dataclass(frozen=True, slots=True)
class EpisodeEvidence:
    """What a rubric is checked against: the world as the episode left it, and the final answer."""

    world: World
    answer: str | None

    def rows(self, service: str, table: str) -> Iterator[Row]:
        """Rows as they are now."""
        return self.world.rows(service, table)

    def initial_rows(self, service: str, table: str) -> Iterator[Row]:
        """Rows as they were at the start."""
        return self.world.initial_rows(service, table)

    def changed_rows(self, service: str, table: str) -> Iterator[tuple[Row | None, Row | None]]:
        """(at the start, now) of every row that differs from the start."""
        return self.world.changed_rows(service, table)

    def events(self) -> Iterator[RowEvent]:
        """All committed row changes, in the order of the log."""
        return self.world.events()


def verify(rubric: Rubric, world: World, answer: str | None) -> Verdict:
    """Check every criterion against the world and the final answer."""
    evidence = EpisodeEvidence(world, answer)
    return Verdict(
        criteria=tuple(item.id for item in rubric.criteria),
        passed=tuple(holds(item.condition, evidence) for item in rubric.criteria),
    )


def first_failure(rubric: Rubric, world: World, answer: str | None) -> str | None:
    """Id of the first criterion that does not hold; None where all hold. Cheaper than a verdict."""
    evidence = EpisodeEvidence(world, answer)
    quickest = sorted(rubric.criteria, key=lambda item: item.condition.kind != "answer")
    return next((item.id for item in quickest if not holds(item.condition, evidence)), None)
