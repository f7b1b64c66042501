"""Real public servers: written by rule and run in the host, where a corpus of them lies beside the repository."""

from __future__ import annotations

import ast
import time
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from multiprocessing import get_context
from pathlib import Path

import pytest

import compoworld_core
from compoworld_core.errors import TOOL_ERRORS
from compoworld_core.pipeline.work.synthesize import synthesize
from compoworld_core.pipeline.work.validate import validate
from compoworld_core.services.package import ServicePackage
from compoworld_core.specs.model import ServiceSpec
from compoworld_core.specs.sources import JsonlSource, read_specs
from compoworld_core.specs.verbs import tokenise
from compoworld_core.synthesis.datasets import Omission
from compoworld_core.synthesis.rules import RulesAuthor

SERVERS = Path(__file__).parents[2].parent / "shared" / "corpus" / "mcp-dev.jsonl.gz"
PROCESSES = 2

pytestmark = pytest.mark.skipif(not SERVERS.exists(), reason="the corpus is not here")


@cache
def specs() -> tuple[ServiceSpec, ...]:
    return tuple(read_specs(JsonlSource(SERVERS))[0])


def judge(spec: ServiceSpec) -> tuple[Counter[str], bool, float]:
    """Tools of one server by outcome, whether they are its tools, and the seconds of CPU time of this process."""
    started = time.process_time()
    outcomes: Counter[str] = Counter()
    tools: Counter[str] = Counter()
    omitted = {}
    for item in synthesize(spec, RulesAuthor()):
        if isinstance(item, Omission):
            omitted[item.tool] = item
            continue
        assert isinstance(item, ServicePackage)
        left = {tool: found.detail for tool, found in omitted.items() if found.reason == "world_model"}
        for admission in validate(item, 0, left):
            outcomes[admission.outcome] += 1
            tools[admission.tool] += 1
    for tool, found in omitted.items():
        if tool not in tools:
            outcomes["world_model" if found.reason == "world_model" else "omitted"] += 1
            tools[tool] += 1
    is_whole = tools == Counter(tool.name for tool in spec.tools)
    return outcomes, is_whole, time.process_time() - started


@pytest.mark.slow
def test_the_whole_corpus_is_judged_tool_by_tool(capsys: pytest.CaptureFixture[str]) -> None:
    started = time.monotonic()
    with ProcessPoolExecutor(PROCESSES, mp_context=get_context("spawn")) as pool:
        judged = list(pool.map(judge, specs(), chunksize=8))
    totals: Counter[str] = sum((outcomes for outcomes, _, _ in judged), Counter())
    services = sum(outcomes["verified"] > 0 for outcomes, _, _ in judged)
    with capsys.disabled():
        cpu_s = sum(seconds for _, _, seconds in judged)
        elapsed_s = time.monotonic() - started
        print(f"\n{len(judged)} servers, {services} services with verified tools, {dict(totals)}")  # noqa: T201
        print(f"{elapsed_s:.0f} s elapsed, {cpu_s:.0f} s of CPU time outside the hosts")  # noqa: T201

    assert [spec.name for spec, (_, is_whole, _) in zip(specs(), judged, strict=True) if not is_whole] == []
    assert services >= 100
    assert totals["verified"] >= 1500


def test_no_code_knows_a_server_or_a_tool() -> None:
    """A rule for one server would not be a rule; only single words may be known."""
    names = {spec.name for spec in specs() if len(tokenise(spec.name)) > 1}
    names |= {name for spec in specs() for name in (spec.original_name, spec.title) if len(tokenise(name)) > 1}
    names |= {tool.name for spec in specs() for tool in spec.tools if len(tokenise(tool.name)) > 1}
    names -= {name for spec in specs() for tool in spec.tools for name in tool.parameters.get("properties", {})}
    names -= TOOL_ERRORS.keys()  # some servers call a tool like a parameter of others, or like an error
    known: dict[str, set[str]] = {}
    for room in ("synthesis", "specs"):
        for file in (Path(compoworld_core.__file__).parent / room).rglob("*.py"):
            found = names & set(_strings(ast.parse(file.read_text(encoding="utf-8"))))
            if found:
                known[str(file.relative_to(Path(compoworld_core.__file__).parent))] = found

    assert known == {}


def _strings(tree: ast.Module) -> list[str]:
    """String constants that are no docstrings, and their words."""
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    texts = [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose
    ]
    return [part for text in texts for part in (text, *text.split())]
