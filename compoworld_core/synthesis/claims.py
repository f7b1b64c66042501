"""Claims: the author's self-tests, run on the bench."""

from __future__ import annotations

import random
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final

from compoworld_core.services.backend import Outcome, ToolBackend, broken
from compoworld_core.services.context import Context
from compoworld_core.services.running import CallResult, RunningService
from compoworld_core.services.state import State
from compoworld_core.services.universe import Universe
from compoworld_core.synthesis.bench import Bench, fault_of
from compoworld_core.synthesis.finding import Finding, printable
from compoworld_core.synthesis.selftest import SelfTest, load_tests, run_test

MAX_TESTS: Final = 48
"""Self-tests of one tool that are run."""


def check_claims(bench: Bench) -> dict[str, Finding]:
    """Whether each tool that has self-tests passes them all.

    A test in which some call breaks the service fails, and the tool of that call is not called again.
    """
    try:
        tests = load_tests(bench.package.tests)
    except ValueError as error:
        unreadable = Finding(
            check="self_tests", passed=False, detail=printable(f"the self-tests are unreadable: {error}")
        )
        return {tool.name: unreadable for tool in bench.package.spec.tools}
    by_tool: dict[str, list[SelfTest]] = {}
    for test in tests:
        by_tool.setdefault(test.tool, []).append(test)
    return {tool: _run(bench, tool, mine[:MAX_TESTS]) for tool, mine in by_tool.items()}


def _run(bench: Bench, tool: str, tests: list[SelfTest]) -> Finding:
    bench.subject = tool
    home = bench.home.running
    running = RunningService(home.package, _Watch(bench), home.context, home.state)
    run, failed = 0, None
    for test in tests:
        if tool in bench.faults:
            break
        run += 1
        outcome = run_test(running, test)
        if not outcome.passed:
            failed = failed or f"{test.name}: {outcome.detail.strip().splitlines()[-1] if outcome.detail else 'failed'}"
    return Finding(
        check="self_tests",
        passed=failed is None,
        detail=printable(failed) if failed else f"{run} tests of the author passed",
        cases=run,
    )


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
