"""Findings: what one check found out about one tool, as stored evidence."""

from __future__ import annotations

import re

from pydantic import Field

from compoworld_core.data import Data

_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")


class Finding(Data):
    """The outcome of one check of one tool.

    Attributes:
        check: Name of the check.
        detail: What was seen, in one sentence.
        cases: Calls or comparisons that the outcome rests on.
        is_gate: Whether a tool that does not pass is quarantined; otherwise the finding is evidence only.
    """

    check: str
    passed: bool
    detail: str
    cases: int = Field(default=0, ge=0)
    is_gate: bool = True


def printable(text: object, limit: int = 240) -> str:
    """Text that can be stored and is the same on every run: no lone surrogates, no memory addresses, not long."""
    shown = _ADDRESS.sub("0x…", str(text)).encode("utf-8", "backslashreplace").decode()
    return shown if len(shown) <= limit else f"{shown[: limit - 1]}…"
