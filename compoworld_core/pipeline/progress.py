"""What people see while stages run: a bar for the one that runs, and a line for each that is done.

All of it goes to standard error; where that is no terminal, there are lines only.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from compoworld_core.pipeline.runner import StageResult
from compoworld_core.pipeline.wording import counted


class Quiet:
    """Shows nothing."""

    def begin(self, stage: str, shards: int, done: int) -> None:
        """See `runner.Progress`."""

    def advance(self, stage: str) -> None:
        """See `runner.Progress`."""

    def end(self, stage: str, result: StageResult) -> None:
        """See `runner.Progress`."""


class Bars:
    """Shows bars and lines for as long as its block runs."""

    def __init__(self) -> None:
        self._console = Console(stderr=True, highlight=False)
        self._bar: Progress | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop()

    def begin(self, stage: str, shards: int, done: int) -> None:
        """See `runner.Progress`."""
        if self._console.is_terminal:
            columns = (TextColumn(f"{stage:<13}"), BarColumn(), MofNCompleteColumn(), TextColumn("shards"))
            self._bar = Progress(*columns, TimeElapsedColumn(), console=self._console, transient=True)
            self._bar.add_task(stage, total=shards, completed=done)
            self._bar.start()

    def advance(self, stage: str) -> None:
        """See `runner.Progress`."""
        if self._bar is not None:
            self._bar.advance(self._bar.task_ids[0])

    def end(self, stage: str, result: StageResult) -> None:
        """See `runner.Progress`."""
        self._stop()
        made = ", ".join(counted(commit.rows, name) for name, commit in result.commits.items())
        time = "done before" if result.was_skipped else f"{result.seconds:.1f} s"
        self._console.print(f"{stage:<13} {made:<44} {time}", soft_wrap=True)

    def _stop(self) -> None:
        if self._bar is not None:
            self._bar.stop()
            self._bar = None
