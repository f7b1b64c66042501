"""Sampling: finding normal calls of all tools of a service.

Some calls only make sense after others: what was never archived can't be restored. Tools without a convincing call are
tried again in worlds in which other tools have just been at work, until no tool gains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from compoworld_core.services.running import RunningService
from compoworld_core.synthesis.bench import Bench, Misbehaved
from compoworld_core.synthesis.trial import Trial

_ATTEMPTS = 26
_ATTEMPTS_ELSEWHERE = 4
_ROUNDS = 3


def sample_all(bench: Bench, trials: Sequence[Trial]) -> None:
    """Give every trial its samples."""
    for trial in trials:
        _sample(bench, trial)
    for _ in range(_ROUNDS):
        waiting = [trial for trial in trials if not trial.is_convincing and trial.name not in bench.faults]
        if not waiting:
            break
        for trial in waiting:
            _sample_elsewhere(bench, trial, trials)
        if not any(trial.is_convincing for trial in waiting):
            break


def _sample(bench: Bench, trial: Trial) -> None:
    bench.subject = trial.name
    try:
        trial.sample(_ATTEMPTS)
    except Misbehaved:
        return


def _sample_elsewhere(bench: Bench, trial: Trial, trials: Sequence[Trial]) -> None:
    bench.subject = trial.name
    for running in _worlds_after(bench, trial, trials):
        try:
            trial.sample_in(running, _ATTEMPTS_ELSEWHERE)
        except Misbehaved:
            return
        if trial.is_convincing:
            return


def _worlds_after(bench: Bench, trial: Trial, trials: Sequence[Trial]) -> Iterator[RunningService]:
    """Worlds after the calls of one other tool each, where these touched rows that the tool can speak about."""
    wanted = trial.entities
    for other in trials:
        if other is trial or not bench.can_call(other.name) or not bench.can_call(trial.name):
            continue
        touched = {change.table.schema.entity for sample in other.samples for change in sample.result.changes}
        if not touched or (wanted and not touched & wanted):
            continue
        running = other.world.running.fork()
        for sample in other.samples:
            try:
                bench.call(running, other.name, sample.arguments)
            except Misbehaved:
                break
        yield running
