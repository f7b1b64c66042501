"""Whether a full fine-tune fits a cluster, and with which settings: arithmetic on shapes, no GPU needed.

Mixed precision with Adam keeps 2 bytes of weights, 2 of gradients and 12 of optimizer state (a 4-byte copy and two
moments) for each parameter. ZeRO divides these over the processes, stage by stage (arXiv 1910.02054); what activations,
the loss and buffers take is not divided. Settings are tried from the fastest to the most frugal; the first that fits is
the plan. What cannot be known beforehand is covered by a reserve.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, Literal

from pydantic import Field

from compoworld_core.data import Data
from compoworld_core.training.shape import ModelShape

GB: Final = 10**9
WEIGHTS: Final = 2
GRADIENTS: Final = 2
OPTIMIZER: Final = 12
HOST_GRADIENTS: Final = 4
"""Bytes per parameter; DeepSpeed keeps gradients in single precision where the optimizer's states are offloaded to."""

RESERVE: Final = 0.1
"""Share of a GPU that stays free for fragments and the driver."""
BUFFERS_GB: Final = 3.0
"""What communication and kernels keep."""
LOSS_CHUNK: Final = 4096
"""Tokens whose logits are held at a time; all at once, 32k tokens of a large vocabulary would take tens of GB."""
LEAST_CACHED: Final = 4
"""Conversations of full length that a server has to hold side by side to be worth it."""

ZeroStage = Literal[1, 2, 3]
Offload = Literal["none", "optimizer", "optimizer+weights"]


class Hardware(Data):
    """GPUs of one kind, evenly spread over nodes.

    Attributes:
        host_memory_gb: Of a node; what is moved off the GPUs has to find room there.
    """

    nodes: int = Field(default=1, ge=1)
    gpus_per_node: int = Field(default=8, ge=1)
    gpu_memory_gb: float = Field(default=80, gt=0)
    host_memory_gb: float = Field(default=1000, gt=0)

    @property
    def gpus(self) -> int:
        """All of them."""
        return self.nodes * self.gpus_per_node


class Settings(Data):
    """How a model is laid out over the GPUs."""

    zero_stage: ZeroStage
    offload: Offload
    context_tokens: int


class Part(Data):
    """What one thing takes on each GPU, in GB (10⁹ bytes)."""

    name: str
    gb: float


class MemoryPlan(Data):
    """Whether training fits, and how.

    Attributes:
        settings: The first that fit; the most frugal where none does.
        parts: What each GPU holds under these settings.
        host_gb: What each node holds.
        tensor_parallel: GPUs that share one copy of the model when a server answers rollouts; None where a node has
            too little room.
        reasons: Sentences: why this, and not the faster settings before it.
    """

    fits: bool
    settings: Settings
    parts: tuple[Part, ...]
    host_gb: float
    available_gb: float
    tensor_parallel: int | None
    reasons: tuple[str, ...]

    @property
    def needed_gb(self) -> float:
        """On each GPU."""
        return sum(part.gb for part in self.parts)


def plan_memory(shape: ModelShape, hardware: Hardware, context_tokens: int, micro_batch: int = 1) -> MemoryPlan:
    """Find the fastest settings that fit.

    Args:
        shape: The model.
        hardware: What there is.
        context_tokens: Longest conversation; half of it at a time is given up before the plan is.
        micro_batch: Sequences that a GPU works on at a time.
    """
    available = hardware.gpu_memory_gb * (1 - RESERVE)
    reasons: list[str] = []
    for settings in _from_fast_to_frugal(context_tokens, hardware.gpus):
        parts = _parts(shape, hardware, settings, micro_batch)
        host = _host_gb(shape, hardware, settings)
        needed = sum(part.gb for part in parts)
        fits = needed <= available and host <= hardware.host_memory_gb
        if fits:
            reasons.append(f"{_said(settings)}: {needed:.1f} GB of {available:.1f} GB on each GPU fits")
            break
        if needed > available:
            largest = max(parts, key=lambda part: part.gb)
            reasons.append(
                f"{_said(settings)}: needs {needed:.1f} GB on each GPU, {available:.1f} GB are there; "
                f"{largest.name} alone take {largest.gb:.1f} GB"
            )
        else:
            reasons.append(
                f"{_said(settings)}: needs {host:.0f} GB of host memory on each node, "
                f"{hardware.host_memory_gb:.0f} GB are there"
            )
    return MemoryPlan(
        fits=fits,
        settings=settings,
        parts=parts,
        host_gb=host,
        available_gb=available,
        tensor_parallel=tensor_parallel(shape, hardware, context_tokens),
        reasons=tuple(reasons),
    )


def tensor_parallel(shape: ModelShape, hardware: Hardware, context_tokens: int) -> int | None:
    """Fewest GPUs of one node over which a server has to spread the model; None where a node has too few."""
    cache = LEAST_CACHED * context_tokens * shape.cache_values_per_token * 2 / GB
    weights = shape.parameters * WEIGHTS / GB
    for gpus in (1, 2, 4, 8, 16):
        if gpus <= hardware.gpus_per_node and (weights + cache) / gpus + BUFFERS_GB <= hardware.gpu_memory_gb * (
            1 - RESERVE
        ):
            return gpus
    return None


def _from_fast_to_frugal(context_tokens: int, gpus: int) -> Iterator[Settings]:
    """With one GPU there is nothing to divide, so the first stage stands for the second."""
    offloads: tuple[Offload, ...] = ("none", "optimizer", "optimizer+weights")
    undivided: tuple[ZeroStage, ...] = (1, 2, 3) if gpus > 1 else (1,)
    for tokens in (context_tokens, context_tokens // 2, context_tokens // 4):
        for offload in offloads:
            stages: tuple[ZeroStage, ...] = undivided if offload == "none" else (3,)
            yield from (Settings(zero_stage=stage, offload=offload, context_tokens=tokens) for stage in stages)


def _parts(shape: ModelShape, hardware: Hardware, settings: Settings, micro_batch: int) -> tuple[Part, ...]:
    gpus, stage = hardware.gpus, settings.zero_stage
    tokens = settings.context_tokens * micro_batch
    weights = WEIGHTS / (gpus if stage == 3 else 1) if settings.offload != "optimizer+weights" else 0
    gradients = GRADIENTS / (gpus if stage >= 2 else 1)
    optimizer = OPTIMIZER / gpus if settings.offload == "none" else 0
    width = max(shape.experts_active, 1) * shape.intermediate + shape.shared_intermediate
    one_layer = tokens * (8 * shape.hidden + 4 * shape.heads * shape.head_dim + 4 * width) * 2
    chunk = min(tokens, LOSS_CHUNK)
    sizes = {
        "weights": shape.parameters * weights,
        "gradients": shape.parameters * gradients,
        "optimizer states": shape.parameters * optimizer,
        "gathered layers": 2 * max(shape.layer_parameters, shape.embeddings) * WEIGHTS if stage == 3 else 0,
        "checkpointed activations": tokens * shape.hidden * shape.layers * 2,
        "activations of one layer": one_layer,
        "logits": chunk * shape.vocab * (4 + 4),
        "buffers": BUFFERS_GB * GB,
    }
    return tuple(Part(name=name, gb=size / GB) for name, size in sizes.items() if size)


def _host_gb(shape: ModelShape, hardware: Hardware, settings: Settings) -> float:
    offloaded = OPTIMIZER + HOST_GRADIENTS
    per_parameter = {"none": 0, "optimizer": offloaded, "optimizer+weights": offloaded + WEIGHTS}[settings.offload]
    return shape.parameters * per_parameter / hardware.nodes / GB


def _said(settings: Settings) -> str:
    offload = "" if settings.offload == "none" else f" with {settings.offload.replace('+', ' and ')} in host memory"
    return f"ZeRO-{settings.zero_stage}{offload} at {settings.context_tokens} tokens"
