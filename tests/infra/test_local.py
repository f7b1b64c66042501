"""The one-machine stack, and the shell that stands in the repository."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sysconfig
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
SCRIPTS = [ROOT / ".ci" / "run", ROOT / "infra" / "local" / "up.sh", ROOT / "locks" / "get-harness.sh"]
CONFIG = """
crawl: {limit: 1}
tasks: {count: 1, profile: easy, held_out_services: 0, shares: {sft: 1}}
gates: {min_tasks: 1, min_trajectories: 1}
"""


@pytest.mark.components
@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_shellcheck_finds_nothing(script: Path) -> None:
    program = shutil.which("shellcheck", path=sysconfig.get_path("scripts"))
    assert program, "shellcheck comes with the extra dev"

    done = subprocess.run([program, str(script)], capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout


def test_the_cluster_gets_every_image_that_pods_without_gpus_have() -> None:
    template = yaml.safe_load((ROOT / "charts" / "compoworld" / "files" / "workflow-template.yaml").read_text())
    images = {item["container"]["image"] for item in template["spec"]["templates"] if "container" in item}
    kinds = {re.sub(r"\{\{.*?\}\}", "", image).strip("-:") for image in images} - {"train", "eval"}

    loop = re.search(r"for target in ([\w ]+); do", (ROOT / "infra" / "local" / "up.sh").read_text())

    assert loop is not None
    assert set(loop[1].split()) == kinds


@pytest.mark.slow
def test_one_command_brings_up_a_store_and_runs_the_pipeline_on_it(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(CONFIG)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = {"STATE": str(tmp_path / "state"), "CONFIG": str(tmp_path / "config.yaml"), "PORT": str(port)}
    environment = {**os.environ, **settings, "PATH": "/usr/bin:/bin"}
    if shutil.which("kind", path=environment["PATH"]):
        pytest.skip("kind would make a cluster")
    script = str(ROOT / "infra" / "local" / "up.sh")

    try:
        done = subprocess.run([script], env=environment, capture_output=True, text=True, check=False)
    finally:
        down = subprocess.run([script, "down"], env=environment, capture_output=True, text=True, check=False)

    assert done.returncode == 0, done.stdout + done.stderr
    assert "s3://compoworld/small" in done.stdout
    assert down.returncode == 0
    assert not (tmp_path / "state").exists()
