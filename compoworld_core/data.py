"""Data: what is stored, sent or written in a configuration. It never changes, and has no fields but those declared."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Data(BaseModel):
    """Base of such models."""

    model_config = ConfigDict(frozen=True, extra="forbid")
