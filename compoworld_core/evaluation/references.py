"""Reference policies: what a score of the held-out suite lies between.

The oracle shows that a task can be done, doing nothing shows what is true anyway, and a random agent shows what luck
reaches that knows every tool and every id but not what it is asked for.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from compoworld_core.llm.messages import AssistantMessage, Message, ToolCall
from compoworld_core.rollouts.oracle import oracles
from compoworld_core.rollouts.policy import Policy, PolicyFactory
from compoworld_core.services.drawing import Drawing
from compoworld_core.specs.model import JsonObject
from compoworld_core.tasks.task import Task
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.world import BoundTool, World, open_world

_CALLS: Final = 12
"""Calls of a random agent, about as many as a solution of the profile `standard` has."""

_DONE: Final = AssistantMessage(content="Done.")


class Idle:
    """Says that the work is done, without doing any."""

    name = "no-op"

    async def respond(self, messages: Sequence[Message], tools: Sequence[JsonObject]) -> AssistantMessage:
        """See `Policy.respond`."""
        return _DONE


class RandomAgent:
    """Calls tools at random, with arguments that their schemas allow and ids that exist.

    Args:
        world: As the episode's is at its start.
        seed: Every draw follows from it.
    """

    name = "random"

    def __init__(self, world: World, seed: str) -> None:
        self._world = world
        self._seed = seed
        self._ids = {
            name: {
                schema.entity: [row["id"] for row in world.rows(name, table)]
                for table, schema in service.package.tables.tables.items()
            }
            for name, service in world.services.items()
        }

    async def respond(self, messages: Sequence[Message], tools: Sequence[JsonObject]) -> AssistantMessage:
        """See `Policy.respond`."""
        turn = sum(isinstance(message, AssistantMessage) for message in messages)
        if turn == _CALLS:
            return _DONE
        rng = random.Random(f"{self._seed}/{turn}")
        drawable = rng.sample(list(self._world.tools.values()), len(self._world.tools))
        drawn = next(
            ((tool.name, found) for tool in drawable if (found := self._arguments(tool, rng)) is not None), None
        )
        if drawn is None:
            return _DONE
        name, arguments = drawn
        call = ToolCall.of(f"call_{turn + 1}", "call_tool", {"tool_name": name, "arguments": arguments})
        return AssistantMessage(tool_calls=(call,))

    def _arguments(self, tool: BoundTool, rng: random.Random) -> JsonObject | None:
        """Arguments that the tool's schema allows; None where none could be drawn."""
        world = self._world
        try:
            return Drawing(world.universe, rng, world.recipe.start_time, self._ids[tool.service]).object(
                tool.spec.parameters
            )
        except ValueError:
            return None


def _idle(catalogue: Catalogue, seed: int) -> PolicyFactory:
    return lambda task, trial: Idle()


def _random(catalogue: Catalogue, seed: int) -> PolicyFactory:
    def agent(task: Task, trial: int) -> Policy:
        return RandomAgent(open_world(task.recipe, catalogue), f"random/{seed}/{task.id}/{trial}")

    return agent


def _oracle(catalogue: Catalogue, seed: int) -> PolicyFactory:
    return oracles(catalogue)


REFERENCES: Final[Mapping[str, Callable[[Catalogue, int], PolicyFactory]]] = {
    "oracle": _oracle,
    "no-op": _idle,
    "random": _random,
}
"""Reference policies by name, each made from the catalogue that worlds are opened with, and a seed."""
