"""Splits: what is held out, decided by salted hashes so that no run and no worker decides differently."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

SALT = "compoworld-held-out-1"
"""Changing it changes every split; scores across different salts are not comparable."""


def is_held_out(service: str, share: float) -> bool:
    """Whether a service never appears in training tasks, not even as a distractor."""
    return _fraction(f"service/{service}") < share


def is_held_out_combination(parts: Iterable[str], share: float) -> bool:
    """Whether a set of core services, or of tools, is kept for `eval_combo`."""
    return _fraction("core/" + "/".join(sorted(parts))) < share


def _fraction(text: str) -> float:
    """A number in [0, 1) that depends on the text alone."""
    return int.from_bytes(hashlib.sha256(f"{SALT}/{text}".encode()).digest()[:8], "big") / 2**64
