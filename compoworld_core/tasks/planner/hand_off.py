"""Hand-off: the person in charge, found elsewhere, is told the facts, and nobody else is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compoworld_core.services.schema import semantic_of
from compoworld_core.tasks.planner.filling import is_worth_stating, parameters_of
from compoworld_core.tasks.planner.matching import is_long_text
from compoworld_core.tasks.planner.plan import Plan
from compoworld_core.tasks.planner.writes import create_row, creations

_FEWEST_FACTS = 2
_COPIES = frozenset({"cc", "bcc"})


@dataclass(frozen=True)
class HandOff:
    """Create a row with a recipient and a text that states facts."""

    letter = "H"

    def attempts(self, plan: Plan, service: str) -> list[Any]:
        """(writing, its recipient, who that is) combinations, the least used people first."""
        facts = [item for item in plan.usable() if item.service != service and is_worth_stating(item)]
        if len(facts) <= _FEWEST_FACTS:
            return []
        people = [
            item
            for item in plan.usable()
            if item.semantic == "email" and item.service != service and item.field and not item.is_new
        ]
        found = []
        for writing in creations(plan, service):
            parameters = parameters_of(plan, service, writing)
            texts = [name for name in writing.copies if is_long_text(parameters[name])]
            for name in writing.copies:
                if texts and semantic_of(parameters[name]) == "email" and name not in _COPIES:
                    found += [(writing, name, person) for person in people]
        plan.rng.shuffle(found)
        return sorted(found, key=lambda item: plan.uses[item[2].name])

    def apply(self, plan: Plan, service: str, attempt: Any) -> bool:
        """Add the creation, with facts in its text."""
        writing, name, person = attempt
        if not plan.is_plausible(service, writing.table, writing.copies[name], person.value):
            return False
        written = create_row(plan, service, writing, {name: person}, fewest_facts=_FEWEST_FACTS)
        if written is None or len(written.mentions) < _FEWEST_FACTS:
            return False
        plan.capabilities.add("hand_off")
        plan.clauses[-1] += plan.rng.choice((" Nobody else is to get it.", " Send it to nobody else."))
        return True
