"""The last job of a complete run: records what it made, and makes it the latest if it reaches its gates.

    python -m jobs.record --config C --store S

Exit code 1 says that a gate was not reached; the run is recorded all the same.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from compoworld_core import __version__
from compoworld_core.errors import GateFailed, InputError
from compoworld_core.pipeline.benchmarking import noted_figures
from compoworld_core.pipeline.config import RunConfig, load_config
from compoworld_core.pipeline.run import explain_failure, own_page, record_run
from compoworld_core.pipeline.runner import StageResult, committed, resolve
from compoworld_core.pipeline.stage import StagePlan
from compoworld_core.pipeline.stages import GRAPH
from compoworld_core.storage import Store, open_store
from jobs.process import run_process
from jobs.telemetry import Telemetry


def work(telemetry: Telemetry) -> None:
    """Record the run."""
    parser = argparse.ArgumentParser(prog="python -m jobs.record", description="Record a run whose stages are done.")
    parser.add_argument("--config", type=Path, help="YAML file with the configuration")
    parser.add_argument("--store", help="where datasets lie: a path, file:// or s3://")
    given = parser.parse_args(sys.argv[1:])
    config = load_config(given.config, flags={"store": given.store})
    store = open_store(config.store)
    figures = noted_figures(store, os.environ.get("CW_RUN", ""))
    record = record_run(store, __version__, results(store, config), config.gates, figures)
    telemetry.log("the run is recorded", run_id=record.id, totals=record.totals.model_dump())
    for name, dataset in record.datasets.items():
        telemetry.measure("compoworld_rows", dataset.rows, dataset=name)
    if record.failed_gates:
        raise GateFailed(explain_failure(store, record, own_page(store, record.location("reports"))))


def results(store: Store, config: RunConfig) -> list[StageResult]:
    """What the run's stages have made; those that need more than the core libraries may be missing.

    Raises:
        InputError: A stage is not done.
    """
    found: list[StageResult] = []
    known: dict[str, StagePlan] = {}
    for name in GRAPH.order:
        try:
            plan = resolve(store, GRAPH, config.stages, name, known)
        except InputError:
            if GRAPH[name].extra:
                continue
            raise
        commits = committed(store, plan)
        if commits is not None:
            found.append(StageResult(plan, commits, was_skipped=True, seconds=0.0))
        elif not GRAPH[name].extra:
            raise InputError(f"{name} is not done for this configuration in {store.uri}; run the workflow again")
    return found


if __name__ == "__main__":
    run_process("record", work)
