"""Real public servers, where a corpus of them lies beside the repository."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from compoworld_core.specs.model import Rejection, ServiceSpec
from compoworld_core.specs.names import unique_service_names
from compoworld_core.specs.normalise import normalise_server
from compoworld_core.specs.sources import JsonlSource, RawServer

CORPUS = Path(__file__).parents[2].parent / "shared" / "corpus"
SERVERS = CORPUS / "mcp-dev.jsonl.gz"
QUIRKS = CORPUS / "quirks-30.jsonl"
LEGAL_TOOL = re.compile(r"^[a-zA-Z0-9_-]{1,64}\Z")
LEGAL_SERVICE = re.compile(r"^[a-z][a-z0-9_]{0,47}\Z")

needs_servers = pytest.mark.skipif(not SERVERS.exists(), reason="the corpus is not here")
needs_quirks = pytest.mark.skipif(not QUIRKS.exists(), reason="the corpus is not here")


def check(raw: Any, spec: ServiceSpec | None, rejections: list[Rejection]) -> None:
    tools = spec.tools if spec else ()
    assert len(raw["tools"]) == len(tools) + sum(rejection.subject == "tool" for rejection in rejections)
    assert bool(spec) != any(rejection.subject == "server" for rejection in rejections)
    if spec:
        assert LEGAL_SERVICE.match(spec.name)
    assert len({tool.name for tool in tools}) == len(tools)
    for tool in tools:
        assert LEGAL_TOOL.match(tool.name)
        assert tool.original_name
        assert tool.parameters["type"] == "object"
        jsonschema_rs.Draft202012Validator(tool.parameters)


def check_servers(limit: int | None) -> None:
    specs: list[ServiceSpec] = []
    for item, _ in zip(JsonlSource(SERVERS).servers(), range(limit or 10**9), strict=False):
        assert isinstance(item, RawServer)
        spec, rejections = normalise_server(item.raw, item.origin)
        check(item.raw, spec, rejections)
        if spec:
            specs.append(spec)
    assert specs
    assert len({spec.name for spec in unique_service_names(specs)}) == len(specs)


@needs_servers
def test_first_hundred_servers_are_accounted_for() -> None:
    check_servers(100)


@needs_servers
@pytest.mark.slow
def test_all_servers_are_accounted_for() -> None:
    check_servers(None)


@needs_quirks
def test_every_quirk_is_repaired_without_losing_a_tool() -> None:
    for line in QUIRKS.read_text(encoding="utf-8").splitlines():
        raw = json.loads(line)["server"]
        spec, rejections = normalise_server(raw, "quirks:1")

        check(raw, spec, rejections)
        assert not rejections
