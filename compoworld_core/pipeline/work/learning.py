"""Learning, for the report: figures and pictures of trainings, out of their history, and standings out of trials."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from typing import Final, TypeVar

from pydantic import BaseModel

from compoworld_core.evaluation.trial import Trial
from compoworld_core.pipeline.stage import Input, Inputs
from compoworld_core.pipeline.wording import counted
from compoworld_core.storage import DatasetType, Store, read_sidecars
from compoworld_core.training.curves import Curve, draw
from compoworld_core.training.datasets import GRPO_MODELS, SFT_MODELS, ModelFile
from compoworld_core.training.history import (
    FITTED,
    METRICS,
    ROLLOUTS,
    Fitted,
    JudgedRollout,
    Metric,
    Pace,
    file_of,
    read_table,
)
from compoworld_core.viewer.learning import Bounded, Finding, Gain, Phase, Picture, Standing

Row = TypeVar("Row", bound=BaseModel)

MEASURES: Final = {"passed": "full passes", "earned": "earned criteria"}
"""What a gain is measured by, in words."""

_MOST_POINTS: Final = 150
"""Of a curve: more would only be noise; a point is the mean of as many steps as that takes."""


def phases(store: Store, inputs: Inputs) -> tuple[Phase, ...]:
    """The phases of training that models were left by."""
    found = []
    if (tuned := inputs.find(SFT_MODELS)) is not None:
        fitted = model_file(store, tuned, FITTED)
        about = None if fitted is None else Fitted.model_validate_json(fitted.read())
        found.append(phase_of_sft(model_table(store, tuned, METRICS), about, _pace_of(store, tuned)))
    if (reinforced := inputs.find(GRPO_MODELS)) is not None:
        metrics, rollouts = model_table(store, reinforced, METRICS), model_table(store, reinforced, ROLLOUTS)
        found.append(phase_of_grpo(metrics, rollouts, _pace_of(store, reinforced)))
    return tuple(found)


def model_table(store: Store, model: Input[ModelFile], kind: DatasetType[Row]) -> Iterator[Row]:
    """The rows of a table in a model's folder; none where there is no such table."""
    file = model_file(store, model, file_of(kind))
    return iter(()) if file is None else read_table(file, kind)


def model_file(store: Store, model: Input[ModelFile], path: str) -> BytesIO | None:
    """A file of a model's folder, if it is there."""
    for file in model:
        if file.path == path:
            with store.open(file.blob) as stored:
                return BytesIO(stored.read())
    return None


def _pace_of(store: Store, model: Input[ModelFile]) -> Pace | None:
    paces = [sidecar["pace"] for sidecar in read_sidecars(store, model.location) if "pace" in sidecar]
    return Pace.model_validate(paces[0]) if paces else None


def standings(trials: Iterable[Trial]) -> tuple[tuple[Standing, ...], tuple[Gain, ...]]:
    """How every policy does on held-out tasks, and what each phase of training has brought."""
    from compoworld_core.evaluation.figures import Figure, gains, scores

    def bounded(figure: Figure) -> Bounded | None:
        if figure.value is None or figure.interval is None:
            return None
        return Bounded(figure.value, figure.interval.low, figure.interval.high)

    trials = tuple(trials)
    return tuple(
        Standing(
            policy=score.model,
            tasks=score.overall.tasks,
            trials=score.overall.trials,
            unscored=score.overall.unscored,
            passed=bounded(score.overall.passed),
            earned=bounded(score.overall.earned),
            valid_calls=bounded(score.overall.valid_calls),
        )
        for score in scores(trials)
    ), tuple(
        Gain(
            first=gain.first,
            second=gain.second,
            measure=MEASURES[measure],
            tasks=found.tasks,
            difference=Bounded(found.difference, found.interval.low, found.interval.high),
            wins=found.wins,
            losses=found.losses,
        )
        for gain in gains(trials)
        for measure, found in gain.measures.items()
        if measure in MEASURES and found.tasks
    )


def in_words(standing: Sequence[Standing], gained: Sequence[Gain]) -> list[str]:
    """The standings as lines for a terminal."""
    lines = [
        f"held out {item.policy:<8} {item.passed.value:>6.1%} of {counted(item.tasks, 'tasks')} passed in full "
        f"({item.passed.low:.1%} to {item.passed.high:.1%}), {item.earned.value:.1%} of what is to be earned"
        for item in standing
        if item.passed and item.earned
    ]
    return lines + [
        f"{item.first} to {item.second}: {100 * item.difference.value:+.1f} points of {item.measure} "
        f"({100 * item.difference.low:+.1f} to {100 * item.difference.high:+.1f}, 95 %)"
        for item in gained
    ]


def phase_of_sft(metrics: Iterable[Metric], fitted: Fitted | None, pace: Pace | None) -> Phase:
    """Fine-tuning: how the loss fell, and what was read."""
    metrics = tuple(metrics)
    return Phase(
        title="Fine-tuning",
        about="Verified trajectories were imitated: the loss is that of the assistant's tokens.",
        findings=(*_losses(metrics), *_read(fitted), *_pace(pace)),
        pictures=_pictures(
            metrics,
            (
                "Loss per token",
                "nats",
                {"loss": "while training", "eval_loss": "held-out conversations"},
                "Held-out conversations are of the same tasks' kind and were not trained on.",
            ),
        ),
    )


def phase_of_grpo(metrics: Iterable[Metric], rollouts: Iterable[JudgedRollout], pace: Pace | None) -> Phase:
    """Reinforcement: how often rollouts passed, and how much the clip held back."""
    metrics, rollouts = tuple(metrics), tuple(rollouts)
    return Phase(
        title="Reinforcement",
        about="The model worked on tasks itself, in groups of rollouts that were judged together.",
        findings=(*_judged(rollouts), *_pace(pace)),
        pictures=_pictures(
            metrics,
            (
                "Rollouts that pass",
                "share",
                {"rubric/full": "every criterion", "rubric/criteria": "criteria, on average"},
                "Raw rates, before any weighting. Criteria that hold although nothing was done count among the latter.",
            ),
            ("Reward", "mean", {"reward": "group-coupled reward"}, "Weights move, so it need not rise with the rates."),
            (
                "Clipped tokens",
                "share",
                {"clip_ratio/low_mean": "at the lower bound", "clip_ratio/high_mean": "at the upper bound"},
                "Tokens whose probability has moved so far since the rollouts that they teach no more.",
            ),
        ),
    )


def _losses(metrics: Sequence[Metric]) -> Iterable[Finding]:
    for name, label in (("loss", "loss"), ("eval_loss", "held-out loss")):
        _, values = _series(metrics, name)
        if values:
            yield Finding(label, f"{values[-1]:.3f}", f"{values[0]:.3f} at first")


def _read(fitted: Fitted | None) -> Iterable[Finding]:
    if fitted is not None:
        short = f"{fitted.cut:,} cut after a message, {fitted.dropped:,} dropped: too long for the context"
        yield Finding("conversations whole", f"{fitted.whole:,}", short)
        yield Finding("tokens of conversations", f"{fitted.tokens:,}", f"{fitted.longest:,} in the longest")
        read = fitted.epoch
        yield Finding("learnt from", f"{read.taught:,}", f"tokens of the assistant in {read.conversations:,} of them")


def _judged(rollouts: Sequence[JudgedRollout]) -> Iterable[Finding]:
    if not rollouts:
        return
    failed = sum(rollout.error is not None for rollout in rollouts)
    full = sum(bool(rollout.passed) and all(rollout.passed) for rollout in rollouts)
    tasks = len({rollout.task_id for rollout in rollouts})
    yield Finding("rollouts", f"{len(rollouts):,}", f"of {counted(tasks, 'tasks')}; {failed:,} could not be judged")
    yield Finding("full passes", f"{full:,}", f"{full / len(rollouts):.1%} of all rollouts")


def _pace(pace: Pace | None) -> Iterable[Finding]:
    if pace is not None and pace.seconds:
        padding = "" if pace.padding is None else f"; {pace.padding:.1%} padding beside them"
        yield Finding("tokens per second", f"{pace.tokens_per_s:,.0f}", f"in {pace.seconds:,.0f} s of steps{padding}")


def _pictures(metrics: Sequence[Metric], *wanted: tuple[str, str, dict[str, str], str]) -> tuple[Picture, ...]:
    """A picture for each title, unit, names of metrics with their labels, and caption; as far as there are points."""
    found = []
    for title, unit, names, caption in wanted:
        curves = []
        for name, label in names.items():
            steps, values = _thinned(*_series(metrics, name))
            if len(steps) > 1:
                curves.append(Curve(label, steps, values))
        if curves:
            found.append(Picture(caption, draw(curves, title=title, x_label="optimiser steps", y_label=unit)))
    return tuple(found)


def _series(metrics: Iterable[Metric], name: str) -> tuple[list[float], list[float]]:
    points = [(float(item.step), item.value) for item in metrics if item.name == name and item.value is not None]
    return [step for step, _ in points], [value for _, value in points]


def _thinned(steps: Sequence[float], values: Sequence[float]) -> tuple[list[float], list[float]]:
    """Means of blocks of neighbours."""
    size = -(-len(steps) // _MOST_POINTS) or 1
    starts = range(0, len(steps), size)
    return (
        [steps[min(start + size, len(steps)) - 1] for start in starts],
        [sum(block) / len(block) for block in (values[start : start + size] for start in starts)],
    )
