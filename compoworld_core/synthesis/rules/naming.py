"""Names in generated source: legal, readable, and never in the way of what the module imports or inherits."""

from __future__ import annotations

import builtins
import keyword
import re
import typing
from typing import Any, Final

from compoworld_core.services import sdk
from compoworld_core.services.entity import Entity
from compoworld_core.services.host.vocabulary import RESERVED
from compoworld_core.services.service import Service
from compoworld_core.services.state import State
from compoworld_core.specs.verbs import tokenise
from compoworld_core.synthesis.rules.words import plural

CLASS_NAMES_IN_USE: Final = frozenset(sdk.__all__) | frozenset(typing.__all__) | frozenset(dir(builtins))
_TAKEN_FIELDS: Final = frozenset(dir(Entity)) | RESERVED | frozenset({"now", "today"})
_BUILTIN_NAMES: Final = frozenset(name for name in dir(builtins) if name.islower()) - {
    "id",
    "type",
    "property",
    "license",
}
_TAKEN_TABLES: Final = frozenset(dir(State)) | RESERVED | {"tables", "journal", "writes"}
_TAKEN_METHODS: Final = (
    frozenset(dir(Service)) | RESERVED | {"state", "context", "domain", "name", "tools", "state_class", "tool"}
)


def snake(text: str) -> str:
    """The words of a name in snake case; empty where it has none of ASCII."""
    return "_".join(word for word in tokenise(text) if word.isascii())


def class_name(text: str) -> str:
    """The words of a name in camel case, each once in a row."""
    words: list[str] = []
    for word in snake(text).split("_"):
        if not words or words[-1] != word:
            words.append(word)
    name = "".join(word[:1].upper() + word[1:] for word in words)
    return name if name[:1].isalpha() else f"N{name}"


def service_class(service: str) -> str:
    """Name of a service's class."""
    name = class_name(service)
    return f"{name}Service" if {name, f"{name}State"} & CLASS_NAMES_IN_USE else name


def _safe(name: str, taken: frozenset[str], fallback: str) -> str:
    name = re.sub(r"[^a-z0-9_]", "", name).strip("_") or fallback
    if name[0].isdigit():
        name = f"n_{name}"
    is_taken = name in taken or keyword.iskeyword(name) or (keyword.issoftkeyword(name) and name != "type")
    return f"{name}_" if is_taken else name


def field_name(text: str) -> str:
    """The name of an entity's field; table operations have `key` and `predicate` for themselves."""
    return _safe(snake(text), _TAKEN_FIELDS | _BUILTIN_NAMES | {"key", "predicate"}, "value")


def is_field_name(name: str) -> bool:
    """Whether a name can stay as it is for a field of a nested entity."""
    is_legal = name.isidentifier() and name.isascii() and not name.startswith("_") and not keyword.iskeyword(name)
    return is_legal and name[0].islower() and name not in _TAKEN_FIELDS | _BUILTIN_NAMES


def parameter_name(wire: str) -> str:
    """The Python name of a parameter: the wire's own where it is legal."""
    is_own = wire.isidentifier() and wire.isascii() and not wire.startswith("_") and wire == wire.strip("_")
    taken = _TAKEN_FIELDS | _BUILTIN_NAMES | {"self", "rows", "counts", "item"}
    if is_own and wire not in taken and not keyword.iskeyword(wire) and wire not in CLASS_NAMES_IN_USE:
        return wire
    return _safe(snake(wire), taken, "value")


def method_name(wire: str) -> str:
    """The Python name of a tool's method."""
    return _safe(snake(wire), _TAKEN_METHODS | _BUILTIN_NAMES, "call")


def table_name(entity: str) -> str:
    """The name of an entity's table."""
    words = entity.split("_")
    return _safe("_".join((*words[:-1], plural(words[-1]))), _TAKEN_TABLES, "rows")


def quoted(value: Any) -> str:
    """A literal in source, strings in double quotes where that needs no escape."""
    text = repr(value)
    if isinstance(value, str) and text[0] == "'" and '"' not in text:
        inner = text[1:-1].replace("\\'", "'")
        return f'"{inner}"'
    return text


def prose(text: str, limit: int) -> str:
    """The first sentence of a description, safe inside a docstring."""
    text = " ".join(text.split()).replace("\\", "/").replace('"""', "'''")
    text = "".join(character for character in text if character.isprintable())
    match = re.match(r"(.{12,}?[.!?])(?:\s|$)", text)
    first = match.group(1) if match else text
    if len(first) > limit:
        first = first[: limit - 1].rsplit(" ", 1)[0].rstrip(",;:(") + "…"
    if first and first[-1] not in ".!?…":
        first += "."
    return first.replace('"', "'") if first.endswith('"') else first
