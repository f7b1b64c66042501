"""Runs: one execution of all stages, recorded with what it made, and whether it is good enough to be the latest."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Final

from pydantic import Field, ValidationError

from compoworld_core.data import Data
from compoworld_core.errors import InputError, StorageError, TransientError
from compoworld_core.pipeline.measures import Measures, drops, measure
from compoworld_core.pipeline.runner import StageResult
from compoworld_core.pipeline.wording import counted
from compoworld_core.pipeline.work.report import PAGES, REPORT
from compoworld_core.rollouts.trajectory import TRAJECTORIES
from compoworld_core.services.datasets import SERVICES
from compoworld_core.storage import (
    DatasetLocation,
    Store,
    canonical_json,
    digest,
    move_ref,
    read_dataset,
    read_ref,
)
from compoworld_core.storage.files import FileStore
from compoworld_core.synthesis.datasets import VERIFICATIONS

LATEST: Final = "latest"
_TRIES: Final = 5
_SHOWN: Final = 5


class Gates(Data):
    """What a run must reach before it becomes the latest."""

    min_tasks: int = Field(default=1, ge=0, description="Fewest tasks that passed all gates of theirs.")
    min_trajectories: int = Field(default=1, ge=0, description="Fewest trajectories that are verified successes.")
    max_drop: float | None = Field(
        default=None,
        ge=0,
        le=1,
        description="How far yield, success rate, kill rate and scores may fall below the latest run's, such as 0.05.",
    )


class DatasetRecord(Data):
    """A dataset of a run. `digest` covers its content."""

    key: str
    rows: int
    digest: str


class Totals(Data):
    """What a run made, in numbers.

    Attributes:
        tools: Tools by outcome of their admission.
        successes: Trajectories that are verified successes.
    """

    specs: int
    rejections: int
    services: int
    synthesised: int
    tools: dict[str, int]
    attempts: int
    tasks: int
    trajectories: int
    successes: int


class RunRecord(Data):
    """A run, complete: whoever has it and the store finds everything that it made.

    Attributes:
        datasets: By name.
        measures: What is compared with later runs; None in records of versions that did not measure.
        failed_gates: A sentence for each gate that was not reached.
    """

    version: str
    datasets: dict[str, DatasetRecord]
    totals: Totals
    measures: Measures | None = None
    failed_gates: tuple[str, ...]

    @cached_property
    def id(self) -> str:
        """Content id: `run_` and the start of the sha256 of the record."""
        return f"run_{digest(self)[:16]}"

    def location(self, dataset: str) -> DatasetLocation:
        """Where a dataset of the run lies."""
        return DatasetLocation(dataset=dataset, key=self.datasets[dataset].key)


def record_run(
    store: Store,
    version: str,
    results: Iterable[StageResult],
    gates: Gates,
    benchmarks: Mapping[str, float] | None = None,
) -> RunRecord:
    """Store a run's record, and make it the latest if it reached all gates.

    Args:
        benchmarks: Headline figures that models of the run reached on benchmarks of others.

    Raises:
        TransientError: Other runs became the latest each time that this one had been compared with the one before.
    """
    datasets = {
        name: DatasetRecord(key=result.plan.key, rows=commit.rows, digest=commit.digest)
        for result in results
        for name, commit in result.commits.items()
    }
    totals = _count(store, datasets)
    measures = measure(
        store,
        {name: DatasetLocation(dataset=name, key=item.key) for name, item in datasets.items()},
        attempts=totals.attempts,
        tasks=totals.tasks,
        trajectories=totals.trajectories,
        successes=totals.successes,
        benchmarks=benchmarks,
    )
    for _ in range(_TRIES):
        latest = read_ref(store, LATEST)
        record = RunRecord(
            version=version,
            datasets=datasets,
            totals=totals,
            measures=measures,
            failed_gates=(*_failed(gates, totals), *_worse(store, gates, measures, latest)),
        )
        store.create(f"runs/{record.id}.json", canonical_json(record).encode())
        if record.failed_gates or move_ref(store, LATEST, record.id, expected=latest):
            return record
    raise TransientError(f"{store.uri}/refs/{LATEST}: other runs kept moving it")


def find_run(store: Store, name: str = LATEST) -> RunRecord:
    """A run by its id, or the latest.

    Raises:
        InputError: There is no such run.
        StorageError: Its record is damaged.
    """
    run_id = read_ref(store, LATEST) if name == LATEST else name
    data = store.read(f"runs/{run_id}.json") if run_id else None
    if data is None:
        names = islice(store.names("runs"), _SHOWN)
        known = ", ".join(item.removeprefix("runs/").removesuffix(".json") for item in names)
        missing = "has no run that reached its gates" if name == LATEST else f"has no run {name!r}"
        hint = f"it has {known}; name one of them" if known else "run `compoworld run` first"
        raise InputError(f"{store.uri} {missing}: {hint}")
    try:
        return RunRecord.model_validate_json(data)
    except ValidationError as error:
        raise StorageError(f"{store.uri}/runs/{run_id}.json: damaged, or written by another version: {error}") from None


def publish_report(store: Store, location: DatasetLocation) -> str:
    """Lay a report's page beside its dataset, and in a directory also on top if it is the latest run's.

    Returns:
        Where to open it. The page on top is the latest run's and no other's, whoever makes pages in between.
    """
    name = _page_name(location)
    store.create(name, _page(store, location))
    if isinstance(store, FileStore) and _show_latest(store) == location:
        return (store.root / REPORT).as_uri()
    return f"{store.uri}/{name}"


def own_page(store: Store, location: DatasetLocation) -> str:
    """Where a report's page lies beside its dataset, once it is published."""
    return f"{store.uri}/{_page_name(location)}"


def explain_failure(store: Store, record: RunRecord, report: str) -> str:
    """What a run tells that did not reach its gates: which, what was found and wanted, what holds now, what to do."""
    latest = read_ref(store, LATEST)
    stays = f"the latest stays {latest}" if latest else "there is no latest run yet"
    failed = "".join(f"\n  gate failed: {sentence}" for sentence in record.failed_gates)
    return (
        f"{record.id} did not reach its gates, so it is recorded but not the latest run ({stays}):{failed}\n"
        f"  what it made is kept; the funnel in {report} shows what was lost, and why"
    )


def _page_name(location: DatasetLocation) -> str:
    return f"{location.path}/{REPORT}"


def _page(store: Store, location: DatasetLocation) -> bytes:
    return next(iter(read_dataset(store, location, PAGES))).html.encode()


def _show_latest(store: FileStore) -> DatasetLocation | None:
    """Put the latest run's page on top of the store; where that page lies, or None where there is none to show.

    Looks again afterwards: of runs that end at the same time, each may have seen another as the latest.
    """
    for _ in range(_TRIES):
        run_id = read_ref(store, LATEST)
        try:
            location = find_run(store, run_id).location("reports") if run_id else None
            page = _page(store, location) if location else None
        except (InputError, StorageError):  # another version's: its page is as good as it was
            return None
        if page is not None:
            top = store.root / REPORT
            partial = top.with_name(f".{REPORT}.{os.getpid()}")
            partial.write_bytes(page)
            partial.replace(top)
        if read_ref(store, LATEST) == run_id:
            return location
    return None


def _count(store: Store, datasets: dict[str, DatasetRecord]) -> Totals:
    def location(dataset: str) -> DatasetLocation:
        return DatasetLocation(dataset=dataset, key=datasets[dataset].key)

    tools = Counter(admission.outcome for admission in read_dataset(store, location("verifications"), VERIFICATIONS))
    return Totals(
        specs=datasets["specs"].rows,
        rejections=datasets["rejections"].rows,
        services=datasets["services"].rows,
        synthesised=sum(item.origin != "library" for item in read_dataset(store, location("services"), SERVICES)),
        tools=dict(sorted(tools.items())),
        attempts=datasets["attempts"].rows,
        tasks=datasets["tasks"].rows,
        trajectories=datasets["trajectories"].rows,
        successes=sum(item.succeeded for item in read_dataset(store, location("trajectories"), TRAJECTORIES)),
    )


def _failed(gates: Gates, totals: Totals) -> Sequence[str]:
    checked = (
        ("min_tasks", totals.tasks, "tasks", "tasks.count or tasks.attempts_per_task"),
        ("min_trajectories", totals.successes, "trajectories", "tasks.count or distill.samples"),
    )
    return [
        f"gates.{name}: {counted(found, things)} passed, {least:,} wanted; raise {more}, or lower gates.{name}"
        for name, found, things, more in checked
        if found < (least := getattr(gates, name))
    ]


def _worse(store: Store, gates: Gates, measures: Measures, latest: str | None) -> Iterator[str]:
    """A sentence for each measure that is too far below the latest run's."""
    if gates.max_drop is None or latest is None:
        return
    try:
        before = find_run(store, latest).measures
    except StorageError:  # another version's: there is nothing to compare with
        return
    if before is not None:
        for sentence in drops(measures, before, gates.max_drop):
            yield (
                f"gates.max_drop: {sentence} since {latest}, {gates.max_drop:g} is allowed; look into the report for "
                "what was lost, or raise gates.max_drop"
            )
