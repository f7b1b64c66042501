"""Claims and challenges: the self-tests of the author, and those of somebody who knew the spec only, run on the bench.

A challenge starts from the rows of the bench's world and has tool calls only. Where it fails before the tool that it is
about was called, the call that failed is to blame.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from compoworld_core.services.backend import Outcome, ToolBackend, broken
from compoworld_core.services.context import Context
from compoworld_core.services.running import CallResult, RunningService
from compoworld_core.services.state import State
from compoworld_core.services.universe import Universe
from compoworld_core.synthesis.bench import Bench, fault_of
from compoworld_core.synthesis.finding import Finding, printable
from compoworld_core.synthesis.selftest import SelfTest, TestOutcome, load_tests, run_challenge, run_test

MAX_TESTS: Final = 48
"""Tests of one tool that are run."""

WITHSTANDS: Final = "withstands_challenges"


def check_claims(bench: Bench) -> dict[str, Finding]:
    """Whether each tool that has self-tests passes them all.

    A test in which some call breaks the service fails, and the tool of that call is not called again.
    """
    try:
        by_tool = _by_tool(load_tests(bench.package.tests))
    except ValueError as error:
        detail = printable(f"the self-tests are unreadable: {error}")
        unreadable = Finding(check="self_tests", passed=False, detail=detail)
        return {tool.name: unreadable for tool in bench.package.spec.tools}
    found: dict[str, Finding] = {}
    for tool, tests in by_tool.items():
        outcomes = _run(bench, tool, tests, run_test)
        failed = next((_said(outcome) for outcome in outcomes if not outcome.passed), None)
        found[tool] = Finding(
            check="self_tests",
            passed=failed is None,
            detail=printable(failed) if failed else f"{len(outcomes)} tests of the author passed",
            cases=len(outcomes),
        )
    return found


def check_challenges(bench: Bench) -> dict[str, Finding]:
    """Whether each tool of a service that was challenged withstands; one that nothing reached does not.

    Empty where nobody was asked for challenges.
    """
    if not bench.package.challenges:
        return {}
    tools = {tool.name for tool in bench.package.spec.tools}
    try:
        by_tool = _by_tool(load_tests(bench.package.challenges))
    except ValueError as error:
        detail = printable(f"the challenges are unreadable: {error}")
        return {tool: Finding(check=WITHSTANDS, passed=False, detail=detail) for tool in tools}
    reached: Counter[str] = Counter()
    failed: dict[str, str] = {}
    for tool, tests in by_tool.items():
        usable = [test for test in tests if tools.issuperset(step.tool for step in test.steps)]
        for outcome in _run(bench, tool, usable, run_challenge):
            subject = _subject(outcome)
            reached[subject] += 1
            if not outcome.passed:
                failed.setdefault(subject, _said(outcome))
    return {tool: _withstands(reached[tool], failed.get(tool)) for tool in tools}


def _withstands(reached: int, failed: str | None) -> Finding:
    if failed is None and not reached:
        detail = "no independent challenge reached it"
    else:
        detail = f"withstood {reached} independent challenges" if failed is None else printable(failed)
    return Finding(check=WITHSTANDS, passed=failed is None and reached > 0, detail=detail, cases=reached)


def _subject(outcome: TestOutcome) -> str:
    """The tool that an outcome says something about."""
    test, made = outcome.test, outcome.test.steps[: outcome.step]
    if outcome.passed or not made or any(step.tool == test.tool for step in made):
        return test.tool
    return made[-1].tool


def _by_tool(tests: Sequence[SelfTest]) -> dict[str, list[SelfTest]]:
    by_tool: dict[str, list[SelfTest]] = {}
    for test in tests:
        by_tool.setdefault(test.tool, []).append(test)
    return {tool: mine[:MAX_TESTS] for tool, mine in by_tool.items()}


def _run(
    bench: Bench, tool: str, tests: Sequence[SelfTest], run: Callable[[RunningService, SelfTest], TestOutcome]
) -> list[TestOutcome]:
    bench.subject = tool
    home = bench.home.running
    running = RunningService(home.package, _Watch(bench), home.context, home.state)
    outcomes: list[TestOutcome] = []
    for test in tests:
        if tool in bench.faults:
            break
        outcomes.append(run(running, test))
    return outcomes


def _said(outcome: TestOutcome) -> str:
    lines = outcome.detail.strip().splitlines()
    return f"{outcome.test.name}: {lines[-1] if lines else 'failed'}"


class _Watch(ToolBackend):
    """A backend that remembers which tool broke, and spares it further calls."""

    def __init__(self, bench: Bench) -> None:
        self._bench = bench

    def new_state(self) -> State:
        return self._bench.backend.new_state()

    def populate(self, state: State, universe: Universe, rng: random.Random, start: datetime) -> None:
        self._bench.backend.populate(state, universe, rng, start)

    def execute(self, state: State, tool: str, arguments: Mapping[str, Any], context: Context) -> Outcome:
        bench = self._bench
        if tool in bench.faults:
            return broken(bench.faults[tool])
        bench.calls[bench.subject] = bench.calls.get(bench.subject, 0) + 1
        outcome = bench.backend.execute(state, tool, arguments, context)
        fault = fault_of(CallResult(outcome.envelope, (), outcome.bug))
        if fault is not None:
            bench.faults[tool] = fault
        return outcome
