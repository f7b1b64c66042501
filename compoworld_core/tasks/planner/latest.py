"""Latest: the most recent, the earliest, the largest of the rows that belong to something."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from compoworld_core.services.conditions import equal
from compoworld_core.tasks.bindings import Unresolved, rank
from compoworld_core.tasks.planner.groups import Group, groups
from compoworld_core.tasks.planner.lookup import learn
from compoworld_core.tasks.planner.plan import Plan
from compoworld_core.tasks.planner.wording import label, noun

_FEWEST = 3
_ORDERED = {"date": ("latest", "earliest"), "timestamp": ("latest", "earliest"), "money": ("highest", "lowest")}


@dataclass(frozen=True)
class Latest:
    """Find the row with the most, or the least, in a field, and learn more from it."""

    letter = "S"

    def attempts(self, plan: Plan, service: str) -> list[Any]:
        """(group, field, `most` or `least`) combinations, in random order."""
        found = [
            (group, field, which)
            for group in groups(plan, service)
            for field, word in plan.schema(service, group.table).semantics.items()
            if word in _ORDERED and field in group.reading.shows and field != group.field
            for which in ("most", "most", "least")
        ]
        plan.rng.shuffle(found)
        return found

    def apply(self, plan: Plan, service: str, attempt: Any) -> bool:
        """List the rows and go by the one that stands out."""
        group, field, which = attempt
        if not group.is_settled(plan):
            return False
        for _ in range(_FEWEST):
            if len(group.rows(plan)) >= _FEWEST:
                break
            if group.add(plan) is None:
                return False
        ranked = sorted(_ranked(plan, group, field), key=lambda item: item[0], reverse=which == "most")
        if len(ranked) < 2 or len(ranked) < len(group.rows(plan)) or ranked[0][0] == ranked[1][0]:
            return False
        best, second = ranked[0][1], ranked[1][1]
        schema = plan.schema(service, group.table)
        entity = noun(schema.entity)
        called = plan.noun_for(service, group.table, best["id"])
        read = group.read(plan, called)
        if read is None:
            return False
        found, selection = read
        pick = {**selection, which: field}
        shown = learn(plan, service, group.reading, pick, best, found.step, called, second)
        known = tuple(item for item in shown if item.field != field)
        try:
            if not all(equal(plan.answers.evaluate(item.binding), item.value) for item in known):
                return False
        except Unresolved:
            return False
        if not any(not item.is_id for item in known):
            return False
        plan.known.extend(known)
        plan.found[-1] = replace(found, known=known, row=best["id"])
        plan.capabilities.add("latest")
        word = _ORDERED[schema.semantics[field]][which == "least"]
        asked = f"the {word} {label(field, schema.semantics[field])}"
        place, clue = plan.place(service), group.key.clue
        if called == entity:
            plan.clauses.append(
                plan.rng.choice(
                    (
                        f"In {place}, find the {entity} {clue}; there is more than one, so take the one with {asked}.",
                        f"Find the {entity} with {asked} in {place}, only counting those {plural(clue)}.",
                    )
                )
            )
        else:
            plan.clauses.append(
                f"In {place}, find another {entity}: of those {plural(clue)}, the one with {asked}; below it is called "
                f"the {called}."
            )
        return True


def plural(clue: str) -> str:
    """A clue about one row, said of several."""
    return clue.replace("that belongs to", "that belong to", 1)


def _ranked(plan: Plan, group: Group, field: str) -> Iterator[tuple[Any, Any]]:
    return ((rank(row[field]), row) for row in group.rows(plan) if row.get(field) is not None)
