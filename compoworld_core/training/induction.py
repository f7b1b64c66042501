"""Weights with which a model that has learnt nothing repeats, and soon learns what to look up.

Two attention heads in a row repeat (induction heads: Olsson et al., arXiv 2209.11895). In the first layer every place
is told which token stands before it; in the second a head looks for places that were told the token that stands here,
and takes over what stands there. Further heads take over in the same way but ask for nothing yet: all that training
has to teach them is after which token the one stands that is wanted next (pointers: Vinyals et al., arXiv 1506.03134).
Models come to all this by themselves, after far more text than a tiny one can be shown on a laptop; until then they
cannot write an address that they have just read.
"""

from __future__ import annotations

from typing import Any, Final

import torch

_SCALE: Final = 0.05
"""Standard deviation of embeddings: small, or the model is so sure of what it repeats that it learns nothing else."""
_STRENGTH: Final = 2.5
"""How much what is taken over, which is less than an embedding, outweighs the token that stands here."""
_UNASKED: Final = 1.5
"""The same of heads that ask for nothing yet, whatever the width: the mean of all places is noise."""
_SHARPNESS: Final = (4.0, 3.0)
"""Of the attention in each of the two layers: what the norms of queries and keys are multiplied by."""
_QUIET: Final = 0.1
"""What the other heads say at first."""
_FAST, _SLOW = 8, 14
"""Rotary frequencies, of half a head's width: the fastest tell neighbours apart, the slowest hardly turn."""


def teach_repeating(model: Any) -> None:
    """Set the embeddings, the first head of the first layer, and in every later layer the heads that share their keys.

    Args:
        model: A `Qwen3ForCausalLM` of two layers or more, with heads of 64.
    """
    config = model.config
    width, head = config.hidden_size, config.head_dim
    half, code = head // 2, 2 * _SLOW
    sharing = config.num_attention_heads // config.num_key_value_heads
    turns = config.rope_parameters["rope_theta"] ** (-torch.arange(half) / half)
    fast, middle = torch.arange(_FAST), torch.arange(_FAST, half - _SLOW)
    slow = torch.cat([torch.arange(half - _SLOW, half), torch.arange(head - _SLOW, head)])
    here, before = torch.arange(1, 1 + code), torch.arange(width - code, width)
    told = torch.arange(1, 1 + min(head, width - code - 1))
    strength = _STRENGTH * _SCALE * width / len(told)
    with torch.no_grad():
        embeddings = model.model.embed_tokens.weight
        embeddings.normal_(0, _SCALE)
        embeddings[:, 0] = _SCALE  # the same for all tokens: a query and a key that do not depend on them
        embeddings[:, before] = 0
        first, *later = (layer.self_attn for layer in model.model.layers)
        _clear(first, 1, _SHARPNESS[0])
        first.q_proj.weight[fast, 0] = 1.0
        first.k_proj.weight[fast, 0] = torch.cos(turns[fast])  # turned by one place: they meet where it is one later
        first.k_proj.weight[fast + half, 0] = torch.sin(turns[fast])
        first.v_proj.weight[torch.arange(code), here] = 1.0
        first.o_proj.weight[before, torch.arange(code)] = _SCALE
        for attention in later:
            _clear(attention, sharing, _SHARPNESS[1])
            attention.k_proj.weight[slow, before] = 1.0
            attention.v_proj.weight[torch.arange(len(told)), told] = 1.0
            for begin in range(0, sharing * head, head):
                attention.q_proj.weight[begin + middle, 0] = 1.0  # where no key has anything: all places count the same
                attention.o_proj.weight[told, begin + torch.arange(len(told))] = _UNASKED * _SCALE
        repeating = later[0]
        repeating.q_proj.weight[middle, 0] = 0
        repeating.q_proj.weight[slow, here] = 1.0
        repeating.o_proj.weight[told, torch.arange(len(told))] = strength


def _clear(attention: Any, heads: int, sharpness: float) -> None:
    """Let the first heads say nothing and the others little."""
    head, end = attention.head_dim, heads * attention.head_dim
    attention.q_proj.weight[:end] = 0
    attention.k_proj.weight[:head] = 0
    attention.v_proj.weight[:head] = 0
    attention.o_proj.weight[:, :end] = 0
    attention.o_proj.weight[:, end:] *= _QUIET
    attention.q_norm.weight.fill_(sharpness)
    attention.k_norm.weight.fill_(sharpness)
