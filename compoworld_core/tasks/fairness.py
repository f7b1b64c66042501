"""Fairness: what a task demands can be known from its instruction and its world.

A reference solution knows too much when it names an id outright, when a planted text is said to tell what it does not,
or when a criterion wants words that stand nowhere. An agent could then only guess.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from decimal import Decimal, InvalidOperation
from typing import Any

from compoworld_core.services.conditions import All, Answer, AnyOf, Condition, Rows, Test
from compoworld_core.services.facts import Fact, fact_of, states
from compoworld_core.services.schema import TableSchema
from compoworld_core.tasks.bindings import binding_operator
from compoworld_core.tasks.play import Played
from compoworld_core.tasks.rubric import Rubric
from compoworld_core.tasks.task import Solution
from compoworld_core.worlds.recipe import Delete, Insert, Update
from compoworld_core.worlds.world import World

_WORD = re.compile(r"[^\W_]+(?:[-_][^\W_]+)*")
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"))


def words_of(text: str) -> frozenset[str]:
    """The words of a text in which an id may hide: folded, and those with hyphens also in parts."""
    found = set(_WORD.findall(_folded(text)))
    parts = {part for word in found for part in word.split("-")}
    return frozenset(found | {part for part in parts if re.search(r"\d", part) and re.search(r"[^\W\d]", part)})


def spoken_ids(text: str, schema: TableSchema) -> Iterator[str]:
    """Ids of a table's rows as a text may say them: `event 1001`, `evt-1001` or `Event no. 1001` for `evt_1001`."""
    if schema.id_prefix:
        names = "|".join({re.escape(name.casefold()) for name in (schema.id_prefix, schema.entity)})
        names = names.replace("_", r"[\W_]*")
        said = rf"(?<![^\W_])(?:{names})s?(?:[\W_]|(?:no|nr|number|id)(?![^\W\d_]))*(\d+)(?!\w)"
        yield from (f"{schema.id_prefix}_{match[1]}" for match in re.finditer(said, _folded(text)))


def _folded(text: str) -> str:
    return unicodedata.normalize("NFKC", text.translate(_INVISIBLE)).casefold()


def named_ids(solution: Solution, world: World) -> Iterator[str]:
    """Places where a solution names the id of a row outright, instead of taking it from an answer."""
    ids = {
        step.service: {
            row["id"]
            for table in world.services[step.service].state.tables
            for row in world.initial_rows(step.service, table)
            if re.search(r"\d", row["id"])
        }
        for step in solution.steps
    }
    for step in solution.steps:
        for path, value in _literals(step.arguments):
            if value in ids[step.service]:
                yield f"{step.id}.{path} is the id {value}"
    everywhere = frozenset().union(*ids.values())
    stated = {f"answer {fact.label}": fact.value for fact in solution.answer}
    for name, named in {**solution.values, **stated}.items():
        for _, value in _literals(named):
            if value in everywhere:
                yield f"{name} is the id {value}"


def unstated_facts(world: World) -> Iterator[str]:
    """Facts that planted texts are said to tell, and do not."""
    for plant in world.recipe.plants:
        values = {} if isinstance(plant.do, Delete) else plant.do.values
        text = "\n".join(value for value in values.values() if isinstance(value, str))
        for name, value in plant.facts.items():
            if not any(states(text, form) for form in _forms(value)):
                yield f"the text planted in {plant.do.service}.{plant.do.table} does not state {name}: {value}"


def unset_reactions(reference: Played, world: World) -> Iterator[str]:
    """Reactions that the reference solution does not set off, or that change nothing then."""
    moved = [
        (entry.service, change.table.name, change.key, change.before is None)
        for entry in reference.world.log
        if entry.cause == "reaction"
        for change in entry.changes
    ]
    for number, reaction in enumerate(world.recipe.reactions, 1):
        for operation in reaction.apply:
            place = (operation.service, operation.table)
            key = operation.key if isinstance(operation, Update | Delete) else operation.values.get("id")
            is_new = isinstance(operation, Insert)
            if not any(item[:2] == place and key in (None, item[2]) and item[3] == is_new for item in moved):
                yield f"reaction {number} does not {operation.op} a row of {'.'.join(place)} while the solution runs"


def unknowable_words(
    rubric: Rubric, instruction: str, solution: Solution, reference: Played, world: World
) -> Iterator[str]:
    """Words that a criterion wants and that neither the instruction nor any answer has before they are first used.

    Words that the solution puts together count where each of their parts is told.
    """
    user = world.universe.user
    told = [("", "\n".join((instruction, user.name, user.email)))]
    for step, arguments in reference.arguments.items():
        told.append((_spoken(arguments).casefold(), _spoken(reference.envelopes.get(step))))
    written = {text.strip().casefold() for step in solution.steps for _, text in _literals(step.arguments)}
    written |= {text.strip().casefold() for value in solution.values.values() for _, text in _literals(value)}
    for item in rubric.criteria:
        for words in _wanted(item.condition, world):
            if not _is_told(words, told) and not all(_is_told(part, told) for part in _parts(words, written)):
                yield f"{item.id} wants {words[:200]!r}, which nothing says that an agent reads before it writes that"


def _is_told(words: str, told: list[tuple[str, str]]) -> bool:
    """Whether words come up in what is read before the first call that has them in its arguments."""
    wanted = words.casefold()
    for arguments, seen in told:
        if wanted in arguments:
            return False
        if wanted in seen.casefold() or states(seen, Fact(value=words)):
            return True
    return False


def _parts(words: str, written: set[str]) -> list[str]:
    """Words cut where the solution joins a text of its own to others."""
    parts = [words.casefold()]
    for text in sorted(written, key=len, reverse=True):
        if text:
            parts = [piece for part in parts for piece in ([part] if part == text else _around(part.split(text), text))]
    return [part.strip() for part in parts if any(map(str.isalnum, part))]


def _around(pieces: list[str], text: str) -> list[str]:
    return [item for piece in pieces for item in (text, piece)][1:]


def _literals(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Plain texts within a value, outside of what bindings say about themselves."""
    operator = binding_operator(value)
    if operator in ("$value", "$ref", "$pick", "$fact", "$sum"):
        inner = value[operator].get("where", {}) if operator in ("$pick", "$sum") else {}
        yield from _literals(inner, path)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from _literals(item, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _literals(item, f"{path}.{index}".lstrip("."))
    elif isinstance(value, str):
        yield path, value


def _forms(value: str) -> Iterator[Fact]:
    """How a text may state a fact: as it stands, and a rate also in per cent."""
    yield fact_of(value)
    with suppress(InvalidOperation):
        number = Decimal(value)
        if number.is_finite() and abs(number.adjusted()) < 12:
            yield Fact(kind="number", value=format(number, "f"))
            yield Fact(kind="number", value=format(number * 100, "f"))


def _spoken(value: Any) -> str:
    """All texts and numbers within an answer."""
    if isinstance(value, dict):
        return "\n".join(map(_spoken, value.values()))
    if isinstance(value, list):
        return "\n".join(map(_spoken, value))
    return value if isinstance(value, str) else json.dumps(value)


def _wanted(condition: Condition, world: World) -> Iterator[str]:
    """Words that have to be written for a condition to hold."""
    match condition:
        case All():
            for part in condition.parts:
                yield from _wanted(part, world)
        case AnyOf():
            if len(condition.parts) == 1:
                yield from _wanted(condition.parts[0], world)
        case Rows() if condition.change in ("created", "updated") and condition.at_least > 0:
            choices = world.services[condition.service].state.tables[condition.table].schema.choices
            for test in condition.where:
                if test.field not in choices and test.field != "id":
                    yield from _wanted_text(test)
        case Answer():
            for item in condition.states:
                if item.fact is not None and item.fact.kind == "text":
                    yield item.fact.value
        case _:
            pass


def _wanted_text(test: Test) -> Iterator[str]:
    if test.op not in ("eq", "contains", "mentions") or test.kind in ("number", "date"):
        return
    values = test.value if isinstance(test.value, list) else [test.value]
    for value in values:
        if isinstance(value, str) and value.strip() and fact_of(value).kind == "text":
            with suppress(InvalidOperation):
                Decimal(value)
                continue
            yield value
