"""Evaluating on a benchmark of others: run its harness or take results that were made elsewhere, and keep the rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from pydantic import ValidationError

from compoworld_core.data import Data
from compoworld_core.errors import InputError
from compoworld_core.evaluation.benchmark import Benchmark
from compoworld_core.evaluation.benchmarks import benchmark as named_benchmark
from compoworld_core.evaluation.collection import Collection, Gap
from compoworld_core.evaluation.intervals import headline_interval
from compoworld_core.evaluation.order import Order, Served
from compoworld_core.evaluation.process import stopped_in_order
from compoworld_core.evaluation.serving import Engine, Serving, served
from compoworld_core.evaluation.statistics import Interval
from compoworld_core.evaluation.trial import EVALUATIONS
from compoworld_core.llm.config import Endpoint, LlmConfig, ModelConfig
from compoworld_core.storage import DatasetLocation, Store, canonical_json, digest, merge, write_shard
from compoworld_core.storage.digest import to_plain

_MOST_SHOWN: Final = 5
_KEY_LENGTH: Final = 32


class Wanted(Data):
    """What the command line was told about a run of a harness; models are names in `llm.models`.

    Attributes:
        checkpoint: Folder of a model that is served while the harness runs; `model` then says how to sample from it.
    """

    model: str | None = None
    checkpoint: Path | None = None
    engine: Engine = "vllm"
    gpus: int = 1
    context_tokens: int | None = None
    user: str | None = None
    judge: str | None = None
    harness: Path | None = None
    python: Path | None = None
    revision: str | None = None
    out: Path | None = None
    limit: int | None = None
    trials: int | None = None
    concurrency: int = 8
    shards: int = 1
    shard: int | None = None
    options: tuple[str, ...] = ()


class Outcome(Data):
    """What came out, and how sure its figure is; `uri` is where the rows were stored, if they were."""

    collection: Collection
    interval: Interval | None
    folder: str
    uri: str | None = None


def collect(name: str, folder: Path) -> Outcome:
    """Results that are in a folder, whoever made them."""
    benchmark = named_benchmark(name)
    collection = benchmark.collect(folder)
    return Outcome(collection=collection, interval=headline_interval(benchmark, collection), folder=str(folder))


def run(name: str, wanted: Wanted, llm: LlmConfig) -> Outcome:
    """Run a harness and collect its results.

    Raises:
        InputError: Something is missing that it needs; nothing was spent.
    """
    benchmark = named_benchmark(name)
    if wanted.model is None and wanted.checkpoint is None:
        raise InputError("say who is evaluated: --model NAME of llm.models, or --checkpoint FOLDER")
    if wanted.harness is None:
        raise InputError(
            f"say with --harness where a copy of https://github.com/{benchmark.pin.repository} lies, "
            "or with --results where results are"
        )
    with stopped_in_order():
        return collect(name, _run(benchmark, wanted, llm))


def _run(benchmark: Benchmark, wanted: Wanted, llm: LlmConfig) -> Path:
    """Run a harness; gives the folder of its results."""
    if wanted.checkpoint is None:
        order = _order(benchmark, wanted, llm, _model(llm, wanted.model or ""))
        benchmark.run(order, benchmark.prepare(order))
        return order.out
    serving = Serving(
        folder=wanted.checkpoint, engine=wanted.engine, gpus=wanted.gpus, context_tokens=wanted.context_tokens
    )
    place = Endpoint(base_url="http://127.0.0.1:1/v1")  # until it is served: what it needs is checked before that
    order = _order(benchmark, wanted, llm, _at(llm, wanted.model, serving.name, place))
    benchmark.prepare(order)
    out = order.out
    with served(serving, out / "server.log") as base_url:
        agent = _at(llm, wanted.model, serving.name, Endpoint(base_url=base_url))
        order = _order(benchmark, wanted, llm, agent)
        benchmark.run(order, benchmark.prepare(order))
    return out


def store_rows(store: Store, outcome: Outcome) -> Outcome:
    """Keep the rows as a dataset `evaluations`; the same rows, made in the same way, are kept once."""
    collection = outcome.collection
    content = collection.model_dump(include={"model", "rows", "setting", "versions"})
    key = f"{collection.benchmark}-{digest(content)[:_KEY_LENGTH]}"
    location = DatasetLocation(dataset=EVALUATIONS.name, key=key)
    about = to_plain(collection.model_dump(exclude={"rows"}))
    write_shard(store, location, EVALUATIONS, 0, collection.rows, deterministic=True, sidecar={"collection": about})
    merge(store, location, EVALUATIONS, 1)
    return Outcome(
        collection=collection, interval=outcome.interval, folder=outcome.folder, uri=f"{store.uri}/{location.path}"
    )


def note_figure(store: Store, workflow: str, name: str, value: float) -> None:
    """Keep a headline figure where the record of the workflow's run looks for it."""
    if workflow:
        note = canonical_json({"name": name, "value": value})
        store.create(f"workflows/{workflow}/{name.replace(' ', '-')}.json", note.encode())


def noted_figures(store: Store, workflow: str) -> dict[str, float]:
    """The figures that benchmarks in a workflow have noted, by their names."""
    if not workflow:
        return {}
    notes = (store.read(name) for name in store.names(f"workflows/{workflow}"))
    found = [json.loads(note) for note in notes if note is not None]
    return {note["name"]: note["value"] for note in found}


def document(outcome: Outcome) -> dict[str, Any]:
    """The outcome as JSON."""
    collection, interval = outcome.collection, outcome.interval
    return {
        "benchmark": collection.benchmark,
        "model": collection.model,
        "headline": {
            **collection.headline.model_dump(),
            "interval": None if interval is None else [interval.low, interval.high],
        },
        "metrics": [metric.model_dump() for metric in collection.metrics],
        "trials": len(collection.rows),
        "scored": sum(row.passed is not None for row in collection.rows),
        "errors": [{"task": row.task, "trial": row.trial, "error": row.error} for row in collection.errors],
        "drops": [gap.model_dump() for gap in collection.drops],
        "missing": [gap.model_dump() for gap in collection.missing],
        "setting": collection.setting,
        "versions": collection.versions,
        "warnings": list(collection.warnings),
        "folder": outcome.folder,
        "stored": outcome.uri,
    }


def lines(outcome: Outcome) -> Iterator[str]:
    """The outcome in words."""
    collection, headline = outcome.collection, outcome.collection.headline
    shown = "no figure: nothing counts" if headline.value is None else f"{100 * headline.value:.2f} %"
    if outcome.interval is not None:
        shown += f" [{100 * outcome.interval.low:.2f}, {100 * outcome.interval.high:.2f}]"
    yield f"{collection.benchmark}: {collection.model}"
    yield f"  {headline.name:<14} {shown}  ({headline.definition}; {headline.units} {collection.unit}s)"
    for metric in collection.metrics:
        yield f"  {metric.name:<14} {'–' if metric.value is None else f'{100 * metric.value:.2f} %'}"
    yield f"  trials         {len(collection.rows)}, of which {len(collection.errors)} with an error"
    errors = Counter((row.error or "").partition("\n")[0] for row in collection.errors)
    yield from (f"    {count} × {error}" for error, count in errors.most_common(_MOST_SHOWN))
    yield from _gaps("dropped", collection.drops)
    yield from _gaps("missing", collection.missing)
    for what, found in (("setting", collection.setting), ("versions", collection.versions)):
        if found:
            yield f"  {what:<14} " + ", ".join(f"{name} {value}" for name, value in found.items())
    yield from (f"  note           {warning}" for warning in collection.warnings)
    yield f"  results        {outcome.folder}"
    if outcome.uri is not None:
        yield f"  stored         {outcome.uri}"


def _gaps(what: str, gaps: Sequence[Gap]) -> Iterator[str]:
    yield f"  {what:<14} {len(gaps)}"
    reasons = Counter(gap.reason.splitlines()[0] if gap.reason else "" for gap in gaps)
    yield from (f"    {count} × {reason}" for reason, count in reasons.most_common(_MOST_SHOWN))


def _order(benchmark: Benchmark, wanted: Wanted, llm: LlmConfig, agent: Served) -> Order:
    if wanted.harness is None:
        raise InputError("say with --harness where the harness is")
    try:
        return Order(
            agent=agent,
            user=None if wanted.user is None else _model(llm, wanted.user),
            judge=None if wanted.judge is None else _model(llm, wanted.judge),
            harness=wanted.harness,
            python=wanted.python,
            revision=wanted.revision,
            out=_out(benchmark, wanted, agent.model),
            limit=wanted.limit,
            trials=wanted.trials,
            concurrency=wanted.concurrency,
            shards=wanted.shards,
            shard=wanted.shard,
            options=_options(wanted.options),
        )
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"--{'.'.join(map(str, first['loc'])) or 'shard'}: {first['msg']}") from None


def _out(benchmark: Benchmark, wanted: Wanted, model: str) -> Path:
    return wanted.out or Path("runs", "benchmarks", f"{benchmark.name}-{model.replace('/', '-')}")


def _model(llm: LlmConfig, name: str) -> Served:
    return Served.of(name, _config(llm, name))


def _at(llm: LlmConfig, name: str | None, model: str, endpoint: Endpoint) -> Served:
    """A checkpoint that is served, sampled from as a model of the configuration if one is named."""
    config = ModelConfig(model=model) if name is None else _config(llm, name)
    fields = config.model_dump(include={"temperature", "top_p", "max_tokens"})
    return Served(model=model, endpoint=endpoint, **fields)


def _config(llm: LlmConfig, name: str) -> ModelConfig:
    if name not in llm.models:
        known = ", ".join(sorted(llm.models)) or "none"
        raise InputError(f"llm.models has no {name!r}; there is {known}; name a file that has it with --config")
    return llm.models[name]


def _options(texts: Sequence[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, sign, value = text.partition("=")
        if not sign:
            raise InputError(f"--option {text}: needs the form name=value")
        found[name] = value
    return found
