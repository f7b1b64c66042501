"""Crawl: a source of service descriptions becomes specs and rejections."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel, Field

from compoworld_core.data import Data
from compoworld_core.errors import InputError
from compoworld_core.library.registry import library_names, library_services
from compoworld_core.pipeline.stage import Inputs, Shard
from compoworld_core.specs.names import unique_service_names
from compoworld_core.specs.sources import ACCEPTED_FORMS, open_source, read_specs


class CrawlConfig(Data):
    """Where service descriptions come from."""

    source: str = Field(default="bundled", description=f"Where service descriptions come from: {ACCEPTED_FORMS}.")
    limit: int | None = Field(default=None, ge=1, description="Servers to read; all if left out.")
    edition: str = Field(
        default="",
        description="Any word, such as a month: what is not a file is crawled once per store and word.",
    )


def outside(config: CrawlConfig) -> dict[str, Any]:
    """The source's content where it can be told before reading, and the names that are taken.

    Raises:
        InputError: There is no such source.
    """
    return {"content": open_source(config.source).fingerprint(), "taken": list(library_names())}


def plan(config: CrawlConfig, inputs: Inputs) -> int:
    """One: names are made unique over the whole source."""
    return 1


def run(config: CrawlConfig, inputs: Inputs, shard: Shard) -> Iterator[BaseModel]:
    """Specs under names that no other spec and no library service has, then rejections.

    Raises:
        InputError: The source has nothing that can be used.
    """
    specs, rejections = read_specs(open_source(config.source), config.limit)
    if not specs:
        reasons = "; ".join(f"{item.origin}: {item.detail}" for item in rejections[:3]) or "it is empty"
        raise InputError(f"{config.source}: no server in it can be used ({reasons})")
    library = [service.spec() for service in library_services().values()]
    yield from unique_service_names([*library, *specs])[len(library) :]
    yield from rejections
