"""Lookup: find a row by a value that is known, and learn further values from it.

The join through what services share. Where no row matches, a row like the existing ones is planted; a row that looks
almost the same is planted beside it, so that taking the wrong one has consequences.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compoworld_core.services.conditions import equal
from compoworld_core.services.record import Row
from compoworld_core.services.schema import semantic_of
from compoworld_core.tasks.affordances import Reading
from compoworld_core.tasks.planner.matching import NAMING, is_choice, is_title, joins, kinds, label, noun
from compoworld_core.tasks.planner.plan import Found, Guarded, Known, Plan

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


def keys_for(plan: Plan, service: str, name: str, schema: Mapping[str, Any]) -> Iterator[Key]:
    """Values that a row can be found by, unused ones first: learnt in other services, or ids of the service's own."""
    heading = plan.rng.choice(_HEADINGS)
    for known in plan.usable():
        if known.is_new or not isinstance(known.value, str):
            continue
        if known.is_id:
            if (
                known.service == service
                and known.field == "id"
                and known.semantic == semantic_of(schema)
                and name != "id"
            ):
                owner = known.phrase.removeprefix("the id of ")
                yield Key(known.value, known.binding, f"that belongs to {owner}", known)
            continue
        if known.service == service:
            continue
        if joins(known.semantic, schema):
            yield Key(known.value, known.binding, f"whose {label(name)} is {known.phrase}", known)
        elif is_title(schema) and known.semantic in NAMING and len(known.value) <= 60:
            value = f"{heading}: {known.value}"
            binding = {"$text": [f"{heading}: ", known.binding]}
            yield Key(value, binding, f'titled "{heading}: …" after {known.phrase}', known)


def find_row(plan: Plan, service: str, reading: Reading, name: str, key: Key) -> Row | None:
    """The one row with this value: an existing one, or one that is planted."""
    matching = [row for row in plan.rows(service, reading.table) if equal(row.get(name), key.value)]
    if len(matching) > 1:
        return None
    if matching:
        return None if _is_new(plan, service, reading.table, matching[0]["id"]) else matching[0]
    return plan.clone_row(service, reading.table, {name: key.value})


def _is_new(plan: Plan, service: str, table: str, key: str) -> bool:
    return any(
        (item.service, item.table, item.row, item.change) == (service, table, key, "created") for item in plan.written
    )


def _distinct_noun(plan: Plan, service: str, table: str, key: str) -> str:
    """A noun for a row that no other row of the plan goes by."""
    entity = noun(plan.schema(service, table).entity)
    place = plan.place(service)
    taken = {item.noun for item in plan.found if (item.service, item.table, item.row) != (service, table, key)}
    options = (entity, f"{entity} in {place}", f"other {entity}", f"further {entity}", f"last {entity}")
    return next((option for option in options if option not in taken), f"{entity} {len(taken) + 1}")


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
    entity = _distinct_noun(plan, service, reading.table, row["id"])
    found = Found(
        service=service,
        table=reading.table,
        row=row["id"],
        step=step.id,
        tool=reading.tool,
        arguments=arguments,
        noun=entity,
        known=tuple(_learn(plan, service, reading, name, key, row, step.id, entity, twin)),
    )
    try:
        for known in found.known:
            if not equal(plan.answers.evaluate(known.binding), known.value):
                return None
    except Exception:
        return None
    if key.known is not None:
        plan.uses[key.known.name] += 1
    plan.found.append(found)
    plan.known.extend(found.known)
    return found


def _learn(
    plan: Plan,
    service: str,
    reading: Reading,
    name: str,
    key: Key,
    row: Row,
    step: str,
    entity: str,
    twin: Row | None,
) -> Iterator[Known]:
    schema = plan.schema(service, reading.table)
    others = [item for item in plan.rows(service, reading.table) if item["id"] != row["id"]]
    mentioned = {str(item.value) for item in plan.known} | {str(key.value)}
    for field, part in schema.row["properties"].items():
        value = row.get(field)
        if field not in reading.shows or field == name or not _is_telling(value, part):
            continue
        word = semantic_of(part)
        if str(value) in mentioned and not (word or "").startswith("id:"):
            continue
        decoys = [item[field] for item in others if item.get(field) not in (None, "") and not equal(item[field], value)]
        if not decoys:
            continue
        if twin is not None and twin.get(field) not in (None, "", value):
            decoys.append(twin[field])
        if reading.many:
            pick = {"from": {"$ref": f"{step}.{reading.path}"}, "where": {name: key.binding}, "take": field}
            binding: dict[str, Any] = {"$pick": pick}
        else:
            binding = {"$ref": f"{step}.{reading.path}.{field}"}
        yield Known(
            name=plan.name(entity, field, binding),
            value=value,
            decoy=decoys[-1],
            semantic=word,
            schema=part,
            phrase=f"the {label(field)} of the {entity}",
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
class Lookup:
    """Find a row by something learnt before, or at first by something that the instruction names."""

    letter = "L"

    def attempts(self, plan: Plan, service: str) -> list[Any]:
        """(reading, field, key) combinations to try, in random order."""
        found: list[Any] = []
        affordances = plan.affordances[service]
        visited = {(item.service, item.table, item.row) for item in plan.found}
        for reading in affordances.readings:
            if len(reading.by) > 1 or (not reading.many and not reading.by):
                continue
            properties = plan.schema(service, reading.table).row["properties"]
            names = list(reading.by.values()) or sorted(reading.shows)
            for name in names:
                if name == "id" or name not in properties or name not in reading.shows:
                    continue
                if not plan.known:
                    found += [(reading, name, key) for key in self._anchors(plan, service, reading, name)]
                    continue
                found += [(reading, name, key) for key in keys_for(plan, service, name, properties[name])]
        plan.rng.shuffle(found)
        found.sort(key=lambda item: (plan.uses[item[2].known.name] if item[2].known else 0, not item[0].by))
        return [item for item in found if not self._is_seen(plan, service, item, visited)]

    @staticmethod
    def _is_seen(plan: Plan, service: str, attempt: Any, visited: set[tuple[str, str, str]]) -> bool:
        reading, name, key = attempt
        return any(
            (service, reading.table, row["id"]) in visited and equal(row.get(name), key.value)
            for row in plan.rows(service, reading.table)
        )

    @staticmethod
    def _anchors(plan: Plan, service: str, reading: Reading, name: str) -> Iterator[Key]:
        part = plan.schema(service, reading.table).row["properties"][name]
        if semantic_of(part) not in ANCHORS or is_choice(part):
            return
        rows = [row for row in plan.rows(service, reading.table) if isinstance(row.get(name), str)]
        counts = [row[name] for row in rows]
        unique = [value for value in counts if counts.count(value) == 1 and 3 < len(value) <= 60]
        for value in plan.rng.sample(unique, min(2, len(unique))):
            yield Key(value, value, f'"{value}"', None)

    def apply(self, plan: Plan, service: str, attempt: Any) -> bool:
        """Add the lookup to the plan."""
        reading, name, key = attempt
        row = find_row(plan, service, reading, name, key)
        if row is None:
            return False
        twin = near_duplicate(plan, service, reading.table, name, key.value) if key.known is None else None
        found = read_row(plan, service, reading, name, key, row, twin)
        if found is None or not any(not known.is_id for known in found.known):
            return False
        if twin is not None:
            plan.guarded.append(
                Guarded(service, reading.table, twin["id"], f'the {found.noun} "{twin[name]}" stays as it is')
            )
            plan.capabilities.add("near_duplicate")
        if key.known is not None and key.known.service != service:
            plan.capabilities.add("join")
        if key.known is None:
            warning = f' (not to be confused with "{twin[name]}")' if twin is not None else ""
            plan.clauses.append(f"Start with the {found.noun} {key.clue}{warning} in {plan.place(service)}.")
        else:
            plan.clauses.append(f"In {plan.place(service)}, find the {found.noun} {key.clue}.")
        return True
