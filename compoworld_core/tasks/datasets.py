"""The datasets of this room."""

from __future__ import annotations

from compoworld_core.storage import DatasetType
from compoworld_core.tasks.sampler import Attempt
from compoworld_core.tasks.task import Task

TASKS = DatasetType("tasks", 1, Task)
ATTEMPTS = DatasetType("attempts", 3, Attempt)
"""Every try at a task; the tasks themselves are stored in `tasks`."""
