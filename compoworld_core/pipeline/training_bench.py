"""Training bench: how quickly a tiny model is fine-tuned here, beside a bare torch loop over the same batches."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from compoworld_core.library.registry import library_package, library_services
from compoworld_core.pipeline.work.opening import host_pool
from compoworld_core.pipeline.work.training import require_libraries
from compoworld_core.rollouts.distill import distill
from compoworld_core.rollouts.export import export_records
from compoworld_core.rollouts.oracle import oracles
from compoworld_core.storage.digest import JsonObject
from compoworld_core.tasks.sampler import ServiceTools, TaskSettings, sample_tasks
from compoworld_core.training.config import Layout, SftSettings, TinyModel
from compoworld_core.worlds.catalogue import Catalogue

if TYPE_CHECKING:
    from compoworld_core.training.throughput import Throughput

CONVERSATIONS: Final = 64
_SETTINGS: Final = SftSettings(context_tokens=4096, epochs=1, global_batch=4)
_MODEL: Final = TinyModel(layers=2, hidden=128, heads=2, vocabulary=2048)


def measure_training(micro_batch: int = 2, conversations: int = CONVERSATIONS) -> Throughput:
    """Measure on conversations of the library's own tasks; takes a minute or two.

    Args:
        micro_batch: Conversations that are padded to each other.
        conversations: How many there are.

    Raises:
        InputError: The training libraries are missing.
    """
    require_libraries()
    from compoworld_core.training.base import prepare
    from compoworld_core.training.conversations import write_rows
    from compoworld_core.training.sft import SftJob
    from compoworld_core.training.throughput import measure

    with tempfile.TemporaryDirectory(prefix="bench-") as name:
        folder = Path(name)
        base, fitting = prepare(None, _MODEL, _SETTINGS, _records(conversations), folder / "base")
        write_rows(fitting.rows, folder / "rows.jsonl")
        job = SftJob(
            model=base,
            rows=str(folder / "rows.jsonl"),
            out=str(folder / "out"),
            store=str(folder / "store"),
            run="bench",
            settings=_SETTINGS,
            layout=Layout(device="cpu", gradient_checkpointing=False, micro_batch=micro_batch, save_every=10**6),
        )
        return measure(job)


def _records(count: int) -> list[JsonObject]:
    """Conversations of the oracle about easy tasks."""
    packages = [library_package(name) for name in library_services()]
    catalogue = Catalogue(packages, library_services(), host_pool().backend)
    tools = [ServiceTools(item, tuple(sorted(tool.name for tool in item.spec.tools))) for item in packages]
    attempts = sample_tasks(TaskSettings(profile="easy", count=count, shares={"sft": 1}), tools, catalogue, 0, 1)
    tasks = [item.task for item in attempts if item.task is not None]

    async def everything() -> list[Any]:
        return [trajectory async for trajectory in distill(tasks, catalogue, oracles(catalogue), concurrency=1)]

    return list(export_records(asyncio.run(everything()), tasks))


def sentence(result: Throughput) -> str:
    """The result for people."""
    return (
        f"fine-tuning            {result.tokens_per_s:>9,.0f} tokens/s\n"
        f"  bare torch loop      {result.bare_tokens_per_s:>9,.0f} tokens/s  forward, backward, AdamW; same batches\n"
        f"  as a part of it      {result.ratio:>9.2f} ×\n"
        f"padding                {result.padding:>9.1%}           of what is computed\n"
        f"Medians of {result.steps} steps that take turns, of {result.tokens:,.0f} tokens each on average."
    )
