"""Learning: how models were trained, and how well policies do on held-out tasks; drawn by those who know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """A number with what it counts, and what to know about it."""

    label: str
    value: str
    note: str = ""


@dataclass(frozen=True)
class Picture:
    """A picture, and what to take from it in a sentence.

    Attributes:
        svg: Markup that goes into the page as it is; its words have been escaped.
    """

    caption: str
    svg: str


@dataclass(frozen=True)
class Phase:
    """How one phase of a training went."""

    title: str
    about: str
    findings: Sequence[Finding]
    pictures: Sequence[Picture]


@dataclass(frozen=True)
class Bounded:
    """A share and the interval in which it is believed to lie."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class Standing:
    """How one policy does on the held-out tasks.

    Attributes:
        passed: Share of trials that pass every criterion.
        earned: Share of criteria that hold, among those that doing nothing does not satisfy.
        valid_calls: Share of tool calls that are well formed and that their tool's schema allows.
        unscored: Trials that failed for another's fault.
    """

    policy: str
    tasks: int
    trials: int
    unscored: int
    passed: Bounded | None
    earned: Bounded | None
    valid_calls: Bounded | None


@dataclass(frozen=True)
class Gain:
    """What one policy has more than another on the tasks that both tried, in percentage points.

    Attributes:
        tasks: That both tried.
        wins: Tasks on which the second is better.
        losses: Tasks on which the first is.
    """

    first: str
    second: str
    measure: str
    tasks: int
    difference: Bounded
    wins: int
    losses: int
