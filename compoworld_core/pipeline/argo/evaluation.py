"""Benchmarks of others: each model of the run is served, and asked by every benchmark from an image of its own.

benchmarks         one child for each of base, sft and grpo
benchmarks-model   serve (a daemon, ended with this) ─► one child for each benchmark that was asked for
benchmark          the pod with the official harness
"""

from __future__ import annotations

from typing import Final

from hera.workflows import DAG, Container, Parameter, Task
from hera.workflows.models import HTTPGetAction, Probe
from hera.workflows.protocol import Templatable

from compoworld_core.pipeline.argo.containers import (
    CONFIGURED,
    PROBE_S,
    START_PROBES,
    given,
    image,
    job,
    parameter,
)
from compoworld_core.pipeline.argo.fan_out import ENDPOINTS, SEED
from compoworld_core.pipeline.argo.settings import ClusterSettings, StageSettings

MODELS: Final = ("base", "sft", "grpo")
_PORT: Final = 8000


def benchmark_templates(settings: ClusterSettings) -> list[Templatable]:
    """The templates; `benchmarks` is the one to begin with."""
    return [_all_models(), _one_model(), _server(settings), _harness(settings)]


def _all_models() -> DAG:
    names = ("benchmarks", "seed")
    with DAG(name="benchmarks", inputs=[Parameter(name=name) for name in names]) as dag:
        Task(
            name="models",
            template="benchmarks-model",
            with_items=list(MODELS),
            arguments=[
                Parameter(name="model", value="{{item}}"),
                *(Parameter(name=name, value=given(name)) for name in names),
            ],
        )
    return dag


def _one_model() -> DAG:
    names = ("model", "benchmarks", "seed")
    with DAG(name="benchmarks-model", inputs=[Parameter(name=name) for name in names]) as dag:
        told = [Parameter(name=name, value=given(name)) for name in ("model", "seed")]
        server = Task(name="serve", template="serve", arguments=told)
        harnesses = Task(
            name="harnesses",
            template="benchmark",
            with_param=given("benchmarks"),
            arguments=[
                Parameter(name="benchmark", value="{{item}}"),
                Parameter(name="server", value="{{tasks.serve.ip}}"),
                *told,
            ],
        )
        server >> harnesses
    return dag


def _server(settings: ClusterSettings) -> Container:
    training = settings.training
    gpus = training.vllm_gpus or training.gpus
    arguments = [*CONFIGURED, "--model", given("model"), "--for", "benchmarks"]
    pod = StageSettings(
        image="train",
        cpu=training.cpu,
        memory=training.memory,
        scratch=training.scratch,
        deadline_s=settings.training.deadline_s,
    )
    server = job(
        settings,
        "serve",
        "serve",
        [*arguments, "--port", str(_PORT), "--gpus", str(gpus)],
        pod=pod,
        inputs=[Parameter(name=name) for name in ("model", "seed")],
        environment=SEED,
        gpus=gpus,
        shared_memory=training.shared_memory,  # GPUs that share a model talk to each other through it
    )
    server.daemon = True
    asked = HTTPGetAction(path="/health", port=_PORT)
    server.startup_probe = Probe(http_get=asked, period_seconds=PROBE_S, failure_threshold=START_PROBES)
    server.readiness_probe = Probe(http_get=asked, period_seconds=PROBE_S)
    return server


def _harness(settings: ClusterSettings) -> Container:
    arguments = [*CONFIGURED, "--benchmark", given("benchmark"), "--model", given("model")]
    arguments += ["--server", f"http://{given('server')}:{_PORT}/v1"]
    arguments += ["--user", parameter("user"), "--judge", parameter("judge"), "--limit", parameter("limit")]
    return job(
        settings,
        "benchmark",
        "benchmark",
        arguments,
        pod=StageSettings(cpu="2", memory="8Gi", scratch="16Gi", deadline_s=3 * 24 * 3600),
        inputs=[Parameter(name=name) for name in ("benchmark", "model", "server", "seed")],
        environment=SEED,
        asks_models=True,
        synchronization=ENDPOINTS,
        image_name=image(f"eval-{given('benchmark')}"),
    )
