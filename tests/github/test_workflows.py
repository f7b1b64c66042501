"""The workflows of GitHub Actions: they may do little, and what they use is pinned."""

from __future__ import annotations

import re
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
MAY_WRITE = {("images.yml", "image"): {"packages": "write"}}


@pytest.fixture(params=WORKFLOWS, ids=lambda path: path.name)
def workflow(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return request.param.name, yaml.safe_load(request.param.read_text())


def test_a_job_may_read_the_repository_and_little_else(workflow: tuple[str, dict[str, Any]]) -> None:
    name, document = workflow

    assert document["permissions"] == {}
    for job_name, job in document["jobs"].items():
        assert job["permissions"] == {"contents": "read", **MAY_WRITE.get((name, job_name), {})}
        assert job["timeout-minutes"]


def test_every_action_is_pinned_to_a_commit_and_says_which_version_that_is() -> None:
    used = [line.strip() for path in WORKFLOWS for line in path.read_text().splitlines() if "uses:" in line]

    assert used
    assert [
        line for line in used if not re.fullmatch(r"(- )?uses: [\w-]+/[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", line)
    ] == []


def test_images_are_those_of_the_dockerfile_that_can_be_built_without_more() -> None:
    document = yaml.safe_load((ROOT / ".github" / "workflows" / "images.yml").read_text())
    dockerfile = (ROOT / "Dockerfile").read_text()
    targets = set(re.findall(r"^FROM \S+ AS (job|author|train|eval-\S+)$", dockerfile, re.MULTILINE))
    unpinned = {f"eval-{name.lower()}" for name in re.findall(r"^ARG (\w+)_COMMIT=$", dockerfile, re.MULTILINE)}

    assert set(document["jobs"]["image"]["strategy"]["matrix"]["target"]) == targets - unpinned


@pytest.mark.components
def test_zizmor_finds_nothing() -> None:
    program = shutil.which("zizmor", path=sysconfig.get_path("scripts"))
    assert program, "zizmor comes with the extra dev"

    done = subprocess.run(
        [program, "--offline", "--no-progress", "--strict-collection", *map(str, WORKFLOWS)],
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr
