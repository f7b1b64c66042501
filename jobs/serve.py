"""A server of a model of this run: for whoever evaluates it, or for the trainer whose rollouts it writes.

    python -m jobs.serve --config C --store S --model sft --for benchmarks --port 8000 --gpus 2

It replaces this process and never ends by itself; who asks it ends it. `--engine transformers` is for small models on
machines without a GPU.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path

from compoworld_core.errors import InputError, TransientError
from compoworld_core.evaluation.serving import Serving
from compoworld_core.pipeline.config import RunConfig, load_config
from compoworld_core.pipeline.servable import check_out
from compoworld_core.pipeline.stages import GRAPH
from compoworld_core.storage import Store, open_store
from compoworld_core.training.config import GrpoSettings
from jobs.process import run_process
from jobs.telemetry import Telemetry


def work(telemetry: Telemetry) -> None:
    """Lay the model out and become its server."""
    parser = argparse.ArgumentParser(prog="python -m jobs.serve", description="Serve a model of this run.")
    parser.add_argument("--config", type=Path, help="YAML file with the configuration")
    parser.add_argument("--store", help="where datasets lie: a path, file:// or s3://")
    parser.add_argument("--model", choices=("base", "sft", "grpo"), required=True)
    parser.add_argument("--for", dest="asker", choices=("benchmarks", "training"), required=True)
    parser.add_argument("--port", type=int, default=8000)
    parser.add_argument("--gpus", type=int, default=1, help="over which the model is split")
    parser.add_argument("--folder", type=Path, default=Path("/tmp/models"), help="for the model's, which has its name")
    parser.add_argument("--engine", choices=("vllm", "transformers"), default="vllm")
    given = parser.parse_args(sys.argv[1:])
    if importlib.util.find_spec(given.engine) is None:
        raise InputError(f"serve needs {given.engine}, which the image `train` has")
    config = load_config(given.config, flags={"store": given.store})
    folder = lay_out(open_store(config.store), config, given.model, given.folder / given.model)
    telemetry.log("the model is laid out; its server begins", model=given.model, folder=str(folder))
    sys.stderr.flush()
    if given.asker == "training":
        command = for_training(config, folder, given.port, given.gpus)
    else:
        os.chdir(folder.parent)
        serving = Serving(folder=folder, engine=given.engine, gpus=given.gpus)
        command = list(serving.command(given.port, host="0.0.0.0"))
    os.execv(command[0], command)


def lay_out(store: Store, config: RunConfig, model: str, folder: Path) -> Path:
    """Have a model as files: out of the store, or where training started from one of a hub, from there.

    Raises:
        InputError: There is no such model.
        TransientError: The hub does not answer.
    """
    base = config.training.base
    if model != "base" or base is None:
        check_out(store, GRAPH, config.stages, model, folder)
        return folder
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, RepositoryNotFoundError

    try:
        return Path(snapshot_download(base, local_dir=folder))
    except (HFValidationError, RepositoryNotFoundError) as error:
        raise InputError(f"training.base: {base}: {error}; is HF_TOKEN needed, and set?") from None
    except OSError as error:
        raise TransientError(f"training.base: {base} cannot be fetched now: {error}") from error


def for_training(config: RunConfig, folder: Path, port: int, gpus: int) -> list[str]:
    """TRL's server, whose weights the trainer replaces as it learns."""
    trl = shutil.which("trl")
    if trl is None:
        raise InputError("serving a trainer needs the program trl, which comes with the extra `train`")
    command = [trl, "vllm-serve", "--model", str(folder), "--host", "0.0.0.0", "--port", str(port)]
    command += ["--tensor-parallel-size", str(gpus), "--max-model-len", str(_longest(config.training.grpo, folder))]
    return command


def _longest(settings: GrpoSettings, folder: Path) -> int:
    """Tokens of the longest conversation with room for one more message: vLLM refuses a request that has none left."""
    described = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    positions: int = described.get("text_config", described)["max_position_embeddings"]
    return min(settings.context_tokens + (settings.turn_tokens or settings.completion_tokens), positions)


if __name__ == "__main__":
    run_process("serve", work)
