"""A benchmark of others, run on a model that is served elsewhere; its rows go to the store.

    python -m jobs.benchmark --config C --store S --benchmark tau3-banking --model sft --server http://host:8000/v1

The official harness lies in the image, where HARNESS_DIR and HARNESS_PYTHON say. Who plays the user and who judges are
names in `llm.models`.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from compoworld_core.llm.config import Endpoint, LlmConfig, ModelConfig
from compoworld_core.pipeline.benchmarking import Wanted, document, note_figure, run, store_rows
from compoworld_core.pipeline.config import load_config
from compoworld_core.storage import open_store
from jobs.process import run_process, whole
from jobs.telemetry import Telemetry


def work(telemetry: Telemetry) -> None:
    """Run the harness and keep its rows."""
    parser = argparse.ArgumentParser(prog="python -m jobs.benchmark", description="Run a benchmark of others.")
    parser.add_argument("--config", type=Path, help="YAML file with the configuration")
    parser.add_argument("--store", help="where datasets lie: a path, file:// or s3://")
    parser.add_argument("--benchmark", required=True)
    parser.add_argument("--model", required=True, help="what the server calls the model")
    parser.add_argument("--server", required=True, help="up to and including /v1")
    parser.add_argument("--user", default="", help="who plays the user: a name in llm.models")
    parser.add_argument("--judge", default="", help="who judges: a name in llm.models")
    parser.add_argument("--limit", type=whole, default="", help="only so many tasks, to see whether it works")
    parser.add_argument("--out", type=Path, default=Path("/tmp/results"), help="folder for the harness's results")
    given = parser.parse_args(sys.argv[1:])
    telemetry.about(benchmark=given.benchmark, model=given.model)
    config = load_config(given.config, flags={"store": given.store})
    served = ModelConfig(model=given.model, endpoints=(Endpoint(base_url=given.server),))
    wanted = Wanted(
        model=given.model,
        user=given.user or None,
        judge=given.judge or None,
        harness=_place("HARNESS_DIR"),
        python=_place("HARNESS_PYTHON"),
        revision=os.environ.get("HARNESS_REVISION"),
        out=given.out,
        limit=given.limit,
    )
    outcome = run(given.benchmark, wanted, LlmConfig(models={**config.llm.models, given.model: served}))
    store = open_store(config.store)
    stored = store_rows(store, outcome)
    told = document(stored)
    telemetry.log("the rows are stored", headline=told["headline"], uri=told["stored"])
    telemetry.measure("compoworld_rows", told["trials"], dataset="evaluations")
    if (score := stored.collection.headline.value) is not None:
        telemetry.measure("compoworld_score", score)
        note_figure(store, os.environ.get("CW_RUN", ""), f"{given.benchmark} of {given.model}", score)


def _place(variable: str) -> Path | None:
    text = os.environ.get(variable)
    return Path(text) if text else None


if __name__ == "__main__":
    run_process("benchmark", work)
