"""What a process keeps open between shards: guests for untrusted code, and the catalogue of a dataset of services.

Catalogues are kept because worlds, once built, are reused through them. Nothing here decides content.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from compoworld_core.library.registry import installed_service
from compoworld_core.pipeline.stage import Input
from compoworld_core.services.hosted import HostPool
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.world_model.prediction import Predictor
from compoworld_core.worlds.catalogue import Catalogue

_GUESTS: Final = 48
"""Enough for the demo's services all at once: tasks draw from all of them in turn."""

_catalogues: dict[tuple[str, Predictor | None], Catalogue] = {}


@cache
def host_pool() -> HostPool:
    """This process's guests."""
    return HostPool(capacity=_GUESTS)


def open_catalogue(services: Input[ServicePackage], predictor: Predictor | None = None) -> Catalogue:
    """The packages of a dataset, ready to be opened; the latest is kept.

    Args:
        predictor: What answers the tools that no code executes, if worlds may have such.
    """
    key = services.commit.digest, predictor
    if key not in _catalogues:
        _catalogues.clear()
        packages = tuple(services)
        library = {item.name: installed_service(item) for item in packages if item.origin == "library"}
        _catalogues[key] = Catalogue(packages, library, host_pool().backend, predictor)
    return _catalogues[key]
