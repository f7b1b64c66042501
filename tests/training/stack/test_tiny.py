"""What a tiny model can do before it is trained, and how its tokenizer cuts."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from compoworld_core.training.config import TinyModel
from compoworld_core.training.tiny import make_model


@pytest.mark.parametrize("sizes", [TinyModel(layers=2, hidden=128, heads=2), TinyModel(layers=4, hidden=256, heads=4)])
def test_an_untrained_model_repeats_what_followed_before(sizes: TinyModel, tokenizer: Any) -> None:
    model = make_model(tokenizer, sizes, 1024).eval()
    drawn = torch.Generator().manual_seed(3)
    different = torch.stack([torch.randperm(len(tokenizer), generator=drawn)[:337] for _ in range(4)])

    with torch.inference_mode():
        likeliest = model(input_ids=torch.cat([different, different[:, :300]], dim=1)).logits.argmax(-1)

    again = likeliest[:, 337:-1] == different[:, 1:300]
    assert again.float().mean() > 0.95


@pytest.mark.parametrize(
    "text",
    [
        '{"items": [{"id": "order_1", "buyer_email": "%s", "total": 12}]}',
        '{"buyer_email": "%s"}',
        'Write to "%s" today.',
        "<function=call_tool>\n<parameter=buyer>\n%s\n</parameter>\n</function>",
        "- E-mail address of the buyer: %s",
    ],
)
def test_a_value_has_the_same_tokens_wherever_it_stands(text: str, tokenizer: Any) -> None:
    value = "zoe.lindqvist@yarrow-foods.example"
    alone = tokenizer.encode(value)

    tokens = tokenizer.encode(text % value)

    places = [place for place in range(len(tokens)) if tokens[place : place + len(alone)] == alone]
    assert len(places) == 1
    assert tokenizer.decode(tokens) == text % value
