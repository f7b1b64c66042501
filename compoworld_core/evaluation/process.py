"""Programs of others that run beside us: stopped with all that they started, and their last words shown."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from compoworld_core.evaluation.secrets import Secrets

_STOP_S: Final = 15.0
_TAIL_LINES: Final = 25
_ERROR: Final = re.compile(r"(?:.*\] )?[\w.]*(?:Error|Exception): \S")
"""A line with an exception, by itself or after what a logger puts before it."""


def stop_group(process: subprocess.Popen[bytes]) -> None:
    """Stop a process that leads a session, and all that it started there: kindly first."""
    _signal(process, signal.SIGTERM)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_STOP_S)
    _signal(process, signal.SIGKILL)
    process.wait()


@contextmanager
def stopped_in_order() -> Iterator[None]:
    """Have SIGTERM end this process as an exception does, so that what it started is stopped on the way."""

    def leave(number: int, frame: object) -> None:
        sys.exit(128 + number)

    before = signal.signal(signal.SIGTERM, leave)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def tail(log: Path) -> str:
    """The last lines of a log, indented and without secrets, after the first exception that it tells of.

    Where a process of several fails, the others end with errors of their own.
    """
    lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
    first = next((line for line in lines[:-_TAIL_LINES] if _ERROR.match(line)), None)
    lines = lines[-_TAIL_LINES:] if first is None else [first, "…", *lines[-_TAIL_LINES:]]
    return "\n".join(f"  {line}" for line in Secrets().strip_text("\n".join(lines)).splitlines())


def _signal(process: subprocess.Popen[bytes], which: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):  # nothing is left of the group
        os.killpg(process.pid, which)
