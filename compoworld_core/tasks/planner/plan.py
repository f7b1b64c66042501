"""A plan under construction: the world as its steps would leave it, the values known so far, and what they are for.

Everything is tried on the plan's own world as it is added: plants, reads, writes. A plan that exists has been run.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field, fields, replace
from typing import Any

from compoworld_core.errors import ToolError
from compoworld_core.services.conditions import equal
from compoworld_core.services.drawing import Drawing
from compoworld_core.services.record import Row
from compoworld_core.services.schema import TableSchema
from compoworld_core.services.state import RowChange
from compoworld_core.tasks.affordances import Affordances
from compoworld_core.tasks.bindings import Answers
from compoworld_core.tasks.planner.matching import PERSONAL, person_role
from compoworld_core.tasks.planner.wording import noun, phrase
from compoworld_core.tasks.task import Step, Temptation
from compoworld_core.worlds.recipe import Insert, Plant, Reaction
from compoworld_core.worlds.world import World

PLANTED_IDS = (5000, 9999)
"""Numbers of planted rows' ids, out of reach of the tables' own counters."""


MOST_REACTIONS = 2
"""Moves of the world in one task."""


@dataclass(frozen=True)
class Known:
    """A value that a step of the plan learnt.

    Attributes:
        name: Its name among the solution's values; unique in the plan.
        value: What it is in the plan's world.
        decoy: A wrong value that a careless agent might use instead.
        what: How the instruction calls its field.
        of: How the instruction calls its row; empty where the value stands alone.
        is_new: Whether it belongs to a row that the plan itself created.
        is_derived: Whether it was worked out from other values; it then has no field.
    """

    name: str
    value: Any
    decoy: Any
    semantic: str | None
    schema: Mapping[str, Any]
    what: str
    of: str
    step: str
    service: str
    table: str
    row: str
    field: str
    is_new: bool = False
    is_derived: bool = False

    @property
    def phrase(self) -> str:
        """How the instruction speaks of it."""
        return phrase(self)

    @property
    def binding(self) -> dict[str, str]:
        """How steps and the answer refer to it."""
        return {"$value": self.name}

    @property
    def is_decided(self) -> bool:
        """Whether it is meant for one write alone."""
        return (self.semantic or "").startswith("choice:")

    @property
    def is_id(self) -> bool:
        """Whether it is the id of a row, which only its own service understands."""
        return (self.semantic or "").startswith("id:")


@dataclass(frozen=True)
class Found:
    """A row that the plan looked up, or a list of rows, which has no `row` of its own.

    Attributes:
        step: The step whose answer shows the row.
        reading_args: Arguments of that step.
        noun: How the instruction speaks of the row.
        by: The field and value by which it was singled out.
    """

    service: str
    table: str
    row: str
    step: str
    tool: str
    arguments: Mapping[str, Any]
    noun: str
    known: tuple[Known, ...]
    by: tuple[str, Any] = ("", None)


@dataclass(frozen=True)
class Written:
    """A row that the plan wrote, and the fields that matter.

    Attributes:
        is_one_of: Whether it is one of several that the instruction does not tell apart.
    """

    service: str
    table: str
    row: str
    step: str
    change: str
    fields: tuple[str, ...]
    mentions: tuple[tuple[str, Known], ...]
    noun: str
    is_one_of: bool = False


@dataclass(frozen=True)
class Decision:
    """A value that rules have chosen for an argument of a write that is still to come."""

    service: str
    tool: str
    parameter: str
    known: Known


@dataclass(frozen=True)
class Guarded:
    """A row that must stay as it is, and why a person would confuse it."""

    service: str
    table: str
    row: str
    description: str


_PERSONAL = {word: "name" if word == "person_name" else word for word in PERSONAL}
_ORDINALS = ("second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth", "tenth", "other", "last")

_COPIED = (
    *("steps", "known", "found", "written", "guarded", "plants", "reactions", "clauses", "capabilities", "visits"),
    *("values", "uses", "stale", "changed", "arguments", "decided", "temptations", "told"),
)


@dataclass
class Plan:
    """Mutable while it is being made; `branch` gives each try its own copy.

    Attributes:
        uses: How many steps use a value, by its name.
        stale: Names of values that no longer hold.
        arguments: Evaluated arguments by step.
        ahead: Services of the visits that are still to come.
        decided: Decisions of rules about later writes.
        temptations: Calls that a careless agent would make.
        told: Values that the final answer has to state.
        changed: (service, table, row, kind) of every row that the plan's own steps changed.
    """

    world: World
    affordances: Mapping[str, Affordances]
    drawing: Drawing
    rng: random.Random
    steps: list[Step] = field(default_factory=list)
    known: list[Known] = field(default_factory=list)
    found: list[Found] = field(default_factory=list)
    written: list[Written] = field(default_factory=list)
    guarded: list[Guarded] = field(default_factory=list)
    plants: list[Plant] = field(default_factory=list)
    reactions: list[Reaction] = field(default_factory=list)
    clauses: list[str] = field(default_factory=list)
    capabilities: set[str] = field(default_factory=set)
    visits: list[str] = field(default_factory=list)
    ahead: tuple[str, ...] = ()
    decided: list[Decision] = field(default_factory=list)
    temptations: list[Temptation] = field(default_factory=list)
    told: list[Known] = field(default_factory=list)
    values: dict[str, Any] = field(default_factory=dict)
    uses: Counter[str] = field(default_factory=Counter)
    stale: set[str] = field(default_factory=set)
    changed: list[tuple[str, str, str, str]] = field(default_factory=list)
    arguments: dict[str, dict[str, Any]] = field(default_factory=dict)
    answers: Answers = field(default_factory=lambda: Answers({}, {}))
    views: dict[int, tuple[Any, Row]] = field(default_factory=dict)
    """JSON views by identity of the record, which is kept so that no other takes its place."""

    def branch(self) -> Plan:
        """An independent copy that a try may spoil."""
        return replace(
            self,
            world=self.world.fork(),
            answers=self.answers.copy(),
            **{name: copy(getattr(self, name)) for name in _COPIED},
        )

    def adopt(self, branch: Plan) -> None:
        """Go on from where a branch has come to."""
        for item in fields(self):
            setattr(self, item.name, getattr(branch, item.name))

    def usable(self) -> list[Known]:
        """Values that still hold, the least used first."""
        return sorted(
            (item for item in self.known if item.name not in self.stale), key=lambda item: self.uses[item.name]
        )

    def unused(self) -> list[Known]:
        """Values that still hold and that nothing uses yet, apart from ids of rows that were there before."""
        return [item for item in self.usable() if not self.uses[item.name] and not item.is_id]

    # Reading the world

    def schema(self, service: str, table: str) -> TableSchema:
        """A table's schema."""
        return self.affordances[service].tables[table]

    def rows(self, service: str, table: str) -> list[Row]:
        """A table's rows now. They are shared with other calls, so none may be altered."""
        found = self.world.services[service].state.tables[table]
        rows = []
        for record in found:
            seen = self.views.get(id(record))
            if seen is None:
                seen = self.views[id(record)] = (record, found.type.view(record))
            rows.append(seen[1])
        return rows

    def place(self, service: str) -> str:
        """How the instruction calls a service: by its title, and by its name where that is another."""
        title = self.affordances[service].package.spec.title or service
        return title if _letters(title) == _letters(service) else f"{title} ({service})"

    def tool_name(self, service: str, tool: str) -> str:
        """A tool's name in the plan's world."""
        return next(
            name for name, bound in self.world.tools.items() if (bound.service, bound.spec.name) == (service, tool)
        )

    def noun_for(self, service: str, table: str, row: str, kind: str = "") -> str:
        """A noun for a row that no other row of the plan goes by: `customer`, `new customer`, `second customer`."""
        entity = noun(self.schema(service, table).entity)
        told = [(item.noun, (item.service, item.table, item.row)) for item in self.found]
        told += [(item.noun, (item.service, item.table, item.row)) for item in self.written if not item.is_one_of]
        same = next((name for name, place in told if place == (service, table, row) and name.endswith(entity)), None)
        if same is not None:
            return same
        taken = {name for name, _ in told}
        stem = f"{kind} {entity}".strip()
        options = (stem, *(f"{place} {stem}" for place in _ORDINALS))
        return next(option for option in options if option not in taken)

    # Changing it

    def plant(self, service: str, table: str, values: Row, facts: Mapping[str, str] | None = None) -> Row | None:
        """Add a row that is there from the start; None where the table refuses it, or it could be taken for another."""
        if self.is_confusing(service, table, values):
            return None
        prefix = self.schema(service, table).id_prefix
        taken = {row["id"] for row in self.rows(service, table)}
        key = next(
            key
            for number in iter(lambda: self.rng.randint(*PLANTED_IDS), None)
            if (key := f"{prefix}_{number}") not in taken
        )
        operation = Insert(service=service, table=table, values={**values, "id": key})
        try:
            change = self.world.apply(operation)
        except ToolError:
            return None
        self.plants.append(Plant(do=operation, facts=dict(facts or {})))
        if facts:
            self.answers.plant(service, key, facts)
        return change.after_row

    def is_confusing(self, service: str, table: str, row: Row, key: str = "") -> bool:
        """Whether a row could be taken for one that was looked up before.

        Args:
            key: The row's id, if it has one.
        """
        return any(
            (service, table) == (found.service, found.table)
            and key != (found.row or None)
            and equal(row.get(found.by[0]), found.by[1])
            for found in self.found
            if found.by[0]
        )

    def may_react(self, row: str) -> bool:
        """Whether the world may move once more, at this row."""
        moved = {getattr(operation, "key", "") for reaction in self.reactions for operation in reaction.apply}
        return len(self.reactions) < MOST_REACTIONS and row not in moved

    def call(
        self, service: str, tool: str, arguments: Mapping[str, Any], effect: str, after: Iterable[str] = ()
    ) -> tuple[Step, tuple[RowChange, ...]] | None:
        """Add a step and run it; None where it is refused."""
        step = Step(
            id=f"s{len(self.steps) + 1}",
            service=service,
            tool=tool,
            arguments=dict(arguments),
            effect="write" if effect == "write" else "read",
            after=tuple(after),
        )
        evaluated = self.answers.evaluate(dict(arguments))
        result = self.world.call(self.tool_name(service, tool), evaluated)
        if not result.succeeded:
            return None
        self.answers.add(step.id, service, result.envelope)
        self.steps.append(step)
        self.arguments[step.id] = evaluated
        for change in result.changes:
            kind = "created" if change.before is None else "deleted" if change.after is None else "updated"
            self.changed.append((service, change.table.name, change.key, kind))
        return step, result.changes

    def name(self, noun: str, field_name: str, binding: Any) -> str:
        """Name a value, so that every use refers to the same source."""
        stem = f"{noun.replace(' ', '_')}.{field_name}"
        name, number = stem, 2
        while name in self.values:
            name, number = f"{stem}.{number}", number + 1
        self.values[name] = binding
        self.answers.name(name, binding)
        return name

    def clone_row(self, service: str, table: str, overrides: Mapping[str, Any]) -> Row | None:
        """Plant a row like an existing one, apart from some fields."""
        schema = self.schema(service, table)
        unique = {name for group in schema.unique for name in group}
        originals = self.rows(service, table)
        chosen = self.rng.sample(originals, len(originals))
        told = {name: value for name, value in overrides.items() if name in schema.choices}
        chosen.sort(key=lambda row: sum(row.get(name) != value for name, value in told.items()))
        for original in chosen[:4]:
            values = {name: value for name, value in original.items() if name != "id"}
            for name in sorted(unique - set(overrides)):
                if values.get(name) is not None:
                    values[name] = self._another(schema, name, [row.get(name) for row in originals])
            planted = self.plant(
                service, table, {**values, **self._same_person(schema, values, overrides), **overrides}
            )
            if planted is not None:
                return planted
        return None

    def _another(self, schema: TableSchema, name: str, taken: list[Any]) -> Any:
        """A value for a field in which no two rows agree: drawn, or else like the existing ones."""
        one, other = (str(self.rng.choice(taken)) for _ in range(2))
        if re.search(r"\d", one) and "@" not in one:
            return re.sub(r"\d", lambda _: str(self.rng.randint(1, 9)), one)
        for _ in range(3):
            try:
                value = self.drawing.fresh().value(name, schema.row["properties"][name])
            except ValueError:
                break
            if value not in taken:
                return value
        return " ".join([*one.split()[:1], *other.split()[1:]])

    def is_plausible(self, service: str, table: str, name: str, value: Any) -> bool:
        """Whether a field may hold a person's value: not where all others are of colleagues and this one is not."""
        attribute = _PERSONAL.get(self.schema(service, table).semantics.get(name, ""))
        if attribute is None:
            return True
        ours = {getattr(person, attribute) for person in self.world.universe.staff}
        known = {row[name] for row in self.rows(service, table) if isinstance(row.get(name), str)}
        inside = [item in ours for item in known]
        return not inside or (not (all(inside) and value not in ours) and not (not any(inside) and value in ours))

    def _same_person(self, schema: TableSchema, row: Row, overrides: Mapping[str, Any]) -> dict[str, Any]:
        """Values of the row's other fields that describe a person or organisation whom an override names."""
        consistent: dict[str, Any] = {}
        for name, value in overrides.items():
            attribute = _PERSONAL.get(schema.semantics.get(name, ""))
            person = next(
                (item for item in self.world.universe.people if attribute and getattr(item, attribute) == value), None
            )
            if person is None:
                continue
            for other, word in schema.semantics.items():
                if (
                    other in row
                    and other not in overrides
                    and word in _PERSONAL
                    and person_role(other) == person_role(name)
                ):
                    consistent[other] = getattr(person, _PERSONAL[word])
        return consistent


def _letters(name: str) -> str:
    return "".join(letter for letter in name.casefold() if letter.isalnum())
