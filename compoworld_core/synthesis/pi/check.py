"""What a session's check command says: all that is wrong with the files, in an order and wording that never vary.

An author hears what admission will find out by the author's own tests and by the invariants; what others know (the
challenges, the generated hostile calls, the checks of substance) stays independent of it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pydantic import TypeAdapter, ValidationError

from compoworld_core.services.hosted import HostPool
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.record import describe_validation_error
from compoworld_core.specs.model import ServiceSpec
from compoworld_core.synthesis.admission import admit
from compoworld_core.synthesis.author import LeftOut
from compoworld_core.synthesis.build import BuildError, build_package
from compoworld_core.synthesis.finding import printable
from compoworld_core.synthesis.invariants import INVARIANTS, survives_hostile_calls
from compoworld_core.synthesis.selftest import SelfTest, dump_tests, load_tests

SEED: Final = 1_000_003
"""Of the worlds that an author's checks run in; admission draws its own."""

LEAST_CHALLENGES: Final = 2
"""Of each tool: one that it has to serve, and one that it has to refuse or that shows what it did."""

Made = Literal["nothing", "draft", "whole"]

_HEARD: Final = tuple(check for check in INVARIANTS if check is not survives_hostile_calls)
_MOST_SHOWN: Final = 40
_LEFT_OUT: TypeAdapter[tuple[LeftOut, ...]] = TypeAdapter(tuple[LeftOut, ...])


@dataclass(frozen=True)
class Report:
    """The outcome of a check.

    Attributes:
        problems: What is wrong, a line each.
        made: How far the files get: `whole` can be handed on, be they good or not; a `draft` cannot be built.
    """

    problems: tuple[str, ...]
    made: Made

    @property
    def passed(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def text(self) -> str:
        """For whoever wrote the files."""
        if self.passed:
            return "OK: everything passes. You are done.\n"
        shown = [f"- {problem}" for problem in self.problems[:_MOST_SHOWN]]
        if len(self.problems) > _MOST_SHOWN:
            shown.append(f"- and {len(self.problems) - _MOST_SHOWN} more")
        return "FAILED\n" + "\n".join(shown) + "\n"


class Unreadable(Exception):
    """A file is not what it should be."""


def check_service(spec: ServiceSpec, files: Mapping[str, str], pool: HostPool) -> Report:
    """Check the files of an author: `service.py`, `tests.json` and `left_out.json`."""
    try:
        tests, left_out = read_tests(files, "tests.json"), read_left_out(files)
    except Unreadable as error:
        return Report((str(error),), "nothing")
    if "service.py" not in files and {tool.name for tool in spec.tools} <= {left.tool for left in left_out}:
        return Report((), "whole")
    if "service.py" not in files:
        return Report(("service.py: is not there; write it", *_unaccounted(spec, (), left_out)), "nothing")
    try:
        package = build_package(spec, files["service.py"], "pi", dump_tests(tests), pool)
    except BuildError as error:
        return Report((f"service.py: {error.reason}: {error.message}",), "draft")
    implemented = [tool.name for tool in package.spec.tools]
    problems = [*_unaccounted(spec, implemented, left_out), *_untested(implemented, tests), *_failing(package, pool)]
    return Report(tuple(problems), "whole")


def check_challenges(spec: ServiceSpec, files: Mapping[str, str]) -> Report:
    """Check the form of an adversary's `challenges.json`; there is nothing to run them against."""
    try:
        tests = read_tests(files, "challenges.json")
    except Unreadable as error:
        return Report((str(error),), "nothing")
    tools = {tool.name for tool in spec.tools}
    malformed = [problem for test in tests for problem in _malformed(test, tools)]
    scarce = [
        f"{tool}: has {count} challenges; write at least {LEAST_CHALLENGES}"
        for tool in sorted(tools)
        if (count := sum(test.tool == tool for test in tests)) < LEAST_CHALLENGES
    ]
    return Report((*malformed, *scarce), "whole" if tests and not malformed else "nothing")


def read_tests(files: Mapping[str, str], name: str) -> tuple[SelfTest, ...]:
    """The tests of a file.

    Raises:
        Unreadable: It has none.
    """
    if name not in files:
        raise Unreadable(f"{name}: is not there; write it")
    try:
        return load_tests(files[name])
    except ValidationError as error:
        raise Unreadable(f"{name}: {describe_validation_error(error)}") from None


def read_left_out(files: Mapping[str, str]) -> tuple[LeftOut, ...]:
    """The tools that an author leaves out; none where there is no such file.

    Raises:
        Unreadable: The file says it in no known form.
    """
    try:
        return _LEFT_OUT.validate_json(files.get("left_out.json", "[]"))
    except ValidationError as error:
        raise Unreadable(f"left_out.json: {describe_validation_error(error)}") from None


def _unaccounted(spec: ServiceSpec, implemented: Sequence[str], left_out: Sequence[LeftOut]) -> Iterator[str]:
    names = {tool.name for tool in spec.tools}
    left = {item.tool for item in left_out}
    for tool in sorted(names - left - set(implemented)):
        yield f"{tool}: is neither in service.py nor in left_out.json"
    for tool in sorted(left & set(implemented)):
        yield f"{tool}: is in service.py and in left_out.json; it can only be in one"
    for tool in sorted(left - names):
        yield f"{tool}: is in left_out.json, but the spec has no such tool"


def _untested(implemented: Sequence[str], tests: Sequence[SelfTest]) -> Iterator[str]:
    for tool in implemented:
        for kind in ("normal", "error"):
            if not any(test.tool == tool and test.kind == kind for test in tests):
                yield f"{tool}: has no test of kind {kind!r} in tests.json"
    for name in sorted({test.tool for test in tests} - set(implemented)):
        yield f"{name}: has tests, but service.py has no such tool"


def _failing(package: ServicePackage, pool: HostPool) -> Iterator[str]:
    for admission in admit(package, pool.backend(package), seed=SEED, checks=_HEARD):
        for finding in admission.checks:
            if finding.is_gate and not finding.passed:
                yield f"{admission.tool}: {finding.check}: {finding.detail}"


def _malformed(test: SelfTest, tools: set[str]) -> Iterator[str]:
    if test.tool not in tools:
        yield f"{test.name}: the spec has no tool {test.tool!r}"
    if test.given:
        yield f"{test.name}: has given rows; nobody knows the tables, so make what you need by calls"
    if not any(step.tool == test.tool for step in test.steps):
        yield f"{test.name}: never calls {test.tool}"
    for step in test.steps:
        if step.tool not in tools:
            yield f"{test.name}: the spec has no tool {step.tool!r}"
        if "" in (*step.expect.contains, *step.expect.lacks):
            yield f"{test.name}: an empty text is in every answer"
        if len(json.dumps(step.arguments)) > 100_000:
            yield printable(f"{test.name}: the arguments of {step.tool} are too long")
