"""Wording: how an instruction speaks of fields, rows, values and what is to be done with them.

Everything is said from field names, meanings and descriptions; no service and no tool has words of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import Any, Protocol

from compoworld_core.services.acronyms import with_acronyms
from compoworld_core.services.acronyms import with_article as with_article

_UNITS = frozenset({"days", "hours", "minutes", "months", "weeks", "years", "percent", "kg", "km"})
_SUMS = frozenset(
    "amount balance budget charge cost credit debit due fee limit price rate revenue salary sum tax total value".split()
)
_CREATING = frozenset(
    "add book create draft file issue log make open place plan post record register request save schedule send start"
    " submit write".split()
)
_NOUNS = {
    "applied": "application",
    "approved": "approval",
    "arrives": "arrival",
    "assigned": "assignment",
    "begins": "start",
    "cancelled": "cancellation",
    "changed": "last change",
    "closed": "closing",
    "closes": "closing",
    "completed": "completion",
    "created": "creation",
    "delivered": "delivery",
    "departs": "departure",
    "discovered": "discovery",
    "ends": "end",
    "expires": "expiry",
    "issued": "issue",
    "modified": "last change",
    "opened": "opening",
    "opens": "opening",
    "ordered": "order",
    "paid": "payment",
    "published": "publication",
    "purchased": "purchase",
    "received": "receipt",
    "registered": "registration",
    "renews": "renewal",
    "requested": "request",
    "resolved": "resolution",
    "retired": "retirement",
    "returned": "return",
    "returns": "return",
    "shipped": "shipping",
    "started": "start",
    "starts": "start",
    "submitted": "submission",
    "updated": "last update",
}
"""What people call the day or the time of a verb: `ends_at` is the end time."""
_DOERS = {
    "created": "creator",
    "edited": "editor",
    "authored": "author",
    "sent": "sender",
    "paid": "payer",
    "counted": "person who counted",
    "triggered": "initiator",
}
_OF_A_DOER = {"email": "e-mail address", "username": "username"}
_NOT_DONE = frozenset({"needed", "required", "expected", "wanted", "sorted", "grouped", "ordered", "filtered"})
"""Participles after which `by` names no doer: a day, or a field."""
_BOUNDS = {"min": "minimum", "max": "maximum"}
_SPELLING = {"timezone": "time zone", "filename": "file name", "postcode": "postal code"}
_ADDRESSING = {"to": "addressed to", "cc": "with a copy to", "bcc": "with a blind copy to"}


class Value(Protocol):
    """Something that a sentence can name: `what` it is, of which row."""

    @property
    def what(self) -> str:
        """The field, as a person calls it."""
        ...

    @property
    def of(self) -> str:
        """The row, with its article; empty where the value stands alone."""
        ...


def label(name: str, word: str | None = None) -> str:
    """How a person calls a field: `owner_email` is the `owner e-mail address`.

    Args:
        word: The field's meaning.
    """
    words = [part for part in name.replace("-", "_").split("_") if part]
    if len(words) == 2 and words[1] == "by" and (doer := _doer(words[0])):
        return f"{doer} {_OF_A_DOER[word]}" if word in _OF_A_DOER else doer
    words = [_SPELLING.get(part, part) for part in words]
    if len(words) > 1 and words[-1] in _BOUNDS:
        words = [_BOUNDS[words[-1]], *words[:-1]]
    elif len(words) > 1 and words[-1] in ("on", "at"):
        verb = _NOUNS.get(words[-2], words[-2]) if len(words) == 2 else words[-2]
        words = [*words[:-2], verb, "date" if words[-1] == "on" else "time"]
    elif len(words) > 1 and words[-1] in _UNITS:
        words = [*words[:-1], "in", words[-1]]
    elif words and words[-1] == "phone":
        words.append("number")
    elif (words and words[-1] == "email") or (word == "email" and "email" not in words and "mail" not in words):
        words.append("address")
    elif word == "money" and words and not _SUMS & set(words):
        words.append("amount")
    return with_acronyms(" ".join(words).replace("email", "e-mail"))


def _doer(participle: str) -> str | None:
    """Who has done something: `verified` is done by a verifier."""
    if participle in _DOERS or not participle.endswith("ed") or participle in _NOT_DONE:
        return _DOERS.get(participle)
    return f"{participle[:-2]}er"


def noun(entity: str) -> str:
    """How a person calls an entity."""
    return with_acronyms(entity.replace("_", " ").replace("email", "e-mail"))


def enumerated(phrases: Sequence[str]) -> str:
    """The phrases as one: `a, b and c`."""
    return phrases[0] if len(phrases) == 1 else f"{', '.join(phrases[:-1])} and {phrases[-1]}"


def phrase(value: Value) -> str:
    """`the city of the account`."""
    return f"the {_own(value.what, value.of)} of {value.of}" if value.of else f"the {value.what}"


def _own(what: str, of: str) -> str:
    """A field's name within its row: the project name of the project is its name."""
    first, _, rest = what.partition(" ")
    return rest if rest and of.endswith(f" {first}") else what


def phrases(values: Iterable[Value]) -> str:
    """Several values, those of one row together: `the tier and city of the account and the approval code`."""
    groups = [(of, [item.what for item in items]) for of, items in groupby(values, key=lambda item: item.of)]
    told: list[str] = []
    for of, what in groups:
        told += (
            [f"the {enumerated([_own(name, of) for name in what])} of {of}"] if of else [f"the {name}" for name in what]
        )
    is_simple = all(len(what) == 1 or not of for of, what in groups)
    return enumerated(told) if len(told) == 1 or is_simple else "; ".join(told)


def spoken(value: Any) -> str:
    """A literal, so that the reader sees where it begins and ends."""
    if isinstance(value, list):
        return enumerated([spoken(item) for item in value]) if value else "none"
    return f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)


def addressed(name: str, value: str) -> str | None:
    """How recipients are told; None for what is not one of their fields."""
    lead = _ADDRESSING.get(name)
    return None if lead is None else f"{lead} {value}"


def creating(description: str) -> str:
    """The verb for making a row: that with which the tool describes itself, if it is a usual one."""
    first = re.match(r"[A-Za-z]+", description)
    verb = first.group(0).lower() if first else ""
    return verb.capitalize() if verb in _CREATING else "Create"


def setting(of: str, effects: Sequence[tuple[str, str]], marks: Sequence[str]) -> str:
    """A sentence that asks for fields of a row to have values.

    Args:
        of: The row, with its article.
        effects: (field, value) pairs, both as they are told.
        marks: What the row is to be marked as.
    """
    told = [
        f"the {field} of {of} to {value}" if place == 0 else f"its {field} to {value}"
        for place, (field, value) in enumerate(effects)
    ]
    parts = [f"set {enumerated(told)}"] if told else []
    if marks:
        parts.append(f"mark {'it' if told else of} as {enumerated(marks)}")
    sentence = enumerated(parts)
    return f"{sentence[0].upper()}{sentence[1:]}"
