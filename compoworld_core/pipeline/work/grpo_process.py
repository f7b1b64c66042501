"""One process of a GRPO job: it opens the worlds of its rollouts by itself, out of the services in the store.

`python -m compoworld_core.pipeline.work.grpo_process JOB.json`; the launcher starts as many as the layout has.
"""

from __future__ import annotations

import sys
from pathlib import Path

from compoworld_core.data import Data
from compoworld_core.pipeline.stage import Input
from compoworld_core.pipeline.work.opening import host_pool, open_catalogue
from compoworld_core.services.datasets import SERVICES
from compoworld_core.storage import DatasetLocation, open_store
from compoworld_core.tasks.task import Task
from compoworld_core.training import distributed
from compoworld_core.training.grpo import GrpoJob, train


class Worlds(Data):
    """A job, and where the services of its worlds lie."""

    job: GrpoJob
    services: DatasetLocation


def main() -> None:
    """Run the job that the first argument names."""
    worlds = Worlds.model_validate_json(Path(sys.argv[1]).read_text(encoding="utf-8"))
    store = open_store(worlds.job.store)
    with Path(worlds.job.tasks).open(encoding="utf-8") as file:
        tasks = [Task.model_validate_json(line) for line in file]
    try:
        train(worlds.job, tasks, open_catalogue(Input(store, worlds.services, SERVICES)))
    finally:
        host_pool().close()


if __name__ == "__main__":
    distributed.run(main)
