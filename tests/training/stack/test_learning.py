"""What a tiny model learns of one service, and what reinforcement adds to it, on tasks that nobody trained on.

The tasks that judge it void an invoice and do nothing else; fine-tuning shows that only beside other work.
Reinforcement practises such tasks, too, drawn with another seed. An hour and a half on two cores; what was interrupted
goes on in the folder that `LEARNING_STORE` names.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
import yaml

from compoworld_core.evaluation.figures import Figure, Figures, gained, scores
from compoworld_core.evaluation.heldout import run_trials
from compoworld_core.evaluation.trial import EVALUATIONS, Trial
from compoworld_core.pipeline.work.grpo_process import Worlds
from compoworld_core.pipeline.work.opening import open_catalogue
from compoworld_core.rollouts.distill import Notes
from compoworld_core.rollouts.episode import EpisodeLimits
from compoworld_core.services.datasets import SERVICES
from compoworld_core.storage import canonical_json
from compoworld_core.tasks.datasets import TASKS
from compoworld_core.tasks.task import Task
from compoworld_core.training.config import GrpoSettings, Layout
from compoworld_core.training.datasets import SFT_MODELS, lay_out_model
from compoworld_core.training.grpo import GrpoJob
from compoworld_core.training.history import METRICS, file_of, read_table
from compoworld_core.training.launch import launch
from tests.training.stack.finished_run import ONE_SERVICE, FinishedRun

pytestmark = pytest.mark.slow

PRACTICE = {"seed": 1, "count": 240, "shares": {"eval_combo": 1}}
REINFORCEMENT = GrpoSettings(
    context_tokens=4096,
    completion_tokens=2048,
    turn_tokens=160,
    steps=80,
    tasks_per_step=4,
    updates=1,
    learning_rate=5e-5,
    temperature=0.6,
)
SEEDS = (0, 1, 2)
LAYOUT = Layout(device="cpu", gradient_checkpointing=False, micro_batch=4)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(os.environ.get("LEARNING_STORE") or tmp_path_factory.mktemp("learning"))


@pytest.fixture(scope="module")
def run(folder: Path) -> FinishedRun:
    return FinishedRun(str(folder / "store"), ONE_SERVICE)


@pytest.fixture(scope="module")
def fine_tuned(run: FinishedRun, folder: Path) -> Path:
    """Folder of the model that all seeds of reinforcement go on from."""
    return lay_out_model(run.store, run.rows(SFT_MODELS), folder / "sft")


@pytest.fixture(scope="module")
def practice(run: FinishedRun, folder: Path) -> Path:
    """JSONL of the tasks that reinforcement practises."""
    config = yaml.safe_load(ONE_SERVICE.read_text())
    config["tasks"] |= PRACTICE
    (folder / "practice.yaml").write_text(yaml.safe_dump(config))
    drawn = list(FinishedRun(run.uri, folder / "practice.yaml", "sample-tasks").rows(TASKS))
    assert {task.instruction for task in drawn}.isdisjoint(task.instruction for task in run.rows(TASKS))
    (folder / "practice.jsonl").write_text("\n".join(map(canonical_json, drawn)))
    return folder / "practice.jsonl"


def reinforced(run: FinishedRun, fine_tuned: Path, practice: Path, folder: Path, seed: int) -> Path:
    """Folder of a model after reinforcement."""
    out = folder / f"grpo-{seed}"
    if not (out / "model").exists():
        out.mkdir(exist_ok=True)
        settings = GrpoSettings(**{**REINFORCEMENT.model_dump(), "seed": seed})
        job = GrpoJob(
            model=str(fine_tuned),
            tasks=str(practice),
            out=str(out),
            store=run.uri,
            run=out.name,
            settings=settings,
            layout=LAYOUT,
        )
        worlds = Worlds(job=job, services=run.location(SERVICES))
        (out / "job.json").write_text(worlds.model_dump_json())
        launch(LAYOUT, Worlds.__module__, out / "job.json")
    return out / "model"


def tried(run: FinishedRun, model: Path, tasks: list[Task], seed: int) -> list[Trial]:
    """A model's trials, one of each task, at the temperature that reinforcement explores with."""
    from compoworld_core.training.local_model import LocalModel

    local = LocalModel(model, name=model.parent.name, answer_tokens=160, temperature=REINFORCEMENT.temperature)

    async def work() -> list[Trial]:
        trials = run_trials(
            tasks,
            open_catalogue(run.rows(SERVICES), None),
            lambda task, trial: local.conversation(f"{seed}/{task.id}/{trial}"),
            model=local.name,
            trials=1,
            limits=EpisodeLimits(max_steps=14),
            concurrency=1,
            price=None,
            versions={},
            notes=Notes(),
        )
        return [trial async for trial, _ in trials]

    return asyncio.run(work())


def known(figure: Figure) -> float:
    assert figure.value is not None
    return figure.value


def test_held_out_loss_falls(fine_tuned: Path) -> None:
    history = read_table(fine_tuned / file_of(METRICS), METRICS)

    first, *_, last = (row.value or 0.0 for row in history if row.name == "eval_loss")

    assert last < first / 10


def test_a_fine_tuned_model_is_between_those_that_do_nothing_and_the_oracle(run: FinishedRun) -> None:
    by_model: dict[str, Figures] = {item.model: item.overall for item in scores(run.rows(EVALUATIONS))}

    assert by_model["sft"].tasks >= 100
    assert known(by_model["base"].valid_calls) < 0.02
    assert known(by_model["sft"].valid_calls) >= 0.9
    assert [known(by_model[name].passed) for name in ("no-op", "random", "base")] == [0, 0, 0]
    assert known(by_model["no-op"].earned) == 0 < known(by_model["sft"].earned)
    assert 0.1 < known(by_model["sft"].passed) < known(by_model["oracle"].passed) == 1


def test_reinforcement_earns_more_than_what_it_began_with(
    run: FinishedRun, fine_tuned: Path, practice: Path, folder: Path
) -> None:
    tasks = [task for task in run.rows(TASKS) if task.split == "eval_combo"]

    before = [trial for seed in SEEDS for trial in tried(run, fine_tuned, tasks, seed)]
    after = [
        trial
        for seed in SEEDS
        for trial in tried(run, reinforced(run, fine_tuned, practice, folder, seed), tasks, seed)
    ]

    earned = gained(before, after)["earned"]
    assert len(before) == len(after) == len(SEEDS) * earned.tasks
    assert earned.tasks >= 100
    assert earned.interval.low > 0
