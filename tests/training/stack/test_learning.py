"""What a tiny model learns of one service, on tasks that combine its tools as no training task does.

An hour on two cores; a run that was interrupted goes on in the store that `LEARNING_STORE` names.
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

from compoworld_core.evaluation.figures import Figure, Figures, gains, scores
from compoworld_core.evaluation.trial import EVALUATIONS, Trial
from compoworld_core.storage import DatasetLocation, DatasetType, open_store, read_dataset
from compoworld_core.training.datasets import SFT_MODELS, lay_out_model
from compoworld_core.training.history import METRICS, file_of, read_table

pytestmark = pytest.mark.slow

CONFIG = Path(__file__).parents[3] / "configs" / "training" / "one-service.yaml"
SEEDS = (0, 1, 2)
"""Of reinforcement learning; all go on from the same fine-tuned model."""


class Run:
    """A finished run, and what it made."""

    def __init__(self, store: str, config: Path) -> None:
        self.store = open_store(store)
        command = [sys.executable, "-m", "compoworld_core.cli", "run", "--config", str(config), "--json"]
        done = subprocess.run([*command, "--store", store, "--workers", "2"], stdout=subprocess.PIPE, check=True)
        stages = json.loads(done.stdout)["stages"]
        self._made = {name: made["uri"] for stage in stages for name, made in stage["datasets"].items()}

    def rows(self, kind: DatasetType[Any]) -> list[Any]:
        key = self._made[kind.name].rpartition("/")[2]
        return list(read_dataset(self.store, DatasetLocation(dataset=kind.name, key=key), kind))


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    return os.environ.get("LEARNING_STORE") or str(tmp_path_factory.mktemp("learning"))


@pytest.fixture(scope="module")
def run(store: str) -> Run:
    return Run(store, CONFIG)


@pytest.fixture(scope="module")
def trials(run: Run, store: str, tmp_path_factory: pytest.TempPathFactory) -> list[Trial]:
    """Those of all seeds: the reinforced models have a trial of each task per seed."""
    found: list[Trial] = run.rows(EVALUATIONS)
    for seed in SEEDS[1:]:
        config = yaml.safe_load(CONFIG.read_text())
        config["training"]["grpo"]["seed"] = seed
        config["evaluate"]["trials"] = {"grpo": 1}
        file = tmp_path_factory.mktemp("seed") / f"{seed}.yaml"
        file.write_text(yaml.safe_dump(config))
        found += Run(store, file).rows(EVALUATIONS)
    return found


def known(figure: Figure) -> float:
    assert figure.value is not None
    return figure.value


def test_held_out_loss_falls(run: Run, tmp_path: Path) -> None:
    model = lay_out_model(run.store, run.rows(SFT_MODELS), tmp_path / "sft")

    first, *_, last = (
        row.value or 0.0 for row in read_table(model / file_of(METRICS), METRICS) if row.name == "eval_loss"
    )

    assert last < first / 10


def test_a_fine_tuned_model_is_between_those_that_do_nothing_and_the_oracle(run: Run) -> None:
    by_model: dict[str, Figures] = {item.model: item.overall for item in scores(run.rows(EVALUATIONS))}

    assert by_model["sft"].tasks >= 100
    assert known(by_model["base"].valid_calls) < 0.02
    assert known(by_model["sft"].valid_calls) >= 0.9
    assert [known(by_model[name].passed) for name in ("no-op", "random", "base")] == [0, 0, 0]
    assert known(by_model["no-op"].earned) == 0 < known(by_model["sft"].earned)
    assert 0.1 < known(by_model["sft"].passed) < known(by_model["oracle"].passed) == 1


def test_reinforcement_earns_more_than_what_it_began_with(trials: list[Trial]) -> None:
    (gain,) = (gain for gain in gains(trials) if gain.second == "grpo")
    earned = gain.measures["earned"]

    assert gain.first == "sft"
    assert earned.tasks >= 100
    assert earned.interval.low > 0
