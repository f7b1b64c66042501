"""What a cluster is like: sizes, limits and names that the workflows are rendered with.

What may differ from one submission to the next (store, image, stages …) is a workflow's parameter; here is only its
default value. Secrets are named, never held.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal, Self

import yaml
from pydantic import Field, ValidationError, model_validator

from compoworld_core import __version__
from compoworld_core.data import Data
from compoworld_core.errors import InputError

SETTINGS: Final = "CW_CLUSTER"
"""Environment variable with the settings' file, for programs that take none as an option, such as `hera`."""

CONFIG_MAP: Final = "compoworld-config"
"""Holds the configuration, as `config.yaml`."""
ENVIRONMENT_MAP: Final = "compoworld-environment"
"""Plain variables of every job, such as AWS_ENDPOINT_URL, AWS_REGION, CW_PUSHGATEWAY."""
CERTIFICATES_MAP: Final = "compoworld-certificates"
"""Holds as `ca.pem` whom pods trust, where that is not who their image trusts."""
LIMITS_MAP: Final = "compoworld-limits"
"""How many pods may do something at the same time; the key `endpoints` is about asking models."""
STORE_SECRET: Final = "compoworld-store"
"""Variables that open the store, where the pods' identity does not."""
MODELS_SECRET: Final = "compoworld-models"
"""Variables with the keys of endpoints, by the names that the configuration gives them."""

QUEUE_LABEL: Final = "kueue.x-k8s.io/queue-name"
"""Names Kueue's local queue, on whatever takes GPUs."""

JOB_ACCOUNT: Final = "compoworld-job"
EXECUTOR_ACCOUNT: Final = "compoworld-executor"
TRAINING_ACCOUNT: Final = "compoworld-training"

Image = Literal["job", "author", "train"]


class StageSettings(Data):
    """How the pods of a stage are made.

    Attributes:
        cpu: In Kubernetes' notation; requested, and also the limit.
        memory: Likewise.
        scratch: Space for temporary files.
        deadline_s: Longest life of a shard's pod.
    """

    image: Image = "job"
    cpu: str = "1"
    memory: str = "2Gi"
    scratch: str = "4Gi"
    deadline_s: int = Field(default=6 * 3600, ge=1)


class TrainingSettings(Data):
    """The pods that train.

    Attributes:
        nodes: Pods of the trainer, one on each machine.
        gpus: GPUs of each pod.
        vllm_gpus: GPUs of the pod that writes rollouts; 0 leaves that to the trainer.
        rdma: The resource that stands for the fast network, and how much of it a pod takes; none if left out.
        topology: Node label within which pods are to be close to each other; none if left out.
        queue: Kueue's local queue, of trainings and of all other pods with GPUs.
        restarts: Times that all pods of a JobSet are started again, from the newest checkpoint.
    """

    nodes: int = Field(default=1, ge=1, le=99)
    gpus: int = Field(default=8, ge=1)
    vllm_gpus: int = Field(default=0, ge=0)
    cpu: str = "32"
    memory: str = "512Gi"
    shared_memory: str = "64Gi"
    scratch: str = "1Ti"
    rdma: Mapping[str, int] = Field(default_factory=dict, max_length=1)
    topology: str | None = None
    queue: str = "compoworld"
    restarts: int = Field(default=10, ge=0)
    deadline_s: int = Field(default=7 * 24 * 3600, ge=1)


class ClusterSettings(Data):
    """Everything that rendering can be told.

    Attributes:
        image: Images are called `<image>-job`, `<image>-author`, `<image>-train` and `<image>-eval-<benchmark>`.
        has_gpus: Whether training is on if nothing is said when submitting.
        fan_out: Most children of a node.
        parallelism: Most pods of a workflow at a time.
        spot_label: Label of nodes that may be taken away at any time, and key of their taint; shards prefer them.
        retries: Times that a pod is tried again.
        deadline_s: Longest time of a workflow.
        keep_s: How long a workflow stays after its end, and how long if it failed.
        gpu_evaluation: A pod that evaluates trained models, with one GPU.
    """

    name: str = Field(default="compoworld", pattern=r"^[a-z]([a-z0-9-]*[a-z0-9])?$", max_length=30)
    image: str = "compoworld"
    tag: str = __version__
    store: str = "s3://compoworld/main"
    has_gpus: bool = False
    fan_out: int = Field(default=500, ge=1, le=500)
    parallelism: int = Field(default=100, ge=1)
    spot_label: str = "compoworld.dev/spot"
    retries: int = Field(default=5, ge=0)
    deadline_s: int = Field(default=14 * 24 * 3600, ge=1)
    keep_s: tuple[int, int] = (24 * 3600, 7 * 24 * 3600)
    nightly: str = "0 2 * * *"
    timezone: str = "Etc/UTC"
    stages: Mapping[str, StageSettings] = Field(
        default_factory=lambda: {"synthesize": StageSettings(image="author", memory="4Gi")}
    )
    training: TrainingSettings = TrainingSettings()
    gpu_evaluation: StageSettings = StageSettings(image="train", cpu="4", memory="64Gi", scratch="128Gi")
    benchmarks: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _names_stages(self) -> Self:
        from compoworld_core.pipeline.stages import GRAPH

        if unknown := sorted(set(self.stages) - set(GRAPH.order)):
            raise ValueError(f"stages: there is no {', '.join(unknown)}; there are {', '.join(GRAPH.order)}")
        return self

    def stage(self, name: str) -> StageSettings:
        """How the pods of a stage are made."""
        return self.stages.get(name, StageSettings())


def load_settings(path: Path | None = None) -> ClusterSettings:
    """The settings of a YAML file, or of the one that `CW_CLUSTER` names; the defaults where there is neither.

    Raises:
        InputError: The file cannot be read, or is wrong.
    """
    named = os.environ.get(SETTINGS)
    path = path or (Path(named) if named else None)
    if path is None:
        return ClusterSettings()
    try:
        return ClusterSettings.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")) or {})
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: is not YAML: {error}") from error
    except ValidationError as error:
        problems = (f"{path}: {'.'.join(map(str, item['loc']))}: {item['msg']}" for item in error.errors())
        raise InputError("\n".join(problems)) from None
