"""Pods that run a job: one command of `jobs/`, the mounted configuration, and nothing that it does not need.

They run as nobody in particular, on a read-only root, without a token for the cluster's API. Secrets come by reference.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Final

from hera.workflows import (
    ConfigMapEnvFrom,
    Container,
    Env,
    Parameter,
    Resources,
    SecretEnvFrom,
)
from hera.workflows.models import (
    Affinity,
    Capabilities,
    ConfigMapVolumeSource,
    EmptyDirVolumeSource,
    NodeAffinity,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    PreferredSchedulingTerm,
    Quantity,
    SecurityContext,
    Synchronization,
    Toleration,
    ValueFrom,
    Volume,
    VolumeMount,
)

from compoworld_core.pipeline.argo.retries import retry
from compoworld_core.pipeline.argo.settings import (
    CERTIFICATES_MAP,
    ENVIRONMENT_MAP,
    MODELS_SECRET,
    QUEUE_LABEL,
    STORE_SECRET,
    ClusterSettings,
    StageSettings,
)

USER: Final = 10001
"""Who every container of a pod runs as. Argo's executor has an image of root's, which `runAsNonRoot` alone refuses."""

CONFIG: Final = "/etc/compoworld"
CERTIFICATES: Final = "/etc/compoworld-certificates"
OUTPUTS: Final = "/tmp/outputs"
LIGHT: Final = StageSettings(cpu="500m", memory="1Gi", scratch="1Gi", deadline_s=1800)
"""For what only plans, commits or tells."""

PROBE_S: Final = 10
"""Between two questions whether a server answers."""
START_PROBES: Final = 180
"""Questions that a server may leave unanswered while it loads a model: half an hour."""

CONFIGURED: Final = ("--config", f"{CONFIG}/config.yaml")


def beside(*containers: str) -> str:
    """A patch that holds Argo's own containers in a pod to the standard `restricted`, and to limits.

    Otherwise only the controller's configuration says what they may do, and by default it says nothing: namespaces that
    enforce the standard, or have a quota, would take none of the pods.
    """
    lean = {
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "resources": {
            "requests": {"cpu": "50m", "memory": "64Mi", "ephemeral-storage": "256Mi"},
            "limits": {"cpu": "500m", "memory": "512Mi", "ephemeral-storage": "256Mi"},
        },
    }
    patch = {
        "initContainers": [{"name": "init", **lean}],
        "containers": [{"name": name, **lean} for name in containers],
    }
    return json.dumps(patch)


def parameter(name: str) -> str:
    """A reference to a workflow's parameter."""
    return f"{{{{workflow.parameters.{name}}}}}"


def given(name: str) -> str:
    """A reference to an input of the template."""
    return f"{{{{inputs.parameters.{name}}}}}"


def image(kind: str) -> str:
    """Name of an image of this project."""
    return f"{parameter('image')}-{kind}:{parameter('tag')}"


def job(
    settings: ClusterSettings,
    name: str,
    module: str,
    arguments: Sequence[str],
    *,
    pod: StageSettings = LIGHT,
    inputs: Sequence[Parameter] = (),
    outputs: Sequence[str] = (),
    environment: Mapping[str, str] | None = None,
    asks_models: bool = False,
    synchronization: Synchronization | None = None,
    may_lose_its_node: bool = False,
    gpus: int = 0,
    shared_memory: str | None = None,
    image_name: str | None = None,
) -> Container:
    """A template that runs `python -m jobs.<module>`.

    Args:
        settings: Of the cluster.
        name: Of the template.
        module: Below `jobs`.
        arguments: Of the command.
        pod: How large it is.
        inputs: Parameters of the template.
        outputs: Names of parameters; the job writes each to a file of that name in the folder `OUTPUTS`.
        environment: Variables beside those that every job has.
        asks_models: Whether it needs the keys of endpoints.
        synchronization: What it has to wait for.
        may_lose_its_node: Whether it may run where capacity is cheap and may be taken away.
        gpus: How many it needs.
        shared_memory: Size of /dev/shm, where that is more than the 64 MB that every pod has.
        image_name: If it is no image of the stages.
    """
    variables = {
        "CW_RUN": "{{workflow.name}}",
        "CW_METRICS": "/tmp/metrics.prom",
        "COMPOWORLD_STORE": parameter("store"),
        "HOME": "/tmp",  # the root is read-only
        **(environment or {}),
    }
    return Container(
        name=name,
        labels={
            "app.kubernetes.io/component": name,  # network policies tell pods apart by it
            **({QUEUE_LABEL: settings.training.queue} if gpus else {}),
        },
        image=image_name or image(pod.image),
        command=["python", "-m", f"jobs.{module}"],
        args=list(arguments),
        inputs=list(inputs),
        outputs=[Parameter(name=item, value_from=ValueFrom(path=f"{OUTPUTS}/{item}")) for item in outputs],
        env=[Env(name=key, value=value) for key, value in variables.items()],
        env_from=[
            ConfigMapEnvFrom(name=ENVIRONMENT_MAP, optional=True),
            SecretEnvFrom(name=STORE_SECRET, optional=True),
            *([SecretEnvFrom(name=MODELS_SECRET, optional=True)] if asks_models else []),
        ],
        volumes=[
            Volume(name="config", config_map=ConfigMapVolumeSource(name=parameter("config"))),
            Volume(name="certificates", config_map=ConfigMapVolumeSource(name=CERTIFICATES_MAP, optional=True)),
            Volume(name="tmp", empty_dir=EmptyDirVolumeSource(size_limit=Quantity(root=pod.scratch))),
            *([_memory(shared_memory)] if shared_memory else []),
        ],
        volume_mounts=[
            VolumeMount(name="config", mount_path=CONFIG, read_only=True),
            VolumeMount(name="certificates", mount_path=CERTIFICATES, read_only=True),
            VolumeMount(name="tmp", mount_path="/tmp"),
            *([VolumeMount(name="shared-memory", mount_path="/dev/shm")] if shared_memory else []),
        ],
        resources=_resources(pod, gpus),
        security_context=SecurityContext(
            allow_privilege_escalation=False,
            capabilities=Capabilities(drop=["ALL"]),
            read_only_root_filesystem=True,
        ),
        pod_spec_patch=beside("wait"),
        active_deadline_seconds=pod.deadline_s,
        retry_strategy=retry(settings.retries),
        synchronization=synchronization,
        affinity=_cheap(settings.spot_label) if may_lose_its_node else None,
        tolerations=_tolerations(settings.spot_label if may_lose_its_node else None, gpus),
    )


def _memory(size: str) -> Volume:
    return Volume(name="shared-memory", empty_dir=EmptyDirVolumeSource(medium="Memory", size_limit=Quantity(root=size)))


def _resources(pod: StageSettings, gpus: int) -> Resources:
    return Resources(
        cpu_request=pod.cpu,
        cpu_limit=pod.cpu,
        memory_request=pod.memory,
        memory_limit=pod.memory,
        ephemeral_request=pod.scratch,
        ephemeral_limit=pod.scratch,
        gpus=gpus or None,
    )


def _cheap(label: str) -> Affinity:
    wanted = NodeSelectorTerm(match_expressions=[NodeSelectorRequirement(key=label, operator="Exists")])
    term = PreferredSchedulingTerm(weight=100, preference=wanted)
    return Affinity(node_affinity=NodeAffinity(preferred_during_scheduling_ignored_during_execution=[term]))


def _tolerations(spot_label: str | None, gpus: int) -> list[Toleration] | None:
    keys = [spot_label] if spot_label else []
    keys += ["nvidia.com/gpu"] if gpus else []
    return [Toleration(key=key, operator="Exists", effect="NoSchedule") for key in keys] or None
