"""Which of the fixed domains a service belongs to, by counting telling words.

Each text gives a weight to the words in it: the server's name and title 4, its categories 2, its description 2, each
tool name 1 and each tool description 0.5. A word counts once per text; the domain with the highest sum wins, the
earlier in the list on a tie. A service without any telling word looks things up, and counts as `knowledge`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final, get_args

from compoworld_core.specs.model import Domain
from compoworld_core.specs.verbs import tokenise

DOMAINS: Final[tuple[Domain, ...]] = get_args(Domain)
DEFAULT_DOMAIN: Final[Domain] = "knowledge"

_WORDS: Final[dict[Domain, str]] = {
    "communication": "email mail inbox mailbox message messaging chat channel sms notification notice announcement"
    " conversation voice speech telephony call thread social tweet friend",
    "calendar": "calendar meeting booking room appointment availability roster shift oncall reminder timezone schedule"
    " slot agenda",
    "documents": "document pdf file folder contract markdown slide presentation spreadsheet word minutes signature"
    " template ocr office docx",
    "knowledge": "wiki knowledge article faq answer encyclopedia paper research academic citation page news book memory"
    " glossary documentation arxiv library education learning literature recipe",
    "crm": "crm account contact lead deal pipeline vendor supplier opportunity prospect salesperson company",
    "support": "support ticket helpdesk complaint warranty desk customer escalation sla refund case",
    "finance": "finance financial invoice payment expense budget stock market price crypto blockchain wallet bank"
    " accounting tax ledger currency trading portfolio token nft defi transaction exchange purchase bitcoin ethereum"
    " swap",
    "hr": "employee leave payroll applicant candidate recruiting job training course timesheet hiring salary vacation"
    " absence resume interview enrolment hr hours",
    "commerce": "shop store product cart order checkout catalogue catalog loyalty coupon retail ecommerce commerce sku"
    " merchant part restaurant food reward",
    "logistics": "parcel shipment shipping warehouse inventory delivery carrier tracking fleet asset bin freight"
    " logistics vehicle stock equipment depot",
    "marketing": "marketing campaign newsletter survey audience advertising ads seo subscriber brand visitor event"
    " signup promotion keyword video image thumbnail youtube content creative",
    "devops": "deploy deployment kubernetes docker container ci cd git github gitlab repository commit branch"
    " incident flag cluster terraform monitoring debug debugger pod issue sprint codebase npm package lambda"
    " infrastructure helm devops compiler ide browser terminal shell coding",
    "data": "database sql table query schema dataset csv record warehouse etl vector graph row column postgres mysql"
    " mongodb sqlite index storage collection embedding airtable",
    "security": "security vulnerability certificate threat malware password secret audit risk cve finding scan auth"
    " compliance encryption firewall identity permission",
    "analytics": "analytics metric dashboard report chart statistics kpi insight visualization trend forecast plot"
    " analysis math",
    "travel": "travel flight hotel trip airport visa weather map route destination itinerary train airline"
    " accommodation geocode location place tourism transit",
}
_CATEGORY_WORDS: Final[dict[Domain, str]] = {
    "communication": "communication email messaging social media collaboration",
    "calendar": "scheduling calendar time",
    "documents": "document file office",
    "knowledge": "search research scientific education news note memory reference",
    "finance": "financial finance stock cryptocurrency blockchain crypto",
    "commerce": "commerce retail",
    "marketing": "marketing content image video creative",
    "devops": "devops git monitoring ci",
    "data": "database databases",
    "security": "security",
    "analytics": "analytics statistics",
    "travel": "weather location travel",
}
_WORD = re.compile(r"[a-z]+")


def _by_word(table: dict[Domain, str]) -> dict[str, tuple[Domain, ...]]:
    index: dict[str, tuple[Domain, ...]] = {}
    for domain in DOMAINS:
        for word in table.get(domain, "").split():
            index[word] = (*index.get(word, ()), domain)
    return index


_DOMAINS_OF: Final = _by_word(_WORDS)
_DOMAINS_OF_CATEGORY: Final = _by_word(_CATEGORY_WORDS)


def infer_domain(
    name: str, title: str, description: str, categories: Iterable[str], tools: Sequence[tuple[str, str]]
) -> Domain:
    """The likeliest domain of a service.

    Args:
        name: The server's name at its source.
        title: Its title for people.
        description: What it says of itself.
        categories: Labels that a directory gave it.
        tools: Names and descriptions of its tools; the first 40 count.
    """
    scores = dict.fromkeys(DOMAINS, 0.0)

    def count(words: Iterable[str], index: dict[str, tuple[Domain, ...]], weight: float) -> None:
        hits = {domain for word in set(words) for domain in _lookup(word, index)}
        for domain in hits:
            scores[domain] += weight

    count((*tokenise(name), *tokenise(title)), _DOMAINS_OF, 4)
    for category in categories:
        count(tokenise(category), _DOMAINS_OF_CATEGORY, 2)
    count(_WORD.findall(description[:2_000].lower()), _DOMAINS_OF, 2)
    for tool, text in tools[:40]:
        count(tokenise(tool), _DOMAINS_OF, 1)
        count(_WORD.findall(text[:300].lower()), _DOMAINS_OF, 0.5)
    best = max(DOMAINS, key=lambda domain: scores[domain])
    return best if scores[best] else DEFAULT_DOMAIN


def _lookup(word: str, index: dict[str, tuple[Domain, ...]]) -> tuple[Domain, ...]:
    return index.get(word) or index.get(word.removesuffix("s"), ())
