"""The garbage collector, told that most objects here stay.

Rows, logs and packages live long and hold no cycles. By default the collector walks the young ones after every 700
allocations, which costs a fifth of the time of a tool call.
"""

from __future__ import annotations

import gc


def collect_rarely() -> None:
    """Let this process look for cyclic garbage after many allocations only."""
    gc.set_threshold(50_000, 20, 100)
