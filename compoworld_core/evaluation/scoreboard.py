"""Scores as tables for a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

from compoworld_core.evaluation.figures import NOTHING, Figure, Figures, Gain, Scores
from compoworld_core.evaluation.statistics import Interval

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

_WIDTH: Final = 200
"""Columns of what is no terminal, such as a file, where lines may be as long as they need to be."""


def console() -> Console:
    """Where tables are printed."""
    from rich.console import Console

    return Console(width=None if sys.stdout.isatty() else _WIDTH)


def show(scores: Sequence[Scores], gains: Sequence[Gain]) -> None:
    """Print all tables."""
    terminal = console()
    for table in tables(scores, gains):
        terminal.print(table)
        terminal.print()


def tables(scores: Sequence[Scores], gains: Sequence[Gain]) -> Iterator[Table]:
    """A table of all models, one of the kinds of tasks for each model, and one of what training has gained."""
    if not scores:
        return
    yield _table("All tasks", ("model",), (((item.model,), item.overall) for item in scores))
    for item in scores:
        rows = (((kind, name), found) for kind, names in item.kinds.items() for name, found in names.items())
        yield _table(f"{item.model}, by kind of task", ("kind", "name"), rows)
    if gains:
        yield _gains(gains)


def _table(title: str, heads: Sequence[str], rows: Iterable[tuple[Sequence[str], Figures]]) -> Table:
    from rich.table import Table

    rows = list(rows)
    most = max(len(found.pass_at) for _, found in rows)
    repeats = (f"pass@{most}", f"pass^{most}") if most > 1 else ()
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for head in heads:
        table.add_column(head)
    for head in (
        "tasks",
        "trials",
        "errors",
        "unscored",
        "passed %",
        *repeats,
        "partial %",
        "earned %",
        "valid calls %",
    ):
        table.add_column(head, justify="right")
    for names, found in rows:
        repeated = (_last(found.pass_at, most), _last(found.pass_hat, most)) if repeats else ()
        counts = (found.tasks, found.trials, found.errors, found.unscored)
        shares = (found.passed, *repeated, found.partial, found.earned, found.valid_calls)
        table.add_row(*names, *map(str, counts), *map(shown, shares))
    return table


def _gains(gains: Sequence[Gain]) -> Table:
    from rich.table import Table

    table = Table(title="Gains, in points", title_justify="left", box=None, pad_edge=False)
    for head in ("from", "to", "measure"):
        table.add_column(head)
    for head in ("tasks", "gain", "better", "worse", "p"):
        table.add_column(head, justify="right")
    for gain in gains:
        for name, found in gain.measures.items():
            value = f"{100 * found.difference:+.1f} {ends(found.interval)}" if found.tasks else "–"
            counts = (str(found.wins), str(found.losses), f"{found.p_value:.2g}")
            table.add_row(gain.first, gain.second, name, str(found.tasks), value, *counts)
    return table


def _last(figures: Sequence[Figure], most: int) -> Figure:
    """The figure for the most trials, where a kind of task has as many."""
    return figures[most - 1] if len(figures) == most else NOTHING


def shown(figure: Figure) -> str:
    """A share in percent, with its interval."""
    if figure.value is None or figure.interval is None:
        return "–"
    return f"{100 * figure.value:.1f} {ends(figure.interval)}"


def ends(interval: Interval) -> str:
    """An interval in percent."""
    return f"[{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
