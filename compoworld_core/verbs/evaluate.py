"""`compoworld evaluate`: the held-out suite, or a benchmark of others, run here or elsewhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from compoworld_core.errors import InputError

if TYPE_CHECKING:
    from compoworld_core.evaluation.collection import Collection

_Text = str | None
_Number = int | None
_Place = Path | None


def with_benchmarks(held_out: Callable[..., None]) -> Callable[..., None]:
    """The verb; without a benchmark it is the stage that has policies work on the held-out suite."""

    def evaluate(
        benchmark: Annotated[
            _Text,
            typer.Argument(metavar="BENCHMARK", help="Which benchmark of others; the held-out suite if left out."),
        ] = None,
        config: Annotated[_Place, typer.Option("--config", help="YAML file with the configuration.")] = None,
        store: Annotated[
            _Text,
            typer.Option("--store", help="Where datasets lie; rows of a benchmark are stored only if given."),
        ] = None,
        source: Annotated[_Text, typer.Option("--source", help="Held-out suite: where descriptions come from.")] = None,
        limit: Annotated[
            _Number, typer.Option("--limit", help="Most tasks; held-out suite: servers to read from the source.")
        ] = None,
        workers: Annotated[_Number, typer.Option("--workers", help="Held-out suite: processes side by side.")] = None,
        results: Annotated[
            _Place, typer.Option("--results", help="Folder with results of the harness, from wherever: only read them.")
        ] = None,
        model: Annotated[
            _Text, typer.Option("--model", help="Who is evaluated, or how a checkpoint is sampled: in llm.models.")
        ] = None,
        checkpoint: Annotated[
            _Place, typer.Option("--checkpoint", help="Folder of a model that is served and evaluated.")
        ] = None,
        engine: Annotated[
            Literal["vllm", "transformers"], typer.Option("--engine", help="What serves a checkpoint.")
        ] = "vllm",
        gpus: Annotated[int, typer.Option("--gpus", min=1, help="GPUs that a served checkpoint is split over.")] = 1,
        context_tokens: Annotated[
            _Number,
            typer.Option("--context-tokens", min=1, help="Longest conversation of a checkpoint that vLLM serves."),
        ] = None,
        user: Annotated[_Text, typer.Option("--user", help="Who plays the user: a name in llm.models.")] = None,
        judge: Annotated[_Text, typer.Option("--judge", help="Who judges: a name in llm.models.")] = None,
        harness: Annotated[
            _Place, typer.Option("--harness", envvar="HARNESS_DIR", help="Folder of the official harness.")
        ] = None,
        python: Annotated[
            _Place,
            typer.Option("--python", envvar="HARNESS_PYTHON", help="Its interpreter; .venv/bin/python if left out."),
        ] = None,
        revision: Annotated[
            _Text, typer.Option("--revision", envvar="HARNESS_REVISION", help="Its commit, where it is no checkout.")
        ] = None,
        out: Annotated[_Place, typer.Option("--out", help="Folder for its results; a run goes on there.")] = None,
        trials: Annotated[_Number, typer.Option("--trials", min=1, help="Of a task; as published if left out.")] = None,
        concurrency: Annotated[int, typer.Option("--concurrency", min=1, help="Most tasks at a time.")] = 8,
        shards: Annotated[int, typer.Option("--shards", min=1, help="Parts to split the tasks into.")] = 1,
        shard: Annotated[_Number, typer.Option("--shard", min=0, help="The only part to run, from 0.")] = None,
        option: Annotated[
            list[str] | None, typer.Option("--option", help="name=value of the benchmark's own options; repeatable.")
        ] = None,
        compare: Annotated[
            bool, typer.Option("--compare", help="Put what the store has, and this run, beside published figures.")
        ] = False,
        table: Annotated[
            list[str] | None,
            typer.Option("--table", help="File for the comparison: .html, .md, .parquet, .json; repeatable."),
        ] = None,
        contamination: Annotated[
            _Place,
            typer.Option(
                "--contamination", help="Folder with tasks of benchmarks, one folder each: are they trained on?"
            ),
        ] = None,
        records: Annotated[
            _Place, typer.Option("--records", help="For --contamination: training records, as `export` writes them.")
        ] = None,
        as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document instead of text.")] = False,
        debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
    ) -> None:
        if contamination is not None or records is not None:
            _check_contamination(contamination, records, as_json)
            return
        if benchmark is None and (compare or table):
            _compare(config, store, (), table, as_json)
            return
        if benchmark is None:
            if results is not None:
                raise InputError("--results: name the benchmark that they are of, such as `evaluate tau3-banking`")
            held_out(config, store, source, limit, workers, as_json, debug)
            return
        from compoworld_core.pipeline.benchmarking import Wanted, collect, document, lines, run, store_rows

        if results is not None:
            outcome = collect(benchmark, results)
        else:
            from compoworld_core.pipeline.config import load_config

            wanted = Wanted(
                model=model, checkpoint=checkpoint, engine=engine, gpus=gpus, context_tokens=context_tokens, user=user,
                judge=judge, harness=harness, python=python, revision=revision, out=out, limit=limit, trials=trials,
                concurrency=concurrency, shards=shards, shard=shard, options=tuple(option or ()),
            )  # fmt: skip
            outcome = run(benchmark, wanted, load_config(config).llm)
        if store is not None:
            from compoworld_core.storage import open_store

            outcome = store_rows(open_store(store), outcome)
        if compare or table:
            _compare(config, store, (outcome.collection,), table, as_json)
        elif as_json:
            _print_json(document(outcome))
        else:
            sys.stdout.write("\n".join(lines(outcome)) + "\n")

    return evaluate


def _print_json(found: Any) -> None:
    sys.stdout.write(json.dumps(found, ensure_ascii=False, indent=2) + "\n")


def _compare(
    config: _Place, store: _Text, made: Sequence[Collection], tables: Sequence[str] | None, as_json: bool
) -> None:
    """Compare the collections of a store, with those that were just made."""
    from compoworld_core.evaluation.comparison_table import show, write
    from compoworld_core.pipeline.comparing import compare_collections, stored_collections
    from compoworld_core.pipeline.config import load_config
    from compoworld_core.storage import open_store

    kept = stored_collections(open_store(load_config(config, flags={"store": store}).store))
    compared = compare_collections([*kept, *made])
    for target in tables or ():
        write(compared, target)
    if as_json:
        _print_json([line.model_dump(mode="json") for line in compared])
    elif not tables:
        show(compared)


def _check_contamination(folder: _Place, records: _Place, as_json: bool) -> None:
    """Look for tasks of benchmarks in training records."""
    from compoworld_core.evaluation.contamination import check, lines, read_records, read_tasks

    if folder is None or records is None:
        raise InputError(
            "name both: --contamination, a folder with tasks of benchmarks, and --records, a file that `compoworld "
            "export` wrote"
        )
    found = check(read_tasks(folder), read_records(records))
    if as_json:
        _print_json([item.model_dump(mode="json") for item in found])
    else:
        sys.stdout.write("\n".join(lines(found)) + "\n")
