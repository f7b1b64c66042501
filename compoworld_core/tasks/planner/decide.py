"""Decide and settle: rules choose a value of a later write, such as its priority or whom it is assigned to.

The rules are read at one visit and obeyed at another. Which write they are about is known from the start, since a rule
speaks of `the priority of a case`; the write itself comes when the walk is at its service.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from compoworld_core.services.schema import semantic_of
from compoworld_core.tasks.affordances import Writing
from compoworld_core.tasks.planner.filling import parameters_of
from compoworld_core.tasks.planner.matching import is_choice, kinds
from compoworld_core.tasks.planner.plan import Decision, Known, Plan
from compoworld_core.tasks.planner.rules import MOST_CASES, cases_of, consult, lines, quality_of, shelves, traits
from compoworld_core.tasks.planner.wording import label, noun, with_article
from compoworld_core.tasks.planner.writes import change_row, changes, create_row, creations

_MOST_OPTIONS = 12


@dataclass(frozen=True)
class _Question:
    """What rules may decide: a parameter of a write in a service that the walk comes to later."""

    service: str
    writing: Writing
    parameter: str
    options: tuple[str, ...]


@dataclass(frozen=True)
class Decide:
    """Read what the rules in force choose for a later write."""

    letter = "D"

    def attempts(self, plan: Plan, service: str) -> list[Any]:
        """(shelf, property, question) combinations, in random order."""
        if plan.decided:
            return []
        texts, known = shelves(plan, service), traits(plan)
        if not texts or not known:
            return []
        questions = list(_questions(plan))
        plan.rng.shuffle(questions)
        return [(plan.rng.choice(texts), plan.rng.choice(known[:4]), question) for question in questions]

    def apply(self, plan: Plan, service: str, attempt: Any) -> bool:
        """Plant both versions of the rules and read the one in force."""
        shelf, trait, question = attempt
        cases = cases_of(plan, trait, min(MOST_CASES, len(question.options)))
        if len(cases) < 2:
            return False
        options = plan.rng.sample(question.options, min(len(question.options), len(cases) + 1))
        current = dict(zip(cases, options, strict=False))
        outdated = dict(zip(cases, [*options[1:], options[0]], strict=False))
        field = question.writing.copies[question.parameter]
        asked = label(field, semantic_of(parameters_of(plan, question.service, question.writing)[question.parameter]))
        entity = noun(plan.schema(question.service, question.writing.table).entity)
        quality = quality_of(plan, trait)

        def tell(outcomes: Mapping[str, str]) -> str:
            opening = f"The {asked} of {with_article(entity)} depends on the {quality}."
            return "\n".join([opening, *lines(outcomes), "In any other case ask first."])

        rules = consult(plan, service, shelf, trait, tell, current, outdated)
        if rules is None:
            return False
        topic, value = rules.topic.lower(), str(trait.value)
        known = rules.known(
            plan,
            service,
            f"{asked} according to our {topic} rules",
            current[value],
            outdated[value],
            semantic=f"choice:{question.writing.table}.{field}",
        )
        decision = Decision(question.service, question.writing.tool, question.parameter, known)
        if not Settle().apply(plan.branch(), question.service, (decision, question.writing)):
            return False  # it would hardly work when the walk gets there
        plan.decided.append(decision)
        place = plan.place(service)
        plan.clauses.append(
            plan.rng.choice(
                (
                    f"Our {topic} rules in {place} lay down the {asked} of {with_article(entity)}, depending on "
                    f"{trait.phrase}; go by the version that is in force.",
                    f"Read in {place} what our {topic} rules say about the {asked} of {with_article(entity)}: it "
                    f"depends on {trait.phrase}, and an older version of the rules no longer counts.",
                )
            )
        )
        return True


def _questions(plan: Plan) -> Iterator[_Question]:
    for service in sorted(set(plan.ahead)):
        for writing in (*creations(plan, service), *changes(plan, service)):
            for name, part in parameters_of(plan, service, writing).items():
                if name not in writing.copies or name in writing.links:
                    continue
                options = _options(plan, service, writing, name, part)
                if 2 <= len(options) <= _MOST_OPTIONS:
                    yield _Question(service, writing, name, options)


def _options(plan: Plan, service: str, writing: Writing, name: str, part: Mapping[str, Any]) -> tuple[str, ...]:
    """Values that rules may choose among: those listed, or colleagues who hold such a post already."""
    field = writing.copies[name]
    rows = plan.rows(service, writing.table)
    if is_choice(part):
        usual = {row[field] for row in rows if isinstance(row.get(field), str)}
        return tuple(sorted(usual & set(_listed(part)) or set(_listed(part))))
    if semantic_of(part) != "email" or "array" in kinds(part) or not field.endswith("email"):
        return ()
    ours = {person.email for person in plan.world.universe.staff}
    holders = sorted({row[field] for row in rows if row.get(field) in ours})
    return tuple(plan.rng.sample(holders, min(5, len(holders))))


def _listed(part: Mapping[str, Any]) -> Iterator[str]:
    yield from (item for item in part.get("enum", ()) if isinstance(item, str))
    for branch in part.get("anyOf", ()):
        yield from _listed(branch)


@dataclass(frozen=True)
class Settle:
    """Do the write that rules have decided about."""

    letter = "W"

    def attempts(self, plan: Plan, service: str) -> list[Any]:
        """(decision, writing) pairs that wait for this service."""
        return [
            (item, writing)
            for item in plan.decided
            if item.service == service and not plan.uses[item.known.name]
            for writing in plan.affordances[service].writings
            if writing.tool == item.tool
            for _ in range(2)
        ]

    def apply(self, plan: Plan, service: str, attempt: Any) -> bool:
        """Add the write, with the value that the rules gave."""
        decision, writing = attempt
        settled: dict[str, Known] = {decision.parameter: decision.known}
        if writing.change == "created":
            written = create_row(plan, service, writing, settled)
        else:
            written = change_row(plan, service, writing, settled)
        return written is not None and writing.copies[decision.parameter] in written.fields
