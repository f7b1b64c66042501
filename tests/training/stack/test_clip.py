"""The clip: beyond 0.20 below and 0.28 above, a token that has gone far enough is not pushed further."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.mark.parametrize(
    ("advantage", "ratio", "moves"),
    [
        (1.0, 1.27, True),
        (1.0, 1.29, False),
        (1.0, 0.5, True),
        (-1.0, 0.81, True),
        (-1.0, 0.79, False),
        (-1.0, 1.5, True),
    ],
    ids=["within", "above", "worse than before", "within, down", "below", "better than before"],
)
def test_no_gradient_flows_beyond_the_clip(trainer: Any, advantage: float, ratio: float, moves: bool) -> None:
    import torch

    prompt, completion = torch.tensor([[5, 6, 7]]), torch.tensor([[8, 9, 10, 11]])
    ids, ones = torch.cat([prompt, completion], dim=1), torch.ones(1, 7, dtype=torch.long)
    with torch.no_grad():
        now, _, _ = trainer._get_per_token_logps_and_entropies(trainer.model, ids, ones, 4)
    trainer.model.zero_grad()
    loss = trainer._compute_loss(
        trainer.model,
        {
            "prompt_ids": prompt,
            "prompt_mask": torch.ones_like(prompt),
            "completion_ids": completion,
            "completion_mask": torch.ones_like(completion),
            "advantages": torch.tensor([advantage]),
            "old_per_token_logps": now - torch.log(torch.tensor(ratio)),
        },
    )

    loss.backward()

    moved = max(float(weight.grad.abs().max()) for weight in trainer.model.parameters() if weight.grad is not None)
    assert (moved > 0) is moves
