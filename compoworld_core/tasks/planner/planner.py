"""The planner: from a walk to a candidate task, by adding one ingredient per visit until the walk is done."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compoworld_core.services.conditions import equal
from compoworld_core.services.drawing import Drawing
from compoworld_core.services.facts import Fact, states
from compoworld_core.tasks.affordances import Affordances
from compoworld_core.tasks.bindings import bindings_in
from compoworld_core.tasks.gates import Candidate
from compoworld_core.tasks.planner.criteria import criteria_of, decoy_of
from compoworld_core.tasks.planner.ingredients import Ingredient, candidates, shape, wishes
from compoworld_core.tasks.planner.plan import Known, Plan
from compoworld_core.tasks.planner.wording import phrases
from compoworld_core.tasks.rubric import Rubric
from compoworld_core.tasks.task import AnswerFact, Solution
from compoworld_core.worlds.world import World

_TRIES = 6
_MOST_FACTS = 5


@dataclass(frozen=True)
class Planned:
    """A candidate, with the plants and reactions that its world needs."""

    plan: Plan
    candidate: Candidate
    shape: str


class DeadEnd(Exception):
    """No ingredient fits at some point of the walk."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def plan_task(
    world: World,
    affordances: Mapping[str, Affordances],
    visits: Sequence[str],
    rng: random.Random,
    wished: Sequence[Ingredient] | None = None,
) -> Planned:
    """Compose a plan whose steps visit the services in this order.

    Args:
        world: The services as they are before anything is planted.
        visits: A service per visit; neighbours are the same only where one service is all there is.
        wished: Special ingredients to add where the services allow; drawn, if left out.

    Raises:
        DeadEnd: The services do not offer what a plan along these visits needs.
    """
    source = Drawing(world.universe, rng, world.recipe.start_time)
    plan = Plan(world=world.fork(), affordances=affordances, drawing=source, rng=rng)
    wished = wishes(len(visits), rng) if wished is None else wished
    for place, service in enumerate(visits):
        plan.ahead = tuple(visits[place + 1 :])
        plan = _visit(plan, service, candidates(plan, wished, len(visits) - place))
    reported = _reported(plan)
    solution = Solution(
        values=_used_values(plan, reported),
        steps=tuple(plan.steps),
        answer=tuple(AnswerFact(label=_headline(item.phrase), value=item.binding) for item in reported),
        temptations=tuple(plan.temptations),
    )
    candidate = Candidate(
        instruction=_instruction(plan, reported),
        solution=solution,
        rubric=Rubric(criteria=criteria_of(plan, reported)),
        walk=tuple(service for place, service in enumerate(visits) if not place or visits[place - 1] != service),
    )
    return Planned(plan, candidate, shape(plan))


def _visit(plan: Plan, service: str, ingredients: Sequence[Ingredient]) -> Plan:
    for ingredient in ingredients:
        for way in ingredient.attempts(plan, service)[:_TRIES]:
            branch = plan.branch()
            if ingredient.apply(branch, service, way):
                branch.visits.append(ingredient.letter)
                return branch
    raise DeadEnd(f"nothing to do in {service} after {''.join(plan.visits) or 'the start'}")


def _reported(plan: Plan) -> list[Known]:
    """What the final answer states: at least one value of every row whose reading nothing else needed."""
    reported: list[Known] = list(plan.told)
    text = " ".join(plan.clauses)
    untold = [item for item in plan.known if not states(text, Fact(value=str(item.value)))]
    if any(item not in untold for item in plan.told):
        raise DeadEnd("the instruction tells what is to be found out")
    for found in plan.found:
        if found.known and not any(plan.uses[item.name] or item in reported for item in found.known):
            fresh = [item for item in untold if item in found.known and not item.is_id and item.name not in plan.stale]
            if not fresh:
                raise DeadEnd("a reading serves nothing")
            reported.append(_telling(plan, fresh))
    reported += [item for item in plan.unused() if item.is_derived and item not in reported]
    if len(reported) > _MOST_FACTS:
        raise DeadEnd("too much to report")
    new_ids = [item for item in plan.known if item.is_new and not plan.uses[item.name]]
    others = [item for item in plan.unused() if item in untold and item not in reported]
    room = max(0, 3 - len(reported))
    reported += plan.rng.sample(new_ids, min(1, len(new_ids), room))
    room = max(0, 3 - len(reported))
    reported += [_telling(plan, others)] if others and room else []
    if not any(_is_confusable(plan, item) for item in reported):
        telling = [item for item in untold if item.name not in plan.stale and _is_confusable(plan, item)]
        reported += [_telling(plan, telling)] if telling else []
    if not reported:
        raise DeadEnd("nothing to report")
    if len({item.phrase for item in reported}) < len(reported):
        raise DeadEnd("two facts of the report go by the same name")
    return reported


def _telling(plan: Plan, values: Sequence[Known]) -> Known:
    """One of the values, preferably one whose wrong reading would show."""
    sure = [item for item in values if decoy_of(plan, item) is not None]
    alone = [item for item in sure or values if _is_alone(plan, item)]
    return plan.rng.choice(alone or sure or list(values))


def _is_confusable(plan: Plan, known: Known) -> bool:
    """Whether rows show something else that an answer must not state, so that listing everything is no answer."""
    return not known.is_derived and bool(known.field) and decoy_of(plan, known) is not None


def _is_alone(plan: Plan, known: Known) -> bool:
    """Whether no other row has the same value, so that reading another row would show."""
    rows = plan.rows(known.service, known.table)
    return sum(equal(row.get(known.field), known.value) for row in rows) <= 1


def _used_values(plan: Plan, reported: Sequence[Known]) -> dict[str, Any]:
    """The named values that steps, the answer, or other used values refer to."""
    used: dict[str, Any] = {}
    waiting: list[Any] = [step.arguments for step in (*plan.steps, *(item.step for item in plan.temptations))]
    waiting += [item.binding for item in reported]
    while waiting:
        for _, binding in bindings_in(waiting.pop()):
            name = binding.get("$value")
            if name is not None and name not in used:
                used[name] = plan.values[name]
                waiting.append(plan.values[name])
    return {name: binding for name, binding in plan.values.items() if name in used}


def _headline(phrase: str) -> str:
    words = phrase.removeprefix("the ")
    return f"{words[0].upper()}{words[1:]}"


def _instruction(plan: Plan, reported: Sequence[Known]) -> str:
    end = plan.rng.choice(("When everything is done, tell me", "Finally, report", "When you are done, let me know"))
    return " ".join([*plan.clauses, f"{end} {phrases(reported)}."])
