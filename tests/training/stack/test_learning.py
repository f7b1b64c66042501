"""What a tiny model learns of one service, on tasks that combine its tools as no training task does.

Half an hour on two cores; a run that was interrupted goes on in the store that `LEARNING_STORE` names.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from compoworld_core.evaluation.figures import Figures, scores
from compoworld_core.evaluation.trial import EVALUATIONS
from compoworld_core.training.datasets import SFT_MODELS, lay_out_model
from compoworld_core.training.history import METRICS, file_of, read_table
from tests.training.stack.finished_run import CONFIGS, Run, known

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    store = os.environ.get("LEARNING_STORE") or str(tmp_path_factory.mktemp("learning"))
    return Run(store, CONFIGS / "one-service.yaml")


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
