"""Shared by the room's tests: catalogues are read-only, worlds are forks, and sampled tasks are data."""

from __future__ import annotations

import pytest

from compoworld_core.tasks.sampler import Attempt, ServiceTools, TaskSettings, sample_tasks
from compoworld_core.tasks.task import Task
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.world import World
from tests.tasks.crafted import catalogue_of, world_of

Services = tuple[Catalogue, list[ServiceTools]]


@pytest.fixture(scope="session")
def services() -> Services:
    """Sixteen services: enough for core and distractors of a standard task, none of them held out."""
    return catalogue_of(4)


@pytest.fixture(scope="session")
def attempts(services: Services) -> list[Attempt]:
    """The attempts that led to twenty standard tasks."""
    catalogue, tools = services
    return list(sample_tasks(TaskSettings(count=20, seed=11), tools, catalogue, 0, 1))


@pytest.fixture(scope="session")
def tasks(attempts: list[Attempt]) -> list[Task]:
    """Twenty standard tasks."""
    return [item.task for item in attempts if item.task is not None]


@pytest.fixture(scope="session")
def library() -> Catalogue:
    """The library services under their own names."""
    return catalogue_of(1)[0]


@pytest.fixture
def world(library: Catalogue) -> World:
    """A world of all library services."""
    return world_of(library, "crm", "drive", "invoicing", "mail")
