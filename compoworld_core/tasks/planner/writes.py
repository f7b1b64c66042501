"""Writes: put what was learnt to use, by creating a row or changing one."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compoworld_core.services.record import Row
from compoworld_core.services.state import RowChange
from compoworld_core.tasks.affordances import Reading, Writing
from compoworld_core.tasks.planner.filling import Filling, fill, with_choice
from compoworld_core.tasks.planner.lookup import Key, find_clause, find_row, keys_for, read_row
from compoworld_core.tasks.planner.plan import Known, Plan, Written
from compoworld_core.tasks.planner.wording import creating, enumerated, label, noun, setting, spoken, with_article

_NOTHING: Mapping[str, Known] = {}


def commit_write(
    plan: Plan, service: str, writing: Writing, filling: Filling, target: str | None, *, is_one_of: bool = False
) -> Written | None:
    """Run a write whose arguments are settled, and note what it did; None where it does not do what it should.

    Args:
        target: The row that is changed; None where one is created.
        is_one_of: Whether it is one of several that the instruction does not tell apart.
    """
    made = plan.call(service, writing.tool, filling.arguments, "write", _earlier_on(plan, service, target))
    if made is None:
        return None
    step, changes = made
    main = [
        change
        for change in changes
        if change.table.name == writing.table
        and (change.before is None if writing.change == "created" else change.key == target)
    ]
    if len(main) != 1 or _undoes(plan, service, changes, main[0].key):
        return None
    others = [item for item in changes if not (is_one_of and item.key == target)]
    if any(plan.is_confusing(service, item.table.name, item.after_row or {}, item.key) for item in others):
        return None
    kind = "new" if writing.change == "created" else ""
    entity = noun(plan.schema(service, writing.table).entity)
    called = entity if is_one_of else plan.noun_for(service, writing.table, main[0].key, kind)
    texts = {*(name for name, _ in filling.mentions), *filling.free}
    fields = [field for name, field in writing.copies.items() if name in filling.arguments and name not in texts]
    fields += [
        *_restyled(plan.arguments[step.id], {*writing.copies, *writing.links, *texts}, main[0].after_row or {}, fields)
    ]
    if writing.change == "updated":
        before, now = main[0].before_row or {}, main[0].after_row or {}
        fields = [*(f for f in fields if before.get(f) != now.get(f)), *(f for f in writing.sets if f in now)]
        if not fields and not texts:
            return None
    written = Written(
        service=service,
        table=writing.table,
        row=main[0].key,
        step=step.id,
        change=writing.change,
        fields=tuple(dict.fromkeys(fields)),
        mentions=tuple((writing.copies[name], known) for name, known in filling.mentions),
        noun=called,
        is_one_of=is_one_of,
    )
    if any(plan.uses[known.name] for known in _overwritten(plan, written)):
        return None  # whoever reads the instruction could not tell which of the two values is meant
    plan.uses.update(known.name for known in filling.used)
    plan.stale |= {known.name for known in _overwritten(plan, written)}
    plan.written.append(written)
    if writing.id_path is not None and writing.change == "created" and not is_one_of:
        _learn_id(plan, service, writing, step.id, main[0].key, called)
    return written


def _restyled(arguments: Mapping[str, Any], known: Collection[str], row: Row, fields: Collection[str]) -> Iterator[str]:
    """Fields in which the service keeps an argument in its own style: `Site visit 12` as `site-visit-12`."""
    for name, value in arguments.items():
        wanted = _letters(value)
        if name not in known and wanted:
            yield from (field for field, kept in row.items() if field not in fields and _letters(kept) == wanted)


def _letters(value: object) -> str:
    return "".join(filter(str.isalnum, value.casefold())) if isinstance(value, str) else ""


def _overwritten(plan: Plan, written: Written) -> list[Known]:
    """Values learnt before that a write replaces."""
    place = (written.service, written.row)
    return [known for known in plan.known if (known.service, known.row) == place and known.field in written.fields]


def _undoes(plan: Plan, service: str, changes: Iterable[RowChange], key: str) -> bool:
    """Whether a call changed, besides its own row, one that the plan wrote before."""
    rows = {item.row for item in plan.written if item.service == service} - {key}
    return any(change.key in rows for change in changes)


def _earlier_on(plan: Plan, service: str, row: str | None) -> tuple[str, ...]:
    """Steps that read, wrote or referred to a row, and so must come before the next write to it."""
    read = [item.step for item in plan.found if (item.service, item.row) == (service, row)]
    written = [item.step for item in plan.written if (item.service, item.row) == (service, row)]
    referring = [
        step.id
        for step in plan.steps
        if step.service == service and step.effect == "write" and row in plan.arguments[step.id].values()
    ]
    return tuple(dict.fromkeys([*read, *written, *(referring if row is not None else [])]))


def _learn_id(plan: Plan, service: str, writing: Writing, step: str, key: str, called: str) -> None:
    others = [row["id"] for row in plan.rows(service, writing.table) if row["id"] != key]
    schema = plan.schema(service, writing.table)
    plan.known.append(
        Known(
            name=plan.name(called, "id", {"$ref": f"{step}.{writing.id_path}"}),
            value=key,
            decoy=others[0] if others else f"{key}0",
            semantic=schema.semantics.get("id"),
            schema=schema.row["properties"]["id"],
            what="id",
            of=f"the {called}",
            step=step,
            service=service,
            table=writing.table,
            row=key,
            field="id",
            is_new=True,
        )
    )


def _linked(plan: Plan, service: str, writing: Writing) -> dict[str, Known] | None:
    """Ids for the required links of a write: rows that were looked up or created in this service."""
    links: dict[str, Known] = {}
    for name, entity in writing.links.items():
        if name not in writing.required:
            continue
        known = next(
            (item for item in reversed(plan.known) if item.service == service and item.semantic == f"id:{entity}"), None
        )
        if known is None or known.field != "id":
            return None
        links[name] = known
    return links


@dataclass(frozen=True)
class Create:
    """Create a row from what was learnt elsewhere."""

    letter = "C"

    def attempts(self, plan: Plan, service: str) -> list[Any]:
        """Writings that create rows, in random order."""
        found = creations(plan, service) if plan.known else []
        plan.rng.shuffle(found)
        return found

    def apply(self, plan: Plan, service: str, attempt: Writing) -> bool:
        """Add the creation."""
        return create_row(plan, service, attempt) is not None


def creations(plan: Plan, service: str) -> list[Writing]:
    """Writes that create rows, apart from those that need one of the same kind."""
    return [
        item
        for item in plan.affordances[service].writings
        if item.change == "created"
        and item.copies
        and plan.schema(service, item.table).entity not in item.links.values()
        and all(name in item.copies for name in item.links if name in item.required)
    ]


def create_row(
    plan: Plan, service: str, writing: Writing, settled: Mapping[str, Known] = _NOTHING, fewest_facts: int = 0
) -> Written | None:
    """Create a row, after looking up those that it must refer to, and ask for it in the instruction.

    Args:
        settled: Values of arguments that are decided.
        fewest_facts: How many values a text of it has to state.
    """
    links = _resolve_links(plan, service, writing)
    if links is None:
        return None
    bindings = {name: known.binding for name, known in links.items()}
    filling = fill(plan, service, writing, bindings, settled=settled, fewest_facts=fewest_facts)
    if filling is None or not any(known.service != service or not plan.uses[known.name] for known in filling.used):
        return None
    plan.uses.update(known.name for known in links.values())
    written = commit_write(plan, service, writing, filling, None)
    if written is None:
        return None
    verb = creating(plan.affordances[service].tools[writing.tool].description)
    what = with_article(noun(plan.schema(service, writing.table).entity))
    linked = f" for {enumerated([known.of for known in links.values()])}" if links else ""
    plan.clauses.append(f"{verb} {what}{linked} in {plan.place(service)}{filling.details()}.")
    return written


def _resolve_links(plan: Plan, service: str, writing: Writing) -> dict[str, Known] | None:
    """Ids for required links, found by known values where no earlier step of this service has them."""
    links = _linked(plan, service, writing)
    if links is not None:
        return links
    for name, entity in writing.links.items():
        if name not in writing.required or any(
            item.service == service and item.semantic == f"id:{entity}" and item.field == "id" for item in plan.known
        ):
            continue
        if _look_up(plan, service, entity, {}) is None:
            return None
    return _linked(plan, service, writing)


def _look_up(plan: Plan, service: str, entity: str, needs: Mapping[str, Any]) -> tuple[Known, Known | None] | None:
    """Find a row of an entity by a known value; returns its id and what led to it."""
    options: list[tuple[Reading, str, Key]] = []
    usable = plan.usable()
    for reading in plan.affordances[service].readings:
        schema = plan.schema(service, reading.table)
        if (
            schema.entity != entity
            or len(reading.by) > 1
            or "id" not in reading.shows
            or not (reading.by or reading.many)
        ):
            continue
        for name in list(reading.by.values()) or sorted(reading.shows):
            part = schema.row["properties"].get(name)
            if name != "id" and part is not None and name in reading.shows:
                options += [(reading, name, key) for key in keys_for(plan, service, name, part, usable)]
    plan.rng.shuffle(options)
    options.sort(key=lambda item: (item[2].known is not None and plan.uses[item[2].known.name], not item[0].by))
    for reading, name, key in options[:6]:
        branch = plan.branch()
        known = _try_look_up(branch, service, reading, name, key, needs)
        if known is not None:
            plan.adopt(branch)
            return known, key.known
    return None


def _try_look_up(
    plan: Plan, service: str, reading: Reading, name: str, key: Key, needs: Mapping[str, Any]
) -> Known | None:
    matching = [row for row in plan.rows(service, reading.table) if row.get(name) == key.value]
    if not matching and needs and plan.is_plausible(service, reading.table, name, key.value):
        row = plan.clone_row(service, reading.table, {name: key.value, **needs})
    else:
        row = find_row(plan, service, reading, name, key)
    if row is None or any(row.get(field) != value for field, value in needs.items()):
        return None
    if any((item.service, item.row) == (service, row["id"]) for item in plan.found):
        return None
    found = read_row(plan, service, reading, name, key, row)
    if found is None:
        return None
    plan.clauses.append(find_clause(plan, found, key))
    plan.capabilities.add("join")
    return next((known for known in found.known if known.field == "id"), None)


@dataclass(frozen=True)
class Change:
    """Change a row that is found by something learnt elsewhere."""

    letter = "U"

    def attempts(self, plan: Plan, service: str) -> list[Any]:
        """Writings that change rows, in random order."""
        found = changes(plan, service) if plan.known else []
        plan.rng.shuffle(found)
        return found

    def apply(self, plan: Plan, service: str, attempt: Writing) -> bool:
        """Look the row up and change it."""
        return change_row(plan, service, attempt) is not None


def changes(plan: Plan, service: str) -> list[Writing]:
    """Writes that change a row."""
    return [
        item
        for item in plan.affordances[service].writings
        if item.change == "updated" and item.key is not None and (item.copies or item.sets)
    ]


def change_row(plan: Plan, service: str, writing: Writing, settled: Mapping[str, Known] = _NOTHING) -> Written | None:
    """Change a row, after looking it up, and ask for it in the instruction.

    Args:
        settled: Values of arguments that are decided.
    """
    entity = plan.schema(service, writing.table).entity
    looked_up = _seen(plan, service, entity, writing) or _look_up(plan, service, entity, writing.needs)
    if looked_up is None or writing.key is None:
        return None
    target, led = looked_up
    plan.uses[target.name] += 1
    filling = fill(plan, service, writing, {writing.key: target.binding}, target.row, led, settled)
    if filling is None:
        return None
    filling = with_choice(plan, service, writing, filling, target.row)
    written = commit_write(plan, service, writing, filling, target.value)
    if written is None:
        return None
    asked = asking(writing, filling, written, target.of)
    if asked is None:
        return None
    plan.clauses.append(f"{asked}.")
    return written


def _seen(plan: Plan, service: str, entity: str, writing: Writing) -> tuple[Known, Known | None] | None:
    """A row that was looked up already and that the change can be made to."""
    for known in reversed(plan.known):
        if known.service != service or known.field != "id" or known.semantic != f"id:{entity}" or known.is_new:
            continue
        row = next((row for row in plan.rows(service, writing.table) if row["id"] == known.value), None)
        done = {
            name for item in plan.written if (item.service, item.row) == (service, known.row) for name in item.fields
        }
        if row is None or done & {*writing.sets, *writing.copies.values()}:
            continue
        if all(row.get(name) == value for name, value in writing.needs.items()):
            return known, None
    return None


def asking(writing: Writing, filling: Filling, written: Written, of: str) -> str | None:
    """A sentence, without its stop, that asks for the change; None where there is nothing to ask for."""
    effects = [
        (label(name), spoken(value))
        for name, value in writing.sets.items()
        if name in written.fields and not isinstance(value, bool)
    ]
    effects += [(label(writing.copies[name]), value) for name, value in filling.told if name in writing.copies]
    marks = [
        f"{'' if value else 'not '}{label(name.removeprefix('is_'))}"
        for name, value in writing.sets.items()
        if name in written.fields and isinstance(value, bool)
    ]
    if not effects and not marks:
        return None
    others = [f"{label(name)} {value}" for name, value in filling.told if name not in writing.copies]
    extra = [*others, *filling.composed]
    return f"{setting(of, effects, marks)}{f', with {enumerated(extra)}' if extra else ''}"
