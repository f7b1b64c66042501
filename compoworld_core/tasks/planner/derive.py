"""Derive and combine: values that nobody can look up, since they are worked out from what was read.

A share or a fee that rules fix for an amount, a day that rules put off, or two amounts taken together. The result has a
name in the instruction and is used like any value: written into an amount or a date, stated in a text, or reported.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from compoworld_core.services.conditions import equal
from compoworld_core.tasks.bindings import Unresolved
from compoworld_core.tasks.planner.lookup import Lookup, find_clause, find_row, read_row
from compoworld_core.tasks.planner.matching import is_distinctive
from compoworld_core.tasks.planner.plan import Known, Plan
from compoworld_core.tasks.planner.rules import cases_of, consult, lines, quality_of, shelves, traits

_LEAST_AMOUNT = Decimal(20)
_SHARES = (15, 20, 25, 30, 35, 40, 45, 55, 60, 65, 70, 75, 80, 85, 90)
_FEES = ("4.50", "6.90", "7.25", "8.40", "9.75", "11.20", "12.60", "14.30", "15.80", "17.95")
_DAYS = (3, 4, 5, 6, 8, 9, 10, 12, 14, 16, 18, 21)
_AMOUNTS = ("agreed amount", "approved amount", "payable amount", "settlement amount")
_DATES = ("follow-up date", "new deadline", "target date")
_TOTALS = ("combined amount", "overall amount", "joint total")
_DIFFERENCES = ("difference", "remaining amount")


def amounts(plan: Plan) -> list[Known]:
    """Amounts worth reckoning with, the least used first."""
    return [item for item in plan.usable() if item.semantic == "money" and _amount(item.value) is not None]


def days(plan: Plan) -> list[Known]:
    """Days from which others can be counted, the least used first."""
    return [item for item in plan.usable() if item.semantic == "date" and not item.is_derived]


def _amount(value: Any) -> Decimal | None:
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number >= _LEAST_AMOUNT else None


def free_name(plan: Plan, names: tuple[str, ...]) -> str | None:
    """A name for a result that nothing else in the plan goes by."""
    taken = {item.what for item in plan.known}
    free = [name for name in names if name not in taken]
    return plan.rng.choice(free) if free else None


@dataclass(frozen=True)
class _Calculation:
    """What rules do with a value: the outcomes they may give, how they tell them, and what comes of them."""

    names: tuple[str, ...]
    options: tuple[str, ...]
    told: str
    opening: str
    asked: str

    def binding(self, base: Any, fact: Any) -> dict[str, Any]:
        """The result, from the value and what the rules give."""
        if self.options is SHARE.options:
            return {"$round": [{"$mul": [base, fact]}, 2]}
        return {"$sub": [base, fact]} if self.options is FEE.options else {"$shift": [base, fact]}


SHARE = _Calculation(
    _AMOUNTS,
    tuple(format(Decimal(share) / 100, ".2f") for share in _SHARES),
    "{percent} %",
    "Share of the amount that is granted",
    "the share of {base} that our {topic} rules in {place} grant{case}, rounded to cents",
)
FEE = _Calculation(
    tuple(f"net {name}" for name in _AMOUNTS),
    _FEES,
    "{fact}",
    "Fee that is taken off the amount",
    "{base} less the fee that our {topic} rules in {place} give{case}",
)
TERM = _Calculation(
    _DATES,
    tuple(map(str, _DAYS)),
    "{fact} calendar days",
    "Calendar days to be added to the date",
    "{base} plus the number of calendar days that our {topic} rules in {place} give{case}",
)


@dataclass(frozen=True)
class Derive:
    """Work out an amount or a day by what the rules in force give for it."""

    letter = "V"

    def attempts(self, plan: Plan, service: str) -> list[Any]:
        """(shelf, calculation, value, property that decides or None) combinations, in random order."""
        texts = shelves(plan, service)
        if not texts:
            return []
        deciding: list[Known | None] = [*traits(plan)[:4]]
        deciding.append(None)
        bases = [(calculation, item) for item in amounts(plan)[:4] for calculation in (SHARE, SHARE, FEE)]
        bases += [(TERM, item) for item in days(plan)[:3]]
        plan.rng.shuffle(bases)
        return [(plan.rng.choice(texts), *base, plan.rng.choice(deciding)) for base in bases]

    def apply(self, plan: Plan, service: str, attempt: Any) -> bool:
        """Plant both versions of the rules, read the one in force and do the arithmetic."""
        shelf, calculation, base, trait = attempt
        name = free_name(plan, calculation.names)
        cases = ["default"] if trait is None else cases_of(plan, trait)
        if name is None or trait is base:
            return False
        drawn = plan.rng.sample(calculation.options, 2 * len(cases))
        current = dict(zip(cases, drawn[: len(cases)], strict=True))
        outdated = dict(zip(cases, drawn[len(cases) :], strict=True))
        rules = consult(plan, service, shelf, trait, _teller(plan, calculation, trait), current, outdated)
        if rules is None:
            return False
        case = cases[0]
        binding = calculation.binding(base.binding, rules.fact)
        value = _evaluated(plan, binding)
        decoy = _evaluated(plan, calculation.binding(base.binding, outdated[case]))
        if value is None or equal(value, base.value) or not is_distinctive(value) or value.startswith("-"):
            return False
        rules.known(
            plan,
            service,
            name,
            value,
            decoy,
            binding=binding,
            semantic=base.semantic,
            schema=base.schema,
            is_derived=True,
        )
        plan.uses[base.name] += 1
        plan.capabilities.add("derived_value")
        asked = calculation.asked.format(
            base=base.phrase,
            topic=rules.topic.lower(),
            place=plan.place(service),
            case="" if trait is None else f" for {trait.phrase}",
        )
        plan.clauses.append(
            plan.rng.choice(
                (
                    f"Work out the {name}: it is {asked}; only the version of the rules that is in force counts.",
                    f"You also need the {name}, which is {asked}. Mind which version of the rules is in force.",
                )
            )
        )
        return True


def _teller(plan: Plan, calculation: _Calculation, trait: Known | None) -> Any:
    def outcome(fact: str) -> str:
        return calculation.told.format(fact=fact, percent=int(Decimal(fact) * 100))

    def tell(outcomes: Mapping[str, str]) -> str:
        told = {name: outcome(fact) for name, fact in outcomes.items()}
        if trait is None:
            return f"{calculation.opening}: {next(iter(told.values()))}."
        opening = f"{calculation.opening}, by the {quality_of(plan, trait)}:"
        return "\n".join([opening, *lines(told), "In any other case ask first."])

    return tell


def _evaluated(plan: Plan, binding: Any) -> str | None:
    try:
        return str(plan.answers.evaluate(binding))
    except Unresolved:
        return None


@dataclass(frozen=True)
class Combine:
    """Look a row up and take its amount together with one that was read elsewhere."""

    letter = "M"

    def attempts(self, plan: Plan, service: str) -> list[Any]:
        """Lookups in readings that show an amount."""
        if not amounts(plan):
            return []
        return [item for item in Lookup().attempts(plan, service) if _shown(plan, service, item[0].table)]

    def apply(self, plan: Plan, service: str, attempt: Any) -> bool:
        """Add the lookup and the arithmetic."""
        reading, name, key = attempt
        before = amounts(plan)
        row = find_row(plan, service, reading, name, key)
        if row is None or any((item.service, item.row) == (service, row["id"]) for item in plan.found):
            return False
        found = read_row(plan, service, reading, name, key, row)
        if found is None:
            return False
        read = [item for item in found.known if item in amounts(plan)]
        pairs = [(old, new) for new in read for old in before if _currency(plan, old) == _currency(plan, new)]
        if not pairs:
            return False
        old, new = plan.rng.choice(pairs)
        plan.clauses.append(find_clause(plan, found, key))
        return _take_together(plan, service, old, new)


def _take_together(plan: Plan, service: str, old: Known, new: Known) -> bool:
    gap = Decimal(str(old.value)) - Decimal(str(new.value))
    is_difference = abs(gap) >= _LEAST_AMOUNT and plan.rng.random() < 0.4
    name = free_name(plan, _DIFFERENCES if is_difference else _TOTALS)
    if name is None:
        return False
    first, second = (old, new) if gap > 0 else (new, old)
    binding = {"$sub" if is_difference else "$add": [first.binding, second.binding]}
    value = _evaluated(plan, binding)
    if value is None or not is_distinctive(value) or any(equal(value, item.value) for item in plan.known):
        return False
    plan.known.append(
        Known(
            name=plan.name(name, "value", binding),
            value=value,
            decoy=_evaluated(plan, {next(iter(binding)): [first.binding, str(second.decoy)]}),
            semantic="money",
            schema=new.schema,
            what=name,
            of="",
            step=new.step,
            service=service,
            table=new.table,
            row=new.row,
            field="",
            is_derived=True,
        )
    )
    plan.uses.update((old.name, new.name))
    plan.capabilities.add("derived_value")
    told = f"Take {second.phrase} off {first.phrase}" if is_difference else f"Add up {old.phrase} and {new.phrase}"
    plan.clauses.append(f"{told}; below the result is called the {name}.")
    return True


def _shown(plan: Plan, service: str, table: str) -> bool:
    return "money" in plan.schema(service, table).semantics.values()


def _currency(plan: Plan, known: Known) -> Any:
    row = next((row for row in plan.rows(known.service, known.table) if row["id"] == known.row), {})
    return row.get("currency", "EUR")
