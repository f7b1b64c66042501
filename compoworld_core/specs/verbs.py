"""Tool names as sentences: `jira_create_issue` has the prefix `jira`, the verb `create`, the object `issue`.

Authors of tools put the verb first (`createIssue`), second behind an application's name (`wiki_get_page`) or last
(`issue-list`). Some verbs are nouns as often as not (`report`, `order`, `log`): these count only where a verb is likely
and nothing stronger is in the name.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

from compoworld_core.specs.model import Effect

VerbClass = Literal["read", "list", "search", "compute", "create", "update", "delete", "transition", "send", "execute"]

_STRONG: Final[dict[VerbClass, str]] = {
    "read": "get fetch read show describe retrieve lookup inspect download load check examine browse explain count"
    " compare is has can peek tell whois scrape crawl preview monitor",
    "list": "list ls enumerate",
    "search": "search find query discover grep locate",
    "compute": "calculate compute convert estimate validate analyze analyse summarize summarise translate extract"
    " parse detect classify recommend suggest predict encode decode simulate evaluate render",
    "create": "create add new insert make append upload import declare enrol enroll register provision propose init"
    " initialize submit save duplicate clone capture generate",
    "update": "update edit modify change set put rename move replace configure adjust assign reassign unassign attach"
    " detach unlink untag toggle enable disable increment decrement redirect swap extend transfer reorder upsert merge"
    " sync apply correct",
    "delete": "delete remove destroy clear purge erase unsubscribe wipe uninstall del rm prune discard",
    "transition": "approve reject close reopen cancel complete finish start stop pause resume activate deactivate"
    " archive unarchive publish unpublish accept decline deny confirm resolve escalate lock unlock block unblock"
    " suspend freeze terminate renew return receive redeem expire retire revoke grant acknowledge dismiss promote"
    " rollback restore mute unmute follow unfollow subscribe withdraw settle mitigate discontinue deprecate reset"
    " restart pick pay fulfill fulfil",
    "send": "send notify broadcast reply",
    "execute": "run execute exec invoke verify navigate click launch install connect authenticate process build",
}
_WEAK: Final[dict[VerbClass, str]] = {
    "read": "view track display export ping",
    "search": "filter match",
    "compute": "forecast format score rank",
    "create": "post write record log book schedule plan place request file report comment store copy fork draft note"
    " credit rate subscribe open",
    "update": "link tag label mark patch pin star",
    "delete": "drop trash",
    "transition": "ship refund void release transition deploy hold issue",
    "send": "email mail message forward invite share",
    "execute": "call test trigger scan play type use ask chat press wait",
}
_PHRASES: Final[dict[tuple[str, str], VerbClass]] = {
    ("look", "up"): "read",
    ("sign", "up"): "create",
    ("set", "up"): "create",
    ("check", "in"): "transition",
    ("check", "out"): "transition",
    ("roll", "back"): "transition",
    ("turn", "on"): "update",
    ("turn", "off"): "update",
    ("clean", "up"): "delete",
    ("shut", "down"): "transition",
    ("log", "in"): "execute",
    ("log", "out"): "execute",
}
_READ_NOUNS: Final = frozenset("info status details detail history stats statistics summary overview".split())
_EFFECTS: Final[dict[VerbClass, Effect]] = {
    "read": "read",
    "list": "read",
    "search": "read",
    "compute": "read",
    "create": "write",
    "update": "write",
    "delete": "write",
    "transition": "write",
    "send": "write",
    "execute": "unknown",
}


def _index(table: dict[VerbClass, str]) -> dict[str, VerbClass]:
    return {word: verb_class for verb_class, words in table.items() for word in words.split()}


_STRONG_VERBS: Final = _index(_STRONG)
_WEAK_VERBS: Final = _index(_WEAK)
_WORD = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"[A-Z]+s?(?![a-z])\d*|[A-Z]?[a-z]+\d*|\d+")


@dataclass(frozen=True, slots=True)
class ToolName:
    """A tool name taken apart; all tokens are lower case.

    Attributes:
        prefix: Tokens that only say whose tool it is.
        verb: The verb, of two words where it is a phrase (`check in`); None where the name has none.
        verb_class: What the verb does; `read` without a verb for names such as `server_status`.
        object: What the verb acts on; empty for `ping`.
    """

    prefix: tuple[str, ...]
    verb: str | None
    verb_class: VerbClass | None
    object: tuple[str, ...]

    @property
    def effect(self) -> Effect:
        """Whether a tool of this name changes state, as far as the verb tells."""
        return "unknown" if self.verb_class is None else _EFFECTS[self.verb_class]


def tokenise(name: str) -> tuple[str, ...]:
    """Lower-case words of a snake_case, camelCase, kebab-case, dotted or spaced name (its first 300 characters)."""
    tokens: list[str] = []
    for word in _WORD.findall(name[:300]):
        tokens.extend(_HUMP.findall(word) if word.isascii() else [word])
    return tuple(token.lower() for token in tokens)


def common_prefix(names: Iterable[str]) -> tuple[str, ...]:
    """Leading tokens that all of three or more names share, up to the first verb; empty where there are none."""
    tokenised = [tokenise(name) for name in names]
    if len(tokenised) < 3:
        return ()
    shared: list[str] = []
    for column in zip(*tokenised, strict=False):
        if len(set(column)) > 1 or column[0] in _STRONG_VERBS or column[0] in _WEAK_VERBS:
            break
        shared.append(column[0])
    return tuple(shared)


def parse_name(name: str, prefix: tuple[str, ...] = ()) -> ToolName:
    """Takes a tool name apart.

    Args:
        name: The tool's name in any style.
        prefix: Tokens known to be the application's name, such as `common_prefix` finds; they are skipped.
    """
    tokens = tokenise(name)
    start = len(prefix) if prefix and tokens[: len(prefix)] == prefix and len(tokens) > len(prefix) else 0
    head, body = tokens[:start], tokens[start:]
    found = _find_verb(body)
    if found is None:
        is_reading = bool(body) and body[-1] in _READ_NOUNS
        return ToolName(head, None, "read" if is_reading else None, body or head[-1:])
    at, length, verb_class = found
    before, after = body[:at], body[at + length :]
    verb = " ".join(body[at : at + length])
    if after:
        return ToolName(head + before, verb, verb_class, after)
    if before:
        return ToolName(head, verb, verb_class, before)
    return ToolName(head[:-1], verb, verb_class, head[-1:])


def _find_verb(tokens: tuple[str, ...]) -> tuple[int, int, VerbClass] | None:
    """Position, length and class of the verb: a strong one first, second, third or last, else a weak one in front."""
    places = [at for at in dict.fromkeys((0, 1, 2, len(tokens) - 1)) if 0 <= at < len(tokens)]
    for at in places:
        phrase = _PHRASES.get(tokens[at : at + 2])  # type: ignore[arg-type]  # a slice at the end is shorter
        if phrase is not None:
            return at, 2, phrase
        if tokens[at] in _STRONG_VERBS:
            return at, 1, _STRONG_VERBS[tokens[at]]
    if tokens and tokens[-1] in _READ_NOUNS:
        return None
    for at in places[:2]:
        if tokens[at] in _WEAK_VERBS and (at == 0 or at + 1 < len(tokens)):
            return at, 1, _WEAK_VERBS[tokens[at]]
    return None
