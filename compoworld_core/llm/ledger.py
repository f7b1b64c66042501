"""The ledger: what was spent on each item, by model. Evidence for a shard's sidecar, never content."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field

from compoworld_core.llm.config import Price
from compoworld_core.llm.messages import Usage
from compoworld_core.storage.digest import JsonObject


@dataclass(slots=True)
class _Entry:
    requests: int = 0
    journaled: int = 0
    usage: Usage = field(default_factory=Usage)


class Ledger:
    """Adds up.

    Args:
        prices: By model.
    """

    def __init__(self, prices: Mapping[str, Price]) -> None:
        self._prices = prices
        self._entries: defaultdict[tuple[str, str], _Entry] = defaultdict(_Entry)

    def note(self, model: str, item: str, usage: Usage | None, *, requests: int = 1, journaled: bool) -> None:
        """Count answers.

        Args:
            usage: What they took; None where an answer that was counted is used once more.
            journaled: Whether they were there already.
        """
        entry = self._entries[model, item]
        entry.requests += requests
        entry.journaled += requests * journaled
        if usage is not None:
            entry.usage = Usage.total((entry.usage, usage))

    def plain(self) -> list[JsonObject]:
        """A row for each model and item, sorted; tokens and money are those of all answers, paid now or before."""
        return [
            {
                "model": model,
                "item": item,
                "requests": entry.requests,
                "journaled": entry.journaled,
                **entry.usage.model_dump(),
                "usd": str(self._prices[model].of(entry.usage)),
            }
            for (model, item), entry in sorted(self._entries.items())
        ]
