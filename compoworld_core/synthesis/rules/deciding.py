"""Deciding what each tool does: which kind of operation, on which entity."""

from __future__ import annotations

from dataclasses import dataclass

from compoworld_core.synthesis.rules.model import OperationKind, Unwritable
from compoworld_core.synthesis.rules.nouns import Nouns, Words
from compoworld_core.synthesis.rules.reading import Parameter, Reading
from compoworld_core.synthesis.rules.words import (
    ACTION_NAMES,
    CREDENTIALS,
    EDIT_SCRIPTS,
    EXTERNAL_PARAMETERS,
    EXTERNAL_VERBS,
    NAMING_ENDINGS,
    WORLD_NOUNS,
)

_MAKING_VERBS = frozenset("create add new insert make register define declare init initialize put upsert".split())
_SAVING_VERBS = frozenset("set put save record upsert write store".split())
_CHECKING_VERBS = frozenset("verify validate sign merge deploy confirm".split())
_READING_VERBS = frozenset("fetch download check preview export extract track monitor".split())


@dataclass(frozen=True)
class Decision:
    """What a tool does and to what.

    Attributes:
        parent: For a creation out of another entity's key, that entity.
        modifiers: For a listing, words that say which rows it is about (`open`).
    """

    reading: Reading
    kind: OperationKind
    entity: Words
    key: Parameter | None = None
    parent: Words | None = None
    modifiers: Words = ()


def decide(reading: Reading, nouns: Nouns) -> Decision:
    """What a tool does.

    Raises:
        Unwritable: Its effect is external, or nothing tells what it is.
    """
    _refuse_credentials(reading)
    for item in reading.required:
        if item.field in ACTION_NAMES and reading.act in ("none", "get", "list", "execute", "update"):
            raise Unwritable(f"{item.wire!r} makes several tools of it")
    subject, extra = nouns.subject(reading)
    _refuse_external(reading, subject, nouns)
    if subject is None:
        raise Unwritable("no noun in its name or parameters is known as an entity of the service")
    is_about = nouns.resolve(reading.noun) == subject
    key = _key(reading, subject, nouns)
    act = reading.act
    if act in ("get", "none", "list", "search", "count") and reading.tool.effect == "write":
        raise Unwritable("it reads by its name and writes by its description")
    if act in ("list", "search", "count"):
        entity = _listed(reading, subject, is_about, nouns)
        return Decision(reading, "count" if act == "count" else "list", entity, modifiers=extra if is_about else ())
    if act in ("get", "none"):
        return _read(reading, subject, extra, key, is_about, nouns)
    if act == "delete":
        return Decision(reading, "delete", subject, key)
    child = nouns.child_made(reading, reading.noun) or (nouns.child_made(reading, subject) if key else None)
    if child is not None and (
        key is None or reading.verb not in ("assign", "renew", "confirm") or len(reading.required) > 1
    ):
        updates_known = act in ("update", "transition") and not _is_listed_only(child, nouns)
        if not updates_known and child != subject and act not in ("update",):
            return Decision(reading, "create", child, None, subject)
    if act == "update":
        if reading.verb in ("mark", "flag") and extra:
            return Decision(reading, "transition", subject, key)
        if key is None and not _locators(reading) and reading.verb in _SAVING_VERBS and is_about:
            return Decision(reading, "create", subject)
        return Decision(reading, "update", subject, key)
    if act in ("create", "send"):
        return _made(reading, subject, key, is_about)
    if act == "transition" or (act == "execute" and key is not None and reading.verb in _CHECKING_VERBS):
        if not is_about and extra and not key:
            raise Unwritable(f"nothing tells which row of {' '.join(subject)} it is about")
        return Decision(reading, "transition", subject, key)
    raise Unwritable(
        f"what {reading.verb or reading.tool.name!r} does cannot be told from stored rows", is_external=True
    )


def _made(reading: Reading, subject: Words, key: Parameter | None, is_about: bool) -> Decision:
    if not is_about:
        return Decision(reading, "create", reading.noun, None, subject)
    if key is None or (reading.act == "create" and (reading.verb in _MAKING_VERBS or not key.is_required)):
        return Decision(reading, "create", subject, key)
    return Decision(reading, "transition", subject, key)


def _read(
    reading: Reading, subject: Words, extra: Words, key: Parameter | None, is_about: bool, nouns: Nouns
) -> Decision:
    if not is_about:
        if reading.is_plural and reading.noun:
            raise Unwritable(f"nothing else in the service speaks of {' '.join(reading.noun)}")
        if extra and not set(extra) <= {"status", "state", "current"}:
            raise Unwritable(f"{' '.join(extra)} of a {' '.join(subject)} is not something that the service stores")
    if key is not None and key.schema.get("type") == "array":
        return Decision(reading, "list", subject, key)
    if key is None and (reading.is_plural or not reading.required):
        if not reading.is_plural and not reading.parameters:
            raise Unwritable(f"nothing tells which {' '.join(subject)} it is about")
        return Decision(reading, "list", subject, modifiers=extra)
    if key is None and any(item.schema.get("type") in ("array", "object") for item in reading.required):
        raise Unwritable(f"nothing tells which {' '.join(subject)} it is about")
    return Decision(reading, "get", subject, key)


def _listed(reading: Reading, subject: Words, is_about: bool, nouns: Nouns) -> Words:
    """The entity whose rows a listing returns; a noun of its own wins over the entity whose key is a filter."""
    if is_about or not reading.noun:
        return subject
    if reading.noun in nouns.entities:
        return reading.noun
    raise Unwritable(f"nothing else in the service speaks of {' '.join(reading.noun)}")


def _key(reading: Reading, entity: Words, nouns: Nouns) -> Parameter | None:
    """The parameter that carries the id of the row that the tool is about."""
    candidates = [item for item in reading.parameters if nouns.is_key(item, entity)]
    candidates.sort(key=lambda item: (not item.is_required, item.stem is None, item.stem != entity, bool(item.stem)))
    return candidates[0] if candidates else None


def _locators(reading: Reading) -> list[Parameter]:
    return [item for item in reading.required if item.words[-1:] in NAMING_ENDINGS]


def _is_listed_only(entity: Words, nouns: Nouns) -> bool:
    """Whether tools list an entity that none of them creates by its own name."""
    acts = nouns.support.get(entity, set())
    return bool(acts & {"list", "search", "get", "delete"}) and "create" not in acts


def _refuse_credentials(reading: Reading) -> None:
    for item in reading.required:
        if item.wire.lower() in CREDENTIALS or "_".join(item.words) in CREDENTIALS:
            raise Unwritable(f"it asks for the credential {item.wire!r}, which a world's user does not have")


def _refuse_external(reading: Reading, subject: Words | None, nouns: Nouns) -> None:
    acts = nouns.support.get(subject or (), set())
    stores = "create" in acts and subject is not None
    verb = reading.verb
    if verb in EXTERNAL_VERBS:
        is_reading = verb in _READING_VERBS and (stores or acts & {"list", "search"}) and subject is not None
        is_stateful = subject is not None and (verb in _CHECKING_VERBS or nouns.child_made(reading, subject))
        is_stateful = bool(is_stateful) and any(nouns.is_key(item, subject or ()) for item in reading.required)
        if not is_reading and not is_stateful:
            raise Unwritable(f"the outcome of {verb!r} cannot be told from stored rows", is_external=True)
    world = set(reading.noun[-1:]) & WORLD_NOUNS or {"_".join(reading.noun)} & WORLD_NOUNS
    if world and not stores and reading.act not in ("create", "update", "delete", "transition"):
        raise Unwritable(f"{' '.join(reading.noun)} lies outside the service's own rows", is_external=True)
    for item in reading.required:
        endings = {"_".join(item.words), *item.words[-1:]} - ({"code"} if len(item.words) > 1 else set())
        if endings & EXTERNAL_PARAMETERS and reading.act != "create":
            raise Unwritable(f"what it does with {item.wire!r} is a computation", is_external=True)
        if item.field in EDIT_SCRIPTS and reading.act in ("update", "create", "transition"):
            raise Unwritable(f"what it does with {item.wire!r} is a computation", is_external=True)
        if item.words in (("url",), ("uri",)) and reading.act in ("get", "list", "search", "none") and not stores:
            raise Unwritable("it reads what lies behind an address", is_external=True)
