"""Spare: of rows that match a careless reading, one is changed, and the others explicitly stay as they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from compoworld_core.services.conditions import equal
from compoworld_core.tasks.affordances import Writing
from compoworld_core.tasks.bindings import Unresolved
from compoworld_core.tasks.planner.filling import fill, with_choice
from compoworld_core.tasks.planner.groups import Group, divided_groups
from compoworld_core.tasks.planner.lookup import learn
from compoworld_core.tasks.planner.narrowing import narrow, near_miss
from compoworld_core.tasks.planner.plan import Guarded, Plan
from compoworld_core.tasks.planner.wording import label, noun, spoken
from compoworld_core.tasks.planner.writes import asking, changes, commit_write
from compoworld_core.tasks.task import Step, Temptation


@dataclass(frozen=True)
class Spare:
    """Change one row of a group and none of those that resemble it."""

    letter = "K"

    def attempts(self, plan: Plan, service: str) -> list[Any]:
        """(group, writing) combinations, in random order."""
        found = [
            (group, writing)
            for group in divided_groups(plan, service)
            for writing in changes(plan, service)
            if writing.table == group.table
        ]
        plan.rng.shuffle(found)
        return found

    def apply(self, plan: Plan, service: str, attempt: tuple[Group, Writing]) -> bool:
        """List the rows, and change the one that is meant."""
        group, writing = attempt
        narrowed = narrow(plan, group, 1, 1)
        if narrowed is None or writing.key is None or len(narrowed.missed) > 3:
            return False
        row = narrowed.meant[0]
        if any(row.get(field) != value for field, value in writing.needs.items()):
            return False
        entity = noun(plan.schema(service, group.table).entity)
        called = plan.noun_for(service, group.table, row["id"])
        read = group.read(plan, called)
        if read is None:
            return False
        found, selection = read
        selection = {**selection, "where": {**selection["where"], narrowed.field: narrowed.value}}
        known = tuple(learn(plan, service, group.reading, selection, row, found.step, called, narrowed.missed[0]))
        target = next((item for item in known if item.field == "id"), None)
        try:
            if target is None or not all(equal(plan.answers.evaluate(item.binding), item.value) for item in known):
                return False
        except Unresolved:
            return False
        plan.known.extend(known)
        plan.found[-1] = replace(found, known=known, row=row["id"])
        plan.uses[target.name] += 1
        filling = fill(plan, service, writing, {writing.key: target.binding}, row["id"])
        if filling is None:
            return False
        filling = with_choice(plan, service, writing, filling, row["id"])
        near = near_miss(plan, writing, filling, narrowed, writing.key)
        written = commit_write(plan, service, writing, filling, row["id"])
        asked = None if written is None else asking(writing, filling, written, f"the {called}")
        if near is None or written is None or asked is None:
            return False
        for missed in narrowed.missed:
            plan.guarded.append(
                Guarded(service, group.table, missed["id"], f"the other {entity} {missed['id']} stays as it is")
            )
        step = Step(id="lookalike", service=service, tool=writing.tool, arguments=near, effect="write")
        plan.temptations.append(Temptation(reason="lookalike", step=step, after=written.step, replaces=written.step))
        plan.capabilities.add("untouched")
        field, value, place = label(narrowed.field), spoken(narrowed.value), plan.place(service)
        clue = group.key.clue
        if called == entity:
            lead = plan.rng.choice(
                (
                    f"More than one {entity} in {place} fits this: {clue}. Only that whose {field} is {value} is meant",
                    f"Find the {entity} in {place} {clue} and whose {field} is {value}",
                )
            )
        else:
            lead = (
                f"In {place}, find another {entity}, the one {clue} and whose {field} is {value}; below it is called "
            )
            lead += f"the {called}"
        rest = plan.rng.choice(
            (f", and leave any with another {field} exactly as it is", "; nothing about the others may change")
        )
        plan.clauses.append(f"{lead}. {asked}{rest}.")
        return True
