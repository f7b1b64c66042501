"""The adversary: reads the spec through pi's tools, writes challenges, runs the check."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from compoworld_core.specs.model import ServiceSpec
from compoworld_core.storage.digest import JsonObject
from compoworld_core.synthesis.rules.author import RulesAuthor
from compoworld_core.synthesis.selftest import Expectation, SelfTest, Step, dump_tests
from tests.llm_server.reply import Reply
from tests.llm_server.scripts.author import text_of

Challenger = Callable[[ServiceSpec], Sequence[SelfTest]]


def by_rule(spec: ServiceSpec) -> tuple[SelfTest, ...]:
    """Challenges that every service which the rules author would write withstands."""
    tests = RulesAuthor().write(spec).tests
    return (*_without_rows(tests), *(_unknown_argument(tool.name) for tool in spec.tools))


def _without_rows(tests: Sequence[SelfTest]) -> Iterator[SelfTest]:
    """Self-tests that hold wherever they are run."""
    for test in tests:
        is_lookup = len(test.steps) == 1 and test.steps[0].expect.error in ("not_found", "invalid_arguments")
        counts = any(step.expect.sizes or not _is_about_one(step.expect) for step in test.steps)
        if is_lookup or not (test.given or counts):
            yield SelfTest(name=f"challenge: {test.name}", tool=test.tool, kind=test.kind, steps=test.steps)


def _is_about_one(expect: Expectation) -> bool:
    return not any(part.isdigit() for path in expect.equals for part in path.split("."))


def _unknown_argument(tool: str) -> SelfTest:
    step = Step(tool=tool, arguments={"no_such_argument": 1}, expect=Expectation(error="invalid_arguments"))
    return SelfTest(name=f"{tool}: takes what it knows only", tool=tool, kind="error", steps=(step,))


@dataclass(frozen=True)
class AdversaryScript:
    """Plays the adversary.

    Args:
        challenge: Makes the challenges for a spec.
    """

    challenge: Challenger = by_rule

    def __call__(self, request: JsonObject) -> Reply:
        """Say what comes next."""
        told = [text_of(message) for message in request["messages"] if message["role"] == "tool"]
        if not told:
            return Reply(tool_calls=[("read", {"path": "spec.json"})])
        if any(text.startswith(("OK", "FAILED")) for text in told):
            return Reply(content="The challenges are written.")
        spec = ServiceSpec.model_validate({**json.loads(told[0]), "source": "spec.json"})
        call = ("write", {"path": "challenges.json", "content": dump_tests(self.challenge(spec))})
        return Reply(tool_calls=[call, ("bash", {"command": "./check"})])
