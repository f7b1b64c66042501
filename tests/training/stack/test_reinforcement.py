"""What reinforcement brings a fine-tuned model, on tasks that neither was trained on, over several seeds.

An hour on two cores; runs that were interrupted go on in the store that `REINFORCEMENT_STORE` names.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml

from compoworld_core.evaluation.figures import gains
from compoworld_core.evaluation.trial import EVALUATIONS, Trial
from tests.training.stack.finished_run import CONFIGS, Run

pytestmark = pytest.mark.slow

SEEDS = (0, 1, 2)
"""Of reinforcement; all go on from the same fine-tuned model."""


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> list[Trial]:
    """Those of all seeds: the reinforced models have a trial of each task per seed, the others one."""
    folder = tmp_path_factory.mktemp("reinforcement")
    store = os.environ.get("REINFORCEMENT_STORE") or str(folder / "store")
    found: list[Trial] = []
    for seed in SEEDS:
        config = yaml.safe_load((CONFIGS / "reinforcement.yaml").read_text())
        config["training"]["grpo"]["seed"] = seed
        if seed != SEEDS[0]:
            config["evaluate"]["trials"] = {"grpo": 1}
        file: Path = folder / f"seed-{seed}.yaml"
        file.write_text(yaml.safe_dump(config))
        found += Run(store, file).rows(EVALUATIONS)
    return found


def test_reinforcement_earns_more_than_what_it_began_with(trials: list[Trial]) -> None:
    (gain,) = (gain for gain in gains(trials) if gain.second == "grpo")
    earned = gain.measures["earned"]

    assert gain.first == "sft"
    assert sum(trial.model == "grpo" for trial in trials) == len(SEEDS) * earned.tasks
    assert earned.tasks >= 100
    assert earned.interval.low > 0
