"""Agents' Last Exam: professional work on whole machines, scored from 0 to 1 by hidden references.

The harness ships no aggregation. The published figure is the share of tasks with the full score; a task that was tried
and has no score did not get it. How many tasks a list has decides about the figure: the list of Linux tasks has 105,
and the published figures fit 103, so they are comparable only where the lists are known to be the same.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from statistics import fmean
from typing import ClassVar, Final

from compoworld_core.errors import InputError
from compoworld_core.evaluation.benchmark import Benchmark
from compoworld_core.evaluation.collection import Collection, Gap, Metric
from compoworld_core.evaluation.layout import slices, trial_folder, trial_of
from compoworld_core.evaluation.order import Job, Needs, Order, Pin
from compoworld_core.evaluation.results import Found, read_json, result_files
from compoworld_core.evaluation.trial import Trial

_FULL: Final = 1 - 1e-6
_SETTLED: Final = ("completed", "timeout")
"""States of a run that the harness does not repeat."""

_BASE_URLS: Final = ("OPENAI_BASE_URL", "OPENAI_API_BASE")
"""Where the judges of single tasks ask: they take the agent's key, which is not to be shown to OpenAI.

A task whose judge is not served there gets no score.
"""

_NOT_TRIED: Final = "not_executed"
"""State of an evaluation that nothing led to, as where no machine could be had."""

_RUNS: Final = "runs"
_LIST: Final = "tasks.txt"
_DONE: Final = "all-tried"
_SCRIPT: Final = """\
set -eu
job="$PWD"
(cd "$HARNESS_HOME" && "$HARNESS_PYTHON" -m ale_run run "$job/exp.yaml" --resume) || echo "some units did not complete"
tried=$(grep -rL --include eval_result.json '"eval_status": *"not_executed"' runs |
    sed 's|/[^/]*/eval_result.json$||' | sort -u | wc -l)
[ "$tried" -ge {tasks} ] || {{ echo "only $tried of {tasks} tasks were tried"; exit 1; }}
touch {done}
"""


class AgentsLastExam(Benchmark):
    """ALE with an agent that takes any endpoint, on the tasks that need no more than Linux."""

    name = "ale"
    title = "Agents' Last Exam"
    pin = Pin(repository="rdi-berkeley/agents-last-exam", commit="6b7f1b981b198edcce1cd4b68c2efda4f6733e42")
    needs = Needs(
        python=">=3.12,<3.14",
        modules=("cua_bench", "skimage"),
        files=("ale_run/__main__.py", "tasks", "selected_tasks"),
        docker=True,
        contained=True,
        secrets=("GCP_SA_KEY",),
        key_files=("GCP_SA_KEY",),
    )
    options: ClassVar = {"task_list": "selected_tasks/linux_only.txt", "sandbox": "docker", "wall_time_s": "7200"}

    def needs_for(self, order: Order) -> Needs:
        """Containers, or a project in Google's cloud for machines; the tasks' data comes from a bucket either way."""
        sandbox = self.option(order, "sandbox")
        if sandbox not in ("docker", "gcloud"):
            raise InputError(f"{self.name}: the sandbox is docker or gcloud, not {sandbox!r}")
        is_cloud = sandbox == "gcloud"
        return Needs(
            python=self.needs.python,
            modules=self.needs.modules,
            files=(*self.needs.files, self.option(order, "task_list")),
            docker=not is_cloud,
            contained=True,
            programs=("gcloud",) if is_cloud else (),
            key_files=self.needs.key_files,
            secrets=(*self.needs.secrets, *(("GCP_PROJECT",) if is_cloud else ())),
        )

    def render(self, order: Order) -> tuple[Job, ...]:
        """One experiment for each trial and slice; the harness goes on where one was cut short."""
        tasks = _listed(order.harness / self.option(order, "task_list"))[: order.limit]
        return tuple(
            self._job(order, f"{trial_folder(trial)}/shard-{number:03d}", tasks[start : start + length])
            for trial in range(order.trials or self.trials)
            for number, (start, length) in enumerate(slices(len(tasks), order.shards))
        )

    def _job(self, order: Order, name: str, tasks: Sequence[str]) -> Job:
        is_cloud = self.option(order, "sandbox") == "gcloud"
        home = order.harness.absolute()
        environment = home / "configs/environments/environment.yaml" if is_cloud else "environment.yaml"
        experiment = {
            "name": self.name,
            "agents": ["agent.yaml"],
            "environment": str(environment),
            "tasks": _LIST,
            "output": {"root": str(order.folder(name) / _RUNS)},
            "concurrency": order.concurrency,
            "wall_time_s": int(self.option(order, "wall_time_s")),
        }
        return Job(
            name=name,
            command=("bash", "run.sh"),
            done=_DONE,
            environment={
                "HARNESS_HOME": str(home),
                "HARNESS_PYTHON": str(order.interpreter.absolute()),
                **dict.fromkeys(_BASE_URLS, order.agent.base_url),
            },
            keys={"OPENAI_API_KEY": order.agent.endpoint},
            passed=self.needs_for(order).secrets,
            files={
                "run.sh": _SCRIPT.format(tasks=len(tasks), done=_DONE),
                "exp.yaml": _yaml(experiment),
                "agent.yaml": _yaml(_agent(order)),
                _LIST: "".join(f"{task}\n" for task in tasks),
                **({} if is_cloud else {"environment.yaml": _yaml(_CONTAINERS)}),
            },
        )

    def parse(self, folder: Path) -> Collection:
        """The runs below a folder: `AGENT/MODEL/TASK/vN/TIME/eval_result.json`."""
        attempts = [_Attempt.read(file, folder) for file in result_files(folder, "eval_result.json", "ale_run")]
        systems = sorted({(attempt.agent, attempt.model) for attempt in attempts})
        if len(systems) > 1:
            found = ", ".join(f"{agent} with {model}" for agent, model in systems)
            raise InputError(f"{folder}: has results of {found}; collect one at a time")
        counted, replaced = _latest(attempts)
        rows = [attempt.row() for attempt in counted if attempt.was_tried]
        tasks = len({row.task for row in rows})
        return self.collection(
            systems[0][1],
            rows,
            drops=[
                Gap(task=one.task, trial=one.trial, reason=f"the run {one.time} was tried again") for one in replaced
            ],
            missing=_untried(folder, counted),
            setting={"tasks": tasks, "trials": len({row.trial for row in rows}), "agent": systems[0][0]},
            warnings=[f"{tasks} tasks: with another list of tasks the figure is another one", *_unscored(rows)],
        )

    def measure(self, rows: Sequence[Trial]) -> tuple[Metric, ...]:
        """The binary pass rate, and the mean score beside it."""
        tasks = [list(tried) for _, tried in groupby(sorted(rows, key=_task), key=_task)]
        units = len(tasks)
        return (
            Metric(
                name="binary pass rate",
                value=_mean([[float(bool(row.passed)) for row in tried] for tried in tasks]),
                definition="share of tasks with the full score, each counted once; one without a score is not passed",
                units=units,
            ),
            Metric(
                name="mean score",
                value=_mean([[row.score or 0.0 for row in tried] for tried in tasks]),
                definition="mean of the tasks' scores, 0 where there is none",
                units=units,
            ),
        )


_CONTAINERS: Final = {
    "snapshots": {"cpu-free-ubuntu": {"provider": "docker", "image": "ale-kasm", "docker": {"shm_size": "1g"}}},
    "task_data_source": "gs://ale-data-public",
    "gcs_sa_key": "${env:GCP_SA_KEY}",
    "output_path": "local",
}


def _agent(order: Order) -> dict[str, object]:
    served = order.agent
    config = {"provider": "direct", "api_base": served.base_url}
    temperature = {} if served.temperature is None else {"temperature": served.temperature}
    return {"harness": "terminus_2", "model": f"openai/{served.model}", "config": {**config, **temperature}}


def _yaml(value: object) -> str:
    return json.dumps(value, indent=1) + "\n"  # JSON is YAML


def _listed(file: Path) -> list[str]:
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except OSError as error:
        raise InputError(f"{file}: the list of tasks cannot be read: {error.strerror}") from error
    tasks = [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]
    if not tasks:
        raise InputError(f"{file}: lists no task")
    return tasks


@dataclass(frozen=True)
class _Attempt:
    """One run of one task."""

    agent: str
    model: str
    task: str
    folder_trial: int
    time: str
    score: float | None
    status: str
    ended: str
    error: str | None
    usage: Found | None
    trial: int = 0

    @classmethod
    def read(cls, file: Path, folder: Path) -> _Attempt:
        """Read a result and, where it is there, what the harness says of the run."""
        if len(file.relative_to(folder).parts) < 4 or not file.parent.parent.name.startswith("v"):
            raise InputError(f"{file}: does not lie in TASK/vN/TIME/ of a run folder")
        result = read_json(file)
        run = read_json(file.with_name("run.json")) if file.with_name("run.json").exists() else None
        slug, variant, time = file.parts[-4:-1]
        ended = result.at("eval_status").text()
        return cls(
            agent=file.parts[-6] if len(file.parts) >= 6 else "unknown",
            model=_model(run) or (file.parts[-5] if len(file.parts) >= 5 else "unknown"),
            task=slug.replace("__", "/") + ("" if variant == "v0" else f"#{variant}"),
            folder_trial=trial_of(file, folder),
            time=time,
            score=result.at("score").share() if result.has("score") else None,
            status=run.at("status").text() if run is not None else "completed" if ended == "success" else ended,
            ended=ended,
            error=_problem(result, run, ended),
            usage=run.maybe("usage") if run is not None else None,
        )

    @property
    def was_tried(self) -> bool:
        """Whether the agent had its chance."""
        return self.status in _SETTLED or self.ended != _NOT_TRIED

    def row(self) -> Trial:
        """The attempt as a trial; without a score it is not passed."""
        return Trial(
            benchmark=AgentsLastExam.name,
            model=self.model,
            task=self.task,
            trial=self.trial,
            domain=self.task.partition("/")[0],
            passed=(self.score or 0.0) >= _FULL,
            score=self.score or 0.0,
            prompt_tokens=_count(self.usage, "total_input_tokens"),
            completion_tokens=_count(self.usage, "total_output_tokens"),
            steps=_count(self.usage, "total_steps"),
            usd=self.usage.at("total_cost_usd").number() if self.usage and self.usage.has("total_cost_usd") else None,
            error=self.error,
        )


def _model(run: Found | None) -> str:
    return run.at("agent").at("model").text().removeprefix("openai/") if run is not None else ""


def _problem(result: Found, run: Found | None, ended: str) -> str | None:
    if problem := result.problem("error"):
        return problem
    if run is not None and (told := run.maybe("termination")) is not None and (problem := told.problem("error")):
        return problem
    if ended != "success" or not result.has("score"):
        return f"evaluation: {ended}"
    return None


def _count(usage: Found | None, name: str) -> int | None:
    return usage.at(name).whole() if usage is not None and usage.has(name) else None


def _latest(attempts: Sequence[_Attempt]) -> tuple[list[_Attempt], list[_Attempt]]:
    """The attempts that count, and those that were repeated.

    The harness repeats a run until it is settled, so each settled one is a trial; of a task that has none, the last one
    that was tried counts.
    """
    by_task: dict[tuple[int, str], list[_Attempt]] = defaultdict(list)
    for attempt in attempts:
        by_task[attempt.folder_trial, attempt.task].append(attempt)
    counted, replaced = [], []
    for (trial, _), tried in sorted(by_task.items()):
        tried.sort(key=lambda attempt: attempt.time)
        settled = [attempt for attempt in tried if attempt.status in _SETTLED]
        last = ([attempt for attempt in tried if attempt.was_tried] or tried)[-1:]
        kept = settled or last
        replaced += [attempt for attempt in tried if attempt not in kept]
        counted += [replace(attempt, trial=trial + number) for number, attempt in enumerate(kept)]
    return counted, replaced


def _untried(folder: Path, attempts: Sequence[_Attempt]) -> Iterator[Gap]:
    """Tasks that were begun and never tried, and those of a job's list that have no run."""
    for attempt in attempts:
        if not attempt.was_tried:
            reason = f"it was not tried: {attempt.error}; the figures leave it out"
            yield Gap(task=attempt.task, trial=attempt.trial, reason=reason)
    there = {(attempt.trial, attempt.task) for attempt in attempts}
    for file in sorted(folder.rglob(_LIST)):
        trial = trial_of(file, folder)
        for task in _listed(file):
            if (trial, task) not in there:
                yield Gap(task=task, trial=trial, reason="it has no eval_result.json; the figures leave it out")


def _task(row: Trial) -> str:
    return row.task


def _mean(tasks: Sequence[Sequence[float]]) -> float | None:
    """Over tasks of the mean of their trials, so that one that was tried more often counts no more."""
    return fmean(map(fmean, tasks)) if tasks else None


def _unscored(rows: Sequence[Trial]) -> Iterator[str]:
    number = sum(row.error is not None for row in rows)
    if number:
        yield f"{number} of {len(rows)} runs ended with an error; without a score they count as not passed"
