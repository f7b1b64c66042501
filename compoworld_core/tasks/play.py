"""Playing a solution: run its steps on a world and judge what comes of it.

Gates and quality checks play solutions here, straight on the world; the oracle policy replays the same steps through
the gateway. Dozens of variants of one solution are played on one world, and most of their calls are the same: a stage
remembers every call that was made on it, and makes none twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
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
        unresolved: Why a step or a fact of the answer could not be evaluated, by step id or label.
    """

    world: World
    envelopes: dict[str, Envelope]
    arguments: dict[str, dict[str, Any]]
    answer: str
    facts: list[Any]
    unresolved: dict[str, str] = field(default_factory=dict)

    @property
    def refused(self) -> tuple[str, ...]:
        """Steps that were not made or not answered with success."""
        return tuple(step for step in self.arguments if not self.envelopes.get(step, {}).get("success"))


@dataclass(eq=False)
class _Scene:
    """A state of the world that some calls lead to, and what was answered there.

    Attributes:
        reads: Answers of reads by service; shared with all scenes in which the service has the same rows.
        writes: (answer, scene that follows) of writes.
    """

    world: World
    reads: Mapping[str, dict[str, Envelope]]
    writes: dict[str, tuple[Envelope, _Scene]] = field(default_factory=dict)


class Stage:
    """Plays solutions, each from the same start, without altering the world that it is given."""

    def __init__(self, start: World) -> None:
        self._opening = _Scene(start.fork(), {name: {} for name in start.services})
        self._facts = planted_facts(start)
        self._tools = {(tool.service, tool.spec.name): tool for tool in start.tools.values()}

    def play(self, solution: Solution) -> Played:
        """Run every step, in the solution's order, and put the answer together.

        The world of what was played is the stage's own: to be read, not to be acted on.
        """
        answers = Answers(self._facts, solution.values)
        scene = self._opening
        envelopes: dict[str, Envelope] = {}
        arguments: dict[str, dict[str, Any]] = {}
        unresolved: dict[str, str] = {}
        for step in solution.steps:
            arguments[step.id] = {}
            try:
                evaluated = answers.evaluate(step.arguments)
            except Unresolved as reason:
                unresolved[step.id] = str(reason)
                continue
            arguments[step.id] = evaluated
            envelope, scene = self._call(scene, step, evaluated)
            envelopes[step.id] = envelope
            answers.add(step.id, step.service, envelope)
        facts: list[Any] = []
        lines: list[str] = []
        for fact in solution.answer:
            try:
                facts.append(answers.evaluate(fact.value))
            except Unresolved as reason:
                unresolved[fact.label] = str(reason)
                facts.append(None)
                continue
            lines.append(f"{fact.label}: {facts[-1]}")
        return Played(scene.world, envelopes, arguments, "\n".join(lines), facts, unresolved)

    def _call(self, scene: _Scene, step: Step, arguments: Mapping[str, Any]) -> tuple[Envelope, _Scene]:
        call = f"{step.tool} {json.dumps(arguments, sort_keys=True)}"
        answered = scene.reads[step.service].get(call)
        if answered is not None:
            return answered, scene
        made = scene.writes.get(f"{step.service} {call}")
        if made is not None:
            return made
        tool = self._tools[step.service, step.tool]
        world = scene.world if tool.spec.effect == "read" else scene.world.fork()
        before = len(world.log)
        envelope = world.call(tool.name, arguments).envelope
        if len(world.log) == before:
            scene.reads[step.service][call] = envelope
            return envelope, scene
        moved = {entry.service for entry in world.log[before:]}
        reads = {name: {} if name in moved else known for name, known in scene.reads.items()}
        scene.writes[f"{step.service} {call}"] = envelope, _Scene(world, reads)
        return scene.writes[f"{step.service} {call}"]


def play(solution: Solution, world: World) -> Played:
    """Play one solution from where the world is; the world is not altered."""
    return Stage(world).play(solution)


def planted_facts(world: World) -> dict[tuple[str, str], Mapping[str, str]]:
    """Facts of planted texts by (service, row id)."""
    return {(service, key): facts for (service, _, key), facts in world.facts.items()}
