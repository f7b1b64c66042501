"""The crafted task of the room's tests as an agent would submit it, and a bench to submit it at."""

from __future__ import annotations

import json
import random
from typing import Any

from compoworld_core.llm.messages import ToolCall
from compoworld_core.specs.model import JsonObject
from compoworld_core.storage.digest import to_plain
from compoworld_core.tasks.agent.trial import TryingRoom
from compoworld_core.tasks.agent.workbench import Workbench
from compoworld_core.tasks.sampler import Draw
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.world import World
from tests.tasks.crafted import candidate

CORE = ("crm", "mail")


def bench_for(world: World, catalogue: Catalogue, core: tuple[str, ...] = CORE, submissions: int = 10) -> Workbench:
    """A bench at which small tasks are made."""
    draw = Draw(0, "easy", "sft", core, ("crm", "mail", "crm"), world.recipe, random.Random(0))
    return Workbench(TryingRoom(draw, world.recipe, catalogue), submissions)


def submission(world: World, **changed: Any) -> JsonObject:
    """The crafted task; `solution__steps` and the like replace a part within."""
    base = candidate(world)
    whole: JsonObject = {
        "instruction": base.instruction,
        "plants": [],
        "reactions": [],
        "solution": {
            "values": to_plain(base.solution.values),
            "steps": [{"id": step.id, "tool": step.tool, "arguments": step.arguments} for step in base.solution.steps],
            "answer": to_plain(base.solution.answer),
            "temptations": [],
        },
        "criteria": [
            {"id": item.id, "description": item.description, "condition": to_plain(item.condition)}
            for item in base.rubric.criteria
        ],
    }
    whole = json.loads(json.dumps(whole))
    for path, value in changed.items():
        *above, last = path.split("__")
        place: Any = whole
        for part in above:
            place = place[int(part)] if isinstance(place, list) else place[part]
        place[int(last) if isinstance(place, list) else last] = value
    return whole


def asked(bench: Workbench, name: str, arguments: JsonObject | str) -> JsonObject:
    """The bench's answer to a call."""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    answer: JsonObject = json.loads(bench.answer(ToolCall(id="call_1", name=name, arguments=text)))
    return answer
