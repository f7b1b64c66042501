"""Conversations of 32k tokens are trained on within the memory of a laptop; what is longer is cut, and counted."""

from __future__ import annotations

import resource
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.storage.digest import JsonObject
from compoworld_core.training.config import Layout, SftSettings, TinyModel
from compoworld_core.training.conversations import fit, write_rows
from compoworld_core.training.history import METRICS, file_of, read_table
from compoworld_core.training.sft import SftJob, train
from compoworld_core.training.tiny import make_model

CONTEXT = 32_768
MOST_GB = 8


def lengthened(record: JsonObject, times: int) -> JsonObject:
    """The record with its work done over and over before the answer."""
    first, work, last = record["messages"][:2], record["messages"][2:-1], record["messages"][-1:]
    return {**record, "messages": [*first, *(work * times), *last]}


@pytest.mark.slow
def test_a_conversation_of_32k_tokens_is_trained_on(records: list[JsonObject], tokenizer: Any, tmp_path: Path) -> None:
    make_model(tokenizer, TinyModel(layers=2, hidden=64, heads=2), CONTEXT).save_pretrained(tmp_path / "base")
    tokenizer.save_pretrained(tmp_path / "base")

    fitting = fit([lengthened(records[0], 12), records[1]], tokenizer, CONTEXT)

    assert (fitting.whole, fitting.cut, fitting.dropped) == (1, 1, [])
    assert CONTEXT - 4096 < fitting.tokens[0] <= CONTEXT, "cut after the last turn that fits"
    write_rows(fitting.rows[:1], tmp_path / "rows.jsonl")
    job = SftJob(
        model=str(tmp_path / "base"),
        rows=str(tmp_path / "rows.jsonl"),
        out=str(tmp_path / "out"),
        store=str(tmp_path / "store"),
        run="run",
        settings=SftSettings(epochs=1, global_batch=1, context_tokens=CONTEXT),
        layout=Layout(device="cpu", gradient_checkpointing=True),
    )
    train(job)

    history = list(read_table(tmp_path / "out" / "model" / file_of(METRICS), METRICS))
    assert [row.value for row in history if row.name == "num_tokens"][-1] == fitting.tokens[0]
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 < MOST_GB * 10**9
