"""Filling: the arguments of a write, from what was learnt where it fits, else literals that the instruction states.

What describes one person or one place is taken from one row, so that nobody's name goes with somebody else's address.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from compoworld_core.services.drawing import Drawing
from compoworld_core.services.schema import semantic_of
from compoworld_core.tasks.affordances import Writing
from compoworld_core.tasks.planner.matching import (
    NAMING,
    PERSONAL,
    fits,
    is_choice,
    is_distinctive,
    is_long_text,
    is_measure_of_another,
    is_plain_text,
    is_title,
    kinds,
    person_role,
)
from compoworld_core.tasks.planner.plan import Known, Plan
from compoworld_core.tasks.planner.wording import addressed, enumerated, label, phrases, spoken, with_article

_MOST_IN_TEXT = 3
_PLACE = frozenset({"city", "country"})
_HEADINGS = (
    "Action needed",
    "As agreed",
    "Confirmation",
    "Decision",
    "Follow-up",
    "For your review",
    "Next steps",
    "Outcome",
    "Please note",
    "Update",
)
_REASONS = (
    "Agreed with the team lead.",
    "Requested by phone this morning.",
    "As decided in the weekly meeting.",
    "Pending an internal review.",
    "Correction after the monthly check.",
    "Part of the quarterly clean-up.",
)


@dataclass
class Filling:
    """Arguments of a write, with what they came from.

    Attributes:
        mentions: (parameter, value) pairs of texts that state a value.
        told: (parameter, its value as the instruction tells it) of arguments that are values.
        composed: Phrases about texts that are to be written.
        free: Parameters whose text is up to the agent.
    """

    arguments: dict[str, Any]
    used: list[Known] = field(default_factory=list)
    mentions: list[tuple[str, Known]] = field(default_factory=list)
    told: list[tuple[str, str]] = field(default_factory=list)
    composed: list[str] = field(default_factory=list)
    free: list[str] = field(default_factory=list)

    def details(self) -> str:
        """What a created row is to have, as the end of a sentence."""
        directed, plain = [], []
        for name, value in self.told:
            lead = addressed(name, value)
            directed += [lead] if lead else []
            plain += [] if lead else [f"{value} as its {label(name)}" if value[:4] == "the " else _named(name, value)]
        rest = [*plain, *self.composed]
        return (f", {enumerated(directed)}" if directed else "") + (f", with {enumerated(rest)}" if rest else "")


def _named(name: str, value: str) -> str:
    return f"{label(name)} {value}"


def parameters_of(plan: Plan, service: str, writing: Writing) -> Mapping[str, Any]:
    """Schemas of a write's parameters."""
    return plan.affordances[service].tools[writing.tool].properties


def fill(
    plan: Plan,
    service: str,
    writing: Writing,
    arguments: Mapping[str, Any],
    target: str | None = None,
    found_by: Known | None = None,
    settled: Mapping[str, Known] | None = None,
    fewest_facts: int = 0,
) -> Filling | None:
    """Arguments for a write; None where a required one is not to be had.

    Args:
        arguments: Those that say which rows the write is about.
        target: The row that is changed; its own values are no news to it.
        found_by: The value that led to it.
        settled: Values of arguments that are decided; the instruction tells them like any other.
        fewest_facts: How many values a text has to state, whether or not others state them, too.
    """
    filling = Filling(dict(arguments))
    properties = parameters_of(plan, service, writing)
    for name, value in (settled or {}).items():
        filling.arguments[name] = [value.binding] if kinds(properties[name]) == {"array"} else value.binding
        filling.used.append(value)
        filling.told.append((name, value.phrase))
    fresh = plan.drawing.fresh()
    source = _Source(plan, service, writing, target, found_by)
    order = sorted(properties, key=lambda name: (name not in writing.required, is_long_text(properties[name])))
    optional_left = 1
    for name in order:
        part = properties[name]
        if name in filling.arguments or name == writing.key:
            continue
        is_required = name in writing.required
        if name in writing.links:
            if is_required:
                return None
            continue
        if not is_required and (name not in writing.copies or not optional_left):
            continue
        known = source.matching(name, part, filling.used) if name in writing.copies else None
        if known is not None:
            filling.arguments[name] = [known.binding] if kinds(part) == {"array"} else known.binding
            filling.used.append(known)
            filling.told.append((name, known.phrase))
            optional_left -= not is_required
        elif name in writing.copies and is_title(part) and not (target and not is_required):
            _fill_title(plan, name, filling, source)
            optional_left -= not is_required
        elif name in writing.copies and is_plain_text(part) and semantic_of(part) in (None, "text"):
            _fill_text(plan, name, filling, source, fewest_facts, is_required=is_required)
        elif is_required and not _fill_literal(plan, name, part, filling, fresh):
            return None
    return filling


class _Source:
    """Known values that may go into one write."""

    def __init__(self, plan: Plan, service: str, writing: Writing, target: str | None, found_by: Known | None) -> None:
        self._plan, self._service, self._target, self._found_by = plan, service, target, found_by
        self._writing = writing
        properties = parameters_of(plan, service, writing)
        self._is_change = target is not None
        self._rows: dict[str, tuple[str, str, str] | None] = {}
        for words in (PERSONAL, _PLACE):
            groups: dict[str, list[str]] = {}
            for name in writing.copies:
                if semantic_of(properties[name]) in words and kinds(properties[name]) != {"array"}:
                    groups.setdefault(person_role(name) if words is PERSONAL else "", []).append(name)
            for names in groups.values():
                needed = [name for name in names if name in writing.required]
                if len(names) > 1 and needed and not self._is_change:
                    row = self._one_row({semantic_of(properties[name]) or "" for name in needed})
                    self._rows |= dict.fromkeys(names, row)

    def _one_row(self, words: set[str]) -> tuple[str, str, str] | None:
        """A row and role that every one of these meanings can be taken from."""
        offers: dict[tuple[str, str, str], set[str]] = {}
        for known in self.usable([]):
            offers.setdefault(_origin(known), set()).add(known.semantic or "")
        full = [origin for origin, offered in offers.items() if words <= offered]
        return self._plan.rng.choice(full) if full else None

    def usable(self, used: list[Known]) -> list[Known]:
        """Values that hold, apart from used ones and those that the target row already has."""
        return [
            known
            for known in self._plan.usable()
            if not (known.is_id or known.is_decided)
            and known not in used
            and (known.service, known.row) != (self._service, self._target)
        ]

    def matching(self, name: str, part: Mapping[str, Any], used: list[Known]) -> Known | None:
        """A value of the parameter's meaning, the least used first."""
        item = part.get("items", part) if kinds(part) == {"array"} else part
        uses = self._plan.uses
        candidates = [known for known in self.usable(used) if self._suits(known, name, item)]
        derived = [known for known in candidates if known.is_derived and not uses[known.name]]
        if derived:
            return derived[0]
        candidates.sort(key=lambda known: (uses[known.name], known.service == self._service))
        best = [known for known in candidates if uses[known.name] == uses[candidates[0].name]]
        return self._plan.rng.choice(best) if best else None

    def _suits(self, known: Known, name: str, part: Mapping[str, Any]) -> bool:
        if not fits(known.semantic, part):
            return False
        if not known.is_derived and is_measure_of_another(known.semantic, known.field, name):
            return False
        if known.service == self._service and self._plan.uses[known.name]:
            return False
        if not self._plan.is_plausible(self._service, self._writing.table, self._writing.copies[name], known.value):
            return False
        if name in self._rows:
            return _origin(known) == self._rows[name]
        if self._is_change and not person_role(name) and known.semantic in PERSONAL | NAMING | _PLACE:
            # a row's own details are corrected from the row that led to it, and nothing gets another's name
            led = self._found_by
            return known.semantic not in NAMING and led is not None and _origin(known)[:2] == _origin(led)[:2]
        return True


def _origin(known: Known) -> tuple[str, str, str]:
    return known.service, known.row, person_role(known.field) if known.semantic in PERSONAL else ""


def _fill_title(plan: Plan, name: str, filling: Filling, source: _Source) -> None:
    """A heading, named after something where there is something."""
    heading = plan.rng.choice(_HEADINGS)
    named = [
        known
        for known in source.usable(filling.used)
        if known.semantic in NAMING and not plan.uses[known.name] and ": " not in str(known.value)
    ]
    if not named:
        filling.arguments[name] = f"{heading} {plan.rng.randint(12, 98)}"
        filling.told.append((name, spoken(filling.arguments[name])))
        return
    known = plan.rng.choice(named)
    filling.arguments[name] = {"$text": [f"{heading}: ", known.binding]}
    filling.used.append(known)
    filling.told.append((name, f'"{heading}: " followed by {known.phrase}'))


def _fill_text(plan: Plan, name: str, filling: Filling, source: _Source, fewest: int, *, is_required: bool) -> None:
    """Compose a text from values that nothing else uses yet, and others only if it takes them."""
    worth = [known for known in source.usable(filling.used) if is_worth_stating(known)]
    waiting = [known for known in worth if not plan.uses[known.name]]
    chosen = plan.rng.sample(waiting, min(plan.rng.randint(max(1, fewest), _MOST_IN_TEXT), len(waiting)))
    chosen += [known for known in worth if known not in waiting][: max(0, fewest - len(chosen))]
    chosen.sort(key=lambda known: [known.of for known in plan.known].index(known.of))
    called = label(name)
    if not chosen and not is_required:
        return
    if not chosen:
        filling.arguments[name] = "For your information."
        filling.composed.append(f"{with_article(called)} of your own")
        filling.free.append(name)
        return
    parts: list[Any] = []
    for known in chosen:
        lead = "\n" if parts else ""
        parts += [f"{lead}{known.phrase[0].upper()}{known.phrase[1:]}: ", known.binding]
    filling.arguments[name] = {"$text": parts}
    filling.used += chosen
    filling.mentions += [(name, known) for known in chosen]
    text = f"{called} that state" if called.endswith("s") else f"{with_article(called)} that states"
    filling.composed.append(f"{text} {phrases(chosen)}")


def is_worth_stating(known: Known) -> bool:
    """Whether a text that has the value has it because somebody looked it up."""
    return is_distinctive(known.value) and str(known.value).casefold() not in known.phrase.casefold()


def _fill_literal(plan: Plan, name: str, part: Mapping[str, Any], filling: Filling, fresh: Drawing) -> bool:
    if semantic_of(part) == "text" and "string" in kinds(part) and not is_choice(part):
        value: Any = plan.rng.choice(_REASONS)
    else:
        try:
            value = fresh.value(name, part)
        except ValueError:
            return False
    if isinstance(value, dict) or (isinstance(value, list) and any(isinstance(item, dict) for item in value)):
        return False
    filling.arguments[name] = value
    filling.told.append((name, spoken(value)))
    return True


def with_choice(plan: Plan, service: str, writing: Writing, filling: Filling, target: str) -> Filling:
    """Where nothing else would change, choose a value for an optional choice and state it."""
    if any(name in writing.copies for name in filling.arguments) or writing.sets:
        return filling
    for name, part in _open_parameters(plan, service, writing, filling):
        value = _usual_value(plan, service, writing, name, part, target)
        if value is not None and not isinstance(value, dict | list):
            filling.arguments[name] = value
            filling.told.append((name, spoken(value)))
            break
    return filling


def _usual_value(plan: Plan, service: str, writing: Writing, name: str, part: Mapping[str, Any], target: str) -> Any:
    """A value that other rows have and the target has not, or else any that the schema allows."""
    field_name = writing.copies[name]
    rows = plan.rows(service, writing.table)
    own = next((row.get(field_name) for row in rows if row["id"] == target), None)
    others = sorted({row[field_name] for row in rows if isinstance(row.get(field_name), str | int)} - {own}, key=str)
    if others and not is_choice(part):
        return plan.rng.choice(others)
    try:
        return plan.drawing.fresh().value(name, part)
    except ValueError:
        return None


def _open_parameters(
    plan: Plan, service: str, writing: Writing, filling: Filling
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Parameters that may still be given, choices first; a row's own name is not up for change."""
    properties = parameters_of(plan, service, writing)
    names = [name for name in writing.copies if name not in filling.arguments]
    for name in sorted(names, key=lambda name: not is_choice(properties[name])):
        word = semantic_of(properties[name])
        if is_choice(properties[name]) or (word not in PERSONAL | NAMING and fits(word, properties[name])):
            yield name, properties[name]
