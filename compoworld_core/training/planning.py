"""A memory plan as people and programs are told it: does this model train on these GPUs, why, and with which layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from compoworld_core.errors import InputError
from compoworld_core.training.memory import RESERVE, Hardware, MemoryPlan, tensor_parallel
from compoworld_core.training.shape import SHAPES, ModelShape, shape_of

_WIDTH: Final = 27


def read_shape(model: str) -> ModelShape:
    """The shape of a model.

    Args:
        model: One of `SHAPES`, a `config.json`, or the folder that has it.

    Raises:
        InputError: It is none of them, or the file tells no shape.
    """
    if model in SHAPES:
        return SHAPES[model]
    path = Path(model)
    file = path / "config.json" if path.is_dir() else path
    try:
        config = json.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        if path.is_dir():
            raise InputError(f"--model {model}: the folder has no config.json") from None
        raise InputError(
            f"--model {model}: is no known model ({', '.join(sorted(SHAPES))}), and there is no such file or folder; "
            "give a model's folder or its config.json"
        ) from None
    except OSError as error:
        raise InputError(f"{file}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise InputError(f"{file}: is not JSON") from None
    if not isinstance(config, dict):
        raise InputError(f"{file}: is not a JSON object; is it a model's config.json?")
    return shape_of(config, str(file))


def colocated_tensor_parallel(shape: ModelShape, hardware: Hardware, plan: MemoryPlan) -> int | None:
    """Fewest GPUs over which a server has to spread the model in the room that training leaves; None if it has none."""
    room = (plan.available_gb - plan.needed_gb) / (1 - RESERVE)
    if not plan.fits or room <= 0:
        return None
    rest = Hardware.model_validate({**dict(hardware), "gpu_memory_gb": room})
    return tensor_parallel(shape, rest, plan.settings.context_tokens)


def layout_of(hardware: Hardware, plan: MemoryPlan) -> dict[str, Any]:
    """What to write into a configuration's layout."""
    return {
        "nodes": hardware.nodes,
        "processes_per_node": hardware.gpus_per_node,
        "zero_stage": plan.settings.zero_stage,
        "offload": plan.settings.offload,
    }


def document(shape: ModelShape, hardware: Hardware, plan: MemoryPlan) -> dict[str, Any]:
    """The plan for programs."""
    return {
        "fits": plan.fits,
        "parameters": shape.parameters,
        "context_tokens": plan.settings.context_tokens,
        "layout": layout_of(hardware, plan),
        "needed_gb": round(plan.needed_gb, 2),
        "available_gb": round(plan.available_gb, 2),
        "parts_gb": {part.name: round(part.gb, 2) for part in plan.parts},
        "host_gb": round(plan.host_gb, 2),
        "host_available_gb": hardware.host_memory_gb,
        "tensor_parallel": {
            "server": plan.tensor_parallel,
            "colocate": colocated_tensor_parallel(shape, hardware, plan),
        },
        "reasons": list(plan.reasons),
    }


def lines(shape: ModelShape, hardware: Hardware, plan: MemoryPlan, context_tokens: int) -> list[str]:
    """The plan for people.

    Args:
        context_tokens: The context that was asked for.
    """
    settings = plan.settings
    gpus = f"{hardware.nodes} × {hardware.gpus_per_node} GPUs of {hardware.gpu_memory_gb:g} GB"
    shortened = f", not at {context_tokens}" if settings.context_tokens != context_tokens else ""
    verdict = f"yes, at {settings.context_tokens} tokens{shortened}" if plan.fits else "no"
    layout = ", ".join(f"{key}: {value}" for key, value in layout_of(hardware, plan).items())
    return [
        f"fits      {verdict}",
        f"model     {shape.parameters / 1e9:.2f} billion parameters, {shape.active_parameters / 1e9:.2f} at work",
        f"on        {gpus}, {RESERVE:.0%} of each kept free",
        *(f"because   {reason}" for reason in plan.reasons),
        f"layout    {{{layout}}}",
        "each GPU",
        *(f"          {part.name:<{_WIDTH}}{part.gb:>8.1f} GB" for part in plan.parts),
        f"          {'in all':<{_WIDTH}}{plan.needed_gb:>8.1f} GB of {plan.available_gb:.1f} GB",
        f"each host {plan.host_gb:.0f} GB of {hardware.host_memory_gb:.0f} GB",
        f"vLLM      {_served(plan.tensor_parallel, 'on GPUs of its own')}",
        f"          {_served(colocated_tensor_parallel(shape, hardware, plan), 'beside training (colocate)')}",
    ]


def _served(gpus: int | None, where: str) -> str:
    return f"no room {where}" if gpus is None else f"tensor_parallel {gpus} {where}"
