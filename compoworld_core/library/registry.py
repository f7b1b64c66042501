"""The library's services, found by scanning this room: adding a service means adding one file."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from functools import cache
from typing import Any

from compoworld_core import library
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.service import Service


@cache
def library_services() -> dict[str, type[Service[Any]]]:
    """Service classes by name, in the order of their names."""
    found: dict[str, type[Service[Any]]] = {}
    for module_info in pkgutil.walk_packages(library.__path__, f"{library.__name__}."):
        module = importlib.import_module(module_info.name)
        for _, value in inspect.getmembers(module, inspect.isclass):
            if issubclass(value, Service) and value is not Service and value.__module__ == module.__name__:
                if value.name in found:
                    raise TypeError(f"two library services are named {value.name!r}")
                found[value.name] = value
    return dict(sorted(found.items()))


@cache
def library_package(name: str) -> ServicePackage:
    """The package of a library service, with the digest of the installed code.

    Raises:
        KeyError: There is no such service.
    """
    service = library_services()[name]
    return ServicePackage(
        name=name,
        origin="library",
        author="library",
        source=inspect.getsource(inspect.getmodule(service)),  # type: ignore[arg-type]
        spec=service.spec(),
        tables=service.state_class.declaration()[0],
    )
