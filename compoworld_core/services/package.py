"""Packages: a service as files and a digest, as it is stored, shipped and pinned by recipes.

`service.py` is the code, `schema.json` its tables as data, `spec.json` what it promises. The parent process reads the
two JSON files and never imports the code of a package that is not in the library.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict

from compoworld_core.services.schema import ServiceSchema
from compoworld_core.specs.model import ServiceSpec, ToolSpec
from compoworld_core.storage.digest import canonical_json, digest

Origin = Literal["library", "synthesised"]


class ServicePackage(BaseModel):
    """A service ready to be opened in a world.

    Attributes:
        origin: `library` code runs in process, everything else only in the sandboxed host.
        code: Text by file name; `service.py` defines the service, a library service may have siblings.
        tests: The author's self-tests (see `synthesis/selftest.py`), as data.
        author: Who wrote it: `library`, `rules`, `pi`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    origin: Origin
    author: str
    code: dict[str, str]
    spec: ServiceSpec
    tables: ServiceSchema
    tests: str = "[]"

    @cached_property
    def digest(self) -> str:
        """sha256 of the files' contents; recipes pin it."""
        return digest(self.files())

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A validated copy, whose digest is its own."""
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        return type(self).model_validate({**fields, **(update or {})})

    def files(self) -> dict[str, str]:
        """The package as it is shipped, text by file name."""
        return {
            **self.code,
            "schema.json": canonical_json(self.tables),
            "spec.json": canonical_json(self.spec),
            "tests.json": self.tests,
        }

    def tool(self, name: str) -> ToolSpec:
        """The spec of a tool.

        Raises:
            KeyError: The service has no such tool.
        """
        return self._tools[name]

    @cached_property
    def _tools(self) -> dict[str, ToolSpec]:
        return {item.name: item for item in self.spec.tools}
