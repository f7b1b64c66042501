"""Scoring: passing over tools' answers and padding changes neither the loss nor a gradient."""

from __future__ import annotations

from typing import Any

import pytest

PROMPTS = [[5, 6, 7], [5, 6], [9, 5, 6, 7]]
COMPLETIONS = [[8, 9, 10, 11, 12], [8, 9, 10], [13, 14, 15, 16, 17, 18]]
OWN = [[1, 0, 0, 1, 1], [1, 1, 1], [1, 1, 0, 0, 0, 0]]


def padded(rows: list[list[int]], side: str, value: int = 0, *, spare: int = 0) -> Any:
    import torch
    from torch.nn.utils.rnn import pad_sequence

    filled = pad_sequence([torch.tensor(row) for row in rows], True, value, padding_side=side)
    return torch.nn.functional.pad(filled, (spare, 0) if side == "left" else (0, spare), value=value)


def ones(rows: list[list[int]]) -> list[list[int]]:
    return [[1] * len(row) for row in rows]


@pytest.fixture
def inputs() -> dict[str, Any]:
    """A micro-batch of a step whose longest prompt and longest completion are in another one."""
    import torch

    return {
        "prompt_ids": padded(PROMPTS, "left", spare=2),
        "prompt_mask": padded(ones(PROMPTS), "left", spare=2),
        "completion_ids": padded(COMPLETIONS, "right", spare=7),
        "completion_mask": padded(ones(COMPLETIONS), "right", spare=7),
        "tool_mask": padded(OWN, "right", 1, spare=7),
        "advantages": torch.tensor([1.0, -0.5, 2.0]),
    }


def learnt(trainer: Any, inputs: dict[str, Any], compute: Any) -> tuple[float, list[Any]]:
    """The loss, and the gradient of each weight."""
    trainer.model.zero_grad()
    loss = compute(trainer, trainer.model, inputs)
    loss.backward()
    return loss.item(), [weight.grad.clone() for weight in trainer.model.parameters() if weight.grad is not None]


@pytest.mark.parametrize("has_old", [False, True], ids=["first update", "second update"])
def test_loss_and_gradient_are_those_of_scoring_all(trainer: Any, inputs: dict[str, Any], has_old: bool) -> None:
    import torch
    from trl import GRPOTrainer

    if has_old:
        trainer._note_own(OWN)
        ids = torch.cat([inputs["prompt_ids"], inputs["completion_ids"][:, :6]], dim=1)
        mask = torch.cat([inputs["prompt_mask"], inputs["completion_mask"][:, :6]], dim=1)
        with torch.no_grad():
            old, _, _ = trainer._get_per_token_logps_and_entropies(trainer.model, ids, mask, 6, batch_size=2)
        assert torch.equal(old != 0, padded(OWN, "right").bool())
        inputs["old_per_token_logps"] = torch.nn.functional.pad(old - 0.1, (0, 7))

    loss, gradient = learnt(trainer, inputs, type(trainer)._compute_loss)
    with pytest.MonkeyPatch.context() as patch:
        name = "_get_per_token_logps_and_entropies"
        patch.setattr(type(trainer), name, getattr(GRPOTrainer, name))
        all_loss, all_gradient = learnt(trainer, inputs, GRPOTrainer._compute_loss)

    assert loss == pytest.approx(all_loss, rel=1e-5)
    assert torch.nn.utils.get_total_norm(
        [found - expected for found, expected in zip(gradient, all_gradient, strict=True)]
    ) < 1e-5 * torch.nn.utils.get_total_norm(all_gradient)


def test_only_the_models_own_tokens_are_scored(trainer: Any, inputs: dict[str, Any]) -> None:
    import torch

    heads: list[int] = []
    whole: list[int] = []
    model = trainer.model

    def watched(**given: Any) -> Any:
        heads.append(int((given["labels"] != -100).sum()))
        whole.append(given["input_ids"].numel())
        return model(**given)

    with torch.no_grad():
        trainer._compute_loss(watched, inputs)

    assert heads == [sum(map(sum, OWN))]
    assert whole == [3 * (4 + 6)]
