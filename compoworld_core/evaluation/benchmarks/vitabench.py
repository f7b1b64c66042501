"""VitaBench: errands in a city (delivery, shops, travel, and all of them at once), judged rubric by rubric."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from compoworld_core.errors import InputError
from compoworld_core.evaluation.benchmark import Benchmark
from compoworld_core.evaluation.collection import Collection, Metric, unscored
from compoworld_core.evaluation.order import Job, Needs, Order, Pin, Served
from compoworld_core.evaluation.repeats import average, outcomes, pass_ats, pass_hats
from compoworld_core.evaluation.results import Found, read_json
from compoworld_core.evaluation.roles import Roles
from compoworld_core.evaluation.simulations import Effort, Simulations, key_of, one_run, simulation_files, together
from compoworld_core.evaluation.trial import Trial

_DOMAINS: Final = {
    "delivery": "delivery",
    "instore": "instore",
    "ota": "ota",
    "cross": "delivery,instore,ota",
}
"""The parts, and what the harness calls them."""

_FOLDERS: Final = {"cross": "cross_domain"}
_FILES: Final = {"english": "tasks_en.json", "chinese": "tasks.json"}
RESULTS: Final = "results.json"


class VitaBench(Benchmark):
    """The first VitaBench: 100 tasks in each of its four parts."""

    name = "vitabench"
    title = "VitaBench"
    pin = Pin(repository="meituan-longcat/vitabench", commit="96f3b8529d8ea38d330de2405af7e32a1454f6cd", package="vita")
    needs = Needs(python=">=3.10", modules=("vita",), user=True, judge=True)
    options: ClassVar = {"language": "english", "domains": "delivery,instore,ota,cross"}
    trials = 4

    def needs_for(self, order: Order) -> Needs:
        """The data of the parts that shall be run."""
        files = tuple(str(_data(self, order, part)) for part in _parts(self, order))
        return Needs(python=">=3.10", modules=("vita",), user=True, judge=True, files=files)

    def render(self, order: Order) -> tuple[Job, ...]:
        """One run for each part and shard; the harness asks whether to go on with one that was cut short."""
        names = Roles.of(order)
        jobs = []
        for part in _parts(self, order):
            for shard, tasks in enumerate(_shards(self, order, part)):
                name = f"{part}-{shard:03d}"
                command = (
                    "vita", "run", "--domain", _DOMAINS[part], "--agent-llm", names.agent, "--user-llm", names.user,
                    "--evaluator-llm", names.judge, "--num-trials", str(order.trials or self.trials),
                    "--language", self.option(order, "language"), "--max-concurrency", str(order.concurrency),
                    *tasks, "--log-level", "INFO", "--save-to", str(order.folder(name) / RESULTS),
                )  # fmt: skip
                jobs.append(
                    Job(
                        name=name,
                        command=command,
                        done=RESULTS,
                        keys=names.keys,
                        sealed={"VITA_MODEL_CONFIG_PATH": json.dumps({"models": names.entries(_entry)})},
                        answers="y\ny\n",  # go on, also where the configuration differs: its secrets were stripped
                    )
                )
        return tuple(jobs)

    def parse(self, folder: Path) -> Collection:
        """Read the result files, one of each part or more."""
        domains = set(_DOMAINS["cross"].split(","))
        files = [Simulations.read(file, domains) for file in simulation_files(folder, "vita")]
        model, trials = one_run(files, folder)
        rows = [self._row(model, file, item) for file in files for item in file.items]
        return self.collection(
            model,
            rows,
            drops=unscored(rows),
            missing=[gap for file in files for gap in file.missing(rows)],
            setting={
                "tasks": len({task for file in files for task in file.tasks}),
                "trials": trials,
                "domains": ",".join(sorted({domain for file in files for domain in file.tasks.values()})),
                "user": together(file.user for file in files),
            },
        )

    def measure(self, rows: Sequence[Trial]) -> tuple[Metric, ...]:
        """Avg@n, and after it pass@k and pass^k up to the fewest trials of a task."""
        tasks = list(outcomes(rows).values())
        most = max((len(tried) for tried in tasks), default=self.trials)
        return average(tasks, most), *pass_ats(tasks), *pass_hats(tasks)

    def _row(self, model: str, file: Simulations, simulation: Found) -> Trial:
        task, trial = key_of(simulation)
        row: dict[str, Any] = {
            "benchmark": self.name, "model": model, "task": task, "trial": trial, "domain": file.tasks.get(task, ""),
        }  # fmt: skip
        try:
            info = simulation.at("reward_info")
            reward = info.at("reward").share()
            rubrics = info.maybe("nl_rubrics")
            met = () if rubrics is None else tuple(rubric.at("met").flag() for rubric in rubrics.items())
            parts = info.maybe("reward_breakdown")
            partial = parts.maybe("NL_ASSERTION") if parts is not None else None
            ended = simulation.at("termination_reason").text()
            effort = Effort.of(simulation)
            score = reward if partial is None else partial.share()
        except InputError as error:
            return Trial(**row, passed=None, score=None, error=str(error))
        return Trial(
            **row,
            passed=reward == 1,
            score=score,
            criteria=met,
            steps=effort.steps,
            prompt_tokens=effort.prompt_tokens,
            completion_tokens=effort.completion_tokens,
            usd=effort.usd,
            error=None if ended in ("user_stop", "agent_stop") else ended,
        )


def _entry(served: Served, variable: str) -> Mapping[str, Any]:
    """The harness sends all fields of an entry to `base_url` as they are, and the headers besides."""
    found: dict[str, Any] = {
        "base_url": f"{served.base_url}/chat/completions",
        "temperature": 0.0 if served.temperature is None else served.temperature,
        "headers": {"Content-Type": "application/json", "Authorization": f"Bearer ${{{variable}}}"},
    }
    if served.top_p is not None:
        found["top_p"] = served.top_p
    if served.max_tokens is not None:
        found["max_tokens"] = served.max_tokens
    return found


def _parts(benchmark: VitaBench, order: Order) -> list[str]:
    parts = [part.strip() for part in benchmark.option(order, "domains").split(",")]
    if unknown := [part for part in parts if part not in _DOMAINS]:
        raise InputError(f"{benchmark.name}: option domains: {unknown[0]!r} is none of {', '.join(_DOMAINS)}")
    return parts


def _data(benchmark: VitaBench, order: Order, part: str) -> Path:
    language = benchmark.option(order, "language")
    if language not in _FILES:
        raise InputError(f"{benchmark.name}: option language: {language!r} is none of {', '.join(_FILES)}")
    return Path("data", "vita", "domains", _FOLDERS.get(part, part), _FILES[language])


def _shards(benchmark: VitaBench, order: Order, part: str) -> list[tuple[str, ...]]:
    if order.shards == 1:
        return [() if order.limit is None else ("--num-tasks", str(order.limit))]
    tasks = list(read_json(order.harness / _data(benchmark, order, part)).items())[: order.limit]
    known = [task.at("id").text() for task in tasks]
    return [("--task-ids", *known[shard :: order.shards]) for shard in range(min(order.shards, len(known)))]
