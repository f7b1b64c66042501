"""A run with hostile services in it: each costs its own tools and nobody else's, and the run goes on."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.cli import run_cli
from compoworld_core.pipeline.work import opening, synthesize, validate
from compoworld_core.services.datasets import SERVICES
from compoworld_core.services.host.confinement import Limits
from compoworld_core.services.hosted import HostPool
from compoworld_core.specs.model import ServiceSpec, ToolSpec
from compoworld_core.storage import DatasetLocation, DatasetType, open_store, read_dataset
from compoworld_core.synthesis.author import Draft
from compoworld_core.synthesis.datasets import OMISSIONS, VERIFICATIONS
from compoworld_core.synthesis.rules.author import RulesAuthor
from compoworld_core.tasks.datasets import TASKS

_MODULE = '''"""Planted."""

from __future__ import annotations

{imports}from compoworld_core.services.sdk import Service, State, tool


class Nothing(State):
    """Nothing."""


class Planted(Service[Nothing]):
    """Planted."""

    domain = "data"

    @tool(effect="read")
    def {tool}(self, what: str) -> str:
        """Answer."""
        {body}
        return what
'''

PLANTED: Mapping[str, tuple[str, str]] = {
    "hangs": ("", "while True:\n            pass"),
    "crashes": ("", "return self.{tool}(what) + self.{tool}(what)"),
    "eats": ("", 'kept = []\n        while True:\n            kept.append("x" * 10_000_000)'),
    "floods": ("", 'return "x" * 30_000_000'),
    "networks": ("import socket\n", "socket.create_connection(('127.0.0.1', 9))"),
    "reads_files": ("", "what = open('/etc/hostname').read()"),
    "escapes": ("", "what = ().__class__.__base__.__subclasses__()"),
    "echoes": ("", "pass"),
}
REFUSED_UNRUN = {"networks", "reads_files", "escapes"}


class PlantingAuthor:
    """Writes hostile modules in place of some services, and the others by rule."""

    name = "rules"

    def __init__(self, planted: Mapping[str, str]) -> None:
        self._planted = planted
        self._rules = RulesAuthor()

    def write(self, spec: ServiceSpec) -> Draft:
        kind = self._planted.get(spec.name)
        if kind is None:
            return self._rules.write(spec)
        imports, body = PLANTED[kind]
        tool = spec.tools[0].name.replace("-", "_")
        source = _MODULE.format(imports=imports, tool=tool, body=body.format(tool=tool))
        return Draft(author=self.name, service=spec.name, source=source, implemented=(tool,))


@pytest.fixture(scope="module")
def run_with_planted(tmp_path_factory: pytest.TempPathFactory) -> Callable[[DatasetType[Any]], list[Any]]:
    """Reads the datasets of a finished run in which every planted service took the place of a bundled one."""
    folder = tmp_path_factory.mktemp("hostile")
    servers = folder / "servers.jsonl"
    planted = {f"planted_{kind}": kind for kind in PLANTED}
    parameters = {"type": "object", "properties": {"what": {"type": "string"}}, "required": ["what"]}
    lines = [
        ServiceSpec(
            name=name,
            domain="data",
            source="planted",
            tools=(ToolSpec(name=f"look_{kind}", description="Answers.", parameters=parameters, effect="read"),),
        )
        for name, kind in planted.items()
    ]
    servers.write_text("".join(f"{_server(spec)}\n" for spec in lines))
    config = folder / "run.yaml"
    config.write_text(
        f"crawl: {{source: '{servers}'}}\n"
        "tasks: {count: 2, profile: easy, held_out_services: 0, shares: {sft: 1}}\n"
        "gates: {min_tasks: 2, min_trajectories: 2}\n"
    )
    with pytest.MonkeyPatch.context() as patch, HostPool(call_s=1.0, limits=Limits(memory_bytes=192 << 20)) as pool:
        patch.setattr(synthesize, "AUTHORS", {"rules": lambda config, shard: nullcontext(PlantingAuthor(planted))})
        for module in (opening, synthesize, validate):
            patch.setattr(module, "host_pool", lambda: pool)
        assert run_cli(["run", "--config", str(config), "--store", str(folder / "store"), "--workers", "1"]) == 0
    return lambda kind: _rows(folder / "store", kind)


def _server(spec: ServiceSpec) -> str:
    tools = [{"name": t.name, "description": t.description, "inputSchema": t.parameters} for t in spec.tools]
    return json.dumps({"server": spec.name, "tools": tools})


def _rows(store_path: Path, kind: DatasetType[Any]) -> list[Any]:
    store = open_store(store_path)
    (key,) = {name.split("/")[1] for name in store.names(kind.name)}
    return list(read_dataset(store, DatasetLocation(dataset=kind.name, key=key), kind))


def test_no_planted_tool_is_verified(run_with_planted: Callable[[DatasetType[Any]], list[Any]]) -> None:
    outcomes = {item.service: item.outcome for item in run_with_planted(VERIFICATIONS)}

    for kind in PLANTED.keys() - REFUSED_UNRUN:
        assert outcomes[f"planted_{kind}"] == "quarantined", kind


def test_code_that_reaches_for_what_it_may_not_have_never_runs(
    run_with_planted: Callable[[DatasetType[Any]], list[Any]],
) -> None:
    refused = {item.service: item.reason for item in run_with_planted(OMISSIONS)}
    packages = {item.name for item in run_with_planted(SERVICES)}

    for kind in REFUSED_UNRUN:
        assert refused[f"planted_{kind}"] == "disallowed"
        assert f"planted_{kind}" not in packages


def test_the_run_goes_on_without_them(run_with_planted: Callable[[DatasetType[Any]], list[Any]]) -> None:
    verified = {item.service for item in run_with_planted(VERIFICATIONS) if item.outcome == "verified"}
    tasks = run_with_planted(TASKS)

    assert len(tasks) == 2
    assert {"crm", "drive", "mail", "invoicing"} <= verified
    assert not any(pin.name.startswith("planted_") for task in tasks for pin in task.recipe.services)
