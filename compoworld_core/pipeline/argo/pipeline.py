"""The pipeline as workflows: what `compoworld workflow`, `hera generate yaml` and `hera-submit` read from this file.

    template    WorkflowTemplate with everything
    workflow    Workflow that runs it once
    nightly     CronWorkflow that runs it with the date as seed, and promotes what reaches its gates
    janitor     CronWorkflow that clears away JobSets whose workflow is gone

The settings are those of the file that the variable `CW_CLUSTER` names, or the defaults.
"""

from __future__ import annotations

from typing import Any, Final

from hera.workflows import DAG, Container, CronWorkflow, Parameter, Task, Workflow, WorkflowTemplate
from hera.workflows.models import (
    ExecutorConfig,
    Metadata,
    Mutex,
    PodGC,
    PodSecurityContext,
    SeccompProfile,
    Synchronization,
    Template,
    TTLStrategy,
    WorkflowTemplateRef,
)
from hera.workflows.protocol import Templatable

from compoworld_core.pipeline.argo.containers import CONFIGURED, LIGHT, OUTPUTS, USER, given, job, parameter
from compoworld_core.pipeline.argo.evaluation import benchmark_templates
from compoworld_core.pipeline.argo.fan_out import GPU, SEED, planning, range_dag, shard_pod, stage_dag
from compoworld_core.pipeline.argo.settings import (
    CONFIG_MAP,
    EXECUTOR_ACCOUNT,
    JOB_ACCOUNT,
    TRAINING_ACCOUNT,
    ClusterSettings,
    StageSettings,
    load_settings,
)
from compoworld_core.pipeline.argo.training import training_pods
from compoworld_core.pipeline.stages import GRAPH

LABELS: Final = {"app.kubernetes.io/part-of": "compoworld"}

_GRACE: Final = "5m"
"""Time in which what collects logs may read those of a pod that is done."""


def is_training(name: str) -> bool:
    """Whether a stage is made by the pods of a JobSet: whether its config lays work out over machines."""
    return "layout" in GRAPH[name].config.model_fields


def _tries(name: str) -> bool:
    """Whether a stage may work with models that this run has trained."""
    return any(is_training(GRAPH.producer(item.name)) for item in GRAPH[name].inputs)


def answered(name: str) -> str:
    """A reference to an answer of the first job."""
    return f"{{{{tasks.begin.outputs.parameters.{name}}}}}"


def _begin(settings: ClusterSettings) -> Container:
    asked = ["--from", parameter("from"), "--until", parameter("until"), "--only", parameter("only")]
    asked += ["--gpus", parameter("gpus"), "--benchmarks", parameter("benchmarks")]
    asked += ["--user", parameter("user"), "--judge", parameter("judge"), "--limit", parameter("limit")]
    asked += ["--scheduled", given("scheduled"), "--out", OUTPUTS]
    answers = [*(f"run-{name}" for name in GRAPH.order), "run-benchmarks", "benchmarks", "record", "seed"]
    inputs = [Parameter(name="scheduled")]
    arguments = [*CONFIGURED, *asked]
    return job(settings, "begin", "begin", arguments, inputs=inputs, outputs=answers, asks_models=True)


def _pipeline() -> DAG:
    """All stages, each after those that make what it reads; what was not chosen is passed over."""
    seed = Parameter(name="seed", value=answered("seed"))
    with DAG(name="pipeline", inputs=[Parameter(name="scheduled", default="")]) as dag:
        begin = Task(name="begin", template="begin", arguments={"scheduled": given("scheduled")})
        tasks: dict[str, Task] = {}
        for name in GRAPH.order:
            when = f"{answered(f'run-{name}')} == true"
            tasks[name] = Task(name=name, template=name, when=when, arguments=[seed])
            for before in [tasks[source] for source in GRAPH.graph.predecessors(name)] or [begin]:
                before >> tasks[name]
        benchmarks = Task(
            name="benchmarks",
            template="benchmarks",
            when=f"{answered('run-benchmarks')} == true",
            arguments=[seed, Parameter(name="benchmarks", value=answered("benchmarks"))],
        )
        for name in filter(is_training, GRAPH.order):
            tasks[name] >> benchmarks
        record = Task(name="record", template="record", when=f"{answered('record')} == true", arguments=[seed])
        for name in GRAPH.order:
            if not list(GRAPH.graph.successors(name)):
                tasks[name] >> record
        benchmarks >> record
    return dag


def _nightly() -> DAG:
    """The same, with the moment at which it was due; only workflows of a schedule have one."""
    with DAG(name="nightly") as dag:
        Task(name="pipeline", template="pipeline", arguments={"scheduled": "{{workflow.scheduledTime}}"})
    return dag


def _sweep(settings: ClusterSettings, name: str, arguments: list[str]) -> Container:
    """A pod that deletes JobSets, with the account that may."""
    sweep = job(settings, name, "janitor", ["--namespace", "{{workflow.namespace}}", *arguments])
    sweep.service_account_name = TRAINING_ACCOUNT
    sweep.automount_service_account_token = True
    sweep.executor = ExecutorConfig(service_account_name=TRAINING_ACCOUNT)
    return sweep


def _finish(settings: ClusterSettings) -> list[DAG | Container]:
    told = ["--store", parameter("store"), "--status", "{{workflow.status}}", "--seconds", "{{workflow.duration}}"]
    clear = _sweep(settings, "clear", ["--ending", "{{workflow.name}}"])
    with DAG(name="finish") as dag:
        Task(name="tell", template="tell")
        Task(name="clear", template="clear", when=f"{parameter('gpus')} == true")
    return [dag, job(settings, "tell", "finish", told), clear]


def _templates(settings: ClusterSettings) -> list[Template | Templatable]:
    found: list[Template | Templatable] = [_pipeline(), _nightly(), _begin(settings)]
    for name in GRAPH.order:
        stage = GRAPH[name]
        if is_training(name):
            found += [stage_dag(stage, {f"{name}-range": None}), training_pods(settings, stage)]
            continue
        kinds = (
            {"": f"{parameter('gpus')} != true", GPU: f"{parameter('gpus')} == true"} if _tries(name) else {"": None}
        )
        found.append(stage_dag(stage, {f"{name}-{kind}range": condition for kind, condition in kinds.items()}))
        for kind in kinds:
            found += [range_dag(stage, kind), shard_pod(settings, stage, kind)]
    record = StageSettings(memory="2Gi", deadline_s=3600)
    seed = [Parameter(name="seed")]
    found.append(job(settings, "record", "record", CONFIGURED, pod=record, inputs=seed, environment=SEED))
    return [*found, *benchmark_templates(settings), *planning(settings), *_finish(settings)]


def _common(settings: ClusterSettings) -> dict[str, Any]:
    """What holds for every workflow, whichever templates it has."""
    done_s, failed_s = settings.keep_s
    return {
        "service_account_name": JOB_ACCOUNT,
        # A job never talks to the cluster; the executor beside it does, with an account that can do nothing else.
        "automount_service_account_token": False,
        "executor": ExecutorConfig(service_account_name=EXECUTOR_ACCOUNT),
        "security_context": PodSecurityContext(
            run_as_non_root=True,
            run_as_user=USER,
            run_as_group=USER,
            seccomp_profile=SeccompProfile(type="RuntimeDefault"),
        ),
        "pod_metadata": Metadata(labels=LABELS),
        # What failed stays as long as its workflow, for who wants to read why.
        "pod_gc": PodGC(strategy="OnPodSuccess", delete_delay_duration=_GRACE),
        "ttl_strategy": TTLStrategy(seconds_after_success=done_s, seconds_after_failure=failed_s),
    }


def build_template(settings: ClusterSettings) -> WorkflowTemplate:
    """Everything that a workflow needs, for who runs it now or on a schedule."""
    defaults = {
        "store": settings.store,
        "config": CONFIG_MAP,
        "image": settings.image,
        "tag": settings.tag,
        "run": "main",
        "from": "",
        "until": "",
        "only": "",
        "gpus": "true" if settings.has_gpus else "false",
        "benchmarks": ",".join(settings.benchmarks),
        "user": "",
        "judge": "",
        "limit": "",
        "attempt": "0",
        "scheduled": "",  # for who runs it by a schedule of their own: the entrypoint's input of this name takes it
    }
    return WorkflowTemplate(
        name=settings.name,
        labels=LABELS,
        entrypoint="pipeline",
        on_exit="finish",
        arguments=[Parameter(name=name, value=value) for name, value in defaults.items()],
        parallelism=settings.parallelism,
        active_deadline_seconds=settings.deadline_s,
        # Two workflows of one run would make the same things side by side: harmless, and paid twice.
        synchronization=Synchronization(mutexes=[Mutex(name=f"{settings.name}-{parameter('run')}")]),
        templates=_templates(settings),
        **_common(settings),
    )


def build_workflow(settings: ClusterSettings) -> Workflow:
    """A run of the template as it is."""
    return Workflow(
        generate_name=f"{settings.name}-",
        labels=LABELS,
        workflow_template_ref=WorkflowTemplateRef(name=settings.name),
    )


def build_nightly(settings: ClusterSettings) -> CronWorkflow:
    """A run every night."""
    return CronWorkflow(
        name=f"{settings.name}-nightly",
        labels=LABELS,
        schedules=[settings.nightly],
        timezone=settings.timezone,
        concurrency_policy="Forbid",
        starting_deadline_seconds=3600,
        successful_jobs_history_limit=7,
        failed_jobs_history_limit=7,
        entrypoint="nightly",
        arguments=[Parameter(name="run", value="nightly")],
        workflow_template_ref=WorkflowTemplateRef(name=settings.name),
    )


def build_janitor(settings: ClusterSettings) -> CronWorkflow:
    """Every hour: workflows that are terminated run no exit handler, so what they started may be left."""
    return CronWorkflow(
        name=f"{settings.name}-janitor",
        labels=LABELS,
        schedules=["17 * * * *"],
        timezone=settings.timezone,
        concurrency_policy="Replace",
        starting_deadline_seconds=600,
        successful_jobs_history_limit=1,
        failed_jobs_history_limit=3,
        entrypoint="janitor",
        arguments=[
            Parameter(name="store", value=settings.store),
            Parameter(name="config", value=CONFIG_MAP),
            Parameter(name="image", value=settings.image),
            Parameter(name="tag", value=settings.tag),
        ],
        active_deadline_seconds=LIGHT.deadline_s,
        templates=[_sweep(settings, "janitor", [])],
        **_common(settings),
    )


_SETTINGS: Final = load_settings()

template: Final = build_template(_SETTINGS)
workflow: Final = build_workflow(_SETTINGS)
nightly: Final = build_nightly(_SETTINGS)
janitor: Final = build_janitor(_SETTINGS)
