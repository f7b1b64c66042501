"""Why one server could not be crawled; the source decides whether that is a rejection or the end."""

from __future__ import annotations

import re
from typing import Final

from compoworld_core.errors import CompoWorldError, InputError, TransientError
from compoworld_core.specs.model import Rejection

MAX_DETAIL: Final = 2_000

_CONTROL: Final = re.compile(r"\x1b\[[0-9;?]*[a-zA-Z]|[\x00-\x08\x0b-\x1f\x7f]|[\ud800-\udfff]")


class ServerFailure(Exception):
    """A server did not tell its tools.

    Attributes:
        reason: A word for machines, as in `Rejection.reason`.
        detail: A sentence for people that names the phase.
        may_pass: Whether trying again later may help.
        wait_s: How long the other side asked to be left alone.
    """

    def __init__(self, reason: str, detail: str, *, may_pass: bool = False, wait_s: float = 0.0) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = cleaned(detail)
        self.may_pass = may_pass
        self.wait_s = wait_s

    def rejection(self, origin: str, server: str = "") -> Rejection:
        """The row that says so."""
        return Rejection(subject="server", origin=origin, server=server, reason=self.reason, detail=self.detail)

    def error(self, origin: str) -> CompoWorldError:
        """The error where the server was asked for by name."""
        kind = TransientError if self.may_pass else InputError
        return kind(f"{origin}: {self.detail} ({self.reason})")


def cleaned(text: str, limit: int = MAX_DETAIL) -> str:
    """Text of others without control characters and of bounded length; the end is what tells most."""
    clean = _CONTROL.sub("", text)
    return clean if len(clean) <= limit else f"{clean[: limit // 4]} … {clean[-3 * limit // 4 :]}"
