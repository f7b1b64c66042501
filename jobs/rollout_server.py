"""The server that writes rollouts while a stage trains: TRL's vLLM server over the model that the stage begins with.

    python -m jobs.rollout_server --config C --store S --stage grpo --port 8000

It replaces this process and never ends by itself; whoever trains ends it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from compoworld_core.errors import InputError
from compoworld_core.pipeline.config import load_config
from compoworld_core.pipeline.runner import resolve
from compoworld_core.pipeline.stage import Inputs
from compoworld_core.pipeline.stages import GRAPH
from compoworld_core.storage import open_store
from compoworld_core.training.datasets import SFT_MODELS, lay_out_model
from jobs.process import run_process
from jobs.telemetry import Telemetry


def work(telemetry: Telemetry) -> None:
    """Lay the model out and become its server."""
    parser = argparse.ArgumentParser(prog="python -m jobs.rollout_server", description="Serve a stage's first model.")
    parser.add_argument("--config", type=Path, help="YAML file with the configuration")
    parser.add_argument("--store", help="where datasets lie: a path, file:// or s3://")
    parser.add_argument("--stage", required=True, help="the stage that asks the server")
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--folder", type=Path, default=Path("/tmp/model"), help="for the model's files")
    given = parser.parse_args(sys.argv[1:])
    config = load_config(given.config, flags={"store": given.store})
    trl = shutil.which("trl")
    if trl is None:
        raise InputError("rollout_server needs the program trl, which comes with the extra `train`")
    store = open_store(config.store)
    plan = resolve(store, GRAPH, config.stages, given.stage)
    if SFT_MODELS.name not in plan.inputs:
        raise InputError(f"--stage {given.stage}: begins with no model of this run")
    folder = lay_out_model(store, Inputs(store, plan.inputs)[SFT_MODELS], given.folder)
    telemetry.log("the model is laid out; its server begins", folder=str(folder))
    settings = config.training
    arguments = ["--model", str(folder), "--host", "0.0.0.0", "--port", str(given.port)]
    arguments += ["--tensor-parallel-size", str(settings.layout.tensor_parallel)]
    arguments += ["--max-model-len", str(settings.grpo.context_tokens)]
    os.execv(trl, [trl, "vllm-serve", *arguments])


if __name__ == "__main__":
    run_process("rollout_server", work)
