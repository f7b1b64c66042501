"""The held-out suite: tasks that nobody trained on, the further from training the harder, judged by their rubrics.

The suite's domains are its splits: `eval_task` has new tasks of what training knows, `eval_combo` known services in
combinations that are kept back (of tools, where a task has one service), `eval_service` services that are. Whoever
works on them does so through the rollouts' own runner, and the grader is the rubric, so the same answers always give
the same trials.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Final

from compoworld_core.evaluation.calls import CallCount, count_calls
from compoworld_core.evaluation.trial import Trial
from compoworld_core.llm.config import Price
from compoworld_core.rollouts.distill import Notes, distill
from compoworld_core.rollouts.episode import EpisodeLimits
from compoworld_core.rollouts.policy import PolicyFactory
from compoworld_core.rollouts.trajectory import ErrorKind, Trajectory
from compoworld_core.tasks.task import Split, Task
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.world import open_world

BENCHMARK: Final = "held-out"
SPLITS: Final[tuple[Split, ...]] = ("eval_task", "eval_combo", "eval_service")

_THE_POLICY_S: Final[tuple[ErrorKind, ...]] = ("policy", "limit")
"""Errors that a policy has to answer for: its trial is scored. Others say nothing about it."""


async def run_trials(
    tasks: Sequence[Task],
    catalogue: Catalogue,
    policies: PolicyFactory,
    *,
    model: str,
    trials: int,
    limits: EpisodeLimits,
    concurrency: int,
    price: Price | None,
    versions: Mapping[str, str],
    notes: Notes,
) -> AsyncIterator[tuple[Trial, Trajectory]]:
    """Have a policy work on tasks, and judge every episode.

    Args:
        tasks: In the order of the trials.
        catalogue: What worlds are opened with.
        policies: Makes the policy of a task's trial.
        model: What trials call it.
        trials: Attempts at each task.
        limits: How far an attempt may go.
        concurrency: Most attempts in progress.
        price: Of the model's tokens; None where they cost nothing.
        versions: Of all that decides a score.
        notes: Where to note what is not content.

    Yields:
        Trials by task, with the episodes that they judge.
    """
    by_id = {task.id: task for task in tasks}
    episodes = distill(tasks, catalogue, policies, samples=trials, concurrency=concurrency, limits=limits, notes=notes)
    async for trajectory in episodes:
        task = by_id[trajectory.task_id]
        yield judged(task, trajectory, _calls(task, trajectory, catalogue), model, price, versions), trajectory


def judged(
    task: Task, trajectory: Trajectory, calls: CallCount, model: str, price: Price | None, versions: Mapping[str, str]
) -> Trial:
    """The trial that an episode is."""
    error, verdict, usage = trajectory.error, trajectory.verdict, trajectory.usage
    is_scored = verdict is not None and (error is None or error.kind in _THE_POLICY_S)
    return Trial(
        benchmark=BENCHMARK,
        model=model,
        task=task.id,
        trial=trajectory.rollout_idx,
        domain=task.split,
        difficulty=task.difficulty,
        capabilities=task.capabilities,
        passed=trajectory.succeeded if is_scored else None,
        score=trajectory.score if is_scored else None,
        criteria=verdict.passed if verdict and is_scored else (),
        idle=tuple(item.holds_initially for item in task.rubric.criteria) if is_scored else (),
        steps=trajectory.n_steps,
        calls=calls.made,
        valid_calls=calls.valid,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        usd=float(price.of(usage)) if price else None,
        error=f"{error.kind}: {error.message}" if error else None,
        versions=dict(versions),
    )


def _calls(task: Task, trajectory: Trajectory, catalogue: Catalogue) -> CallCount:
    tools = open_world(task.recipe, catalogue).tools if trajectory.calls else {}
    return count_calls(trajectory, tools)
