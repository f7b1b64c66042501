"""The simulated tasks and the policy gradient on them do what is said of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from compoworld_core.training.reward import REWARDS
from compoworld_core.training.simulation import (
    LAST,
    NOTHING,
    SEEDS,
    Hyperparameters,
    Policy,
    SimulatedTask,
    compare,
    learn,
    make_task,
    plot,
    summarise,
    table,
)

SETTINGS = Hyperparameters(tasks=1, criteria=3, phases=2, steps=3)
PAIR = SimulatedTask(needs=(1, 2), after=(NOTHING, 0), moves=4)
OUT_OF_REACH = Hyperparameters(tasks=1, criteria=4, habit=5, steps=60)
"""The habit makes the last criteria so unlikely that nobody ever passes them."""


@pytest.mark.parametrize(
    ("moves", "passed"),
    [
        ([0, 1, 1, 0], [True, True]),
        ([0, 1, 0, 0], [True, False]),
        ([1, 1, 0, 1], [True, False]),
        ([1, 1, 1, 1], [False, False]),
    ],
    ids=["all", "one move too few", "before what it builds on", "never what it builds on"],
)
def test_moves_count_after_what_they_build_on(moves: list[int], passed: list[bool]) -> None:
    assert PAIR.judge(np.array([moves])).tolist() == [passed]


@given(st.integers(0, 10_000))
def test_every_task_can_be_solved(seed: int) -> None:
    task = make_task(Hyperparameters(), np.random.default_rng(seed))

    solution = task.solution()

    assert len(solution) == task.moves
    assert task.judge(solution[None]).all()


def test_the_first_update_follows_the_gradient_of_the_expected_advantage() -> None:
    settings = Hyperparameters(updates=1, learning_rate=1, phases=2)
    moves = np.array([[0, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]])
    advantages = np.array([1.2, -0.7, 0.3])

    def gained(logits: np.ndarray) -> float:
        policy = Policy(PAIR, settings)
        policy._logits = logits
        chances = policy.probabilities()[np.arange(4), moves]
        return float((np.log(chances) * advantages[:, None]).mean())

    policy = Policy(PAIR, settings)
    before = policy._logits.copy()
    policy.learn(moves, advantages)

    for place in np.ndindex(before.shape):
        nudge = np.zeros_like(before)
        nudge[place] = 1e-5
        slope = (gained(before + nudge) - gained(before - nudge)) / 2e-5
        assert (policy._logits - before)[place] == pytest.approx(slope, abs=1e-8)


def ratio_after_many_updates(advantage: float, clip: float) -> float:
    """How much more or less likely a move becomes that is all that was done."""
    settings = Hyperparameters(updates=400, learning_rate=0.05, phases=1, clip_low=clip, clip_high=clip)
    policy = Policy(PAIR, settings)
    before = policy.probabilities()
    policy.learn(np.ones((2, 4), dtype=np.int64), np.full(2, advantage))
    return float((policy.probabilities() / before)[0, 1])


@pytest.mark.parametrize(("advantage", "bound"), [(1.0, 1.2), (-1.0, 0.8)])
def test_the_clip_keeps_later_updates_near_the_policy_that_sampled(advantage: float, bound: float) -> None:
    clipped, free = (ratio_after_many_updates(advantage, clip) for clip in (0.2, 100.0))

    assert clipped == pytest.approx(bound, abs=0.05)
    assert abs(free - 1) > 2 * abs(clipped - 1)


@pytest.mark.parametrize("reward", REWARDS)
def test_chance_comes_from_the_seed_alone(reward: str) -> None:
    first, again = (learn(reward, 7, SETTINGS) for _ in range(2))  # type: ignore[arg-type]

    assert first.tolist() == again.tolist()


def test_what_nobody_passes_is_learnt_only_with_replay() -> None:
    alone = learn("completion_focused", 0, OUT_OF_REACH)
    helped = learn("completion_focused", 0, OUT_OF_REACH, replay=True)

    assert alone.max() == 0
    assert helped[:5].max() == 0
    assert helped[-20:].mean() > 0.1


def test_every_variant_is_compared_on_ten_seeds() -> None:
    rates = compare(SETTINGS)
    figures = summarise(rates)

    assert {values.shape for values in rates.values()} == {(SEEDS, SETTINGS.steps)}
    assert figures["completion-focused"]["difference"].mean == 0
    assert figures["uniform"]["difference"].mean == pytest.approx(
        (rates["uniform"] - rates["completion-focused"])[:, -LAST:].mean()
    )
    assert plot(rates).count("<polyline") == len(rates) == table(figures).count("\n") - 2


@pytest.mark.slow
def test_the_figures_in_the_docs_are_those_that_the_command_prints() -> None:
    assert table(summarise(compare())) in Path("docs/reward.md").read_text(encoding="utf-8")
