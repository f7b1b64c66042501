"""Fan-out: the same thing is done for every row that matches, and for no other; or their amounts are added up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from typing import Any

from compoworld_core.services.conditions import equal
from compoworld_core.tasks.affordances import Writing
from compoworld_core.tasks.bindings import Unresolved
from compoworld_core.tasks.planner.derive import free_name
from compoworld_core.tasks.planner.filling import Filling, fill, with_choice
from compoworld_core.tasks.planner.groups import divided_groups
from compoworld_core.tasks.planner.matching import is_distinctive
from compoworld_core.tasks.planner.narrowing import Narrowed, narrow, near_miss, picks_of, subject_of
from compoworld_core.tasks.planner.plan import Known, Plan, Written
from compoworld_core.tasks.planner.wording import creating, label, noun, with_article
from compoworld_core.tasks.planner.writes import asking, changes, commit_write, creations
from compoworld_core.tasks.task import Step, Temptation

_FEWEST, _MOST = 2, 4
_SUMS = ("grand total", "sum of the amounts", "overall sum")


@dataclass(frozen=True)
class FanOut:
    """Change every matching row, or create a row for each."""

    letter = "F"

    def attempts(self, plan: Plan, service: str) -> list[Any]:
        """(group, writing) combinations, in random order."""
        found = []
        for group in divided_groups(plan, service):
            entity = plan.schema(service, group.table).entity
            for writing in changes(plan, service):
                if writing.table == group.table:
                    found.append((group, writing))
            for writing in creations(plan, service):
                if [writing.links[name] for name in writing.required if name in writing.links] == [entity]:
                    found.append((group, writing))
        plan.rng.shuffle(found)
        return found

    def apply(self, plan: Plan, service: str, attempt: Any) -> bool:
        """List the rows and write once for each of those that are meant."""
        group, writing = attempt
        narrowed = narrow(plan, group, _FEWEST, _MOST)
        if narrowed is None or any(row.get(f) != v for row in narrowed.meant for f, v in writing.needs.items()):
            return False
        read = group.read(plan)
        if read is None:
            return False
        _, selection = read
        where = {**selection["where"], narrowed.field: narrowed.value}
        picks = picks_of(plan, {**selection, "where": where}, narrowed)
        name = subject_of(writing, plan.schema(service, group.table).entity)
        if picks is None or name is None:
            return False
        first = narrowed.meant[0]["id"]
        filling = fill(plan, service, writing, {name: picks[first]}, first if writing.key else None)
        if filling is None:
            return False
        if writing.key:
            filling = with_choice(plan, service, writing, filling, first)
        near = near_miss(plan, writing, filling, narrowed, name)
        written = [
            commit_write(
                plan,
                service,
                writing,
                replace(filling, arguments={**filling.arguments, name: pick}),
                key if writing.key else None,
                is_one_of=True,
            )
            for key, pick in picks.items()
        ]
        made = [item for item in written if item is not None]
        if near is None or len(made) < len(written):
            return False
        clause = _clause(plan, narrowed, writing, filling, made[0])
        if clause is None:
            return False
        tempting = Step(id="near_miss", service=service, tool=writing.tool, arguments=near, effect="write")
        plan.temptations.append(Temptation(reason="near_miss", step=tempting, after=made[-1].step))
        plan.capabilities.add("fan_out")
        plan.clauses.append(clause)
        return True


def _clause(plan: Plan, narrowed: Narrowed, writing: Writing, filling: Filling, written: Written) -> str | None:
    group = narrowed.group
    entity = noun(plan.schema(group.service, group.table).entity)
    place = plan.place(group.service)
    if writing.key:
        asked = asking(writing, filling, written, "it")
        if asked is None:
            return None
        told = asked[0].lower() + asked[1:]
        told = told.replace("of it to", "to", 1) if told.startswith("set the ") else told
        told = told.replace("set the ", "set its ", 1)
    else:
        verb = creating(plan.affordances[group.service].tools[writing.tool].description).lower()
        told = f"{verb} {with_article(noun(plan.schema(group.service, writing.table).entity))}{filling.details()}"
    rest = plan.rng.choice(
        ("The others stay as they are.", "Do this for no other.", "Leave out those that do not match.")
    )
    lead = plan.rng.choice(("Go through", "Now go through"))
    return (
        f"{lead} {place}: for every {entity} {narrowed.clue(plan)}, {told}. {rest}"
        if plan.rng.random() < 0.5
        else f"For every {entity} in {place} {narrowed.clue(plan)}, {told}. {rest}"
    )


@dataclass(frozen=True)
class Total:
    """Add up an amount over every matching row."""

    letter = "T"

    def attempts(self, plan: Plan, service: str) -> list[Any]:
        """(group, field) combinations, in random order."""
        found = [
            (group, field)
            for group in divided_groups(plan, service)
            for field, word in plan.schema(service, group.table).semantics.items()
            if word == "money" and field in group.reading.shows
        ]
        plan.rng.shuffle(found)
        return found

    def apply(self, plan: Plan, service: str, attempt: Any) -> bool:
        """List the rows and add up."""
        group, field = attempt
        narrowed = narrow(plan, group, _FEWEST, _MOST)
        name = free_name(plan, _SUMS)
        if narrowed is None or name is None or not all(_is_amount(row.get(field)) for row in narrowed.meant):
            return False
        if len({row.get("currency") for row in narrowed.meant}) > 1:
            return False
        read = group.read(plan)
        if read is None:
            return False
        found, selection = read
        where = {**selection["where"], narrowed.field: narrowed.value}
        binding = {"$sum": {**selection, "where": where, "take": field}}
        wanted = sum((Decimal(str(row[field])) for row in narrowed.meant), Decimal(0))
        try:
            value = plan.answers.evaluate(binding)
            everything = plan.answers.evaluate({"$sum": {**selection, "take": field}})
        except Unresolved:
            return False
        if not equal(value, str(wanted)) or equal(value, everything) or not is_distinctive(value):
            return False
        schema = plan.schema(service, group.table)
        plan.known.append(
            Known(
                name=plan.name(name, field, binding),
                value=value,
                decoy=everything,
                semantic="money",
                schema=schema.row["properties"][field],
                what=name,
                of="",
                step=found.step,
                service=service,
                table=group.table,
                row="",
                field="",
                is_derived=True,
            )
        )
        plan.capabilities |= {"fan_out", "derived_value"}
        entity = noun(schema.entity)
        asked = label(field, "money")
        place = plan.place(service)
        plan.clauses.append(
            plan.rng.choice(
                (
                    f"Add up the {asked} of every {entity} in {place} {narrowed.clue(plan)}, and of no other; below "
                    f"the result is called the {name}.",
                    f"Work out the {name}: go through {place} and add up the {asked} of every {entity} "
                    f"{narrowed.clue(plan)}; those that do not match do not count.",
                )
            )
        )
        return True


def _is_amount(value: Any) -> bool:
    try:
        return Decimal(str(value)) > 0
    except InvalidOperation:
        return False
