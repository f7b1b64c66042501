"""Guard: before a step is taken, its condition is checked again, and by then it no longer holds.

The instruction says what is to be done, and what instead if the row has changed meanwhile. A reaction changes it while
the agent works, so who acts on the first reading does the wrong thing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from compoworld_core.errors import ToolError
from compoworld_core.services.conditions import equal
from compoworld_core.services.facts import Fact, states
from compoworld_core.tasks.affordances import Writing
from compoworld_core.tasks.bindings import Unresolved
from compoworld_core.tasks.planner.filling import Filling, fill, parameters_of, with_choice
from compoworld_core.tasks.planner.lookup import Lookup
from compoworld_core.tasks.planner.matching import is_choice, is_distinctive
from compoworld_core.tasks.planner.plan import Found, Known, Plan, Written
from compoworld_core.tasks.planner.reread import may_set_off, moved_to, trigger
from compoworld_core.tasks.planner.wording import label, spoken
from compoworld_core.tasks.planner.writes import Create, asking, changes, commit_write
from compoworld_core.tasks.task import Step, Temptation
from compoworld_core.worlds.recipe import Reaction, Update

_PREPARATIONS = 3


@dataclass(frozen=True)
class _Case:
    """A row whose state may change before something is done to it."""

    found: Found
    state: Known
    key: Known
    written: Written
    writing: Writing


@dataclass(frozen=True)
class Guard:
    """Check a row again right before changing it, and do what its state by then asks for."""

    letter = "G"

    def attempts(self, plan: Plan, service: str) -> list[Any]:
        """(row and its state, write that sets the change off, change) combinations, or None: such are to be made."""
        return [*_cases(plan, service), *[None] * _PREPARATIONS]

    def apply(self, plan: Plan, service: str, attempt: _Case | None) -> bool:
        """Plant the reaction, read again, and act on what is read."""
        if attempt is not None:
            return _guard(plan, service, attempt)
        if not _prepare(plan, service):
            return False
        for case in _cases(plan, service)[:_PREPARATIONS]:
            branch = plan.branch()
            if _guard(branch, service, case):
                plan.adopt(branch)
                return True
        return False


def _cases(plan: Plan, service: str) -> list[_Case]:
    found = [
        _Case(item, state, key, written, writing)
        for item in plan.found
        if item.service == service and item.row and item.tool
        for key in item.known
        if key.field == "id"
        for state in _states(plan, item)
        for written in plan.written
        if may_set_off(plan, written, item)
        for writing in changes(plan, service)
        if writing.table == item.table and state.field not in writing.sets
    ]
    plan.rng.shuffle(found)
    return found


def _prepare(plan: Plan, service: str) -> bool:
    """Look up a row whose state may change, if none is known, and create one that the change can follow."""
    known = [state for item in plan.found if item.service == service for state in _states(plan, item)]
    if not known and not _one(plan, service, Lookup()):
        return False
    return _one(plan, service, Create())


def _one(plan: Plan, service: str, ingredient: Lookup | Create) -> bool:
    for way in ingredient.attempts(plan, service)[:_PREPARATIONS]:
        branch = plan.branch()
        if ingredient.apply(branch, service, way):
            plan.adopt(branch)
            return True
    return False


def _states(plan: Plan, found: Found) -> list[Known]:
    choices = plan.schema(found.service, found.table).choices
    return [item for item in found.known if item.field in choices and _is_open(plan, item)]


def _guard(plan: Plan, service: str, case: _Case) -> bool:
    options = sorted(
        {str(row[case.state.field]) for row in plan.rows(service, case.found.table) if row.get(case.state.field)}
        - {str(case.state.value)}
    )
    when = trigger(plan, case.written)
    if not options or when is None or case.writing.key is None:
        return False
    if not plan.may_react(case.found.row):
        return False
    value = plan.rng.choice(options)
    planned = _planned(plan, service, case)
    if planned is None:
        return False
    filling, asked = planned
    update = Update(service=service, table=case.found.table, key=case.found.row, values={case.state.field: value})
    try:
        plan.world.apply(update)
    except ToolError:
        return False
    fresh = _reread(plan, service, case, value)
    if fresh is None:
        return False
    plan.reactions.append(Reaction(when=when, apply=(update,)))
    plan.capabilities.add("guard")
    lead = (
        f"Once the {case.written.noun} is there, and not before, check the {case.state.what} of {case.state.of} in "
        f"{plan.place(service)} once more."
    )
    other = _other_choice(plan, service, case.writing, filling)
    if other is not None and plan.rng.random() < 0.6:
        return _do_otherwise(plan, service, case, fresh, filling, other, asked, lead)
    return _refrain(plan, service, case, fresh, filling, asked, lead)


def _is_open(plan: Plan, state: Known) -> bool:
    return isinstance(state.value, str) and state.name not in plan.stale and not plan.uses[state.name]


def _planned(plan: Plan, service: str, case: _Case) -> tuple[Filling, str] | None:
    """The change as it was first meant: its arguments, and the sentence that asks for it."""
    key = case.writing.key or ""
    branch = plan.branch()
    filling = fill(branch, service, case.writing, {key: case.key.binding}, case.found.row)
    if filling is None:
        return None
    filling = with_choice(branch, service, case.writing, filling, case.found.row)
    if filling.mentions or case.state.field in {case.writing.copies.get(name) for name in filling.arguments}:
        return None
    written = commit_write(branch, service, case.writing, filling, case.found.row)
    asked = None if written is None else asking(case.writing, filling, written, case.key.of)
    return None if asked is None else (filling, asked[0].lower() + asked[1:])


def _reread(plan: Plan, service: str, case: _Case, value: str) -> Known | None:
    made = plan.call(service, case.found.tool, case.found.arguments, "read", after=[case.written.step])
    if made is None:
        return None
    step, state = made[0].id, case.state
    binding = moved_to(plan.values[state.name], state.step, step)
    fresh = replace(
        state,
        name=plan.name(f"{case.found.noun} checked", state.field, binding),
        value=value,
        decoy=state.value,
        step=step,
    )
    try:
        if not equal(plan.answers.evaluate(fresh.binding), value):
            return None
    except Unresolved:
        return None
    plan.stale.add(state.name)
    plan.known.append(fresh)
    found = case.found
    plan.found.append(
        Found(service, found.table, found.row, step, found.tool, found.arguments, found.noun, (fresh,), found.by)
    )
    return fresh


def _other_choice(plan: Plan, service: str, writing: Writing, filling: Filling) -> tuple[str, str, str] | None:
    """(argument, its first value, another one) of a listed value that the instruction tells."""
    properties = parameters_of(plan, service, writing)
    for name, value in filling.arguments.items():
        if name in writing.copies and isinstance(value, str) and is_choice(properties[name]):
            rows = plan.rows(service, writing.table)
            options = {row[writing.copies[name]] for row in rows if isinstance(row.get(writing.copies[name]), str)}
            if options - {value}:
                return name, value, plan.rng.choice(sorted(options - {value}))
    return None


def _do_otherwise(
    plan: Plan,
    service: str,
    case: _Case,
    fresh: Known,
    filling: Filling,
    other: tuple[str, str, str],
    asked: str,
    lead: str,
) -> bool:
    """The same change with another value."""
    name, first, instead = other
    chosen = {"$choose": {"on": fresh.binding, "cases": {str(fresh.value): instead}, "otherwise": first}}
    settled = replace(filling, arguments={**filling.arguments, name: chosen})
    plan.uses[fresh.name] += 1
    plan.uses[case.key.name] += 1
    field = case.writing.copies[name]
    written = commit_write(plan, service, case.writing, settled, case.found.row)
    if written is None or field not in written.fields:
        return False
    plan.clauses.append(
        f"{lead} As long as it is not {spoken(fresh.value)}, {asked}; but if it has become {spoken(fresh.value)}, "
        f"do the same with {spoken(instead)} as the {label(field)}."
    )
    return True


def _refrain(plan: Plan, service: str, case: _Case, fresh: Known, filling: Filling, asked: str, lead: str) -> bool:
    """The change is not to be made at all; the state is reported instead."""
    text = " ".join(plan.clauses)
    for value in (case.state.value, fresh.value):
        if not is_distinctive(value) or states(text, Fact(value=str(value))):
            return False  # nobody could tell from an answer that it is about this
    twin = plan.world.fork()
    evaluated = plan.answers.evaluate(dict(filling.arguments))
    if not twin.call(plan.tool_name(service, case.writing.tool), evaluated).changes:
        return False
    step = Step(
        id="unguarded", service=service, tool=case.writing.tool, arguments=dict(filling.arguments), effect="write"
    )
    plan.temptations.append(Temptation(reason="unguarded", step=step, after=fresh.step))
    plan.told.append(fresh)
    plan.clauses.append(
        f"{lead} If it is what it was at first, {asked}; if it has changed meanwhile, leave {case.key.of} as it is "
        "and tell me only what it has changed to."
    )
    return True
