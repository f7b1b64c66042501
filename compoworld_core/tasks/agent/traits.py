"""Traits: what a task demands, read off its solution as it ran. An author's own word for it is not asked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from compoworld_core.services.conditions import equal
from compoworld_core.services.schema import semantic_of
from compoworld_core.tasks.bindings import DERIVING, binding_operator, steps_read
from compoworld_core.tasks.play import Played
from compoworld_core.tasks.task import InformationEdge, Solution, Step
from compoworld_core.worlds.recipe import Update
from compoworld_core.worlds.world import World

_MANY = 3
_FEWEST_FACTS = 2


def capabilities(
    solution: Solution, reference: Played, world: World, edges: Sequence[InformationEdge]
) -> tuple[str, ...]:
    """What whoever solves the task has to be able to do."""
    read = Reading(solution, reference, world)
    shown = {
        "join": read.joins(edges),
        "fan_out": max(Counter(step.tool for step in read.writes).values(), default=0) >= _MANY,
        "derived_value": bool(read.operators & set(DERIVING)),
        "latest": read.has_superlative,
        "policy_branch": "$choose" in read.operators or read.has_looked_up_fact,
        "stale_reread": bool(read.reread),
        "guard": read.is_guarded,
        "hand_off": read.hands_off,
        "untouched": bool(solution.temptations) and not read.is_guarded,
    }
    return tuple(sorted(name for name, holds in shown.items() if holds))


def shape(capabilities: Sequence[str], solution: Solution) -> str:
    """What kind of task it is: what it demands, and how many writes it makes."""
    writes = sum(step.effect == "write" for step in solution.steps)
    return f"{'+'.join(capabilities) or 'plain'}-{writes}"


class Reading:
    """A solution, read for what it shows."""

    def __init__(self, solution: Solution, reference: Played, world: World) -> None:
        self._solution = solution
        self._reference = reference
        self._world = world
        self._steps = {step.id: step for step in solution.steps}
        used = [*(step.arguments for step in solution.steps), *(fact.value for fact in solution.answer)]
        self._bindings = [found for value in used for found in _bindings(value, solution.values)]
        self.writes = [step for step in solution.steps if step.effect == "write"]
        self.operators = {operator for operator, _ in self._bindings}
        self.reread = tuple(self._read_again())

    @property
    def has_superlative(self) -> bool:
        """Whether something is the most or the least of several."""
        return any(operator == "$pick" and {"most", "least"} & set(inside) for operator, inside in self._bindings)

    @property
    def has_looked_up_fact(self) -> bool:
        """Whether which fact of a text applies depends on something that was read."""
        return any(operator == "$fact" and isinstance(inside["name"], dict) for operator, inside in self._bindings)

    @property
    def is_guarded(self) -> bool:
        """Whether what is done follows from what the second reading shows, or must not be done after it."""
        again = set(self.reread)
        if any(item.after in again for item in self._solution.temptations):
            return True
        return any(
            operator == "$choose" and again & steps_read(inside["on"], self._solution.values)
            for operator, inside in self._bindings
        )

    @property
    def hands_off(self) -> bool:
        """Whether somebody who was looked up elsewhere is told facts from elsewhere."""
        return any(self._tells(step) for step in self.writes)

    def joins(self, edges: Sequence[InformationEdge]) -> bool:
        """Whether rows are found by what another service knows."""
        return any(
            edge.source_service != edge.target_service
            and edge.target in self._steps
            and self._steps[edge.target].effect == "read"
            for edge in edges
        )

    def _read_again(self) -> Iterator[str]:
        """Reads that serve, and show what a reaction has changed since another read showed it."""
        used = [*(step.arguments for step in self._solution.steps), *(fact.value for fact in self._solution.answer)]
        taken = steps_read(used, self._solution.values)
        reads = [step for step in self._solution.steps if step.effect == "read"]
        moved = [item for reaction in self._world.recipe.reactions for item in reaction.apply]
        for update in (item for item in moved if isinstance(item, Update)):
            seen: list[dict[str, Any]] = []
            for step in (item for item in reads if item.service == update.service):
                rows = list(_rows(self._reference.envelopes.get(step.id), update.key))
                fresh = any(
                    equal(row.get(name), value) and name in old and not equal(old[name], value)
                    for row in rows
                    for old in seen
                    for name, value in update.values.items()
                )
                if fresh and step.id in taken:
                    yield step.id
                seen += rows

    def _tells(self, step: Step) -> bool:
        properties = self._world.services[step.service].package.tool(step.tool).properties
        people = [name for name in step.arguments if semantic_of(properties.get(name)) == "email"]
        if not any(self._from_elsewhere(step.arguments[name], step) for name in people):
            return False
        parts = [
            part
            for name, value in step.arguments.items()
            if name not in people
            for part in (value["$text"] if binding_operator(value) == "$text" else [value])
        ]
        return sum(self._from_elsewhere(part, step) for part in parts) >= _FEWEST_FACTS

    def _from_elsewhere(self, value: Any, step: Step) -> bool:
        sources = steps_read(value, self._solution.values)
        return any(self._steps[source].service != step.service for source in sources)


def _bindings(value: Any, values: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """(operator, what it is applied to) of every binding in a value, named values followed."""
    operator = binding_operator(value)
    if operator is not None:
        inside = value[operator]
        yield operator, inside
        yield from _bindings(values.get(inside) if operator == "$value" else inside, values)
    elif isinstance(value, dict):
        for item in value.values():
            yield from _bindings(item, values)
    elif isinstance(value, list):
        for item in value:
            yield from _bindings(item, values)


def _rows(value: Any, key: str) -> Iterator[dict[str, Any]]:
    """Objects within an answer that have an id."""
    if isinstance(value, dict):
        if value.get("id") == key:
            yield value
        for item in value.values():
            yield from _rows(item, key)
    elif isinstance(value, list):
        for item in value:
            yield from _rows(item, key)
