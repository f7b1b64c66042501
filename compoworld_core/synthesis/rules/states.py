"""The life of an entity: its states, the one that a new row is in, and which of them a tool starts from."""

from __future__ import annotations

import re
from collections.abc import Sequence

from compoworld_core.synthesis.rules.model import EntityModel
from compoworld_core.synthesis.rules.words import STATUS_SYNONYMS, participle

_BEGINNINGS: Sequence[tuple[str, frozenset[str]]] = (
    ("draft", frozenset({"published", "submitted", "sent"})),
    ("pending", frozenset({"approved", "rejected", "accepted", "declined", "confirmed", "granted", "denied"})),
    ("open", frozenset({"closed", "resolved", "solved", "settled", "completed", "done", "finished", "assigned"})),
    ("planned", frozenset({"started"})),
    ("active", frozenset()),
)
_START_WORDS = (
    "new",
    "open",
    "todo",
    "to_do",
    "backlog",
    "draft",
    "pending",
    "proposed",
    "requested",
    "planned",
    "created",
)


def state_for(verb: str, known: Sequence[str]) -> str:
    """The state that a verb leads to, by the name that the service has for it."""
    target = participle(verb)
    by_name = {_plain(state): state for state in known}
    if target in by_name:
        return by_name[target]
    for group in STATUS_SYNONYMS:
        if target in group:
            for name in sorted(group & set(by_name)):
                return by_name[name]
    if verb in by_name:
        return by_name[verb]
    return target


def initial_state(entity: EntityModel, targets: set[str], descriptions: Sequence[str]) -> str:
    """The state of a new row: the one that a creating tool's description names, else a likely one."""
    for text in descriptions:
        for state in entity.states:
            if state not in targets and re.search(rf"\b{re.escape(_words(state))}\b", text.lower()):
                return state
    plain = {_plain(state): state for state in entity.states}
    for word in _START_WORDS:
        if word in plain:
            return plain[word]
    for state in entity.states:
        if state not in targets:
            return state
    known = {_plain(target) for target in targets}
    return next(name for name, ends in _BEGINNINGS if ends & known or not ends)


def opposite(state: str) -> str:
    """A state to come from or to go to where tools speak of one only."""
    return {"active": "inactive", "open": "closed", "draft": "final"}.get(state, f"not_{_plain(state)}")


def named_states(description: str, states: Sequence[str], target: str) -> tuple[list[str], list[str]]:
    """The states that a description asks for (`approve a submitted claim`), and those that it excludes (`not sent`)."""
    text = " ".join(description.lower().split())
    requires, forbids = [], []
    for state in states:
        if state == target:
            continue
        word = re.escape(_words(state))
        if re.search(rf"\bnot (?:yet |been )?{word}\b|\bbefore it is {word}\b", text):
            forbids.append(state)
        elif re.search(rf"\b(?:an?|the|every|only) {word}\b(?! of)", text):
            requires.append(state)
    return requires, forbids


def _plain(state: str) -> str:
    return re.sub(r"[^a-z0-9]+", "_", state.lower())


def _words(state: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", state.lower()).strip()
