"""Policy: rules say which code goes with a property of a row that was looked up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from compoworld_core.tasks.planner.plan import Plan
from compoworld_core.tasks.planner.rules import cases_of, consult, lines, quality_of, shelves, traits

_CODES = tuple(f"{letter}-{number}" for letter in "KMQRTVX" for number in range(11, 99, 7))


@dataclass(frozen=True)
class Policy:
    """Read which code the rules in force give for a property of a row that was looked up."""

    letter = "P"

    def attempts(self, plan: Plan, service: str) -> list[Any]:
        """(shelf, property) combinations, the least used properties first."""
        return [(shelf, trait) for trait in traits(plan) for shelf in shelves(plan, service)]

    def apply(self, plan: Plan, service: str, attempt: Any) -> bool:
        """Plant both versions of the rules and read the one in force."""
        shelf, trait = attempt
        cases = cases_of(plan, trait)
        codes = plan.rng.sample(_CODES, 2 * len(cases))
        current = dict(zip(cases, codes[: len(cases)], strict=True))
        outdated = dict(zip(cases, codes[len(cases) :], strict=True))
        quality = quality_of(plan, trait)

        def tell(outcomes: Mapping[str, str]) -> str:
            opening = f"The code to use depends on the {quality}."
            return "\n".join([opening, *lines(outcomes), "In any other case, ask first."])

        rules = consult(plan, service, shelf, trait, tell, current, outdated)
        if rules is None:
            return False
        value = str(trait.value)
        topic = rules.topic.lower()
        rules.known(plan, service, f"{topic} code", current[value], outdated[value], semantic="policy_code")
        plan.clauses.append(
            plan.rng.choice(
                (
                    f"Which {topic} code applies depends on {trait.phrase}: read our {topic} rules in "
                    f"{plan.place(service)}, and use the version that is in force.",
                    f"Our {topic} rules in {plan.place(service)} say which {topic} code goes with "
                    f"{trait.phrase}; use the version that is in force.",
                )
            )
        )
        return True
