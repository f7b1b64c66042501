"""A job as a process: its exit code says whether trying again helps, and being told to stop it stops in order.

Exit codes: 0 done (or done before), 1 a bug or a failed gate, 2 bad input, 75 try again later, 143 told to stop.
"""

from __future__ import annotations

import signal
import sys
import traceback
from collections.abc import Callable
from types import FrameType
from typing import NoReturn

from compoworld_core.errors import CompoWorldError
from jobs.telemetry import Telemetry


def run_process(name: str, work: Callable[[Telemetry], None]) -> NoReturn:
    """Do the work of a job, tell how it went, and exit.

    SIGTERM becomes an exception in the main thread: what is open is abandoned, as it is on any failure, and nothing of
    it is committed.
    """
    signal.signal(signal.SIGTERM, _stop)  # as a container's first process, it would otherwise be deaf to it
    telemetry = Telemetry(name)
    code = CompoWorldError.exit_code
    try:
        work(telemetry)
        code = 0
    except CompoWorldError as error:
        code = error.exit_code
        telemetry.log(str(error), level="error", error=type(error).__name__)
    except SystemExit as stopped:
        code = stopped.code if isinstance(stopped.code, int) else code
        if code != 0:
            telemetry.log("told to stop; what was committed stays" if code > 128 else "wrong arguments", level="error")
    except Exception as error:
        telemetry.log(f"a bug: {type(error).__name__}: {error}", level="error", trace=traceback.format_exc())
    telemetry.end(code)
    sys.exit(code)


def whole(text: str) -> int | None:
    """A number from a workflow's parameter, where nothing is an empty text."""
    return int(text) if text else None


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    signal.signal(number, signal.SIG_IGN)  # told once is enough: the second would disturb the end
    sys.exit(128 + number)
