"""Criteria: what of a plan's end state matters, said as conditions.

Written rows are described by the fields that the instruction determines, never by ids that depend on the order of work.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from typing import Any

from compoworld_core.services.conditions import All, Answer, RowRef, Rows, Stated, Test, Unchanged, equal
from compoworld_core.services.facts import Fact, fact_of, states
from compoworld_core.services.record import Row
from compoworld_core.services.schema import semantic_of
from compoworld_core.tasks.planner.matching import is_distinctive
from compoworld_core.tasks.planner.plan import Known, Plan, Written
from compoworld_core.tasks.planner.wording import enumerated, label, noun
from compoworld_core.tasks.rubric import Criterion
from compoworld_core.worlds.recipe import Insert, Update
from compoworld_core.worlds.world import World


def criteria_of(plan: Plan, reported: list[Known]) -> tuple[Criterion, ...]:
    """The criteria of a finished plan; `holds_initially` is settled by whoever plays the no-op."""
    found: list[Criterion] = []
    for number, written in enumerate(plan.written, 1):
        condition, text = _written(plan, written)
        found.append(Criterion(id=f"write_{number}", description=text, condition=condition, holds_initially=False))
    found += _left(plan)
    found += _kept(plan)
    found += _collateral(plan)
    found += _bystanders(plan)
    for number, guarded in enumerate(plan.guarded, 1):
        condition = Unchanged(
            service=guarded.service, table=guarded.table, where=(Test(field="id", value=guarded.row),)
        )
        found.append(
            Criterion(
                id=f"untouched_{number}", description=guarded.description, condition=condition, holds_initially=True
            )
        )
    if reported:
        found.append(_answer(plan, reported))
    return tuple(found)


def undisturbed(world: World, core: Collection[str]) -> Criterion | None:
    """Nothing changes in the services that a task is not about; None where it is about all."""
    others = [name for name in world.services if name not in core]
    if not others:
        return None
    tables = [(name, table) for name in others for table in world.services[name].state.tables]
    return Criterion(
        id="undisturbed",
        description=f"nothing changes in {enumerated(others)}",
        condition=All(parts=tuple(Unchanged(service=name, table=table) for name, table in tables)),
        holds_initially=True,
    )


def _row(plan: Plan, written: Written) -> Row:
    return next(row for row in plan.rows(written.service, written.table) if row["id"] == written.row)


def _written(plan: Plan, written: Written) -> tuple[Any, str]:
    row = _row(plan, written)
    tests = tuple(_tests(plan, written, row))
    told = ", ".join(f"{label(test.field)} {_told(test)}" for test in tests if test.field != "id")
    if written.change == "created":
        one = Rows(service=written.service, table=written.table, where=tests, change="created", at_most=1)
        wrong = tuple(_misstated(plan, written))
        if not wrong:
            return one, f"exactly one {written.noun} in {written.service} has {told}"
        text = ", ".join(str(test.value) for part in wrong for test in part.where)
        return All(parts=(one, *wrong)), f"exactly one {written.noun} in {written.service} has {told}, and not {text}"
    where = (Test(field="id", value=written.row), *tests)
    return (
        Rows(service=written.service, table=written.table, where=where, change="updated"),
        f"the {written.noun} {written.row} in {written.service} has {told}",
    )


def _misstated(plan: Plan, written: Written) -> Iterator[Rows]:
    """No created row states what a value could be mistaken for."""
    for name, known in written.mentions:
        decoy = decoy_of(plan, known)
        if decoy is not None:
            test = Test(field=name, op="mentions", value=decoy.value, kind=decoy.kind)
            yield Rows(
                service=written.service, table=written.table, where=(test,), change="created", at_least=0, at_most=0
            )


def decoy_of(plan: Plan, known: Known) -> Fact | None:
    """What a value could be mistaken for, if honest work has no reason to mention it."""
    if known.is_new or known.decoy is None:
        return None
    honest = [item.value for item in plan.known if item.name not in plan.stale]
    honest += [value for arguments in plan.arguments.values() for value in arguments.values()]
    told = "\n".join([*plan.clauses, *map(str, honest)])
    others = [row.get(known.field) for row in plan.rows(known.service, known.table) if row["id"] != known.row]
    for value in (known.decoy, *others):
        if is_distinctive(value) and not isinstance(value, list | dict):
            decoy = fact_of(value, known.semantic)
            if not states(told, decoy):
                return decoy
    return None


def _told(test: Test) -> str:
    if test.row is not None:
        return f"that of the new row in {test.row.service}"
    value = test.value
    shown = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return f"that mentions {shown}" if test.op == "mentions" else shown


def _tests(plan: Plan, written: Written, row: Row) -> Iterator[Test]:
    last = {
        name: index
        for index, item in enumerate(plan.written)
        if (item.service, item.row) == (written.service, written.row)
        for name in item.fields
    }
    own = plan.written.index(written)
    schema = plan.schema(written.service, written.table)
    created = {item.row: item for item in plan.written if item.change == "created"}
    for name in written.fields:
        if last.get(name, own) != own:
            continue  # a later write of the plan settles this field
        value = row.get(name)
        if isinstance(value, str) and value in created:
            yield Test(field=name, row=_reference(plan, created[value]))
        elif semantic_of(schema.row["properties"].get(name)) in ("title", "text") and isinstance(value, str):
            whole = bool(value.strip())  # not as a part of a longer word or number
            yield Test(field=name, op="mentions" if whole else "contains", value=value, kind="text" if whole else None)
        else:
            yield Test(field=name, value=value)
    if written.change == "created":
        for name, part in schema.row["properties"].items():
            if name not in written.fields and row.get(name) == [] and semantic_of(part) == "email":
                yield Test(field=name, value=[])
    for name, known in written.mentions:
        if known.is_new:
            yield Test(field=name, op="mentions", row=_reference(plan, created[known.row], known.field))
        else:
            fact = fact_of(known.value, known.semantic)
            yield Test(field=name, op="mentions", value=fact.value, kind=fact.kind)


def _left(plan: Plan) -> Iterator[Criterion]:
    """Created rows stay as they were created, but for what else the plan does with them: no sign-up is cancelled."""
    for number, written in enumerate(plan.written, 1):
        if written.change != "created":
            continue
        row = _row(plan, written)
        tests = tuple(_tests(plan, written, row))
        tool = next(step.tool for step in plan.steps if step.id == written.step)
        writings = (item for item in plan.affordances[written.service].writings if item.tool == tool)
        told = {test.field for test in tests}
        starts = {
            name: value
            for writing in writings
            if (writing.table, writing.change) == (written.table, "created")
            for name, value in writing.starts.items()
            if name not in told and row.get(name) == value
        }
        if starts:
            yield Criterion(
                id=f"left_{number}",
                description=f"nothing else is done with the {written.noun} in {written.service}",
                condition=All(
                    parts=tuple(
                        Rows(
                            service=written.service,
                            table=written.table,
                            where=(*tests, Test(field=name, op="ne", value=value)),
                            change="created",
                            at_least=0,
                            at_most=0,
                        )
                        for name, value in starts.items()
                    )
                ),
                holds_initially=True,
            )


def _reference(plan: Plan, written: Written, field: str = "id") -> RowRef:
    """A created row, by everything that the instruction says of it."""
    tests = tuple(_tests(plan, written, _row(plan, written)))
    return RowRef(service=written.service, table=written.table, where=tests, field=field, change="created")


def _collateral(plan: Plan) -> Iterator[Criterion]:
    """In tables that the plan's calls change, nothing else is changed.

    Where a call leaves rows of another table behind, such as old revisions, any number may be left, but only such as
    the plan leaves: of the same rows, and alike in their choices.
    """
    written = {(item.service, item.table) for item in plan.written}
    kinds: dict[tuple[str, str], Counter[str]] = {}
    updated: dict[tuple[str, str], set[str]] = {}
    for service, table, key, kind in plan.changed:
        kinds.setdefault((service, table), Counter())[kind] += 1
        updated.setdefault((service, table), set()).add(key)
    moved = _moved(plan)
    for (service, table), counts in sorted(kinds.items()):
        called = noun(plan.schema(service, table).entity)
        expected = sorted(updated[service, table] | moved.get((service, table), set()))
        made = counts["created"]
        most = made if not made or (service, table) in written else None
        others = tuple(Test(field="id", op="ne", value=key) for key in expected)
        yield Criterion(
            id=f"only_{service}_{table}",
            description=f"no other {called} in {service} is created, changed or deleted",
            condition=All(
                parts=(
                    Rows(service=service, table=table, change="created", at_least=0, at_most=most),
                    Rows(service=service, table=table, where=others, change="updated", at_least=0, at_most=0),
                    Rows(service=service, table=table, change="deleted", at_least=0, at_most=counts["deleted"]),
                    *(_alike(plan, service, table) if most is None else ()),
                )
            ),
            holds_initially=True,
        )


def _alike(plan: Plan, service: str, table: str) -> Iterator[Rows]:
    """No created row refers to what the plan's do not refer to, or differs from all of them in a choice."""
    schema = plan.schema(service, table)
    made = {key for place, name, key, kind in plan.changed if (place, name, kind) == (service, table, "created")}
    rows = [row for row in plan.rows(service, table) if row["id"] in made]
    links = {link.field for link in schema.foreign_keys}
    for name in sorted({*links, *schema.choices} & set(schema.row["properties"])) if rows else ():
        values = [row.get(name) for row in rows]
        if any(isinstance(value, list | dict) for value in values):
            continue
        where = tuple(
            Test(field=name, op="ne", value=value) for place, value in enumerate(values) if value not in values[:place]
        )
        yield Rows(service=service, table=table, where=where, change="created", at_least=0, at_most=0)


def _moved(plan: Plan) -> dict[tuple[str, str], set[str]]:
    """Keys of the rows that reactions change, by service and table."""
    found: dict[tuple[str, str], set[str]] = {}
    for reaction in plan.reactions:
        for operation in reaction.apply:
            if isinstance(operation, Update):
                found.setdefault((operation.service, operation.table), set()).add(operation.key)
    return found


def _kept(plan: Plan) -> Iterator[Criterion]:
    """Of rows that the plan or the world changes, all other fields stay as they are."""
    rows: dict[tuple[str, str, str], str] = {
        (item.service, item.table, item.row): item.noun for item in plan.written if item.change == "updated"
    }
    for (service, table), keys in _moved(plan).items():
        rows |= {(service, table, key): noun(plan.schema(service, table).entity) for key in sorted(keys)}
    for service, table, key, kind in plan.changed:
        if kind == "updated":  # also those that a call changes beside the row that it is about
            rows.setdefault((service, table, key), noun(plan.schema(service, table).entity))
    planted = {
        (item.do.service, item.do.table, str(item.do.values["id"])): item.do.values
        for item in plan.plants
        if isinstance(item.do, Insert)
    }
    for number, ((service, table, key), called) in enumerate(rows.items(), 1):
        before = next((row for row in plan.world.initial_rows(service, table) if row["id"] == key), None)
        now = next((row for row in plan.rows(service, table) if row["id"] == key), None)
        before = before or planted.get((service, table, key))
        if before is None or now is None:
            continue
        same = {name: value for name, value in now.items() if name != "id" and equal(before.get(name), value)}
        where = (
            Test(field="id", value=key),
            *(Test(field=name, value=value) for name, value in same.items() if name in before),
        )
        yield Criterion(
            id=f"kept_{number}",
            description=f"nothing else about the {called} {key} in {service} changes",
            condition=Rows(service=service, table=table, where=where),
            holds_initially=True,
        )


def _bystanders(plan: Plan) -> Iterator[Criterion]:
    """Tables that the plan leaves alone stay as they are, apart from rows that the world itself changes."""
    touched = {(service, table) for service, table, _, _ in plan.changed}
    moved = _moved(plan)
    for service in sorted({step.service for step in plan.steps}):
        tables = [name for name in plan.affordances[service].tables if (service, name) not in touched]
        parts = [
            Unchanged(
                service=service,
                table=name,
                where=tuple(Test(field="id", op="ne", value=key) for key in sorted(moved.get((service, name), ()))),
            )
            for name in tables
        ]
        if parts:
            yield Criterion(
                id=f"rest_{service}",
                description=f"nothing changes in {enumerated([noun(name) for name in tables])} of {service}",
                condition=All(parts=tuple(parts)),
                holds_initially=True,
            )


def _answer(plan: Plan, reported: list[Known]) -> Criterion:
    created = {item.row: item for item in plan.written if item.change == "created"}
    stated, omits, told = [], [], []
    facts = set()
    for known in reported:
        if known.is_new:
            stated.append(Stated(row=_reference(plan, created[known.row], known.field)))
            told.append(f"the id of the {created[known.row].noun}")
        else:
            fact = fact_of(known.value, known.semantic)
            facts.add(fact)
            stated.append(Stated(fact=fact))
            told.append(str(known.value))
    omits += [Stated(fact=decoy) for known in reported if (decoy := decoy_of(plan, known)) and decoy not in facts]
    return Criterion(
        id="answer",
        description=f"the final answer states {', '.join(told)}"
        + (f" and not {', '.join(item.fact.value for item in omits if item.fact)}" if omits else ""),
        condition=Answer(states=tuple(stated), omits=tuple(omits)),
        holds_initially=False,
    )
