"""Frames: a sequence number, a length, and that many bytes of JSON.

The parent decodes what a possibly hostile guest wrote, so decoding accepts only what an honest guest can have meant: an
object of finite numbers and of text that is text. The size is known, and refused, before a byte of the body is read.
"""

from __future__ import annotations

import json
import re
import struct
from typing import Any, Final, NoReturn

HEADER: Final = struct.Struct("!II")
"""Sequence number of the request that is asked or answered; length of the body."""

_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")


def encode(payload: dict[str, Any]) -> bytes:
    """The payload as the body of a frame.

    Raises:
        ValueError: It holds something that JSON can't express (or TypeError: of another type).
    """
    return json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _finite(digits: str) -> float:
    value = float(digits)
    if value in (float("inf"), float("-inf")):
        raise ValueError("a number is out of range")
    return value


_decoder = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite)


def decode(body: bytes) -> dict[str, Any]:
    """The payload in the body of a frame.

    Raises:
        ValueError: The body isn't a JSON object, or one that can't be written back as JSON.
    """
    try:
        payload = _decoder.decode(body.decode())
        if _SURROGATE.search(body):
            encode(payload)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    if not isinstance(payload, dict):
        raise ValueError(f"expected an object, found {type(payload).__name__}")
    return payload
