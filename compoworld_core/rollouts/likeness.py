"""Likeness: which conversations say nearly the same, found without comparing each with each.

A conversation is the set of its word sequences of a fixed length. Two sets are alike when what they have in common,
as a share of what either has (their Jaccard index), reaches a threshold. Sets so alike have an element in common even
among the few rarest of each, so only those are looked up, and only what is found there is compared: prefix filtering
(Bayardo, Ma, Srikant: Scaling Up All Pairs Similarity Search, WWW 2007). The result is exact.
"""

from __future__ import annotations

import hashlib
import html
import math
import re
import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Sequence
from typing import Final, TypeAlias

SHINGLE: Final = 5
"""Words of a sequence."""

_CJK: Final = r"\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff"
_WORD: Final = re.compile(rf"[{_CJK}]|[^\W_{_CJK}]+")
"""In scripts that put no spaces between words, every character counts as one."""

_UNSEEN: Final = re.compile(
    "[\u0300-\u036f\u00ad\u061c\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufe00-\ufe0f\ufeff]"
)
"""Accents, and characters without width."""

_COUNTERS: Final = 1 << 20

Shingles: TypeAlias = "array[int]"


def words(text: str) -> list[str]:
    """The words of a text, without case, punctuation, accents, variants of letters and what cannot be seen."""
    text = html.unescape(text)
    if not text.isascii():
        bare = _UNSEEN.sub("", unicodedata.normalize("NFKD", text))
        text = unicodedata.normalize("NFKC", bare)
    return _WORD.findall(text.casefold())


def runs(sequence: Sequence[str], length: int) -> Iterator[str]:
    """Every so many words that follow each other, as one text."""
    return (" ".join(sequence[start : start + length]) for start in range(len(sequence) - length + 1))


def shingles(texts: Iterable[str]) -> Shingles:
    """The set of word sequences of some texts, as hashes in ascending order."""
    found: set[int] = set()
    for text in texts:
        if sequence := words(text):
            found.update(map(_hashed, runs(sequence, min(SHINGLE, len(sequence)))))
    return array("Q", sorted(found))


def _hashed(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big")


class LikenessIndex:
    """Sets that were kept, ready to be asked for one that is like a new one.

    Args:
        everything: All sets that will be asked for or added. What is common among them is looked at last.
        threshold: Least Jaccard index of two sets that are alike, above 0.
    """

    def __init__(self, everything: Iterable[Shingles], threshold: float) -> None:
        self._threshold = threshold
        # Few counters for many sequences: where two share one they only count as more common than they are.
        self._counts = array("L", bytes(_COUNTERS * array("L").itemsize))
        for item in everything:
            for shingle in item:
                self._counts[shingle % _COUNTERS] += 1
        self._kept: list[tuple[str, Shingles]] = []
        self._places: dict[int, list[int]] = {}

    def like(self, item: Shingles) -> str | None:
        """The name of the first that was added and is like this one, if there is any."""
        found = {place for shingle in self._rarest(item) for place in self._places.get(shingle, ())}
        own = set(item)
        for place in sorted(found):
            name, other = self._kept[place]
            common = sum(shingle in own for shingle in other)
            if common >= self._threshold * (len(item) + len(other) - common):
                return name
        return None

    def add(self, name: str, item: Shingles) -> None:
        """Keep a set."""
        for shingle in self._rarest(item):
            self._places.setdefault(shingle, []).append(len(self._kept))
        self._kept.append((name, item))

    def _rarest(self, item: Shingles) -> list[int]:
        """So many of the rarest that two sets which are alike have one of them in common."""
        fewest = len(item) - math.ceil(self._threshold * len(item)) + 1
        return sorted(item, key=lambda shingle: (self._counts[shingle % _COUNTERS], shingle))[:fewest]
