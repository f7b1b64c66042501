"""The rendered workflow, executed: what its pods leave in a bucket is what the local runner makes, pod kills included.

Marked `components`, for it needs a real S3 server.
"""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.cli import run_cli
from compoworld_core.pipeline.argo.render import rendered
from compoworld_core.pipeline.argo.settings import CONFIG_MAP, LIMITS_MAP, STORE_SECRET, ClusterSettings
from compoworld_core.pipeline.run import find_run
from compoworld_core.storage import open_store, read_ref
from tests.pipeline.argo.engine import Cluster, Engine, Meddle
from tests.storage.seaweedfs import SeaweedFS, seaweedfs

__all__ = ["seaweedfs"]

pytestmark = pytest.mark.components

SMALL = """
crawl: {limit: 1}
tasks: {count: 2, profile: easy, held_out_services: 0, shares: {sft: 1}}
report: {quality_tasks: 1}
"""
THREE_SHARDS = "crawl: {limit: 21}"

Run = Callable[..., Engine]


@pytest.fixture
def environment(seaweedfs: SeaweedFS, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    for name, value in seaweedfs.environment.items():
        monkeypatch.setenv(name, value)
    return seaweedfs.environment


@pytest.fixture
def uri(seaweedfs: SeaweedFS, request: pytest.FixtureRequest) -> str:
    return f"s3://{seaweedfs.bucket}/{request.node.name[:40].replace('[', '-').replace(']', '')}"


@pytest.fixture
def engine(environment: dict[str, str], uri: str, tmp_path: Path) -> Run:
    """Makes an engine for the project's own workflows."""

    def make(config: str, *, meddle: Meddle | None = None, file: str = "workflow.yaml", **parameters: str) -> Engine:
        (tmp_path / "pods").mkdir(exist_ok=True)
        documents = json.loads(json.dumps(rendered(ClusterSettings(store=uri, fan_out=2, retries=2))))
        maps = {CONFIG_MAP: {"config.yaml": config}, LIMITS_MAP: {"endpoints": "4"}}
        cluster = Cluster(tmp_path / "pods", maps, {STORE_SECRET: environment})
        workflow: dict[str, Any] = documents[file]
        if workflow["kind"] == "CronWorkflow":
            workflow = {**workflow, "kind": "Workflow", "spec": workflow["spec"]["workflowSpec"]}
        spec = workflow["spec"]
        own = {item["name"]: item["value"] for item in spec.get("arguments", {}).get("parameters", ())}
        told = [{"name": name.rstrip("_"), "value": value} for name, value in {**own, **parameters}.items()]
        workflow = {**workflow, "spec": {**spec, "arguments": {"parameters": told}}}
        return Engine(cluster, documents["workflow-template.yaml"], workflow, meddle=meddle)

    return make


def locally(config: str, folder: Path, capsys: pytest.CaptureFixture[str], verb: str) -> dict[str, str]:
    """Digests of what the local runner makes."""
    (folder / "config.yaml").write_text(config)
    arguments = ["--config", str(folder / "config.yaml"), "--store", str(folder / "store"), "--workers", "2", "--json"]
    assert run_cli([verb, *arguments]) == 0
    document = json.loads(capsys.readouterr().out)
    stages = document["stages"] if verb == "run" else [document]
    return {name: about["digest"] for stage in stages for name, about in stage["datasets"].items()}


def failures(engine: Engine) -> str:
    return "\n".join(f"{pod.template}: {pod.message}\n{pod.log}" for pod in engine.pods if pod.exit_code)


def test_the_data_half_is_what_the_local_runner_makes(
    engine: Run, uri: str, environment: dict[str, str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = engine(SMALL)

    phase = made.run()

    assert phase == "Succeeded", failures(made)
    assert {node.rpartition(".")[2] for node in made.passed_over} == {
        "sft",
        "grpo",
        "gpu-ranges",
        "benchmarks",
        "clear",
    }
    assert sum(pod.template == "validate-shard" for pod in made.pods) == 4
    store = open_store(uri)
    record = find_run(store)
    assert {name: item.digest for name, item in record.datasets.items()} == locally(SMALL, tmp_path, capsys, "run")
    ended = json.loads(store.read("workflows/w-1.json") or b"")
    assert ended["status"] == "Succeeded"
    for secret in environment["AWS_SECRET_ACCESS_KEY"], environment["AWS_ACCESS_KEY_ID"]:
        assert not any(secret in word for pod in made.pods for word in (*pod.command, pod.log))


def test_a_pod_killed_while_it_writes_is_made_up_for(
    engine: Run, uri: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    killed: list[str] = []

    def lose_the_node(template: str, attempt: int, process: subprocess.Popen[str]) -> tuple[str, str] | None:
        """As soon as a file of an attempt at shard 1 is in the bucket."""
        if template != "synthesize-shard" or attempt or "--shard 1 " not in " ".join(map(str, process.args)):  # type: ignore[arg-type]
            return None
        watched = open_store(uri)
        while process.poll() is None and not killed:
            process.send_signal(signal.SIGSTOP)  # or it may be done before a busy machine has looked
            killed.extend(name for name in watched.names("services") if "/shard=1/attempt=" in name)
            process.send_signal(signal.SIGCONT)
            time.sleep(0.01)
        process.kill()
        return ("Error", "pod deleted") if process.wait() == -signal.SIGKILL else None

    made = engine(THREE_SHARDS, meddle=lose_the_node, until="synthesize")

    phase = made.run()

    assert phase == "Succeeded", failures(made)
    assert killed
    attempts = [pod.attempt for pod in made.pods if pod.template == "synthesize-shard"]
    assert sorted(attempts) == [0, 0, 0, 1]  # three shards in two ranges, one of them twice
    expected = {
        **locally(THREE_SHARDS, tmp_path, capsys, "crawl"),
        **locally(THREE_SHARDS, tmp_path, capsys, "synthesize"),
    }
    store = open_store(uri)
    found = {
        json.loads(store.read(name) or b"")["type"]: json.loads(store.read(name) or b"")["digest"]
        for name in store.names()
        if name.endswith("/_DATASET.json")
    }
    assert found == expected
    assert len({name.split("/")[3] for name in store.names("services") if "/shard=1/attempt=" in name}) == 1


def test_bad_input_is_told_at_once_and_never_tried_again(engine: Run, uri: str) -> None:
    made = engine("crawl: {limit: none}")

    assert made.run() == "Failed"

    assert [(pod.template, pod.attempt, pod.exit_code) for pod in made.pods] == [("begin", 0, 2), ("tell", 0, 0)]
    assert "crawl.limit: 'none' is not a whole number" in made.pods[0].log
    assert read_ref(open_store(uri), "latest") is None


def test_a_nightly_run_takes_its_seed_from_the_date(engine: Run, uri: str) -> None:
    made = engine(SMALL, file="nightly.yaml", only="crawl")

    assert made.run(scheduled="2026-11-30T02:00:00Z") == "Succeeded", failures(made)

    shard = next(pod for pod in made.pods if pod.template == "crawl-shard")
    assert shard.environment["COMPOWORLD_TASKS__SEED"] == "20261130"
