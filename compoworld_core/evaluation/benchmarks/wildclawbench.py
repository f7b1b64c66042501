"""WildClawBench: sixty errands in containers and on the live web, some of them scored by a model.

The published figure is the mean of the tasks' overall scores; a task without a score counts 0. The web changes and
the judge's model is chosen by whoever runs it, so two runs are comparable only as far as these are alike. Each of the
six categories is run, and finished or not, by itself.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import ClassVar, Final

from compoworld_core.errors import InputError
from compoworld_core.evaluation.benchmark import Benchmark
from compoworld_core.evaluation.collection import Collection, Gap, Metric
from compoworld_core.evaluation.layout import trial_folder, trial_of
from compoworld_core.evaluation.order import Job, Needs, Order, Pin
from compoworld_core.evaluation.results import Found, read_json, result_files
from compoworld_core.evaluation.trial import Trial

CATEGORIES: Final = {
    "01_Productivity_Flow": 10,
    "02_Code_Intelligence": 12,
    "03_Social_Interaction": 6,
    "04_Search_Retrieval": 11,
    "05_Creative_Synthesis": 11,
    "06_Safety_Alignment": 10,
}
"""Categories with the number of their tasks."""

_PROVIDER: Final = "my-openai-proxy"
_KEY: Final = "MY_PROXY_API_KEY"
_SUMMARY: Final = "summary_all*.json"
_TRACES: Final = ("score.json", "usage.json", "agent.log")
"""What shows that a folder is that of a task that was run."""

_RUN: Final = re.compile(r"(?P<model>.+?)_20\d\d[\d_-]*_[0-9a-z]{6}")
_SCRIPT: Final = """\
set -eu
if [ ! -d harness ]; then
    rm -rf harness.part && mkdir harness.part
    for item in "$HARNESS_HOME"/*; do
        case "${{item##*/}}" in
            output) ;;
            workspace | Images) ln -s "$item" harness.part/ ;;
            *) cp -r "$item" harness.part/ ;;
        esac
    done
    mv harness.part harness
fi
config="$PWD/my_api.json"
cd harness
rm -rf output
{command}
[ -n "$(find output -name score.json)" ] || {{ echo "no task has a score"; exit 1; }}
"""
"""The harness knows no going on, and ends well whatever came of its tasks."""


class WildClawBench(Benchmark):
    """InternLM's WildClawBench with the OpenClaw agent, the one that takes any endpoint."""

    name = "wildclawbench"
    title = "WildClawBench"
    pin = Pin(repository="InternLM/WildClawBench")
    needs = Needs(
        docker=True,
        contained=True,
        files=("eval/run_batch.py", "tasks", "workspace"),
        modules=("dotenv",),
        secrets=("OPENROUTER_API_KEY", "BRAVE_API_KEY"),
        parts="they run whole categories; run one --shard",
    )
    options: ClassVar = {"judge_model": "openai/gpt-5.4"}

    def render(self, order: Order) -> tuple[Job, ...]:
        """One command for each trial and category, in a copy of the harness, for it writes beside itself."""
        return tuple(
            self._job(order, f"{trial_folder(trial)}/{category}", category)
            for trial in range(order.trials or self.trials)
            for category in CATEGORIES
        )

    def _job(self, order: Order, name: str, category: str) -> Job:
        provider = {
            "baseUrl": order.agent.base_url,
            "apiKey": f"${{{_KEY}}}",  # the harness fills it in
            "api": "openai-completions",
            "models": [{"id": order.agent.model, "name": order.agent.model}],
        }
        command = (
            f'"{order.interpreter.absolute()}" eval/run_batch.py --category {category} '
            f'--parallel {order.concurrency} --models-config "$config" --model "{_PROVIDER}/$AGENT_MODEL"'
        )
        return Job(
            name=name,
            command=("bash", "run.sh"),
            done="harness/output",
            environment={
                "HARNESS_HOME": str(order.harness.absolute()),
                "AGENT_MODEL": order.agent.model,
                "JUDGE_MODEL": self.option(order, "judge_model"),
            },
            keys={_KEY: order.agent.endpoint},
            passed=self.needs.secrets,
            files={
                "run.sh": _SCRIPT.format(command=command),
                "my_api.json": json.dumps({"providers": {_PROVIDER: provider}}, indent=1),
            },
            sources={"harness": order.harness.absolute()},
        )

    def parse(self, folder: Path) -> Collection:
        """The tasks of the summaries below a folder, and those that only have a folder of their own."""
        summaries = [read_json(file) for file in sorted(folder.rglob(_SUMMARY))] if folder.is_dir() else []
        results = [*_summarised(summaries, folder), *_single(folder)]
        if not results:
            result_files(folder, "score.json", self.title)
        models = sorted(
            {result.model for result in results if result.is_summarised} or {result.model for result in results}
        )
        if len(models) > 1:
            raise InputError(f"{folder}: has results of {', '.join(models)}; collect one model at a time")
        for result in results:
            if not _may_be(result.model, models[0]):
                raise InputError(
                    f"{folder}: {result.task} is a result of {result.model}, the others of {models[0]}; collect one at "
                    "a time"
                )
        summarised = {(result.trial, result.task) for result in results if result.is_summarised}
        rows = [
            result.row(models[0])
            for result in results
            if result.is_summarised or (result.trial, result.task) not in summarised
        ]
        trials = 1 + max(row.trial for row in rows)
        return self.collection(
            models[0],
            rows,
            missing=_gaps(rows, trials),
            setting={"tasks": len({row.task for row in rows}), "trials": trials},
            warnings=[*_contradictions(summaries, folder, rows), *_unscored(rows)],
        )

    def measure(self, rows: Sequence[Trial]) -> tuple[Metric, ...]:
        """The mean score, of all tasks and of each category; without a score is 0."""
        categories = sorted({row.domain for row in rows if row.domain})
        return (
            _mean("mean score", rows),
            *(
                _mean(f"mean score, {category}", [row for row in rows if row.domain == category])
                for category in categories
            ),
        )


def _may_be(model: str, other: str) -> bool:
    """Whether two names, as summaries and folders have them, may be of one model: one may have more around it."""
    one, two = (re.sub(r"[^a-z0-9]", "", name.lower()) for name in (model, other))
    return one in two or two in one


def _mean(name: str, rows: Sequence[Trial]) -> Metric:
    return Metric(
        name=name,
        value=fmean(row.score or 0.0 for row in rows) if rows else None,
        definition="mean overall score of the tasks; one without a score counts 0",
        units=len({row.task for row in rows}),
    )


@dataclass(frozen=True)
class _Result:
    """What there is of one task."""

    model: str
    task: str
    trial: int
    is_summarised: bool
    scores: Found | None
    error: Found | None
    usage: Found | None

    def row(self, model: str) -> Trial:
        """The result as a trial; without a score it counts 0."""
        scored = self.scores.maybe("overall_score") if self.scores is not None else None
        score = None if scored is None else scored.share()
        usage = self.usage
        return Trial(
            benchmark=WildClawBench.name,
            model=model,
            task=self.task,
            trial=self.trial,
            domain=next((category for category in CATEGORIES if self.task.startswith(category)), ""),
            passed=score == 1.0,
            score=score or 0.0,
            prompt_tokens=_count(usage, "input_tokens"),
            completion_tokens=_count(usage, "output_tokens"),
            usd=usage.at("cost_usd").number() if usage is not None and usage.has("cost_usd") else None,
            steps=_count(usage, "request_count"),
            error=(self.error.said() if self.error else "")
            or ("it has no score, which counts 0" if score is None else None),
        )


def _summarised(summaries: Sequence[Found], folder: Path) -> Iterator[_Result]:
    for summary in summaries:
        model = summary.file.stem.removeprefix("summary_all").removeprefix("_") or "unknown"
        for result in summary.at("results").items():
            task, trial = result.at("task_id").text(), trial_of(summary.file, folder)
            found = (result.maybe("scores"), result.maybe("error"), result.maybe("usage"))
            yield _Result(model, task, trial, True, *found)


def _single(folder: Path) -> Iterator[_Result]:
    """Tasks by their folders `CATEGORY/TASK/MODEL_TIME_ID`; one without `score.json` has no score."""
    for run in sorted({file.parent for name in _TRACES for file in folder.rglob(name)}):
        scores, usage = (
            read_json(run / name) if (run / name).exists() else None for name in ("score.json", "usage.json")
        )
        named = _RUN.fullmatch(run.name)
        model = named["model"] if named else run.name
        error = scores.maybe("error") if scores is not None else None
        yield _Result(model, run.parent.name, trial_of(run, folder), False, scores, error, usage)


def _count(document: Found | None, name: str) -> int | None:
    return document.at(name).whole() if document is not None and document.has(name) else None


def _gaps(rows: Sequence[Trial], trials: int) -> Iterator[Gap]:
    there = Counter((row.trial, row.domain) for row in rows)
    for trial in range(trials):
        for category, tasks in CATEGORIES.items():
            if (lacking := tasks - there[trial, category]) > 0:
                reason = f"{lacking} of {tasks} tasks are in no result; the harness leaves them out of its mean"
                yield Gap(task=f"{category}/*", trial=trial, reason=reason)


def _contradictions(summaries: Sequence[Found], folder: Path, rows: Sequence[Trial]) -> Iterator[str]:
    for summary in summaries:
        names = {result.at("task_id").text() for result in summary.at("results").items()}
        trial = trial_of(summary.file, folder)
        here = fmean(row.score or 0.0 for row in rows if row.task in names and row.trial == trial) if names else 0.0
        if summary.has("global_avg") and abs(summary.at("global_avg").number() - here) > 1e-3:
            said = summary.at("global_avg").number()
            yield f"{summary.file.name}: says global_avg {said}, its results say {here:.4f}"


def _unscored(rows: Sequence[Trial]) -> Iterator[str]:
    number = sum(row.error is not None and row.score == 0.0 for row in rows)
    if number:
        yield f"{number} of {len(rows)} trials have an error or no score and count 0, as the harness has it"
