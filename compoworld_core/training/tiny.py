"""A tokenizer and a tiny model made on the spot: the whole of training can be tried without a hub and without a GPU.

Both have the form of the large models: a byte-level tokenizer with their control tokens, their chat template as the
`trl` library ships it, their architecture with a few narrow layers. They know nothing until they are trained, but the
model can repeat.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Final

import trl
from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM, set_seed
from transformers.utils.chat_template_utils import render_jinja_template
from trl.chat_template_utils import add_response_schema

from compoworld_core.storage.digest import JsonObject
from compoworld_core.training.config import TinyModel
from compoworld_core.training.induction import teach_repeating

END_OF_TURN: Final = "<|im_end|>"
PADDING: Final = "<|endoftext|>"
_CONTROL: Final = (
    PADDING,
    "<|im_start|>",
    END_OF_TURN,
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "</tool_response>",
)
_TEMPLATE: Final = Path(trl.__file__).parent / "chat_templates" / "qwen3_6.jinja"

_PIECES: Final = "|".join(
    (
        r"(?:\n?</?(?:parameter|function)[^>\n]*>\n?)+",  # tags of a tool call, with the lines around them
        r'(?:"?[\]}]*, )?[\[{]*"[\w.-]+": (?:[\[{]*"(?![\w.-]+": )|[\[{]+)?',  # from one JSON value to the next
        r'"?[\]}]+|\n+|", "|"',
        r'[^"\n:\]}]+: ',  # what a line is about
        r'[^"\n]+?(?=, "|[\]}]|"|\n|$)',  # a value, or text
    )
)
"""No token reaches beyond a piece. What stands around a JSON value is apart from the value, so a value is written with
the same tokens wherever it stands, and to copy it a tiny model only has to repeat them."""


_TURNING: Final = 1_000_000.0
"""Base of the rotary frequencies, as in the large models."""


def make_tokenizer(records: Iterable[JsonObject], vocabulary: int, context_tokens: int) -> Any:
    """A byte-level BPE tokenizer learnt from conversations, with the chat template and response schema of Qwen3.6.

    Args:
        records: In the exported form `{tools, messages, meta, source}`.
        vocabulary: Most tokens, control tokens and the 256 bytes among them.
        context_tokens: Longest conversation.
    """
    learnt = Tokenizer(models.BPE())
    learnt.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(_PIECES), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    learnt.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(_CONTROL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    learnt.train_from_iterator(_texts(records), trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=learnt,
        eos_token=END_OF_TURN,
        pad_token=PADDING,
        model_max_length=context_tokens,
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = _TEMPLATE.read_text(encoding="utf-8")
    return add_response_schema(tokenizer)


def _texts(records: Iterable[JsonObject]) -> Iterator[str]:
    """What the records say, as the template renders them, between the control tokens."""
    template = _TEMPLATE.read_text(encoding="utf-8")
    control = re.compile("|".join(map(re.escape, _CONTROL)))
    for record in records:
        (text,), _ = render_jinja_template(
            [record["messages"]], tools=record["tools"], chat_template=template, enable_thinking=False
        )
        yield from filter(None, control.split(text))


def make_model(tokenizer: Any, sizes: TinyModel, context_tokens: int) -> Any:
    """A dense Qwen3 model that can repeat and nothing else; its weights follow from the seed.

    Args:
        tokenizer: Decides the vocabulary.
        sizes: Of the model.
        context_tokens: Longest conversation.
    """
    set_seed(sizes.seed)
    config = Qwen3Config(
        vocab_size=len(tokenizer),
        hidden_size=sizes.hidden,
        intermediate_size=3 * sizes.hidden,
        num_hidden_layers=sizes.layers,
        num_attention_heads=sizes.heads,
        num_key_value_heads=sizes.heads // 2,
        head_dim=64,
        max_position_embeddings=context_tokens,
        rope_theta=_TURNING,
        tie_word_embeddings=True,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    model = Qwen3ForCausalLM(config)
    teach_repeating(model)
    return model
