"""A server in a process of its own: its time and memory are not the client's, and it outlives its client."""

from __future__ import annotations

import json
import subprocess
import sys
import urllib.request
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from compoworld_core.storage.digest import JsonObject
from tests.llm_server.app import Request
from tests.llm_server.faults import Faults


@dataclass(frozen=True)
class Named:
    """A script that another process can make: a function as `module:function`, and what it is called with."""

    factory: str
    options: JsonObject = field(default_factory=dict)


class ServerProcess:
    """Serves while it is entered. Its requests have no bodies: it is meant for many."""

    def __init__(self, scripts: Mapping[str, Named], faults: Faults | None = None) -> None:
        self.base_url = ""
        self._command = [sys.executable, "-m", "tests.llm_server"]
        for name, script in scripts.items():
            self._command += ["--script", name, script.factory, json.dumps(script.options)]
        if faults is not None:
            self._command += ["--faults", json.dumps(asdict(faults))]
        self._process: subprocess.Popen[str] | None = None

    @property
    def requests(self) -> list[Request]:
        """All requests so far, without bodies."""
        return [Request(**request) for request in self._account()["requests"]]

    @property
    def counts(self) -> Counter[str]:
        """Requests by outcome."""
        return Counter(request["outcome"] for request in self._account()["requests"])

    @property
    def most_open(self) -> int:
        """Most requests that were open at a time."""
        return int(self._account()["most_open"])

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(self._command, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        self.base_url = self._process.stdout.readline().strip()
        assert self.base_url, "the server did not start"
        return self

    def __exit__(self, *exc: object) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.communicate()

    def _account(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.base_url.removesuffix('/v1')}/requests") as response:
            account: dict[str, Any] = json.load(response)
        return account
