"""The image `train`, built and run: all of the training stack is there and works as nobody, on a read-only root.

It takes some 25 GB of disk while it is built, so only `IMAGE_TRAIN=1` has it built.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.images.image import Image, built, require_tools

pytestmark = pytest.mark.slow

CONFIG = """
crawl: {limit: 4}
tasks: {profile: easy, count: 14, held_out_services: 0, shares: {sft: 2, rl: 1}}
training:
  tiny: {layers: 2, hidden: 64, heads: 2, vocabulary: 1024}
  sft: {context_tokens: 3072, epochs: 1, global_batch: 2}
  layout: {device: cpu, gradient_checkpointing: false, save_every: 2, processes_per_node: 2, zero_stage: 1}
"""
WHOLE = """
import deepspeed, torch, trl, vllm
from trl.import_utils import is_vllm_available
assert torch.version.cuda and is_vllm_available(min_version="0.30.0")
"""
KERNEL = """
set -e
cat > /tmp/kernel.cu <<'END'
#include <cuda/std/version>
#include <curand_kernel.h>
__global__ void add(float *values) { values[threadIdx.x] += 1; }
extern "C" int run() { add<<<1, 32>>>(nullptr); return (int)cudaDeviceSynchronize(); }
END
cd /tmp
"$CUDA_HOME/bin/nvcc" -shared -Xcompiler -fPIC -arch=sm_90a kernel.cu -o kernel.so -L"$CUDA_HOME/lib64" -lcudart
"""


@pytest.fixture(scope="module")
def train() -> Iterator[Image]:
    if not os.environ.get("IMAGE_TRAIN"):
        pytest.skip("IMAGE_TRAIN does not ask for it")
    require_tools()
    with built("train") as image:
        yield image


def test_models_can_be_trained_and_vllm_can_write_rollouts(train: Image) -> None:
    doctor = train.run(["compoworld", "doctor", "--json"])
    checks = json.loads(doctor.stdout)
    imported = train.run(["python", "-c", WHOLE], environment={"HOME": "/tmp"})

    assert checks["training"]["is_fine"], checks["training"]
    assert checks["vllm"]["is_fine"], checks["vllm"]
    assert imported.returncode == 0, imported.stderr


def test_kernels_can_be_compiled_for_gpus(train: Image) -> None:
    done = train.run(["sh", "-c", KERNEL], seconds=900)

    assert done.returncode == 0, done.stderr


def test_two_processes_fine_tune_a_model_as_nobody(train: Image, tmp_path: Path) -> None:
    (tmp_path / "run.yaml").write_text(CONFIG)
    tmp_path.chmod(0o777)

    for verb in ("run", "sft"):
        done = train.run(
            ["compoworld", verb, "--config", "/work/run.yaml", "--store", "/work/store", "--workers", "1", "--json"],
            environment={"HOME": "/tmp"},
            mounts={"/work": tmp_path},
            seconds=1800,
        )
        assert done.returncode == 0, done.stderr

    document = json.loads(done.stdout)
    assert document["datasets"]["sft_models"]["rows"] > 0
