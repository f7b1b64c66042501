"""Training as a user starts it: verbs over the store of a run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.cli import run_cli
from compoworld_core.storage import DatasetLocation, DatasetType, open_store, read_dataset
from compoworld_core.training.datasets import GRPO_MODELS, SFT_MODELS, ModelFile, lay_out_model

CONFIG = """
crawl: {limit: 4}
tasks: {profile: easy, count: 14, held_out_services: 0, shares: {sft: 2, rl: 1}}
training:
  tiny: {layers: 2, hidden: 64, heads: 2, vocabulary: 1024}
  sft: {context_tokens: 3072, epochs: 1, global_batch: 2}
  grpo: {context_tokens: 3072, completion_tokens: 64, steps: 2, rollouts: 2, tasks_per_step: 1, replay: true}
  layout: {device: cpu, gradient_checkpointing: false, save_every: 2}
"""


def test_a_run_goes_on_through_sft_and_grpo_and_skips_what_is_done(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.yaml").write_text(CONFIG)
    options = ["--config", str(tmp_path / "run.yaml"), "--store", str(tmp_path / "store"), "--workers", "1", "--json"]

    def verb(name: str) -> dict[str, Any]:
        assert run_cli([name, *options]) == 0
        document: dict[str, Any] = json.loads(capfd.readouterr().out)
        return document

    verb("run")
    for stage, models in (("sft", SFT_MODELS), ("grpo", GRPO_MODELS)):
        key = verb(stage)["datasets"][models.name]["uri"].rpartition("/")[2]
        folder = lay_out_model(open_store(tmp_path / "store"), _files(tmp_path, models, key), tmp_path / stage)
        wanted = {"model.safetensors", "tokenizer.json", "training_metrics.parquet"}
        assert wanted <= {file.name for file in folder.iterdir()}
    assert verb("sft")["skipped"]

    page = Path(verb("report")["report"].removeprefix("file://")).read_text()
    assert "<h3>Fine-tuning</h3>" in page
    assert "<h3>Reinforcement</h3>" in page
    for name, others in (
        ("base", set()),
        ("sft", {"training_metrics.parquet"}),
        ("grpo", {"training_rollouts.parquet"}),
    ):
        folder = tmp_path / "out" / name
        assert run_cli(["export-model", "--model", name, "--out", str(folder), *options[:4]]) == 0
        assert "--tool-call-parser qwen3_coder" in capfd.readouterr().out
        files = {file.name for file in folder.iterdir()}
        assert {"model.safetensors", "config.json", "tokenizer.json", "chat_template.jinja"} | others <= files
        assert not {"base", "training_args.bin"} & files, "nothing of the machine, and one model only"
    assert run_cli(["export-model", "--model", "sft", "--out", str(tmp_path / "out" / "sft"), *options[:4]]) == 2


def _files(tmp_path: Path, models: DatasetType[ModelFile], key: str) -> list[ModelFile]:
    return list(read_dataset(open_store(tmp_path / "store"), DatasetLocation(dataset=models.name, key=key), models))
