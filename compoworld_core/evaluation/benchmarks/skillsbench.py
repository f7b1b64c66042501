"""SkillsBench: work in containers, with the skills that come with a task or without any.

The two ways of working are two results, never one. The harness's mean reward is over the rollouts that were scored: one
that an error ended has no reward and is left out, while the pass rate that it prints counts it as not passed. Both
stand here, and what was left out is a drop.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean
from typing import ClassVar, Final

from compoworld_core.errors import InputError
from compoworld_core.evaluation.benchmark import Benchmark
from compoworld_core.evaluation.collection import Collection, Gap, Metric, unscored
from compoworld_core.evaluation.layout import trial_folder, trial_of
from compoworld_core.evaluation.order import Job, Needs, Order, Pin
from compoworld_core.evaluation.results import Found, read_json, result_files
from compoworld_core.evaluation.trial import Trial

DATASET: Final = "skillsbench@1.1"
_MODES: Final = ("with-skill", "no-skill")
_CLOUDS: Final = {"daytona": "DAYTONA_API_KEY"}
"""Sandboxes that are no local containers, by the variable with their key."""

_JOBS: Final = "jobs"
_SUMMARY: Final = "summary.json"
_RESULT: Final = "result.json"
_CACHE: Final = ".cache"
"""Where the harness keeps the dataset, which may have files of any name."""

_SCRIPT: Final = f"""\
set -eu
rm -f {_JOBS}/{_SUMMARY}
"$@" || echo "ended with $?, as it does where an error ended a rollout"
"""
_PARTS: Final = "name tasks with the option include (comma-separated)"


class SkillsBench(Benchmark):
    """SkillsBench as benchflow runs it: a dataset whose tasks are checked against its digests."""

    name = "skillsbench"
    title = "SkillsBench"
    pin = Pin(repository="benchflow-ai/benchflow", package="benchflow", version="0.7.11")
    needs = Needs(python=">=3.12", modules=("benchflow",), docker=True, parts=_PARTS)
    options: ClassVar = {"skills": "with-skill", "agent": "openhands", "sandbox": "docker", "include": ""}

    def needs_for(self, order: Order) -> Needs:
        """Containers, or the key of whoever runs them elsewhere."""
        sandbox = self.option(order, "sandbox")
        if sandbox == "docker":
            return self.needs
        if sandbox not in _CLOUDS:
            raise InputError(
                f"{self.name}: the sandbox {sandbox!r} is not known; there are docker, {', '.join(_CLOUDS)}"
            )
        return Needs(
            python=self.needs.python, modules=self.needs.modules, secrets=(_CLOUDS[sandbox],), parts=self.needs.parts
        )

    def render(self, order: Order) -> tuple[Job, ...]:
        """One command for each trial; the harness goes on by itself in a folder of jobs that is there."""
        if order.shards > 1:
            raise InputError(f"{self.name}: its scripts know no shards; {_PARTS}")
        if self.option(order, "skills") not in _MODES:
            raise InputError(f"{self.name}: skills is {' or '.join(_MODES)}, not {self.option(order, 'skills')!r}")
        return tuple(self._job(order, trial_folder(trial)) for trial in range(order.trials or self.trials))

    def _job(self, order: Order, name: str) -> Job:
        sandbox = self.option(order, "sandbox")
        chosen = [task for task in self.option(order, "include").split(",") if task]
        bench = str(order.interpreter.absolute().with_name("bench"))
        return Job(
            name=name,
            command=(
                *("bash", "run.sh", bench, "eval", "run", "-d", DATASET, "--agent", self.option(order, "agent")),
                *("--model", f"vllm/{order.agent.model}"),
                *("--agent-env", f"BENCHFLOW_PROVIDER_BASE_URL={order.agent.base_url}"),
                *("--sandbox", sandbox, "--skill-mode", self.option(order, "skills")),
                *("--concurrency", str(order.concurrency), "--jobs-dir", _JOBS),
                *(part for task in chosen for part in ("--include", task)),
            ),
            done=f"{_JOBS}/{_SUMMARY}",
            keys={"OPENAI_API_KEY": order.agent.endpoint},
            passed=(_CLOUDS[sandbox],) if sandbox in _CLOUDS else (),
            files={"run.sh": _SCRIPT},
            sources={_CACHE: order.folder(name) / _CACHE},
        )

    def parse(self, folder: Path) -> Collection:
        """The rollouts below a folder, of one way of working."""
        homes = _homes(folder)
        found = [_Rollout(home / _RESULT, folder) for home in homes]
        rollouts = [rollout for rollout in found if rollout.purpose != "reviewer"]
        if not rollouts:
            raise InputError(f"{folder}: has no {_RESULT} of a rollout; give the folder that benchflow wrote to")
        summaries = _summaries(folder, homes)
        mode = _only(rollouts, "skills", [rollout.mode for rollout in rollouts], folder)
        model = _only(rollouts, "models", [rollout.model for rollout in rollouts], folder)
        counted, replaced = _latest(rollouts)
        rows = [rollout.row(model) for rollout in counted]
        versions = {f"{name}@{version}" for name, version in (rollout.dataset for rollout in rollouts) if name}
        return self.collection(
            model,
            rows,
            drops=[
                *unscored(rows),
                *(
                    Gap(task=rollout.task, trial=rollout.trial, reason=f"{rollout.name} was tried again")
                    for rollout in replaced
                ),
            ],
            missing=_gaps(summaries, folder, rows),
            setting={
                "skills": mode,
                "tasks": len({row.task for row in rows}),
                "trials": len({row.trial for row in rows}),
                "agent": ", ".join(sorted({rollout.agent for rollout in rollouts})),
            },
            versions={"dataset": ", ".join(sorted(versions)) or "unknown"},
            warnings=_contradictions(summaries, folder, rows),
        )

    def measure(self, rows: Sequence[Trial]) -> tuple[Metric, ...]:
        """The mean reward of what was scored, and the two pass rates that the harness prints."""
        scored = [row for row in rows if row.passed is not None]
        passed = sum(bool(row.passed) for row in rows)
        return (
            Metric(
                name="mean reward",
                value=fmean(row.score or 0.0 for row in scored) if scored else None,
                definition="mean over the rollouts that were scored; one that an error ended is left out",
                units=len({row.task for row in scored}),
            ),
            Metric(
                name="pass rate",
                value=passed / len(rows) if rows else None,
                definition="share of rollouts with reward 1; one that an error ended is not passed",
                units=len({row.task for row in rows}),
            ),
            Metric(
                name="pass rate without errors",
                value=passed / len(scored) if scored else None,
                definition="share with reward 1 of the rollouts that were scored",
                units=len({row.task for row in scored}),
            ),
        )


class _Rollout:
    """One `result.json`."""

    def __init__(self, file: Path, folder: Path) -> None:
        document = read_json(file)
        self._document = document
        self.task = document.at("task_name").text()
        self.name = _text(document, "rollout_name") or file.parent.name
        self.purpose = _text(document, "purpose")
        self.trial = trial_of(file, folder)
        self.job = file.parent.parent
        self.mode = _text(document, "skill_mode") or "unknown"
        self.model = _text(document, "model").removeprefix("vllm/")
        self.agent = _text(document, "agent") or "unknown"
        self.dataset = (_text(document, "dataset_name"), _text(document, "dataset_version"))
        self.finished = _text(document, "finished_at")
        self.reward = self._reward()

    def _reward(self) -> float | None:
        rewards = self._document.maybe("rewards")
        reward = dict(rewards.fields()).get("reward") if rewards is not None else None
        return None if reward is None or reward.value is None else reward.share()

    @property
    def is_settled(self) -> bool:
        """Whether the harness would not try it again."""
        return self._document.has("rewards") or self._document.has("verifier_error")

    def row(self, model: str) -> Trial:
        """The rollout as a trial."""
        used = self._document.maybe("agent_result")
        told = (self._document.problem(name) for name in ("error", "verifier_error"))
        problems = [problem for problem in told if problem is not None]
        if self.reward is None and not problems:
            problems = ["no reward was given, and no error either"]
        return Trial(
            benchmark=SkillsBench.name,
            model=model,
            task=self.task,
            trial=self.trial,
            passed=None if self.reward is None else self.reward == 1.0,
            score=self.reward,
            steps=_count(self._document, "n_tool_calls"),
            prompt_tokens=_count(used, "n_input_tokens"),
            completion_tokens=_count(used, "n_output_tokens"),
            usd=used.at("cost_usd").number() if used is not None and used.has("cost_usd") else None,
            error="; ".join(problems) or None,
        )


def _only(rollouts: Sequence[_Rollout], what: str, values: Sequence[str], folder: Path) -> str:
    different = sorted(set(values))
    if len(different) > 1:
        places = ", ".join(
            f"{value} in {next(rollout.job for rollout, own in zip(rollouts, values, strict=True) if own == value)}"
            for value in different
        )
        raise InputError(
            f"{folder}: has results of several {what}, which are not one score: {places}; give one of them"
        )
    return different[0]


def _latest(rollouts: Sequence[_Rollout]) -> tuple[list[_Rollout], list[_Rollout]]:
    """The rollouts that count, and those that the harness tried again: the latest that is settled counts."""
    by_task: dict[tuple[int, str], list[_Rollout]] = defaultdict(list)
    for rollout in rollouts:
        by_task[rollout.trial, rollout.task].append(rollout)
    counted, replaced = [], []
    for (trial, task), tried in sorted(by_task.items()):
        if len({rollout.job for rollout in tried}) > 1:
            raise InputError(
                f"{tried[0].job} and {tried[1].job}: both have {task} as trial {trial}; "
                "give one run, or put runs into folders trial-0, trial-1 …"
            )
        *others, last = sorted(tried, key=lambda rollout: (rollout.is_settled, rollout.finished, rollout.name))
        counted.append(last)
        replaced += others
    return counted, replaced


def _homes(folder: Path) -> list[Path]:
    """The folders of rollouts; what lies deeper in one, such as what an agent left there, is no rollout."""
    files = result_files(folder, _RESULT, "benchflow")
    found = {file.parent for file in files if _CACHE not in file.relative_to(folder).parts}
    return sorted(home for home in found if found.isdisjoint(home.parents))


def _summaries(folder: Path, homes: Sequence[Path]) -> list[Found]:
    """Of each job one; the harness writes a copy into the folder of jobs."""
    files = [file for file in sorted(folder.rglob(_SUMMARY)) if _CACHE not in file.relative_to(folder).parts]
    found = [read_json(file) for file in files if set(homes).isdisjoint(file.parents)]
    names = {(trial_of(item.file, folder), _text(item, "job_name")): item for item in found}
    return list(names.values())


def _gaps(summaries: Sequence[Found], folder: Path, rows: Sequence[Trial]) -> Iterator[Gap]:
    for summary in summaries:
        trial = trial_of(summary.file, folder)
        lacking = summary.at("total").whole() - sum(row.trial == trial for row in rows)
        if lacking > 0:
            yield Gap(task="*", trial=trial, reason=f"{lacking} rollouts that summary.json counts have no result.json")


def _contradictions(summaries: Sequence[Found], folder: Path, rows: Sequence[Trial]) -> Iterator[str]:
    for summary in summaries:
        if summary.has("mean_reward"):
            said = summary.at("mean_reward").number()
            own = [row.score for row in rows if row.trial == trial_of(summary.file, folder) and row.score is not None]
            if not own or abs(fmean(own) - said) > 1e-6:
                here = fmean(own) if own else "nothing"
                yield f"{summary.file.name}: says mean_reward {said}, the rollouts say {here}"


def _text(document: Found, name: str) -> str:
    return document.at(name).text() if document.has(name) else ""


def _count(document: Found | None, name: str) -> int | None:
    return document.at(name).whole() if document is not None and document.has(name) else None
