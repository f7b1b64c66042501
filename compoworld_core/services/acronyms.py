"""Acronyms: words that people write in capitals, `CRM` and `URL`, wherever a name is read aloud."""

from __future__ import annotations

import re
from typing import Final

_ACRONYMS: Final = frozenset(
    """
    ai api bic bom ceo cfo cli cpu crm csv cve db dns ean erp eta faq gdpr gpu gtin hr html http https iban id imei ip
    isbn json jwt kpi mcp mfa nda ocr oem okr pdf ppe qa qr rfp rfq roi rss sdk seo sku sla slo sms smtp sop sql
    ssh ssl sso svg tcp tls udp ui upc uri url utc uuid ux vat vip vm vpn xml yaml
""".split()
)
_PLURALS: Final = {f"{word}s": f"{word.upper()}s" for word in _ACRONYMS}
_WORD: Final = re.compile(r"[A-Za-z]+")
_LIKE_A_VOWEL: Final = frozenset("AEFHILMNORSX")
"""Letters whose names begin with a vowel."""
_LIKE_A_CONSONANT: Final = ("uni", "use", "usa", "usu", "uti", "eu", "one", "once", "ubi")
_UNCOUNTED: Final = frozenset("minutes feedback information news data stock equipment software advice".split())
_SILENT_H: Final = ("hour", "honest", "honour", "honor", "heir")


def with_acronyms(text: str) -> str:
    """The text with its acronyms in capitals: `crm` and `Crm` are `CRM`, `ids` are `IDs`."""

    def written(match: re.Match[str]) -> str:
        word = match[0].lower()
        if match[0] not in (word, word.capitalize()):
            return match[0]
        return word.upper() if word in _ACRONYMS else _PLURALS.get(word, match[0])

    return _WORD.sub(written, text)


def with_article(words: str) -> str:
    """The words with `a` or `an` before them, as they are spoken: `an SKU`, `a user`, and just `minutes`."""
    if words.rsplit(" ", 1)[-1] in _UNCOUNTED:
        return words
    first = words.split(" ", 1)[0]
    if first.rstrip("s").isupper() and first.rstrip("s").lower() in _ACRONYMS:
        is_vowel = first[0] in _LIKE_A_VOWEL
    else:
        word = first.lower()
        is_vowel = word.startswith(tuple("aeiou")) and not word.startswith(_LIKE_A_CONSONANT)
        is_vowel = is_vowel or word.startswith(_SILENT_H)
    return f"{'an' if is_vowel else 'a'} {words}"
