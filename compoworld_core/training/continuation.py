"""Turns that read only what is new: what a model computed of its rollouts is kept from turn to turn.

TRL asks for every turn with all that was said before, and reading it anew is most of the work of a tiny model. Here a
turn's prompts stand behind what was computed of the rollouts that they go on from; the padding between turns is masked.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence
from transformers import DynamicCache

_NOTHING = -1
"""A token that no prompt has."""


@contextmanager
def continued_turns(model: Any) -> Iterator[None]:
    """Let a model's `generate` go on from where its last turn ended; its weights must not change meanwhile.

    Args:
        model: Of `transformers`. One whose layers do not keep every token reads all of each turn.
    """
    model.generate = _Turns(model)
    try:
        yield
    finally:
        del model.generate


class _Turns:
    """Generation, with what was computed in the turn before."""

    def __init__(self, model: Any) -> None:
        self._generate = model.generate
        self._config = model.config
        self._cache: DynamicCache | None = None
        self._ids = torch.empty(0, 0, dtype=torch.long)  # [rows of the turn before, places in the cache]
        self._read = torch.empty(0, 0, dtype=torch.bool)  # of the same shape: what is no padding

    def __call__(self, input_ids: torch.Tensor, attention_mask: torch.Tensor, **others: Any) -> torch.Tensor:
        """See `GenerationMixin.generate`.

        Args:
            input_ids: Prompts [rows, tokens], padded at the left.
            attention_mask: Of the same shape; 0 where there is padding.
            others: Other arguments.
        """
        if self._cache is None or not self._cache.is_croppable:
            self._cache = DynamicCache(config=self._config)
            self._ids = input_ids[:, :0]
            self._read = attention_mask[:, :0].bool()
        prompts = [row[mask.bool()] for row, mask in zip(input_ids, attention_mask, strict=True)]
        rows, known = self._beginnings(prompts)
        self._cache.batch_select_indices(rows)
        read = self._read[rows]
        read &= read.cumsum(1) <= known[:, None]
        new = [prompt[count:] for prompt, count in zip(prompts, known.tolist(), strict=True)]
        ids = torch.cat([self._ids[rows], pad_sequence(new, batch_first=True, padding_side="left")], 1)
        ones = [torch.ones_like(row, dtype=torch.bool) for row in new]
        read = torch.cat([read, pad_sequence(ones, batch_first=True, padding_side="left")], 1)
        done = self._generate(ids, attention_mask=read.long(), cache=self._cache, **others)
        self._ids = done[:, :-1]
        surplus = self._cache.get_seq_length() - self._ids.shape[1]
        if surplus > 0 and self._cache.is_croppable:  # this process kept step with others, whose answers were longer
            self._cache.crop(-surplus)
        answered = done[:, ids.shape[1] :]
        self._read = pad(read, (0, answered.shape[1] - 1), value=True)
        return torch.cat([input_ids, answered], 1)

    def _beginnings(self, prompts: list[torch.Tensor]) -> tuple[torch.Tensor, torch.Tensor]:
        """The row of the turn before that agrees longest with each prompt, and how many of its tokens do.

        A prompt's last token is always computed: what comes after it is asked for.
        """
        rows = [row[read] for row, read in zip(self._ids, self._read, strict=True)]
        before = pad_sequence(rows, batch_first=True, padding_value=_NOTHING)
        agreeing = [
            (before[:, : len(prompt) - 1] == prompt[: before.shape[1]][: len(prompt) - 1]).cumprod(1).sum(1)
            for prompt in prompts
        ]
        known, places = torch.stack(agreeing).max(1)
        return places, known
