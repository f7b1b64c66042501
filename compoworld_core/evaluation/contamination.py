"""Contamination: which tasks of benchmarks stand in training data, and which resemble it.

A task is overlapped when thirteen words in a row of one of its texts stand in a text of a record, in any case and
punctuation; a text of eight to twelve words counts when all of it does, and what is shorter cannot tell. Beside that
stands the nearest record of each task: the share of the task's sequences of five words that the record has, too, so
that a paraphrase shows where no run is the same. Both are exact, and neither needs a model.

Tasks are held in memory, records are streamed past them.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from compoworld_core.data import Data
from compoworld_core.errors import InputError
from compoworld_core.evaluation.results import read_json
from compoworld_core.rollouts.contamination import PHRASE, RUN, strings
from compoworld_core.rollouts.likeness import runs, shingles, words

NEAREST: Final = 5
"""Pairs of a task and its nearest record that are shown of each benchmark."""

_SHOWN: Final = 20
_NAMES: Final = ("task_id", "id", "name", "sample_id", "example_id")
_TEXT: Final = (".md", ".txt")
_READ: Final = (".json", ".jsonl", *_TEXT)


@dataclass(frozen=True)
class BenchmarkTask:
    """A task's texts."""

    benchmark: str
    name: str
    texts: tuple[str, ...]


class Pair(Data):
    """A task and the record that has most of it.

    Attributes:
        likeness: Share of the task's word sequences that the record has, too.
        common: A run of words that both have; None where they have none.
    """

    task: str
    record: str
    likeness: float
    common: str | None


class Contamination(Data):
    """One benchmark against the training data.

    Attributes:
        testable: Tasks with a text that is long enough to tell.
        overlapped: Tasks with a run of words that stands in training data.
        share: Of the testable ones.
        records: Records that have a run of words of some task.
        overlaps: The overlapped tasks, each with one of the records and what both have.
        nearest: The tasks that most resemble a record, overlapped or not.
    """

    benchmark: str
    tasks: int
    testable: int
    overlapped: int
    share: float
    records: int
    overlaps: tuple[Pair, ...]
    nearest: tuple[Pair, ...]


def read_tasks(folder: Path) -> list[BenchmarkTask]:
    """The tasks in a folder that has a folder for each benchmark, or is that of one.

    Each element of a JSON array (or of its field `tasks`), each line of JSONL and each text file is a task.

    Raises:
        InputError: There is no such folder, nothing in it is readable, or a file is malformed.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: there is no such folder with tasks of benchmarks")
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in _READ and path.is_file())
    if not files:
        raise InputError(f"{folder}: has no file that ends in {', '.join(_READ)}, so there is no task to look for")
    return [task for file in files for task in _tasks(file, folder)]


def _tasks(file: Path, folder: Path) -> Iterator[BenchmarkTask]:
    place = file.relative_to(folder)
    benchmark = place.parts[0] if len(place.parts) > 1 else folder.name
    if file.suffix.lower() in _TEXT:
        yield BenchmarkTask(benchmark, place.as_posix(), (_text(file),))
        return
    for number, value in enumerate(_documents(file)):
        told = value if isinstance(value, dict) else {}
        named = next((str(told[name]) for name in _NAMES if told.get(name) not in (None, "")), str(number))
        yield BenchmarkTask(benchmark, f"{place.as_posix()}:{named}", tuple(strings(value)))


def _documents(file: Path) -> Iterator[Any]:
    if file.suffix.lower() == ".jsonl":
        for number, line in enumerate(_text(file).split("\n"), 1):
            if line.strip():
                yield _parsed(line, f"{file}:{number}")
        return
    document = read_json(file).value
    inner = document.get("tasks") if isinstance(document, dict) else document
    yield from inner if isinstance(inner, list) else [document]


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read as UTF-8 text: {error}") from error


def _parsed(line: str, place: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}: is not JSON: {error}") from None


def read_records(file: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Names and texts of exported training records, of JSONL or Parquet: what is said and what tools are given.

    Raises:
        InputError: The file can't be read, or a line is no record.
    """
    if file.suffix == ".parquet":
        yield from _parquet_records(file)
        return
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    record = _parsed(line, f"{file}:{number}")
                    if not isinstance(record, dict) or not _are_messages(record.get("messages")):
                        raise InputError(f"{file}:{number}: is no training record: it has no list of messages")
                    yield _record(record["messages"], record.get("meta"), number)
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{file}: cannot be read: {error}") from error


def _parquet_records(file: Path) -> Iterator[tuple[str, tuple[str, ...]]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as parts:
            number = 0
            for batch in parts.iter_batches(columns=["messages", "meta"]):
                for row in batch.to_pylist():
                    number += 1
                    messages = json.loads(row["messages"])
                    if not _are_messages(messages):
                        raise ValueError(f"row {number} has no list of messages")
                    yield _record(messages, json.loads(row["meta"]), number)
    except (OSError, KeyError, ValueError, TypeError, pa.ArrowException) as error:
        raise InputError(f"{file}: is no Parquet file of training records: {error}") from error


def _are_messages(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(message, dict) for message in value)


def _record(messages: list[Any], meta: Any, number: int) -> tuple[str, tuple[str, ...]]:
    about = meta if isinstance(meta, dict) else {}
    rollout = f"/{about['rollout_idx']}" if "rollout_idx" in about else ""
    name = f"{about['task_id']}{rollout}" if "task_id" in about else f"record {number}"
    said = [{key: value for key, value in message.items() if key != "role"} for message in messages]
    return name, tuple(strings(said))


@dataclass
class _Found:
    """What was found of one task so far: the record nearest to it, and the nearest of those with a run of it."""

    nearest: Pair | None = None
    overlap: Pair | None = None

    def see(self, pair: Pair) -> None:
        """Take note of a record that has something of the task."""
        if self.nearest is None or pair.likeness > self.nearest.likeness:
            self.nearest = pair
        if pair.common is not None and (self.overlap is None or pair.likeness > self.overlap.likeness):
            self.overlap = pair


def check(tasks: Sequence[BenchmarkTask], records: Iterable[tuple[str, tuple[str, ...]]]) -> tuple[Contamination, ...]:
    """Look for tasks in training records.

    Args:
        tasks: Of any number of benchmarks.
        records: Names and texts.

    Raises:
        InputError: There is no record, so nothing can be said of what was trained on.
    """
    looked_for = _Runs(tasks)
    sizes: list[int] = []
    having: dict[int, list[int]] = defaultdict(list)
    for index, task in enumerate(tasks):
        own = shingles(task.texts)
        sizes.append(len(own))
        for sequence in own:
            having[sequence].append(index)
    found = [_Found() for _ in tasks]
    touched: dict[str, set[str]] = defaultdict(set)
    is_empty = True
    for record, texts in records:
        is_empty = False
        common = dict(looked_for.within(texts))
        shared = Counter(index for sequence in shingles(texts) for index in having.get(sequence, ()))
        for index in sorted({*shared, *common}):
            likeness = shared[index] / sizes[index]
            found[index].see(Pair(task=tasks[index].name, record=record, likeness=likeness, common=common.get(index)))
        for index in common:
            touched[tasks[index].benchmark].add(record)
    if is_empty:
        raise InputError("there is no training record to look for tasks in; export some, or name another file")
    names = dict.fromkeys(task.benchmark for task in tasks)
    return tuple(_summed_up(name, tasks, found, looked_for.testable, len(touched[name])) for name in names)


def _summed_up(
    benchmark: str, tasks: Sequence[BenchmarkTask], found: Sequence[_Found], testable: set[int], records: int
) -> Contamination:
    own = [index for index, task in enumerate(tasks) if task.benchmark == benchmark]
    overlaps = [pair for index in own if (pair := found[index].overlap) is not None]
    nearest = [pair for index in own if (pair := found[index].nearest) is not None]
    able = sum(index in testable for index in own)
    return Contamination(
        benchmark=benchmark,
        tasks=len(own),
        testable=able,
        overlapped=len(overlaps),
        share=len(overlaps) / able if able else 0.0,
        records=records,
        overlaps=tuple(overlaps),
        nearest=tuple(sorted(nearest, key=lambda pair: (-pair.likeness, pair.task))[:NEAREST]),
    )


def lines(found: Sequence[Contamination]) -> Iterator[str]:
    """What was found, in words."""
    for item in found:
        yield (
            f"{item.benchmark}: {item.overlapped:,} of {item.testable:,} tasks ({100 * item.share:.1f} %) stand in "
            f"{item.records:,} records; {item.tasks - item.testable:,} more are too short to tell"
        )
        for pair in item.overlaps[:_SHOWN]:
            yield f"  {pair.task} in {pair.record}: “{pair.common}”"
        if len(item.overlaps) > _SHOWN:
            yield f"  … {len(item.overlaps) - _SHOWN:,} more; --json lists them all"
        for pair in item.nearest:
            yield f"  nearest: {pair.task} and {pair.record}, {100 * pair.likeness:.0f} % of the task's word sequences"


class _Runs:
    """The runs of words of all tasks, ready to be looked for in other texts."""

    def __init__(self, tasks: Sequence[BenchmarkTask]) -> None:
        self.testable: set[int] = set()
        self._known: dict[int, dict[str, list[int]]] = defaultdict(dict)
        for index, task in enumerate(tasks):
            for text in task.texts:
                sequence = words(text)
                if len(sequence) >= PHRASE:
                    self.testable.add(index)
                    length = min(RUN, len(sequence))
                    for run in set(runs(sequence, length)):
                        self._known[length].setdefault(run, []).append(index)

    def within(self, texts: Iterable[str]) -> Iterator[tuple[int, str]]:
        """Tasks with the first of their runs that one of the texts has."""
        found: dict[int, str] = {}
        for text in texts:
            sequence = words(text)
            for length, known in self._known.items():
                for run in runs(sequence, length):
                    for index in known.get(run, ()):
                        found.setdefault(index, run)
        yield from found.items()
