"""Rooms import downwards only, heavy packages stay in their rooms, and importing the project costs next to nothing."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import compoworld_core

PACKAGE = Path(compoworld_core.__file__).parent
PROJECT = PACKAGE.parent

HEAVY = frozenset({"torch", "transformers", "trl", "deepspeed", "accelerate", "peft", "datasets", "hera", "kubernetes"})
HEAVY_ROOMS = ("compoworld_core/training/", "compoworld_core/pipeline/argo")

LAZY = (
    "pydantic pyarrow boto3 botocore networkx jinja2 hypothesis jsonschema_rs typer rich yaml docstring_parser".split()
)


def test_contracts_between_rooms_are_kept() -> None:
    linted = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"], cwd=PROJECT, capture_output=True, text=True
    )

    assert linted.returncode == 0, linted.stdout + linted.stderr
    assert "0 broken" in linted.stdout


def imported(source: str) -> Iterator[str]:
    """Top-level packages that a module imports, at whatever place in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from (item.name.split(".")[0] for item in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("importlib.import_module", "__import__"):
            yield from (str(item.value).split(".")[0] for item in node.args[:1] if isinstance(item, ast.Constant))


def sources() -> list[str]:
    found = [*PACKAGE.rglob("*.py"), *(PROJECT / "jobs").rglob("*.py")]
    return sorted(str(path.relative_to(PROJECT)) for path in found)


def test_heavy_packages_are_imported_in_their_rooms_only() -> None:
    outside = [name for name in sources() if not name.startswith(HEAVY_ROOMS)]

    offenders = {name: found for name in outside if (found := HEAVY & {*imported((PROJECT / name).read_text())})}

    assert not offenders


@pytest.mark.parametrize(
    "source", ["import torch.nn", "from hera.workflows import Task", "def f():\n  importlib.import_module('trl.x')"]
)
def test_the_search_finds_heavy_imports(source: str) -> None:
    assert HEAVY & {*imported(source)}


def test_importing_the_project_imports_nothing_else() -> None:
    code = f"import compoworld_core, sys; print(*(name for name in {LAZY} if name in sys.modules))"

    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert printed.split() == []
