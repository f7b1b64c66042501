"""Sampling: finding normal calls of all tools of a service.

Some calls only make sense after others: what was never archived can't be restored. Tools without a convincing call are
tried again in worlds in which other tools have just been at work, until no tool gains.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress

from compoworld_core.services.arguments import Vocabulary
from compoworld_core.services.state import RowChange
from compoworld_core.synthesis.bench import Bench, Misbehaved, World
from compoworld_core.synthesis.trial import Trial

_ATTEMPTS = 26
_ATTEMPTS_AFTERWARDS = 5
_ATTEMPTS_ELSEWHERE = 16
_ROUNDS = 3


def sample_all(bench: Bench, trials: Sequence[Trial]) -> None:
    """Give every trial its samples."""
    for trial in trials:
        with _testing(bench, trial):
            trial.sample(_ATTEMPTS)
    helpers = [trial for trial in trials if trial.is_convincing]
    for _ in range(_ROUNDS):
        gained: list[Trial] = []
        for trial in trials:
            if not trial.is_convincing:
                with _testing(bench, trial):
                    _sample_afterwards(trial, helpers)
                if trial.is_convincing:
                    gained.append(trial)
        if not gained:
            break
        helpers = gained
    for trial in trials:
        with _testing(bench, trial):
            _sample_elsewhere(trial)


@contextmanager
def _testing(bench: Bench, trial: Trial) -> Iterator[None]:
    bench.subject = trial.name
    with suppress(Misbehaved):
        yield


def _sample_afterwards(trial: Trial, helpers: Sequence[Trial]) -> None:
    """Try a tool after the calls of one other tool, where these touched rows that it can speak about."""
    for helper in helpers:
        touched = {
            entity for sample in helper.samples for change in sample.result.changes for entity in _spoken_of(change)
        }
        if not touched or (trial.entities and not touched & trial.entities):
            continue
        if not (trial.bench.can_call(trial.name) and trial.bench.can_call(helper.name)):
            continue
        running = helper.world.running.fork()
        with suppress(Misbehaved):
            for sample in helper.samples:
                trial.bench.call(running, helper.name, sample.arguments)
        trial.sample_in(World(running, Vocabulary(running, helper.world.vocabulary.universe)), _ATTEMPTS_AFTERWARDS)
        if trial.is_convincing:
            return


def _sample_elsewhere(trial: Trial) -> None:
    """Try a tool in worlds of other seeds."""
    for world in trial.bench.spare_worlds() if not trial.is_convincing else ():
        if trial.is_convincing or not trial.bench.can_call(trial.name):
            return
        trial.sample_in(world, _ATTEMPTS_ELSEWHERE)


def _spoken_of(change: RowChange) -> set[str]:
    """Entities of a changed row and of the rows that it refers to."""
    schema = change.table.schema
    words = schema.semantics.values()
    return {schema.entity, *(word.removeprefix("id:") for word in words if word.startswith("id:"))}
