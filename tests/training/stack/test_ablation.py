"""An ablation as a user starts it: every arm is trained for real, and all are judged by the same held-out tasks."""

from __future__ import annotations

import json
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.cli import run_cli
from compoworld_core.evaluation.trial import EVALUATIONS
from compoworld_core.storage import DatasetLocation, open_store, read_dataset

BUDGET = 1200
CONFIG = f"""
crawl: {{limit: 1}}
tasks:
  profile: pair
  control: easy
  count: 40
  held_out_services: 0
  held_out_combinations: 0.3
  shares: {{sft: 4, rl: 1, eval_combo: 1}}
export: {{similarity: null}}
training:
  tiny: {{layers: 2, hidden: 64, heads: 2, vocabulary: 1024}}
  sft: {{context_tokens: 8192, profile: pair, taught_tokens: {BUDGET}, epochs: 1, global_batch: 2}}
  grpo: {{context_tokens: 8192, completion_tokens: 64, steps: 1, rollouts: 2, tasks_per_step: 1}}
  layout: {{device: cpu, gradient_checkpointing: false}}
evaluate: {{answer_tokens: 16, limits: {{max_steps: 2}}}}
ablate:
  compare:
    composition: {{key: training.sft.profile, values: [easy, pair]}}
    data: {{key: training.sft.taught_tokens, values: [{BUDGET // 2}, {BUDGET}]}}
    reward: {{key: training.grpo.reward, values: [uniform, completion_focused]}}
"""


@pytest.mark.slow  # five trainings, each a process that loads torch
def test_arms_learn_from_equally_much_and_are_judged_by_the_same_tasks(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ablation.yaml").write_text(CONFIG)
    options = ["--config", str(tmp_path / "ablation.yaml"), "--store", str(tmp_path / "store"), "--workers", "1"]

    def ablated() -> dict[str, Any]:
        assert run_cli(["ablate", *options, "--json"]) == 0
        document: dict[str, Any] = json.loads(capfd.readouterr().out)
        return document

    found = ablated()

    arms = found["arms"]
    assert [(arm["comparison"], json.loads(arm["value"]), arm["model"]) for arm in arms] == [
        ("composition", "easy", "sft"),
        ("composition", "pair", "sft"),
        ("data", BUDGET // 2, "sft"),
        ("data", BUDGET, "sft"),
        ("reward", "uniform", "grpo"),
        ("reward", "completion_focused", "grpo"),
    ]
    easy, pair, half, whole, *rewards = arms
    for arm in (easy, pair, whole, *rewards):
        assert 0 <= BUDGET - arm["taught_tokens"] < BUDGET / 3, "as near to the budget as whole conversations come"
    assert half["taught_tokens"] <= BUDGET // 2 < whole["taught_tokens"]
    assert half["steps"] < whole["steps"]
    assert whole["evaluations"] == pair["evaluations"], "the same run, made once"
    for arm in rewards:
        assert (arm["rollouts"], arm["rollout_steps"]) == (2, 1)

    judged = {frozenset(evaluated(tmp_path, key)) for arm in arms for key in arm["evaluations"]}
    assert len(judged) == 1
    assert len(next(iter(judged))) == arms[0]["figures"]["tasks"] > 0
    for _, compared in groupby(arms, key=lambda arm: str(arm["comparison"])):
        assert next(compared)["gains"]["passed"]["difference"] == 0, "the first is compared with itself"

    assert Path(found["picture"].removeprefix("file://")).read_text().count("</svg>") == 1 + 3
    assert ablated() == found, "all of it is there"


def evaluated(folder: Path, key: str) -> list[str]:
    """The tasks of an evaluation."""
    location = DatasetLocation(dataset=EVALUATIONS.name, key=key)
    return [trial.task for trial in read_dataset(open_store(folder / "store"), location, EVALUATIONS)]
