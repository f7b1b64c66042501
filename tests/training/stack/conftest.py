"""A tiny model and conversations that real episodes left."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.rollouts.export import export_records
from compoworld_core.storage.digest import JsonObject
from compoworld_core.training.config import GrpoSettings, Layout
from compoworld_core.training.curriculum import Curriculum
from compoworld_core.training.grpo import GrpoJob, trainer_of
from tests.rollouts.complaint import complaint_task, open_catalogue
from tests.training.stack.episodes import played

if importlib.util.find_spec("torch") is None:
    collect_ignore_glob = ["test_*.py"]

CONTEXT = 4096


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker("train")


@pytest.fixture(scope="session")
def records() -> list[JsonObject]:
    """Exported records of solved tasks."""
    tasks = [complaint_task(seed=seed) for seed in range(6)]
    return list(export_records(played(tasks, open_catalogue()), tasks))


@pytest.fixture(scope="session")
def tokenizer(records: list[JsonObject]) -> Any:
    from compoworld_core.training.tiny import make_tokenizer

    return make_tokenizer(records, 1024, CONTEXT)


@pytest.fixture(scope="session")
def base(tokenizer: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a tiny model that knows nothing."""
    from compoworld_core.training.config import TinyModel
    from compoworld_core.training.tiny import make_model

    folder = tmp_path_factory.mktemp("base")
    make_model(tokenizer, TinyModel(layers=2, hidden=64, heads=2), CONTEXT).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def kernels() -> None:
    """What DeepSpeed compiles on first use."""
    code = (
        "from compoworld_core.training.kernels import build_kernels as b; "
        "from compoworld_core.training.config import Layout as L; b(L(device='cpu', zero_stage=1))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=600)


@pytest.fixture(scope="module")
def trainer(tmp_path_factory: pytest.TempPathFactory, base: Path) -> Any:
    """A trainer with the settings that are used if nothing is said."""
    folder = tmp_path_factory.mktemp("trainer")
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
