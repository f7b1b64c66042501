"""No code that decides what a world does may ask the wall clock, the process or shared random numbers."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import compoworld_core

ROOT = Path(compoworld_core.__file__).parent
ROOMS = ("services", "worlds", "library", "tasks")
EXEMPT = ("services/host/",)
"""The host confines and times processes; what a guest may import is its allowlist's business."""

FORBIDDEN_MODULES = frozenset({"uuid", "secrets", "locale", "socket"})
FORBIDDEN_CALLS = frozenset(
    """
    datetime.now datetime.utcnow datetime.today date.today time.time time.time_ns time.monotonic time.perf_counter
    time.localtime time.gmtime time.strftime os.urandom os.getpid random.SystemRandom hash
""".split()
)
ALLOWED_RANDOM = frozenset({"Random"})


def files() -> list[Path]:
    found = [path for room in ROOMS for path in sorted((ROOT / room).rglob("*.py"))]
    return [path for path in found if not str(path.relative_to(ROOT)).startswith(EXEMPT)]


def offences(source: str) -> Iterator[str]:
    tree = ast.parse(source)
    exempt = {inner for node in ast.walk(tree) if getattr(node, "name", "") == "__hash__" for inner in ast.walk(node)}
    for node in ast.walk(tree):
        if node in exempt:
            continue
        if isinstance(node, ast.Import):
            yield from (f"import {item.name}" for item in node.names if item.name in FORBIDDEN_MODULES)
        elif isinstance(node, ast.ImportFrom):
            if node.module in FORBIDDEN_MODULES:
                yield f"from {node.module} import"
            if node.module in ("random", "time"):
                yield from (
                    f"from {node.module} import {item.name}" for item in node.names if item.name not in ALLOWED_RANDOM
                )
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            short = ".".join(name.split(".")[-2:])
            if short in FORBIDDEN_CALLS or (
                short.startswith("random.") and short.removeprefix("random.") not in ALLOWED_RANDOM
            ):
                yield name
            if short == "random.Random" and not node.args:
                yield "random.Random()"


@pytest.mark.parametrize("path", files(), ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_depends_on_when_and_where_it_runs(path: Path) -> None:
    assert not list(offences(path.read_text()))


@pytest.mark.parametrize(
    "source",
    [
        "datetime.now()",
        "datetime.datetime.now(UTC)",
        "date.today()",
        "time.time()",
        "import uuid",
        "from uuid import uuid4",
        "from random import choice",
        "from time import time",
        "random.choice(x)",
        "random.seed(1)",
        "random.Random()",
        "hash('x')",
    ],
)
def test_the_search_finds_what_it_looks_for(source: str) -> None:
    assert list(offences(source))


def test_seeded_random_numbers_are_fine() -> None:
    assert not list(offences("import random\nrng = random.Random('seed')\nrng.choice(x)\nself.now"))
