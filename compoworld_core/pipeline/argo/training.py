"""A stage that trains as a JobSet: the pods of a trainer, and where wanted one that writes rollouts with vLLM.

Applying the same name again finds the JobSet that runs already, so a pod of the workflow that waits for it may be lost
and tried again. What can pass is tried again by the JobSet itself, all pods together, from the newest checkpoint.
"""

from __future__ import annotations

from typing import Any, Final

import yaml
from hera.workflows import Parameter, Resource
from hera.workflows.models import ExecutorConfig

from compoworld_core.pipeline.argo.containers import (
    CERTIFICATES,
    CONFIG,
    CONFIGURED,
    PROBE_S,
    START_PROBES,
    USER,
    beside,
    given,
    image,
    parameter,
)
from compoworld_core.pipeline.argo.retries import retry
from compoworld_core.pipeline.argo.settings import (
    CERTIFICATES_MAP,
    ENVIRONMENT_MAP,
    JOB_ACCOUNT,
    QUEUE_LABEL,
    STORE_SECRET,
    TRAINING_ACCOUNT,
    ClusterSettings,
    TrainingSettings,
)
from compoworld_core.pipeline.stage import Stage
from compoworld_core.training.datasets import SFT_MODELS

API: Final = "jobset.x-k8s.io/v1alpha2"
WORKFLOW_LABEL: Final = "compoworld.dev/workflow"
"""Label of a JobSet: the workflow that it works for."""

_VLLM_PORT: Final = 8000
_GRACE_S: Final = 90
"""More than torchrun and a last checkpoint's commit need after the signal to stop."""

Manifest = dict[str, Any]


def training_pods(settings: ClusterSettings, stage: Stage[Any]) -> Resource:
    """The template that applies a stage's JobSet and waits for its end."""
    return Resource(
        name=f"{stage.name}-range",
        inputs=[Parameter(name=name) for name in ("first", "count", "key", "seed")],
        action="apply",
        # By the server: what Kueue has written into the pods' templates stays, for JobSet lets nobody take it away.
        flags=["--server-side", "--force-conflicts"],
        manifest=yaml.safe_dump(jobset(settings.training, stage), sort_keys=False, width=1000),
        set_owner_reference=True,
        success_condition="status.terminalState == Completed",
        failure_condition="status.terminalState == Failed",
        pod_spec_patch=beside("main"),
        active_deadline_seconds=settings.training.deadline_s,
        retry_strategy=retry(settings.retries),
        service_account_name=TRAINING_ACCOUNT,
        automount_service_account_token=True,
        executor=ExecutorConfig(service_account_name=TRAINING_ACCOUNT),
    )


def jobset_name(stage: str) -> str:
    """The same for every attempt of the workflow at the stage; `attempt` is for who wants another JobSet.

    With `-trainer-0-98-abcde` it is a pod's name, and JobSet wants 63 characters at most: a workflow's uid has 36.
    """
    return f"{stage}-{{{{workflow.uid}}}}-{parameter('attempt')}"


def jobset(training: TrainingSettings, stage: Stage[Any]) -> Manifest:
    """The manifest. Kueue decides when it starts, so `suspend` is left to it."""
    has_vllm = bool(training.vllm_gpus) and SFT_MODELS in stage.inputs  # only what goes on from a model has rollouts
    name = jobset_name(stage.name)
    jobs = [_trainer(training, stage, name, has_vllm=has_vllm)]
    if has_vllm:
        jobs.insert(0, _vllm(training))
    return {
        "apiVersion": API,
        "kind": "JobSet",
        "metadata": {
            "name": name,
            "labels": {
                "app.kubernetes.io/part-of": "compoworld",
                WORKFLOW_LABEL: "{{workflow.name}}",
                QUEUE_LABEL: training.queue,
            },
        },
        "spec": {
            "network": {"enableDNSHostnames": True, "publishNotReadyAddresses": True},
            # vLLM never ends by itself: the trainer decides.
            "successPolicy": {"operator": "All", "targetReplicatedJobs": ["trainer"]},
            "failurePolicy": {
                "maxRestarts": training.restarts,
                "rules": [
                    {"name": "badInput", "action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]},
                    {"name": "mayPass", "action": "RestartJobSet"},
                ],
            },
            "replicatedJobs": jobs,
        },
    }


def _trainer(training: TrainingSettings, stage: Stage[Any], name: str, *, has_vllm: bool) -> Manifest:
    layout = {"NODES": str(training.nodes), "PROCESSES_PER_NODE": str(training.gpus), "DEVICE": "cuda"}
    if has_vllm:
        layout |= {"GENERATION": "server", "VLLM_URL": f"http://{name}-vllm-0-0.{name}:{_VLLM_PORT}"}
    arguments = [*CONFIGURED, "--shard", given("first"), "--key", given("key")]
    pod = _pod(training, stage.name.replace("-", "_"), arguments, training.gpus, layout)
    job = _job("trainer", pod, training.nodes)
    if has_vllm:
        job["dependsOn"] = [{"name": "vllm", "status": "Ready"}]
    return job


def _vllm(training: TrainingSettings) -> Manifest:
    arguments = [*CONFIGURED, "--model", "sft", "--for", "training", "--port", str(_VLLM_PORT)]
    pod = _pod(training, "serve", [*arguments, "--gpus", str(training.vllm_gpus)], training.vllm_gpus, {})
    container = pod["spec"]["containers"][0]
    container["ports"] = [{"containerPort": _VLLM_PORT}]
    asked = {"httpGet": {"path": "/health/", "port": _VLLM_PORT}, "periodSeconds": PROBE_S}
    container["startupProbe"] = {**asked, "failureThreshold": START_PROBES}
    container["readinessProbe"] = asked
    return _job("vllm", pod, 1)


def _job(name: str, pod: Manifest, pods: int) -> Manifest:
    """One of a JobSet's jobs. Its pods are one process group, so none is started again alone: the JobSet starts all."""
    for_good = {"action": "FailJob", "onExitCodes": {"containerName": "main", "operator": "In", "values": [2]}}
    spec = {
        "completionMode": "Indexed",
        "completions": pods,
        "parallelism": pods,
        "backoffLimit": 0,
        "podFailurePolicy": {"rules": [for_good]},
        "template": pod,
    }
    return {"name": name, "replicas": 1, "template": {"spec": spec}}


def _pod(training: TrainingSettings, module: str, arguments: list[str], gpus: int, layout: dict[str, str]) -> Manifest:
    resources = {
        "cpu": training.cpu,
        "memory": training.memory,
        "ephemeral-storage": training.scratch,
        "nvidia.com/gpu": str(gpus),
        **{name: str(amount) for name, amount in training.rdma.items()},
    }
    variables = {
        "CW_RUN": "{{workflow.name}}",
        "COMPOWORLD_STORE": parameter("store"),
        "COMPOWORLD_TASKS__SEED": given("seed"),
        "HOME": "/tmp",  # the root is read-only
        **{f"COMPOWORLD_TRAINING__LAYOUT__{name}": value for name, value in layout.items()},
    }
    labels = {"JOBSET_NAME": "jobset-name", "REPLICATED_JOB_NAME": "replicatedjob-name"}
    places = [
        {"name": name, "valueFrom": {"fieldRef": {"fieldPath": f"metadata.labels['jobset.sigs.k8s.io/{label}']"}}}
        for name, label in labels.items()
    ]
    container: Manifest = {
        "name": "main",
        "image": image("train"),
        "command": ["python", "-m", f"jobs.{module}"],
        "args": arguments,
        "env": [*({"name": name, "value": value} for name, value in variables.items()), *places],
        "envFrom": [
            {"configMapRef": {"name": ENVIRONMENT_MAP, "optional": True}},
            {"secretRef": {"name": STORE_SECRET, "optional": True}},
        ],
        "resources": {"requests": resources, "limits": resources},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            # RDMA pins memory, which needs this one capability.
            "capabilities": {"drop": ["ALL"], **({"add": ["IPC_LOCK"]} if training.rdma else {})},
        },
        "volumeMounts": [
            {"name": "config", "mountPath": CONFIG, "readOnly": True},
            {"name": "certificates", "mountPath": CERTIFICATES, "readOnly": True},
            {"name": "tmp", "mountPath": "/tmp"},
            {"name": "shared-memory", "mountPath": "/dev/shm"},  # NCCL needs more than a pod's 64 MB
        ],
    }
    metadata: Manifest = {"labels": {"app.kubernetes.io/part-of": "compoworld"}}
    if training.topology:
        metadata["annotations"] = {"kueue.x-k8s.io/podset-required-topology": training.topology}
    return {
        "metadata": metadata,
        "spec": {
            "restartPolicy": "Never",
            "serviceAccountName": JOB_ACCOUNT,
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": _GRACE_S,
            "securityContext": {
                "runAsNonRoot": True,
                "runAsUser": USER,
                "runAsGroup": USER,
                "seccompProfile": {"type": "RuntimeDefault"},
            },
            "tolerations": [{"key": "nvidia.com/gpu", "operator": "Exists", "effect": "NoSchedule"}],
            "volumes": [
                {"name": "config", "configMap": {"name": parameter("config")}},
                {"name": "certificates", "configMap": {"name": CERTIFICATES_MAP, "optional": True}},
                {"name": "tmp", "emptyDir": {"sizeLimit": training.scratch}},
                {
                    "name": "shared-memory",
                    "emptyDir": {"medium": "Memory", "sizeLimit": training.shared_memory},
                },
            ],
            "containers": [container],
        },
    }
