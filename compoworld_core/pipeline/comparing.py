"""Comparing what was evaluated: collections that are kept in a store, and the one that was just made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final

from compoworld_core.errors import InputError
from compoworld_core.evaluation.benchmarks import benchmarks
from compoworld_core.evaluation.collection import Collection
from compoworld_core.evaluation.comparison import Compared, Run, compare
from compoworld_core.evaluation.intervals import headline_interval
from compoworld_core.evaluation.published import published
from compoworld_core.evaluation.trial import EVALUATIONS
from compoworld_core.storage import DatasetLocation, Store, digest, read_dataset, read_sidecars

_COMMIT: Final = "_DATASET.json"


def stored_collections(store: Store) -> Iterator[Collection]:
    """All results of benchmarks that a store has, in the order of their keys."""
    for name in store.names(EVALUATIONS.name):
        _, _, inner = name.partition("/")
        key, _, file = inner.partition("/")
        if file != _COMMIT:
            continue
        location = DatasetLocation(dataset=EVALUATIONS.name, key=key)
        about = next((note["collection"] for note in read_sidecars(store, location) if "collection" in note), None)
        if about is not None:  # else it is of the held-out suite
            rows = tuple(read_dataset(store, location, EVALUATIONS))
            yield Collection.model_validate({**about, "rows": rows})


def compare_collections(collections: Iterable[Collection]) -> tuple[Compared, ...]:
    """Put collections beside published figures and beside each other; the same one twice is one.

    Raises:
        InputError: There is none.
    """
    unique = {digest(item.model_dump(include={"model", "rows", "setting", "versions"})): item for item in collections}
    if not unique:
        raise InputError("there are no results of benchmarks to compare; collect some with --results and --store")
    return compare(list(_runs(unique.values())), published())


def _runs(collections: Iterable[Collection]) -> Iterator[Run]:
    """Runs by model, numbered where a model has several of one benchmark."""
    seen: Counter[tuple[str, str]] = Counter()
    for item in collections:
        seen[item.benchmark, item.model] += 1
        number = seen[item.benchmark, item.model]
        name = item.model if number == 1 else f"{item.model} ({number})"
        yield Run(name=name, collection=item, interval=headline_interval(benchmarks()[item.benchmark], item))
