"""Tasks: an instruction, the world it plays in, and everything that decides whether it was done."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

from pydantic import Field

from compoworld_core.data import Data
from compoworld_core.specs.model import JsonObject
from compoworld_core.storage.digest import digest
from compoworld_core.tasks.rubric import Rubric
from compoworld_core.worlds.recipe import WorldRecipe

Split = Literal["sft", "rl", "eval_task", "eval_combo", "eval_service"]
Difficulty = Literal["easy", "pair", "standard", "single"]


class Step(Data):
    """One tool call of a reference solution.

    Attributes:
        id: `s1`, `s2`, …
        tool: The tool's own name in its service.
        arguments: Literals and bindings (see `bindings.py`).
        effect: What the call does to state.
        after: Steps that must have run before, beyond those whose answers the arguments read.
    """

    id: str
    service: str
    tool: str
    arguments: JsonObject
    effect: Literal["read", "write"]
    after: tuple[str, ...] = ()


class AnswerFact(Data):
    """Something that the final answer states; `value` is a literal or a binding."""

    label: str
    value: Any


class Temptation(Data):
    """A call that a careless agent would make; the solution with it must fail.

    Attributes:
        reason: What made it tempting: `near_miss`, `lookalike`, `unguarded` …
        after: Id of the step after which it would be made.
        replaces: Id of the step instead of which it would be made; empty where it comes on top.
    """

    reason: str
    step: Step
    after: str
    replaces: str = ""


class Solution(Data):
    """The reference solution.

    Attributes:
        values: Bindings by name, which steps and the answer refer to.
        steps: In one valid order.
        answer: The facts that the final answer states.
        temptations: What not to do instead or besides.
    """

    values: dict[str, Any] = Field(default_factory=dict)
    steps: tuple[Step, ...] = Field(min_length=1)
    answer: tuple[AnswerFact, ...] = ()
    temptations: tuple[Temptation, ...] = ()

    @property
    def tools(self) -> frozenset[str]:
        """Tools that are called, each as `service.tool`."""
        return frozenset(f"{step.service}.{step.tool}" for step in self.steps)


class InformationEdge(Data):
    """A value first seen in one step's answer, absent from the instruction, and needed in another step.

    Attributes:
        target: Id of the step that uses the value, or `answer`.
        argument: Where the value is used.
        criterion: A criterion that fails when the value is substituted.
    """

    source: str
    target: str
    source_service: str
    target_service: str
    argument: str
    criterion: str


class Task(Data):
    """A task, complete: whoever has it and the packages it pins can run and judge it.

    Attributes:
        walk: Services in the order in which the reference solution visits them.
        core: The services that the walk visits.
        capabilities: What the task demands (`join`, `policy_branch`, `stale_reread` …), for analysis and curricula.
        difficulty: The profile that it was made with.
        shape: What kind of plan it is, for counting how varied tasks are.
    """

    instruction: str
    recipe: WorldRecipe
    rubric: Rubric
    solution: Solution
    walk: tuple[str, ...]
    core: tuple[str, ...]
    edges: tuple[InformationEdge, ...]
    capabilities: tuple[str, ...]
    difficulty: Difficulty
    split: Split
    shape: str
    author: str

    @cached_property
    def id(self) -> str:
        """Content id: `task_` and the start of the sha256 of everything else."""
        return f"task_{digest(self)[:16]}"
