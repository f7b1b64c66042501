"""The clip: beyond 0.20 below and 0.28 above, a token that has gone far enough is not pushed further."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from compoworld_core.training.config import GrpoSettings, Layout
from compoworld_core.training.curriculum import Curriculum
from compoworld_core.training.grpo import GrpoJob, trainer_of
from tests.rollouts.complaint import complaint_task, open_catalogue


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory, base: Path) -> Any:
    """A trainer with the settings that are used if nothing is said."""
    folder = tmp_path_factory.mktemp("clip")
    tasks = [complaint_task(seed=1)]
    settings = GrpoSettings(tasks_per_step=1, completion_tokens=64)
    job = GrpoJob(
        model=str(base),
        tasks="",
        out=str(folder),
        store=str(folder),
        run="run",
        settings=settings,
        layout=Layout(device="cpu", gradient_checkpointing=False),
    )
    curriculum = Curriculum(tasks, "uniform", count=1, rollouts=8, seed=0)
    trainer = trainer_of(job, tasks, open_catalogue(), curriculum, lambda outcomes, errors: None)
    trainer.current_gradient_accumulation_steps = 1
    return trainer


@pytest.mark.parametrize(
    ("advantage", "ratio", "moves"),
    [
        (1.0, 1.27, True),
        (1.0, 1.29, False),
        (1.0, 0.5, True),
        (-1.0, 0.81, True),
        (-1.0, 0.79, False),
        (-1.0, 1.5, True),
    ],
    ids=["within", "above", "worse than before", "within, down", "below", "better than before"],
)
def test_no_gradient_flows_beyond_the_clip(trainer: Any, advantage: float, ratio: float, moves: bool) -> None:
    import torch

    prompt, completion = torch.tensor([[5, 6, 7]]), torch.tensor([[8, 9, 10, 11]])
    ids, ones = torch.cat([prompt, completion], dim=1), torch.ones(1, 7, dtype=torch.long)
    with torch.no_grad():
        now, _, _ = trainer._get_per_token_logps_and_entropies(trainer.model, ids, ones, 4)
    trainer.model.zero_grad()
    loss = trainer._compute_loss(
        trainer.model,
        {
            "prompt_ids": prompt,
            "prompt_mask": torch.ones_like(prompt),
            "completion_ids": completion,
            "completion_mask": torch.ones_like(completion),
            "advantages": torch.tensor([advantage]),
            "old_per_token_logps": now - torch.log(torch.tensor(ratio)),
        },
    )

    loss.backward()

    moved = max(float(weight.grad.abs().max()) for weight in trainer.model.parameters() if weight.grad is not None)
    assert (moved > 0) is moves
