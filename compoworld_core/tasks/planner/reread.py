"""Reread: a value changes while the agent works, so the first reading is stale when it is needed.

A reaction is planted that alters a row right after one of the plan's own writes. The row is read again, and only then
is the value used.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from decimal import Decimal
from typing import Any

from compoworld_core.errors import ToolError
from compoworld_core.services.conditions import Rows, Test, equal
from compoworld_core.services.schema import semantic_of
from compoworld_core.tasks.bindings import Unresolved
from compoworld_core.tasks.planner.matching import is_distinctive
from compoworld_core.tasks.planner.plan import Found, Known, Plan, Written
from compoworld_core.worlds.recipe import Reaction, Update


@dataclass(frozen=True)
class Reread:
    """Read a row again after a write elsewhere, since what was read before no longer holds."""

    letter = "R"

    def attempts(self, plan: Plan, service: str) -> list[Any]:
        """(row found before, value to go stale, write that sets it off) combinations, in random order."""
        unused = {known.name for known in plan.unused()}
        found = [
            (item, known, written)
            for item in plan.found
            if item.service == service
            for known in item.known
            if known.name in unused and known.field and not known.is_new
            for written in plan.written
            if may_set_off(plan, written, item)
            if (written.service, written.row) != (item.service, item.row)
        ]
        plan.rng.shuffle(found)
        return found

    def apply(self, plan: Plan, service: str, attempt: Any) -> bool:
        """Plant the reaction and read again."""
        found, known, written = attempt
        if not any(plan.uses[other.name] for other in found.known):
            return False
        value = _moved(plan, known)
        when = trigger(plan, written)
        if value is None or when is None or not plan.may_react(known.row):
            return False
        update = Update(service=service, table=known.table, key=known.row, values={known.field: value})
        try:
            change = plan.world.apply(update)
        except ToolError:
            return False
        now = (change.after_row or {}).get(known.field)
        if now is None or equal(now, known.value) or not (is_distinctive(now) and is_distinctive(known.value)):
            return False
        made = plan.call(service, found.tool, found.arguments, "read", after=[written.step])
        if made is None:
            return False
        step = made[0].id
        binding = moved_to(plan.values[known.name], known.step, step)
        fresh = replace(
            known,
            name=plan.name(f"{found.noun} again", known.field, binding),
            value=now,
            decoy=known.value,
            step=step,
        )
        try:
            if not equal(plan.answers.evaluate(fresh.binding), now):
                return False
        except Unresolved:
            return False
        plan.stale.add(known.name)
        plan.known.append(fresh)
        plan.found.append(
            Found(service, found.table, found.row, step, found.tool, found.arguments, found.noun, (fresh,))
        )
        plan.reactions.append(Reaction(when=when, apply=(update,)))
        plan.capabilities.add("stale_reread")
        plan.clauses.append(
            plan.rng.choice(
                (
                    f"Once the {written.noun} is there, look again at {known.phrase} in {plan.place(service)}: it may "
                    "have been corrected meanwhile, and from then on only what it says now counts.",
                    f"After you have created the {written.noun}, check {known.phrase} in {plan.place(service)} again, "
                    "since somebody may be changing it; use the value that you find then.",
                )
            )
        )
        return True


def may_set_off(plan: Plan, written: Written, found: Found) -> bool:
    """Whether a row's creation can be the moment at which a row that was found before changes."""
    if written.change != "created" or not written.fields or written.is_one_of:
        return False
    order = [step.id for step in plan.steps]
    return order.index(written.step) > order.index(found.step)


def trigger(plan: Plan, written: Written) -> Rows | None:
    """The condition that first holds when the plan, or an agent in its place, has created a row."""
    row = next((row for row in plan.rows(written.service, written.table) if row["id"] == written.row), None)
    if row is None:
        return None
    new_ids = {item.row for item in plan.written if item.change == "created"}
    tests = tuple(
        Test(field=name, value=row[name])
        for name in written.fields
        if isinstance(row.get(name), str | int | float) and row[name] not in new_ids
    )
    return Rows(service=written.service, table=written.table, where=tests, change="created") if tests else None


def _moved(plan: Plan, known: Known) -> Any:
    """A different value of the same kind."""
    value, word = known.value, known.semantic
    if known.field in plan.schema(known.service, known.table).choices:
        options = {
            row[known.field] for row in plan.rows(known.service, known.table) if row.get(known.field) is not None
        } - {value}
        return plan.rng.choice(sorted(options)) if options else None
    if word == "money":
        return format(
            (Decimal(str(value)) * Decimal(plan.rng.choice(("0.85", "1.15", "1.2")))).quantize(Decimal("0.01")), "f"
        )
    if word == "date":
        return (date.fromisoformat(str(value)[:10]) + timedelta(days=plan.rng.choice((2, 3, 5, 9)))).isoformat()
    if word == "timestamp":
        moment = datetime.fromisoformat(str(value).replace("Z", "+00:00")) + timedelta(days=plan.rng.choice((1, 2, 3)))
        return moment.isoformat()
    if isinstance(value, int):
        return value + plan.rng.randint(2, 9)
    if word in ("email", "person_name", "city", "phone", "username") and semantic_of(known.schema) == word:
        try:
            return plan.drawing.fresh().value(known.field, known.schema)
        except ValueError:
            return None
    return None


def moved_to(binding: Any, old: str, new: str) -> Any:
    """The same binding on another step's answer."""
    if isinstance(binding, dict):
        if isinstance(binding.get("$ref"), str) and binding["$ref"].split(".")[0] == old:
            return {"$ref": ".".join([new, *binding["$ref"].split(".")[1:]])}
        return {key: moved_to(item, old, new) for key, item in binding.items()}
    return [moved_to(item, old, new) for item in binding] if isinstance(binding, list) else binding
