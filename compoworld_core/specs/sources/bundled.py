"""The service specs that come with the package: a world can be built without any network."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib.resources import files

from compoworld_core.specs.model import Rejection
from compoworld_core.specs.sources.source import RawServer


class BundledSource:
    """The bundled servers in alphabetical order."""

    def servers(self) -> Iterator[RawServer | Rejection]:
        """The bundled servers."""
        folder = files("compoworld_core.specs") / "bundled"
        for file in sorted(folder.iterdir(), key=lambda file: file.name):
            if file.name.endswith(".json"):
                yield RawServer(origin="bundled", raw=json.loads(file.read_text(encoding="utf-8")))

    def fingerprint(self) -> str:
        """Nothing: the bundled servers come with the code."""
        return ""
