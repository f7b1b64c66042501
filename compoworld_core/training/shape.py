"""The shape of a language model: what decides how much memory its weights, activations and caches take."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pydantic import Field

from compoworld_core.data import Data
from compoworld_core.errors import InputError


class ModelShape(Data):
    """A decoder-only transformer, dense or with experts, with full attention in all or in every n-th layer.

    Attributes:
        intermediate: Width of the feed-forward part; of one expert where there are experts.
        experts: Experts of a layer; 0 for a dense model.
        experts_active: Those that work on one token, beside the shared ones.
        shared_intermediate: Width of the experts that work on every token.
        attention_every: 1: every layer attends to all tokens. n: only each n-th does and keeps a cache; the others are
            linear and keep a state of fixed size.
        tied: Whether input and output embeddings are the same.
    """

    layers: int = Field(ge=1)
    hidden: int = Field(ge=1)
    vocab: int = Field(ge=1)
    heads: int = Field(ge=1)
    kv_heads: int = Field(ge=1)
    head_dim: int = Field(ge=1)
    intermediate: int = Field(ge=1)
    experts: int = Field(default=0, ge=0)
    experts_active: int = Field(default=0, ge=0)
    shared_intermediate: int = Field(default=0, ge=0)
    attention_every: int = Field(default=1, ge=1)
    tied: bool = False

    @property
    def embeddings(self) -> int:
        """Parameters of the embeddings."""
        return self.vocab * self.hidden * (1 if self.tied else 2)

    @property
    def parameters(self) -> int:
        """All parameters, norms and biases left out: they make less than a thousandth."""
        return self.embeddings + self.layers * (self._mixing + self._feed_forward(max(self.experts, 1)))

    @property
    def active_parameters(self) -> int:
        """Parameters that work on one token."""
        return self.embeddings + self.layers * (self._mixing + self._feed_forward(max(self.experts_active, 1)))

    @property
    def attention_layers(self) -> int:
        """Layers that attend to all tokens."""
        return self.layers // self.attention_every

    @property
    def cache_values_per_token(self) -> int:
        """Keys and values that a server keeps for every token."""
        return 2 * self.attention_layers * self.kv_heads * self.head_dim

    @property
    def layer_parameters(self) -> int:
        """Parameters of one layer."""
        return self._mixing + self._feed_forward(max(self.experts, 1))

    @property
    def _mixing(self) -> int:
        """Of a layer's attention. Linear layers have projections of a like size."""
        return self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)

    def _feed_forward(self, experts: int) -> int:
        router = self.hidden * self.experts
        return 3 * self.hidden * (experts * self.intermediate + self.shared_intermediate) + router


_LARGEST: Final = 10**9
"""Of any one size."""

SHAPES: Final[Mapping[str, ModelShape]] = {
    "Qwen/Qwen3.6-35B-A3B": ModelShape(
        layers=40,
        hidden=2048,
        vocab=248_320,
        heads=16,
        kv_heads=2,
        head_dim=256,
        intermediate=512,
        experts=256,
        experts_active=8,
        shared_intermediate=512,
        attention_every=4,
    ),
    "Qwen/Qwen3-1.7B": ModelShape(
        layers=28, hidden=2048, vocab=151_936, heads=16, kv_heads=8, head_dim=128, intermediate=6144, tied=True
    ),
    "Qwen/Qwen3-8B": ModelShape(
        layers=36, hidden=4096, vocab=151_936, heads=32, kv_heads=8, head_dim=128, intermediate=12_288
    ),
}
"""Models that are known without their files; any other is read from its `config.json`."""


def shape_of(config: Mapping[str, Any], source: str) -> ModelShape:
    """The shape that a `config.json` in the form of the `transformers` library tells.

    Args:
        config: The file's content; a `text_config` inside it goes first.
        source: What to call the file in an error.

    Raises:
        InputError: A size is missing, or is none.
    """
    text = config.get("text_config", config)
    if not isinstance(text, Mapping):
        raise InputError(f"{source}: text_config: expected an object")

    def size(*names: str, otherwise: int | None = None) -> int:
        told = next((name for name in names if isinstance(text.get(name), int)), None)
        if told is None and otherwise is None:
            raise InputError(f"{source}: tells no {names[0]}; is it the config.json of a decoder-only model?")
        if told is None:
            return otherwise or 0
        if isinstance(text[told], bool) or not (0 if otherwise == 0 else 1) <= text[told] <= _LARGEST:
            raise InputError(f"{source}: {told}: {text[told]} is no size of a model")
        return int(text[told])

    hidden, heads = size("hidden_size"), size("num_attention_heads")
    experts = size("num_experts", "n_routed_experts", "num_local_experts", otherwise=0)
    return ModelShape(
        layers=size("num_hidden_layers"),
        hidden=hidden,
        vocab=size("vocab_size"),
        heads=heads,
        kv_heads=size("num_key_value_heads", otherwise=heads),
        head_dim=size("head_dim", otherwise=max(1, hidden // heads)),
        intermediate=size(*(("moe_intermediate_size",) if experts else ()), "intermediate_size"),
        experts=experts,
        experts_active=size("num_experts_per_tok", otherwise=0),
        shared_intermediate=size("shared_expert_intermediate_size", otherwise=0),
        attention_every=size("full_attention_interval", otherwise=1),
        tied=bool(text.get("tie_word_embeddings", config.get("tie_word_embeddings", False))),
    )
