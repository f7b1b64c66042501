"""Putting self-tests together."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Literal

from compoworld_core.errors import ErrorCode
from compoworld_core.specs.model import JsonObject
from compoworld_core.synthesis.rules.model import Operation
from compoworld_core.synthesis.selftest import Expectation, GivenRow, SelfTest, Step

Maker = Callable[[], SelfTest]
"""Makes one test, or raises `NoExample`."""


def step(
    operation: Operation,
    arguments: JsonObject,
    equals: JsonObject,
    error: ErrorCode | None = None,
    sizes: Mapping[str, int] | None = None,
) -> Step:
    """A call of an operation's tool."""
    return Step(
        tool=operation.reading.tool.name,
        arguments=dict(arguments),
        expect=Expectation(error=error, equals=equals, sizes=dict(sizes or {})),
    )


def self_test(
    operation: Operation, kind: Literal["normal", "error"], given: Iterable[GivenRow], *steps: Step, name: str = ""
) -> SelfTest:
    """A test of an operation's tool."""
    tool = operation.reading.tool.name
    return SelfTest(name=f"{tool}: {name or kind}", tool=tool, kind=kind, given=tuple(given), steps=steps)
