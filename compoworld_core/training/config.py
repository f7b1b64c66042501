"""What is said about training in a configuration: the same words on a laptop, on one node and on many.

What decides the weights (data, sizes, rates, seeds) is content. How the work is laid out over processes is not: it is
left out when a config is dumped, so a run that moved to a larger cluster goes on from the checkpoints it has.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from compoworld_core.data import Data
from compoworld_core.errors import InputError
from compoworld_core.tasks.task import Difficulty
from compoworld_core.training.memory import Offload

RewardName = Literal["completion_focused", "uniform", "binary"]
Sampling = Literal["uniform", "need"]

FLOOR: Final = 0.01
"""λ: the least weight of a criterion before normalisation, so that one which all pass still counts."""


class TinyModel(Data):
    """A model and a tokenizer that are made on the spot, see `tiny.py`.

    Attributes:
        hidden: Width of a layer; heads are 64 wide whatever it is.
        heads: Attention heads, half as many for keys and values.
        vocabulary: Most tokens.
    """

    layers: int = Field(default=4, ge=2)
    hidden: int = Field(default=256, ge=64)
    heads: int = Field(default=4, ge=2)
    vocabulary: int = Field(default=4096, ge=512)
    seed: int = 0


class Layout(Data):
    """How training is laid out over processes; nothing of it decides the weights, rounding aside.

    Attributes:
        nodes: Machines, or pods.
        processes_per_node: One per GPU; on a CPU as many as wanted.
        device: `cpu` computes in single precision, `cuda` in bfloat16.
        zero_stage: What DeepSpeed divides over the processes; 0 is plain data parallelism without DeepSpeed.
        offload: What is kept in host memory.
        gradient_checkpointing: Recompute activations instead of keeping them.
        micro_batch: Sequences that a process works on at a time.
        save_every: Steps between checkpoints.
        tensorboard: Folder for TensorBoard's event files, to watch a training go; none are written if left out.
        generation: Who writes rollouts: `transformers` in the training process; `colocate` and `server` need vLLM.
        vllm_url: Of the server that generates.
        tensor_parallel: GPUs that share one copy of the model when vLLM generates beside training.
        vllm_memory: Share of each GPU's memory that it then has for itself.
    """

    nodes: int = Field(default=1, ge=1)
    processes_per_node: int = Field(default=1, ge=1)
    device: Literal["cpu", "cuda"] = "cuda"
    zero_stage: Literal[0, 1, 2, 3] = 0
    offload: Offload = "none"
    gradient_checkpointing: bool = True
    micro_batch: int = Field(default=1, ge=1)
    save_every: int = Field(default=50, ge=1)
    tensorboard: str | None = None
    generation: Literal["transformers", "colocate", "server"] = "transformers"
    vllm_url: Annotated[str, AfterValidator(lambda url: url.rstrip("/"))] | None = None
    tensor_parallel: int = Field(default=1, ge=1)
    vllm_memory: float = Field(default=0.3, gt=0, lt=1)

    @property
    def processes(self) -> int:
        """All of them."""
        return self.nodes * self.processes_per_node

    def checkpoints_of(self, run: str) -> str:
        """Name of a run's checkpoints: those of ZeRO are of one stage and number of processes, and load into no other.

        Args:
            run: The training run, however it is laid out.
        """
        return f"{run}-zero{self.zero_stage}x{self.processes}" if self.zero_stage else run

    def accumulation(self, sequences: int) -> int:
        """Micro-batches of a process that make a step of so many sequences.

        Raises:
            InputError: They cannot be divided evenly.
        """
        at_once = self.micro_batch * self.processes
        if sequences % at_once:
            raise InputError(
                f"{sequences} sequences per step cannot be divided evenly: micro_batch {self.micro_batch} times "
                f"{self.processes} processes makes {at_once}"
            )
        return sequences // at_once

    @model_validator(mode="after")
    def _contradicts_nothing(self) -> Self:
        if self.offload != "none" and self.zero_stage != 3:
            raise ValueError(f"offload {self.offload!r} needs zero_stage 3")
        if (self.generation == "server") != (self.vllm_url is not None):
            raise ValueError("generation 'server' and vllm_url need each other")
        if self.generation != "transformers" and self.device == "cpu":
            raise ValueError(f"generation {self.generation!r} needs GPUs; use transformers")
        if self.generation == "colocate" and self.processes_per_node % self.tensor_parallel:
            raise ValueError(
                f"tensor_parallel {self.tensor_parallel} does not divide the node's {self.processes_per_node} processes"
            )
        return self


class SftSettings(Data):
    """Supervised fine-tuning on the assistant's tokens (the paper's: 3 epochs, batch 32, rate 1e-4).

    Attributes:
        context_tokens: Longest conversation.
        profile: Learn from conversations about tasks of this profile only. A tiny model's tokenizer is made of all.
        taught_tokens: Learn from the first conversations that have so many tokens of the assistant, the only ones that
            the loss is of; all if left out. There have to be as many.
        global_batch: Sequences per step, over all processes.
        warmup: Share of the steps in which the rate rises.
    """

    seed: int = 0
    context_tokens: int = Field(default=32_768, ge=128)
    profile: Difficulty | None = None
    taught_tokens: int | None = Field(default=None, ge=1)
    epochs: float = Field(default=3, gt=0)
    global_batch: int = Field(default=32, ge=1)
    learning_rate: float = Field(default=1e-4, gt=0)
    warmup: float = Field(default=0.03, ge=0, lt=1)


class GrpoSettings(Data):
    """Reinforcement learning in groups of rollouts (the paper's: 8 per task, clip 0.20/0.28, no KL, no entropy).

    Attributes:
        context_tokens: Longest conversation that vLLM makes room for.
        completion_tokens: Longest rollout, the answers of tools included.
        turn_tokens: Longest message of the model; left out, one may take all that is left of the rollout. A batch takes
            as long as its longest message.
        steps: Optimiser steps.
        rollouts: N, rollouts of a task that are judged together.
        tasks_per_step: Groups whose rollouts make one optimiser step.
        updates: Optimiser steps on the same rollouts. With one, old and new policy are equal and clipping never acts.
        floor: λ of the completion-focused reward.
        sampling: Which tasks are next: `uniform` has all equally often, `need` more of those that groups fail lately.
        replay: Let a stored success of the task join a group that fails a criterion as a whole.
    """

    seed: int = 0
    context_tokens: int = Field(default=32_768, ge=128)
    completion_tokens: int = Field(default=16_384, ge=64)
    turn_tokens: int | None = Field(default=None, ge=16)
    steps: int = Field(default=100, ge=1)
    rollouts: int = Field(default=8, ge=2)
    tasks_per_step: int = Field(default=4, ge=1)
    updates: int = Field(default=2, ge=1)
    learning_rate: float = Field(default=1e-6, gt=0)
    clip_low: float = Field(default=0.20, gt=0)
    clip_high: float = Field(default=0.28, gt=0)
    temperature: float = Field(default=1.0, gt=0)
    reward: RewardName = "completion_focused"
    floor: float = Field(default=FLOOR, gt=0, le=1)
    sampling: Sampling = "uniform"
    replay: bool = False


class TrainingConfig(Data):
    """A model and the two phases of its training.

    Attributes:
        base: Folder or hub id of the model to start from; a tiny one is made if left out.
    """

    base: str | None = None
    tiny: TinyModel = TinyModel()
    sft: SftSettings = SftSettings()
    grpo: GrpoSettings = GrpoSettings()
    layout: Layout = Field(default=Layout(), exclude=True)
