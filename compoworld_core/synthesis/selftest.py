"""Self-tests: what an author claims about its tools, as data that anyone can check.

A test starts from an empty service, puts given rows into its tables, and makes calls. Later arguments may be bound to
earlier answers, so a test never depends on which ids a service hands out. A challenge, which is a test by somebody who
does not know the tables, has no given rows and meets those that a world has anyway. Nothing in a test is code: it can
be stored in a package, shown to people and run against any backend.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any, Final, Literal

from pydantic import Field, TypeAdapter

from compoworld_core.data import Data
from compoworld_core.errors import ErrorCode, ToolError
from compoworld_core.services.envelope import Envelope
from compoworld_core.services.running import RunningService
from compoworld_core.specs.model import JsonObject
from compoworld_core.storage.digest import canonical_json

REF = "$ref"
"""`{"$ref": "s1.data.id"}` stands for a value of the first step's answer."""


class GivenRow(Data):
    """A row that is there before the first call."""

    table: str
    row: JsonObject


class Expectation(Data):
    """What a step must answer.

    Attributes:
        error: Code of the expected refusal, `any` for whichever; None expects success.
        equals: Values by path into the answer (`data.status`, `data.items.0.id`); a value may be a binding.
        sizes: Lengths of the lists at paths into the answer.
        contains: Values that the answer holds, wherever; text may be a part of a longer one.
        lacks: Values that it does not hold anywhere.
    """

    error: ErrorCode | Literal["any"] | None = None
    equals: JsonObject = Field(default_factory=dict)
    sizes: dict[str, int] = Field(default_factory=dict)
    contains: tuple[Any, ...] = ()
    lacks: tuple[Any, ...] = ()


class Step(Data):
    """One call."""

    tool: str
    arguments: JsonObject = Field(default_factory=dict)
    expect: Expectation = Expectation()


class SelfTest(Data):
    """A sequence of calls that shows one tool at work, or refusing to.

    Attributes:
        tool: The tool that the test is about; the last step calls it unless a reading step looks at what it did.
        kind: `normal` for a successful call, `error` for a refusal.
    """

    name: str
    tool: str
    kind: Literal["normal", "error"]
    given: tuple[GivenRow, ...] = ()
    steps: tuple[Step, ...] = Field(min_length=1)


_TESTS: TypeAdapter[tuple[SelfTest, ...]] = TypeAdapter(tuple[SelfTest, ...])


def dump_tests(tests: Sequence[SelfTest]) -> str:
    """The tests as a package stores them."""
    return canonical_json([test.model_dump(mode="json", exclude_defaults=True) for test in tests])


def load_tests(text: str) -> tuple[SelfTest, ...]:
    """The tests of a package.

    Raises:
        ValueError: The text is not a list of self-tests.
    """
    return _TESTS.validate_json(text)


@dataclass(frozen=True, slots=True)
class TestOutcome:
    """Whether a test holds; where it does not, `detail` says why and `step` how many steps were made."""

    __test__ = False

    test: SelfTest
    passed: bool
    detail: str = ""
    step: int = 0


def run_test(service: RunningService, test: SelfTest) -> TestOutcome:
    """Run one test in a fresh, empty state of the service; the service's own state is left alone."""
    fresh = RunningService(service.package, service.backend, service.context, service.backend.new_state())
    for given in test.given:
        table = fresh.state.tables.get(given.table)
        if table is None:
            return TestOutcome(test, False, f"the service has no table {given.table!r}")
        try:
            table.insert(**given.row)
        except ToolError as error:
            return TestOutcome(test, False, f"given row of {given.table}: {error.message}")
    fresh.state.seal()
    return _play(fresh, test)


def run_challenge(service: RunningService, test: SelfTest) -> TestOutcome:
    """Run one challenge in a fork of the service, with the rows that it has."""
    return _play(service.fork(), test)


def _play(running: RunningService, test: SelfTest) -> TestOutcome:
    answers: list[Envelope] = []
    for number, step in enumerate(test.steps, start=1):
        try:
            arguments = resolve(step.arguments, answers)
            expected = {path: resolve(value, answers) for path, value in step.expect.equals.items()}
            held = [resolve(value, answers) for value in step.expect.contains]
            missing = [resolve(value, answers) for value in step.expect.lacks]
        except LookupError as error:
            return TestOutcome(test, False, f"step {number}: {error.args[0]}", number - 1)
        result = running.call(step.tool, arguments)
        answers.append(result.envelope)
        if result.bug is not None:
            return TestOutcome(test, False, f"step {number}: bug: {result.bug}", number)
        problem = _mismatch(result.envelope, step.expect, expected) or _misheld(result.envelope, held, missing)
        if problem:
            return TestOutcome(test, False, f"step {number}, {step.tool}: {problem}", number)
    return TestOutcome(test, True)


def resolve(value: Any, answers: Sequence[Envelope]) -> Any:
    """The value with every binding replaced by what it stands for.

    Raises:
        LookupError: A binding points nowhere.
    """
    if isinstance(value, dict):
        if set(value) == {REF} and isinstance(value[REF], str):
            step, _, path = value[REF].partition(".")
            if not step[1:].isdigit() or not 1 <= int(step[1:]) <= len(answers):
                raise LookupError(f"{value[REF]!r} names no earlier step")
            return look_up(answers[int(step[1:]) - 1], path)
        return {key: resolve(item, answers) for key, item in value.items()}
    return [resolve(item, answers) for item in value] if isinstance(value, list) else value


def look_up(value: Any, path: str) -> Any:
    """The part of a JSON value at a dotted path.

    Raises:
        LookupError: There is none.
    """
    for part in path.split(".") if path else ():
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdigit() and int(part) < len(value):
            value = value[int(part)]
        else:
            raise LookupError(f"nothing at {path!r}")
    return value


_ERRORS: Final = {None: "success", "any": "a refusal"}


def _mismatch(envelope: Envelope, expect: Expectation, expected: JsonObject) -> str:
    error = expect.error
    code = None if envelope["success"] else envelope["error"]["code"]
    if code != error and not (code is not None and error == "any"):
        message = "" if envelope["success"] else f": {envelope['error']['message']}"
        return f"expected {_ERRORS.get(error, error)}, found {code or 'success'}{message}"
    for path, value in expected.items():
        try:
            found = look_up(envelope, path)
        except LookupError as problem:
            return str(problem.args[0])
        if found != value:
            return f"{path}: expected {value!r}, found {found!r}"
    for path, size in expect.sizes.items():
        try:
            found = look_up(envelope, path)
        except LookupError as problem:
            return str(problem.args[0])
        if not isinstance(found, list) or len(found) != size:
            return f"{path}: expected a list of {size}, found {str(found)[:200]}"
    return ""


def _misheld(envelope: Envelope, held: Sequence[Any], missing: Sequence[Any]) -> str:
    for value in held:
        if not _holds(envelope, value):
            return f"the answer does not contain {str(value)[:200]!r}"
    for value in missing:
        if _holds(envelope, value):
            return f"the answer contains {str(value)[:200]!r}"
    return ""


def _holds(found: Any, value: Any) -> bool:
    if isinstance(found, dict | list):
        return any(_holds(item, value) for item in (found.values() if isinstance(found, dict) else found))
    if isinstance(found, str) and isinstance(value, str):
        return value in found
    if isinstance(found, bool) or isinstance(value, bool) or found is None or value is None:
        return found is value
    try:
        return Decimal(str(found)) == Decimal(str(value))  # an amount may be a text
    except InvalidOperation:
        return False
