"""A stage as templates: plan, then a pod for every shard that is missing, then the merge that checks their number.

    <stage>          plan ─► ranges (one child for each range of the plan) ─► merge
    <stage>-range    one child for each shard of a range, at most `fan_out`
    <stage>-shard    the pod

A stage that may work with trained models has the last two twice; where there are GPUs, its pods get one, and the image
that can load such models.

A plan is ranges of shards, not a list of their numbers: what a child is given becomes part of its name, and with every
name of its children a workflow's status would outgrow what the cluster can store.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hera.workflows import DAG, Container, Parameter, Task
from hera.workflows.models import ConfigMapKeySelector, SemaphoreRef, Sequence, Synchronization

from compoworld_core.llm.config import ModelUser
from compoworld_core.pipeline.argo.containers import CONFIGURED, OUTPUTS, given, job
from compoworld_core.pipeline.argo.settings import LIMITS_MAP, ClusterSettings
from compoworld_core.pipeline.stage import Stage

GPU: Final = "gpu-"
"""Kind of pods that have one."""

SEED: Final = {"COMPOWORLD_TASKS__SEED": given("seed")}

ENDPOINTS: Final = Synchronization(
    semaphores=[SemaphoreRef(config_map_key_ref=ConfigMapKeySelector(name=LIMITS_MAP, key="endpoints"))]
)
"""So many pods may ask models at the same time; each has limits of its own for every endpoint."""


def planning(settings: ClusterSettings) -> list[Container]:
    """The pods that plan and commit, for whatever stage."""
    module, seed, key = Parameter(name="module"), Parameter(name="seed"), Parameter(name="key")
    plan = job(
        settings,
        "plan",
        given("module"),
        [*CONFIGURED, "--plan", "--fan-out", str(settings.fan_out), "--out", OUTPUTS],
        inputs=[module, seed],
        outputs=["shards", "key"],
        environment=SEED,
    )
    merge = job(
        settings,
        "merge",
        given("module"),
        [*CONFIGURED, "--merge", "--key", given("key")],
        inputs=[module, seed, key],
        environment=SEED,
    )
    return [plan, merge]


def stage_dag(stage: Stage[Any], works: Mapping[str, str | None]) -> DAG:
    """Plan, work on what is missing, merge.

    Args:
        stage: Of the graph.
        works: Templates that get a range of shards, with the seed and the plan's key; each with the condition on which
            it is the one, if there are several.
    """
    module = stage.name.replace("-", "_")
    planned, seed = "{{tasks.plan.outputs.parameters.key}}", Parameter(name="seed", value=given("seed"))
    with DAG(name=stage.name, inputs=[Parameter(name="seed")]) as dag:
        told = [Parameter(name="module", value=module), seed]
        plan = Task(name="plan", template="plan", arguments=told)
        merge = Task(name="merge", template="merge", arguments=[*told, Parameter(name="key", value=planned)])
        for work, condition in works.items():
            ranges = Task(
                name=work.removeprefix(f"{stage.name}-") + "s",
                template=work,
                when=condition,
                with_param="{{tasks.plan.outputs.parameters.shards}}",
                arguments=[
                    Parameter(name="first", value="{{item.first}}"),
                    Parameter(name="count", value="{{item.count}}"),
                    Parameter(name="key", value=planned),
                    seed,
                ],
            )
            plan >> ranges
            ranges >> merge
    return dag


def range_dag(stage: Stage[Any], kind: str = "") -> DAG:
    """A pod for each shard of a range.

    Args:
        stage: Of the graph.
        kind: Part of the templates' names, for pods of another kind.
    """
    names = ("first", "count", "key", "seed")
    with DAG(name=f"{stage.name}-{kind}range", inputs=[Parameter(name=name) for name in names]) as dag:
        Task(
            name="shards",
            template=f"{stage.name}-{kind}shard",
            with_sequence=Sequence(start=given("first"), count=given("count")),
            arguments=[
                Parameter(name="shard", value="{{item}}"),
                *(Parameter(name=name, value=given(name)) for name in ("key", "seed")),
            ],
        )
    return dag


def shard_pod(settings: ClusterSettings, stage: Stage[Any], kind: str = "") -> Container:
    """The pod that makes a shard; the kind `GPU` has one."""
    asks_models = issubclass(stage.config, ModelUser)
    return job(
        settings,
        f"{stage.name}-{kind}shard",
        stage.name.replace("-", "_"),
        [*CONFIGURED, "--shard", given("shard"), "--key", given("key")],
        pod=settings.gpu_evaluation if kind == GPU else settings.stage(stage.name),
        inputs=[Parameter(name=name) for name in ("shard", "key", "seed")],
        environment=SEED,
        asks_models=asks_models,
        synchronization=ENDPOINTS if asks_models else None,
        may_lose_its_node=True,
        gpus=1 if kind == GPU else 0,
    )
