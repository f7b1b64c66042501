"""Mutants: what a careless agent would do instead, as mechanical edits of the reference solution.

Each mutant must fail the rubric; that is how a task shows that its steps and values matter. Substituted values come
from where a mistake would take them: the row's earlier value, the outdated text, the amount before the arithmetic, the
second largest, a row that looks alike, any other row. A solution names further temptations itself.
"""

from __future__ import annotations

import copy
import itertools
import re
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from decimal import Decimal
from typing import Any

from compoworld_core.services.conditions import equal
from compoworld_core.services.facts import fact_of, states
from compoworld_core.tasks.bindings import DERIVING, Answers, Unresolved, binding_operator, bindings_in, steps_read
from compoworld_core.tasks.play import Played, planted_facts
from compoworld_core.tasks.task import AnswerFact, Solution, Step, Temptation
from compoworld_core.worlds.world import World

ANSWER = "answer"
"""Stands for the final answer where a step's id is expected."""


@dataclass(frozen=True)
class Mutant:
    """A solution that must fail.

    Attributes:
        operator: `skip_write`, `skip_fact`, `substitute`, or the reason of one of the solution's temptations.
        source: For `substitute`, the step whose value was replaced.
        target: The step, or `answer`, that was altered.
        argument: For `substitute`, where in the target.
        value: For `substitute`, the value that was right.
    """

    operator: str
    target: str
    solution: Solution
    source: str = ""
    argument: str = ""
    value: Any = None


def mutants(solution: Solution, reference: Played, start: World) -> Iterator[Mutant]:
    """Every skipped write, every skipped fact, every temptation, and every value replaced by what it resembles."""
    for step in solution.steps:
        if step.effect == "write":
            kept = tuple(item for item in solution.steps if item.id != step.id)
            if kept:
                yield Mutant("skip_write", step.id, _altered(solution, steps=kept))
    for index in range(len(solution.answer)):
        kept_facts = tuple(fact for place, fact in enumerate(solution.answer) if place != index)
        yield Mutant("skip_fact", ANSWER, _altered(solution, answer=kept_facts))
    for temptation in solution.temptations:
        steps = tuple(tempted(solution, temptation))
        yield Mutant(temptation.reason, temptation.replaces or temptation.after, _altered(solution, steps=steps))
    confusion = _Confusion(solution, reference, start)
    for place, step in enumerate(solution.steps):
        for path, binding in bindings_in(step.arguments):
            for decoy in confusion.decoys(binding):
                changed = Step(**{**dict(step), "arguments": _replaced(step.arguments, path, decoy)})
                steps = (*solution.steps[:place], changed, *solution.steps[place + 1 :])
                argument = str(path[0]) if path else ""
                altered = _altered(solution, steps=steps)
                yield confusion.mutant(altered, step.id, argument, binding)
    for name, value in solution.values.items():
        for operand in _operands(value):
            yield confusion.mutant(
                _altered(solution, values={**solution.values, name: operand}),
                confusion.source_of({"$value": name}),
                name,
                {"$value": name},
            )
        for path, binding in bindings_in(value):
            for decoy in confusion.decoys(binding) if path else ():
                values = {**solution.values, name: _replaced(value, path, decoy)}
                target = confusion.source_of({"$value": name})
                yield confusion.mutant(_altered(solution, values=values), target, name, binding)
    for place, fact in enumerate(solution.answer):
        for path, binding in bindings_in(fact.value):
            for decoy in confusion.decoys(binding):
                stated = AnswerFact(label=fact.label, value=_replaced(fact.value, path, decoy))
                facts = (*solution.answer[:place], stated, *solution.answer[place + 1 :])
                yield confusion.mutant(_altered(solution, answer=facts), ANSWER, fact.label, binding)


def _altered(
    solution: Solution,
    *,
    values: dict[str, Any] | None = None,
    steps: tuple[Step, ...] | None = None,
    answer: tuple[AnswerFact, ...] | None = None,
) -> Solution:
    return Solution(
        values=solution.values if values is None else values,
        steps=solution.steps if steps is None else steps,
        answer=solution.answer if answer is None else answer,
    )


def tempted(solution: Solution, temptation: Temptation) -> Iterator[Step]:
    """The steps with what should not have been done."""
    for step in solution.steps:
        if step.id != temptation.replaces:
            yield step
        if step.id in (temptation.replaces, temptation.after):
            yield temptation.step


def _operands(value: Any) -> Iterator[Any]:
    """What an agent that forgets the last piece of arithmetic is left with: an amount, not a rate or a number of days.

    Rounding alone is nobody's slip: the amount may be round as it is.
    """
    operator = binding_operator(value)
    if operator == "$round":
        yield from _operands(value["$round"][0])
    elif operator in ("$add", "$sub", "$mul", "$shift"):
        yield from (item for item in value[operator] if binding_operator(item) in ("$value", "$ref", "$pick"))


class _Confusion:
    """What a careless agent may take for the values that a played solution used."""

    def __init__(self, solution: Solution, reference: Played, start: World) -> None:
        self._solution = solution
        self._reference = reference
        self._start = start
        self._answers = Answers(planted_facts(start), solution.values)
        for step in solution.steps:
            if step.id in reference.envelopes:
                self._answers.add(step.id, step.service, reference.envelopes[step.id])

    def mutant(self, altered: Solution, target: str, argument: str, binding: dict[str, Any]) -> Mutant:
        """The mutant in which a binding of a target was substituted."""
        value = self._answers.evaluate(binding)
        return Mutant("substitute", target, altered, self.source_of(binding), argument, value)

    def source_of(self, binding: dict[str, Any]) -> str:
        """The step that a binding takes its value from."""
        binding = self._plain(binding)
        operator = binding_operator(binding)
        if operator == "$ref":
            return str(binding["$ref"]).split(".")[0]
        if operator == "$fact":
            return str(binding["$fact"]["step"])
        if operator in ("$pick", "$sum"):
            return min(steps_read(binding[operator]["from"], self._solution.values), default="")
        read = steps_read(binding, self._solution.values)
        return next((step.id for step in reversed(self._solution.steps) if step.id in read), "")

    def decoys(self, binding: dict[str, Any]) -> list[Any]:
        """What a binding's value could be mistaken for: the most tempting value, and one other."""
        try:
            value = self._answers.evaluate(binding)
        except Unresolved:
            return []
        binding = self._plain(binding)
        if binding_operator(binding) == "$fact":
            return self._other_facts(binding["$fact"], value)
        if binding_operator(binding) in DERIVING:
            return self._differing(self._worked_out_wrongly(binding), value)
        source = self.source_of(binding)
        step = next((item for item in self._solution.steps if item.id == source), None)
        if step is None:
            return []
        if binding_operator(binding) == "$pick":
            field = str(binding["$pick"]["take"])
        else:
            field = str(binding["$ref"]).split(".")[-1]
        runners_up = self._runners_up(binding) if binding_operator(binding) == "$pick" else []
        return self._differing(
            itertools.chain(runners_up, _confusable(step, field, value, self._reference, self._start)), value
        )

    @staticmethod
    def _differing(items: Iterable[Any], value: Any) -> list[Any]:
        unique: list[Any] = []
        for item in items:
            if not any(equal(item, known) for known in (value, *unique)) and not _says(item, value):
                unique.append(item)
            if len(unique) == 2:
                break
        return unique

    def _runners_up(self, binding: dict[str, Any]) -> Iterator[Any]:
        """The same field of the next best row, where a superlative picks one."""
        spec = binding["$pick"]
        if "most" not in spec and "least" not in spec:
            return
        other = "least" if "most" in spec else "most"
        by = spec.get("most", spec.get("least"))
        bare = {key: item for key, item in spec.items() if key not in ("most", "least")}
        for variant in ({**spec, "nth": 1}, {**bare, other: by}, bare):
            with suppress(Unresolved):
                yield self._answers.evaluate({"$pick": variant})

    def _worked_out_wrongly(self, binding: dict[str, Any]) -> Iterator[Any]:
        """Results of the same arithmetic with a wrong input, or over rows that are not meant."""
        for path, inner in bindings_in(binding):
            for decoy in self.decoys(inner) if path else ():
                with suppress(Unresolved):
                    yield self._answers.evaluate(_replaced(binding, path, decoy))
        spec = binding.get("$sum", {})
        for dropped in spec.get("where", {}):
            where = {key: item for key, item in spec["where"].items() if key != dropped}
            with suppress(Unresolved):
                yield self._answers.evaluate({"$sum": {**spec, "where": where}})
        yield _altered_slightly(self._answers.evaluate(binding))

    def _plain(self, binding: Any) -> Any:
        """The binding behind a named value."""
        while binding_operator(binding) == "$value":
            binding = self._solution.values.get(binding["$value"])
        return binding

    def _other_facts(self, fact: dict[str, Any], value: str) -> list[Any]:
        name = str(self._answers.evaluate(fact["name"]))
        planted = self._start.facts.values()
        same_case = [facts[name] for facts in planted if facts.get(name, value) != value]
        other_cases = [text for facts in planted for text in facts.values() if text != value]
        return list(dict.fromkeys([*same_case, *other_cases]))[:2]


def _confusable(step: Step, field: str, value: Any, reference: Played, start: World) -> Iterator[Any]:
    """Other values of the field: earlier ones of the same row, those of planted rows, those of any row."""
    planted = {
        (plant.do.service, plant.do.values.get("id")) for plant in start.recipe.plants if plant.do.op == "insert"
    }
    for table in start.services[step.service].state.tables:
        now = [row for row in reference.world.rows(step.service, table) if equal(row.get(field), value)]
        if not now:
            continue
        keys = {row["id"] for row in now}
        rows = [row for row in start.rows(step.service, table) if row.get(field) not in (None, "")]
        yield from (row[field] for row in rows if row["id"] in keys)
        yield from (row[field] for row in rows if (step.service, row["id"]) in planted and row["id"] not in keys)
        yield from (row[field] for row in reversed(rows) if row["id"] not in keys)
    yield _altered_slightly(value)


def _says(other: Any, value: Any) -> bool:
    """Whether a text with the other value states this one too: `10:05:30` and `10:05:10` are the same minute."""
    return not isinstance(value, list | dict) and states(str(other), fact_of(value))


def _altered_slightly(value: Any) -> Any:
    """A value of the same form."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    text = str(value)
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}(T.*)?", text):
        with suppress(ValueError, OverflowError):  # digits like a day's need not be one
            return f"{date.fromisoformat(text[:10]) + timedelta(days=1)}{text[10:]}"
    if re.fullmatch(r"-?\d+\.\d+", text):
        return format(Decimal(text) + 1, "f")
    return f"{text}0"


def _replaced(value: Any, path: tuple[str | int, ...], replacement: Any) -> Any:
    if not path:
        return replacement
    altered = copy.deepcopy(value)
    node = altered
    for part in path[:-1]:
        node = node[part]
    node[path[-1]] = replacement
    return altered
