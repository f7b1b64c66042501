"""Gates: what every task must show before it counts, whoever wrote it.

The reference solution passes, doing nothing fails, every mutant fails, an answer that lists everything fails, other
valid orders of the same work pass, the instruction gives nothing away, and nothing has to be guessed (`fairness.py`).
The information edges of a task are a result of the gates: an edge exists where substituting a value fails a criterion.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

import networkx as nx

from compoworld_core.services.facts import fact_of, states
from compoworld_core.tasks.bindings import steps_read
from compoworld_core.tasks.fairness import (
    named_ids,
    spoken_ids,
    unknowable_words,
    unset_reactions,
    unstated_facts,
    words_of,
)
from compoworld_core.tasks.mutation import ANSWER, mutants
from compoworld_core.tasks.play import Played, Stage
from compoworld_core.tasks.rubric import Criterion, Rubric, first_failure, verify
from compoworld_core.tasks.task import InformationEdge, Solution, Step
from compoworld_core.worlds.world import World

ORDERS = 4
"""Alternative orders that are tried."""


@dataclass(frozen=True)
class Candidate:
    """A task before it has passed: what an author submits."""

    instruction: str
    solution: Solution
    rubric: Rubric
    walk: tuple[str, ...]


@dataclass(frozen=True)
class GateReport:
    """The outcome of the gates.

    Attributes:
        failed: Name of the first gate that failed; empty if all passed.
        detail: What failed it, for whoever repairs the task.
        rubric: With `holds_initially` as it is.
        edges: The task's information edges.
    """

    failed: str
    detail: str
    rubric: Rubric
    edges: tuple[InformationEdge, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether the task counts."""
        return not self.failed


class _Failed(Exception):
    def __init__(self, gate: str, detail: str) -> None:
        super().__init__(detail)
        self.gate = gate
        self.detail = detail


def run_gates(candidate: Candidate, world: World, *, least_edges: int, seed: int = 0) -> GateReport:
    """Check a candidate in its world, which is not altered."""
    rubric = _settled(candidate.rubric, world)
    stage = Stage(world)
    try:
        reference = _reference_passes(candidate, rubric, stage)
        _walk_matches(candidate)
        _readings_serve(candidate.solution)
        _nothing_leaks(candidate, reference, world)
        _nothing_is_guessed(candidate, rubric, reference, world)
        if first_failure(rubric, world, "") is None:
            raise _Failed("no_op", "doing nothing passes")
        _dump_fails(candidate, rubric, reference)
        _writes_are_witnessed(candidate, rubric, reference, stage)
        _orders_pass(candidate, rubric, stage, random.Random(f"orders/{seed}"))
        edges = _mutants_fail(candidate, rubric, reference, world, stage)
        if len(edges) < least_edges:
            raise _Failed("edges", f"{len(edges)} information edges, fewer than {least_edges}")
    except _Failed as failure:
        return GateReport(failure.gate, failure.detail, rubric)
    return GateReport("", "", rubric, edges)


def _settled(rubric: Rubric, world: World) -> Rubric:
    """The rubric with each criterion saying whether doing nothing satisfies it."""
    idle = verify(rubric, world, "")
    criteria = tuple(
        Criterion(**{**dict(item), "holds_initially": held})
        for item, held in zip(rubric.criteria, idle.passed, strict=True)
    )
    return Rubric(criteria=criteria)


def _reference_passes(candidate: Candidate, rubric: Rubric, stage: Stage) -> Played:
    reference = stage.play(candidate.solution)
    if reference.refused:
        step = reference.refused[0]
        answer = reference.envelopes.get(step) or reference.unresolved[step]
        raise _Failed("reference_refused", f"{step} is answered with {answer}")
    if None in reference.facts:
        label = candidate.solution.answer[reference.facts.index(None)].label
        reason = reference.unresolved.get(label, "it is null")
        raise _Failed("reference_refused", f"the answer's fact {label!r} points at nothing: {reason}")
    verdict = verify(rubric, reference.world, reference.answer)
    if not verdict.success:
        raise _Failed("reference", f"the reference solution fails {', '.join(verdict.failed)}")
    return reference


def _walk_matches(candidate: Candidate) -> None:
    visited = tuple(service for service, _ in groupby(step.service for step in candidate.solution.steps))
    if visited != candidate.walk:
        raise _Failed("walk", f"the solution visits {' → '.join(visited)}, not {' → '.join(candidate.walk)}")


def _readings_serve(solution: Solution) -> None:
    """Something is taken from every reading, or the agent could leave it out."""
    taken = [*(step.arguments for step in solution.steps), *(fact.value for fact in solution.answer)]
    used = steps_read(taken, solution.values)
    for step in solution.steps:
        if step.effect == "read" and step.id not in used:
            raise _Failed("inert", f"nothing is taken from what {step.id} reads")


def _nothing_leaks(candidate: Candidate, reference: Played, world: World) -> None:
    words = words_of(candidate.instruction)
    for tool in world.tools.values():
        if {tool.name.casefold(), tool.spec.name.casefold()} & words and re.search(r"[_-]|[a-z][A-Z]", tool.spec.name):
            raise _Failed("leak", f"the instruction names the tool {tool.spec.name}")
    for service in sorted({step.service for step in candidate.solution.steps}):
        for name, table in world.services[service].state.tables.items():
            said = words.union(spoken_ids(candidate.instruction, table.schema))
            for row in (*reference.world.initial_rows(service, name), *reference.world.rows(service, name)):
                if str(row["id"]).casefold() in said and re.search(r"\d", str(row["id"])) and len(table) > 0:
                    raise _Failed("leak", f"the instruction gives away the id {row['id']}")


def _nothing_is_guessed(candidate: Candidate, rubric: Rubric, reference: Played, world: World) -> None:
    found = {
        "named_id": named_ids(candidate.solution, world),
        "unstated": unstated_facts(world),
        "reaction": unset_reactions(reference, world),
        "unknowable": unknowable_words(rubric, candidate.instruction, candidate.solution, reference, world),
    }
    for gate, reasons in found.items():
        reason = next(reasons, None)
        if reason is not None:
            raise _Failed(gate, reason)


def _writes_are_witnessed(candidate: Candidate, rubric: Rubric, reference: Played, stage: Stage) -> None:
    """To say that a write was made, and go on as if it had been, must not count as making it."""
    steps = tuple(
        Step(**{**dict(step), "arguments": reference.arguments[step.id]}) for step in candidate.solution.steps
    )
    for step in steps:
        others = tuple(item for item in steps if item.id != step.id)
        if step.effect == "read" or not others:
            continue
        played = stage.play(Solution(steps=others))
        if first_failure(rubric, played.world, reference.answer) is None:
            raise _Failed("unwitnessed", f"{step.id} can be left out, as long as the answer claims it")


def _dump_fails(candidate: Candidate, rubric: Rubric, reference: Played) -> None:
    """An answer that lists everything seen, or everything there is, must not count as an answer."""
    if not candidate.solution.answer:
        return
    seen = [reference.answer, *(json.dumps(item, ensure_ascii=False) for item in reference.envelopes.values())]
    for service in sorted({step.service for step in candidate.solution.steps}):
        for table in reference.world.services[service].state.tables:
            rows = (*reference.world.initial_rows(service, table), *reference.world.rows(service, table))
            seen += [json.dumps(row, ensure_ascii=False) for row in rows]
    if first_failure(rubric, reference.world, "\n".join(seen)) is None:
        raise _Failed("dump", "an answer that lists everything passes")


def _orders_pass(candidate: Candidate, rubric: Rubric, stage: Stage, rng: random.Random) -> None:
    for steps in alternative_orders(candidate.solution, rng, ORDERS):
        played = stage.play(_reordered(candidate.solution, steps))
        verdict = verify(rubric, played.world, played.answer)
        if played.refused or not verdict.success:
            order = " ".join(step.id for step in steps)
            raise _Failed("order", f"the order {order} fails {', '.join((*played.refused, *verdict.failed))}")


def _reordered(solution: Solution, steps: tuple[Step, ...]) -> Solution:
    return Solution(values=solution.values, steps=steps, answer=solution.answer)


def dependencies(solution: Solution) -> nx.DiGraph[str]:
    """The steps, with an edge from each to those that need it first."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    for step in solution.steps:
        graph.add_node(step.id)
        graph.add_edges_from(
            (source, step.id) for source in {*steps_read(step.arguments, solution.values), *step.after}
        )
    return graph


def alternative_orders(solution: Solution, rng: random.Random, count: int) -> Iterator[tuple[Step, ...]]:
    """Random orders that respect every dependency, and differ from the solution's own."""
    by_id = {step.id: step for step in solution.steps}
    graph = dependencies(solution)
    own = tuple(by_id)
    for _ in range(count):
        waiting = {node: graph.in_degree(node) for node in own}
        order: list[str] = []
        while waiting:
            chosen = rng.choice([node for node, missing in waiting.items() if missing == 0])
            del waiting[chosen]
            order.append(chosen)
            for follower in graph[chosen]:
                waiting[follower] -= 1
        if tuple(order) != own:
            yield tuple(by_id[node] for node in order)


def _mutants_fail(
    candidate: Candidate, rubric: Rubric, reference: Played, world: World, stage: Stage
) -> tuple[InformationEdge, ...]:
    services = {step.id: step.service for step in candidate.solution.steps} | {ANSWER: ANSWER}
    edges: dict[tuple[str, str], InformationEdge] = {}
    for mutant in mutants(candidate.solution, reference, world):
        played = stage.play(mutant.solution)
        failed = first_failure(rubric, played.world, played.answer)
        if failed is None:
            raise _Failed(
                f"mutant_{mutant.operator}", f"{mutant.target} {mutant.argument} altered, and all still holds"
            )
        pair = (mutant.source, mutant.target)
        if (
            mutant.operator == "substitute"
            and mutant.source != mutant.target
            and pair not in edges
            and not is_told(candidate, mutant.value)
        ):
            edges[pair] = InformationEdge(
                source=mutant.source,
                target=mutant.target,
                source_service=services[mutant.source],
                target_service=services[mutant.target],
                argument=mutant.argument,
                criterion=failed,
            )
    return tuple(edges.values())


def is_told(candidate: Candidate, value: object) -> bool:
    """Whether the instruction has the value, in whichever notation, so that nobody needs to look it up."""
    words = rf"(?<!\w){re.escape(str(value).casefold())}(?!\w)"
    if re.search(words, candidate.instruction.casefold()):
        return True
    is_amount = isinstance(value, str) and re.fullmatch(r"-?\d+(\.\d+)?", value)
    return states(candidate.instruction, fact_of(value, "quantity" if is_amount else None))
