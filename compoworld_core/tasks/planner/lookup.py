"""Lookup: find a row by a value that the instruction names or an earlier step learnt, and learn more from it.

The join through what services share. Where no row matches, a row like the existing ones is planted; a row that looks
almost the same is planted beside it, so that taking the wrong one has consequences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from compoworld_core.services.conditions import equal
from compoworld_core.services.record import Row
from compoworld_core.services.schema import semantic_of
from compoworld_core.tasks.affordances import Reading
from compoworld_core.tasks.bindings import Unresolved
from compoworld_core.tasks.planner.matching import JOINING, NAMING, is_choice, is_distinctive, is_title, kinds
from compoworld_core.tasks.planner.plan import Found, Guarded, Known, Plan
from compoworld_core.tasks.planner.wording import label, noun

ANCHORS = frozenset({"organisation_name", "person_name", "product_name", "project_name", "title"})
"""Meanings of values that an instruction may name outright."""
_HEADINGS = (
    "Agreement",
    "Background",
    "Checklist",
    "Delivery notes",
    "Handover",
    "Open points",
    "Site visit",
    "Summary",
    "Terms",
    "Timeline",
)
_OPENINGS = ("Start with", "This is about", "Begin with", "Please look up")
_MOST_ANCHORS = 2
_LEGAL_FORMS = ("Ltd", "GmbH", "AB", "SA", "Inc", "BV")


@dataclass(frozen=True)
class Key:
    """What a row is found by: a value that a person would say, or one that an earlier step learnt.

    Attributes:
        clue: How the instruction tells which row is meant.
    """

    value: Any
    binding: Any
    clue: str
    known: Known | None


def keys_for(plan: Plan, service: str, name: str, schema: Mapping[str, Any], usable: Sequence[Known]) -> Iterator[Key]:
    """Values that a row can be found by: learnt in other services, or ids of the service's own.

    Args:
        usable: The plan's usable values.
    """
    word = semantic_of(schema)
    if word is None or name == "id" or is_choice(schema):
        return
    titled = is_title(schema)
    heading = plan.rng.choice(_HEADINGS) if titled else ""
    called = label(name, word)
    for known in usable:
        if known.is_new or not isinstance(known.value, str):
            continue
        if known.service == service:
            if known.field == "id" and known.semantic == word:
                yield Key(known.value, known.binding, f"that belongs to {known.of}", known)
        elif known.semantic == word and word in JOINING:
            yield Key(known.value, known.binding, f"whose {called} is {known.phrase}", known)
        elif titled and known.semantic in NAMING and len(known.value) <= 60:
            binding = {"$text": [f"{heading}: ", known.binding]}
            clue = f'whose {called} is "{heading}: " followed by {known.phrase}'
            yield Key(f"{heading}: {known.value}", binding, clue, known)


def find_row(plan: Plan, service: str, reading: Reading, name: str, key: Key) -> Row | None:
    """The one row with this value: an existing one, or one that is planted."""
    matching = [row for row in plan.rows(service, reading.table) if equal(row.get(name), key.value)]
    if len(matching) > 1:
        return None
    if matching:
        return None if _is_moved(plan, service, reading.table, matching[0]["id"]) else matching[0]
    if not plan.is_plausible(service, reading.table, name, key.value):
        return None
    return plan.clone_row(service, reading.table, {name: key.value})


def _is_moved(plan: Plan, service: str, table: str, key: str) -> bool:
    """Whether the plan itself made or changed the row, so that reading it depends on when it is read."""
    return any((service, table, key) == item[:3] for item in plan.changed)


def near_duplicate(plan: Plan, service: str, table: str, name: str, value: str) -> Row | None:
    """Plant a row that a hurried reader takes for the one with this value."""
    twin = _similar(plan, plan.schema(service, table).semantics.get(name), value)
    if any(equal(row.get(name), twin) for row in plan.rows(service, table)):
        return None
    return plan.clone_row(service, table, {name: twin})


def _similar(plan: Plan, word: str | None, value: str) -> str:
    words = value.split()
    if word == "organisation_name" and words[-1] in _LEGAL_FORMS:
        return " ".join([*words[:-1], plan.rng.choice([form for form in _LEGAL_FORMS if form != words[-1]])])
    if word == "person_name" and len(words) == 2:
        others = sorted({person.name.split()[0] for person in plan.world.universe.people} - {words[0]})
        alike = [name for name in others if name[0] == words[0][0]] or others
        return f"{plan.rng.choice(alike)} {words[1]}"
    if word in ("product_name", "project_name"):
        return f"{value} {plan.rng.choice(('II', 'Mini', 'Plus'))}"
    return f"{value} ({plan.rng.choice(('copy', 'draft', 'previous version'))})"


def read_row(
    plan: Plan, service: str, reading: Reading, name: str, key: Key, row: Row, twin: Row | None = None
) -> Found | None:
    """Add the step that reads a row, and note what it shows.

    Args:
        twin: A row that is easily taken for it.
    """
    arguments = {**reading.fixed, **{argument: key.binding for argument, field in reading.by.items() if field == name}}
    made = plan.call(service, reading.tool, arguments, "read")
    if made is None:
        return None
    step, _ = made
    entity = plan.noun_for(service, reading.table, row["id"])
    items = {"from": {"$ref": f"{step.id}.{reading.path}"}, "where": {name: key.binding}}
    shown = learn(plan, service, reading, items if reading.many else None, row, step.id, entity, twin)
    found = Found(
        service=service,
        table=reading.table,
        row=row["id"],
        step=step.id,
        tool=reading.tool,
        arguments=arguments,
        noun=entity,
        known=tuple(item for item in shown if item.field != name),
        by=(name, key.value),
    )
    try:
        for known in found.known:
            if not equal(plan.answers.evaluate(known.binding), known.value):
                return None
    except Unresolved:
        return None
    if key.known is not None:
        plan.uses[key.known.name] += 1
    plan.found.append(found)
    plan.known.extend(found.known)
    return found


def learn(
    plan: Plan,
    service: str,
    reading: Reading,
    selection: Mapping[str, Any] | None,
    row: Row,
    step: str,
    entity: str,
    twin: Row | None = None,
) -> Iterator[Known]:
    """What a step shows of a row.

    Args:
        selection: How a `$pick` finds the row in the step's list; None where the step answers with the row alone.
        entity: How the instruction calls the row.
        twin: A row that is easily taken for it.
    """
    schema = plan.schema(service, reading.table)
    others = [item for item in plan.rows(service, reading.table) if item["id"] != row["id"]]
    where = (selection or {}).get("where", {})
    mentioned = {str(item.value) for item in plan.known} | {str(row.get(name)) for name in where}
    for field, part in schema.row["properties"].items():
        value = row.get(field)
        if field not in reading.shows or field in where or not _is_telling(value, part):
            continue
        word = semantic_of(part)
        if str(value) in mentioned and not (word or "").startswith("id:"):
            continue
        decoys = [item[field] for item in others if item.get(field) not in (None, "") and not equal(item[field], value)]
        if not decoys:
            continue
        if twin is not None and twin.get(field) not in (None, "", value):
            decoys.append(twin[field])
        decoy = next((item for item in reversed(decoys) if is_distinctive(item)), decoys[-1])
        if selection is not None:
            binding: dict[str, Any] = {"$pick": {**selection, "take": field}}
        else:
            binding = {"$ref": f"{step}.{reading.path}.{field}"}
        yield Known(
            name=plan.name(entity, field, binding),
            value=value,
            decoy=decoy,
            semantic=word,
            schema=part,
            what=label(field, word),
            of=f"the {entity}",
            step=step,
            service=service,
            table=reading.table,
            row=row["id"],
            field=field,
        )


def _is_telling(value: Any, schema: dict[str, Any]) -> bool:
    """Whether a value is worth passing on: a scalar that is not empty, not a flag, not a long text."""
    if isinstance(value, bool) or value in (None, ""):
        return False
    if isinstance(value, str):
        return len(value) <= 80 and "\n" not in value and semantic_of(schema) != "text"
    return isinstance(value, int | float) and bool(kinds(schema))


@dataclass(frozen=True)
class Anchor:
    """Look up a row that the instruction names outright, beside which another with almost the same name is planted."""

    letter = "A"

    def attempts(self, plan: Plan, service: str) -> list[Any]:
        """(reading, field, key) combinations, in random order; none where enough has been named already."""
        if plan.visits.count(self.letter) >= _MOST_ANCHORS:
            return []
        found = [
            (reading, name, key)
            for reading, name, part in ways(plan, service)
            if semantic_of(part) in ANCHORS and not is_choice(part)
            for key in self._keys(plan, service, reading, name)
        ]
        plan.rng.shuffle(found)
        found.sort(key=lambda item: not item[0].by)
        return found

    @staticmethod
    def _keys(plan: Plan, service: str, reading: Reading, name: str) -> Iterator[Key]:
        values = [row[name] for row in plan.rows(service, reading.table) if isinstance(row.get(name), str)]
        known = {str(item.value) for item in plan.known}
        unique = [item for item in values if values.count(item) == 1 and 3 < len(item) <= 60 and item not in known]
        for value in plan.rng.sample(unique, min(2, len(unique))):
            yield Key(value, value, f'"{value}"', None)

    def apply(self, plan: Plan, service: str, attempt: Any) -> bool:
        """Add the lookup to the plan."""
        reading, name, key = attempt
        row = _row_for(plan, service, reading, name, key)
        if row is None:
            return False
        twin = near_duplicate(plan, service, reading.table, name, key.value)
        found = read_row(plan, service, reading, name, key, row, twin)
        if found is None or not any(not known.is_id for known in found.known):
            return False
        warning = ""
        if twin is not None:
            warning = f' (not to be confused with "{twin[name]}")'
            plan.guarded.append(
                Guarded(service, reading.table, twin["id"], f'the {found.noun} "{twin[name]}" stays as it is')
            )
            plan.capabilities.add("near_duplicate")
        leads = ("Also look up", "There is also", "You also need") if plan.clauses else _OPENINGS
        lead = plan.rng.choice(leads)
        entity, place = noun(plan.schema(service, reading.table).entity), plan.place(service)
        if found.noun == entity:
            plan.clauses.append(f"{lead} the {entity} {key.clue}{warning} in {place}.")
        else:
            called = f"below it is called the {found.noun}"
            plan.clauses.append(f"{lead} another {entity}, {key.clue}{warning}, in {place}; {called}.")
        return True


@dataclass(frozen=True)
class Lookup:
    """Find a row by something learnt before."""

    letter = "L"

    def attempts(self, plan: Plan, service: str) -> list[Any]:
        """(reading, field, key) combinations to try: the least used keys first, else in random order."""
        usable = plan.usable()
        found = [
            (reading, name, key)
            for reading, name, part in ways(plan, service)
            for key in keys_for(plan, service, name, part, usable)
        ]
        plan.rng.shuffle(found)
        found.sort(key=lambda item: (plan.uses[item[2].known.name] if item[2].known else 0, not item[0].by))
        return found

    def apply(self, plan: Plan, service: str, attempt: Any) -> bool:
        """Add the lookup to the plan."""
        reading, name, key = attempt
        row = _row_for(plan, service, reading, name, key)
        found = None if row is None else read_row(plan, service, reading, name, key, row)
        if found is None or not any(not known.is_id for known in found.known):
            return False
        if key.known is not None and key.known.service != service:
            plan.capabilities.add("join")
        plan.clauses.append(find_clause(plan, found, key))
        return True


def ways(plan: Plan, service: str) -> Iterator[tuple[Reading, str, Mapping[str, Any]]]:
    """(reading, field to find a row by, the field's schema) of every reading that can single out a row."""
    for reading in plan.affordances[service].readings:
        if len(reading.by) > 1 or (not reading.many and not reading.by):
            continue
        properties = plan.schema(service, reading.table).row["properties"]
        for name in list(reading.by.values()) or sorted(reading.shows):
            if name != "id" and name in properties and name in reading.shows:
                yield reading, name, properties[name]


def _row_for(plan: Plan, service: str, reading: Reading, name: str, key: Key) -> Row | None:
    """The one row that a key leads to, unless the plan knows it already."""
    row = find_row(plan, service, reading, name, key)
    if row is None or any((item.service, item.row) == (service, row["id"]) for item in plan.found):
        return None
    return row


def find_clause(plan: Plan, found: Found, key: Key) -> str:
    """A sentence that says which row is meant."""
    place = plan.place(found.service)
    entity = noun(plan.schema(found.service, found.table).entity)
    if found.noun != entity:
        return f"In {place}, find another {entity}, the one {key.clue}; below it is called the {found.noun}."
    verb = plan.rng.choice(("find", "look up", "find"))
    if plan.rng.random() < 0.5:
        return f"In {place}, {verb} the {found.noun} {key.clue}."
    return f"{verb.capitalize()} the {found.noun} in {place} {key.clue}."
