"""A process of a GRPO job over the hand-made task; the catalogue is the test's own."""

from __future__ import annotations

import sys
from pathlib import Path

from compoworld_core.tasks.task import Task
from compoworld_core.training import distributed
from compoworld_core.training.grpo import GrpoJob, train
from tests.rollouts.complaint import open_catalogue


def main() -> None:
    job = GrpoJob.model_validate_json(Path(sys.argv[1]).read_text(encoding="utf-8"))
    lines = Path(job.tasks).read_text(encoding="utf-8").splitlines()
    train(job, [Task.model_validate_json(line) for line in lines], open_catalogue())


if __name__ == "__main__":
    distributed.run(main)
