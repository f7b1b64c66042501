"""English for tools: number, participles, and the words that say what a parameter or a noun is for.

Everything that the rules author knows about language is in these tables. They hold words only; nothing here, or
anywhere in the author, looks at the name of a service or at a whole tool name.
"""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Number

_IRREGULAR_SINGULARS: Final = {
    "people": "person",
    "children": "child",
    "men": "man",
    "indices": "index",
    "vertices": "vertex",
    "criteria": "criterion",
    "analyses": "analysis",
    "statuses": "status",
    "aliases": "alias",
    "buses": "bus",
    "movies": "movie",
    "cookies": "cookie",
    "caches": "cache",
    "leaves": "leave",
    "expenses": "expense",
    "licenses": "license",
    "databases": "database",
    "releases": "release",
    "purchases": "purchase",
    "courses": "course",
    "responses": "response",
    "houses": "house",
    "warehouses": "warehouse",
    "cases": "case",
    "bases": "base",
    "phases": "phase",
    "invoices": "invoice",
}
_SINGULAR_ENDINGS: Final = (
    "ss",
    "us",
    "is",
    "news",
    "status",
    "analytics",
    "minutes",
    "stats",
    "logistics",
    "series",
    "sms",
)
_UNCOUNTED: Final = _words(
    "data metadata media info information history stock feedback content weather traffic software"
)


def singular(word: str) -> str:
    """The singular of an English noun, or the word itself."""
    if word in _IRREGULAR_SINGULARS:
        return _IRREGULAR_SINGULARS[word]
    if len(word) < 4 or not word.endswith("s") or word.endswith(_SINGULAR_ENDINGS) or word in _UNCOUNTED:
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith(("xes", "ches", "shes", "sses", "zes")):
        return word[:-2]
    return word[:-1]


def plural(word: str) -> str:
    """The plural of an English noun."""
    for many, one in _IRREGULAR_SINGULARS.items():
        if one == word:
            return many
    if word in _UNCOUNTED or word.endswith(("news", "analytics", "minutes", "stats", "series")):
        return word
    if word.endswith("y") and word[-2:-1] not in ("a", "e", "i", "o", "u"):
        return word[:-1] + "ies"
    if word.endswith(("s", "x", "ch", "sh", "z")):
        return word + "es"
    return word + "s"


# Verbs

_IRREGULAR_PARTICIPLES: Final = {
    "send": "sent",
    "freeze": "frozen",
    "withdraw": "withdrawn",
    "pay": "paid",
    "hold": "held",
    "put": "put",
    "set": "set",
    "begin": "begun",
    "check in": "checked_in",
    "check out": "checked_out",
    "roll back": "rolled_back",
    "rollback": "rolled_back",
    "shut down": "shut_down",
    "sign up": "signed_up",
    "turn on": "on",
    "turn off": "off",
    "ship": "shipped",
    "stop": "stopped",
    "pin": "pinned",
    "unpin": "unpinned",
    "drop": "dropped",
    "submit": "submitted",
    "cancel": "cancelled",
    "refund": "refunded",
    "reopen": "open",
    "open": "open",
    "start": "started",
    "restart": "restarted",
    "resume": "resumed",
    "swap": "swapped",
    "star": "starred",
    "ban": "banned",
    "unban": "active",
    "unblock": "active",
    "unlock": "unlocked",
    "enable": "enabled",
    "disable": "disabled",
    "deny": "denied",
    "defer": "deferred",
    "transfer": "transferred",
    "unarchive": "active",
    "restore": "active",
    "reactivate": "active",
}


def participle(verb: str) -> str:
    """The state that something is in after the verb: `close` → `closed`."""
    if verb in _IRREGULAR_PARTICIPLES:
        return _IRREGULAR_PARTICIPLES[verb]
    verb = verb.replace(" ", "_")
    if verb.endswith("e"):
        return verb + "d"
    if verb.endswith("y") and verb[-2:-1] not in ("a", "e", "o", "u"):
        return verb[:-1] + "ied"
    return verb + "ed"


STATUS_SYNONYMS: Final[tuple[frozenset[str], ...]] = (
    _words("cancelled canceled cancel"),
    _words("completed complete done finished"),
    _words("closed settled resolved solved done"),
    _words("approved accepted granted"),
    _words("rejected declined denied refused"),
    _words("started active running in_progress ongoing"),
    _words("activated active enabled"),
    _words("deactivated inactive disabled"),
    _words("published live"),
    _words("opened open active"),
    _words("reopened open"),
    _words("archived retired"),
    _words("withdrawn cancelled"),
    _words("fixed resolved"),
    _words("enrolled confirmed"),
    _words("terminated ended"),
    _words("returned in_stock available"),
    _words("assigned in_use"),
)
"""Names of one state; where a service's own list has one of them, that one is meant."""

EDIT_SCRIPTS: Final = _words(
    "edits edit operations ops patch patches diff changes actions old_string old_str new_string find_text transform"
)
"""Parameters that say how to compute a new value from the old one."""

FINAL_STATES: Final = _words(
    "cancelled canceled deleted terminated retired void voided rejected denied declined withdrawn"
)

VERB_NOUNS: Final[dict[str, str]] = {
    "comment": "comment",
    "rate": "rating",
    "reply": "reply",
    "note": "note",
    "review": "review",
    "vote": "vote",
    "react": "reaction",
    "book": "booking",
    "enrol": "enrolment",
    "enroll": "enrollment",
    "subscribe": "subscription",
    "pay": "payment",
    "ship": "shipment",
    "assign": "assignment",
    "register": "registration",
    "confirm": "confirmation",
    "acknowledge": "acknowledgement",
    "submit": "submission",
    "request": "request",
    "deploy": "deployment",
    "renew": "renewal",
    "move": "movement",
    "adjust": "adjustment",
    "run": "run",
    "execute": "execution",
    "invite": "invitation",
    "share": "share",
    "follow": "follow",
    "report": "report",
    "log": "entry",
    "message": "message",
    "refund": "refund",
    "order": "order",
    "reserve": "reservation",
    "remind": "reminder",
    "toggle": "change",
    "attach": "attachment",
    "upload": "upload",
    "transfer": "transfer",
    "apply": "application",
    "donate": "donation",
}
"""What there is after the verb has been done to something: `rate_vendor` makes a rating of a vendor."""

OWN_CHILD_VERBS: Final = _words(
    "comment rate reply note review vote react message run execute book reserve remind donate"
)
"""Verbs that make something of their own even where no other tool speaks of it."""

EXTERNAL_VERBS: Final = _words(
    "calculate compute convert estimate validate analyze analyse summarize summarise translate extract parse detect"
    " classify recommend suggest predict encode decode simulate evaluate render generate scrape crawl fetch download"
    " navigate click launch install connect authenticate build invoke exec ask chat wait type hover press scroll select"
    " drag forecast explain whois preview test ping think transcribe synthesize synthesise compile train deploy"
    " deploying"
    " screenshot capture optimize optimise format diff lint debug sync import export compare monitor play login logout"
    " sleep echo embed geocode resize crop merge split combine compress decompress encrypt decrypt sign hash query_sql"
)
"""Verbs whose outcome no stored row can give."""

WORLD_NOUNS: Final = _words(
    "weather forecast price quote ticker market stock_price exchange rate webpage website url html screenshot image"
    " video"
    " audio speech music directions route distance geocode translation token_balance balance blockchain"
    " transaction_hash"
    " sentiment dns whois ip traffic cpu memory disk battery process shell command code sql script terminal browser"
    " page_source"
    " console diagram chart graph_image qrcode qr time timezone random uuid hash checksum completion embedding"
    " completion prediction analysis diff"
)
"""Nouns whose value lies outside any service's own rows, unless the service also lets one create them."""

EXTERNAL_PARAMETERS: Final = _words(
    "code script command cmd sql statement javascript expression prompt html mermaid base64 selector cypher regex"
    " python_code source_code js_code"
)
"""Required parameters that ask for a computation, where the tool does not store what it is given."""

# Parameters

ID_SUFFIXES: Final = _words("id ids key number no code uuid guid slug ref reference identifier sid handle num hash pid")
NAMING_ENDINGS: Final = (("name",), ("email",), ("path",), ("slug",))
"""Endings of parameters that tell one thing from all others."""
GENERIC_IDS: Final = _words("id ids uuid guid identifier key slug")
"""Names that mean the id of whatever the tool is about."""
ACTION_NAMES: Final = _words("action operation method command op")
"""Parameters that make several tools of one."""
CREDENTIALS: Final = _words(
    "token apikey api_key access_token auth_token secret password credentials bearer authorization"
)

ALL_VALUES: Final = ("all", "any", "*")
"""Values of a filter that ask for everything."""
LIMIT_NAMES: Final = _words(
    "limit max_results maxresults max_items maxitems page_size pagesize per_page perpage num_results numresults results"
    " count top take first size max n num max_count items_per_page max_records results_limit limited_num max"
    " limit_count"
    " top_k topk k row_count rows max_rows number_of_results max_entries length hits_per_page batch_size"
)
CURSOR_NAMES: Final = _words(
    "cursor page_token pagetoken next_token nexttoken next_page_token next_cursor continuation_token continuation"
    " starting_after"
    " last_key start_cursor after_cursor pagination_token next_page page_cursor marker"
)
OFFSET_NAMES: Final = _words("offset skip start start_at start_index from_index startat startindex starting_index")
PAGE_NAMES: Final = _words("page page_number pagenumber page_no page_num page_index current_page")
SORT_NAMES: Final = _words(
    "sort sort_by sortby order_by orderby ordering sort_field sort_key sorted_by order sort_column"
)
ORDER_NAMES: Final = _words(
    "order sort_order sortorder sort_direction order_direction direction sort_dir sort_reverse descending desc"
    " reverse ascending"
)
QUERY_NAMES: Final = _words(
    "query q search search_query search_term searchterm term keyword keywords text search_text phrase filter_text"
    " pattern contains"
    " name_contains title_contains message_contains search_string terms words needle question topic_query name_filter"
)
CONTROL_NAMES: Final = _words(
    "verbose format output_format response_format fields include exclude expand detail details raw pretty dry_run"
    " random_string"
    " dummy no_param fields_to_return include_details compact timeout timeout_ms timeout_seconds language locale"
    " lang select"
    " exclude_fields detail_level include_metadata with_details json kwargs ctx context session_id api_version"
    " version_header"
    " request_id confirm force minify debug profile user_agent headers idempotency_key fetch_all refresh use_cache"
    " no_cache"
)
"""Optional parameters that choose how an answer is shown or a call is made, not what is in it."""

LOWER_WORDS: Final = _words(
    "after since from start min minimum greater_than gte gt above at_least begin starting newer_than"
)
UPPER_WORDS: Final = _words(
    "before until to end max maximum less_than lte lt below at_most due_by up_to older_than till by"
)
STATUS_NAMES: Final = ("status", "state", "stage", "phase", "lifecycle_state")
OBJECT_STOPS: Final = _words("by for from in of to with using via at on and or per as into about within between")
OBJECT_FILLERS: Final = _words(
    "my all the new current a an available multiple single specific existing latest recent user_s one bulk many batch"
)
VAGUE_ADJECTIVES: Final = _words(
    "low free available popular trending overdue top similar related recommended best compatible nearby suggested"
    " cheap featured"
)
"""Modifiers that no field or state stands for: which rows they mean is the service's own secret."""
ADJECTIVES: Final = VAGUE_ADJECTIVES | _words(
    "due overdue current recent latest active open pending unread upcoming trending popular top free available"
    " similar related"
    " archived deleted failed failing assigned starred closed completed expired read unread done paid"
)
OBJECT_TAILS: Final = _words(
    "detail details info information data list metadata content contents by record_data summary full basic overview"
    " entry_list results"
)

FLAG_VERBS: Final[dict[str, tuple[str, bool]]] = {
    verb: (field, value)
    for field, on, off in (
        ("is_pinned", "pin", "unpin"),
        ("is_starred", "star", "unstar"),
        ("is_muted", "mute", "unmute"),
        ("is_locked", "lock", "unlock"),
        ("is_flagged", "flag", "unflag"),
        ("is_hidden", "hide", "unhide"),
        ("is_enabled", "enable", "disable"),
        ("is_blocked", "block", "unblock"),
        ("is_followed", "follow", "unfollow"),
        ("is_favorite", "favorite", "unfavorite"),
    )
    for verb, value in ((on, True), (off, False))
}
"""Verbs that turn one property on or off and leave the rest of a thing's life alone."""
