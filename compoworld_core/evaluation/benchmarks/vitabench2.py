"""VitaBench 2.0: long acquaintances with users whose tastes have to be remembered, over subtasks in a row."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from compoworld_core.errors import InputError
from compoworld_core.evaluation.benchmark import Benchmark
from compoworld_core.evaluation.collection import Collection, Gap, Metric
from compoworld_core.evaluation.order import Job, Needs, Order, Pin, Served
from compoworld_core.evaluation.repeats import average, outcomes, pass_ats, pass_hats
from compoworld_core.evaluation.results import Found, read_json
from compoworld_core.evaluation.roles import Roles
from compoworld_core.evaluation.simulations import Effort, Simulations, key_of, one_run, simulation_files, together
from compoworld_core.evaluation.trial import Trial

_DOMAIN: Final = "personalization"
_DATA: Final = f"data/vita/domains/{_DOMAIN}/tasks.json"
_EMBEDDING: Final = ("VITA_EMBEDDING_URL", "VITA_EMBEDDING_KEY", "VITA_EMBEDDING_MODEL")
_REWARD: Final = re.compile(r"subtask_(\d+)_reward")
_COUNT: Final = re.compile(r"with (\d+) subtasks")
_RESULTS: Final = "results.json"
_MODELS: Final = "models.yaml"


class VitaBench2(Benchmark):
    """The domain `personalization`; a unit is a subtask of a user."""

    name = "vitabench2"
    title = "VitaBench 2.0"
    pin = Pin(
        repository="meituan-longcat/VitaBench-2.0", commit="f60169e89f30499cb7883f3dad76bd03facc908d", package="vita"
    )
    needs = Needs(python=">=3.10", modules=("vita.memory",), files=(_DATA,), user=True, judge=True)
    options: ClassVar = {"memory": "full_context", "language": "chinese", "max_steps": "50"}
    trials = 4
    unit = "subtask"

    def needs_for(self, order: Order) -> Needs:
        """Retrieval needs a model of embeddings, which only the environment can name."""
        retrieves = self.option(order, "memory").startswith("rag")
        return Needs.model_validate(self.needs.model_dump() | {"secrets": _EMBEDDING if retrieves else ()})

    def render(self, order: Order) -> tuple[Job, ...]:
        """One run for each shard; the harness asks whether to go on with one that was cut short."""
        names = Roles.of(order)
        if names.renamed:
            raise InputError(
                f"{self.name}: the harness knows a model by its name alone, and {names.renamed[0].split(' (')[0]!r} "
                "stands for two different ones; have one of them served by another name"
            )
        jobs = []
        for shard, tasks in enumerate(_shards(order)):
            name = f"shard-{shard:03d}"
            command = (
                "vita", "run", "--domain", _DOMAIN, "--memory-type", self.option(order, "memory"),
                "--agent-llm", names.agent, "--user-llm", names.user, "--evaluator-llm", names.judge,
                "--num-trials", str(order.trials or self.trials), "--max-steps", self.option(order, "max_steps"),
                "--language", self.option(order, "language"), "--max-concurrency", str(order.concurrency),
                *tasks, "--log-level", "INFO", "--save-to", str(order.folder(name) / _RESULTS),
            )  # fmt: skip
            jobs.append(
                Job(
                    name=name,
                    command=command,
                    done=_RESULTS,
                    environment={"VITA_MODEL_CONFIG_PATH": str(order.folder(name) / _MODELS)},
                    keys=names.keys,
                    passed=_EMBEDDING,
                    files={_MODELS: json.dumps({"models": names.entries(_entry)}, indent=2)},
                    answers="y\ny\n",  # go on, also where the configuration differs: its secrets were stripped
                )
            )
        return tuple(jobs)

    def parse(self, folder: Path) -> Collection:
        """Read the result files; trials without a result count as failed, as the harness has it."""
        files = [Simulations.read(file, (_DOMAIN,)) for file in simulation_files(folder, "vita")]
        model, trials = one_run(files, folder)
        rows: list[Trial] = []
        drops: list[Gap] = []
        missing: list[Gap] = []
        for file in files:
            users = _Users.of(self.name, model, file)
            rows += users.rows()
            drops += users.drops
            missing += users.missing
        return self.collection(
            model,
            rows,
            drops=drops,
            missing=missing,
            setting={
                "users": len({user for file in files for user in file.tasks}),
                "subtasks": len({row.task for row in rows}),
                "trials": trials,
                "user": together(file.user for file in files),
            },
            warnings=() if trials > 1 else ("the harness itself prints figures of subtasks for several trials only",),
        )

    def measure(self, rows: Sequence[Trial]) -> tuple[Metric, ...]:
        """Avg@n over subtasks, and after it pass@k and pass^k."""
        units = list(outcomes(rows).values())
        most = max((len(tried) for tried in units), default=self.trials)
        return average(units, most, self.unit), *pass_ats(units, self.unit), *pass_hats(units, self.unit)


class _Users:
    """The subtasks of a file's users.

    The harness knows of as many subtasks of a user as any trial has a reward for. What it thereby leaves out (subtasks
    that no trial came to, users without any result) is a drop; a trial without a result is missing and counts 0.
    """

    def __init__(self, benchmark: str, model: str, file: Simulations) -> None:
        self._row: dict[str, Any] = {"benchmark": benchmark, "model": model, "domain": _DOMAIN}
        self._file = file
        self._rewards: dict[tuple[str, int], dict[int, bool]] = {}
        self._efforts: dict[tuple[str, int], Effort] = {}
        self._problems: dict[tuple[str, int], str] = {}
        self._stated: dict[str, int] = {}
        self.drops: list[Gap] = []
        self.missing: list[Gap] = []

    @classmethod
    def of(cls, benchmark: str, model: str, file: Simulations) -> _Users:
        """Read the simulations of a file."""
        users = cls(benchmark, model, file)
        for simulation in file.items:
            users._add(simulation)
        return users

    def rows(self) -> list[Trial]:
        """Each subtask that the harness knows of, in each trial; notes drops and what is missing on the way."""
        rows = []
        for user in self._file.tasks:
            known = 1 + max((subtask for name, subtask in self._rewards if name == user), default=-1)
            self.drops += self._left_out(user, known)
            for trial in range(self._file.trials):
                if known and all(trial not in self._rewards.get((user, subtask), {}) for subtask in range(known)):
                    self.missing.append(Gap(task=user, trial=trial, reason=self._why(user, trial)))
                rows += [self._trial(user, subtask, trial) for subtask in range(known)]
        return rows

    def _add(self, simulation: Found) -> None:
        user, trial = key_of(simulation)
        if (user, trial) in self._efforts or (user, trial) in self._problems:
            raise simulation.wrong(f"user {user!r} has trial {trial} twice; collect one run at a time")
        try:
            info = simulation.at("reward_info").at("info")
            if stated := info.maybe("num_subtasks"):
                self._stated[user] = max(stated.whole(), self._stated.get(user, 0))
            found = info.maybe("subtask_rewards")
            rewards = {} if found is None else dict(_rewards(found))
            effort = Effort.of(simulation)
        except InputError as error:
            self._problems[user, trial] = str(error)
            return
        for subtask, reward in rewards.items():
            self._rewards.setdefault((user, subtask), {})[trial] = reward == 1
        if rewards:
            self._efforts[user, trial] = effort
        else:
            self._problems[user, trial] = "no subtask has a reward"

    def _trial(self, user: str, subtask: int, trial: int) -> Trial:
        passed = self._rewards[user, subtask].get(trial) if (user, subtask) in self._rewards else None
        effort = self._efforts.get((user, trial)) if subtask == 0 else None  # that of all its subtasks, counted once
        return Trial(
            **self._row,
            task=f"{user}/{subtask}",
            trial=trial,
            passed=bool(passed),
            score=float(bool(passed)),
            steps=effort.steps if effort else None,
            prompt_tokens=effort.prompt_tokens if effort else None,
            completion_tokens=effort.completion_tokens if effort else None,
            usd=effort.usd if effort else None,
            error=self._why(user, trial) if passed is None else None,
        )

    def _why(self, user: str, trial: int) -> str:
        absent = "has no reward in this trial" if (user, trial) in self._efforts else "the harness stored no result"
        return f"counts 0: {self._problems.get((user, trial), absent)}"

    def _left_out(self, user: str, known: int) -> Iterator[Gap]:
        stated = self._stated.get(user) or _count(self._file, user)
        if known == 0:
            many = "its subtasks are" if stated is None else f"its {stated} subtasks are"
            yield Gap(task=user, reason=f"no trial has a result, so {many} left out of the figures")
        for subtask in range(known, stated or 0):
            if known:
                yield Gap(task=f"{user}/{subtask}", reason="no trial came to it, so it is left out of the figures")


def _rewards(found: Found) -> Iterator[tuple[int, float]]:
    for name, reward in found.fields():
        if matched := _REWARD.fullmatch(name):
            yield int(matched[1]), reward.share()


def _count(file: Simulations, user: str) -> int | None:
    """How many subtasks a user has by the words that the harness puts in place of the task."""
    matched = _COUNT.search(file.instructions.get(user, ""))
    return int(matched[1]) if matched else None


def _entry(served: Served, variable: str) -> Mapping[str, Any]:
    """The harness puts the key in place of `${…}` itself."""
    found: dict[str, Any] = {
        "base_url": served.base_url,
        "api_key": f"${{{variable}}}",
        "temperature": 0.0 if served.temperature is None else served.temperature,
    }
    if served.top_p is not None:
        found["top_p"] = served.top_p
    if served.max_tokens is not None:
        found["max_tokens"] = served.max_tokens
    return found


def _shards(order: Order) -> list[tuple[str, ...]]:
    if order.shards == 1:
        return [() if order.limit is None else ("--num-tasks", str(order.limit))]
    users = [task.at("id").text() for task in read_json(order.harness / _DATA).items()][: order.limit]
    return [("--task-ids", *users[shard :: order.shards]) for shard in range(min(order.shards, len(users)))]
