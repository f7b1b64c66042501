"""Every configuration that is shipped for training is one that fits the GPUs that its name tells."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

from compoworld_core.training.config import TrainingConfig
from compoworld_core.training.memory import BUFFERS_GB, GB, WEIGHTS, Hardware, plan_memory
from compoworld_core.training.planning import colocated_tensor_parallel
from compoworld_core.training.shape import SHAPES, ModelShape

FILES = sorted(Path("configs/training").glob("*.yaml"))
ON_GPUS = [path for path in FILES if re.search(r"-\dx\d$", path.stem)]
LAPTOP_GB = 8


def loaded(path: Path) -> TrainingConfig:
    return TrainingConfig.model_validate(yaml.safe_load(path.read_text(encoding="utf-8"))["training"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_step_divides_evenly_over_the_processes(path: Path) -> None:
    config = loaded(path)

    assert config.layout.accumulation(config.sft.global_batch) >= 1
    assert config.layout.accumulation(config.grpo.rollouts * config.grpo.tasks_per_step) >= 1


@pytest.mark.parametrize("path", ON_GPUS, ids=lambda path: path.stem)
def test_the_layout_is_the_one_that_the_planner_finds(path: Path) -> None:
    config = loaded(path)
    nodes, gpus = (int(digit) for digit in path.stem[-3:].split("x"))
    hardware = Hardware(nodes=nodes, gpus_per_node=gpus)
    shape = SHAPES[str(config.base)]
    context = max(config.sft.context_tokens, config.grpo.context_tokens)

    plan = plan_memory(shape, hardware, context, config.layout.micro_batch)

    assert plan.fits
    assert plan.settings.context_tokens == context
    assert (config.layout.nodes, config.layout.processes_per_node) == (nodes, gpus)
    assert config.layout.offload == plan.settings.offload
    assert config.layout.zero_stage == (plan.settings.zero_stage if hardware.gpus > 1 else 0)
    assert config.layout.generation == "colocate"
    assert config.layout.tensor_parallel == colocated_tensor_parallel(shape, hardware, plan)
    assert plan.needed_gb + config.layout.vllm_memory * hardware.gpu_memory_gb <= plan.available_gb
    held = shape.parameters * WEIGHTS / GB / config.layout.tensor_parallel
    assert held < config.layout.vllm_memory * hardware.gpu_memory_gb - BUFFERS_GB, "room for weights and some cache"


def test_the_tiny_model_fits_a_laptop() -> None:
    config = loaded(Path("configs/training/laptop.yaml"))
    tiny = config.tiny
    shape = ModelShape(
        layers=tiny.layers,
        hidden=tiny.hidden,
        vocab=tiny.vocabulary,
        heads=tiny.heads,
        kv_heads=tiny.heads // 2,
        head_dim=64,
        intermediate=3 * tiny.hidden,
        tied=True,
    )

    plan = plan_memory(shape, Hardware(gpus_per_node=1, gpu_memory_gb=LAPTOP_GB), config.sft.context_tokens)

    assert config.base is None
    assert plan.fits
    assert plan.settings.offload == config.layout.offload == "none"
    assert plan.settings.context_tokens == config.sft.context_tokens
    assert (config.layout.device, config.layout.generation) == ("cpu", "transformers")


def test_both_sizes_of_cluster_and_the_smaller_machines_are_served() -> None:
    assert {path.stem for path in FILES} == {
        "laptop",
        "one-service",
        "qwen3-1.7b-1x1",
        "qwen3.6-35b-2x8",
        "qwen3.6-35b-4x8",
    }
    assert len(ON_GPUS) == 3
