"""Reading a spec: each tool as an act on a noun with parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import Any, Literal

from compoworld_core.specs.model import JsonObject, ServiceSpec, ToolSpec
from compoworld_core.specs.verbs import ToolName, common_prefix, parse_name, tokenise
from compoworld_core.synthesis.rules.naming import field_name, parameter_name
from compoworld_core.synthesis.rules.words import (
    ADJECTIVES,
    ID_SUFFIXES,
    OBJECT_FILLERS,
    OBJECT_STOPS,
    OBJECT_TAILS,
    singular,
)

Act = Literal["get", "list", "search", "count", "create", "update", "delete", "transition", "send", "execute", "none"]

_ACTS: Mapping[str | None, Act] = {
    "read": "get",
    "list": "list",
    "search": "search",
    "create": "create",
    "update": "update",
    "delete": "delete",
    "transition": "transition",
    "send": "send",
    "execute": "execute",
    "compute": "execute",
}
_COUNT_WORDS = frozenset({"count", "number", "total", "stats", "statistics"})


@dataclass(frozen=True)
class Parameter:
    """A parameter of a tool.

    Attributes:
        wire: Its name in the schema.
        name: Its Python name.
        field: Name of a row's field that would hold its value.
        words: Words of its name.
        stem: Words less the ending that says it is an identifier; None where it has no such ending.
    """

    wire: str
    name: str
    field: str
    words: tuple[str, ...]
    stem: tuple[str, ...] | None
    schema: JsonObject
    is_required: bool
    description: str

    @property
    def has_default(self) -> bool:
        """Whether the source names a default other than null."""
        return self.schema.get("default") is not None

    @property
    def default(self) -> Any:
        """The source's default, or None."""
        return self.schema.get("default")


@dataclass(frozen=True)
class Reading:
    """A tool as an act on a noun.

    Attributes:
        verb: The verb, empty where the name has none.
        noun: Words of the object, the last one singular; empty where there is none.
        is_plural: Whether the name speaks of several.
        tail: Words behind the noun (`by`, `name`).
    """

    tool: ToolSpec
    name: ToolName
    act: Act
    verb: str
    noun: tuple[str, ...]
    is_plural: bool
    tail: tuple[str, ...]
    aspects: tuple[str, ...]
    parameters: tuple[Parameter, ...]

    @property
    def required(self) -> tuple[Parameter, ...]:
        """Parameters that every call gives."""
        return tuple(item for item in self.parameters if item.is_required)

    @property
    def definitions(self) -> JsonObject:
        """What references in the parameters' schemas point into."""
        schema = self.tool.parameters
        return {**schema.get("definitions", {}), **schema.get("$defs", {})}


def read_service(spec: ServiceSpec) -> list[Reading]:
    """All tools of a service, in their order."""
    prefix = common_prefix(tool.name for tool in spec.tools)
    own_words = set(tokenise(spec.name)) | set(tokenise(spec.title))
    stems = {id_stem(tokenise(name)) for tool in spec.tools for name in tool.parameters.get("properties") or ()}
    known = stems | {read_tool(tool, prefix, frozenset(), frozenset()).noun for tool in spec.tools}
    return [read_tool(tool, prefix, own_words, known) for tool in spec.tools]


def read_tool(
    tool: ToolSpec, prefix: tuple[str, ...], own_words: Set[str], known: Set[tuple[str, ...] | None]
) -> Reading:
    """One tool.

    Args:
        prefix: Words that the service puts in front of all its tools.
        own_words: Words of the service's name; in front of a noun they are dropped where that leaves a known one.
        known: Nouns and stems of ids that the service's tools speak of.
    """
    parts = parse_name(tool.name, prefix)
    words, tail = _split(parts.object)
    aspects: list[str] = []
    while len(words) > 1 and words[-1] in OBJECT_TAILS:
        aspects.insert(0, words[-1])
        words = words[:-1]
    while len(words) > 1 and words[0] in OBJECT_FILLERS:
        words = words[1:]
    if words and words[-1] in ADJECTIVES and parts.prefix and len(words) == 1:
        words = parts.prefix[-1:]
    if not words and parts.prefix:
        words = parts.prefix[-1:]
    if len(words) > 1 and words[0] in own_words and (*words[1:-1], singular(words[-1])) in known:
        words = words[1:]
    noun = (*words[:-1], singular(words[-1])) if words else ()
    is_plural = bool(words) and singular(words[-1]) != words[-1]
    act = _ACTS.get(parts.verb_class, "none")
    if parts.verb == "count" or (act in ("get", "none") and words and words[-1] in _COUNT_WORDS):
        act = "count"
        if words and words[-1] in _COUNT_WORDS and len(words) > 1:
            noun = (*words[:-2], singular(words[-2]))
    elif act == "none" and noun:
        act = "list" if is_plural else "get"
    return Reading(
        tool=tool,
        name=parts,
        act=act,
        verb=parts.verb or "",
        noun=noun,
        is_plural=is_plural,
        tail=tail,
        aspects=tuple(aspects),
        parameters=_parameters(tool.parameters),
    )


def _split(words: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The noun and what follows its first preposition."""
    words = tuple(words)
    while len(words) > 1 and words[0] in OBJECT_STOPS:
        words = words[1:]
    for at, word in enumerate(words):
        if word in OBJECT_STOPS and at:
            return words[:at], words[at:]
    return words, ()


def id_stem(words: Sequence[str]) -> tuple[str, ...] | None:
    """Words less the ending that makes them an identifier's: `issue_id_or_key` → `issue`; None without one."""
    rest = list(words)
    if not rest or rest[-1] not in ID_SUFFIXES:
        return None
    while rest and (rest[-1] in ID_SUFFIXES or rest[-1] in ("or", "unique")):
        rest.pop()
    return (*rest[:-1], singular(rest[-1])) if rest else ()


def _parameters(schema: JsonObject) -> tuple[Parameter, ...]:
    required = schema.get("required") or ()
    found: list[Parameter] = []
    names: set[str] = set()
    fields: set[str] = set()
    for wire, part in (schema.get("properties") or {}).items():
        part = part if isinstance(part, dict) else {}
        name = parameter_name(wire)
        while name in names:
            name += "_"
        names.add(name)
        field = stem = field_name(wire)
        number = 2
        while field in fields:
            field, number = f"{stem}_{number}", number + 1
        fields.add(field)
        words = tokenise(wire) or (field_name(wire),)
        found.append(
            Parameter(
                wire=wire,
                name=name,
                field=field,
                words=words,
                stem=id_stem(words),
                schema=part,
                is_required=wire in required,
                description=str(part.get("description") or ""),
            )
        )
    return tuple(found)
