"""What the trainer is told: every argument exists in the installed library and is valid, whoever writes rollouts."""

from __future__ import annotations

import dataclasses
import inspect
from pathlib import Path
from typing import Any, Literal

import pytest
import yaml

from compoworld_core.training.config import Layout, TrainingConfig
from compoworld_core.training.distributed import declare_experts, precision
from compoworld_core.training.grpo import GrpoJob, trainer_arguments

PRESETS = sorted(Path("configs/training").glob("*.yaml"))
SERVER = {"generation": "server", "vllm_url": "http://vllm:8000", "tensor_parallel": 1}


def job_of(preset: Path, folder: Path, layout: dict[str, Any]) -> GrpoJob:
    config = TrainingConfig.model_validate(yaml.safe_load(preset.read_text(encoding="utf-8"))["training"])
    return GrpoJob(
        model="m",
        tasks="",
        out=str(folder),
        store=str(folder),
        run="run",
        settings=config.grpo,
        layout=Layout.model_validate({**dict(config.layout), **layout}),
    )


@pytest.mark.parametrize("layout", [{}, {**SERVER, "device": "cuda"}], ids=["as shipped", "with a server"])
@pytest.mark.parametrize("preset", PRESETS, ids=lambda path: path.stem)
def test_every_argument_exists_and_is_valid(preset: Path, layout: dict[str, Any], tmp_path: Path) -> None:
    from trl import GRPOConfig

    job = job_of(preset, tmp_path, layout)
    arguments = trainer_arguments(job)
    assert set(arguments) <= {field.name for field in dataclasses.fields(GRPOConfig)}

    # one process on this machine stands for all of them
    alone = {"use_cpu": True, "bf16": False, "deepspeed": None, "ddp_backend": None}
    micro_batches = arguments["gradient_accumulation_steps"] * job.layout.processes
    config = GRPOConfig(**{**arguments, **alone, "gradient_accumulation_steps": micro_batches})

    assert config.generation_batch_size == job.settings.rollouts * job.settings.tasks_per_step
    assert config.steps_per_generation == config.gradient_accumulation_steps, "an update uses every rollout once"
    assert config.num_iterations == job.settings.updates
    assert (config.epsilon, config.epsilon_high) == (0.20, 0.28)
    assert (config.beta, config.entropy_coef) == (0, 0)
    assert config.use_vllm == (job.layout.generation != "transformers")
    if config.use_vllm:
        assert config.vllm_mode == job.layout.generation
        assert job.layout.processes % config.vllm_tensor_parallel_size == 0
        assert config.vllm_importance_sampling_mode == "token_truncate"


@pytest.mark.parametrize(
    ("device", "zero_stage", "expected"),
    [("cpu", 0, "float32"), ("cpu", 3, "float32"), ("cuda", 0, "float32"), ("cuda", 1, "bfloat16")],
)
def test_steps_are_added_up_in_single_precision_by_somebody(
    device: Literal["cpu", "cuda"], zero_stage: Literal[0, 1, 3], expected: str
) -> None:
    assert str(precision(Layout(device=device, zero_stage=zero_stage))) == f"torch.{expected}"


def test_vllm_is_handed_what_the_library_hands_on() -> None:
    from trl.generation.vllm_generation import VLLMGeneration

    taken = inspect.signature(VLLMGeneration.__init__).parameters

    assert {"tensor_parallel_size", "max_model_length", "gpu_memory_utilization", "server_base_url"} <= set(taken)


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("Qwen3", None), ("Qwen3Moe", "Qwen3MoeSparseMoeBlock"), ("Qwen3_5Moe", "Qwen3_5MoeSparseMoeBlock")],
)
def test_modules_with_experts_are_declared(kind: str, expected: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    import torch
    import transformers

    names = {"Qwen3": "Qwen3Config", "Qwen3Moe": "Qwen3MoeConfig", "Qwen3_5Moe": "Qwen3_5MoeTextConfig"}
    config = getattr(transformers, names[kind])(hidden_size=64, num_hidden_layers=1, vocab_size=128)
    monkeypatch.setenv("ACCELERATE_DEEPSPEED_MOE_LAYER_CLS_NAMES", "")
    monkeypatch.delenv("ACCELERATE_DEEPSPEED_MOE_LAYER_CLS_NAMES")

    with torch.device("meta"):
        declare_experts(transformers.AutoModelForCausalLM.from_config(config))

    assert os.environ.get("ACCELERATE_DEEPSPEED_MOE_LAYER_CLS_NAMES") == expected
