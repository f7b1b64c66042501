"""Trials: one attempt of one model at one task of a benchmark, whoever ran it, in one form."""

from __future__ import annotations

from typing import Self

from pydantic import Field, model_validator

from compoworld_core.data import Data
from compoworld_core.storage import DatasetType


class Trial(Data):
    """One attempt at one task.

    Attributes:
        benchmark: Name of the benchmark, `held-out` for the native suite.
        model: What was evaluated.
        task: The benchmark's own name of the unit that is scored.
        trial: From 0.
        domain: The benchmark's own grouping of tasks; empty where it has none.
        passed: By the benchmark's definition; None where the trial was not scored.
        score: In [0, 1], partial where the benchmark has partial scores; None where the trial was not scored.
        criteria: Which of the task's criteria hold, where the benchmark tells.
        idle: Which of them hold although nothing was done; as long as `criteria`, or empty.
        capabilities: What the task demands, where the benchmark tells.
        steps: Turns of the model.
        calls: Tool calls that it asked for, where that is known.
        valid_calls: Those that were well formed and had arguments that their tool's schema allows.
        usd: What it cost.
        error: Why it was not scored, or what went wrong although it was; None where nothing did.
        versions: Of the harness, the data, the grader, the judge …, by name.
    """

    benchmark: str
    model: str
    task: str
    trial: int = Field(ge=0)
    domain: str = ""
    difficulty: str = ""
    capabilities: tuple[str, ...] = ()
    passed: bool | None
    score: float | None = Field(ge=0, le=1)
    criteria: tuple[bool, ...] = ()
    idle: tuple[bool, ...] = ()
    steps: int | None = None
    calls: int | None = None
    valid_calls: int | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    usd: float | None = None
    error: str | None = None
    versions: dict[str, str] = Field(default={})

    @model_validator(mode="after")
    def _is_scored_or_says_why_not(self) -> Self:
        if (self.passed is None) != (self.score is None):
            raise ValueError("passed and score belong together")
        if self.passed is None and self.error is None:
            raise ValueError("a trial that was not scored needs an error")
        if self.idle and len(self.idle) != len(self.criteria):
            raise ValueError("idle is as long as criteria")
        return self


EVALUATIONS = DatasetType("evaluations", 1, Trial)
