"""Ingredients: the kinds of visit that plans are made of, and how a plan chooses among them.

The basic kinds look something up or write something. The special ones are what makes a task hard; each plan wishes for
a few of them and takes every chance to add one. A new kind is a class in a file of its own, and a line here.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Protocol

from compoworld_core.tasks.planner.decide import Decide, Settle
from compoworld_core.tasks.planner.derive import Combine, Derive
from compoworld_core.tasks.planner.fan_out import FanOut, Total
from compoworld_core.tasks.planner.guard import Guard
from compoworld_core.tasks.planner.hand_off import HandOff
from compoworld_core.tasks.planner.latest import Latest
from compoworld_core.tasks.planner.lookup import Anchor, Lookup
from compoworld_core.tasks.planner.plan import Plan
from compoworld_core.tasks.planner.policy import Policy
from compoworld_core.tasks.planner.reread import Reread
from compoworld_core.tasks.planner.spare import Spare
from compoworld_core.tasks.planner.writes import Change, Create


class Ingredient(Protocol):
    """One kind of visit.

    Attributes:
        letter: Stands for it among a plan's visits.
    """

    letter: str

    def attempts(self, plan: Plan, service: str) -> list[Any]:
        """Ways of adding it at this service, best first."""
        ...

    def apply(self, plan: Plan, service: str, attempt: Any) -> bool:
        """Add it in one way; False where that way turns out not to work."""
        ...


ANCHOR, LOOKUP, CREATE, CHANGE, SETTLE = Anchor(), Lookup(), Create(), Change(), Settle()
SPECIAL: tuple[Ingredient, ...] = (
    Combine(),
    Decide(),
    Derive(),
    FanOut(),
    Guard(),
    HandOff(),
    Latest(),
    Policy(),
    Reread(),
    Spare(),
    Total(),
)
"""What makes tasks hard; each at most once in a plan."""
_BRIEF = "HKMPRSTV"
"""Letters of those that fit into the shortest plans."""
_RARE = "FKR"
"""Letters of those that few services and moments allow, and that plans therefore wish for more often."""
_SHORT = 4
_FEWEST_WRITES = 2
_WISHES = (2, 5)


def wishes(visits: int, rng: random.Random) -> tuple[Ingredient, ...]:
    """The special ingredients that a plan of so many visits should have, if its services allow."""
    if visits < _SHORT:
        return tuple(rng.sample([item for item in SPECIAL if item.letter in _BRIEF], 1))
    tickets = [item for item in SPECIAL for _ in range(2 if item.letter in _RARE else 1)]
    return tuple(dict.fromkeys(rng.sample(tickets, rng.randint(*_WISHES))))


def candidates(plan: Plan, wished: Sequence[Ingredient], visits_left: int) -> list[Ingredient]:
    """Kinds of visit in the order in which to try them."""
    if not plan.known:
        return [ANCHOR]
    rng = plan.rng
    special = [item for item in wished if item.letter not in plan.visits]
    rng.shuffle(special)
    writes: list[Ingredient] = [CREATE, CHANGE] if rng.random() < 0.6 else [CHANGE, CREATE]
    missing = _FEWEST_WRITES - len(plan.written)
    if visits_left == 1 or 0 < missing >= visits_left:
        return [SETTLE, *writes, *special, LOOKUP, ANCHOR]
    if len(plan.unused()) >= 2 and rng.random() < 0.45:
        return [SETTLE, *special, *writes, LOOKUP, ANCHOR]
    return [SETTLE, *special, LOOKUP, *writes, ANCHOR]


def shape(plan: Plan) -> str:
    """What kind of plan it is: its special ingredients, and how many writes it makes."""
    letters = {item.letter for item in SPECIAL} & set(plan.visits)
    return f"{''.join(sorted(letters)) or 'plain'}-{len(plan.written)}"
