"""Facts in free text: does a message state an amount, a date or a name, however a person would write it?

Rubrics must not reject `€1.392,00` for `1392.00`, nor accept `INV-1392` as that amount.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Literal

from pydantic import BaseModel, ConfigDict

FactKind = Literal["text", "number", "date"]


class Fact(BaseModel):
    """A value that a text may state.

    Attributes:
        kind: `number` matches any usual notation of the amount, `date` any usual notation of the day, `text` the words
            themselves, whatever their case and spacing.
        value: Canonical form: decimal text, ISO date or time, or the words.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: FactKind = "text"
    value: str


_MONTHS = """
    january february march april may june july august september october november december
""".split()
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_#/.,'])(?:(?<![\w-])[A-Z]{3}[ \u00a0]?)?[-−]?(\d[\d.,'’\u00a0\u202f ]*\d|\d)(?![A-Za-z0-9_])"
)
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def fact_of(value: object, semantic: str | None = None) -> Fact:
    """The fact that a JSON value states, with its kind taken from the semantic type or the value's form."""
    text = value if isinstance(value, str) else str(value)
    if semantic in ("date", "timestamp") or _ISO_DATE.fullmatch(text):
        return Fact(kind="date", value=text)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number or semantic in ("money", "percent", "quantity"):
        try:
            return Fact(kind="number", value=format(Decimal(text), "f"))
        except InvalidOperation:
            pass
    return Fact(kind="text", value=text)


def states(text: str, fact: Fact) -> bool:
    """Whether the text states the fact."""
    if fact.kind == "number":
        wanted = abs(Decimal(fact.value))
        return any(wanted == number for number in _numbers(text))
    if fact.kind == "date":
        return _states_date(text, fact.value) and ("T" not in fact.value or _states_time(text, fact.value))
    return _contains_words(text, fact.value)


def _contains_words(text: str, words: str) -> bool:
    needle = " ".join(words.split()).casefold()
    if not needle:
        return False
    pattern = (
        rf"(?<!\w){re.escape(needle)}(?!\w)" if needle[0].isalnum() and needle[-1].isalnum() else re.escape(needle)
    )
    return re.search(pattern, " ".join(text.split()).casefold()) is not None


def _numbers(text: str) -> Iterator[Decimal]:
    """Every amount in the text, in each reading that its separators allow."""
    for match in _NUMBER.finditer(_ISO_DATE.sub(" ", text)):
        before = text[: match.start()]
        if match.group(0)[0] in "-−" and before and (before[-1].isalnum() or before[-1] == "_"):
            continue
        yield from _readings(match.group(1))


def _readings(digits: str) -> Iterator[Decimal]:
    digits = re.sub(r"['’\u00a0\u202f]", "", digits)
    for chunk in re.split(r" (?!\d{3}(?!\d))", digits):
        yield from _chunk_readings(chunk.replace(" ", "").strip(".,"))


def _chunk_readings(digits: str) -> Iterator[Decimal]:
    last = max(digits.rfind("."), digits.rfind(","))
    if last < 0:
        if digits:
            yield Decimal(digits)
        return
    separator = digits[last]
    whole = re.sub(r"[.,]", "", digits[:last])
    tail = digits[last + 1 :]
    other = "," if separator == "." else "."
    if digits.count(separator) == 1 and whole:
        yield Decimal(f"{whole}.{tail}")
    if len(tail) == 3 and other not in digits[last:]:
        yield Decimal(whole + tail)


def _states_date(text: str, iso: str) -> bool:
    folded = " ".join(text.split()).casefold()
    day = date.fromisoformat(iso[:10])
    month = _MONTHS[day.month - 1]
    names = f"(?:{month}|{month[:3]}\\.?{'|sept' if day.month == 9 else ''})"
    year = f"(?:,? {day.year})?"
    ordinal = rf"0?{day.day}(?:st|nd|rd|th|\.)?"
    forms = (
        rf"{day.year}-{day.month:02}-{day.day:02}(?!\d)",
        rf"{day.year}/0?{day.month}/0?{day.day}(?!\d)",
        rf"(?<!\d){ordinal}(?: of)? {names}{year}\b(?! \d{{4}})",
        rf"\b{names} {ordinal}{year}(?!\d)(?!,? \d{{4}})",
        rf"(?<!\d)0?{day.day}[./]0?{day.month}[./]{day.year}(?!\d)",
        rf"(?<!\d)0?{day.month}/0?{day.day}/{day.year}(?!\d)",
    )
    return any(re.search(form, folded) for form in forms)


def _states_time(text: str, iso: str) -> bool:
    """Whether the text states the time of day, to the minute, in 24 or 12 hours."""
    hour, minute = int(iso[11:13]), iso[14:16]
    half = f"0?{hour % 12 or 12}[:.]{minute}(?:[:.]\\d\\d)? ?{'pm' if hour >= 12 else 'am'}"
    folded = text.casefold().replace("p.m.", "pm").replace("a.m.", "am")
    return re.search(rf"(?<!\d)(?:{hour:02}|{hour})[:.h]{minute}(?!\d)|(?<!\d){half}", folded) is not None
