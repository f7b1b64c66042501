"""What a step scores of its rollouts: the model's own tokens, and no more padding than each micro-batch needs.

TRL scores the answers of tools as well, of which no loss is taken, and pads every micro-batch to the longest rollout of
all. Most of a rollout is answers, and scoring a token means a value for each token of the vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.nn.functional import pad
from torch.nn.utils.rnn import pad_sequence
from trl import GRPOTrainer

from compoworld_core.storage.digest import JsonObject

_UNLABELLED = -100
"""What the head passes over."""

Scores = tuple[torch.Tensor, torch.Tensor | None, torch.Tensor | None]
"""Log-probabilities and entropies [rows, completion tokens], and the router's loss where there is one micro-batch."""


class ScoringTrainer(GRPOTrainer):  # type: ignore[misc]  # TRL is untyped
    """A trainer over conversations without images; tokens that are not the model's own get zeros."""

    _own: torch.Tensor | None = None  # [rows, completion tokens]; None where all are

    def _note_own(self, tool_masks: list[list[int]]) -> None:
        """Remember which tokens of a step's rollouts are the model's, before they are scored."""
        self._own = pad_sequence([torch.tensor(mask) for mask in tool_masks], batch_first=True)

    def _compute_loss(self, model: Any, inputs: JsonObject) -> torch.Tensor:
        self._own = inputs.get("tool_mask")
        loss: torch.Tensor = super()._compute_loss(model, inputs)
        return loss

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        batch_size: int | None = None,
        **others: Any,
    ) -> Scores:
        own = torch.ones_like(input_ids[:, -logits_to_keep:]) if self._own is None else self._own.to(input_ids.device)
        batches = zip(*(rows.split(batch_size or len(rows)) for rows in (input_ids, attention_mask, own)), strict=True)
        scored = [self._scored(model, *batch, **others) for batch in batches]
        logps, entropies, losses = zip(*scored, strict=True)
        return torch.cat(logps), None if entropies[0] is None else torch.cat(entropies), losses[0]

    def _scored(
        self, model: Any, ids: torch.Tensor, attention_mask: torch.Tensor, own: torch.Tensor, **others: Any
    ) -> Scores:
        prompt = ids.size(1) - own.size(1)
        used = attention_mask.any(dim=0).nonzero()
        first, end = int(used[0]), max(int(used[-1]), prompt) + 1
        spare = ids.size(1) - end
        is_other = ~own[:, : end - prompt].bool()

        def score(labels: torch.Tensor, **inputs: Any) -> Any:
            labels[:, prompt - first :].masked_fill_(is_other, _UNLABELLED)
            return model(labels=labels, **inputs)

        logps, entropies, loss = super()._get_per_token_logps_and_entropies(
            score, ids[:, first:end], attention_mask[:, first:end], end - prompt, **others
        )
        return pad(logps, (0, spare)), None if entropies is None else pad(entropies, (0, spare)), loss
