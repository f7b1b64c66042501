"""What a small training and its evaluation left, as far as a page shows it."""

from __future__ import annotations

from dataclasses import replace

from compoworld_core.evaluation.trial import Trial
from compoworld_core.pipeline.work.learning import phase_of_grpo, phase_of_sft, standings
from compoworld_core.training.history import Epoch, Fitted, JudgedRollout, Metric, Pace
from compoworld_core.viewer import ReportData

MODELS = {"no-op": 0, "base": 0, "sft": 3, "grpo": 5}
"""How many of ten held-out tasks each passes."""


def learned_data(data: ReportData) -> ReportData:
    """The data of a run that went on to train."""
    sft = [Metric(phase="sft", step=step, name="loss", value=6 / step) for step in range(1, 41)]
    sft += [Metric(phase="sft", step=step, name="eval_loss", value=6 / (step + 1)) for step in (0, 20, 40)]
    grpo = [
        Metric(phase="grpo", step=step, name=name, value=value * step)
        for step in range(1, 11)
        for name, value in {
            "rubric/full": 0.05,
            "rubric/criteria": 0.08,
            "reward": 0.06,
            "clip_ratio/low_mean": 0.001,
            "clip_ratio/high_mean": 0.002,
        }.items()
    ]
    rollouts = [JudgedRollout(step=0, task_id="t", passed=(True, passes)) for passes in (True, False, False)]
    rollouts.append(JudgedRollout(step=0, task_id="t", passed=(), error="bug: out of order"))
    pace = Pace(seconds=12.5, tokens=40_000, steps=40, padding=0.031)
    epoch = Epoch(conversations=93, tokens=240_000, taught=60_000)
    fitted = Fitted(whole=90, cut=7, dropped=3, tokens=250_000, longest=4096, epoch=epoch)
    standing, gains = standings(trials())
    return replace(
        data,
        phases=(phase_of_sft(sft, fitted, pace), phase_of_grpo(grpo, rollouts, None)),
        standings=standing,
        gains=gains,
    )


def trials() -> list[Trial]:
    """Of every model on ten tasks."""
    return [
        Trial(
            benchmark="held-out",
            model=model,
            task=f"task-{place}",
            trial=0,
            passed=place < passes,
            score=1.0 if place < passes else 0.5,
            criteria=(True, place < passes),
            idle=(True, False),
            calls=4,
            valid_calls=4 if passes else 0,
        )
        for model, passes in MODELS.items()
        for place in range(10)
    ]
