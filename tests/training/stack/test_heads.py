"""What no loss is taken of is not scored, and the loss stays what it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest


def test_only_labelled_positions_are_scored(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import torch
    from transformers import AutoModelForCausalLM
    from trl.trainer import utils

    from compoworld_core.training.heads import score_labelled_only

    scored: list[int] = []

    class Watched(utils._ChunkedLogProbFunction):  # type: ignore[misc]  # TRL is untyped
        @classmethod
        def apply(cls, hidden: Any, *others: Any) -> Any:
            scored.append(len(hidden))
            return utils_apply(hidden, *others)

    utils_apply = utils._ChunkedLogProbFunction.apply
    monkeypatch.setattr(utils, "_ChunkedLogProbFunction", Watched)
    monkeypatch.setattr(utils, "_use_triton", lambda device: False)  # as TRL finds it on a CPU
    model = AutoModelForCausalLM.from_pretrained(base)
    utils.add_fused_lm_head(model)
    ids = torch.arange(1, 33).reshape(2, 16)
    labels = torch.where(ids % 4 == 0, ids, -100)

    every = model(input_ids=ids, labels=labels, fused_lm_head=True).loss
    score_labelled_only()
    few = model(input_ids=ids, labels=labels, fused_lm_head=True).loss

    assert scored == [30, 8]
    assert torch.isclose(every, few)
    assert few.requires_grad
