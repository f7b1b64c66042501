"""The library's packages stand for the code that is installed, and for no other."""

from __future__ import annotations

import pytest

from compoworld_core.errors import InputError
from compoworld_core.library.registry import installed_service, library_names, library_package, library_services
from compoworld_core.services.package import ServicePackage


def test_names_are_told_without_importing_what_bears_them() -> None:
    assert library_names() == tuple(library_services())


@pytest.mark.parametrize("name", library_services())
def test_a_package_of_the_installed_library_opens(name: str) -> None:
    assert installed_service(library_package(name)) is library_services()[name]


@pytest.mark.parametrize("name", ["mail", "gone"])
def test_a_package_with_other_code_is_refused_and_both_are_named(name: str) -> None:
    package = library_package("mail")
    stored = ServicePackage(**{**package.model_dump(), "name": name, "code": {**package.code, "service.py": "# older"}})

    with pytest.raises(InputError) as refusal:
        installed_service(stored)

    assert stored.digest[:12] in str(refusal.value)
    assert library_package("mail").digest[:12] in str(refusal.value) or "none" in str(refusal.value)
