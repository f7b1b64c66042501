"""A model with experts is fine-tuned over two processes that hold parts of it, and all end in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compoworld_core.storage.digest import JsonObject
from compoworld_core.training.config import Layout, SftSettings
from compoworld_core.training.conversations import fit, write_rows
from compoworld_core.training.history import METRICS, file_of, read_table
from compoworld_core.training.launch import launch
from compoworld_core.training.sft import SftJob


@pytest.fixture
def mixture(tokenizer: Any, tmp_path: Path) -> Path:
    """Folder of a tiny model with experts and, in every other layer, linear attention, as Qwen3.6 has them."""
    from transformers import Qwen3_5MoeForCausalLM, Qwen3_5MoeTextConfig

    config = Qwen3_5MoeTextConfig(
        vocab_size=len(tokenizer),
        hidden_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=64,
        linear_num_key_heads=2,
        linear_num_value_heads=2,
        linear_key_head_dim=32,
        linear_value_head_dim=32,
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=64,
        shared_expert_intermediate_size=64,
        layer_types=["linear_attention", "full_attention"],
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    folder = tmp_path / "mixture"
    Qwen3_5MoeForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.usefixtures("kernels")
def test_experts_are_trained_in_two_processes(
    mixture: Path, records: list[JsonObject], tokenizer: Any, tmp_path: Path
) -> None:
    settings = SftSettings(epochs=1, global_batch=2, learning_rate=1e-3, context_tokens=1024)
    layout = Layout(device="cpu", gradient_checkpointing=False, processes_per_node=2, zero_stage=3)
    short = [
        {
            **item,
            "tools": item["tools"][:1],
            "messages": [{"role": "system", "content": "Work."}, *item["messages"][1:7]],
        }
        for item in records
    ]
    write_rows(fit(short, tokenizer, settings.context_tokens).rows[:4], tmp_path / "rows.jsonl")
    job = SftJob(
        model=str(mixture),
        rows=str(tmp_path / "rows.jsonl"),
        out=str(tmp_path / "out"),
        store=str(tmp_path / "store"),
        run="run",
        settings=settings,
        layout=layout,
    )
    (tmp_path / "job.json").write_text(job.model_dump_json())
    told: list[str] = []

    launch(layout, "compoworld_core.training.sft", tmp_path / "job.json", tell=told.append)  # raises on any exit but 0

    history = read_table(tmp_path / "out" / "model" / file_of(METRICS), METRICS)
    losses = [row.value for row in history if row.name == "loss"]
    assert len(losses) == 2
    assert all(loss and loss > 0 for loss in losses)
    assert (tmp_path / "out" / "model" / "model.safetensors").exists()
