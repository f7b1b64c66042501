"""Processes of a training job: what each needs before torch is asked for anything, and a clean end for all.

DeepSpeed on a CPU needs its accelerator named, its process group made with gloo and its kernel built beforehand
(`kernels.py`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

from compoworld_core.errors import CompoWorldError
from compoworld_core.services.host.confinement import die_with
from compoworld_core.training.config import Layout

T = TypeVar("T")

_PATIENCE_S: Final = 6 * 3600
"""That processes wait for each other: some move hundreds of gigabytes of a checkpoint meanwhile."""


def prepare(layout: Layout, model: str, run: str) -> None:
    """Set up this process; to be called before anything of transformers is imported.

    Args:
        model: Folder or hub id; with a folder no hub is asked for anything.
        run: The training run's name; its TensorBoard files get a folder of that name.
    """
    if layout.tensorboard:
        os.environ["TENSORBOARD_LOGGING_DIR"] = str(Path(layout.tensorboard) / run)
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if Path(model).is_dir():
        os.environ.setdefault("HF_HUB_OFFLINE", "1")
    if layout.zero_stage and layout.device == "cpu":
        os.environ.setdefault("DS_ACCELERATOR", "cpu")
        os.environ.setdefault("ACCELERATE_USE_DEEPSPEED", "true")
        import deepspeed

        deepspeed.init_distributed(dist_backend="gloo")


def arguments(layout: Layout, folder: Path) -> dict[str, Any]:
    """The arguments of a trainer that follow from the layout alone."""
    on_cpu = layout.device == "cpu"
    return {
        "output_dir": str(folder),
        "use_cpu": on_cpu,
        "bf16": not on_cpu,
        "fp16": False,
        "gradient_checkpointing": layout.gradient_checkpointing,
        "deepspeed": deepspeed_config(layout) if layout.zero_stage else None,
        "logging_steps": 1,
        "save_strategy": "steps",
        "save_total_limit": 1,
        "report_to": ["tensorboard"] if layout.tensorboard else [],
        "disable_tqdm": True,
        "ddp_backend": "gloo" if on_cpu and layout.processes > 1 else None,
        "ddp_timeout": _PATIENCE_S,
        "dataloader_pin_memory": not on_cpu,
    }


def precision(layout: Layout) -> Any:
    """The `torch.dtype` that weights are loaded in.

    A step moves many of them by less than bfloat16 can tell. DeepSpeed keeps a copy in single precision beside them;
    without it they have to be that copy themselves.
    """
    import torch

    return torch.bfloat16 if layout.device == "cuda" and layout.zero_stage else torch.float32


def deepspeed_config(layout: Layout) -> dict[str, Any]:
    """DeepSpeed's configuration for a layout; sizes are left to the trainer."""
    zero: dict[str, Any] = {"stage": layout.zero_stage}
    if layout.zero_stage == 3:
        zero |= {"overlap_comm": layout.device != "cpu", "stage3_gather_16bit_weights_on_model_save": True}
    if layout.offload != "none":
        zero["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
    if layout.offload == "optimizer+weights":
        zero["offload_param"] = {"device": "cpu", "pin_memory": True}
    return {
        "zero_optimization": zero,
        "zero_allow_untested_optimizer": True,
        "train_micro_batch_size_per_gpu": "auto",
        "gradient_accumulation_steps": "auto",
        "gradient_clipping": "auto",
        "bf16": {"enabled": layout.device != "cpu"},
    }


def declare_experts(model: Any) -> None:
    """Tell DeepSpeed which modules send tokens to experts.

    It gathers their weights as a whole: expert by expert, processes whose tokens go to other experts would wait for
    each other.
    """
    layers = {type(module).__name__ for module in model.modules() if "experts" in dict(module.named_children())}
    if layers:
        os.environ["ACCELERATE_DEEPSPEED_MOE_LAYER_CLS_NAMES"] = ",".join(sorted(layers))


def is_spread() -> bool:
    """Whether this process is one of a group."""
    import torch.distributed

    return bool(torch.distributed.is_available() and torch.distributed.is_initialized())


def gathered(part: T) -> list[T]:
    """What every process has, by rank."""
    if not is_spread():
        return [part]
    import torch.distributed

    parts: list[Any] = [None] * torch.distributed.get_world_size()
    torch.distributed.all_gather_object(parts, part)
    return parts


def finish(trainer: Any, tokenizer: Any, folder: Path) -> None:
    """Save the model, and end the process group, so that no process is left waiting or aborts while others save.

    Args:
        tokenizer: As it is to be served; a trainer swaps in a template of its own.
        folder: For both.
    """
    trainer.save_model(str(folder))
    if trainer.is_world_process_zero():
        tokenizer.save_pretrained(folder)
        (folder / "training_args.bin").unlink(missing_ok=True)  # a pickle with this machine's paths
    trainer.accelerator.wait_for_everyone()
    trainer.accelerator.end_training()
    if is_spread():
        import torch.distributed

        torch.distributed.destroy_process_group()


def run(job: Callable[[], None]) -> None:
    """Do a process's part of a job; what is wrong decides the exit code, as in the job contract.

    The process ends with the one that started it.
    """
    die_with(os.getppid())
    try:
        job()
    except CompoWorldError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(error.exit_code)
