"""Held-out edits of a played solution: slips that a rubric must notice, and harmless differences that it must not.

The gates never use them, so that they measure rubrics instead of describing how rubrics were made. All of them start
from the calls that the reference really made, with literal arguments, so that one slip stays one slip.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from typing import Any

from compoworld_core.services.drawing import Drawing
from compoworld_core.services.facts import MONTHS, fact_of
from compoworld_core.services.schema import semantic_of
from compoworld_core.specs.model import ToolSpec
from compoworld_core.tasks.bindings import steps_read
from compoworld_core.tasks.gates import alternative_orders
from compoworld_core.tasks.play import Played, Stage
from compoworld_core.tasks.task import AnswerFact, Solution, Step, Task
from compoworld_core.worlds.world import World

_DAY = re.compile(r"\d{4}-\d{2}-\d{2}(?!\d)")
_SECONDS = re.compile(r"T\d\d:\d\d:\d\d")
_CENTS = re.compile(r"(?<![\d.])(\d+)\.(\d\d)(?![\d.])")


@dataclass(frozen=True)
class Edit:
    """A solution, or a final answer in place of the solution's own.

    Attributes:
        target: What was edited, for people.
    """

    target: str
    solution: Solution
    answer: str | None = None


@dataclass(frozen=True)
class Subject:
    """A task whose reference solution has been played.

    Attributes:
        literal: The reference solution with what it evaluated to.
    """

    task: Task
    world: World
    stage: Stage
    reference: Played
    literal: Solution
    rng: random.Random

    @classmethod
    def of(cls, task: Task, world: World, rng: random.Random) -> Subject:
        """Play a task's reference solution."""
        stage = Stage(world)
        reference = stage.play(task.solution)
        steps = tuple(Step(**{**dict(step), "arguments": reference.arguments[step.id]}) for step in task.solution.steps)
        facts = tuple(
            AnswerFact(label=fact.label, value=value)
            for fact, value in zip(task.solution.answer, reference.facts, strict=True)
        )
        return cls(task, world, stage, reference, Solution(steps=steps, answer=facts), rng)

    @property
    def writes(self) -> list[Step]:
        """Steps that change something."""
        return [step for step in self.literal.steps if step.effect == "write"]

    def spec(self, step: Step) -> ToolSpec:
        """The specification of a step's tool."""
        return self.world.services[step.service].package.tool(step.tool)

    def properties(self, step: Step) -> Mapping[str, Any]:
        """Schemas of a step's parameters."""
        return self.spec(step).properties

    def is_settled(self, step: Step, name: str) -> bool:
        """Whether the task, rather than the agent, decides an argument: it is read somewhere, or told."""
        planned = next(item for item in self.task.solution.steps if item.id == step.id).arguments.get(name)
        told = f'"{planned}"' if isinstance(planned, str) else str(planned)
        return isinstance(planned, dict | list) or told.casefold() in self.task.instruction.casefold()

    def with_arguments(self, step: Step, arguments: Mapping[str, Any]) -> Solution:
        """The literal solution with other arguments of one step."""
        steps = tuple(
            Step(**{**dict(item), "arguments": dict(arguments)}) if item.id == step.id else item
            for item in self.literal.steps
        )
        return Solution(steps=steps, answer=self.literal.answer)

    def with_steps(self, *steps: Step) -> Solution:
        """The literal solution with other steps."""
        return Solution(steps=steps, answer=self.literal.answer)


Operator = Callable[[Subject], Iterator[Edit]]

# Slips: every one of these must fail


def similar_row(subject: Subject) -> Iterator[Edit]:
    """The write goes to the row that is most like the right one."""
    for step in subject.writes:
        for name, value in step.arguments.items():
            word = semantic_of(subject.properties(step).get(name)) or ""
            if not word.startswith("id:") or not isinstance(value, str):
                continue
            for table, schema in subject.world.services[step.service].package.tables.tables.items():
                rows = {row["id"]: row for row in subject.world.rows(step.service, table)}
                own = rows.pop(value, None)
                if f"id:{schema.entity}" == word and own is not None and rows:
                    alike = max(rows.values(), key=lambda row: (sum(row[key] == own[key] for key in own), row["id"]))
                    yield Edit(f"{step.id}.{name}", subject.with_arguments(step, {**step.arguments, name: alike["id"]}))


def swapped_values(subject: Subject) -> Iterator[Edit]:
    """Two arguments of a write are exchanged."""
    for step in subject.writes:
        names = [name for name in step.arguments if subject.is_settled(step, name)]
        for one, other in pairwise(names):
            a, b = step.arguments[one], step.arguments[other]
            if type(a) is type(b) and a != b:
                swapped = {**step.arguments, one: b, other: a}
                yield Edit(f"{step.id}.{one}/{other}", subject.with_arguments(step, swapped))


def day_off(subject: Subject) -> Iterator[Edit]:
    """A date is one day late."""

    def late(text: str) -> str:
        return _DAY.sub(lambda found: str(date.fromisoformat(found.group()) + timedelta(days=1)), text, count=1)

    yield from _retold(subject, late)


def cents_lost(subject: Subject) -> Iterator[Edit]:
    """An amount is cut to whole units."""
    yield from _retold(subject, lambda text: _CENTS.sub(lambda m: m[0] if m[2] == "00" else m[1], text, count=1))


def digit_wrong(subject: Subject) -> Iterator[Edit]:
    """The last digit of a text is another one."""

    def mistyped(text: str) -> str:
        if _SECONDS.search(text):
            return text  # nobody tells seconds
        return re.sub(r"\d(?=\D*$)", lambda found: str((int(found.group()) + 1) % 10), text)

    yield from _retold(subject, mistyped)


def _retold(subject: Subject, change: Callable[[str], str]) -> Iterator[Edit]:
    """Change a text wherever the task settles it: in a write's argument or in a fact of the answer."""
    for step in subject.writes:
        for name, value in step.arguments.items():
            is_id = (semantic_of(subject.properties(step).get(name)) or "").startswith("id:")
            if isinstance(value, str) and not is_id and subject.is_settled(step, name) and change(value) != value:
                yield Edit(f"{step.id}.{name}", subject.with_arguments(step, {**step.arguments, name: change(value)}))
    for place, fact in enumerate(subject.literal.answer):
        told = str(fact.value)
        if change(told) != told:
            facts = list(subject.literal.answer)
            facts[place] = AnswerFact(label=fact.label, value=change(told))
            yield Edit(f"answer.{fact.label}", Solution(steps=subject.literal.steps, answer=tuple(facts)))


def wrong_recipient(subject: Subject) -> Iterator[Edit]:
    """What is meant for one person goes to another."""
    for step, name, value in _addresses(subject):
        other = _stranger(subject, value)
        changed: Any = [other] if isinstance(value, list) else other
        yield Edit(f"{step.id}.{name}", subject.with_arguments(step, {**step.arguments, name: changed}))


def further_recipient(subject: Subject) -> Iterator[Edit]:
    """Somebody else gets it, too."""
    for step, name, value in _addresses(subject):
        if isinstance(value, list):
            changed = {**step.arguments, name: [*value, _stranger(subject, value)]}
            yield Edit(f"{step.id}.{name}", subject.with_arguments(step, changed))


def _addresses(subject: Subject) -> Iterator[tuple[Step, str, Any]]:
    for step in subject.writes:
        for name, value in step.arguments.items():
            if semantic_of(subject.properties(step).get(name)) == "email" and value:
                yield step, name, value


def _stranger(subject: Subject, value: Any) -> str:
    return subject.rng.choice([item.email for item in subject.world.universe.people if item.email not in value])


def other_choice(subject: Subject) -> Iterator[Edit]:
    """Another one of the listed values is chosen."""
    for step in subject.writes:
        for name, value in step.arguments.items():
            options = [item for item in _choices(subject.properties(step).get(name)) if item != value]
            if options and subject.is_settled(step, name):
                changed = {**step.arguments, name: subject.rng.choice(options)}
                yield Edit(f"{step.id}.{name}", subject.with_arguments(step, changed))


def _choices(schema: Any) -> list[Any]:
    if not isinstance(schema, dict):
        return []
    return [*schema.get("enum", ()), *(item for part in schema.get("anyOf", ()) for item in _choices(part))]


def left_out(subject: Subject) -> Iterator[Edit]:
    """An argument that may be left out is left out."""
    for step in subject.writes:
        required = subject.spec(step).parameters.get("required", ())
        for name in step.arguments:
            if name not in required and subject.is_settled(step, name):
                rest = {key: value for key, value in step.arguments.items() if key != name}
                yield Edit(f"{step.id}.{name}", subject.with_arguments(step, rest))


def line_missing(subject: Subject) -> Iterator[Edit]:
    """A composed text lacks one of its values."""
    for step in subject.writes:
        for name, value in step.arguments.items():
            if _is_composed(subject, step, name) and isinstance(value, str):
                lines = value.split("\n")
                gone = subject.rng.randrange(len(lines))
                text = "\n".join([*lines[:gone], *lines[gone + 1 :]]) or "Nothing to say."
                yield Edit(f"{step.id}.{name}", subject.with_arguments(step, {**step.arguments, name: text}))


def written_twice(subject: Subject) -> Iterator[Edit]:
    """A row is created twice."""
    created = {
        entry.service for entry in subject.reference.world.log if any(item.before is None for item in entry.changes)
    }
    for step in subject.writes:
        if step.service in created and _creates(subject, step):
            again = Step(**{**dict(step), "id": f"{step.id}_again"})
            yield Edit(step.id, subject.with_steps(*subject.literal.steps, again))


def _creates(subject: Subject, step: Step) -> bool:
    twin = subject.reference.world.fork()
    name = next(
        name for name, tool in twin.tools.items() if (tool.service, tool.spec.name) == (step.service, step.tool)
    )
    return any(change.before is None for change in twin.call(name, step.arguments).changes)


def further_write(subject: Subject) -> Iterator[Edit]:
    """Something is changed that nobody asked for."""
    tools = [tool for tool in subject.world.tools.values() if tool.spec.effect == "write" and not tool.is_modelled]
    ids = {
        schema.entity: [row["id"] for row in subject.world.rows(name, table)]
        for name, service in subject.world.services.items()
        for table, schema in service.package.tables.tables.items()
    }
    made = 0
    for tool in subject.rng.sample(tools, len(tools)):
        source = Drawing(subject.world.universe, subject.rng, subject.world.recipe.start_time, ids)
        try:
            arguments = source.object(tool.spec.parameters)
        except ValueError:
            continue
        twin = subject.reference.world.fork()
        before = len(twin.log)
        twin.call(tool.name, arguments)
        if len(twin.log) == before:
            continue
        step = Step(id="more", service=tool.service, tool=tool.spec.name, arguments=arguments, effect="write")
        yield Edit(f"{tool.service}.{tool.spec.name}", subject.with_steps(*subject.literal.steps, step))
        made += 1
        if made == 4:
            return


def doubtful_answer(subject: Subject) -> Iterator[Edit]:
    """The answer gives a second value for a fact: what the row said at first, or what another row says."""
    sources = {step.id: step.service for step in subject.task.solution.steps}
    for fact, planned in zip(subject.literal.answer, subject.task.solution.answer, strict=True):
        read = sorted({sources[step] for step in steps_read(planned.value, subject.task.solution.values)})
        for service in read:
            for table in subject.world.services[service].state.tables:
                now = {row["id"]: row for row in subject.reference.world.rows(service, table)}
                for before in subject.world.rows(service, table):
                    after = now.get(before["id"], before)
                    field = next((name for name, value in after.items() if value == fact.value and name != "id"), None)
                    if field is not None and before[field] != after[field]:
                        yield Edit(
                            f"answer.{fact.label}",
                            subject.literal,
                            f"{subject.reference.answer}\n{fact.label}: or {before[field]}",
                        )


SLIPS: Mapping[str, Operator] = {
    item.__name__: item
    for item in (
        similar_row,
        swapped_values,
        day_off,
        cents_lost,
        digit_wrong,
        wrong_recipient,
        further_recipient,
        other_choice,
        left_out,
        line_missing,
        written_twice,
        further_write,
        doubtful_answer,
    )
}

# Harmless differences: every one of these must pass


def reordered(subject: Subject) -> Iterator[Edit]:
    """The same work in other orders that its dependencies allow."""
    for steps in alternative_orders(subject.task.solution, subject.rng, 6):
        order = " ".join(step.id for step in steps)
        yield Edit(
            order, Solution(values=subject.task.solution.values, steps=steps, answer=subject.task.solution.answer)
        )


def other_readings(subject: Subject) -> Iterator[Edit]:
    """Rows are read with other tools, where there are any: listed instead of searched, fetched one by one."""
    others = {step.id: _readings(subject, step) for step in subject.literal.steps if step.effect == "read"}
    if any(others.values()):
        steps = [item for step in subject.literal.steps for item in others.get(step.id) or [step]]
        yield Edit("reads", subject.with_steps(*steps))


def further_readings(subject: Subject) -> Iterator[Edit]:
    """More is read than is needed, between any two steps."""
    steps: list[Step] = []
    for step in subject.task.solution.steps:
        steps += [*_readings(subject, step), step]
    solution = subject.task.solution
    yield Edit("reads", Solution(values=solution.values, steps=tuple(steps), answer=solution.answer))


def _readings(subject: Subject, step: Step) -> list[Step]:
    """Reads in a step's service whose required arguments are ids that the step's answer or arguments carry."""
    package = subject.world.services[step.service].package
    entities = {schema.entity: table for table, schema in package.tables.tables.items()}
    offered = {tool.spec.name for tool in subject.world.tools.values() if tool.service == step.service}
    found: list[Step] = []
    for spec in package.spec.tools:
        if spec.effect != "read" or spec.name not in offered or spec.name == step.tool:
            continue
        arguments: dict[str, Any] = {}
        for name in spec.parameters.get("required", ()):
            word = semantic_of(spec.parameters["properties"].get(name)) or ""
            table = entities.get(word.removeprefix("id:"))
            rows = [row["id"] for row in subject.world.rows(step.service, table)] if table else []
            if rows:
                arguments[name] = subject.rng.choice(rows)
        if set(arguments) == set(spec.parameters.get("required", ())):
            number = len(found)
            found.append(
                Step(id=f"{step.id}_{number}", service=step.service, tool=spec.name, arguments=arguments, effect="read")
            )
    return found[:4]


def reworded_answer(subject: Subject) -> Iterator[Edit]:
    """The answer in the ways in which people and models write: prose, bullets, a numbered list, capitals."""
    facts = [(fact.label, fact.value) for fact in subject.literal.answer]
    if not facts:
        return
    for style in range(3):
        told = [(name, _formatted(value, style)) for name, value in facts]
        yield Edit("prose", subject.literal, "Done. " + " ".join(f"{name} is {value}." for name, value in told))
        yield Edit("bullets", subject.literal, "\n".join(f"- **{name}**: {value}" for name, value in told))
        numbered = "\n".join(f"{place}. {name}: `{value}`" for place, (name, value) in enumerate(told, 1))
        yield Edit("numbered", subject.literal, f"I have done {len(subject.writes)} things for you.\n{numbered}")
        yield Edit("capitals", subject.literal, "\n".join(f"{name}: {value}".upper() for name, value in told))


def retold_work(subject: Subject) -> Iterator[Edit]:
    """The answer also repeats the request and says what was done."""
    done = "\n".join(
        f"- {step.service}: " + ", ".join(str(value) for value in step.arguments.values()) for step in subject.writes
    )
    yield Edit("answer", subject.literal, f"{subject.reference.answer}\n\nYou asked: {subject.task.instruction}")
    yield Edit("answer", subject.literal, f"What I did:\n{done}\n\n{subject.reference.answer}")


def reworded_texts(subject: Subject) -> Iterator[Edit]:
    """Composed texts say the same in other words and notations."""
    for style in range(3):
        steps = []
        for step in subject.literal.steps:
            arguments = dict(step.arguments)
            for name, value in arguments.items():
                if step.effect == "write" and _is_composed(subject, step, name) and isinstance(value, str):
                    values = [line.split(": ", 1)[1] for line in value.split("\n") if ": " in line]
                    arguments[name] = "Hello,\n" + " / ".join(_formatted(item, style) for item in values) + "\nRegards"
            steps.append(Step(**{**dict(step), "arguments": arguments}))
        yield Edit("texts", subject.with_steps(*steps))


def _is_composed(subject: Subject, step: Step, name: str) -> bool:
    """Whether an argument is a text of lines `what: value`, of which only the values matter."""
    planned = next(item for item in subject.task.solution.steps if item.id == step.id).arguments.get(name)
    parts = planned.get("$text", []) if isinstance(planned, dict) else []
    return bool(parts) and str(parts[0]).startswith("The ")


def _formatted(value: Any, style: int) -> str:
    """A value in one of three usual notations."""
    text = str(value)
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}T.*", text):
        moment = datetime.fromisoformat(text.replace("Z", "+00:00"))
        clock = (f"{moment:%H:%M}", f"{moment:%I:%M %p}", f"{moment:%H:%M:%S}")[style]
        return f"{_formatted(text[:10], style)} at {clock}"
    if re.fullmatch(r"\d{4}-\d{2}-\d{2}", text):
        day = date.fromisoformat(text)
        month = MONTHS[day.month - 1]
        return (f"{day.day} {month} {day.year}", f"{month} {day.day}, {day.year}", f"{day.day}.{day.month}.{day.year}")[
            style
        ]
    if re.fullmatch(r"\d+\.\d\d", text) and fact_of(Decimal(text) * 1, "money").kind == "number":
        whole, cents = text.split(".")
        grouped = f"{int(whole):,}"
        return (f"€{grouped.replace(',', '.')},{cents}", f"EUR {grouped}.{cents}", f"{whole}.{cents} €")[style]
    return text


HARMLESS: Mapping[str, Operator] = {
    item.__name__: item
    for item in (reordered, other_readings, further_readings, reworded_answer, retold_work, reworded_texts)
}
