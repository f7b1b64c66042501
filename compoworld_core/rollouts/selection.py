"""Selection: which trajectories become training data, and why the others do not.

Every trajectory has one outcome: it is kept, or the first rule that speaks against it is named. The rules look at
trajectories in their order: of those that say the same, the first is kept. So the same trajectories and rules always
give the same selection.
"""

from __future__ import annotations

import math
from array import array
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final, Literal, NamedTuple, get_args

from pydantic import Field, field_validator
from pydantic_core import PydanticCustomError

from compoworld_core.data import Data
from compoworld_core.errors import InputError
from compoworld_core.llm.messages import AssistantMessage, Usage
from compoworld_core.rollouts.contamination import Overlaps, find_overlaps
from compoworld_core.rollouts.likeness import LikenessIndex, Shingles, shingles
from compoworld_core.rollouts.trajectory import Trajectory, touches_world_model
from compoworld_core.storage.digest import digest
from compoworld_core.tasks.task import Split, Task

TRAINING_SPLITS: Final[tuple[Split, ...]] = ("sft", "rl")

Reason = Literal[
    "kept",
    "sft",
    "rl",
    "eval_task",
    "eval_combo",
    "eval_service",
    "not_well_formed",
    "failed",
    "world_model",
    "contaminated",
    "duplicate",
    "near_duplicate",
    "over_cap",
    "over_count",
]
"""What becomes of a trajectory. The name of a split: it belongs to that one. `duplicate`: it makes (nearly) the same
calls as another of its task. `near_duplicate`: it was asked and says nearly the same as another."""


class SelectionRules(Data):
    """What training data is made of."""

    split: Split = Field(default="sft", description="Whose tasks: sft or rl.")
    failures: bool = Field(default=False, description="Keep trajectories that did not succeed, too.")
    world_model: bool = Field(default=True, description="Keep trajectories in which a world model answered.")
    per_task: int | None = Field(default=None, ge=1, description="Most trajectories of a task.")
    count: int | None = Field(
        default=None, ge=1, description="Most trajectories in all; each task's first go before any task's second."
    )
    similarity: float | None = Field(
        default=0.9, gt=0, le=1, description="Likeness from which a trajectory repeats another; null keeps repetitions."
    )
    decontaminate: str | None = Field(
        default=None, description="Folder of texts (.txt, .md, .json, .jsonl) that must not come back in the data."
    )

    @field_validator("split")
    @classmethod
    def _is_for_training(cls, split: Split) -> Split:
        if split not in TRAINING_SPLITS:
            problem = f"'{split}' is for evaluation and never exported; use {' or '.join(TRAINING_SPLITS)}"
            raise PydanticCustomError("contradiction", "{problem}", {"key": "export.split", "problem": problem})
        return split


class Outcome(NamedTuple):
    """What becomes of a trajectory; the detail names what it repeats or the file that it overlaps with."""

    reason: Reason
    detail: str = ""


@dataclass(frozen=True)
class Selection:
    """The outcomes of all trajectories.

    Attributes:
        outcomes: By task id and rollout index.
        usage: What all of them took.
        overlaps: What was compared with; None where nothing was.
    """

    outcomes: dict[tuple[str, int], Outcome]
    usage: Usage
    overlaps: Overlaps | None

    @property
    def counts(self) -> dict[Reason, int]:
        """Trajectories by reason, in the order in which the rules are asked; only those that occur."""
        found = Counter(outcome.reason for outcome in self.outcomes.values())
        return {reason: found[reason] for reason in get_args(Reason) if found[reason]}

    @property
    def size(self) -> int:
        """How many are kept."""
        return self.counts.get("kept", 0)

    def kept(self, trajectories: Iterable[Trajectory]) -> Iterator[Trajectory]:
        """Those of the same trajectories that are kept."""
        return (item for item in trajectories if self.outcomes[_key(item)].reason == "kept")


def select(trajectories: Iterable[Trajectory], tasks: Iterable[Task], rules: SelectionRules) -> Selection:
    """Decide what becomes of each trajectory.

    Args:
        trajectories: Gone through once; little of each is held in memory.
        tasks: With those that the trajectories are of.

    Raises:
        InputError: A trajectory's task is not among the tasks, or what to compare with can't be read.
    """
    known = {task.id: _About(task.split, task.instruction) for task in tasks}
    outcomes: dict[tuple[str, int], Outcome] = {}
    candidates: list[_Candidate] = []
    usage = Usage()
    for trajectory in trajectories:
        about = known.get(trajectory.task_id)
        if about is None:
            raise InputError(
                f"trajectory {trajectory.id} is of {trajectory.task_id}, which is not among the tasks; "
                "export with the tasks that the trajectories were made from"
            )
        usage = Usage.total((usage, trajectory.usage))
        reason = _objection(trajectory, about.split, rules)
        outcomes[_key(trajectory)] = Outcome(reason)
        if reason == "kept":
            candidates.append(_Candidate.of(trajectory, about.instruction, rules.similarity is not None))
    overlaps = _overlaps(candidates, known, rules)
    for candidate, outcome in _sifted(candidates, rules, overlaps):
        outcomes[candidate.key] = outcome
    for key in _beyond([key for key, outcome in outcomes.items() if outcome.reason == "kept"], rules.count):
        outcomes[key] = Outcome("over_count")
    return Selection(outcomes, usage, overlaps)


class _About(NamedTuple):
    split: Split
    instruction: str


@dataclass(frozen=True, slots=True)
class _Candidate:
    """What is remembered of a trajectory until all are known.

    Attributes:
        calls: Hash of each call, in order.
        said: What the policy was asked and said, as word sequences.
    """

    key: tuple[str, int]
    answer: str
    calls: array[int]
    said: Shingles

    @property
    def name(self) -> str:
        task, index = self.key
        return f"{task}/{index}"

    @classmethod
    def of(cls, trajectory: Trajectory, instruction: str, is_compared: bool) -> _Candidate:
        calls = ([call.name, call.arguments] for call in trajectory.calls)
        return cls(
            key=_key(trajectory),
            answer=trajectory.answer or "",
            calls=array("Q", (int(digest(call)[:16], 16) for call in calls) if is_compared else ()),
            said=shingles([instruction, *_said(trajectory)]) if is_compared else array("Q"),
        )


def _key(trajectory: Trajectory) -> tuple[str, int]:
    return trajectory.task_id, trajectory.rollout_idx


def _said(trajectory: Trajectory) -> Iterator[str]:
    for message in trajectory.messages:
        if isinstance(message, AssistantMessage):
            yield " ".join([message.content, *(f"{call.name} {call.arguments}" for call in message.tool_calls)])


def _objection(trajectory: Trajectory, split: Split, rules: SelectionRules) -> Reason:
    """What a trajectory's own content has against it; `kept` if nothing."""
    if split != rules.split:
        return split
    if not trajectory.is_well_formed:
        return "not_well_formed"
    if not trajectory.succeeded and not rules.failures:
        return "failed"
    if touches_world_model(trajectory) and not rules.world_model:
        return "world_model"
    return "kept"


def _overlaps(candidates: list[_Candidate], known: dict[str, _About], rules: SelectionRules) -> Overlaps | None:
    if rules.decontaminate is None:
        return None
    texts = {candidate.name: candidate.answer for candidate in candidates}
    texts |= {task: known[task].instruction for task, _ in (candidate.key for candidate in candidates)}
    return find_overlaps(texts, Path(rules.decontaminate))


def _sifted(
    candidates: list[_Candidate], rules: SelectionRules, overlaps: Overlaps | None
) -> Iterator[tuple[_Candidate, Outcome]]:
    """What others, and texts from elsewhere, have against each candidate."""
    index = LikenessIndex((item.said for item in candidates), rules.similarity) if rules.similarity else None
    kept: dict[str, list[_Candidate]] = {}
    found = overlaps.found if overlaps else {}
    for candidate in candidates:
        task = candidate.key[0]
        siblings = kept.setdefault(task, [])
        outcome = Outcome("kept")
        if (file := found.get(task) or found.get(candidate.name)) is not None:
            outcome = Outcome("contaminated", file)
        elif rules.similarity and (sibling := _repeated(candidate, siblings, rules.similarity)) is not None:
            outcome = Outcome("duplicate", sibling.name)
        elif index and (other := index.like(candidate.said)) is not None:
            outcome = Outcome("near_duplicate", other)
        elif len(siblings) >= (rules.per_task or math.inf):
            outcome = Outcome("over_cap")
        if outcome.reason == "kept":
            siblings.append(candidate)
            if index:
                index.add(candidate.name, candidate.said)
        yield candidate, outcome


def _beyond(kept: list[tuple[str, int]], count: int | None) -> list[tuple[str, int]]:
    """Those of the kept that are too many, once as many tasks as can be have one, then a second, and so on."""
    if count is None:
        return []
    seen: Counter[str] = Counter()
    turns: list[tuple[int, int]] = []
    for place, (task, _) in enumerate(kept):
        turns.append((seen[task], place))
        seen[task] += 1
    return [kept[place] for _, place in sorted(turns)[count:]]


def _repeated(candidate: _Candidate, siblings: list[_Candidate], threshold: float) -> _Candidate | None:
    """The first of its task that makes nearly the same calls in nearly the same order."""
    for sibling in siblings:
        matcher = SequenceMatcher(None, sibling.calls, candidate.calls, autojunk=False)
        if matcher.real_quick_ratio() >= threshold and matcher.ratio() >= threshold:
            return sibling
    return None
