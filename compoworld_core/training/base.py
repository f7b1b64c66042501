"""The model that training starts from: one that is there, or a tiny one made for the data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

from compoworld_core.storage.digest import JsonObject
from compoworld_core.training.config import SftSettings, TinyModel
from compoworld_core.training.conversations import Fitting, fit
from compoworld_core.training.tiny import make_model, make_tokenizer


def prepare(
    base: str | None, tiny: TinyModel, settings: SftSettings, records: Sequence[JsonObject], folder: Path
) -> tuple[str, Fitting]:
    """Have the model ready, and the records fitted to it.

    Args:
        base: Folder or hub id; a tiny model is made if left out.
        tiny: Its sizes.
        settings: Have the context, and which records are learnt from.
        records: In the exported form; a tiny model's tokenizer is made of all, so that what is learnt from decides
            nothing about the model that learns.
        folder: Where a tiny model may be laid.

    Returns:
        What to load the model from, and the records that are learnt from as it is to read them.
    """
    learnt = [item for item in records if settings.profile in (None, item["meta"]["difficulty"])]
    tokenizer: Any
    if base is not None:
        tokenizer = AutoTokenizer.from_pretrained(base)
        return base, fit(learnt, tokenizer, settings.context_tokens)
    tokenizer = make_tokenizer(records, tiny.vocabulary, settings.context_tokens)
    make_model(tokenizer, tiny, settings.context_tokens).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return str(folder), fit(learnt, tokenizer, settings.context_tokens)
