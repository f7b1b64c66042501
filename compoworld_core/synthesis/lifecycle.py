"""Lifecycle: a row is created, read, updated and deleted through the service's own tools, and each step shows.

Which tool plays which part is told by what its calls did to rows and by the ids that it takes, never by its name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from compoworld_core.services.running import CallResult, RunningService
from compoworld_core.services.schema import semantic_of
from compoworld_core.services.state import RowChange
from compoworld_core.synthesis.bench import Misbehaved, scalars
from compoworld_core.synthesis.finding import Finding
from compoworld_core.synthesis.trial import Sample, Trial

_CREATORS = 3
_UPDATERS = 2


def follows_rows(trial: Trial) -> Finding | None:
    """A read that shows a row finds it once created, shows its updates and is refused it once deleted."""
    if trial.effect != "read" or not trial.samples:
        return None
    part = next(_shown_parts(trial), None)
    if part is None:
        return None
    steps: list[str] = []
    faults: list[str] = []
    for creator in _playing(trial, part.entity, _is_creation)[:_CREATORS]:
        try:
            faults = _live(part, creator, steps)
        except Misbehaved as fault:
            if fault.tool == trial.name:
                raise
            continue
        if not faults:
            break
    if not steps:
        return None
    return Finding(
        check="follows_rows",
        passed=not faults,
        detail="; ".join(faults or dict.fromkeys(steps)),
        cases=len(steps),
    )


@dataclass(frozen=True)
class _Reader:
    """A tool that shows the row whose id it is given."""

    trial: Trial
    sample: Sample
    parameter: str
    entity: str

    def read(self, running: RunningService, key: str) -> CallResult:
        value: Any = self.sample.arguments[self.parameter]
        typed = int(key) if isinstance(value, int) else key
        arguments = {**self.sample.arguments, self.parameter: typed}
        return self.trial.bench.call(running.fork(), self.trial.name, arguments)


def _shown_parts(trial: Trial) -> Iterator[_Reader]:
    """The required ids whose row's own values the tool's answer shows."""
    for sample in trial.samples:
        for name in trial.arguments.required:
            word = semantic_of(trial.arguments.properties[name]) or ""
            value = sample.arguments.get(name)
            if not word.startswith("id:") or not isinstance(value, str | int):
                continue
            row = _row(trial.world.running, word.removeprefix("id:"), str(value))
            if row is not None and _shows(sample.result, row, sample):
                yield _Reader(trial, sample, name, word.removeprefix("id:"))


def _row(running: RunningService, entity: str, key: str) -> dict[str, Any] | None:
    for table in running.state.tables.values():
        if table.schema.entity == entity and (record := table.find(key)) is not None:
            return table.type.view(record)
    return None


def _shows(result: CallResult, row: dict[str, Any], sample: Sample) -> bool:
    """Whether an answer holds at least two telling values of a row, or all that it has."""
    given = {str(item) for item in scalars(sample.arguments)}
    telling = {str(item) for item in scalars(row) if len(str(item)) > 2} - given
    found = telling & {str(item) for item in scalars(result.envelope["data"])}
    return bool(telling) and len(found) >= min(2, len(telling))


def _is_creation(change: RowChange) -> bool:
    return change.before is None


def _is_update(change: RowChange) -> bool:
    return change.before is not None and change.after is not None


def _is_deletion(change: RowChange) -> bool:
    return change.after is None


def _playing(trial: Trial, entity: str, plays: Callable[[RowChange], bool]) -> list[tuple[Trial, Sample]]:
    """Tools whose normal calls did such a change to a row of the entity, each with the call."""
    found = []
    for other in trial.peers:
        for sample in other.samples:
            if any(change.table.schema.entity == entity and plays(change) for change in sample.result.changes):
                found.append((other, sample))
                break
    return found


def _live(reader: _Reader, creator: tuple[Trial, Sample], steps: list[str]) -> list[str]:
    """Play a row's life and say what the reader got wrong."""
    bench = reader.trial.bench
    running = creator[0].world.running.fork()
    made = bench.call(running, creator[0].name, creator[1].arguments)
    key = next((c.key for c in made.changes if c.table.schema.entity == reader.entity and _is_creation(c)), None)
    if key is None:
        return []
    first = reader.read(running, key)
    steps.append("finds a created row")
    if not first.succeeded:
        code = first.envelope["error"]["code"]
        is_asked_by_id_alone = reader.trial.arguments.required == (reader.parameter,)
        is_wrong = code == "not_found" and is_asked_by_id_alone
        return [f"answers {code} for a row that {creator[0].name} created"] if is_wrong else []
    for updater in _playing(reader.trial, reader.entity, _is_update)[:_UPDATERS]:
        result = _act(updater, running, reader.entity, key)
        change = next((c for c in result.changes if c.key == key and _is_update(c)), None) if result else None
        if change is None:
            continue
        steps.append("shows an updated row")
        second = reader.read(running, key)
        if second.envelope == first.envelope and _showed_old(first, change):
            return [f"shows old values after {updater[0].name}"]
        first = second if second.succeeded else first
    for deleter in _playing(reader.trial, reader.entity, _is_deletion)[:_UPDATERS]:
        result = _act(deleter, running, reader.entity, key)
        gone = next((c for c in result.changes if c.key == key and _is_deletion(c)), None) if result else None
        if gone is None or gone.before_row is None:
            continue
        steps.append("does not show a deleted row")
        last = reader.read(running, key)
        if last.succeeded and _shows(last, gone.before_row, reader.sample):
            return [f"shows a row that {deleter[0].name} deleted"]
        break
    return []


def _act(actor: tuple[Trial, Sample], running: RunningService, entity: str, key: str) -> CallResult | None:
    """Let a tool do to one row what its normal call did to another; None where the id can't be told."""
    trial, sample = actor
    for name, value in sample.arguments.items():
        if semantic_of(trial.arguments.properties.get(name, {})) == f"id:{entity}" and isinstance(value, str | int):
            typed = int(key) if isinstance(value, int) else key
            result = trial.bench.call(running, trial.name, {**sample.arguments, name: typed})
            return result if result.succeeded else None
    return None


def _showed_old(result: CallResult, change: RowChange) -> bool:
    """Whether an answer holds an old value of a changed field that is telling enough not to be there by chance."""
    before, after = change.before_row or {}, change.after_row or {}
    answered = {str(item) for item in scalars(result.envelope["data"])}
    old = {str(item) for key in before if before[key] != after.get(key) for item in scalars(before[key])}
    return any(len(item) > 3 and item in answered for item in old)
