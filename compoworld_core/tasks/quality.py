"""Verifier quality: do rubrics notice slips, and do they let harmless differences pass?

Measured with edits and seeds that the gates do not use (`held_out.py`). What no rubric over free text can notice, such
as two values that an answer attributes to each other's names, is not part of it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable

from compoworld_core.data import Data
from compoworld_core.tasks.held_out import HARMLESS, SLIPS, Subject
from compoworld_core.tasks.play import Played
from compoworld_core.tasks.rubric import first_failure
from compoworld_core.tasks.task import Task
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.world import open_world

MOST_EDITS = 4
"""Edits by one operator that are tried on a task."""


class OperatorCount(Data):
    """What became of the edits of one operator: slips noticed, or harmless differences rejected."""

    operator: str
    made: int
    noticed: int


class Misjudged(Data):
    """An edit that was judged wrongly: a slip that passes, or a harmless difference that is rejected.

    Attributes:
        criterion: The criterion that rejected it; empty for a slip.
    """

    task_id: str
    operator: str
    target: str
    criterion: str = ""


class VerifierQuality(Data):
    """How well the rubrics of some tasks judge.

    Attributes:
        slips: By operator, how many slips were made and noticed.
        harmless: By operator, how many harmless differences were made and noticed, which none should be.
        misjudged: Every edit that was judged wrongly.
    """

    tasks: int
    slips: tuple[OperatorCount, ...]
    harmless: tuple[OperatorCount, ...]
    misjudged: tuple[Misjudged, ...]

    @property
    def kill_rate(self) -> float:
        """Share of slips that were noticed; 1 where there are none."""
        made = sum(item.made for item in self.slips)
        return sum(item.noticed for item in self.slips) / made if made else 1.0

    @property
    def false_reject_rate(self) -> float:
        """Share of harmless differences that were rejected; 0 where there are none."""
        made = sum(item.made for item in self.harmless)
        return sum(item.noticed for item in self.harmless) / made if made else 0.0


def verifier_quality(tasks: Iterable[Task], catalogue: Catalogue, seed: int = 0) -> VerifierQuality:
    """Judge slips and harmless differences with the rubrics of tasks, whoever wrote them."""
    made: dict[str, int] = dict.fromkeys([*SLIPS, *HARMLESS], 0)
    noticed = dict(made)
    misjudged: list[Misjudged] = []
    count = 0
    for task in tasks:
        count += 1
        world = open_world(task.recipe, catalogue)
        subject = Subject.of(task, world, random.Random(f"quality/{seed}/{task.id}"))
        for name, operator in [*SLIPS.items(), *HARMLESS.items()]:
            edits = list(operator(subject))
            if name in SLIPS and len(edits) > MOST_EDITS:
                edits = subject.rng.sample(edits, MOST_EDITS)
            for edit in edits:
                played = subject.stage.play(edit.solution)
                if name in SLIPS and edit.answer is None and _is_same(subject, played):
                    continue  # such as leaving out what is the default
                answer = played.answer if edit.answer is None else edit.answer
                failed = first_failure(task.rubric, played.world, answer)
                made[name] += 1
                noticed[name] += failed is not None
                if (failed is None) == (name in SLIPS):
                    misjudged.append(
                        Misjudged(task_id=task.id, operator=name, target=edit.target, criterion=failed or "")
                    )
    counts = {name: OperatorCount(operator=name, made=made[name], noticed=noticed[name]) for name in made}
    return VerifierQuality(
        tasks=count,
        slips=tuple(counts[name] for name in SLIPS),
        harmless=tuple(counts[name] for name in HARMLESS),
        misjudged=tuple(misjudged),
    )


def _is_same(subject: Subject, played: Played) -> bool:
    """Whether an edit led to the rows and the answer that the reference led to."""
    reference = subject.reference
    return played.answer == reference.answer and all(
        list(played.world.changed_rows(service, table)) == list(reference.world.changed_rows(service, table))
        for service, running in subject.world.services.items()
        for table in running.state.tables
    )
