"""Playing a solution: run its steps on a world and judge what comes of it.

Gates, mutants and the planner all play solutions here, straight on the world; the oracle policy replays the same steps
through the gateway.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compoworld_core.services.envelope import Envelope
from compoworld_core.tasks.bindings import Answers, Unresolved
from compoworld_core.tasks.task import Solution, Step
from compoworld_core.worlds.world import World


@dataclass
class Played:
    """What a solution did.

    Attributes:
        world: As the steps left it.
        envelopes: Answers by step id; a step whose bindings could not be evaluated has none.
        arguments: Evaluated arguments by step id.
        answer: The final answer.
        facts: Evaluated answer facts, None where one could not be evaluated.
    """

    world: World
    envelopes: dict[str, Envelope]
    arguments: dict[str, dict[str, Any]]
    answer: str
    facts: list[Any]

    @property
    def refused(self) -> tuple[str, ...]:
        """Steps that were not made or not answered with success."""
        return tuple(step for step in self.arguments if not self.envelopes.get(step, {}).get("success"))


def play(solution: Solution, world: World) -> Played:
    """Run every step on the world, in the solution's order, and put the answer together."""
    answers = Answers(planted_facts(world), solution.values)
    names = {(tool.service, tool.spec.name): name for name, tool in world.tools.items()}
    played = Played(world, {}, {}, "", [])
    for step in solution.steps:
        envelope = play_step(step, world, answers, names, played.arguments)
        if envelope is not None:
            played.envelopes[step.id] = envelope
    lines = []
    for fact in solution.answer:
        try:
            value = answers.evaluate(fact.value)
        except Unresolved:
            played.facts.append(None)
            continue
        played.facts.append(value)
        lines.append(f"{fact.label}: {value}")
    played.answer = "\n".join(lines)
    return played


def play_step(
    step: Step,
    world: World,
    answers: Answers,
    names: Mapping[tuple[str, str], str],
    arguments: dict[str, dict[str, Any]],
) -> Envelope | None:
    """Run one step; None where its arguments point at something that is not there."""
    arguments[step.id] = {}
    try:
        evaluated = answers.evaluate(step.arguments)
    except Unresolved:
        return None
    arguments[step.id] = evaluated
    envelope = world.call(names[step.service, step.tool], evaluated).envelope
    answers.add(step.id, step.service, envelope)
    return envelope


def planted_facts(world: World) -> dict[tuple[str, str], Mapping[str, str]]:
    """Facts of planted texts by (service, row id)."""
    return {(service, key): facts for (service, _, key), facts in world.facts.items()}
