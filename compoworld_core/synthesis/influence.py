"""Influence: does an answer depend on the rows, and does each argument take part in that?

A tool that computes its answer from its arguments alone varies with them and yet has no substance. So an argument of a
read counts only where it moves a part of the answer that the rows move too, after everything that merely repeats an
argument has been masked. Parts are named by their path with list positions dropped (`items/*/status`), which makes
answers of different lengths comparable. An argument of a write also counts where it moves the row changes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import Any, Final, Literal

from compoworld_core.services.arguments import Vocabulary
from compoworld_core.services.running import CallResult
from compoworld_core.synthesis.bench import scalars
from compoworld_core.synthesis.trial import Sample, Trial

Parts = dict[str, tuple[Any, ...]]
"""Scalars of a value by path, list positions dropped."""

Kind = Literal["changes", "answer", "refusal", "none", "untested"]
"""What an argument moves, the strongest proof first; `refusal` where only one legal value was accepted at all."""

_TRIES: Final = 9
_TRIES_OPTIONAL: Final = 4
_MASK: Final = "‹argument›"


@dataclass
class Effect:
    """What varying one argument did."""

    kind: Kind = "untested"
    tries: int = 0
    others: list[Sample] = field(default_factory=list)
    """Calls with other values that succeeded."""


class Influence:
    """What one tool's answers and changes depend on."""

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._by_state: dict[str, frozenset[str]] = {}

    def by_rows(self, sample: Sample) -> frozenset[str]:
        """Parts of a call's answer and changes that differ in other rows."""
        key = str(sample.arguments)
        if key not in self._by_state:
            bench, running = self._trial.bench, self._trial.world.running
            found: set[str] = set()
            for other in bench.other_states(running, sample.arguments):
                result = bench.call_elsewhere(other, self._trial.name, sample.arguments)
                if result is not None and result.succeeded:
                    found |= varying(_parts(sample), _parts(Sample(sample.arguments, result)))
            if not found:  # perhaps the rows hold nothing but ids and what the arguments say
                result = bench.call_elsewhere(
                    bench.rekeyed(running, sample.arguments), self._trial.name, sample.arguments
                )
                if result is not None and result.succeeded:
                    found |= varying(_parts(sample), _parts(Sample(sample.arguments, result)))
            self._by_state[key] = frozenset(found)
        return self._by_state[key]

    @cached_property
    def varied_by_rows(self) -> frozenset[str]:
        """Parts that differ in other rows, over all samples."""
        return frozenset[str]().union(*(self.by_rows(sample) for sample in self._trial.samples))

    @cached_property
    def of_required(self) -> dict[str, Effect]:
        """What each required argument moves."""
        return {name: self._effect(name, _TRIES) for name in self._trial.arguments.required}

    @cached_property
    def of_optional(self) -> dict[str, Effect]:
        """What each optional argument moves."""
        return {name: self._effect(name, _TRIES_OPTIONAL) for name in self._trial.arguments.optional}

    def _effect(self, name: str, tries: int) -> Effect:
        effect = Effect()
        if not self.varied_by_rows and not any(sample.result.changes for sample in self._trial.samples):
            return Effect("none")  # nothing that an argument could move would count
        refused = False
        for base in self._trial.samples[:2]:
            current = base.arguments.get(name)
            for value in islice(self._trial.arguments.alternatives(name, current), tries):
                if not self._trial.bench.can_call(self._trial.name):
                    break
                arguments = {**base.arguments, name: value}
                result = self._trial.call(arguments)
                effect.tries += 1
                if not result.succeeded:
                    refused = True
                    continue
                other = Sample(arguments, result)
                effect.others.append(other)
                kind = self._moved(base, other)
                if kind is not None:
                    effect.kind = kind
                    return effect
        if effect.tries:
            is_option = name not in self._trial.arguments.required
            effect.kind = "refusal" if refused and (is_option or not effect.others) else "none"
        return effect

    def _moved(self, base: Sample, other: Sample) -> Kind | None:
        if changed(base.result) != changed(other.result):
            return "changes"
        spoken = (base.arguments, other.arguments)
        moved = varying(answer(base, *spoken), answer(other, *spoken))
        if moved and (moved & self.varied_by_rows or moved & self.by_rows(other)):
            return "answer"
        return None


def varying(one: Parts, other: Parts) -> frozenset[str]:
    """Paths at which two values differ."""
    return frozenset(path for path in one.keys() | other.keys() if one.get(path) != other.get(path))


def parts(value: Any, *arguments: Mapping[str, Any]) -> Parts:
    """The scalars of a JSON value by path, with what repeats any of the arguments masked."""
    words = sorted({str(item).casefold() for item in scalars(arguments)}, key=lambda word: (-len(word), word))
    found: dict[str, list[Any]] = {}
    for path, leaf in _leaves(value, ""):
        found.setdefault(path, []).append(_masked(leaf, words))
    return {path: tuple(leaves) for path, leaves in found.items()}


def changed(result: CallResult) -> Parts:
    """The row changes of a call: which rows, and what their fields became."""
    found: dict[str, list[Any]] = {}
    for change in result.changes:
        before, after = change.before_row or {}, change.after_row
        place = f"{change.table.name}/{'deleted' if after is None else 'updated' if before else 'created'}"
        found.setdefault(f"{place}/id", []).append(change.key)
        news = before if after is None else {key: item for key, item in after.items() if before.get(key) != item}
        for path, leaf in _leaves({key: item for key, item in news.items() if key != "id"}, ""):
            found.setdefault(f"{place}{path}", []).append(leaf)
    return {path: tuple(leaves) for path, leaves in found.items()}


def addressed(sample: Sample, vocabulary: Vocabulary) -> bool:
    """Whether a row that was changed or deleted is one that the arguments name, describe, or lead to."""
    named = {str(item) for item in scalars(sample.arguments)}
    telling = {item for item in named if len(item) > 2}
    for anchor in [anchor for key in sorted(named) if (anchor := vocabulary.row(key)) is not None]:
        named |= {str(key) for word, keys in anchor.words.items() if word.startswith("id:") for key in keys}
    return any(
        change.key in named or telling & {str(item) for item in scalars(change.before_row)}
        for change in sample.result.changes
        if change.before is not None
    )


def stored(sample: Sample) -> bool:
    """Whether a changed row now holds the value of an argument that it didn't hold before."""
    words = {str(item).casefold() for item in scalars(sample.arguments) if item not in (0, 1)}
    for change in sample.result.changes:
        before, after = change.before_row or {}, change.after_row or {}
        texts = [str(leaf).casefold() for key in after if after[key] != before.get(key) for leaf in scalars(after[key])]
        if any(word == text or (len(word) > 2 and word in text) for word in words for text in texts):
            return True
    return False


def answer(sample: Sample, *arguments: Mapping[str, Any]) -> Parts:
    """The parts of a successful call's data; two answers are compared with the arguments of both calls masked."""
    return parts(sample.result.envelope["data"], *(arguments or (sample.arguments,)))


def _parts(sample: Sample) -> Parts:
    changes = {f"changes/{path}": leaves for path, leaves in changed(sample.result).items()}
    return {**answer(sample), **changes}


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key in sorted(value):
            yield from _leaves(value[key], f"{path}/{key}")
    elif isinstance(value, list | tuple):
        yield f"{path}/#", len(value)
        for item in value:
            yield from _leaves(item, f"{path}/*")
    else:
        yield path, value


def _masked(leaf: Any, words: list[str]) -> Any:
    if leaf is None or isinstance(leaf, bool):
        return leaf
    text = str(leaf).casefold()
    for word in words:
        if text == word:
            return _MASK
        if isinstance(leaf, str) and len(word) > 2 and word in text:
            text = text.replace(word, _MASK)
            leaf = text
    return leaf
