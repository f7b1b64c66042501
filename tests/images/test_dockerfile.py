"""The Dockerfile against what the project says of its parts."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sysconfig
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from compoworld_core.evaluation.benchmarks import benchmarks
from compoworld_core.synthesis.pi.harness import VERSION

ROOT = Path(__file__).parents[2]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
ARGUMENTS = dict(re.findall(r"^ARG (\w+)=(.*)$", DOCKERFILE, re.MULTILINE))
TARGETS = set(re.findall(r"^FROM \S+ AS (\S+)$", DOCKERFILE, re.MULTILINE))


def test_there_is_an_image_for_every_benchmark() -> None:
    assert {f"eval-{name}" for name in benchmarks()} == {name for name in TARGETS if name.startswith("eval-")}
    assert {"job", "author", "train"} <= TARGETS


@pytest.mark.parametrize("name", sorted(benchmarks()))
def test_an_image_has_the_harness_that_its_adapter_is_for(name: str) -> None:
    benchmark = benchmarks()[name]
    prefix = name.upper().replace("-", "_")
    pinned = ARGUMENTS.get(f"{prefix}_COMMIT") or ARGUMENTS.get(f"{prefix}_VERSION") or None

    assert pinned == (benchmark.pin.commit or benchmark.pin.version)
    assert ARGUMENTS[f"{prefix}_PYTHON"] in SpecifierSet(benchmark.needs.python)
    stage = DOCKERFILE.partition(f"FROM job AS eval-{name}\n")[2].partition("\n\n")[0]
    assert "HARNESS_DIR=/opt/harness HARNESS_PYTHON=/opt/harness/.venv/bin/python" in stage
    assert f"COPY --from=harness-{name} /opt/harness /opt/harness" in stage
    assert ("HARNESS_REVISION" in stage) == (benchmark.pin.version is None or benchmark.pin.commit is not None)
    if benchmark.pin.commit:
        assert f"get-harness {benchmark.pin.repository} " in DOCKERFILE


def test_the_author_has_the_pi_that_sessions_are_held_with() -> None:
    lock = json.loads((ROOT / "locks" / "pi" / "package-lock.json").read_text())
    pinned = {name: entry for name, entry in lock["packages"].items() if name}

    assert pinned["node_modules/@earendil-works/pi-coding-agent"]["version"] == VERSION
    assert ARGUMENTS["PI_VERSION"] == VERSION
    assert [name for name, entry in pinned.items() if "integrity" not in entry] == []


def test_what_is_built_is_sent_and_nothing_else() -> None:
    sent = {line[1:] for line in (ROOT / ".dockerignore").read_text().splitlines() if line.startswith("!")}
    copied = re.findall(r"^COPY (?!--from)(.+) \S+$", DOCKERFILE, re.MULTILINE)

    assert {name.partition("/")[0] for line in copied for name in line.split()} == sent


@pytest.mark.components
def test_hadolint_finds_nothing() -> None:
    program = shutil.which("hadolint", path=sysconfig.get_path("scripts"))
    assert program, "hadolint comes with the extra dev"

    done = subprocess.run([program, str(ROOT / "Dockerfile")], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout
