"""Groups of rollouts in real worlds, over processes: what the model says is scripted, all else is as in training."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.storage import canonical_json
from compoworld_core.tasks.task import Task
from compoworld_core.training.config import GrpoSettings, Layout
from compoworld_core.training.grpo import GrpoJob
from compoworld_core.training.launch import launch
from compoworld_core.training.successes import StoredSuccess, write_successes
from tests.rollouts.complaint import complaint_task, open_catalogue
from tests.training.stack.episodes import played
from tests.training.stack.scripted import Script, said

MODULE = "tests.training.stack.scripted_job"
COMPLETION = 4096


class Run:
    """A scripted job in a folder.

    Args:
        script: What the rollouts of each task say.
        layout: Of the job.
        settings: Beside the sizes of groups and steps.
    """

    def __init__(
        self,
        folder: Path,
        base: Path,
        tasks: list[Task],
        script: Script,
        *,
        successes: list[StoredSuccess] | None = None,
        layout: dict[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        folder.mkdir()
        self.folder = folder
        (folder / "tasks.jsonl").write_text("\n".join(map(canonical_json, tasks)))
        (folder / "script.json").write_text(json.dumps(script))
        if successes:
            write_successes(successes, folder / "successes.jsonl")
        self.layout = Layout(device="cpu", gradient_checkpointing=False, **(layout or {}))
        job = GrpoJob(
            model=str(base),
            tasks=str(folder / "tasks.jsonl"),
            successes=str(folder / "successes.jsonl") if successes else None,
            out=str(folder / "out"),
            store=str(folder / "store"),
            run="run",
            settings=GrpoSettings(
                **{
                    "steps": 1,
                    "rollouts": 4,
                    "tasks_per_step": len(tasks),
                    "updates": 1,
                    "completion_tokens": COMPLETION,
                    "learning_rate": 1e-3,
                    **settings,
                }
            ),
            layout=self.layout,
        )
        (folder / "job.json").write_text(job.model_dump_json())
        launch(self.layout, MODULE, folder / "job.json")

    def step(self, number: int = 0) -> dict[str, list[Any]]:
        """What all processes trained on in a step of rollouts, in the order of the batch."""
        parts = [
            json.loads((self.folder / f"steps-{rank}.jsonl").read_text().splitlines()[number])
            for rank in range(self.layout.processes)
        ]
        return {name: [item for part in parts for item in part[name]] for name in parts[0]}


@pytest.fixture(scope="session")
def long_base(tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny model with room for whole solutions."""
    from compoworld_core.training.config import TinyModel
    from compoworld_core.training.tiny import make_model

    folder = tmp_path_factory.mktemp("long")
    make_model(tokenizer, TinyModel(layers=1, hidden=64, heads=2), 2 * COMPLETION).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


TASKS = [complaint_task(seed=seed, split="rl") for seed in (1, 2, 3)]


@pytest.fixture(scope="session")
def solved() -> dict[str, Any]:
    """The oracle's trajectory of each task."""
    return {trajectory.task_id: trajectory for trajectory in played(TASKS, open_catalogue())}


def unequal(solved: dict[str, Any]) -> Script:
    """Rollouts that solve a task, stop early, or only claim to be done."""
    return {
        task: [said(trajectory), said(trajectory, 0), said(trajectory, 2 + place), said(trajectory, answer="Done.")]
        for place, (task, trajectory) in enumerate(solved.items())
    }


def test_a_group_over_two_processes_is_rewarded_as_in_one(
    tmp_path: Path, long_base: Path, solved: dict[str, Any]
) -> None:
    alone = Run(tmp_path / "alone", long_base, TASKS, unequal(solved)).step()
    together = Run(tmp_path / "together", long_base, TASKS, unequal(solved), layout={"processes_per_node": 2}).step()

    assert len(alone["rewards"]) == 12, "the second group has two rollouts on each process"
    assert together["tasks"] == alone["tasks"]
    assert together["completions"] == alone["completions"]
    assert together["rewards"] == alone["rewards"]
    assert together["advantages"] == pytest.approx(alone["advantages"], abs=1e-6)
    for start in (0, 4, 8):
        rewards = alone["rewards"][start : start + 4]
        assert rewards[0] == 1
        assert rewards[1] < rewards[3] < 1
