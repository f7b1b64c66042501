"""Models for a shard's work: what its config names, with the journal in its store and its part of the budget."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compoworld_core.llm.config import ModelUser
from compoworld_core.pipeline.stage import Shard

if TYPE_CHECKING:
    from compoworld_core.llm.pool import ModelPool


def open_pool(config: ModelUser, shard: Shard) -> ModelPool:
    """The models that a stage names, to be entered in the event loop that asks them.

    Raises:
        InputError: A model has no endpoint, or an endpoint no key.
    """
    from compoworld_core.llm.journal import Journal
    from compoworld_core.llm.pool import ModelPool  # with the client library, which takes a second to import

    return ModelPool(config.models, Journal(shard.store), config.budget.part(shard.count))
