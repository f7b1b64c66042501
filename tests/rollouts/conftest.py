"""One catalogue for the room's tests: it is read-only, and worlds opened from it are forks."""

from __future__ import annotations

import pytest

from compoworld_core.tasks.task import Task
from compoworld_core.worlds.catalogue import Catalogue
from tests.rollouts.complaint import complaint_task, open_catalogue


@pytest.fixture(scope="session")
def catalogue() -> Catalogue:
    return open_catalogue()


@pytest.fixture(scope="session")
def task() -> Task:
    return complaint_task()
