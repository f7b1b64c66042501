"""A run of the product, and what it made."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from compoworld_core.evaluation.figures import Figure
from compoworld_core.storage import DatasetLocation, DatasetType, open_store, read_dataset

CONFIGS = Path(__file__).parents[3] / "configs" / "training"


class Run:
    """A finished run; one that was interrupted in this store goes on."""

    def __init__(self, store: str, config: Path) -> None:
        self.store = open_store(store)
        command = [sys.executable, "-m", "compoworld_core.cli", "run", "--config", str(config), "--json"]
        done = subprocess.run([*command, "--store", store, "--workers", "2"], stdout=subprocess.PIPE, check=True)
        stages = json.loads(done.stdout)["stages"]
        self._made = {name: made["uri"] for stage in stages for name, made in stage["datasets"].items()}

    def rows(self, kind: DatasetType[Any]) -> list[Any]:
        key = self._made[kind.name].rpartition("/")[2]
        return list(read_dataset(self.store, DatasetLocation(dataset=kind.name, key=key), kind))


def known(figure: Figure) -> float:
    assert figure.value is not None
    return figure.value
