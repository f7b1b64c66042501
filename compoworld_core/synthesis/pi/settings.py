"""What a person may say about pi's sessions."""

from __future__ import annotations

from decimal import Decimal
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Isolation = Literal["namespace", "network_policy"]


class SessionSettings(BaseModel):
    """How far a session may go. A session that ended is kept with these, so with others it is held anew."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    turns: int = Field(default=150, ge=1, description="Most answers of the model.")
    tokens: int | None = Field(default=6_000_000, ge=0, description="Prompt and completion tokens together.")
    usd: Decimal | None = Field(
        default=None, ge=0, description="US dollars, at the prices that the session is held with."
    )
    seconds: float = Field(default=3600, gt=0, description="Wall time.")
    context_tokens: int = Field(default=128_000, ge=64_000, description="What the model's context holds.")
    answer_tokens: int = Field(
        default=32_000, ge=1, description="Longest answer, where the model's own config is silent."
    )
    isolation: Isolation = Field(
        default="namespace",
        exclude=True,
        description="What cuts pi off: a network `namespace` of its own, or the pod's `network_policy`.",
    )
