"""Figures that others published, and how each was made as far as they tell."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import Literal

import yaml
from pydantic import Field, TypeAdapter

from compoworld_core.data import Data


class Published(Data):
    """Scores that were made in the same way.

    Attributes:
        benchmark: As the command line knows it.
        title: What a reader is told that it is.
        metric: As the benchmark's adapter calls it.
        unit: Of the scores: percent of what can be reached, or a reward from 0 to 1.
        is_share: Whether they are shares of tasks that pass.
        is_change: Whether the scores are changes against a base model's.
        tasks: How many units are scored; None where that is not known.
        trials: Attempts at each; None where that is not known.
        states: Conditions that decide about a score, each with the values that agree with the publication.
        leaves_open: Conditions that decide about a score, which it does not tell.
        basis: How it is known what the scores are.
        source: Where they were published.
        scores: By model, or by what was done to it.
    """

    benchmark: str
    title: str
    metric: str
    unit: Literal["percent", "reward"] = "percent"
    is_share: bool = False
    is_change: bool = False
    tasks: int | None = None
    trials: int | None = None
    states: dict[str, tuple[str, ...]] = Field(default={})
    leaves_open: tuple[str, ...] = ()
    basis: str
    source: str
    scores: dict[str, float]


@cache
def published() -> tuple[Published, ...]:
    """All published figures that are known, in the order of their table."""
    text = (files("compoworld_core.evaluation") / "published.yaml").read_text(encoding="utf-8")
    return TypeAdapter(tuple[Published, ...]).validate_python(yaml.safe_load(text))
