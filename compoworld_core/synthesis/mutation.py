"""Mutation: how many of the faults that one could make in a service would its checks find?

A fault counts only if it shows: the same calls are made to the service with and without it, and where nothing that they
answer or change differs, nobody could have found it. Of those that show, the checks find the ones for which they no
longer verify a tool that they verified before.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, Literal

from compoworld_core.errors import CompoWorldError
from compoworld_core.services.arguments import Arguments, Vocabulary
from compoworld_core.services.backend import ToolBackend
from compoworld_core.services.context import Context, User
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.running import CallResult, RunningService
from compoworld_core.services.schema import semantic_of
from compoworld_core.services.table import Base
from compoworld_core.services.universe import Universe
from compoworld_core.synthesis.admission import Admission, Scorecard, admit
from compoworld_core.synthesis.bench import START
from compoworld_core.synthesis.cases import generate_cases
from compoworld_core.synthesis.faults import Fault, draw_faults
from compoworld_core.synthesis.selftest import load_tests, run_test

Opened = tuple[ServicePackage, ToolBackend]

Opener = Callable[[ServicePackage, str], Opened]
"""Builds a package like the given one from another source, with its backend."""

WORLDS: Final = 2
CANDIDATES: Final = 24
CASES: Final = 40
STEPS: Final = 160
"""Worlds, calls of each tool and steps of a walk through all tools, in which a fault has to show."""


@dataclass(frozen=True)
class Found:
    """What became of a fault.

    Attributes:
        outcome: `caught` or `missed` by the checks; `equivalent` where it shows nowhere; `moot` where it is in a tool
            that is not verified anyway; `unbuildable` where the module is no service any more.
        reason: The admission that caught it, or where it showed.
        tool: The tool that is no longer verified.
    """

    fault: Fault
    outcome: Literal["caught", "missed", "equivalent", "moot", "unbuildable"]
    reason: str
    tool: str = ""


def seek(opened: Opened, admissions: Sequence[Admission], fault: Fault, build: Opener, *, seed: int = 0) -> Found:
    """Seed a fault and see whether admission finds it.

    Args:
        opened: The service without it.
        admissions: What was found of that.
    """
    verified = {item.tool for item in admissions if item.outcome == "verified"}
    owner = _owner(fault, admissions)
    if not verified or (owner and owner not in verified):
        return Found(fault, "moot", "the tool is not verified without it")
    try:
        broken = build(opened[0], fault.source)
    except CompoWorldError as error:
        return Found(fault, "unbuildable", str(error))
    shows = difference(opened, broken, seed=seed)
    if shows is None:
        return Found(fault, "equivalent", "no call shows it")
    for item in admit(*broken, seed=seed):
        if item.tool in verified and item.outcome != "verified":
            return Found(fault, "caught", item.reason, item.tool)
    return Found(fault, "missed", shows)


def with_mutation_scores(
    opened: Opened, admissions: Sequence[Admission], build: Opener, *, mutants: int, seed: int = 0
) -> tuple[Admission, ...]:
    """The admissions with the share of seeded faults that each tool's checks find; None where no fault is its own.

    Args:
        mutants: Faults that are seeded over the whole service.
    """
    source = opened[0].code["service.py"]
    tally: dict[str, list[bool]] = {}
    for fault in draw_faults(source, mutants, random.Random(f"mutants/{seed}/{opened[0].name}")):
        found = seek(opened, admissions, fault, build, seed=seed)
        tool = _owner(fault, admissions) or found.tool
        if found.outcome in ("caught", "missed") and tool:
            tally.setdefault(tool, []).append(found.outcome == "caught")
    return tuple(
        _scored(item, sum(tally[item.tool]) / len(tally[item.tool])) if item.tool in tally else item
        for item in admissions
    )


def _scored(admission: Admission, score: float) -> Admission:
    scorecard = Scorecard(**{**dict(admission.scorecard), "mutation_score": score})
    return Admission(**{**dict(admission), "scorecard": scorecard})


def _owner(fault: Fault, admissions: Sequence[Admission]) -> str:
    """The tool that a fault is in; empty where it is in a row or in what several tools share."""
    return next((item.tool for item in admissions if fault.tool == item.tool), "")


# Where a fault shows


def difference(one: Opened, other: Opened, *, seed: int = 0) -> str | None:
    """A call that two services with the same tools answer differently in the same rows, or None."""
    if (shown := _tested(one, other)) is not None:
        return shown
    for number in range(WORLDS):
        pair = _worlds(one, other, seed + number)
        if pair is None:
            return "the rows of one are no rows of the other"
        for tool, arguments in _calls(pair[0], number):
            if (shown := _compare(pair[0].fork(), pair[1].fork(), tool, arguments)) is not None:
                return shown
        if (shown := _walk(pair, random.Random(f"walk/{number}"))) is not None:
            return shown
    return None


def _tested(one: Opened, other: Opened) -> str | None:
    """A self-test of the author that only one of them passes."""
    empty = _empty(one), _empty(other)
    with suppress(ValueError):
        for test in load_tests(one[0].tests):
            outcomes = [run_test(running, test) for running in empty]
            if outcomes[0].passed != outcomes[1].passed:
                return f"{test.name}: {outcomes[1].detail}"
    return None


def _empty(opened: Opened) -> RunningService:
    package, backend = opened
    universe = Universe.generate(0)
    context = Context(package.name, 0, START, User(universe.user.name, universe.user.email))
    return RunningService(package, backend, context, backend.new_state())


def _worlds(one: Opened, other: Opened, seed: int) -> tuple[RunningService, RunningService] | None:
    """Both services with the rows that the first one has in a world."""
    universe = Universe.generate(seed)
    context = Context(one[0].name, seed, START, User(universe.user.name, universe.user.email))
    running = RunningService.start(*one, context, universe)
    running.state.seal()
    state = other[1].new_state()
    try:
        for name, table in running.state.tables.items():
            rows = json.loads(json.dumps([table.type.view(record) for record in table]))
            twin = state.tables[name]
            twin.load(Base({row["id"]: twin.type.build(row) for row in rows}), {}, table.counter)
    except (KeyError, CompoWorldError):
        return None
    return running, RunningService(*other, context, state)


def _calls(running: RunningService, seed: int) -> Iterator[tuple[str, Mapping[str, Any]]]:
    vocabulary = Vocabulary(running)
    for tool in running.package.spec.tools:
        source = Arguments(tool, vocabulary, random.Random(f"calls/{seed}/{tool.name}"))
        drawn = list(islice(source.candidates(), CANDIDATES))
        for arguments in drawn:
            yield tool.name, arguments
            for name, schema in source.properties.items():
                if semantic_of(schema) == "limit":
                    yield tool.name, {**arguments, name: 2}
        for name in source.properties if drawn else ():
            for value in islice(source.alternatives(name, drawn[0].get(name)), 4):
                yield tool.name, {**drawn[0], name: value}
        for case in generate_cases(tool.parameters, drawn[0] if drawn else {}, limit=CASES):
            yield tool.name, case.arguments


def _walk(pair: tuple[RunningService, RunningService], rng: random.Random) -> str | None:
    """Calls of all tools in turns, each in the rows that the earlier ones left."""
    one, other = (running.fork() for running in pair)
    tools = one.package.spec.tools
    for step in range(STEPS):
        if step % 8 == 0:
            vocabulary = Vocabulary(one)
        tool = rng.choice(tools)
        drawn = list(islice(Arguments(tool, vocabulary, rng).candidates(), 3))
        if drawn and (shown := _compare(one, other, tool.name, rng.choice(drawn))) is not None:
            return shown
    return None


def _compare(one: RunningService, other: RunningService, tool: str, arguments: Mapping[str, Any]) -> str | None:
    """The call, if it is answered differently; pages are followed to the end."""
    for _ in range(4):
        answers = [running.call(tool, arguments) for running in (one, other)]
        if _plain(answers[0]) != _plain(answers[1]):
            return f"{tool} {json.dumps(arguments, default=str)[:160]}"
        data = answers[0].envelope.get("data")
        cursor = data.get("next_cursor") if isinstance(data, dict) else None
        names = (name for name, schema in one.package.tool(tool).properties.items() if semantic_of(schema) == "cursor")
        if cursor is None or (name := next(names, None)) is None:
            return None
        arguments = {**arguments, name: cursor}
    return None


def _plain(result: CallResult) -> str:
    """What a call answered and changed, without the words of refusals."""
    changes = [(change.table.name, change.key, change.after_row) for change in result.changes]
    answer = result.envelope["data"] if result.succeeded else result.envelope["error"]["code"]
    return json.dumps([result.succeeded, answer, changes, result.bug is not None], sort_keys=True, default=str)


def tally(found: Iterable[Found]) -> dict[str, dict[str, int]]:
    """Outcomes by kind of fault."""
    counts: dict[str, dict[str, int]] = {}
    for item in found:
        of_kind = counts.setdefault(
            item.fault.kind, dict.fromkeys(("caught", "missed", "equivalent", "moot", "unbuildable"), 0)
        )
        of_kind[item.outcome] += 1
    return counts
