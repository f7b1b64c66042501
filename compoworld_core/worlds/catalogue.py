"""The catalogue: which packages can be opened here, and what executes their tools."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from compoworld_core.errors import InputError
from compoworld_core.services.backend import InProcessBackend, ToolBackend
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.service import Service
from compoworld_core.services.world_model.backend import ModelledBackend
from compoworld_core.services.world_model.prediction import Predictor

HostFactory = Callable[[ServicePackage], ToolBackend]


class Catalogue:
    """Packages by digest, with one backend each.

    Args:
        packages: What can be opened.
        library: The classes behind packages of the library, by name.
        host: Makes the backend of a package whose code is not trusted.
        predictor: What answers the tools that no code executes; without one, no world has such tools.
    """

    def __init__(
        self,
        packages: Iterable[ServicePackage],
        library: Mapping[str, type[Service[Any]]],
        host: HostFactory,
        predictor: Predictor | None = None,
    ) -> None:
        self._packages = {package.digest: package for package in packages}
        self._library = library
        self._host = host
        self.predictor = predictor
        self._backends: dict[str, ToolBackend] = {}

    @property
    def packages(self) -> tuple[ServicePackage, ...]:
        """All packages, by name."""
        return tuple(sorted(self._packages.values(), key=lambda package: package.name))

    def package(self, name: str, digest: str) -> ServicePackage:
        """The package that a recipe pins.

        Raises:
            InputError: It is not here; the message names what is here under that name.
        """
        found = self._packages.get(digest)
        if found is None:
            others = ", ".join(sorted(item.digest[:12] for item in self._packages.values() if item.name == name))
            raise InputError(
                f"service {name!r} is pinned to package {digest[:12]}, but this catalogue has "
                f"{others or 'no package of that name'}; open the world with the packages that it was made with"
            )
        return found

    def backend(self, package: ServicePackage) -> ToolBackend:
        """What executes the package's tools; the same object for the same package."""
        found = self._backends.get(package.digest)
        if found is None:
            trusted = package.origin == "library"
            found = InProcessBackend(self._library[package.name]) if trusted else self._host(package)
            if package.modelled and self.predictor is not None:
                found = ModelledBackend(package, found, self.predictor)
            self._backends[package.digest] = found
        return found
