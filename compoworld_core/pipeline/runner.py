"""The local runner: executes stages of the graph on one machine, into a directory or a bucket.

It holds no stage logic and no state of its own. What is committed is skipped, what is not is made, so running again
after any interruption finishes the work.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol

from pydantic import BaseModel

from compoworld_core.errors import CompoWorldError, InputError, StorageError
from compoworld_core.pipeline.graph import StageGraph
from compoworld_core.pipeline.stage import Inputs, Shard, StagePlan, plan_stage
from compoworld_core.pipeline.workers import Failure, Workers
from compoworld_core.storage import (
    DatasetCommit,
    DatasetLocation,
    DatasetType,
    DatasetWriter,
    Store,
    merge,
    open_store,
    read_commit,
    shard_commit,
    sweep,
)


class Progress(Protocol):
    """Who wants to know how far a run is."""

    def begin(self, stage: str, shards: int, done: int) -> None:
        """A stage begins, with so many shards committed before."""

    def advance(self, stage: str) -> None:
        """A shard is committed."""

    def end(self, stage: str, result: StageResult) -> None:
        """A stage is committed."""


@dataclass(frozen=True)
class StageResult:
    """A committed stage.

    Attributes:
        was_skipped: Whether it was committed before.
        seconds: Wall time of this run.
    """

    plan: StagePlan
    commits: Mapping[str, DatasetCommit]
    was_skipped: bool
    seconds: float


def resolve(
    store: Store,
    graph: StageGraph,
    configs: Mapping[str, BaseModel],
    name: str,
    known: dict[str, StagePlan] | None = None,
) -> StagePlan:
    """The plan of a stage whose inputs are all committed.

    Args:
        known: Plans that were worked out before; what is worked out here is added.

    Raises:
        InputError: An input is not committed; the message names the stage to run.
    """
    known = {} if known is None else known
    if name not in known:
        stage = graph[name]
        inputs: dict[str, DatasetLocation] = {}
        for needed in stage.needs(configs[name]):
            source = graph.producer(needed.name)
            location = resolve(store, graph, configs, source, known).outputs[needed.name]
            if read_commit(store, location) is None:
                raise InputError(
                    f"{name} needs {needed.name}, which {store.uri} does not have for this configuration: run "
                    f"`compoworld {source}` with the same configuration first, or `compoworld run` for everything"
                )
            inputs[needed.name] = location
        inputs |= dict(_made(store, graph, configs, stage.optional, known))
        known[name] = plan_stage(store, stage, configs[name], inputs)
    return known[name]


def _made(
    store: Store,
    graph: StageGraph,
    configs: Mapping[str, BaseModel],
    optional: Iterable[DatasetType[Any]],
    known: dict[str, StagePlan],
) -> Iterator[tuple[str, DatasetLocation]]:
    """Those of some datasets that are committed, by name."""
    for item in optional:
        try:
            location = resolve(store, graph, configs, graph.producer(item.name), known).outputs[item.name]
        except InputError:  # what it is made of is not committed either
            continue
        if read_commit(store, location) is not None:
            yield item.name, location


def run_stages(
    store: Store,
    graph: StageGraph,
    configs: Mapping[str, BaseModel],
    names: Iterable[str],
    workers: Workers,
    progress: Progress,
) -> list[StageResult]:
    """Run stages one after the other; what others make must be committed.

    Raises:
        InputError: A stage that is not made yet can't work here; nothing was begun.
        CompoWorldError: A stage could not be finished. All that was done is committed.
    """
    names = tuple(names)
    for name in names:
        if not _is_made(store, graph, configs, name):
            graph[name].check(configs[name])
    known: dict[str, StagePlan] = {}
    return [run_stage(store, resolve(store, graph, configs, name, known), workers, progress) for name in names]


def _is_made(store: Store, graph: StageGraph, configs: Mapping[str, BaseModel], name: str) -> bool:
    try:
        return committed(store, resolve(store, graph, configs, name)) is not None
    except InputError:  # what it is made of is not committed
        return False


def run_stage(store: Store, plan: StagePlan, workers: Workers, progress: Progress) -> StageResult:
    """Make what of a stage is not committed yet.

    Raises:
        CompoWorldError: A shard failed; the others are committed as far as they were begun.
    """
    start = time.monotonic()
    name = plan.stage.name
    commits = committed(store, plan)
    was_skipped = commits is not None
    if commits is None:
        missing = [index for index in range(plan.shards) if not is_shard_committed(store, plan, index)]
        progress.begin(name, plan.shards, plan.shards - len(missing))
        jobs = [ShardJob(store.uri, plan, index) for index in missing]
        failures: list[tuple[int, Failure]] = []
        for job, result in workers.map(run_job, jobs):
            if isinstance(result, Failure):
                failures.append((job.index, result))
            else:
                progress.advance(name)
        if failures:
            raise _stage_failed(plan, failures)
        commits = merge_stage(store, plan)
    done = StageResult(plan, commits, was_skipped, time.monotonic() - start)
    progress.end(name, done)
    return done


@dataclass(frozen=True)
class ShardJob:
    """A shard to be made; what a worker is sent."""

    store: str
    plan: StagePlan
    index: int


def run_job(job: ShardJob) -> int:
    """Make a shard in this process."""
    run_shard(_opened(job.store), job.plan, job.index)
    return job.index


@lru_cache(maxsize=1)
def _opened(uri: str) -> Store:
    return open_store(uri)


def run_shard(store: Store, plan: StagePlan, index: int) -> None:
    """Make one shard and commit it to every output; it counts once the last of them is committed.

    Killed in between, it is made again: the outputs that were committed keep their rows, which are the same. Where
    another run was faster and has cleared this attempt's files away, its commit is adopted.
    """
    try:
        _make_shard(store, plan, index)
    except StorageError:
        if not is_shard_committed(store, plan, index):
            raise


def _make_shard(store: Store, plan: StagePlan, index: int) -> None:
    stage = plan.stage
    shard = Shard(index, plan.shards, plan.key, store)
    start = time.monotonic()
    with ExitStack() as stack:
        writers: dict[type[BaseModel], DatasetWriter[Any]] = {
            output.row: stack.enter_context(
                DatasetWriter(store, plan.location(output), output, index, deterministic=stage.deterministic)
            )
            for output in stage.outputs
        }
        for row in stage.run(plan.config, Inputs(store, plan.inputs), shard):
            writers[type(row)].add(row)
        for writer in writers.values():
            writer.commit({"seconds": time.monotonic() - start, **shard.notes})


def attend_shard(store: Store, plan: StagePlan, index: int) -> None:
    """Take part in a shard that several machines make together, of which another commits it."""
    shard = Shard(index, plan.shards, plan.key, store)
    for _ in plan.stage.run(plan.config, Inputs(store, plan.inputs), shard):
        pass


def merge_stage(store: Store, plan: StagePlan) -> dict[str, DatasetCommit]:
    """Commit a stage all of whose shards are committed, and clear away what killed attempts left.

    Raises:
        StorageError: Shards are missing.
    """
    commits = {}
    for output in plan.stage.outputs:
        commits[output.name] = merge(store, plan.location(output), output, plan.shards)
        sweep(store, plan.location(output))
    return commits


def committed(store: Store, plan: StagePlan) -> dict[str, DatasetCommit] | None:
    """What a stage has made, or None where it is not finished."""
    commits = {name: read_commit(store, location) for name, location in plan.outputs.items()}
    found = {name: commit for name, commit in commits.items() if commit is not None}
    return found if len(found) == len(commits) else None


def is_shard_committed(store: Store, plan: StagePlan, index: int) -> bool:
    """Whether a shard counts: whether all its outputs are committed."""
    return all(shard_commit(store, location, index) is not None for location in plan.outputs.values())


def _stage_failed(plan: StagePlan, failures: list[tuple[int, Failure]]) -> CompoWorldError:
    """The error to raise: the gravest decides, and a passing failure is the least grave."""
    index, failure = min(failures, key=lambda item: item[1].may_pass)
    others = f" (and {len(failures) - 1} more)" if len(failures) > 1 else ""
    where = f"{plan.stage.name}, shard {index} of {plan.shards}{others}"
    return replace(failure, message=f"{where}: {failure.message}").error()
