"""Rules: a planted text decides something, and an outdated version of it says otherwise.

Whatever the rules give (a code, a choice, a person, a rate, a number of days), both versions give it for every case and
never the same, so following the wrong one shows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compoworld_core.services.record import Row
from compoworld_core.services.schema import TableSchema, semantic_of
from compoworld_core.tasks.affordances import Reading
from compoworld_core.tasks.bindings import Unresolved
from compoworld_core.tasks.planner.matching import kinds
from compoworld_core.tasks.planner.plan import Found, Known, Plan
from compoworld_core.tasks.planner.wording import noun

TOPICS = (
    "Approval",
    "Archiving",
    "Dispatch",
    "Escalation",
    "Follow-up",
    "Handling",
    "Intake",
    "Review",
    "Routing",
    "Sign-off",
)
MOST_CASES = 3
_ROOM = 8
"""Rows that a plan may still add to a list of texts."""
_WRITTEN_DOWN_IN = ("documents", "knowledge", "communication")
"""Domains whose texts people keep rules in, the usual ones first."""


@dataclass(frozen=True)
class Shelf:
    """Where documents can be read: the reading that finds them, and the one that shows their text."""

    table: str
    title: str
    body: str
    find: Reading
    read: Reading


@dataclass(frozen=True)
class Rules:
    """Rules that were read.

    Attributes:
        step: The step that shows the text in force.
        fact: The binding of what they give in the case at hand.
    """

    topic: str
    shelf: Shelf
    row: str
    step: str
    fact: dict[str, Any]

    def known(self, plan: Plan, service: str, what: str, value: Any, decoy: Any, **about: Any) -> Known:
        """Add what a reader takes from the rules to the plan; `about` may replace any attribute."""
        known = Known(
            **{
                "name": plan.name(f"{self.topic.lower()} rules", what.split()[0], about.pop("binding", self.fact)),
                "value": value,
                "decoy": decoy,
                "semantic": None,
                "schema": {"type": "string"},
                "what": what,
                "of": "",
                "step": self.step,
                "service": service,
                "table": self.shelf.table,
                "row": self.row,
                "field": "",
                **about,
            }
        )
        plan.known.append(known)
        reading = self.shelf.read
        plan.found.append(Found(service, self.shelf.table, self.row, self.step, reading.tool, {}, "rules", (known,)))
        return known


def consult(
    plan: Plan,
    service: str,
    shelf: Shelf,
    trait: Known | None,
    tell: Callable[[Mapping[str, str]], str],
    current: Mapping[str, str],
    outdated: Mapping[str, str],
) -> Rules | None:
    """Plant both versions of some rules and read the one in force.

    Args:
        trait: The value that decides; without it, the rules say the same for everybody, under the only name.
        tell: The text that gives what is in a mapping.
    """
    if len(plan.rows(service, shelf.table)) + _ROOM > _page(shelf.find):
        return None  # what is planted later may push the text off the page
    taken = {row.get(shelf.title) for row in plan.rows(service, shelf.table)}
    free = [topic for topic in TOPICS if not any(f"{topic} rules" in str(title) for title in taken)]
    if not free:
        return None
    topic = plan.rng.choice(free)
    year = plan.world.recipe.start_time.year
    title, old_title = f"{topic} rules, in force since January {year}", f"{topic} rules ({year - 1})"
    old = _plant_text(plan, service, shelf, old_title, tell(outdated), outdated)
    new = _plant_text(plan, service, shelf, title, tell(current), current)
    if old is None or new is None:
        return None
    key, step = _read(plan, service, shelf, title)
    if step is None:
        return None
    name = next(iter(current)) if trait is None else trait.binding
    fact = {"$fact": {"step": step, "name": name, **({} if key is None else {"of": key})}}
    if trait is not None:
        plan.uses[trait.name] += 1
        plan.capabilities.add("policy_branch")
    return Rules(topic, shelf, new["id"], step, fact)


def shelves(plan: Plan, service: str) -> list[Shelf]:
    """Where a service keeps texts that rules can be among."""
    found: list[Shelf] = []
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
            found.append(Shelf(table, title, body, direct[0], direct[0]))
        elif listing and by_id:
            found.append(Shelf(table, title, body, listing[0], by_id[0]))
    return found


def _page(reading: Reading) -> int:
    sizes = [value for value in reading.fixed.values() if isinstance(value, int)]
    return min(sizes, default=1_000_000)


def _title_and_body(schema: TableSchema) -> tuple[str | None, str | None]:
    properties = schema.row["properties"]
    texts = [name for name, part in properties.items() if semantic_of(part) == "text" and "string" in kinds(part)]
    titles = [name for name, part in properties.items() if semantic_of(part) == "title" and "string" in kinds(part)]
    return (titles[0] if titles else None), (texts[0] if texts else None)


def traits(plan: Plan) -> list[Known]:
    """Values that rules can go by: one of a few that rows of their kind have; the least used first."""
    found = [known for known in plan.known if _is_trait(plan, known)]
    plan.rng.shuffle(found)
    return sorted(found, key=lambda known: plan.uses[known.name])


def _is_trait(plan: Plan, known: Known) -> bool:
    if known.name in plan.stale or known.is_new or known.is_id or not isinstance(known.value, str) or not known.field:
        return False
    rows = plan.rows(known.service, known.table)
    values = {str(row.get(known.field)) for row in rows if row.get(known.field)}
    schema = plan.schema(known.service, known.table)
    few = known.field in schema.choices or known.semantic in ("city", "country", "tag", "currency")
    return few and 2 <= len(values) <= max(8, len(rows) // 2)


def cases_of(plan: Plan, trait: Known, most: int = MOST_CASES) -> list[str]:
    """The trait's value, and others that rows of its kind have."""
    rows = plan.rows(trait.service, trait.table)
    others = sorted({str(row[trait.field]) for row in rows if row.get(trait.field)} - {str(trait.value)})
    return [str(trait.value), *plan.rng.sample(others, min(most - 1, len(others)))]


def quality_of(plan: Plan, trait: Known) -> str:
    """How rules speak of a trait: `tier of the account`."""
    return f"{trait.what} of the {noun(plan.schema(trait.service, trait.table).entity)}"


def lines(outcomes: Mapping[str, str]) -> Iterator[str]:
    """A line per case, in an order that gives nothing away."""
    return (f"- {case}: {outcome}" for case, outcome in sorted(outcomes.items()))


def _plant_text(plan: Plan, service: str, shelf: Shelf, title: str, text: str, facts: Mapping[str, str]) -> Row | None:
    rows = plan.rows(service, shelf.table)
    for original in plan.rng.sample(rows, min(4, len(rows))):
        values = {name: value for name, value in original.items() if name != "id"}
        planted = plan.plant(service, shelf.table, {**values, shelf.title: title, shelf.body: text}, facts)
        if planted is not None:
            return planted
    return None


def _read(plan: Plan, service: str, shelf: Shelf, title: str) -> tuple[Any, str | None]:
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
