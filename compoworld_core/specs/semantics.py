"""What a parameter or field means, told from its name, type, format and description.

The words are those of `services/semantics.py`; two fields with the same word can carry the same value. Rules are tried
in order, the first that fits decides: format, whole name, ending of the name, description. A name is a sequence of
lower-case words whatever its style, so `customerEmail`, `customer_email` and `customer-email` mean the same.
"""

from __future__ import annotations

import re
from typing import Final

from compoworld_core.specs.keywords import types_of
from compoworld_core.specs.model import JsonObject
from compoworld_core.specs.verbs import tokenise

_FORMATS: Final = {
    "email": "email",
    "idn-email": "email",
    "date": "date",
    "date-time": "timestamp",
    "uri": "url",
    "url": "url",
    "iri": "url",
    "phone": "phone",
}

_TEXT: Final = frozenset({"string"})
_NUMERIC: Final = frozenset({"integer", "number"})
_AMOUNT: Final = frozenset({"integer", "number", "string"})

_WHOLE: Final[tuple[tuple[str, frozenset[str], str], ...]] = (
    (
        "limit",
        _NUMERIC,
        "limit max_results page_size per_page top_k top_n max_items num_results n_results size",
    ),
    ("offset", _NUMERIC, "offset skip start from page page_number start_index start_at"),
    ("cursor", _TEXT, "cursor page_token next_page_token next_token after before continuation_token starting_after"),
    ("query", _TEXT, "query q search search_query search_term search_terms search_text keyword keywords term jql cql"),
    ("email", _TEXT, "to cc bcc sender recipient recipients attendees invitees"),
    ("person_name", _TEXT, "full_name first_name last_name display_name real_name author employee traveller person"),
    (
        "organisation_name",
        _TEXT,
        "company organisation organization vendor supplier manufacturer counterparty",
    ),
    ("project_name", _TEXT, "project"),
    ("product_name", _TEXT, "product"),
    ("sku", _TEXT, "sku ean upc gtin isbn asin"),
    ("title", _TEXT, "title subject headline heading summary label_text caption"),
    ("text", _TEXT, "body text content message description note notes comment comments details reason remarks"),
    ("tag", _TEXT, "tag tags label labels topic topics hashtag hashtags"),
    ("country", _TEXT, "country nation"),
    ("city", _TEXT, "city town"),
    ("currency", _TEXT, "currency"),
    ("quantity", _NUMERIC, "quantity qty count pieces units seats capacity stock points"),
    ("percent", _NUMERIC, "percent percentage"),
    ("money", _AMOUNT, "amount price cost total subtotal budget fee salary balance"),
    ("username", _TEXT, "username user login handle nickname assignee owner"),
    ("url", _TEXT, "url uri link website homepage href"),
    ("phone", _TEXT, "phone telephone mobile fax msisdn"),
    ("date", _TEXT, "date day birthday deadline since until"),
    ("timestamp", _TEXT, "timestamp datetime"),
)
"""(word, JSON types, whole names)"""

_ENDINGS: Final[tuple[tuple[str, frozenset[str], str], ...]] = (
    ("email", _TEXT, "email emails email_address e_mail mail_address"),
    ("phone", _TEXT, "phone phone_number telephone mobile mobile_number"),
    ("url", _TEXT, "url urls uri link website"),
    ("currency", _TEXT, "currency currency_code"),
    ("country", _TEXT, "country country_code"),
    ("city", _TEXT, "city"),
    ("timestamp", _TEXT, "at timestamp datetime date_time time"),
    ("date", _TEXT, "date on until deadline birthday day date_from date_to first_day last_day needed_by week_starting"),
    ("percent", _NUMERIC, "percent percentage pct vat_rate tax_rate discount_rate"),
    ("money", _AMOUNT, "amount price cost fee salary budget total subtotal balance revenue rent hourly_rate"),
    (
        "money",
        _AMOUNT,
        "salary_min salary_max price_min price_max price_per_night total_value declared_value",
    ),
    ("quantity", _NUMERIC, "quantity qty count stock stock_level reorder_level capacity points seats hours"),
    ("username", _TEXT, "username user_name login handle"),
    ("sku", _TEXT, "sku product_code part_number item_code article_number"),
    ("project_name", _TEXT, "project_name project_title"),
    ("product_name", _TEXT, "product_name item_name part_name"),
    ("organisation_name", _TEXT, "company_name organisation_name organization_name vendor_name supplier_name"),
    ("organisation_name", _TEXT, "manufacturer_name business_name org_name account_name"),
    ("title", _TEXT, "title subject headline"),
    ("query", _TEXT, "query keyword keywords search_term"),
    ("tag", _TEXT, "tag tags label labels"),
    ("text", _TEXT, "description notes note comment comments body text message details justification cause"),
    ("text", _TEXT, "purpose problem question answer reason feedback letter impact mitigation excerpt"),
    ("cursor", _TEXT, "cursor page_token"),
)
"""(word, JSON types, last words of the name)"""

_PEOPLE: Final = frozenset(
    "person employee traveller traveler customer contact recipient sender author owner assignee reporter manager user"
    " member candidate applicant attendee visitor guest patient student trainer interviewer approver holder requester"
    " respondent participant driver buyer seller organizer organiser host agent technician commander handler full first"
    " last".split()
)
_ID_ENDINGS: Final = frozenset({"id", "ids", "uuid", "guid", "key", "keys", "number", "code", "no", "ref"})
_STRICT_ID_ENDINGS: Final = frozenset({"id", "ids", "uuid", "guid"})
_NO_ID: Final = frozenset("tax api vat".split())
_NOT_AN_ENTITY: Final = frozenset(
    "api secret access public private auth page account_api min max total serial postal zip phone version status error"
    " country currency language response http line port room_phone tax flag_api house street level model year area"
    " verification promo source color sort locale".split()
)
_OTHER: Final = frozenset("other new old parent child target source from to original linked related successor".split())

_DESCRIPTIONS: Final[tuple[tuple[str, frozenset[str], re.Pattern[str]], ...]] = tuple(
    (word, types, re.compile(pattern, re.IGNORECASE))
    for word, types, pattern in (
        ("json", _TEXT, r"\bjson[- ](?:string|encoded|text|object)|\bas (?:a )?json\b|stringified json"),
        ("list", _TEXT, r"\bcomma[- ]separated\b"),
        ("timestamp", _TEXT, r"\biso[- ]?8601 (?:date ?time|timestamp)|yyyy-mm-ddthh|\brfc ?3339\b"),
        ("date", _TEXT, r"\byyyy-mm-dd\b|\biso(?:[- ]?8601)? date\b"),
        ("email", _TEXT, r"\be-?mail address(?:es)? of\b|^(?:the )?(?:user'?s? )?e-?mail address\b"),
        ("person_name", _TEXT, r"\bfull name\b"),
        (
            "organisation_name",
            _TEXT,
            r"\b(?:company|organi[sz]ation) name\b|^name of the company\b",
        ),
        ("url", _TEXT, r"^(?:the )?url\b|^link to\b"),
        ("currency", _TEXT, r"\biso 4217\b|\bcurrency code\b"),
        ("country", _TEXT, r"\biso 3166\b|\bcountry code\b"),
        ("phone", _TEXT, r"\b(?:tele)?phone number\b"),
    )
)


def _by_name(rules: tuple[tuple[str, frozenset[str], str], ...]) -> dict[tuple[str, ...], tuple[str, frozenset[str]]]:
    return {tuple(name.split("_")): (word, types) for word, types, names in rules for name in names.split()}


_WHOLE_NAMES: Final = _by_name(_WHOLE)
_NAME_ENDINGS: Final = _by_name(_ENDINGS)


def infer_semantic(name: str, schema: JsonObject, entity: str | None = None) -> str | None:
    """The semantic type of a parameter or field, or None if nothing tells it.

    Args:
        name: Its name in any style.
        schema: Its normalised JSON Schema; of an array, the items count.
        entity: What it belongs to; a bare `id` identifies that, and a bare `name` is that thing's name.

    Returns:
        A word of `services/semantics.py`; `id:<entity>` for identifiers; `json` and `list` for text that carries
        JSON or comma-separated values.
    """
    if isinstance(declared := schema.get("x-semantic"), str):
        return declared
    description = str(schema.get("description", ""))
    schema = _scalar(schema)
    types = frozenset(types_of(schema)) - {"null"}
    tokens = tokenise(name)
    if not tokens or (types and not types & _AMOUNT):
        return None
    if (word := _FORMATS.get(str(schema.get("format", "")))) is not None:
        return word
    if identifier := _identifier(tokens, types, entity, is_enum="enum" in schema):
        return identifier
    if "enum" in schema:
        word = _named(tokens, types)
        return word if word in ("currency", "country", "city") else None
    return _named(tokens, types) or _entity_name(tokens, types, entity) or _described(description, types)


def _scalar(schema: JsonObject) -> JsonObject:
    """The schema itself, or that of the items of a plain list."""
    items = schema.get("items")
    return items if isinstance(items, dict) and "array" in types_of(schema) else schema


def _fits(types: frozenset[str], wanted: frozenset[str]) -> bool:
    return not types or bool(types & wanted)


def _identifier(tokens: tuple[str, ...], types: frozenset[str], entity: str | None, *, is_enum: bool) -> str | None:
    """`id:<entity>` for names that end in a word for identifiers and name what they identify."""
    ending, owner = tokens[-1], tokens[:-1]
    if ending not in _ID_ENDINGS or is_enum or not _fits(types, _AMOUNT):
        return None
    if not owner:
        return f"id:{entity}" if entity and ending in _STRICT_ID_ENDINGS else None
    while len(owner) > 1 and owner[0] in _OTHER:
        owner = owner[1:]
    if owner in (("part",), ("item",), ("article",), ("product",)) and ending in ("number", "code"):
        return "sku"
    if owner[-1] in _NO_ID or owner == ("id",):
        return None
    if ending not in _STRICT_ID_ENDINGS and (owner[-1] in _NOT_AN_ENTITY or not _fits(types, _TEXT)):
        return None
    if owner[-1] in _OTHER:
        return f"id:{entity}" if entity else None
    return f"id:{'_'.join(owner)}"


def _named(tokens: tuple[str, ...], types: frozenset[str]) -> str | None:
    """The word that the whole name, or its longest telling ending, stands for."""
    whole = _WHOLE_NAMES.get(tokens)
    if whole is not None and _fits(types, whole[1]):
        return whole[0]
    for length in range(min(3, len(tokens)), 0, -1):
        ending = _NAME_ENDINGS.get(tokens[-length:])
        if ending is not None and _fits(types, ending[1]) and (length < len(tokens) or length > 1 or whole is None):
            return ending[0]
    return None


def _entity_name(tokens: tuple[str, ...], types: frozenset[str], entity: str | None) -> str | None:
    """What a name is the name of: of a person, an organisation, a product, a project; else a title."""
    if tokens[-1] != "name" or not _fits(types, _TEXT):
        return None
    owner = tokens[-2] if len(tokens) > 1 else (entity or "")
    if owner in _PEOPLE:
        return "person_name"
    if owner in ("company", "organisation", "organization", "vendor", "supplier", "account", "manufacturer"):
        return "organisation_name"
    if owner in ("product", "item", "part"):
        return "product_name"
    if owner == "project":
        return "project_name"
    return "title" if len(tokens) == 1 and entity else None


def _described(description: str, types: frozenset[str]) -> str | None:
    for word, wanted, pattern in _DESCRIPTIONS:
        if _fits(types, wanted) and pattern.search(description[:300]):
            return word
    return None
