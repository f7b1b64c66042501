"""The library's services, found by scanning this room: adding one means adding its files."""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
import sys
from functools import cache
from pathlib import Path
from typing import Any

from compoworld_core import library
from compoworld_core.errors import InputError
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.service import Service, snake_case


@cache
def library_services() -> dict[str, type[Service[Any]]]:
    """Service classes by name, in the order of their names. A class without a `domain` is a part of a service."""
    found: dict[str, type[Service[Any]]] = {}
    for module_info in pkgutil.walk_packages(library.__path__, f"{library.__name__}."):
        module = importlib.import_module(module_info.name)
        for _, value in inspect.getmembers(module, inspect.isclass):
            if issubclass(value, Service) and hasattr(value, "domain") and value.__module__ == module.__name__:
                if value.name in found:
                    raise TypeError(f"two library services are named {value.name!r}")
                found[value.name] = value
    return dict(sorted(found.items()))


@cache
def library_names() -> tuple[str, ...]:
    """Names of the services, sorted, told from the sources alone: to import them all takes seconds."""
    found = []
    for place in library.__path__:
        for path in Path(place).rglob("*.py"):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            found += [name for node in tree.body if isinstance(node, ast.ClassDef) and (name := _service_name(node))]
    return tuple(sorted(found))


def _service_name(node: ast.ClassDef) -> str | None:
    """The name of the service that a class is, or None where it is a part of one or no service at all."""
    values = {
        target.id: statement.value
        for statement in node.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    if "domain" not in values:
        return None
    return str(ast.literal_eval(values["name"])) if "name" in values else snake_case(node.name)


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
        code=_code(service.__module__),
        spec=service.spec(),
        tables=service.state_class.declaration()[0],
    )


def installed_service(package: ServicePackage) -> type[Service[Any]]:
    """The class behind a stored package of the library.

    Raises:
        InputError: The installed library has other code under that name, or none.
    """
    name = package.name
    installed = library_package(name).digest if name in library_services() else "none of that name"
    if installed != package.digest:
        raise InputError(
            f"service {name!r} was stored as library package {package.digest[:12]}, but the installed library has "
            f"{installed[:12]}; run the stages again from synthesize, or install the version that stored it"
        )
    return library_services()[name]


def _code(module: str) -> dict[str, str]:
    """Texts of a library module and of the other library modules that its names come from, by file name."""
    texts: dict[str, str] = {}

    def add(name: str) -> None:
        if name in texts or not name.startswith(f"{library.__name__}."):
            return
        texts[name] = ""
        loaded = sys.modules[name]
        for value in list(vars(loaded).values()):
            add(value.__name__ if inspect.ismodule(value) else str(getattr(value, "__module__", "")))
        texts[name] = inspect.getsource(loaded)

    add(module)
    names = {name: "service" if name == module else name.rsplit(".", 1)[1] for name in sorted(texts)}
    return {f"{names[name]}.py": text for name, text in texts.items()}
