"""Guards: criteria that no author needs to write, for they follow from what the reference solution leaves alone.

Whatever it does not touch has to stay as it is. An author says what a task is for; that nothing else may happen is true
of every task.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import count

from compoworld_core.services.conditions import All, Condition, Rows, Test, Unchanged, equal, watched_tables
from compoworld_core.services.record import Row
from compoworld_core.services.schema import TableSchema
from compoworld_core.tasks.planner.criteria import undisturbed
from compoworld_core.tasks.play import Played
from compoworld_core.tasks.rubric import Criterion
from compoworld_core.worlds.world import World


def guards(reference: Played, world: World, core: Collection[str], wanted: Sequence[Criterion]) -> list[Criterion]:
    """What has to stay as it is, besides what the author's own criteria say."""
    named = frozenset().union(*(watched_tables(item.condition) for item in wanted))
    found: list[Criterion] = []
    kept = count(1)
    for service in sorted(core):
        for name, table in world.services[service].state.tables.items():
            changes = _Changes.of(reference.world, service, name)
            if changes.by_agent:
                found.append(_only(changes, table.schema, (service, name) in named))
                found += [_guard(f"guard_kept_{next(kept)}", text, part) for text, part in _kept(changes)]
            else:
                others = tuple(Test(field="id", op="ne", value=key) for key in sorted(changes.moved))
                alone = Unchanged(service=service, table=name, where=others)
                found.append(_guard(f"guard_rest_{service}_{name}", f"nothing changes in {name} of {service}", alone))
    apart = undisturbed(world, core)
    return [*found, *([] if apart is None else [apart])]


class _Changes:
    """How a table differs once the reference solution is through."""

    def __init__(self, service: str, table: str, moved: frozenset[str], by_agent: bool) -> None:
        self.service = service
        self.table = table
        self.moved = moved
        self.by_agent = by_agent
        self.created: list[Row] = []
        self.updated: list[tuple[Row, Row]] = []
        self.deleted: list[Row] = []

    @classmethod
    def of(cls, world: World, service: str, table: str) -> _Changes:
        logged = [
            (entry.cause, change.key)
            for entry in world.log
            if entry.service == service
            for change in entry.changes
            if change.table.name == table
        ]
        moved = frozenset(key for cause, key in logged if cause == "reaction")
        found = cls(service, table, moved, any(cause == "agent" for cause, _ in logged))
        for before, after in world.changed_rows(service, table):
            if before is not None and after is not None:
                found.updated.append((before, after))
            elif after is not None:
                found.created.append(after)
            elif before is not None:
                found.deleted.append(before)
        return found


def _guard(name: str, description: str, condition: Condition) -> Criterion:
    return Criterion(id=name, description=description, condition=condition, holds_initially=True)


def _only(changes: _Changes, schema: TableSchema, is_named: bool) -> Criterion:
    """Nothing else is created, changed or deleted.

    Where calls leave rows behind in a table that no criterion is about, such as old revisions, any number may be left,
    but only such as the solution leaves: of the same rows, and alike in their choices.
    """
    place = {"service": changes.service, "table": changes.table}
    touched = changes.moved.union(after["id"] for _, after in changes.updated)
    gone = [row["id"] for row in changes.deleted]
    most = len(changes.created) if is_named or not changes.created else None
    parts: list[Condition] = [
        Rows(**place, change="created", at_least=0, at_most=most),
        Rows(**place, change="updated", where=_others(sorted(touched)), at_least=0, at_most=0),
        Rows(**place, change="deleted", where=_others(sorted(gone)), at_least=0, at_most=0),
    ]
    if most is None:
        parts += _alike(changes, schema)
    text = f"no other {schema.entity.replace('_', ' ')} in {changes.service} is created, changed or deleted"
    return _guard(f"guard_only_{changes.service}_{changes.table}", text, All(parts=tuple(parts)))


def _others(keys: Sequence[str]) -> tuple[Test, ...]:
    return tuple(Test(field="id", op="ne", value=key) for key in keys)


def _alike(changes: _Changes, schema: TableSchema) -> Iterator[Rows]:
    for name in sorted({link.field for link in schema.foreign_keys} | schema.choices):
        values = [row.get(name) for row in changes.created]
        if not any(isinstance(value, list | dict) for value in values):
            where = tuple(Test(field=name, op="ne", value=value) for value in dict.fromkeys(values))
            yield Rows(
                service=changes.service, table=changes.table, where=where, change="created", at_least=0, at_most=0
            )


def _kept(changes: _Changes) -> Iterator[tuple[str, Rows]]:
    """Of rows that change, all that the solution leaves alone stays as it is."""
    for before, after in changes.updated:
        same = [name for name, value in after.items() if name in before and equal(before[name], value)]
        where = tuple(Test(field=name, value=after[name]) for name in same)
        text = f"nothing else about {after['id']} in {changes.service} changes"
        yield text, Rows(service=changes.service, table=changes.table, where=where)
