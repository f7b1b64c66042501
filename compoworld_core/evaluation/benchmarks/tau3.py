"""τ³-Banking: customers of a bank call, and the agent has to find the rules in a knowledge base before it acts."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar, Final

from compoworld_core.errors import InputError
from compoworld_core.evaluation.benchmark import Benchmark
from compoworld_core.evaluation.collection import Collection, Metric, unscored
from compoworld_core.evaluation.order import Job, Needs, Order, Pin, Served
from compoworld_core.evaluation.repeats import outcomes, pass_hats
from compoworld_core.evaluation.results import Found, read_json, result_files
from compoworld_core.evaluation.simulations import Effort, Simulations, key_of, one_run, together
from compoworld_core.evaluation.trial import Trial

_DOMAIN: Final = "banking_knowledge"
_DATA: Final = f"data/tau2/domains/{_DOMAIN}"
_PASSED: Final = 1 - 1e-6
"""Rewards from here on are a pass, in the harness's own words."""

_INFRASTRUCTURE: Final = "infrastructure_error"
"""Simulations that ended so are left out of the harness's figures."""


class Tau3Banking(Benchmark):
    """The domain `banking_knowledge` of τ²-bench, whose third edition is called τ³."""

    name = "tau3-banking"
    title = "τ³-Banking"
    pin = Pin(
        repository="sierra-research/tau2-bench",
        commit="fc0055dc4e0a316c3f83133267fbd6faaa770992",
        package="tau2",
        version="1.0.1",
    )
    needs = Needs(
        python=">=3.12,<3.14",
        modules=("tau2",),
        files=(f"{_DATA}/tasks", f"{_DATA}/documents", f"{_DATA}/db.json"),
        user=True,
    )
    options: ClassVar = {"retrieval": "bm25"}
    trials = 3

    def render(self, order: Order) -> tuple[Job, ...]:
        """One run for each shard; the harness goes on by itself where one was cut short."""
        if order.user is None:
            raise InputError(f"{self.name}: a model has to play the user")
        return tuple(
            Job(
                name=name,
                command=self._command(order, order.user, tasks, order.folder(name) / "run"),
                done="run/results.json",
                environment={
                    "TAU2_DATA_DIR": str(order.harness.absolute() / "data"),
                    "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else it fetches prices from the network
                },
                keys={"OPENAI_API_KEY": order.agent.endpoint}
                | ({} if _share_key(order) else {"LITELLM_PROXY_API_KEY": order.user.endpoint}),
            )
            for name, tasks in _shards(order)
        )

    def _command(self, order: Order, user: Served, tasks: tuple[str, ...], save_to: Path) -> tuple[str, ...]:
        return (
            "tau2", "run", "--domain", _DOMAIN, "--retrieval-config", self.option(order, "retrieval"),
            "--agent-llm", f"openai/{order.agent.model}", "--agent-llm-args", _arguments(order.agent),
            "--user-llm", f"{'openai' if _share_key(order) else 'litellm_proxy'}/{user.model}",
            "--user-llm-args", _arguments(user), "--num-trials", str(order.trials or self.trials),
            "--max-concurrency", str(order.concurrency), *tasks, "--auto-resume", "--save-to", str(save_to),
        )  # fmt: skip

    def parse(self, folder: Path) -> Collection:
        """Read `results.json`, of one run or of several."""
        files = [Simulations.read(file, (_DOMAIN,)) for file in result_files(folder, "results.json", "tau2")]
        model, trials = one_run(files, folder)
        rows = [self._row(model, item) for file in files for item in file.items]
        return self.collection(
            model,
            rows,
            drops=unscored(rows),
            missing=[gap for file in files for gap in file.missing(rows)],
            setting={
                "tasks": len({task for file in files for task in file.tasks}),
                "trials": trials,
                "retrieval": together(_retrieval(file) for file in files),
                "user": together(file.user for file in files),
            },
        )

    def measure(self, rows: Sequence[Trial]) -> tuple[Metric, ...]:
        """pass^1, and after it pass^k up to the fewest trials of a task."""
        return pass_hats(list(outcomes(rows).values()))

    def _row(self, model: str, simulation: Found) -> Trial:
        task, trial = key_of(simulation)
        row: dict[str, Any] = {
            "benchmark": self.name, "model": model, "task": task, "trial": trial, "domain": _DOMAIN,
        }  # fmt: skip
        try:
            ended = simulation.at("termination_reason").text()
            if ended == _INFRASTRUCTURE:
                return Trial(**row, passed=None, score=None, error=f"{_INFRASTRUCTURE}{_cause(simulation)}")
            info = simulation.at("reward_info")
            reward = info.at("reward").share()
            effort = Effort.of(simulation)
            criteria = tuple(part.number() >= _PASSED for _, part in _parts(info))
        except InputError as error:
            return Trial(**row, passed=None, score=None, error=str(error))
        return Trial(
            **row,
            passed=reward >= _PASSED,
            score=reward,
            criteria=criteria,
            steps=effort.steps,
            prompt_tokens=effort.prompt_tokens,
            completion_tokens=effort.completion_tokens,
            usd=effort.usd,
            error=None if ended in ("user_stop", "agent_stop") else ended,
        )


def _retrieval(file: Simulations) -> str:
    told = file.info.maybe("retrieval_config")
    return "unknown" if told is None else told.text()


def _parts(info: Found) -> list[tuple[str, Found]]:
    parts = info.maybe("reward_breakdown")
    return [] if parts is None else list(parts.fields())


def _cause(simulation: Found) -> str:
    info = simulation.maybe("info")
    cause = info.maybe("error") if info is not None else None
    return "" if cause is None else f": {cause.value}"


def _arguments(served: Served) -> str:
    found = {"api_base": served.base_url, "temperature": 0.0 if served.temperature is None else served.temperature}
    if served.top_p is not None:
        found["top_p"] = served.top_p
    if served.max_tokens is not None:
        found["max_tokens"] = served.max_tokens
    return json.dumps(found)


def _share_key(order: Order) -> bool:
    """Whether one variable can hold the key of agent and user; else the user is reached by another provider's name."""
    return order.user is not None and order.user.endpoint.key() == order.agent.endpoint.key()


def _shards(order: Order) -> list[tuple[str, tuple[str, ...]]]:
    """Names of jobs, and the options that say which tasks are theirs."""
    if order.shards == 1:
        return [("shard-000", () if order.limit is None else ("--num-tasks", str(order.limit)))]
    files = sorted((order.harness / _DATA / "tasks").glob("task_*.json"))[: order.limit]
    known = [read_json(file).at("id").text() for file in files]
    count = min(order.shards, len(known))
    return [(f"shard-{shard:03d}", ("--task-ids", *known[shard :: order.shards])) for shard in range(count)]
