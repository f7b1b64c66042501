"""Rewards of a group of rollouts of one task, from which criteria each of them passed.

The completion-focused reward weighs a criterion by how rarely the group passes it. What everyone can do already is
worth little, so the gradient goes to the last missing step, and only a rollout that passes everything gets 1. Uniform
and binary rewards are here to compare with.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from compoworld_core.errors import InputError
from compoworld_core.training.config import FLOOR, RewardName

Passed = NDArray[np.bool_]
Rewards = NDArray[np.float64]

_LEAST_SPREAD: Final = 1e-9


def criterion_weights(passed: Passed, floor: float = FLOOR) -> Rewards:
    """Weights of the criteria: `w_c ∝ max(1 - p_c, floor)`, where `p_c` is the group's pass rate of the criterion.

    Args:
        passed: bool array [N rollouts, C criteria].
        floor: λ, above 0 and at most 1.

    Returns:
        float array [C criteria] that sums to 1.

    Raises:
        InputError: The array has another shape, no rollout or no criterion, or the floor is out of range.

    Source: arXiv 2609.33665, the section on the completion-focused rubric reward.
    """
    passed = _checked(passed)
    if not 0 < floor <= 1:
        raise InputError(f"floor={floor}: needs to be above 0 and at most 1")
    raw = np.maximum(1.0 - passed.mean(axis=0), floor)
    weights: Rewards = raw / raw.sum()
    return weights


def completion_focused_reward(passed: Passed, floor: float = FLOOR) -> Rewards:
    """Reward of each rollout: `r_i = Σ_c w_c · passed_ic`, exactly 1 for a full pass and for nothing else.

    Args:
        passed: bool array [N rollouts of one task, C criteria].
        floor: λ, see `criterion_weights`.

    Returns:
        float array [N rollouts] in [0, 1].
    """
    passed = _checked(passed)
    return _exact(passed, passed @ criterion_weights(passed, floor))


def uniform_reward(passed: Passed) -> Rewards:
    """Share of the criteria that each rollout passes; the other rollouts do not matter.

    Args:
        passed: bool array [N rollouts, C criteria].
    """
    passed = _checked(passed)
    return _exact(passed, passed.mean(axis=1))


def binary_reward(passed: Passed) -> Rewards:
    """1 for a full pass, else 0.

    Args:
        passed: bool array [N rollouts, C criteria].
    """
    return np.where(_checked(passed).all(axis=1), 1.0, 0.0)


REWARDS: Final[Mapping[RewardName, Callable[[Passed], Rewards]]] = {
    "completion_focused": completion_focused_reward,
    "uniform": uniform_reward,
    "binary": binary_reward,
}


def group_advantages(rewards: Rewards) -> Rewards:
    """Rewards less the group's mean, over its standard deviation; all 0 where every rollout got the same.

    Args:
        rewards: float array [N rollouts of one task].
    """
    centred: Rewards = rewards - rewards.mean()
    spread = float(rewards.std())
    if spread > _LEAST_SPREAD:
        centred /= spread
    else:
        centred[:] = 0
    return centred


def _checked(passed: Passed) -> Passed:
    array = np.asarray(passed)
    if array.ndim != 2 or array.dtype != np.bool_ or 0 in array.shape:
        raise InputError(
            f"passed: expected a bool array [N rollouts, C criteria] with neither empty, found {array.dtype} "
            f"{list(array.shape)}"
        )
    return array


def _exact(passed: Passed, rewards: Rewards) -> Rewards:
    """Rewards freed of rounding: 1 means a full pass, and nothing else reaches it."""
    below = np.clip(rewards, 0.0, np.nextafter(1.0, 0.0))
    return np.where(passed.all(axis=1), 1.0, below)
