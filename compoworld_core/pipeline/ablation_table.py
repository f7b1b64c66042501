"""An ablation as a table for a terminal, and as one picture."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from compoworld_core.evaluation.figures import Figure
from compoworld_core.evaluation.scoreboard import console, ends, shown
from compoworld_core.evaluation.statistics import Paired
from compoworld_core.pipeline.ablation import BUDGET
from compoworld_core.pipeline.arms import ArmResult
from compoworld_core.pipeline.work.learning import MEASURES
from compoworld_core.training.curves import Curve, draw
from compoworld_core.training.dots import Dot, Line, draw_lines, stack

if TYPE_CHECKING:
    from rich.table import Table


def show(results: Sequence[ArmResult]) -> None:
    """Print the table."""
    console().print(table(results))


def table(results: Sequence[ArmResult]) -> Table:
    """A line for each arm: what it learnt from, what it reaches, and what that is more than the first of its kind."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False)
    for head in ("comparison", "arm"):
        table.add_column(head)
    for head in (
        *("conversations", "tokens", "taught tokens", "steps", "rollouts", "their steps", "tasks", "unscored"),
        *("passed %", "earned %", "valid calls %", "passed more", "earned more"),
    ):
        table.add_column(head, justify="right")
    for _, arms in groupby(results, key=lambda item: item.comparison):
        for place, item in enumerate(arms):
            read = (item.conversations, item.tokens, item.taught_tokens, item.steps, item.rollouts, item.rollout_steps)
            found = item.figures
            table.add_row(
                "" if place else item.comparison,
                _name(item),
                *(f"{count:,}" for count in (*read, found.tasks, found.unscored)),
                *(shown(figure) for figure in (found.passed, found.earned, found.valid_calls)),
                *(_more(item.gains[measure]) if place else "" for measure in MEASURES),
            )
    return table


def _name(item: ArmResult) -> str:
    value = json.loads(item.value)
    return value if isinstance(value, str) else item.value


def _more(gained: Paired) -> str:
    return f"{100 * gained.difference:+.1f} {ends(gained.interval)}" if gained.tasks else "–"


def plot(results: Sequence[ArmResult]) -> str:
    """A picture of all comparisons, as SVG; amounts of data as curves, all else as dots with their intervals."""
    return stack([_panel(name, list(arms)) for name, arms in groupby(results, key=lambda item: item.comparison)])


def _panel(name: str, arms: Sequence[ArmResult]) -> str:
    measured = {label: [_dot(getattr(item.figures, measure)) for item in arms] for measure, label in MEASURES.items()}
    title = f"{name}: held-out tasks, 95 % intervals"
    curves = [_curve(label, arms, dots) for label, dots in measured.items()] if arms[0].key == BUDGET else []
    if curves := [curve for curve in curves if len(curve.x) > 1]:
        return draw(curves, title=title, x_label="tokens of the assistant that are learnt from", y_label="share")
    lines = [Line(_name(item), [dots[place] for dots in measured.values()]) for place, item in enumerate(arms)]
    return draw_lines(lines, measures=list(measured), title=title, x_label="share")


def _curve(label: str, arms: Iterable[ArmResult], dots: Iterable[Dot | None]) -> Curve:
    found = [(item.taught_tokens, dot) for item, dot in zip(arms, dots, strict=True) if dot is not None]
    points = sorted(found, key=lambda point: point[0])
    return Curve(
        label,
        x=[tokens for tokens, _ in points],
        y=[dot.value for _, dot in points],
        low=[dot.low for _, dot in points],
        high=[dot.high for _, dot in points],
    )


def _dot(figure: Figure) -> Dot | None:
    if figure.value is None or figure.interval is None:
        return None
    return Dot(figure.value, figure.interval.low, figure.interval.high)
