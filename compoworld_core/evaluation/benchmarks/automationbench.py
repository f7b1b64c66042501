"""AutomationBench: office work across simulated applications, judged by what it leaves behind.

A task is passed when all its assertions hold; its score is the share that holds. The published figure is the share of
tasks that are passed, which is far below the mean score. Six domains have 100 public tasks each. The domain `simple`
is a check that tools work at all, and no part of the score. The harness writes its export when all is done, so a run
that shall survive being killed is sliced.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import ClassVar, Final

from compoworld_core.errors import InputError
from compoworld_core.evaluation.benchmark import PROVENANCE, Benchmark
from compoworld_core.evaluation.collection import Collection, Gap, Metric
from compoworld_core.evaluation.layout import slices, trial_folder, trial_of
from compoworld_core.evaluation.order import Job, Needs, Order, Pin
from compoworld_core.evaluation.results import Found, read_json, result_files
from compoworld_core.evaluation.trial import Trial

DOMAINS: Final = ("sales", "marketing", "operations", "support", "finance", "hr")
UNSCORED: Final = "simple"
_SIZES: Final = {**dict.fromkeys(DOMAINS, 100), UNSCORED: 200}
_EXPORT: Final = "export.json"
_SAME: Final = ("model", "toolset", "benchmark_version", "reasoning_effort")


class AutomationBench(Benchmark):
    """Zapier's AutomationBench, its public tasks."""

    name = "automationbench"
    title = "AutomationBench"
    pin = Pin(repository="zapier/AutomationBench")
    needs = Needs(python=">=3.13", modules=("automationbench",))
    options: ClassVar = {
        "toolset": "api",
        "domains": ",".join(DOMAINS),
        "max_steps": "50",
        "reasoning_effort": "",
    }

    def render(self, order: Order) -> tuple[Job, ...]:
        """One command for each trial and slice: the harness can start at any task."""
        domains = self.option(order, "domains")
        unknown = [domain for domain in domains.split(",") if domain not in _SIZES]
        if unknown:
            raise InputError(f"{self.name}: there is no domain {unknown[0]!r}; there are {', '.join(_SIZES)}")
        tasks = sum(_SIZES[domain] for domain in domains.split(","))
        return tuple(
            # Asked for all tasks, the harness tries those that were cut off again; asked for a part, it does not.
            self._job(order, f"{trial_folder(trial)}/shard-{number:03d}", (start, length) if length < tasks else None)
            for trial in range(order.trials or self.trials)
            for number, (start, length) in enumerate(slices(min(order.limit or tasks, tasks), order.shards))
        )

    def _job(self, order: Order, name: str, part: tuple[int, int] | None) -> Job:
        effort = self.option(order, "reasoning_effort")
        return Job(
            name=name,
            command=(
                *("auto-bench", "--model", order.agent.model, "--base-url", order.agent.base_url),
                *("--toolset", self.option(order, "toolset"), "--domains", self.option(order, "domains")),
                *("--max-steps", self.option(order, "max_steps"), "--max-concurrent", str(order.concurrency)),
                *(("--reasoning-effort", effort) if effort else ()),
                *(("--skip", str(part[0]), "--num-examples", str(part[1])) if part else ()),
                *("--export-json", _EXPORT),
            ),
            done=_EXPORT,
            keys={"OPENAI_API_KEY": order.agent.endpoint},
        )

    def parse(self, folder: Path) -> Collection:
        """The tasks of all exports in a folder, which are the slices of one run, or of several under `trial-K`."""
        files = [file for file in result_files(folder, "*.json", "auto-bench") if file.name != PROVENANCE]
        found = [read_json(file) for file in files]
        exports = [item for item in found if isinstance(item.value, dict) and item.has("tasks") and item.has("meta")]
        if not exports:
            raise InputError(f"{folder}: has no export of auto-bench: an object with meta, summary and tasks")
        about = _common(exports)
        rows = [
            row
            for export in exports
            for row in _rows(export, str(about["model"]), trial_of(export.file, folder), about["benchmark_version"])
        ]
        trials = 1 + max(row.trial for row in rows) if rows else 0
        domains = sorted({*(name for export in exports for name in _domains(export)), *(row.domain for row in rows)})
        return self.collection(
            str(about["model"]),
            rows,
            missing=[
                *_gaps(rows, [domain for domain in domains if domain != UNSCORED], trials),
                *(gap for export in exports for gap in _cut_short(export)),
            ],
            setting={
                "toolset": about["toolset"] or "unknown",
                "reasoning_effort": about["reasoning_effort"] or "default",
                "domains": ",".join(domains),
                "tasks": len({row.task for row in rows if row.domain != UNSCORED}),
                "trials": trials,
            },
            versions={"harness": about["benchmark_version"] or "unknown"},
            warnings=[
                *_contradictions(exports),
                *_doubtful(rows),
                *_unread(found, exports),
                *_suspicions(exports, rows),
            ],
        )

    def measure(self, rows: Sequence[Trial]) -> tuple[Metric, ...]:
        """The strict pass rate, then mean scores; `simple` tasks stand apart."""
        scored = [row for row in rows if row.domain != UNSCORED]
        simple = [row for row in rows if row.domain == UNSCORED]
        domains = [domain for domain in DOMAINS if any(row.domain == domain for row in scored)]
        by_domain = {domain: [row for row in scored if row.domain == domain] for domain in domains}
        return (
            _strict("strict pass rate", scored, "share of tasks of which every assertion holds"),
            _partial("mean partial score", scored),
            *(
                _strict(f"strict pass rate, {domain}", own, "the same in one domain")
                for domain, own in by_domain.items()
            ),
            *(_partial(f"mean partial score, {domain}", own) for domain, own in by_domain.items()),
            *([_strict("strict pass rate, simple", simple, "the same; no part of the score")] if simple else []),
        )


def _strict(name: str, rows: Sequence[Trial], definition: str) -> Metric:
    value = fmean(bool(row.passed) for row in rows) if rows else None
    return Metric(name=name, value=value, definition=definition, units=len({row.task for row in rows}))


def _partial(name: str, rows: Sequence[Trial]) -> Metric:
    return Metric(
        name=name,
        value=fmean(row.score or 0.0 for row in rows) if rows else None,
        definition="mean share of a task's assertions that hold",
        units=len({row.task for row in rows}),
    )


def _common(exports: Sequence[Found]) -> dict[str, str]:
    """What all slices say of themselves alike; empty text where they say nothing."""
    about: dict[str, str] = {}
    for export in exports:
        meta = export.at("meta")
        said = {name: meta.at(name).text() if meta.has(name) else "" for name in _SAME}
        for name, value in said.items():
            if about.setdefault(name, value) != value:
                raise meta.wrong(
                    f"{name} is {value!r}, and {about[name]!r} in {exports[0].file}; collect one run at a time"
                )
    if not about["model"]:
        raise exports[0].at("meta").wrong("does not say which model was evaluated")
    return about


def _domains(export: Found) -> Iterator[str]:
    meta = export.at("meta")
    if meta.has("domains"):
        yield from (item.text() for item in meta.at("domains").items())


def _rows(export: Found, model: str, trial: int, version: str) -> Iterator[Trial]:
    for task in export.at("tasks").items():
        name = task.at("name").text()
        domain, dot, _ = name.partition(".")
        if not dot or domain not in _SIZES:
            raise task.at("name").wrong(f"has no domain before a dot: {', '.join(_SIZES)}")
        yield Trial(
            benchmark=AutomationBench.name,
            model=model,
            task=name,
            trial=trial,
            domain=domain,
            passed=task.at("passed").flag(),
            score=task.at("score").share(),
            criteria=tuple(_assertions(task)),
            steps=task.at("steps").whole() if task.has("steps") else None,
            prompt_tokens=task.at("input_tokens").whole() if task.has("input_tokens") else None,
            completion_tokens=task.at("output_tokens").whole() if task.has("output_tokens") else None,
            error=task.problem("error"),
            versions={"harness": version or "unknown"},
        )


def _assertions(task: Found) -> Iterator[bool]:
    """Outcomes of the assertions that count: those that held from the start do not, as long as they hold."""
    if task.has("assertion_results"):
        for result in task.at("assertion_results").items():
            if not (result.has("excluded") and result.at("excluded").flag()):
                yield result.at("passed").flag()


def _gaps(rows: Sequence[Trial], domains: Sequence[str], trials: int) -> Iterator[Gap]:
    """Tasks of the public set that no slice has; an export does not name those that it left out."""
    there = Counter((row.trial, row.domain) for row in rows)
    for trial in range(trials):
        for domain in domains:
            if (lacking := _SIZES[domain] - there[trial, domain]) > 0:
                yield Gap(
                    task=f"{domain}.*",
                    trial=trial,
                    reason=f"{lacking} of {_SIZES[domain]} public tasks are in no export; the figures leave them out",
                )


def _cut_short(export: Found) -> Iterator[Gap]:
    meta = export.at("meta")
    if meta.has("total_tasks"):
        lacking = meta.at("total_tasks").whole() - len(list(export.at("tasks").items()))
        if lacking > 0:
            yield Gap(task="*", reason=f"{export.file.name} speaks of {lacking} more tasks than it has")


def _contradictions(exports: Sequence[Found]) -> Iterator[str]:
    """Where an export's own summary is not what its tasks say."""
    for export in exports:
        summary = export.maybe("summary")
        if summary is not None and summary.has("passed_count"):
            said = summary.at("passed_count").whole()
            there = sum(task.at("passed").flag() for task in export.at("tasks").items())
            if said != there:
                yield f"{export.file.name}: its summary speaks of {said} passed tasks, it has {there}"


def _doubtful(rows: Sequence[Trial]) -> Iterator[str]:
    """What cannot be so: more tasks than there are, and passes that the task's own assertions contradict."""
    for (trial, domain), number in Counter((row.trial, row.domain) for row in rows).items():
        if number > _SIZES[domain]:
            yield f"{domain}: trial {trial} has {number} tasks, the benchmark has {_SIZES[domain]}"
    number = sum(row.passed is True and (row.score != 1.0 or not all(row.criteria)) for row in rows)
    if number:
        yield f"{number} passed tasks do not have the full score or fail an assertion"


def _unread(found: Sequence[Found], exports: Sequence[Found]) -> Iterator[str]:
    read = {export.file for export in exports}
    for item in found:
        if item.file not in read:
            yield f"{item.file.name}: is no export of auto-bench and was not read"


def _suspicions(exports: Sequence[Found], rows: Sequence[Trial]) -> Iterator[str]:
    calls = [
        task.at("num_tool_calls").whole()
        for export in exports
        for task in export.at("tasks").items()
        if task.has("num_tool_calls")
    ]
    if calls and not any(calls) and not any(row.passed for row in rows):
        yield (
            "no task has a single tool call, as with a server that cannot read the model's calls "
            "(vLLM needs --tool-call-parser qwen3_coder for Qwen3.x)"
        )
