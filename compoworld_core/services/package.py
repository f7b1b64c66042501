"""Packages: a service as files and a digest, as it is stored, shipped and pinned by recipes.

`service.py` is the code, `schema.json` its tables as data, `spec.json` what it promises, `modelled.json` what it leaves
to a world model. The parent process reads the JSON files and never imports the code of a package that is not in the
library.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, Self

from pydantic import Field, model_validator

from compoworld_core.data import Data
from compoworld_core.services.schema import ServiceSchema
from compoworld_core.specs.model import ServiceSpec, ToolSpec
from compoworld_core.storage.digest import canonical_json, digest

Origin = Literal["library", "synthesised"]


class ServicePackage(Data):
    """A service ready to be opened in a world.

    Attributes:
        origin: `library` code runs in process, everything else only in the sandboxed host.
        code: Text by file name; `service.py` defines the service, a library service may have siblings.
        spec: What the code implements.
        tests: The author's self-tests (see `synthesis/selftest.py`), as data.
        modelled: Tools that the code lacks, for their effect lies outside stored rows; a world model may answer them.
        challenges: Tests in the same form by somebody who knew the spec only; empty where nobody was asked for any.
        author: Who wrote it: `library`, `rules`, `pi`.
        provenance: What else is known of how it was written: models, prompts, versions.
    """

    name: str
    origin: Origin
    author: str
    code: dict[str, str]
    spec: ServiceSpec
    tables: ServiceSchema
    tests: str = "[]"
    challenges: str = ""
    modelled: tuple[ToolSpec, ...] = ()
    provenance: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _names_differ(self) -> Self:
        if twice := {item.name for item in self.spec.tools} & {item.name for item in self.modelled}:
            raise ValueError(f"tools are implemented and left to a world model at once: {', '.join(sorted(twice))}")
        return self

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
        texts = {
            **self.code,
            "schema.json": canonical_json(self.tables),
            "spec.json": canonical_json(self.spec),
            "tests.json": self.tests,
        }
        if self.challenges:
            texts["challenges.json"] = self.challenges
        if self.modelled:
            texts["modelled.json"] = canonical_json(self.modelled)
        if self.provenance:
            texts["provenance.json"] = canonical_json(self.provenance)
        return texts

    def tool(self, name: str) -> ToolSpec:
        """The spec of a tool, whether implemented or modelled.

        Raises:
            KeyError: The service has no such tool.
        """
        return self._tools[name]

    @cached_property
    def _tools(self) -> dict[str, ToolSpec]:
        return {item.name: item for item in (*self.spec.tools, *self.modelled)}

    @cached_property
    def modelled_names(self) -> frozenset[str]:
        """Names of the tools that no code executes."""
        return frozenset(item.name for item in self.modelled)
