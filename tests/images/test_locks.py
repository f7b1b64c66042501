"""The pinned versions of the images, against what the project asks for."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())

WANTED = {
    "job": PROJECT["project"]["dependencies"] + PROJECT["project"]["optional-dependencies"]["cluster"],
    "train": PROJECT["project"]["dependencies"]
    + PROJECT["project"]["optional-dependencies"]["train"]
    + PROJECT["project"]["optional-dependencies"]["vllm"],
    "build": PROJECT["build-system"]["requires"],
}


def _pins(lock: str) -> dict[str, list[Version]]:
    pins: dict[str, list[Version]] = {}
    for name, version in re.findall(
        r"^([\w.-]+)==([\w.+!]+)", (ROOT / "locks" / f"{lock}.txt").read_text(), re.MULTILINE
    ):
        pins.setdefault(name, []).append(Version(version))
    return pins


@pytest.mark.parametrize("lock", sorted(WANTED))
def test_a_lock_has_every_dependency_in_a_version_that_the_project_takes(lock: str) -> None:
    pins = _pins(lock)

    for wanted in map(Requirement, WANTED[lock]):
        found = pins.get(wanted.name.lower(), [])
        assert found, f"locks/{lock}.txt lacks {wanted.name}; run `make locks`"
        assert all(version in wanted.specifier for version in found), (
            f"locks/{lock}.txt: {wanted.name}; run `make locks`"
        )


@pytest.mark.parametrize("lock", sorted(WANTED))
def test_every_pin_has_hashes(lock: str) -> None:
    entries = re.split(r"\n(?=[\w.-]+==)", (ROOT / "locks" / f"{lock}.txt").read_text().strip())

    assert entries
    assert [entry for entry in entries if "--hash=sha256:" not in entry] == []
