"""Foreign JSON made safe to store: bounded in depth, size and text, and free of what UTF-8 or JSON cannot carry.

All cleaning of one tool draws on one `Budget`, so a hostile source costs no more than a large honest one.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, field
from typing import Any, Final

from compoworld_core.specs.repairs import Repair

MAX_VALUE_DEPTH: Final = 12
MAX_VALUE_TEXT: Final = 4_000
MAX_INTEGER: Final = 2**63 - 1
_UNWANTED = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


class Unusable(Exception):
    """A value that JSON cannot carry, or that is larger than anything a schema needs."""


@dataclass(slots=True)
class Budget:
    """What one tool may still spend on schema parts and characters, and the repairs made to it so far.

    Attributes:
        nodes: Objects, lists and scalars that may still be kept.
        characters: Characters of text that may still be kept.
    """

    nodes: int = 20_000
    characters: int = 400_000
    _repairs: dict[Repair, None] = field(default_factory=dict)

    @property
    def repairs(self) -> tuple[Repair, ...]:
        """Names of the repairs, in the order in which each was first made."""
        return tuple(self._repairs)

    def note(self, repair: Repair) -> None:
        """Records that a repair was made."""
        self._repairs.setdefault(repair)

    def spend(self, nodes: int = 0, characters: int = 0) -> bool:
        """Takes from the budget; False, and nothing taken, where too little is left."""
        if nodes > self.nodes or characters > self.characters:
            return False
        self.nodes -= nodes
        self.characters -= characters
        return True

    def text(self, value: str, limit: int) -> str:
        """The text without control characters and lone surrogates, cut to a length; both are noted."""
        if len(value) > limit:
            self.note("trim-text")
            value = value[: limit - 1] + "…"
        cleaned = _UNWANTED.sub("\ufffd", value)
        if cleaned != value:
            self.note("clean-text")
        if not self.spend(characters=len(cleaned)):
            self.note("trim-text")
            return ""
        return cleaned

    def value(self, value: object, depth: int = 0) -> Any:
        """The JSON value with clean text.

        Raises:
            Unusable: It is not JSON (`NaN`), or too deep, too long or too many for what is left.
        """
        if depth > MAX_VALUE_DEPTH or not self.spend(nodes=1):
            raise Unusable
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, str):
            if len(value) > MAX_VALUE_TEXT:
                raise Unusable
            return self.text(value, MAX_VALUE_TEXT)
        if isinstance(value, int):
            if abs(value) > MAX_INTEGER:
                raise Unusable
            return value
        if isinstance(value, float):
            if not math.isfinite(value):
                raise Unusable
            return value
        if isinstance(value, list):
            return [self.value(item, depth + 1) for item in value]
        if isinstance(value, dict):
            return {self.text(str(key), 200): self.value(item, depth + 1) for key, item in value.items()}
        raise Unusable


def json_equal_key(value: object) -> str:
    """A text that is the same for two clean JSON values exactly if JSON Schema calls them equal (1 equals 1.0)."""
    return json.dumps(_integral(value), sort_keys=True)


def _integral(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [_integral(item) for item in value]
    if isinstance(value, dict):
        return {key: _integral(item) for key, item in value.items()}
    return value


def type_of(value: object) -> str:
    """The JSON Schema type word of a clean JSON value; whole floats are integers."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return "integer"
    if isinstance(value, float):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def has_type(value: object, types: tuple[str, ...]) -> bool:
    """Whether a clean JSON value is of one of the types; no types means any."""
    found = type_of(value)
    return not types or found in types or (found == "integer" and "number" in types)


def coerce(value: object, types: tuple[str, ...]) -> Any:
    """The value as one of the types, where nothing is lost (`"10"` → 10, 1000 → `"1000"`, `"true"` → True).

    Raises:
        Unusable: It cannot be.
    """
    if has_type(value, types):
        return value
    if isinstance(value, str):
        text = value.strip()
        if "boolean" in types and text.lower() in ("true", "false"):
            return text.lower() == "true"
        if re.fullmatch(r"-?\d{1,18}", text) and ("integer" in types or "number" in types):
            return int(text)
        if "number" in types and re.fullmatch(r"-?\d{1,15}\.\d{1,15}", text):
            return float(text)
    elif isinstance(value, int | float) and "string" in types:
        return str(value).lower() if isinstance(value, bool) else str(value)
    raise Unusable
