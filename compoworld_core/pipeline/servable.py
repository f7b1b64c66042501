"""A trained model out of the store, as a folder that can be served or looked into."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from pydantic import BaseModel

from compoworld_core.errors import InputError
from compoworld_core.pipeline.graph import StageGraph
from compoworld_core.pipeline.runner import committed, resolve
from compoworld_core.storage import DatasetType, Store, read_dataset
from compoworld_core.training.datasets import BASE, GRPO_MODELS, SFT_MODELS, ModelFile, base_files, lay_out_model

_MODELS: Final[Mapping[str, tuple[str, DatasetType[ModelFile]]]] = {
    "base": ("sft", SFT_MODELS),
    "sft": ("sft", SFT_MODELS),
    "grpo": ("grpo", GRPO_MODELS),
}
"""By name: the stage that leaves it, and the dataset that has it."""


def check_out(store: Store, graph: StageGraph, configs: Mapping[str, BaseModel], name: str, folder: Path) -> None:
    """Lay a trained model into a folder.

    Args:
        configs: Of each stage, by name; they say which model it is.
        name: `base`, `sft` or `grpo`.
        folder: Is made, and must not have anything yet.

    Raises:
        InputError: There is no such model, or it has not been trained, or the folder is in use.
    """
    if name not in _MODELS:
        raise InputError(f"--model {name}: there are {', '.join(_MODELS)}")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InputError(f"--out {folder}: is there already; name a folder that is new or empty")
    stage, kind = _MODELS[name]
    plan = resolve(store, graph, configs, stage)
    if committed(store, plan) is None:
        raise InputError(
            f"{store.uri} has no {kind.name} for this configuration: run `compoworld {stage}` with it first"
        )
    files = list(read_dataset(store, plan.outputs[kind.name], kind))
    own = [file for file in files if not file.path.startswith(f"{BASE}/")]
    wanted = list(base_files(files)) if name == "base" else own
    if not wanted:
        raise InputError("--model base: training started from a model that is not of this store, see training.base")
    lay_out_model(store, wanted, folder)
