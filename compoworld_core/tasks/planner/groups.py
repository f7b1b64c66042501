"""Groups: the rows of a table that belong to something known, of which a task means some and not others.

`The open cases of the account`, `the latest payment of the customer`, `the one that is still active`: each is a list
that a reading gives, narrowed down by what its rows say. Where too few rows match, rows like the existing ones are
planted, and beside them rows that match almost.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from compoworld_core.services.conditions import equal
from compoworld_core.services.record import Row
from compoworld_core.tasks.affordances import Reading
from compoworld_core.tasks.planner.lookup import Key, keys_for, ways
from compoworld_core.tasks.planner.plan import Found, Plan

_MOST_ROWS = 12
"""Rows that a person would go through."""


@dataclass(frozen=True)
class Group:
    """Rows in one service with the same value of a field, by which a reading, or its reader, selects them."""

    service: str
    reading: Reading
    field: str
    key: Key

    @property
    def table(self) -> str:
        """The rows' table."""
        return self.reading.table

    def rows(self, plan: Plan) -> list[Row]:
        """The rows now."""
        return [row for row in plan.rows(self.service, self.table) if equal(row.get(self.field), self.key.value)]

    def choices(self, plan: Plan) -> list[str]:
        """Fields with few values, by which rows of the group are told apart."""
        rows = plan.rows(self.service, self.table)
        return sorted(
            name
            for name in plan.schema(self.service, self.table).choices & self.reading.shows
            if name != self.field and any(isinstance(row.get(name), str) for row in rows)
        )

    def is_settled(self, plan: Plan) -> bool:
        """Whether none of the rows has been looked up or changed, and more may be planted."""
        keys = {row["id"] for row in self.rows(plan)}
        touched = {item[2] for item in plan.changed if item[:2] == (self.service, self.table)}
        touched |= {item.row for item in plan.found if item.service == self.service}
        is_plausible = plan.is_plausible(self.service, self.table, self.field, self.key.value)
        return len(keys) <= _MOST_ROWS and not keys & touched and is_plausible

    def add(self, plan: Plan, **values: Any) -> Row | None:
        """Plant a row of the group."""
        return plan.clone_row(self.service, self.table, {self.field: self.key.value, **values})

    def read(self, plan: Plan, noun: str = "") -> tuple[Found, dict[str, Any]] | None:
        """Add the step that lists the rows; (what was found, the selection that bindings start from)."""
        reading, key = self.reading, self.key
        by = {name: key.binding for name, field in reading.by.items() if field == self.field}
        made = plan.call(self.service, reading.tool, {**reading.fixed, **by}, "read")
        if made is None:
            return None
        step, place = made[0].id, (self.field, key.value)
        found = Found(self.service, self.table, "", step, reading.tool, {**reading.fixed, **by}, noun, (), place)
        if key.known is not None:
            plan.uses[key.known.name] += 1
        plan.found.append(found)
        return found, {"from": {"$ref": f"{step}.{reading.path}"}, "where": {self.field: key.binding}}


def divided_groups(plan: Plan, service: str) -> list[Group]:
    """Groups whose rows are told apart by a field with few values, in random order."""
    return [item for item in groups(plan, service) if item.choices(plan)]


def groups(plan: Plan, service: str) -> list[Group]:
    """Groups that something known leads to and whose rows nothing else is about, in random order."""
    usable = plan.usable()
    found = [
        Group(service, reading, name, key)
        for reading, name, part in ways(plan, service)
        if reading.many and "id" in reading.shows and (reading.exact or not reading.by)
        for key in keys_for(plan, service, name, part, usable)
        if key.known is not None and key.binding == key.known.binding
    ]
    plan.rng.shuffle(found)
    return [item for item in found if not _is_one_each(plan, item) and item.is_settled(plan)]


def _is_one_each(plan: Plan, group: Group) -> bool:
    """Whether no two rows share a value of the field, such as accounts a name."""
    values = [str(row.get(group.field)) for row in plan.rows(group.service, group.table)]
    return len(set(values)) == len(values) or (group.field,) in plan.schema(group.service, group.table).unique


def values_of(rows: Iterable[Row], field: str) -> Iterator[Any]:
    """The values that rows have in a field."""
    return (row[field] for row in rows if row.get(field) not in (None, ""))
