"""Ablation: runs that differ in one thing, to see what that thing does.

A comparison names one key of the configuration and its values; each value is an arm, an ordinary run that is the same
in all else. What an arm may change comes after the data: so services, tasks, teacher and trajectories are made once,
and all arms are evaluated on the same held-out tasks.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Final, Literal, Self

from pydantic import Field, JsonValue, model_validator
from pydantic_core import PydanticCustomError

from compoworld_core.data import Data

BUDGET: Final = "training.sft.taught_tokens"
"""What makes arms equal that learn from different conversations: tokens of the assistant, which the loss is of."""

SEEDS: Final = ("training.sft.seed", "training.grpo.seed")
"""What each repetition of a training has of its own."""

_MAY_CHANGE: Final = ("export.", "training.sft.", "training.grpo.")
_CHOOSES: Final = ("export.", "training.sft.profile", "training.sft.context_tokens")
"""Keys that decide which conversations are learnt from; those too long for the context are cut or left out."""


class Comparison(Data):
    """One key of the configuration, and what it is in each arm; the others are compared with the first."""

    key: str = Field(description="Such as training.grpo.reward: of export, training.sft or training.grpo.")
    values: tuple[JsonValue, ...] = Field(min_length=2, description="One for each arm.")

    @property
    def model(self) -> Literal["sft", "grpo"]:
        """Whom the key makes a difference to first, and who is evaluated."""
        return "grpo" if self.key.startswith("training.grpo.") else "sft"


class AblateConfig(Data):
    """What is compared, and how often each training is repeated."""

    compare: dict[str, Comparison] = Field(default={}, description="Comparisons by name.")
    seeds: tuple[Annotated[int, Field(ge=0)], ...] = Field(
        default=(0,), min_length=1, description="Every training is done with each of them, as seed of sft and grpo."
    )

    @model_validator(mode="after")
    def _compares_one_thing_each(self) -> Self:
        if len(set(self.seeds)) < len(self.seeds):
            raise _wrong("seeds", "one is there twice; remove it")
        for name, item in self.compare.items():
            if not item.key.startswith(_MAY_CHANGE):
                raise _wrong(
                    f"compare.{name}.key",
                    f"{item.key!r} cannot differ between arms, which share data and evaluation; use a key of "
                    f"{', '.join(place.rstrip('.') for place in _MAY_CHANGE)}",
                )
            if item.key in SEEDS:
                raise _wrong(f"compare.{name}.key", f"{item.key!r} is set by ablate.seeds")
            if any(value in item.values[:place] for place, value in enumerate(item.values)):
                raise _wrong(f"compare.{name}.values", "one is there twice; remove it")
        return self

    def needing_budget(self) -> Iterator[str]:
        """Names of the comparisons whose arms learn from different conversations."""
        return (name for name, item in self.compare.items() if item.key.startswith(_CHOOSES))


def _wrong(key: str, problem: str) -> PydanticCustomError:
    return PydanticCustomError("contradiction", "{problem}", {"key": f"ablate.{key}", "problem": problem})
