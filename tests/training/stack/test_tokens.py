"""What a model is trained on, token by token, and that it is shown the same when it is served."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.llm.messages import AssistantMessage, SystemMessage, ToolCall, ToolMessage, UserMessage
from compoworld_core.storage.digest import JsonObject
from compoworld_core.training.conversations import dataset_of, fit, token_ids
from compoworld_core.training.environment import WorldEnvironment
from compoworld_core.training.local_model import LocalModel
from compoworld_core.worlds.gateway import META_TOOLS

END = "<|im_end|>"


def trained_rows(records: list[JsonObject], base: Path, tmp_path: Path) -> Any:
    """The rows as the trainer sees them, with labels."""
    from transformers import AutoModelForCausalLM, AutoTokenizer
    from trl import SFTConfig, SFTTrainer

    config = SFTConfig(
        output_dir=str(tmp_path), assistant_only_loss=True, max_length=None, use_cpu=True, bf16=False, report_to=[]
    )
    rows = [{"messages": record["messages"], "tools": record["tools"]} for record in records]
    trainer = SFTTrainer(
        model=AutoModelForCausalLM.from_pretrained(base),
        args=config,
        train_dataset=dataset_of(rows),
        processing_class=AutoTokenizer.from_pretrained(base),
    )
    return trainer.train_dataset


def test_loss_is_on_every_token_of_the_assistant_and_on_no_other(
    records: list[JsonObject], base: Path, tokenizer: Any, tmp_path: Path
) -> None:
    record = records[0]

    row = trained_rows([record], base, tmp_path)[0]

    trained = tokenizer.decode([label for label in row["labels"] if label != -100])
    whole = tokenizer.decode(row["input_ids"])
    turns = [part.split(END)[0] + END + "\n" for part in whole.split("<|im_start|>assistant\n")[1:]]
    assert trained == "".join(turns)
    assert len(turns) == sum(message["role"] == "assistant" for message in record["messages"])
    assert "null" not in trained, "no call got the arguments of another"


def test_training_reads_the_tokens_that_serving_renders(
    records: list[JsonObject], base: Path, tokenizer: Any, tmp_path: Path
) -> None:
    model = LocalModel(base, name="tiny")
    for record, row in zip(records[:2], trained_rows(records[:2], base, tmp_path), strict=True):
        messages = record["messages"]
        place = max(index for index, message in enumerate(messages) if message["role"] == "assistant")

        prompt = model.prompt_ids([_message(item) for item in messages[:place]], record["tools"])

        assert row["input_ids"][: len(prompt)] == prompt
        assert row["input_ids"] == token_ids(messages, record["tools"], tokenizer)


def test_an_answer_is_read_as_it_was_trained(records: list[JsonObject], base: Path, tokenizer: Any) -> None:
    model = LocalModel(base, name="tiny")
    record = records[0]
    for place, message in enumerate(record["messages"]):
        if message["role"] != "assistant":
            continue
        prompt = model.prompt_ids([_message(item) for item in record["messages"][:place]], record["tools"])
        whole = token_ids(record["messages"][: place + 1], record["tools"], tokenizer)
        read = model.read(whole[len(prompt) : -1], prompt, record["tools"], place)  # less the line break at the end

        assert read.content == message["content"]
        assert [(call.name, call.parsed) for call in read.tool_calls] == [
            (call["function"]["name"], call["function"]["arguments"]) for call in message.get("tool_calls", ())
        ]


def test_the_tools_of_the_environment_are_those_of_the_gateway() -> None:
    from transformers.utils import get_json_schema

    functions = [getattr(WorldEnvironment, item["function"]["name"]) for item in META_TOOLS]

    assert [get_json_schema(function) for function in functions] == list(META_TOOLS)
    public = {name for name in vars(WorldEnvironment) if not name.startswith("_")}
    assert public == {"reset", *(item["function"]["name"] for item in META_TOOLS)}


@pytest.mark.parametrize("share", [0.9, 0.6, 0.4])
def test_a_cut_is_never_inside_a_call(share: float, records: list[JsonObject], tokenizer: Any) -> None:
    lengths = [len(token_ids(record["messages"], record["tools"], tokenizer)) for record in records]
    limit = int(share * max(lengths))

    fitting = fit(records, tokenizer, limit)

    assert len(fitting.rows) + len(fitting.dropped) == len(records)
    assert fitting.whole + fitting.cut == len(fitting.rows)
    for row, tokens in zip(fitting.rows, fitting.tokens, strict=True):
        assert row["messages"][-1]["role"] == "assistant"
        assert tokens == len(token_ids(row["messages"], row["tools"], tokenizer)) <= limit


def test_what_does_not_begin_within_the_context_is_dropped_and_counted(
    records: list[JsonObject], tokenizer: Any
) -> None:
    fitting = fit(records, tokenizer, 64)

    assert not fitting.rows
    assert fitting.dropped == [record["meta"]["task_id"] for record in records]


def _message(item: JsonObject) -> Any:
    match item["role"]:
        case "system":
            return SystemMessage(content=item["content"])
        case "user":
            return UserMessage(content=item["content"])
        case "tool":
            return ToolMessage(tool_call_id=item["tool_call_id"], name=item["name"], content=item["content"])
    calls = tuple(
        ToolCall(id=call["id"], name=call["function"]["name"], arguments=json.dumps(call["function"]["arguments"]))
        for call in item.get("tool_calls", ())
    )
    return AssistantMessage(content=item["content"], tool_calls=calls)
