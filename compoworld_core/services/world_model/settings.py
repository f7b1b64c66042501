"""What is said about the world model in a configuration."""

from __future__ import annotations

from typing import Self

from pydantic import Field

from compoworld_core.data import Data
from compoworld_core.llm.config import ModelUser


class WorldModelConfig(Data):
    """Who predicts the calls of tools that no code executes. Without a model, tasks have no such tools."""

    model: str | None = Field(default=None, description="Name of the model, as llm.models has it; none if left out.")
    samples: int = Field(
        default=1, ge=1, le=15, description="Predictions of a call, of which the most frequent counts."
    )
    attempts: int = Field(default=3, ge=1, le=10, description="Answers that a prediction may take until it is valid.")


class WorldModelUser(ModelUser):
    """A stage's config whose worlds may have tools that a world model answers.

    Attributes:
        world_model: Taken from the section of that name where it names a model: what a person writes here is refused.
    """

    world_model: WorldModelConfig | None = Field(default=None, description="Taken from world_model.")

    def named(self) -> dict[str, str]:
        """Names of the models that it uses, by the field that names them; subclasses add theirs to it."""
        return {"world_model.model": self.world_model.model} if self.world_model and self.world_model.model else {}

    def with_world_model(self, config: WorldModelConfig) -> Self:
        """The same config with the world model that all stages share, if there is one."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_validate({**fields, "world_model": config if config.model else None})
