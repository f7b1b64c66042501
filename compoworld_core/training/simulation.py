"""Rewards compared by learning: a policy gradient on tasks small enough to repeat with ten seeds in a minute.

A rollout has a limited number of moves. Each move works on one criterion; a criterion passes once it got as many
moves as it needs, and moves count only after the criteria that it builds on have passed. So effort is coupled: what
goes to one criterion is missing at another, and a late one fails with those before it. The policy chooses moves by a
softmax that depends on the task and on how far the rollout is, and starts with a habit of doing what comes first. It
learns as GRPO does: group advantages, clipped ratios, several updates on the same rollouts, no KL.

This says how rewards compare on such tasks. It does not say how they compare on a language model.

    python -m compoworld_core.training.simulation --out FOLDER    print the table; write it, the figures and the plot
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from compoworld_core.training.config import RewardName
from compoworld_core.training.curves import Curve, draw
from compoworld_core.training.replay import Success, plan_replay
from compoworld_core.training.reward import REWARDS, Passed, group_advantages

Numbers = NDArray[np.float64]
Moves = NDArray[np.int64]

NOTHING: Final = -1
SEEDS: Final = 10
LAST: Final = 30
POINT: Final = 10
_T_OF_TEN: Final = 2.262
"""97.5 % quantile of Student's t with 9 degrees of freedom."""

VARIANTS: Final[Mapping[str, tuple[RewardName, bool]]] = {
    "completion-focused": ("completion_focused", False),
    "uniform": ("uniform", False),
    "binary": ("binary", False),
    "completion-focused, with success replay": ("completion_focused", True),
}
"""What is compared: the reward, and whether solutions are replayed."""


@dataclass(frozen=True)
class Hyperparameters:
    """The same for every reward.

    Attributes:
        slack: Moves beyond those that a task needs, as a share of them.
        phases: Parts of a rollout in which the policy may prefer different moves.
        habit: How much less likely each criterion is than the one before it, at the start, in logits.
        learning_rate: Of plain gradient ascent.
    """

    tasks: int = 8
    criteria: int = 6
    slack: float = 0.4
    phases: int = 4
    habit: float = 0.4
    rollouts: int = 8
    steps: int = 300
    updates: int = 2
    learning_rate: float = 4.0
    clip_low: float = 0.20
    clip_high: float = 0.28


@dataclass(frozen=True)
class SimulatedTask:
    """What a task asks for.

    Attributes:
        needs: Moves that each criterion needs.
        after: The criterion that has to pass before moves on this one count; `NOTHING` for none.
        moves: Of a rollout.
    """

    needs: tuple[int, ...]
    after: tuple[int, ...]
    moves: int

    def judge(self, moves: Moves) -> Passed:
        """Which criteria pass.

        Args:
            moves: int array [N rollouts, moves] of criteria that were worked on.

        Returns:
            bool array [N rollouts, C criteria].
        """
        everyone = np.arange(len(moves))
        needs, after = np.array(self.needs), np.array(self.after)
        done = np.zeros((len(moves), len(needs)), dtype=np.int64)
        for move in moves.T:
            before = after[move]
            counts = (before == NOTHING) | (done[everyone, before] >= needs[before])
            done[everyone, move] += counts
        return done >= needs

    def solution(self) -> Moves:
        """Moves that pass everything: each criterion after what it builds on; what is left goes to the first one."""
        ordered = [criterion for criterion, need in enumerate(self.needs) for _ in range(need)]
        spare = [0] * (self.moves - len(ordered))
        return np.array([*ordered, *spare], dtype=np.int64)


def make_task(settings: Hyperparameters, rng: np.random.Generator) -> SimulatedTask:
    """Draw a task; criteria build only on earlier ones, and later ones need more."""
    needs = [int(rng.integers(1, 3 + place // 2)) for place in range(settings.criteria)]
    after = [
        int(rng.integers(0, place)) if place and rng.random() < 0.5 else NOTHING for place in range(settings.criteria)
    ]
    return SimulatedTask(tuple(needs), tuple(after), int(np.ceil(sum(needs) * (1 + settings.slack))))


class Policy:
    """A softmax over the criteria, for each phase of one task."""

    def __init__(self, task: SimulatedTask, settings: Hyperparameters) -> None:
        self._settings = settings
        self._phase = np.arange(task.moves) * settings.phases // task.moves
        self._logits = np.tile(-settings.habit * np.arange(len(task.needs), dtype=np.float64), (settings.phases, 1))

    def probabilities(self) -> Numbers:
        """Of each criterion at each move: [moves, C]."""
        weights = np.exp(self._logits - self._logits.max(axis=1, keepdims=True))
        return np.asarray((weights / weights.sum(axis=1, keepdims=True))[self._phase], dtype=np.float64)

    def act(self, rollouts: int, rng: np.random.Generator) -> Moves:
        """Sample rollouts: [N, moves]."""
        bounds = self.probabilities().cumsum(axis=1)
        chance = rng.random((rollouts, len(bounds), 1))
        moves: Moves = np.minimum((chance > bounds).sum(axis=2), bounds.shape[1] - 1)
        return moves

    def learn(self, moves: Moves, advantages: Numbers) -> None:
        """Clipped updates on the same rollouts; the first of them sees ratios of 1."""
        settings = self._settings
        place = np.arange(moves.shape[1])
        old = self.probabilities()[place, moves]
        chosen = np.eye(self._logits.shape[1])[moves]
        advantage = advantages[:, None]
        for _ in range(settings.updates):
            probabilities = self.probabilities()
            ratio = probabilities[place, moves] / old
            is_clipped = np.where(advantage > 0, ratio > 1 + settings.clip_high, ratio < 1 - settings.clip_low)
            weight = np.where(is_clipped, 0.0, ratio * advantage)
            slope = (weight[:, :, None] * (chosen - probabilities)).sum(axis=0) / moves.size
            np.add.at(self._logits, self._phase, settings.learning_rate * slope)


def learn(
    reward: RewardName, seed: int, settings: Hyperparameters = Hyperparameters(), *, replay: bool = False
) -> Numbers:
    """Train a policy on tasks of its own.

    Args:
        reward: What rollouts get.
        seed: Decides the tasks and all chance; rewards with the same seed meet the same tasks.
        settings: Sizes and rates.
        replay: Whether a solution joins groups that fail a criterion as a whole.

    Returns:
        Full-pass rate of the rollouts of each step, before the policy learns from them; replayed ones do not count.
    """
    rng = np.random.default_rng(seed)
    tasks = [make_task(settings, rng) for _ in range(settings.tasks)]
    policies = [Policy(task, settings) for task in tasks]
    rates = np.zeros(settings.steps)
    for step in range(settings.steps):
        full = 0
        for task, policy in zip(tasks, policies, strict=True):
            moves = policy.act(settings.rollouts, rng)
            passed = task.judge(moves)
            full += int(passed.all(axis=1).sum())
            if replay:
                moves, passed = _replayed(task, moves, passed)
            policy.learn(moves, group_advantages(REWARDS[reward](passed)))
        rates[step] = full / (settings.tasks * settings.rollouts)
    return rates


def _replayed(task: SimulatedTask, moves: Moves, passed: Passed) -> tuple[Moves, Passed]:
    solution = task.solution()
    success = Success(trajectory="solution", passed=tuple(task.judge(solution[None])[0].tolist()))
    plan = plan_replay([tuple(row) for row in passed.tolist()], [success])
    if plan is None:
        return moves, passed
    moves, passed = moves.copy(), passed.copy()
    moves[plan.place], passed[plan.place] = solution, success.passed
    return moves, passed


@dataclass(frozen=True)
class Estimate:
    """A mean over the seeds, and half the width of its 95 % interval by Student's t."""

    mean: float
    margin: float

    @classmethod
    def of(cls, values: Numbers) -> Estimate:
        """From one value of each of the ten seeds."""
        return cls(float(values.mean()), float(_T_OF_TEN * values.std(ddof=1) / math.sqrt(len(values))))

    def __str__(self) -> str:
        return f"{self.mean:.2f} ± {self.margin:.2f}"


def compare(settings: Hyperparameters = Hyperparameters()) -> dict[str, Numbers]:
    """Full-pass rates [10 seeds, steps] of each variant, all on the same tasks."""
    return {
        name: np.stack([learn(reward, seed, settings, replay=replay) for seed in range(SEEDS)])
        for name, (reward, replay) in VARIANTS.items()
    }


def summarise(rates: Mapping[str, Numbers]) -> dict[str, dict[str, Estimate]]:
    """The figures of each variant: over the last steps, over all steps, and less the completion-focused reward's."""
    reference = next(iter(VARIANTS))
    late = {name: values[:, -LAST:].mean(axis=1) for name, values in rates.items()}
    return {
        name: {
            "last": Estimate.of(late[name]),
            "all": Estimate.of(values.mean(axis=1)),
            "difference": Estimate.of(late[name] - late[reference]),
        }
        for name, values in rates.items()
    }


def table(figures: Mapping[str, Mapping[str, Estimate]]) -> str:
    """The figures in Markdown."""
    head = f"| reward | last {LAST} steps | all steps | less the first row, last {LAST} steps |\n|---|---|---|---|\n"
    return head + "".join(
        f"| {name} | {about['last']} | {about['all']} | {about['difference'] if index else ''} |\n"
        for index, (name, about) in enumerate(figures.items())
    )


def plot(rates: Mapping[str, Numbers]) -> str:
    """Mean rates with their intervals as SVG, each point the mean of some steps."""
    curves = []
    for name, values in rates.items():
        blocks = np.array_split(values, max(2, values.shape[1] // POINT), axis=1)
        points = [Estimate.of(block.mean(axis=1)) for block in blocks]
        ends = np.cumsum([block.shape[1] for block in blocks])
        curves.append(
            Curve(
                name,
                x=[float(end) for end in ends],
                y=[point.mean for point in points],
                low=[point.mean - point.margin for point in points],
                high=[point.mean + point.margin for point in points],
            )
        )
    return draw(
        curves,
        title=f"Simulated tasks: full-pass rate, {SEEDS} seeds, 95 % intervals",
        x_label=f"step (each point is the mean of {POINT})",
        y_label="full-pass rate",
    )


def main() -> None:
    """Compare, print the table, and write everything to a folder."""
    parser = argparse.ArgumentParser(description="Compare rewards by a simulated policy gradient.")
    parser.add_argument("--out", type=Path, required=True, help="folder for simulation.md, .json and .svg")
    out: Path = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    settings = Hyperparameters()
    rates = compare(settings)
    figures = summarise(rates)
    document: dict[str, Any] = {
        "settings": asdict(settings),
        "seeds": SEEDS,
        "figures": {name: {key: asdict(value) for key, value in about.items()} for name, about in figures.items()},
        "rates": {name: np.round(values.mean(axis=0), 4).tolist() for name, values in rates.items()},
    }
    (out / "simulation.json").write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    (out / "simulation.md").write_text(table(figures), encoding="utf-8")
    (out / "simulation.svg").write_text(plot(rates), encoding="utf-8")
    sys.stdout.write(table(figures))


if __name__ == "__main__":
    main()
