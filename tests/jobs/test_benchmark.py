"""The pod of a benchmark as the workflow renders it: an official harness on a read-only root, rows in a real S3 store.

`HARNESS_TAU3` names a folder that holds the harness, as in tests/evaluation/test_official_harnesses.py.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from compoworld_core.evaluation.benchmarks import benchmark
from compoworld_core.pipeline.argo.render import rendered
from compoworld_core.pipeline.argo.settings import ClusterSettings
from compoworld_core.pipeline.benchmarking import noted_figures
from compoworld_core.pipeline.comparing import stored_collections
from compoworld_core.storage import open_store
from tests.evaluation.benchmarks.written import CANARY
from tests.evaluation.test_official_harnesses import Customer, harness
from tests.llm_server.reply import Reply, Script
from tests.llm_server.server import LlmServer
from tests.pipeline.argo.engine import PROJECT, pod_of
from tests.storage.seaweedfs import SeaweedFS, seaweedfs

__all__ = ["seaweedfs"]

pytestmark = pytest.mark.components

NO_KEY = "unused"
"""What harnesses tell servers that want none, such as the one of the model."""


# A pod's view: everything that is there, but read-only, with the mounts of the pod.
VIEW = """
set -e
mount --rbind / "$ROOT"
mount -o remount,bind,ro "$ROOT"
mount --bind "$TEMPORARY" "$ROOT/tmp"
mkdir -p "$ROOT/$HARNESS"
mount --bind "$HARNESS" "$ROOT/$HARNESS"
mount -o remount,bind,ro "$ROOT/$HARNESS"
mount --bind "$CONFIG" "$ROOT/mnt"
exec chroot "$ROOT" /usr/bin/env --chdir=/ --ignore-environment "$@"
"""


def seen_by_a_pod(folder: Path, place: Path, environment: dict[str, str]) -> tuple[list[str], dict[str, str]]:
    """The beginning of a command that runs with such a view, and the environment to begin it with."""
    places = {"ROOT": place / "root", "TEMPORARY": place / "tmp", "CONFIG": place / "config", "HARNESS": folder}
    for name in ("root", "tmp", "config"):
        (place / name).mkdir(exist_ok=True)
    assigned = [f"{name}={value}" for name, value in environment.items()]
    command = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c", VIEW, "sh", *assigned]
    return command, {"PATH": os.environ["PATH"], **{name: str(value) for name, value in places.items()}}


def test_a_pod_runs_the_harness_and_keeps_its_rows(
    seaweedfs: SeaweedFS, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = harness("HARNESS_TAU3")
    (tmp_path / "config").mkdir()
    scripts: dict[str, Script] = {
        "sft": lambda _: Reply(content="The card that you name."),
        "customer": Customer(folder),
    }
    with LlmServer(scripts, keys=[CANARY, NO_KEY]) as server:
        endpoint = {"base_url": server.base_url, "key_env": "MODELS_KEY"}
        config = {"llm": {"models": {"customer": {"model": "customer", "endpoints": [endpoint]}}}}
        (tmp_path / "config" / "config.yaml").write_text(json.dumps(config))
        store = f"s3://{seaweedfs.bucket}/benchmark"
        given = {"benchmark": "tau3-banking", "model": "sft", "seed": "7", "server": "127.0.0.1"}
        told = {"user": "customer", "judge": "", "limit": "1", "store": store, "image": "i", "tag": "1", "run": "main"}
        image, command, environment = pod_of(
            rendered(ClusterSettings())["workflow-template.yaml"], "benchmark", given, told
        )
        words = [
            word.replace("/etc/compoworld", "/mnt").replace("http://127.0.0.1:8000/v1", server.base_url)
            for word in command
        ]
        environment |= seaweedfs.environment | {
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(PROJECT),
            "MODELS_KEY": CANARY,
            "HARNESS_DIR": str(folder),
            "HARNESS_PYTHON": str(folder / ".venv" / "bin" / "python"),
            "HARNESS_REVISION": benchmark("tau3-banking").pin.commit or "",
        }

        begin, outside = seen_by_a_pod(folder, tmp_path, environment)
        done = subprocess.run(
            [*begin, sys.executable, *words[1:]], env=outside, capture_output=True, text=True, check=False
        )

    assert image == "i-eval-tau3-banking:1"
    assert done.returncode == 0, done.stdout + done.stderr
    for name, value in seaweedfs.environment.items():
        monkeypatch.setenv(name, value)
    (found,) = stored_collections(open_store(store))
    assert (found.benchmark, found.model) == ("tau3-banking", "sft")
    outcomes = sorted((row.task, row.passed) for row in found.rows)  # whose trial comes first is the harness's affair
    assert outcomes == [("task_001", False), ("task_001", False), ("task_001", True)]
    assert noted_figures(open_store(store), "w-1") == {"tau3-banking of sft": pytest.approx(1 / 3)}
    metrics = (tmp_path / "tmp" / "metrics.prom").read_text()
    assert 'compoworld_score{benchmark="tau3-banking",model="sft",run="w-1",stage="benchmark"} 0.3333' in metrics
    written = [path.read_text(errors="replace") for path in (tmp_path / "tmp").rglob("*") if path.is_file()]
    assert not any(CANARY in text for text in (*written, *words, done.stdout, done.stderr))
