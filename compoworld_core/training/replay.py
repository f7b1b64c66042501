"""Success replay: a stored success joins a group that fails a criterion as a whole.

Weights cannot help where nobody passes: the criterion adds 0 to every reward, so it makes no difference between
rollouts. With a success in the group its pass rate is above 0, and the success gets a positive advantage, mostly for
what the others lack. Between the others the criterion still makes no difference: all of the signal is in the
success's own tokens. It has to be trained on like a rollout; a success that only shifted the others' rewards would
teach them nothing but to be less likely.

It takes the place of a rollout, so that batches keep their shape on every process. The place never depends on how
well a rollout did, or the group would no longer show what the policy does.
"""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import Field

from compoworld_core.data import Data
from compoworld_core.errors import InputError

Judged = tuple[bool, ...] | None
"""Which criteria a rollout passes; None where it could not be judged."""


class Success(Data):
    """A verified trajectory that is kept to be replayed.

    Attributes:
        trajectory: Its id; the tokens are fetched by it.
        passed: The criteria of the task that it passes, in the rubric's order.
    """

    trajectory: str
    passed: tuple[bool, ...] = Field(min_length=1)


class Replay(Data):
    """What a trainer has to do with a group.

    Before it computes old log-probabilities, it puts the success's tokens in the place of a rollout's: the same
    prompt, the trajectory as completion, its tool answers masked out of the loss. The success was not sampled by this
    policy. Its old log-probabilities are those of the policy before the step's first update, and a correction for a
    sampler's probabilities is 1 for it; so the first update is supervised learning weighted by the advantage, and the
    clip bounds the later ones. Rewards and advantages are those of `with_replay`. Reported pass rates are those of
    the group without it.

    Attributes:
        place: Which rollout of the group gives way.
        success: What comes instead.
        criteria: Those that the group failed as a whole and the success passes.
    """

    place: int
    success: Success
    criteria: tuple[int, ...] = Field(min_length=1)


def failed_by_all(group: Sequence[Judged]) -> tuple[int, ...]:
    """The criteria that no judged rollout passes; none where no rollout was judged.

    Raises:
        InputError: The rollouts were not judged by the same criteria.
    """
    judged = [passed for passed in group if passed is not None]
    if len({len(passed) for passed in judged}) > 1:
        raise InputError(f"rollouts of one group have {sorted({len(passed) for passed in judged})} criteria")
    return tuple(place for place, column in enumerate(zip(*judged, strict=True)) if not any(column))


def plan_replay(group: Sequence[Judged], stored: Sequence[Success]) -> Replay | None:
    """Choose the success that passes most of what a whole group fails; the first of several.

    Args:
        group: All rollouts of a task, in the order of the batch.
        stored: Successes of the same task.

    Returns:
        None where replay is not needed or nothing stored helps.

    Raises:
        InputError: A success was judged by other criteria than the group.
    """
    missing = failed_by_all(group)
    if not missing or not stored:
        return None
    criteria = next(len(passed) for passed in group if passed is not None)
    for success in stored:
        if len(success.passed) != criteria:
            raise InputError(
                f"trajectory {success.trajectory}: was judged by {len(success.passed)} criteria, "
                f"the group by {criteria}"
            )
    gained = [tuple(place for place in missing if success.passed[place]) for success in stored]
    best = max(range(len(stored)), key=lambda index: len(gained[index]))
    if not gained[best]:
        return None
    unjudged = [place for place, passed in enumerate(group) if passed is None]
    return Replay(place=(unjudged or [len(group) - 1])[0], success=stored[best], criteria=gained[best])


def with_replay(group: Sequence[Judged], replay: Replay | None) -> list[Judged]:
    """The group of which rewards and advantages are computed."""
    joined = list(group)
    if replay is not None:
        joined[replay.place] = replay.success.passed
    return joined
