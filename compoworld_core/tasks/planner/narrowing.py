"""Narrowing: of the rows of a group, those that say something more are meant, and the others are left alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from compoworld_core.services.record import Row
from compoworld_core.tasks.affordances import Writing
from compoworld_core.tasks.bindings import Unresolved
from compoworld_core.tasks.planner.filling import Filling
from compoworld_core.tasks.planner.groups import Group, values_of
from compoworld_core.tasks.planner.plan import Plan
from compoworld_core.tasks.planner.wording import label, spoken


@dataclass(frozen=True)
class Narrowed:
    """Rows of a group that have a value in a further field, and those that have not."""

    group: Group
    field: str
    value: str
    meant: tuple[Row, ...]
    missed: tuple[Row, ...]

    def clue(self, plan: Plan) -> str:
        """How the instruction tells which rows are meant."""
        return f"{self.group.key.clue} and whose {label(self.field)} is {spoken(self.value)}"


def narrow(plan: Plan, group: Group, fewest: int, most: int) -> Narrowed | None:
    """Choose which rows of a group are meant, and see to it that there are that many, and some others."""
    fields = group.choices(plan)
    if not fields:
        return None
    field = plan.rng.choice(fields)
    values = sorted({str(item) for item in values_of(plan.rows(group.service, group.table), field)})
    counts = Counter(row.get(field) for row in group.rows(plan))
    fitting = [item for item in values if counts[item] <= most]
    if len(values) < 2 or not fitting:
        return None
    value = max(plan.rng.sample(fitting, len(fitting)), key=lambda item: counts[item])
    other = plan.rng.choice([item for item in values if item != value])
    wanted = plan.rng.randint(fewest, max(fewest, most - 1))
    for _ in range(wanted - counts[value]):
        if group.add(plan, **{field: value}) is None:
            return None
    if counts[value] == counts.total() and group.add(plan, **{field: other}) is None:
        return None
    rows = group.rows(plan)
    meant = tuple(row for row in rows if row.get(field) == value)
    missed = tuple(row for row in rows if row.get(field) != value)
    return Narrowed(group, field, value, meant, missed) if fewest <= len(meant) <= most and missed else None


def subject_of(writing: Writing, entity: str) -> str | None:
    """The argument that says which row a write is about."""
    return writing.key or next((name for name, linked in writing.links.items() if linked == entity), None)


def picks_of(plan: Plan, selection: dict[str, Any], narrowed: Narrowed) -> dict[str, Any] | None:
    """A binding for the id of every row that is meant; None where the reading does not show just those."""
    picks: dict[str, Any] = {}
    for place in range(len(narrowed.meant)):
        pick = {"$pick": {**selection, "take": "id", **({"nth": place} if place else {})}}
        try:
            picks[plan.answers.evaluate(pick)] = pick
        except Unresolved:
            return None
    return picks if set(picks) == {row["id"] for row in narrowed.meant} else None


def near_miss(plan: Plan, writing: Writing, filling: Filling, narrowed: Narrowed, name: str) -> dict[str, Any] | None:
    """Arguments of the same write on a row that is not meant, if it could be made and would change something."""
    for row in narrowed.missed:
        arguments = {**filling.arguments, name: row["id"]}
        twin = plan.world.fork()
        tool = plan.tool_name(narrowed.group.service, writing.tool)
        if twin.call(tool, plan.answers.evaluate(arguments)).changes:
            return arguments
    return None
