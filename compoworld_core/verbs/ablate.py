"""`compoworld ablate`: runs that differ in one thing each, beside each other."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from compoworld_core.pipeline.arms import Arm
    from compoworld_core.pipeline.runner import StageResult


def ablate(
    config: Annotated[Path | None, typer.Option("--config", help="YAML file with a section `ablate`.")] = None,
    store: Annotated[str | None, typer.Option("--store", help="Where datasets lie: a path, file:// or s3://.")] = None,
    source: Annotated[str | None, typer.Option("--source", help="Where service descriptions come from.")] = None,
    limit: Annotated[int | None, typer.Option("--limit", help="Servers to read from the source.")] = None,
    workers: Annotated[int | None, typer.Option("--workers", help="Processes that work side by side.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Train and evaluate runs that differ in one thing each: kinds of tasks, amounts of data, rewards, …"""
    from compoworld_core.pipeline.ablation_table import plot, show
    from compoworld_core.pipeline.arms import arms_of, run_arms, store_picture, store_results
    from compoworld_core.pipeline.progress import Bars, Quiet
    from compoworld_core.pipeline.runner import run_stages
    from compoworld_core.pipeline.stages import GRAPH
    from compoworld_core.pipeline.workers import Workers
    from compoworld_core.storage import open_store

    arms = arms_of(config, {"store": store, "crawl.source": source, "crawl.limit": limit, "workers": workers})
    opened = open_store(arms[0].config.store)
    with nullcontext(Quiet()) if as_json else Bars() as progress, Workers(arms[0].config.workers) as processes:

        def run(arm: Arm, names: Sequence[str]) -> list[StageResult]:
            if not as_json:
                sys.stderr.write(f"{arm.name}\n")
            return run_stages(opened, GRAPH, arm.config.stages, names, processes, progress)

        results = run_arms(opened, arms, run)
    location = store_results(opened, results)
    picture = store_picture(opened, location, plot(results))
    places = {"table": f"{opened.uri}/{location.path}", "picture": f"{opened.uri}/{picture}"}
    if as_json:
        arms_found = [item.model_dump(mode="json") for item in results]
        sys.stdout.write(json.dumps({"arms": arms_found, **places}, ensure_ascii=False, indent=2) + "\n")
    else:
        show(results)
        sys.stdout.write("".join(f"{name:<8} {place}\n" for name, place in places.items()))
