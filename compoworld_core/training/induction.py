"""Weights with which a model that has learnt nothing repeats: what followed a token before is likely to follow again.

Two attention heads in a row make it so (induction heads: Olsson et al., arXiv 2209.11895). In the first layer every
place is told which token stands before it; in the second it looks for places that were told the token that stands
here, and takes over what stands there. Models come to this by themselves, after far more text than a tiny one can be
shown on a laptop; until then they cannot write an address that they have just read.
"""

from __future__ import annotations

from typing import Any, Final

import torch

_SCALE: Final = 0.05
"""Standard deviation of embeddings: small, or the model is so sure of what it repeats that it learns nothing else."""
_STRENGTH: Final = 2.5
"""How much what is taken over, which is less than an embedding, outweighs the token that stands here."""
_SHARPNESS: Final = (4.0, 3.0)
"""Of the attention in each of the two layers: what the norms of queries and keys are multiplied by."""
_QUIET: Final = 0.1
"""What the other heads of both layers say at first."""
_FAST, _SLOW = 8, 14
"""Rotary frequencies, of half a head's width: the fastest tell neighbours apart, the slowest hardly turn."""


def teach_repeating(model: Any) -> None:
    """Set the embeddings and the first head of the first two layers.

    Args:
        model: A `Qwen3ForCausalLM` of two layers or more, with heads of 64.
    """
    config = model.config
    width, head = config.hidden_size, config.head_dim
    half, code = head // 2, 2 * _SLOW
    turns = config.rope_parameters["rope_theta"] ** (-torch.arange(half) / half)
    fast = torch.arange(_FAST)
    slow = torch.cat([torch.arange(half - _SLOW, half), torch.arange(head - _SLOW, head)])
    here, before = torch.arange(1, 1 + code), torch.arange(width - code, width)
    told = torch.arange(1, 1 + min(head, width - code - 1))
    with torch.no_grad():
        embeddings = model.model.embed_tokens.weight
        embeddings.normal_(0, _SCALE)
        embeddings[:, 0] = _SCALE  # the same for all tokens: a query and a key that do not depend on them
        embeddings[:, before] = 0
        first, second = (layer.self_attn for layer in model.model.layers[:2])
        for attention, sharpness in zip((first, second), _SHARPNESS, strict=True):
            for weights in (attention.q_proj.weight, attention.k_proj.weight, attention.v_proj.weight):
                weights[:head] = 0
            attention.o_proj.weight[:, :head] = 0
            attention.o_proj.weight[:, head:] *= _QUIET
            attention.q_norm.weight.fill_(sharpness)
            attention.k_norm.weight.fill_(sharpness)
        first.q_proj.weight[fast, 0] = 1.0
        first.k_proj.weight[fast, 0] = torch.cos(turns[fast])  # turned by one place: they meet where it is one later
        first.k_proj.weight[fast + half, 0] = torch.sin(turns[fast])
        first.v_proj.weight[torch.arange(code), here] = 1.0
        first.o_proj.weight[before, torch.arange(code)] = _SCALE
        second.q_proj.weight[slow, here] = 1.0
        second.k_proj.weight[slow, before] = 1.0
        second.v_proj.weight[torch.arange(len(told)), told] = 1.0
        second.o_proj.weight[told, torch.arange(len(told))] = _STRENGTH * _SCALE * width / len(told)
