"""What an agent hands in: typed, bounded, and with nothing in it that has to be believed.

Whether a step reads or writes, which services a task is about and what it demands are not for an author to say: they
follow from the tools that the steps call.
"""

from __future__ import annotations

from typing import Annotated, Final

from pydantic import Field, JsonValue, StringConstraints

from compoworld_core.data import Data
from compoworld_core.services.conditions import Condition
from compoworld_core.specs.model import JsonObject
from compoworld_core.worlds.recipe import Plant, Reaction

RESERVED_REASONS: Final = ("skip_fact", "skip_write", "substitute")
"""What the gates call their own mutants."""

_StepId = Annotated[str, StringConstraints(pattern=r"^s[1-9][0-9]?$")]
_Word = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,39}$")]
_ValueName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_.-]{1,80}$")]


class DraftStep(Data):
    """One tool call of the solution."""

    id: _StepId = Field(description="s1, s2, … in the order of the calls.")
    tool: str = Field(description="The tool's name as list_tools shows it.")
    arguments: JsonObject = Field(description="Literals and bindings.")
    after: tuple[_StepId, ...] = Field(
        default=(), description="Earlier steps that must come before this one although it takes nothing from them."
    )


class DraftFact(Data):
    """Something that the final answer states."""

    label: str = Field(min_length=1, max_length=120)
    value: JsonValue = Field(description="A binding, or a literal that follows from the instruction.")


class DraftTemptation(Data):
    """A call that a careless agent would make; with it, the solution has to fail the rubric."""

    reason: _Word = Field(description="What makes it tempting, such as near_miss, lookalike or unguarded.")
    tool: str
    arguments: JsonObject
    after: _StepId = Field(description="The step after which it would be made.")
    replaces: _StepId | None = Field(default=None, description="The step that would be left out for it, if any.")


class DraftSolution(Data):
    """The reference solution."""

    values: dict[_ValueName, JsonValue] = Field(
        default_factory=dict, max_length=40, description='Bindings by name; {"$value": name} refers to one.'
    )
    steps: tuple[DraftStep, ...] = Field(min_length=1, max_length=40)
    answer: tuple[DraftFact, ...] = Field(default=(), max_length=8)
    temptations: tuple[DraftTemptation, ...] = Field(default=(), max_length=6)


class Scenery(Data):
    """What makes a world out of the empty one."""

    plants: tuple[Plant, ...] = Field(
        default=(), max_length=30, description="Row operations that prepare the world before anybody sees it."
    )
    reactions: tuple[Reaction, ...] = Field(
        default=(), max_length=4, description="Row operations by which the world moves while the agent works."
    )


class Draft(Scenery):
    """A world and a way through it, to be tried."""

    solution: DraftSolution


class DraftCriterion(Data):
    """One condition that the episode's end has to fulfil."""

    id: _Word
    description: str = Field(min_length=1, max_length=400)
    condition: Condition


class Submission(Draft):
    """A complete task."""

    instruction: str = Field(min_length=40, max_length=4000, description="What the agent is asked to do.")
    criteria: tuple[DraftCriterion, ...] = Field(min_length=1, max_length=40)
