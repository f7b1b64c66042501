"""Facts in free text: does a message state an amount, a date or a name, however a person would write it?

Rubrics must not reject `€1.392,00` for `1392.00`, nor accept `INV-1392` as that amount.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Literal

from compoworld_core.data import Data

FactKind = Literal["text", "number", "date"]


class Fact(Data):
    """A value that a text may state.

    Attributes:
        kind: `number` matches any usual notation of the amount, `date` any usual notation of the day, `text` the words
            themselves, whatever their case and spacing.
        value: Canonical form: decimal text, ISO date or time, or the words.
    """

    kind: FactKind = "text"
    value: str


MONTHS = "January February March April May June July August September October November December".split()
"""Their English names, whatever the locale."""
_CODE = "AED|AUD|BRL|CAD|CHF|CNY|CZK|DKK|EUR|GBP|HKD|HUF|INR|JPY|KRW|MXN|NOK|NZD|PLN|SEK|SGD|TRY|USD|ZAR"
_GAP = "[ \u00a0\u2009\u202f]"
_DIGITS = re.compile(rf"\d{{1,3}}(?:{_GAP}\d{{3}}(?!\d))+(?:[.,]\d+)?|\d+(?:[.,]\d+|['’]\d{{3}}(?!\d))*")
_NO_NUMBER_BEFORE = re.compile(r"(?:[^\W_]|[^\W_][-−_.'’]|\d:|[#/])$")
_CODE_BEFORE = re.compile(rf"(?<![^\W_])(?:{_CODE})[-−]?$")
_NO_NUMBER_AFTER = re.compile(r"[^\W_]|_[^\W_]|\.[^\W\d_]|:\d|-[A-Z]")
_UNIT_AFTER = re.compile(rf"(?:{_CODE}|kr|zł|kg|km|cm|mm|min|pcs|h|x)(?![^\W_])")
_LIST_NUMBER = re.compile(r"^[ \t>*_-]*(\d{1,2})[.)](?=[*_]*[ \t]+\S)", re.MULTILINE)
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_ISO_TIME = re.compile(r"\d{4}-\d{2}-\d{2}[T ]\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?")
_LIKE_SIGNS = str.maketrans(
    {
        **dict.fromkeys("‐‑‒–—−", "-"),
        **dict.fromkeys("‘’ʼ`´", "'"),
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff"),
    }
)


def fact_of(value: object, semantic: str | None = None) -> Fact:
    """The fact that a JSON value states, with its kind taken from the semantic type or the value's form."""
    text = value if isinstance(value, str) else str(value)
    if semantic in ("date", "timestamp") or _ISO_DATE.fullmatch(text) or _ISO_TIME.fullmatch(text):
        return Fact(kind="date", value=text)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if is_number or semantic in ("money", "percent", "quantity"):
        try:
            return Fact(kind="number", value=format(Decimal(text), "f"))
        except InvalidOperation:
            pass
    return Fact(kind="text", value=text)


def states(text: str, fact: Fact) -> bool:
    """Whether the text states the fact. A fact that is not of its kind (`13/45` as a date) is stated nowhere."""
    try:
        if fact.kind == "number":
            wanted = abs(Decimal(fact.value))
            return any(wanted == number for number in _numbers(text))
        if fact.kind == "date":
            if len(fact.value) <= 10:
                return _states_date(text, fact.value)
            return _states_moment(text, fact.value) or (
                _states_date(text, fact.value) and _states_time(text, fact.value)
            )
    except (InvalidOperation, ValueError):
        return False
    return _contains_words(text, fact.value)


def _folded(text: str) -> str:
    """The text without differences of case, spacing, Unicode form and typography."""
    plain = unicodedata.normalize("NFKC", text.translate(_LIKE_SIGNS)).casefold()
    return " ".join(unicodedata.normalize("NFKC", plain).split())


def _contains_words(text: str, words: str) -> bool:
    needle = _folded(words)
    if not needle:
        return False
    before, after = "", ""
    if needle[0].isalnum():
        before = r"(?<![^\W_])"
    if needle[-1].isalnum():
        after = r"(?![^\W_])"
    if "@" in needle:
        before, after = r"(?<![\w.+-])", r"(?!\w|[.-]\w)"
    elif any(map(str.isdigit, needle)):
        if " " not in needle:  # an id is not a part of a longer one
            before, after = before + r"(?<!\w[-_])", after + r"(?![-_]\w)"
    else:  # `in_progress` is what people call "in progress"
        pattern = re.sub(r"(?<=[^\W_])(?:_|\\-|\\ )(?=[^\W_])", "[ _-]", re.escape(needle))
        return re.search(before + pattern + after, _folded(text)) is not None
    return re.search(before + re.escape(needle) + after, _folded(text)) is not None


def _numbers(text: str) -> Iterator[Decimal]:
    """Every amount in the text, in each reading that its separators allow. The numbers of a list are none."""
    text = _without_list_numbers(text)
    text = _ISO_DATE.sub(" ", _ISO_TIME.sub(" ", text))
    for match in _DIGITS.finditer(text):
        before, after = text[max(match.start() - 6, 0) : match.start()], text[match.end() : match.end() + 6]
        if _NO_NUMBER_BEFORE.search(before) and not _CODE_BEFORE.search(before):
            continue
        if _NO_NUMBER_AFTER.match(after) and not _UNIT_AFTER.match(after):
            continue
        digits = re.sub("['’]", "", match.group())
        yield from _readings(re.sub(_GAP, "", digits))
        for part in re.split(_GAP, digits) if re.search(_GAP, digits) else ():
            yield from _readings(part)


def _without_list_numbers(text: str) -> str:
    """The text without the `1.`, `2.` … or `1)`, `2)` … at the beginning of lines, where there are at least two."""
    lists: list[list[tuple[int, int]]] = [[]]
    for match in _LIST_NUMBER.finditer(text):
        if int(match[1]) == 1:
            lists.append([])
        if int(match[1]) == len(lists[-1]) + 1:
            lists[-1].append(match.span(1))
    for start, end in reversed([span for spans in lists if len(spans) > 1 for span in spans]):
        text = text[:start] + " " * (end - start) + text[end:]
    return text


def _readings(digits: str) -> Iterator[Decimal]:
    last = max(digits.rfind("."), digits.rfind(","))
    if last < 0:
        yield Decimal(digits)
        return
    separator, other = digits[last], "," if digits[last] == "." else "."
    whole, tail = digits[:last], digits[last + 1 :]
    if separator not in whole:
        yield Decimal(f"{whole.replace(other, '')}.{tail}")
    if len(tail) == 3 and other not in whole:
        yield Decimal(whole.replace(separator, "") + tail)


def _states_date(text: str, iso: str) -> bool:
    folded = _folded(text)
    day = date.fromisoformat(iso[:10])
    month = MONTHS[day.month - 1].lower()
    short = "sept?" if day.month == 9 else month[:3]
    names = rf"(?:{month}|{short}\.?)"
    ordinal = rf"0?{day.day}(?:st|nd|rd|th|\.)?"
    year = rf"(?:(?:,? |-){day.year})?(?!\w)(?!\.?(?:,? |-)(?:19|20)\d\d(?!\d))"
    forms = (
        rf"(?<!\d){day.year}-0?{day.month}-0?{day.day}(?!\d)",
        rf"(?<!\d){day.year}(?P<sep>[./])0?{day.month}(?P=sep)0?{day.day}(?!\d)",
        rf"(?<!\d){ordinal}(?: of)?[ -]{names}{year}",
        rf"(?<!\w){names} (?:the )?{ordinal}{year}",
        rf"(?<!\d)0?{day.day}(?P<sep>[./-])0?{day.month}(?P=sep){day.year}(?!\d)",
        rf"(?<!\d)0?{day.month}(?P<sep>[/-])0?{day.day}(?P=sep){day.year}(?!\d)",
    )
    return any(re.search(form, folded) for form in forms)


def _states_moment(text: str, iso: str) -> bool:
    """Whether the text has the very moment as a full time with an offset, be it another one."""
    wanted = datetime.fromisoformat(iso)
    for match in _ISO_TIME.finditer(text):
        with suppress(ValueError):
            moment = datetime.fromisoformat(match.group())
            if moment.tzinfo is not None and wanted.tzinfo is not None and moment == wanted:
                return True
    return False


def _states_time(text: str, iso: str) -> bool:
    """Whether the text states the time of day, to the minute, in 24 or 12 hours."""
    moment = datetime.fromisoformat(iso)
    hour, minute = moment.hour, f"{moment.minute:02}"
    half, other = ("pm", "am") if hour >= 12 else ("am", "pm")
    seconds = r"(?:[:.]\d\d)?"
    full = rf"0?{hour}[:.h]{minute}(?!\d)(?!{seconds} ?{other})"
    minutes = rf"[:.]{minute}{seconds}" if moment.minute else rf"(?:[:.]00{seconds})?"
    folded = _folded(text).replace("p.m.", "pm").replace("a.m.", "am")
    return re.search(rf"(?<!\d)(?:{full}|0?{hour % 12 or 12}{minutes} ?{half}(?![^\W_]))", folded) is not None
