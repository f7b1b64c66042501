"""A stage as a container runs it: one shard, the merge of all shards, or all of it.

    python -m jobs.<stage> --config C --store S --plan                  print the shards' numbers as a JSON list
    python -m jobs.<stage> --config C --store S --shard K --shards N    make one shard
    python -m jobs.<stage> --config C --store S --merge                 commit the stage once all shards are
    python -m jobs.<stage> --config C --store S                         all of it in this process

Exit codes: 0 done (or done before), 1 a bug, 2 bad input, 75 try again later, 143 told to stop. A job may be killed and
repeated at any time, and several may make the same shard: one of them is kept.
"""

from __future__ import annotations

import argparse
import json
import signal
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NoReturn

from compoworld_core.errors import CompoWorldError, InputError
from compoworld_core.pipeline.config import load_config
from compoworld_core.pipeline.progress import Quiet
from compoworld_core.pipeline.run import publish_report
from compoworld_core.pipeline.runner import committed, is_shard_committed, merge_stage, resolve, run_shard, run_stage
from compoworld_core.pipeline.stage import StagePlan
from compoworld_core.pipeline.stages import GRAPH
from compoworld_core.pipeline.workers import Workers
from compoworld_core.storage import Store, open_store


def main(stage: str) -> NoReturn:
    """Run a stage's job from the command line, and exit."""
    signal.signal(signal.SIGTERM, _stop)  # as a container's first process, it would otherwise be deaf to it
    try:
        _run(stage, sys.argv[1:])
    except CompoWorldError as error:
        sys.stderr.write(f"jobs.{stage}: {error}\n")
        sys.exit(error.exit_code)
    except Exception:
        traceback.print_exc()
        sys.exit(CompoWorldError.exit_code)
    sys.exit(0)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    sys.exit(128 + number)


def _run(stage: str, arguments: Sequence[str]) -> None:
    module = f"jobs.{stage.replace('-', '_')}"
    parser = argparse.ArgumentParser(prog=f"python -m {module}", description=f"Run the stage {stage}.")
    parser.add_argument("--config", type=Path, help="YAML file with the configuration")
    parser.add_argument("--store", help="where datasets lie: a path, file:// or s3://")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--plan", action="store_true", help="print the shards' numbers as a JSON list")
    what.add_argument("--shard", type=int, help="number of the shard to make")
    what.add_argument("--merge", action="store_true", help="commit the stage once all its shards are")
    parser.add_argument("--shards", type=int, help="how many shards there are, as --plan says")
    given = parser.parse_args(arguments)
    config = load_config(given.config, flags={"store": given.store})
    store = open_store(config.store)
    plan = resolve(store, GRAPH, config.stages, stage)
    if given.plan:
        sys.stdout.write(json.dumps(list(range(plan.shards))) + "\n")
    elif given.shard is not None:
        _make_shard(store, plan, given.shard, given.shards)
    elif given.merge:
        merge_stage(store, plan)
    else:
        with Workers(1) as workers:
            run_stage(store, plan, workers, Quiet())
    if stage == "report" and committed(store, plan):
        publish_report(store, plan.outputs["reports"])


def _make_shard(store: Store, plan: StagePlan, shard: int, shards: int | None) -> None:
    if shards != plan.shards or not 0 <= shard < plan.shards:
        raise InputError(
            f"--shard {shard} --shards {shards}: the plan of this configuration and these inputs has {plan.shards} "
            f"shards, 0 to {plan.shards - 1}; ask --plan"
        )
    if not is_shard_committed(store, plan, shard):
        run_shard(store, plan, shard)
