"""What a tiny model learns of one service, on tasks that combine its tools as no training task does.

Some two hours on two cores. A run that was interrupted goes on in the same store: `LEARNING_STORE` keeps one.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from compoworld_core.evaluation.figures import Figure, gains, scores
from compoworld_core.evaluation.trial import EVALUATIONS, Trial
from compoworld_core.storage import DatasetLocation, DatasetType, open_store, read_dataset
from compoworld_core.training.datasets import SFT_MODELS, lay_out_model
from compoworld_core.training.history import METRICS, file_of, read_table

pytestmark = pytest.mark.slow

CONFIG = Path(__file__).parents[3] / "configs" / "training" / "one-service.yaml"
SEEDS = (0, 1, 2)
"""Of reinforcement learning; all go on from the same fine-tuned model."""


class Lab:
    """Runs in one store, so that they share all but what depends on the seed."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._store = os.environ.get("LEARNING_STORE", str(folder / "store"))
        self._datasets: dict[str, Any] = {}

    def run(self, seed: int) -> None:
        """Train and evaluate; no-op, base and the fine-tuned model are evaluated with the first seed only."""
        config = yaml.safe_load(CONFIG.read_text())
        config["training"]["grpo"]["seed"] = seed
        if seed != SEEDS[0]:
            config["evaluate"]["trials"] = {"grpo": 1}
        file = self._folder / f"seed-{seed}.yaml"
        file.write_text(yaml.safe_dump(config))
        command = [sys.executable, "-m", "compoworld_core.cli", "run", "--config", str(file), "--json"]
        done = subprocess.run([*command, "--store", self._store, "--workers", "2"], stdout=subprocess.PIPE, check=True)
        self._datasets = json.loads(done.stdout)["datasets"]

    def rows(self, kind: DatasetType[Any]) -> list[Any]:
        """A dataset of the last run."""
        key = self._datasets[kind.name]["uri"].rpartition("/")[2]
        return list(read_dataset(open_store(self._store), DatasetLocation(dataset=kind.name, key=key), kind))

    def laid_out(self) -> Path:
        """Folder of the fine-tuned model."""
        return lay_out_model(open_store(self._store), self.rows(SFT_MODELS), self._folder / "sft")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Lab:
    return Lab(tmp_path_factory.mktemp("learning"))


@pytest.fixture(scope="module")
def trials(lab: Lab) -> list[Trial]:
    """Those of all seeds; a task's trials of the reinforced model are as many as there are seeds."""
    found: list[Trial] = []
    for seed in SEEDS:
        lab.run(seed)
        found += lab.rows(EVALUATIONS)
    return found


def known(figure: Figure) -> float:
    assert figure.value is not None
    return figure.value


def test_fine_tuning_teaches_calls_and_earns_what_doing_nothing_does_not(trials: list[Trial], lab: Lab) -> None:
    by_model = {item.model: item.overall for item in scores(trials)}
    first, *_, last = (
        row.value or 0.0 for row in read_table(lab.laid_out() / file_of(METRICS), METRICS) if row.name == "eval_loss"
    )

    assert last < first / 10
    assert by_model["sft"].tasks >= 100
    assert known(by_model["base"].valid_calls) < 0.02
    assert known(by_model["sft"].valid_calls) >= 0.9
    assert known(by_model["no-op"].earned) == known(by_model["random"].passed) == 0
    assert known(by_model["oracle"].passed) == 1
    for model in ("sft", "grpo"):
        assert 0 < known(by_model[model].passed) < 1


def test_reinforcement_earns_more_than_what_it_began_with(trials: list[Trial]) -> None:
    (gain,) = (gain for gain in gains(trials) if gain.second == "grpo")
    earned = gain.measures["earned"]

    assert earned.tasks >= 100
    assert earned.interval.low > 0
