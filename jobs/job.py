"""A stage as a container runs it: one shard, the merge of all shards, or all of it.

    python -m jobs.<stage> --config C --store S --plan                print which shards are to be made
    python -m jobs.<stage> --config C --store S --shard K --key KEY   make one shard
    python -m jobs.<stage> --config C --store S --merge --key KEY     commit the stage once all shards are
    python -m jobs.<stage> --config C --store S                       all of it in this process

A plan is a JSON list of ranges, such as `[{"first": 0, "count": 500}, {"first": 500, "count": 20}]`, of the shards that
are not committed yet; a stage that is done has an empty one. With `--out` the folder gets the files `shards` and `key`.
The key stands for configuration, code and inputs: a job whose own is another refuses to work for that plan.

A job may be killed and repeated at any time, and several may make the same shard: one of them is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NoReturn

from compoworld_core.errors import InputError
from compoworld_core.pipeline.config import load_config
from compoworld_core.pipeline.progress import Quiet
from compoworld_core.pipeline.run import publish_report
from compoworld_core.pipeline.runner import (
    attend_shard,
    committed,
    is_shard_committed,
    merge_stage,
    resolve,
    run_shard,
    run_stage,
)
from compoworld_core.pipeline.stage import StagePlan
from compoworld_core.pipeline.stages import GRAPH
from compoworld_core.pipeline.workers import Workers
from compoworld_core.storage import Store, open_store, read_sidecar, shard_commit
from compoworld_core.training.launch import node_rank
from jobs.process import run_process
from jobs.telemetry import Telemetry

FAN_OUT: Final = 500
"""Most children of a node in a workflow: each is a part of its status, which may not grow beyond a megabyte."""


def main(stage: str) -> NoReturn:
    """Run a stage's job from the command line, and exit."""
    run_process(stage, lambda telemetry: _run(stage, sys.argv[1:], telemetry))


def _run(stage: str, arguments: Sequence[str], telemetry: Telemetry) -> None:
    given = _parser(stage).parse_args(arguments)
    config = load_config(given.config, flags={"store": given.store})
    store = open_store(config.store)
    plan = resolve(store, GRAPH, config.stages, stage)
    if given.key not in (None, plan.key):
        raise InputError(
            f"--key {given.key}: configuration, code and inputs of this job come to {plan.key}; were they changed, or "
            "the image exchanged, after the plan was made? Run the workflow again"
        )
    if given.plan:
        _tell_plan(store, plan, given.fan_out, given.out)
    elif given.shard is not None:
        telemetry.about(shard=given.shard)
        _make_shard(store, plan, given.shard, telemetry)
    elif given.merge:
        merge_stage(store, plan)
    else:
        with Workers(1) as workers:
            run_stage(store, plan, workers, Quiet())
    if not given.plan and given.shard is None:
        _tell_rows(store, plan, telemetry)
        if stage == "report":
            publish_report(store, plan.outputs["reports"])


def _parser(stage: str) -> argparse.ArgumentParser:
    module = f"jobs.{stage.replace('-', '_')}"
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=f"Run the stage {stage}.")
    parser.add_argument("--config", type=Path, help="YAML file with the configuration")
    parser.add_argument("--store", help="where datasets lie: a path, file:// or s3://")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--plan", action="store_true", help="print which shards are to be made, as ranges in JSON")
    what.add_argument("--shard", type=int, help="number of the shard to make")
    what.add_argument("--merge", action="store_true", help="commit the stage once all its shards are")
    parser.add_argument("--key", help="the key that --plan told")
    parser.add_argument("--fan-out", type=int, default=FAN_OUT, help="most shards of a range")
    parser.add_argument("--out", type=Path, help="folder for the plan's files")
    return parser


def ranges(shards: Iterable[int], most: int) -> list[dict[str, int]]:
    """Ascending numbers as ranges of at most so many that follow each other."""
    found: list[dict[str, int]] = []
    for number in shards:
        last = found[-1] if found else None
        if last and last["first"] + last["count"] == number and last["count"] < most:
            last["count"] += 1
        else:
            found.append({"first": number, "count": 1})
    return found


def _tell_plan(store: Store, plan: StagePlan, most: int, out: Path | None) -> None:
    is_done = committed(store, plan) is not None
    missing = () if is_done else (i for i in range(plan.shards) if not is_shard_committed(store, plan, i))
    text = json.dumps(ranges(missing, most))
    sys.stdout.write(text + "\n")
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "shards").write_text(text, encoding="utf-8")
        (out / "key").write_text(plan.key, encoding="utf-8")


def _make_shard(store: Store, plan: StagePlan, shard: int, telemetry: Telemetry) -> None:
    if not 0 <= shard < plan.shards:
        raise InputError(
            f"--shard {shard}: the plan of this configuration and these inputs has {plan.shards} shards, 0 to "
            f"{plan.shards - 1}; ask --plan"
        )
    if not is_shard_committed(store, plan, shard):
        layout = getattr(plan.config, "layout", None)  # of a stage that trains
        rank = 0 if layout is None else node_rank(layout, os.environ)
        telemetry.about(node=rank)
        if rank:
            attend_shard(store, plan, shard)
            return
        run_shard(store, plan, shard)
    commits = {name: shard_commit(store, location, shard) for name, location in plan.outputs.items()}
    rows = {name: commit.rows for name, commit in commits.items() if commit is not None}
    telemetry.log("the shard is committed", rows=rows)
    for name, count in rows.items():
        telemetry.measure("compoworld_rows", count, dataset=name)
    first = plan.stage.outputs[0].name  # all of a stage's sidecars say the same
    if (commit := commits[first]) is not None:
        sidecar = read_sidecar(store, plan.outputs[first], commit)
        telemetry.measure("compoworld_work_seconds", sidecar.get("seconds", 0.0))
        telemetry.spent(sidecar.get("spend", ()))


def _tell_rows(store: Store, plan: StagePlan, telemetry: Telemetry) -> None:
    commits = committed(store, plan) or {}
    rows = {name: commit.rows for name, commit in commits.items()}
    telemetry.log("the stage is committed", rows=rows, digests={name: item.digest for name, item in commits.items()})
    for name, count in rows.items():
        telemetry.measure("compoworld_rows", count, dataset=name)
