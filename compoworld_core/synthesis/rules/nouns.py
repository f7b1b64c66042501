"""Which nouns of a service are entities, and which parameters point at them.

A noun is an entity where tools create, list, search or delete it, or where some parameter carries its id. Any other
noun is an aspect of the entity whose key the tool takes: `update_shipping_address(order_number, …)` is about an order.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from compoworld_core.synthesis.rules.reading import Parameter, Reading
from compoworld_core.synthesis.rules.words import ADJECTIVES, GENERIC_IDS, OWN_CHILD_VERBS, VERB_NOUNS

Words = tuple[str, ...]

_MAKING_ACTS = frozenset({"list", "search", "create", "delete"})


class Nouns:
    """The entities of a service."""

    def __init__(self, readings: Sequence[Reading]) -> None:
        self.entities: list[Words] = []
        self.support: dict[Words, set[str]] = {}
        stems = Counter(item.stem for reading in readings for item in reading.parameters if item.stem)
        named = {reading.noun for reading in readings}
        self._aliases: dict[Words, Words] = {}
        for reading in readings:
            made = VERB_NOUNS.get(reading.verb)
            if made is None or reading.act != "create":
                continue
            if (*reading.noun, made) in named:
                self._aliases[reading.noun] = (*reading.noun, made)
            elif (made,) in named and not _has_own_tools(reading.noun, readings, besides=reading):
                self._aliases[reading.noun] = (made,)
        for reading in readings:
            if reading.noun and reading.noun not in self._aliases:
                self.support.setdefault(reading.noun, set()).add(reading.act)
        for noun, acts in self.support.items():
            if acts & _MAKING_ACTS or stems[noun]:
                self._add(noun)
        for reading in readings:
            if reading.act in ("get", "none") and reading.noun and self._is_own_read(reading):
                self._add(reading.noun)
        self._drop_shadows()

    def _add(self, noun: Words) -> None:
        if noun not in self.entities and all(word.isascii() for word in noun):
            self.entities.append(noun)

    def _is_own_read(self, reading: Reading) -> bool:
        """Whether a tool that reads one thing reads it by the thing's own key, or reads all of them."""
        if self.resolve(reading.noun) is not None:
            return False
        return not any(self.referred(item) for item in reading.required)

    def _drop_shadows(self) -> None:
        """Forget nouns that are a shorter or a modified name of another entity and that no tool lists or creates."""
        for noun in list(self.entities):
            own = self.support.get(noun, set())
            longer = [other for other in self.entities if other != noun and other[-len(noun) :] == noun]
            shorter = [other for other in self.entities if other != noun and noun[-len(other) :] == other]
            is_shadow = len(longer) == 1 and not own & {"list", "search", "create"}
            is_plain = bool(shorter) and (
                "create" in self.support.get(shorter[0], ()) or set(noun[: -len(shorter[0])]) <= ADJECTIVES
            )
            is_modified = is_plain and not own & {"create", "delete"}
            if is_shadow or is_modified:
                self.entities.remove(noun)

    def resolve(self, noun: Words) -> Words | None:
        """The entity that a noun phrase speaks of, also by a shorter or a longer name."""
        noun = self._aliases.get(noun, noun)
        if noun in self.entities:
            return noun
        for start in range(1, len(noun)):
            if noun[start:] in self.entities:
                return noun[start:]
        if not noun:
            return None
        longer = [other for other in self.entities if other[-len(noun) :] == noun]
        if len(longer) == 1:
            return longer[0]
        initials = [
            other for other in self.entities if len(other) > 1 and "".join(word[0] for word in other) == noun[-1]
        ]
        return initials[0] if len(noun) == 1 and initials else None

    def referred(self, parameter: Parameter) -> Words | None:
        """The entity whose id a parameter carries."""
        if parameter.stem is None:
            is_known = bool(self.support.get(parameter.words, set()) & _MAKING_ACTS)
            return parameter.words if is_known and parameter.words in self.entities else None
        return self.resolve(parameter.stem) if parameter.stem else None

    def is_key(self, parameter: Parameter, entity: Words) -> bool:
        """Whether a parameter is the id of the entity that a tool is about, not of a related one."""
        if parameter.stem is None:
            return parameter.words == entity
        stem = parameter.stem
        if not stem:
            return parameter.words[-1] in GENERIC_IDS
        if stem == entity or (len(stem) < len(entity) and entity[-len(stem) :] == stem):
            return True
        return self.resolve(stem) == entity and len(stem) == 1

    def subject(self, reading: Reading) -> tuple[Words | None, Words]:
        """The entity that a tool is about, and the words of its object that go beyond it."""
        noun = reading.noun
        found = self.resolve(noun)
        if found is not None:
            extra = tuple(word for word in noun if word not in found)
            return found, extra
        for end in range(len(noun) - 1, 0, -1):
            found = self.resolve(noun[:end])
            if found is not None and any(self.is_key(item, found) for item in reading.parameters):
                return found, noun[end:]
        for item in (*reading.required, *reading.parameters):
            found = self.referred(item)
            if found is not None:
                return found, noun
        for word in reversed(reading.name.prefix):
            found = self.resolve((word,))
            if found is not None:
                return found, noun
        return None, noun

    def child_made(self, reading: Reading, parent: Words) -> Words | None:
        """The entity that a verb makes out of another one: `rate_vendor` → `vendor rating`."""
        noun = VERB_NOUNS.get(reading.verb)
        if noun is None or reading.verb == "":
            return None
        for candidate in ((*parent, noun), (noun,)):
            for entity in self.entities:
                if entity == candidate or (len(candidate) == 1 and entity[-1:] == candidate and parent[-1] in entity):
                    return entity if entity != parent else None
        return (*parent, noun) if reading.verb in OWN_CHILD_VERBS else None

    def add_all(self, nouns: Iterable[Words]) -> None:
        """Make entities of further nouns."""
        for noun in nouns:
            self._add(noun)


def _has_own_tools(noun: Words, readings: Sequence[Reading], besides: Reading) -> bool:
    """Whether other tools list, read or make the noun itself."""
    acts = {reading.act for reading in readings if reading.noun == noun and reading is not besides}
    return bool(acts & (_MAKING_ACTS | {"get", "count"}))
