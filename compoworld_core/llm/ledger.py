"""The ledger: what was spent on each item, by model. Evidence for a shard's sidecar, never content."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from decimal import Decimal

from compoworld_core.llm.messages import Usage
from compoworld_core.storage.digest import JsonObject


@dataclass(slots=True)
class _Entry:
    requests: int = 0
    journaled: int = 0
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    usd: Decimal = Decimal(0)


class Ledger:
    """Adds up."""

    def __init__(self) -> None:
        self._entries: defaultdict[tuple[str, str], _Entry] = defaultdict(_Entry)

    def note(self, model: str, item: str, usage: Usage | None, *, journaled: bool) -> None:
        """Count an answer.

        Args:
            usage: What it took; None where another answer that was counted is used once more.
            journaled: Whether it was there already.
        """
        entry = self._entries[model, item]
        entry.requests += 1
        entry.journaled += journaled
        if usage is not None:
            entry.prompt_tokens += usage.prompt_tokens
            entry.cached_tokens += usage.cached_tokens
            entry.completion_tokens += usage.completion_tokens
            entry.usd += usage.cost

    def plain(self) -> list[JsonObject]:
        """A row for each model and item, sorted; tokens and money are those of all answers, paid now or before."""
        return [
            {
                "model": model,
                "item": item,
                "requests": entry.requests,
                "journaled": entry.journaled,
                "prompt_tokens": entry.prompt_tokens,
                "cached_tokens": entry.cached_tokens,
                "completion_tokens": entry.completion_tokens,
                "usd": str(entry.usd),
            }
            for (model, item), entry in sorted(self._entries.items())
        ]
