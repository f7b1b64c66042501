"""Conversations to train on: exported records, cut where they are too long, and never inside a tool call.

Tool calls differ in their arguments, so a dataset that infers one struct for all of them would invent null arguments
and train the model to write them. Messages and tools are therefore stored as JSON, of which nothing is inferred.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datasets import Dataset, Features, Json, List
from transformers import AutoTokenizer
from trl.chat_template_utils import get_training_chat_template

from compoworld_core.errors import InputError
from compoworld_core.storage.digest import JsonObject
from compoworld_core.training.history import Epoch, Fitted


@dataclass
class Fitting:
    """What became of records that had to fit a context.

    Attributes:
        rows: Those that are trained on: `messages` and `tools`.
        whole: How many of them are complete.
        cut: How many end early, after an assistant message that fits.
        dropped: Ids of the records of which not even the first assistant message fits.
        tokens: Tokens of each row.
    """

    rows: list[JsonObject] = field(default_factory=list)
    whole: int = 0
    cut: int = 0
    dropped: list[str] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)

    def told(self, epoch: Epoch) -> Fitted:
        """The figures, for whoever reads how a training went."""
        return Fitted(
            epoch=epoch,
            whole=self.whole,
            cut=self.cut,
            dropped=len(self.dropped),
            tokens=sum(self.tokens),
            longest=max(self.tokens, default=0),
        )


def fit(records: Iterable[JsonObject], tokenizer: Any, context_tokens: int) -> Fitting:
    """Fit records into a context.

    A record that is too long is cut after the last assistant message with which it fits: what follows a cut is a tool's
    answer or the end, so no tool call is ever cut.

    Args:
        records: In the exported form `{tools, messages, meta, source}`.
        tokenizer: Counts the tokens of a conversation, as training renders it.
        context_tokens: Longest conversation.
    """
    fitting = Fitting()
    for record in records:
        messages, tools = record["messages"], record["tools"]
        ends = [place + 1 for place, message in enumerate(messages) if message["role"] == "assistant"]
        end, tokens = _longest(messages, tools, ends, tokenizer, context_tokens)
        if end == 0:
            fitting.dropped.append(str(record["meta"]["task_id"]))
            continue
        fitting.rows.append({"messages": messages[:end], "tools": tools})
        fitting.tokens.append(tokens)
        fitting.whole += end == ends[-1]
        fitting.cut += end != ends[-1]
    return fitting


def _longest(
    messages: Sequence[JsonObject], tools: Sequence[JsonObject], ends: Sequence[int], tokenizer: Any, limit: int
) -> tuple[int, int]:
    """The last end with which the conversation fits, and its tokens; (0, 0) where none does."""
    best = (0, 0)
    low, high = 0, len(ends) - 1
    place = high  # most conversations fit as they are
    while low <= high:
        tokens = len(token_ids(messages[: ends[place]], tools, tokenizer))
        if tokens <= limit:
            best = (ends[place], tokens)
            low = place + 1
        else:
            high = place - 1
        place = (low + high) // 2
    return best


def portion(rows: Sequence[JsonObject], model: str, taught: int | None) -> tuple[list[JsonObject], Epoch]:
    """The first rows that have so many of the assistant's tokens, as far as whole rows can; all if left out.

    Args:
        rows: Fitted conversations.
        model: Folder or hub id that has the tokenizer.
        taught: Tokens that the loss is of.

    Raises:
        InputError: All rows together have fewer, or the first one has more.
    """
    tokenizer = AutoTokenizer.from_pretrained(model)
    template = get_training_chat_template(tokenizer)
    chosen: list[JsonObject] = []
    tokens = learnt = 0
    for row in rows:
        masks = tokenizer.apply_chat_template(
            row["messages"],
            tools=row["tools"],
            chat_template=template,
            tokenize=True,
            return_dict=True,
            return_assistant_tokens_mask=True,
            enable_thinking=False,
        )["assistant_masks"]
        if taught is not None and learnt + sum(masks) > taught:
            break
        chosen.append(row)
        tokens += len(masks)
        learnt += sum(masks)
    if not chosen:
        raise InputError(f"training.sft.taught_tokens={taught}: the first conversation has more; raise it")
    if taught is not None and len(chosen) == len(rows) and learnt < taught:
        raise InputError(
            f"training.sft.taught_tokens={taught}: {len(rows)} conversations have {learnt} tokens of the assistant "
            "only; lower it, or raise tasks.count"
        )
    return chosen, Epoch(conversations=len(chosen), tokens=tokens, taught=learnt)


def token_ids(messages: Sequence[JsonObject], tools: Sequence[JsonObject], tokenizer: Any) -> list[int]:
    """The tokens of a conversation; they are the same while training and while serving."""
    ids: list[int] = tokenizer.apply_chat_template(
        list(messages), tools=list(tools), tokenize=True, return_dict=False, enable_thinking=False
    )
    return ids


def dataset_of(rows: Sequence[JsonObject]) -> Dataset:
    """The rows as a dataset of which no structure is inferred."""
    return Dataset.from_list(list(rows), features=Features({"messages": List(Json()), "tools": List(Json())}))


def write_rows(rows: Iterable[JsonObject], path: Path) -> None:
    """Write rows where every process of a job can read them."""
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def read_rows(path: Path) -> list[JsonObject]:
    """The rows that `write_rows` wrote."""
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]
