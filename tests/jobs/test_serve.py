"""The pod that serves a model of a run: its files out of a real S3 store, and an answer to a request with tools."""

from __future__ import annotations

import http.client
import importlib.util
import json
import os
import subprocess
import sys
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest
import yaml

from compoworld_core.cli import run_cli
from compoworld_core.evaluation.serving import _free_port as free_port
from compoworld_core.pipeline.config import load_config
from jobs.serve import for_training
from tests.pipeline.argo.engine import PROJECT, pod_of
from tests.storage.seaweedfs import SeaweedFS, seaweedfs

__all__ = ["seaweedfs"]

CONFIG = """
crawl: {limit: 4}
tasks: {profile: easy, count: 6, held_out_services: 0, shares: {sft: 1}}
training:
  tiny: {layers: 2, hidden: 64, heads: 2, vocabulary: 1024}
  sft: {context_tokens: 3072, epochs: 1, global_batch: 4}
  layout: {device: cpu, gradient_checkpointing: false, save_every: 100}
"""
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object", "properties": {}}}}


def serve(name: str, *arguments: str, port: int = 0) -> tuple[list[str], dict[str, str]]:
    """Command and variables of the pod that serves a model, with some arguments more."""
    template = yaml.safe_load((PROJECT / "charts/compoworld/files/workflow-template.yaml").read_text())
    _, command, environment = pod_of(
        template, "serve", {"model": name, "seed": ""}, {"store": "s3://none/x", "image": "i", "tag": "1"}
    )
    words = [str(port) if word == "8000" else word for word in command[1:]]
    return [sys.executable, *words, *arguments], {**environment, "PATH": os.environ["PATH"], "PYTHONPATH": str(PROJECT)}


@pytest.mark.skipif(importlib.util.find_spec("vllm") is not None, reason="vLLM is here")
def test_an_image_without_the_server_is_refused(tmp_path: Path) -> None:
    command, environment = serve("sft")

    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path)

    assert done.returncode == 2
    assert "serve needs vllm, which the image `train` has" in done.stderr


@pytest.mark.parametrize(
    ("described", "longest"),
    [
        ({"max_position_embeddings": 40960}, 32768 + 1024),
        ({"text_config": {"max_position_embeddings": 40960}}, 32768 + 1024),
        ({"max_position_embeddings": 32768}, 32768),
    ],
    ids=["text", "also images", "no longer than the model"],
)
def test_a_trainers_server_has_room_for_one_more_message(
    described: dict[str, object], longest: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trl").touch(mode=0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "config.json").write_text(json.dumps(described))
    grpo = {"training.grpo.context_tokens": 32768, "training.grpo.turn_tokens": 1024}

    command = for_training(load_config(environment={}, flags=grpo), tmp_path, 8000, 2)

    assert command[command.index("--max-model-len") + 1] == str(longest)


@pytest.mark.train
@pytest.mark.components
@pytest.mark.parametrize("name", ["base", "sft"])
def test_a_pod_serves_a_model_of_the_run(
    name: str, seaweedfs: SeaweedFS, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable, value in seaweedfs.environment.items():
        monkeypatch.setenv(variable, value)
    (tmp_path / "config.yaml").write_text(CONFIG)
    options = ["--config", str(tmp_path / "config.yaml"), "--store", f"s3://{seaweedfs.bucket}/serve"]
    for verb in ("run", "sft"):  # the second time, both are passed over
        assert run_cli([verb, *options, "--workers", "1"]) == 0
    port = free_port()
    command, environment = serve(name, "--engine", "transformers", "--folder", str(tmp_path / "models"), port=port)
    command[command.index("--config") + 1] = options[1]
    environment |= seaweedfs.environment | {
        "COMPOWORLD_STORE": options[3],
        "HF_HUB_OFFLINE": "1",
        "HOME": str(tmp_path),
    }
    del environment["COMPOWORLD_TASKS__SEED"]

    with (
        (tmp_path / "log").open("wb") as log,
        subprocess.Popen(command, env=environment, stdout=log, stderr=log, cwd="/") as process,
    ):
        try:
            while process.poll() is None and not is_ready(port):
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.5)
            answer = ask(port, name) if process.poll() is None else None
        finally:
            process.terminate()

    assert answer is not None, (tmp_path / "log").read_text()
    assert answer["choices"][0]["message"]["role"] == "assistant"
    assert (tmp_path / "models" / name / "model.safetensors").exists()


def is_ready(port: int) -> bool:
    """Whether the probe of the pod would say so."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


def ask(port: int, model: str) -> dict[str, list[dict[str, dict[str, str]]]]:
    body = {"model": model, "messages": [{"role": "user", "content": "Hello."}], "tools": [TOOL], "max_tokens": 4}
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/v1/chat/completions", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=300) as response:
        answer: dict[str, list[dict[str, dict[str, str]]]] = json.load(response)
    return answer
