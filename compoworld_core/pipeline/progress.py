"""What people see while stages run: a bar per stage, and a line when it is done. All of it goes to standard error."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from compoworld_core.pipeline.runner import StageResult


class Quiet:
    """Shows nothing."""

    def begin(self, stage: str, shards: int, done: int) -> None:
        """See `runner.Progress`."""

    def advance(self, stage: str) -> None:
        """See `runner.Progress`."""

    def end(self, stage: str, result: StageResult) -> None:
        """See `runner.Progress`."""


class Bars:
    """Shows a bar for the stage that runs."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._running: TaskID | None = None

    def begin(self, stage: str, shards: int, done: int) -> None:
        """See `runner.Progress`."""
        self._running = self._bars.add_task(stage, total=shards, completed=done)

    def advance(self, stage: str) -> None:
        """See `runner.Progress`."""
        if self._running is not None:
            self._bars.advance(self._running)

    def end(self, stage: str, result: StageResult) -> None:
        """See `runner.Progress`."""
        if self._running is not None:
            self._bars.remove_task(self._running)
            self._running = None
        made = ", ".join(f"{commit.rows} {name}" for name, commit in result.commits.items())
        time = "done before" if result.was_skipped else f"{result.seconds:.1f} s"
        self._bars.console.print(f"{stage:<13} {made:<44} {time}", highlight=False)


@contextmanager
def show_progress() -> Iterator[Bars]:
    """Bars on standard error, for as long as the block runs."""
    columns = (TextColumn("{task.description:<13}"), BarColumn(), MofNCompleteColumn(), TextColumn("shards"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True) as bars:
        yield Bars(bars)
