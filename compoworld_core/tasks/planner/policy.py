"""Policy: a document decides what to do, by a property of a row that was looked up.

Two versions are planted. The one in force and the outdated one give different codes for every case, so following the
wrong one shows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from compoworld_core.services.record import Row
from compoworld_core.services.schema import TableSchema, semantic_of
from compoworld_core.tasks.affordances import Reading
from compoworld_core.tasks.bindings import Unresolved
from compoworld_core.tasks.planner.matching import kinds
from compoworld_core.tasks.planner.plan import Found, Known, Plan

_TOPICS = (
    "Escalation",
    "Handling",
    "Routing",
    "Sign-off",
    "Archiving",
    "Review",
    "Follow-up",
    "Approval",
    "Intake",
    "Dispatch",
)
_CODES = tuple(f"{letter}-{number}" for letter in "KMQRTVX" for number in range(11, 99, 7))
_CASES = 3
_WRITTEN_DOWN_IN = frozenset({"documents", "knowledge"})


@dataclass(frozen=True)
class _Shelf:
    """Where documents can be read: the reading that finds them, and the one that shows their text."""

    table: str
    title: str
    body: str
    find: Reading
    read: Reading


@dataclass(frozen=True)
class Policy:
    """Read which code the rules in force give for a property of a row that was looked up."""

    letter = "P"

    def attempts(self, plan: Plan, service: str) -> list[Any]:
        """(shelf, property) combinations, in random order."""
        if any(item.semantic == "policy_code" for item in plan.known):
            return []
        shelves = _shelves(plan, service)
        traits = [known for known in plan.known if _is_trait(plan, known)]
        found = [(shelf, trait) for shelf in shelves for trait in traits]
        plan.rng.shuffle(found)
        return found

    def apply(self, plan: Plan, service: str, attempt: Any) -> bool:
        """Plant both versions of the rules and read the one in force."""
        shelf, trait = attempt
        topic = plan.rng.choice(_TOPICS)
        year = plan.world.recipe.start_time.year
        title, old_title = f"{topic} rules, in force since January {year}", f"{topic} rules ({year - 1})"
        cases = [trait.value, *_other_values(plan, trait)][:_CASES]
        codes = plan.rng.sample(_CODES, 2 * len(cases))
        current = dict(zip(map(str, cases), codes[: len(cases)], strict=True))
        outdated = dict(zip(map(str, cases), codes[len(cases) :], strict=True))
        entity = plan.schema(trait.service, trait.table).entity.replace("_", " ")
        quality = f"{trait.what} of the {entity}"
        old = _plant_text(plan, service, shelf, old_title, _text(quality, outdated), outdated)
        new = _plant_text(plan, service, shelf, title, _text(quality, current), current)
        if old is None or new is None:
            return False
        key, taken = _read(plan, service, shelf, title)
        if taken is None:
            return False
        fact = {"step": taken, "name": trait.binding, **({} if key is None else {"of": key})}
        plan.known.append(
            Known(
                name=plan.name(f"{topic.lower()} rules", "code", {"$fact": fact}),
                value=current[str(trait.value)],
                decoy=outdated[str(trait.value)],
                semantic="policy_code",
                schema={"type": "string"},
                what=f"{topic.lower()} code",
                of="",
                step=taken,
                service=service,
                table=shelf.table,
                row=new["id"],
                field=shelf.body,
            )
        )
        plan.uses[trait.name] += 1
        plan.found.append(
            Found(service, shelf.table, new["id"], taken, shelf.read.tool, {}, "rules", (plan.known[-1],))
        )
        plan.capabilities.add("policy_branch")
        plan.clauses.append(
            plan.rng.choice(
                (
                    f"Which {topic.lower()} code applies depends on {trait.phrase}: read our {topic.lower()} rules in "
                    f"{plan.place(service)}, and mind which version is in force.",
                    f"Our {topic.lower()} rules in {plan.place(service)} say which {topic.lower()} code goes with "
                    f"{trait.phrase}; go by the version that is in force.",
                )
            )
        )
        return True


def _shelves(plan: Plan, service: str) -> list[_Shelf]:
    found: list[_Shelf] = []
    affordances = plan.affordances[service]
    if affordances.package.spec.domain not in _WRITTEN_DOWN_IN:
        return found
    for table, schema in affordances.tables.items():
        title, body = _title_and_body(schema)
        if title is None or body is None:
            continue
        readings = affordances.readings_of(table)
        full = [item for item in readings if body in item.shows and title in item.shows]
        listing = [
            item for item in readings if title in item.shows and item.many and not item.by and "id" in item.shows
        ]
        direct = [item for item in full if item.many and not item.by]
        by_id = [item for item in full if not item.many and list(item.by.values()) == ["id"]]
        if direct:
            found.append(_Shelf(table, title, body, direct[0], direct[0]))
        elif listing and by_id:
            found.append(_Shelf(table, title, body, listing[0], by_id[0]))
    return found


def _title_and_body(schema: TableSchema) -> tuple[str | None, str | None]:
    properties = schema.row["properties"]
    texts = [name for name, part in properties.items() if semantic_of(part) == "text" and "string" in kinds(part)]
    titles = [name for name, part in properties.items() if semantic_of(part) == "title" and "string" in kinds(part)]
    return (titles[0] if titles else None), (texts[0] if texts else None)


def _is_trait(plan: Plan, known: Known) -> bool:
    """Whether a value is one of a few that rows of its kind have."""
    if (
        known.name in plan.stale
        or plan.uses[known.name]
        or known.is_new
        or known.is_id
        or not isinstance(known.value, str)
    ):
        return False
    values = {str(row.get(known.field)) for row in plan.rows(known.service, known.table) if row.get(known.field)}
    rows = len(plan.rows(known.service, known.table))
    schema = plan.schema(known.service, known.table)
    few = known.field in schema.choices or known.semantic in ("city", "country", "tag", "currency")
    return few and 2 <= len(values) <= max(8, rows // 2)


def _other_values(plan: Plan, trait: Known) -> list[str]:
    rows = plan.rows(trait.service, trait.table)
    return sorted({str(row[trait.field]) for row in rows if row.get(trait.field)} - {str(trait.value)})


def _text(quality: str, codes: dict[str, str]) -> str:
    lines = [f"- {value}: {code}" for value, code in codes.items()]
    return "\n".join([f"The code to use depends on the {quality}.", *lines, "In any other case ask first."])


def _plant_text(plan: Plan, service: str, shelf: _Shelf, title: str, text: str, facts: dict[str, str]) -> Row | None:
    rows = plan.rows(service, shelf.table)
    if any(row.get(shelf.title) == title for row in rows):
        return None
    for original in plan.rng.sample(rows, min(4, len(rows))):
        values = {name: value for name, value in original.items() if name != "id"}
        planted = plan.plant(service, shelf.table, {**values, shelf.title: title, shelf.body: text}, facts)
        if planted is not None:
            return planted
    return None


def _read(plan: Plan, service: str, shelf: _Shelf, title: str) -> tuple[Any, str | None]:
    """Add the steps that read the text; (binding of its id if the answer shows others too, step)."""
    made = plan.call(service, shelf.find.tool, dict(shelf.find.fixed), "read")
    if made is None:
        return None, None
    step = made[0].id
    items = {"$ref": f"{step}.{shelf.find.path}"}
    key = {"$pick": {"from": items, "where": {shelf.title: title}, "take": "id"}}
    try:
        plan.answers.evaluate(key)
    except Unresolved:  # a page that does not reach the row
        return None, None
    if shelf.find is shelf.read:
        return key, step
    argument = next(iter(shelf.read.by))
    made = plan.call(service, shelf.read.tool, {**shelf.read.fixed, argument: key}, "read")
    return (None, made[0].id) if made else (None, None)
