"""Canonical JSON: equal values have one text, hence one digest.

Keys are sorted, there are no spaces, text is not escaped to ASCII and numbers are written as Python's `json` does.
What JSON cannot say exactly (NaN, sets, bytes, keys that are not text) is refused with the path to it, because a
digest over a guess would make two different values look alike.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from datetime import date, time
from decimal import Decimal
from enum import Enum
from typing import Any

from pydantic import BaseModel

from compoworld_core.errors import InputError

JsonObject = dict[str, Any]
"""A JSON object whose content nothing is known of."""


class _NoJsonForm(Exception):
    """Carries the reason up to the caller while each level adds its step to the path."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.steps: list[str] = []


def canonical_json(obj: object) -> str:
    """The one JSON text of a value made of JSON types, models, decimals, dates and tuples.

    Raises:
        InputError: Some part of the value has no exact JSON form; the message says which.
    """
    return dump_plain(to_plain(obj))


def digest(obj: object) -> str:
    """Hex sha256 of the value's canonical JSON."""
    return digest_bytes(canonical_json(obj).encode())


def digest_bytes(data: bytes) -> str:
    """Hex sha256."""
    return hashlib.sha256(data).hexdigest()


def to_plain(obj: object) -> Any:
    """The value as `json.loads(canonical_json(obj))` would give it back."""
    try:
        return _plain(obj)
    except _NoJsonForm as error:
        path = "$" + "".join(reversed(error.steps))
        raise InputError(f"{path}: {error.reason}") from None
    except RecursionError:
        raise InputError("$: nested too deeply (or contains itself) to have a JSON form") from None


def dump_plain(plain: object) -> str:
    """Canonical text of what `to_plain` returned."""
    return json.dumps(plain, ensure_ascii=False, allow_nan=False, sort_keys=True, separators=(",", ":"))


def _plain(value: object) -> Any:
    if isinstance(value, Enum):
        return _plain(value.value)
    if value is None or isinstance(value, bool | int):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, float):
        return _finite(value, math.isfinite(value))
    if isinstance(value, BaseModel):
        return _plain(value.model_dump(by_alias=True, round_trip=True))
    if isinstance(value, Mapping):
        return _object(value)
    if isinstance(value, list | tuple):
        return _array(value)
    if isinstance(value, Decimal):
        return str(_finite(value, value.is_finite()))
    if isinstance(value, date | time):
        return value.isoformat()
    raise _NoJsonForm(f"a {type(value).__name__} has no canonical JSON form; convert it to text, a number or a tuple")


def _text(value: str) -> str:
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _NoJsonForm("text with an unpaired surrogate cannot be stored as UTF-8; replace it") from None
    return value


def _finite(value: Any, is_finite: bool) -> Any:
    if not is_finite:
        raise _NoJsonForm(f"{value} has no JSON form; use null or text")
    return value


def _object(value: Mapping[Any, Any]) -> dict[str, Any]:
    plain = {}
    for key, item in value.items():
        if not isinstance(key, str):
            raise _NoJsonForm(f"key {key!r} is not text; JSON objects have text keys only")
        try:
            plain[_text(key)] = _plain(item)
        except _NoJsonForm as error:
            error.steps.append(f".{key}")
            raise
    return plain


def _array(value: list[Any] | tuple[Any, ...]) -> list[Any]:
    plain = []
    for index, item in enumerate(value):
        try:
            plain.append(_plain(item))
        except _NoJsonForm as error:
            error.steps.append(f"[{index}]")
            raise
    return plain
