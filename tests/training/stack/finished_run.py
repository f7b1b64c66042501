"""A command of the product that has ended, and what it left in its store."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from compoworld_core.pipeline.stage import Input
from compoworld_core.storage import DatasetLocation, DatasetType, open_store

ONE_SERVICE = Path(__file__).parents[3] / "configs" / "training" / "one-service.yaml"


class FinishedRun:
    """A run, or one stage of it; what was interrupted in this store goes on."""

    def __init__(self, store: str, config: Path, verb: str = "run") -> None:
        self.uri = store
        self.store = open_store(store)
        command = [sys.executable, "-m", "compoworld_core.cli", verb, "--config", str(config), "--json"]
        done = subprocess.run([*command, "--store", store, "--workers", "2"], stdout=subprocess.PIPE, check=True)
        told = json.loads(done.stdout)
        stages = told["stages"] if verb == "run" else [told]
        self._made = {name: made["uri"] for stage in stages for name, made in stage["datasets"].items()}

    def location(self, kind: DatasetType[Any]) -> DatasetLocation:
        return DatasetLocation(dataset=kind.name, key=self._made[kind.name].rpartition("/")[2])

    def rows(self, kind: DatasetType[Any]) -> Input[Any]:
        return Input(self.store, self.location(kind), kind)
