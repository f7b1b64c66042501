"""Text of unknown origin, made fit to be shown: nothing in it acts, hides or floods.

Everything on the page goes through here. Characters that a reader cannot see, or that turn the text around them, are
shown as their code points; long texts and large values end with a notice; JSON is written so that no HTML parser can
find the end of its block.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any

from markupsafe import Markup

MAX_TEXT = 20_000
"""Characters of one text that the page carries."""

MAX_VALUE = 12_000
"""Characters of one JSON value that the page carries, roughly."""

_MAX_STRING = 4_000
_MAX_DEPTH = 24
_SAFE_INTEGER = 2**53
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\U000e0000-\U000e007f]"
)
_IN_HTML = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def legible(text: str) -> str:
    """The text with every control, bidirectional, invisible or broken character shown as its code point."""
    return _UNSEEN.sub(lambda found: f"⟨U+{ord(found.group()):04X}⟩", text.replace("\r\n", "\n"))


def clipped(text: str, limit: int = MAX_TEXT) -> str:
    """The text, or its start and a notice of its length."""
    return text if len(text) <= limit else f"{text[:limit]}… [cut here: {len(text):,} characters in all]"


def digestible(value: Any, budget: int = MAX_VALUE) -> Any:
    """A JSON value with long texts, lists and objects cut, so that it takes about `budget` characters at most."""
    return _Cutter(budget).cut(value, 0)


def embedded(value: Any) -> Markup:
    """A JSON value as the text of a `<script type="application/json">` block."""
    text = json.dumps(_shown(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return Markup(text.translate(_IN_HTML))


def _shown(value: Any) -> Any:
    if isinstance(value, str):
        return legible(clipped(value))
    if isinstance(value, dict):
        return {legible(clipped(str(key))): _shown(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_shown(item) for item in value]
    return value


class _Cutter:
    def __init__(self, budget: int) -> None:
        self._left = budget

    def cut(self, value: Any, depth: int) -> Any:
        self._left -= 4
        if isinstance(value, dict):
            return self._object(value, depth)
        if isinstance(value, list | tuple):
            return self._list(value, depth)
        if isinstance(value, str):
            text = clipped(value, min(_MAX_STRING, max(self._left, 40)))
            self._left -= len(text)
            return text
        return _number(value) if isinstance(value, int | float) and not isinstance(value, bool) else value

    def _object(self, value: dict[str, Any], depth: int) -> Any:
        if depth > _MAX_DEPTH:
            return "… [cut here: nested too deep]"
        kept: dict[str, Any] = {}
        for key, item in value.items():
            if self._left <= 0:
                kept["…"] = f"[cut here: {len(value) - len(kept):,} more]"
                break
            name = clipped(key, min(_MAX_STRING, max(self._left, 40)))
            self._left -= len(name)
            kept[name] = self.cut(item, depth + 1)
        return kept

    def _list(self, value: Iterable[Any], depth: int) -> Any:
        if depth > _MAX_DEPTH:
            return "… [cut here: nested too deep]"
        items = list(value)
        kept: list[Any] = []
        for item in items:
            if self._left <= 0:
                kept.append(f"… [cut here: {len(items) - len(kept):,} more]")
                break
            kept.append(self.cut(item, depth + 1))
        return kept


def _number(value: float) -> Any:
    """Numbers that a browser would read as another number become text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    return value if abs(value) <= _SAFE_INTEGER else clipped(_digits(value), 60)


def _digits(value: int) -> str:
    try:
        return str(value)
    except ValueError:
        return f"{value:#x}"
