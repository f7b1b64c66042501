"""The first job of a workflow: says which stages run and with which seed, and refuses what cannot work before it costs.

    python -m jobs.begin --config C --store S --out DIR [--from A] [--until B] [--only C] [--gpus true]

The folder gets a file for each answer: `run-<stage>` holds true or false, `record` whether the run is complete enough
to be recorded, `seed` the seed of its tasks, `benchmarks` which benchmarks of others are run on each model of the run,
as a JSON list, and `run-benchmarks` whether there are any.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from pydantic import BaseModel

from compoworld_core.errors import InputError
from compoworld_core.evaluation.benchmarks import benchmarks
from compoworld_core.llm.config import LlmConfig
from compoworld_core.pipeline.config import load_config
from compoworld_core.pipeline.graph import StageGraph
from compoworld_core.pipeline.stages import GRAPH
from compoworld_core.storage import open_store
from jobs.process import run_process, whole
from jobs.telemetry import Telemetry


def work(telemetry: Telemetry) -> None:
    """Answer, and write the answers down."""
    parser = argparse.ArgumentParser(prog="python -m jobs.begin", description="Say which stages of a workflow run.")
    parser.add_argument("--config", type=Path, help="YAML file with the configuration")
    parser.add_argument("--store", help="where datasets lie: a path, file:// or s3://")
    parser.add_argument("--from", dest="start", default="", help="the first stage")
    parser.add_argument("--until", dest="end", default="", help="the last stage")
    parser.add_argument("--only", default="", help="the only stage")
    parser.add_argument("--gpus", choices=("true", "false"), default="false", help="whether there are GPUs to train on")
    parser.add_argument("--benchmarks", default="", help="benchmarks to run, separated by commas")
    parser.add_argument("--user", default="", help="who plays the user in them: a name in llm.models")
    parser.add_argument("--judge", default="", help="who judges them: a name in llm.models")
    parser.add_argument("--limit", type=whole, default="", help="how many of their tasks")
    parser.add_argument("--scheduled", default="", help="when a nightly run was due, which decides its seed")
    parser.add_argument("--out", type=Path, required=True, help="folder for the answers")
    given = parser.parse_args(sys.argv[1:])
    config = load_config(given.config, flags={"store": given.store})
    open_store(config.store)
    for model in config.llm.models.values():
        for endpoint in model.endpoints:
            endpoint.key()
    chosen = choose(GRAPH, config.stages, given.start, given.end, given.only, has_gpus=given.gpus == "true")
    data = tuple(name for name in GRAPH.order if not GRAPH[name].extra)
    names = wanted_benchmarks(
        given.benchmarks,
        config.llm,
        has_models=all(name in chosen for name in GRAPH.order),
        user=given.user,
        judge=given.judge,
        has_limit=given.limit is not None,
    )
    if given.benchmarks and not names:
        telemetry.log("no benchmarks: this run does not make the models that they evaluate")
    answers = {
        **{f"run-{name}": json.dumps(name in chosen) for name in GRAPH.order},
        "record": json.dumps(set(data) <= set(chosen)),
        "seed": seed_of(given.scheduled),
        "benchmarks": json.dumps(names),
        "run-benchmarks": json.dumps(bool(names)),
    }
    given.out.mkdir(parents=True, exist_ok=True)
    for name, answer in answers.items():
        (given.out / name).write_text(answer, encoding="utf-8")
    telemetry.log("the workflow begins", stages=chosen, seed=answers["seed"], store=config.store)


def choose(
    graph: StageGraph, configs: Mapping[str, BaseModel], start: str, end: str, only: str, *, has_gpus: bool
) -> tuple[str, ...]:
    """The stages to run.

    Raises:
        InputError: There are no such stages, or one that runs reads what needs GPUs to be made.
    """
    if only and (start or end):
        raise InputError(f"--only {only}: goes neither with --from nor with --until")
    wanted = graph.between(only or start, only or end)
    chosen = tuple(name for name in wanted if has_gpus or not graph[name].extra)
    left_out = set(wanted) - set(chosen)
    for name in chosen:
        for item in graph[name].needs(configs[name]):
            if (source := graph.producer(item.name)) in left_out:
                raise InputError(
                    f"{name} reads {item.name}, which {source} makes, and that needs GPUs: submit with gpus=true, or "
                    f"leave it out of the section {name}"
                )
    return chosen


def wanted_benchmarks(
    text: str, llm: LlmConfig, *, has_models: bool, user: str, judge: str, has_limit: bool
) -> list[str]:
    """The benchmarks to run; none where there is nothing to evaluate.

    Args:
        text: Names, separated by commas; `all` stands for all of them.
        llm: Models that may take part.
        has_models: Whether the run makes the models that are evaluated.
        user: Who plays the user; empty if nobody does.
        judge: Who judges; likewise.
        has_limit: Whether each is to run a part of its tasks only.

    Raises:
        InputError: There is no such benchmark or no such model, or a benchmark cannot be run like this.
    """
    if not text:
        return []
    names = list(benchmarks()) if text == "all" else text.split(",")
    if unknown := sorted(set(names) - benchmarks().keys()):
        raise InputError(f"--benchmarks: there is no {unknown[0]}; there are {', '.join(benchmarks())}")
    if not has_models:
        return []
    for role, name in (("user", user), ("judge", judge)):
        if name and name not in llm.models:
            raise InputError(
                f"--{role} {name}: there is no such model in llm.models; there are {', '.join(llm.models)}"
            )
    problems = [
        f"{name}: {problem}"
        for name in names
        for problem in benchmarks()[name].needs.unmet(has_user=bool(user), has_judge=bool(judge), has_limit=has_limit)
    ]
    if problems:
        raise InputError("--benchmarks:" + "".join(f"\n  {problem}" for problem in problems))
    return names


def seed_of(scheduled: str) -> str:
    """The seed of a run that was due at a moment (RFC 3339): its date, as 20261130; empty where there is no moment.

    Raises:
        InputError: It is no moment.
    """
    if not scheduled:
        return os.environ.get("COMPOWORLD_TASKS__SEED", "")
    try:
        return datetime.fromisoformat(scheduled).strftime("%Y%m%d")
    except ValueError:
        raise InputError(f"--scheduled {scheduled}: is no moment, such as 2026-11-30T02:00:00Z") from None


if __name__ == "__main__":
    run_process("begin", work)
