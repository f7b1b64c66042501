"""JobSets: names that fit, pods that find each other, and an end that is right for every way to fail."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.pipeline.argo.pipeline import is_training
from compoworld_core.pipeline.argo.render import rendered
from compoworld_core.pipeline.argo.settings import QUEUE_LABEL, ClusterSettings, StageSettings, TrainingSettings
from compoworld_core.pipeline.argo.training import jobset, training_pods
from compoworld_core.pipeline.config import load_config
from compoworld_core.pipeline.stages import GRAPH
from compoworld_core.training.launch import command

LARGE = TrainingSettings(nodes=4, gpus=8, vllm_gpus=4, rdma={"vpc.amazonaws.com/efa": 32}, topology="rack")
UID = "0f8fad5b-d9cb-469f-a165-70867728950e"

Json = dict[str, Any]


def manifest(stage: str, training: TrainingSettings = LARGE) -> Json:
    """As Kubernetes gets it."""
    found: Json = filled(jobset(training, GRAPH[stage]))
    return found


def filled(value: Any) -> Any:
    values = {
        "workflow.uid": UID,
        "workflow.name": "compoworld-x7k2q",
        "workflow.parameters.attempt": "0",
        "workflow.parameters.store": "s3://bucket/run",
        "inputs.parameters.seed": "",
    }
    if isinstance(value, dict):
        return {key: filled(item) for key, item in value.items()}
    if isinstance(value, list):
        return [filled(item) for item in value]
    if isinstance(value, str):
        return re.sub(r"\{\{(.*?)\}\}", lambda match: values.get(match[1], match[0]), value)
    return value


def job(found: Json, name: str) -> Json:
    return next(item for item in found["spec"]["replicatedJobs"] if item["name"] == name)


def pod(found: Json, name: str) -> Json:
    spec: Json = job(found, name)["template"]["spec"]["template"]["spec"]
    return spec


def environment(found: Json, name: str, index: int) -> dict[str, str]:
    """What a pod of the JobSet sees: the manifest's variables, its labels, and the index that Kubernetes adds."""
    labels = {"jobset-name": found["metadata"]["name"], "replicatedjob-name": name}
    seen = {"JOB_COMPLETION_INDEX": str(index)}
    for item in pod(found, name)["containers"][0]["env"]:
        if "value" in item:
            seen[item["name"]] = item["value"]
        else:
            label = re.search(r"jobset.sigs.k8s.io/([a-z-]+)", item["valueFrom"]["fieldRef"]["fieldPath"])
            assert label is not None
            seen[item["name"]] = labels[label[1]]
    return seen


def test_the_stages_that_train_are_jobsets() -> None:
    assert [name for name in GRAPH.order if is_training(name)] == ["sft", "grpo"]


@pytest.mark.parametrize("stage", ["sft", "grpo"])
def test_names_of_pods_fit(stage: str) -> None:
    name = manifest(stage)["metadata"]["name"]

    assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name)
    assert len(f"{name}-trainer-0-98-abcde") <= 63


@pytest.mark.parametrize("index", [0, 3])
def test_a_pod_works_out_its_place_from_what_it_is_given(index: int) -> None:
    found = manifest("grpo")
    seen = environment(found, "trainer", index)
    layout = load_config(environment=seen).training.layout

    arguments = command(layout, seen, "a.module", Path("job.json"))

    name = found["metadata"]["name"]
    assert {"--nnodes=4", "--nproc-per-node=8", f"--node-rank={index}"} <= set(arguments)
    assert f"--master-addr={name}-trainer-0-0.{name}" in arguments
    assert found["spec"]["network"]["enableDNSHostnames"] is True
    assert (layout.device, layout.generation) == ("cuda", "server")
    assert layout.vllm_url == f"http://{name}-vllm-0-0.{name}:8000"


def test_rollouts_are_served_before_training_begins_and_do_not_decide_its_end() -> None:
    found = manifest("grpo")

    assert job(found, "trainer")["dependsOn"] == [{"name": "vllm", "status": "Ready"}]
    assert found["spec"]["successPolicy"] == {"operator": "All", "targetReplicatedJobs": ["trainer"]}
    assert [item["name"] for item in manifest("sft")["spec"]["replicatedJobs"]] == ["trainer"]
    alone = manifest("grpo", TrainingSettings(vllm_gpus=0))
    assert [item["name"] for item in alone["spec"]["replicatedJobs"]] == ["trainer"]


def test_bad_input_ends_a_training_and_all_else_begins_it_again_from_the_newest_checkpoint() -> None:
    found = manifest("grpo")

    for name in ("trainer", "vllm"):
        spec = job(found, name)["template"]["spec"]
        assert [(rule["action"], rule["onExitCodes"]["values"]) for rule in spec["podFailurePolicy"]["rules"]] == [
            ("FailJob", [2])
        ]
        assert spec["backoffLimit"] == 0
    assert [item["action"] for item in found["spec"]["failurePolicy"]["rules"]] == ["FailJobSet", "RestartJobSet"]
    assert found["spec"]["failurePolicy"]["rules"][0]["onJobFailureReasons"] == ["PodFailurePolicy"]
    assert "--shard" in pod(found, "trainer")["containers"][0]["args"]  # the stage's key names its checkpoints


def test_kueue_decides_when_it_starts_and_where() -> None:
    found = manifest("sft")

    assert found["metadata"]["labels"][QUEUE_LABEL] == "compoworld"
    assert "suspend" not in found["spec"]
    template = job(found, "trainer")["template"]["spec"]["template"]
    assert template["metadata"]["annotations"] == {"kueue.x-k8s.io/podset-required-topology": "rack"}


def test_pods_have_fast_network_and_shared_memory_and_no_token() -> None:
    spec = pod(manifest("sft"), "trainer")
    (container,) = spec["containers"]

    assert container["resources"]["limits"]["vpc.amazonaws.com/efa"] == "32"
    assert container["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["IPC_LOCK"]}
    assert {"name": "shared-memory", "mountPath": "/dev/shm"} in container["volumeMounts"]
    assert {"name": "shared-memory", "emptyDir": {"medium": "Memory", "sizeLimit": "64Gi"}} in spec["volumes"]
    assert spec["automountServiceAccountToken"] is False
    plain = pod(manifest("sft", TrainingSettings()), "trainer")["containers"][0]
    assert plain["securityContext"]["capabilities"] == {"drop": ["ALL"]}


def test_a_server_of_a_model_has_shared_memory_for_its_gpus() -> None:
    templates = rendered(ClusterSettings(training=LARGE))["workflow-template.yaml"]["spec"]["templates"]
    (server,) = [item for item in templates if item["name"] == "serve"]

    assert {"name": "shared-memory", "mountPath": "/dev/shm"} in server["container"]["volumeMounts"]
    (volume,) = [item for item in server["volumes"] if item["name"] == "shared-memory"]
    assert volume["emptyDir"] == {"medium": "Memory", "sizeLimit": LARGE.shared_memory}


def test_a_server_may_take_half_an_hour_to_load_and_is_ready_only_while_it_answers() -> None:
    templates = rendered(ClusterSettings(training=LARGE))["workflow-template.yaml"]["spec"]["templates"]
    (server,) = [item["container"] for item in templates if item["name"] == "serve"]

    for container in (server, pod(manifest("grpo"), "vllm")["containers"][0]):
        start, ready = container["startupProbe"], container["readinessProbe"]
        assert start["httpGet"] == ready["httpGet"]
        assert start["periodSeconds"] * start["failureThreshold"] == 1800
        assert "failureThreshold" not in ready


def test_pods_that_evaluate_trained_models_are_as_large_as_they_are_set() -> None:
    size = StageSettings(image="train", cpu="3", memory="24Gi", scratch="40Gi", deadline_s=600)
    templates = rendered(ClusterSettings(gpu_evaluation=size))["workflow-template.yaml"]["spec"]["templates"]
    (found,) = [item for item in templates if item["name"] == "evaluate-gpu-shard"]

    limits = found["container"]["resources"]["limits"]
    assert limits == {"cpu": "3", "memory": "24Gi", "ephemeral-storage": "40Gi", "nvidia.com/gpu": "1"}
    assert found["activeDeadlineSeconds"] == 600


def test_pods_outside_of_a_training_that_want_gpus_ask_for_them_and_wait_in_its_queue() -> None:
    templates = rendered(ClusterSettings(training=LARGE))["workflow-template.yaml"]["spec"]["templates"]
    containers = [item for item in templates if "container" in item]

    limits = {item["name"]: item["container"]["resources"]["limits"] for item in containers}
    gpus = {name: limit["nvidia.com/gpu"] for name, limit in limits.items() if "nvidia.com/gpu" in limit}
    assert gpus == {"evaluate-gpu-shard": "1", "serve": str(LARGE.vllm_gpus)}
    assert gpus.keys() == {item["name"] for item in containers if QUEUE_LABEL in item["metadata"]["labels"]}
    assert gpus.keys() == {item["name"] for item in containers if "nvidia.com/gpu" in str(item.get("tolerations"))}


def test_applying_again_finds_what_runs_already() -> None:
    template = training_pods(ClusterSettings(training=LARGE), GRAPH["sft"])

    assert template.action == "apply"
    assert template.flags is not None
    assert "--server-side" in template.flags, "what Kueue has added stays"
    assert "{{retries}}" not in str(template.manifest)
    assert "{{workflow.parameters.attempt}}" in str(template.manifest)
    assert template.set_owner_reference is True
    assert (template.success_condition, template.failure_condition) == (
        "status.terminalState == Completed",
        "status.terminalState == Failed",
    )
