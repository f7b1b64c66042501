"""Lexicon: what plain texts and numbers look like, told from the words of a field's name.

A field without a semantic type still says what it holds: a time zone, a serial number, a number of minutes. Each entry
gives examples that a person would accept there; what no entry knows gets a few words about the row's project.
"""

from __future__ import annotations

import random
import re
import string
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Final

from compoworld_core.services.subjects import Subjects
from compoworld_core.specs.verbs import tokenise

Draw = Callable[[random.Random, Subjects], str]


def _one(*texts: str) -> Draw:
    """One of some texts."""
    return lambda rng, _: rng.choice(texts)


def _form(form: str) -> Draw:
    """A code: `#` stands for a digit, `?` for a capital, `%` for a hexadecimal digit."""
    kinds = {"#": string.digits, "?": "ABCDEFGHKLMNPRSTVWX", "%": "0123456789abcdef"}
    return lambda rng, _: "".join(rng.choice(kinds.get(letter, letter)) for letter in form)


def _about(*forms: str) -> Draw:
    """A text that mentions the row's project (`{name}`, `{slug}`), product or place."""

    def draw(rng: random.Random, subjects: Subjects) -> str:
        form = rng.choice(forms)
        values: dict[str, Callable[[], str]] = {
            "name": lambda: subjects.codename,
            "slug": lambda: subjects.codename.lower(),
            "product": lambda: subjects.product.name,
            "city": lambda: subjects.place("")[0],
            "domain": lambda: subjects.organisation("").domain,
            "firm": lambda: subjects.organisation("").name.rsplit(" ", 1)[0],
            "n": lambda: str(rng.randint(1, 40)),
        }
        return re.sub(r"\{(\w+)\}", lambda match: values[match[1]](), form)

    return draw


_STREETS: Final = ("Harbour Street", "Mill Lane", "Station Road", "Market Square", "Canal Street", "Garden Avenue")
_SERVICES: Final = (
    "billing-api",
    "customer-portal",
    "search-index",
    "mail-gateway",
    "order-service",
    "login",
    "reporting",
    "image-store",
    "payment-worker",
    "web-shop",
    "inventory-sync",
    "notification-hub",
)
_ENTRIES: Final[tuple[tuple[str, Draw], ...]] = (
    (
        "timezone, time zone, tz",
        _one("Europe/Berlin", "Europe/Copenhagen", "Europe/Lisbon", "Europe/Helsinki", "Europe/Dublin", "Europe/Rome"),
    ),
    ("language code, lang", _one("en", "de", "fr", "da", "sv", "it", "es")),
    ("locale", _one("en-GB", "de-DE", "fr-FR", "da-DK", "sv-SE", "it-IT", "es-ES")),
    ("language", _one("English", "German", "French", "Danish", "Swedish", "Italian", "Spanish")),
    ("country code", _one("DE", "DK", "SE", "NO", "NL", "FR", "ES", "IT", "FI", "IE")),
    ("region, market, territory", _one("Nordics", "Benelux", "Iberia", "Baltics", "Central Europe", "British Isles")),
    ("state, province, county", _one("Jutland", "Bavaria", "Flanders", "Munster", "Veneto", "Skane", "Pirkanmaa")),
    ("street, street address, address line", lambda rng, _: f"{rng.choice(_STREETS)} {rng.randint(1, 98)}"),
    (
        "address",
        lambda rng, about: (
            f"{rng.choice(_STREETS)} {rng.randint(1, 98)}, {rng.randint(1000, 9899)} {about.place('')[0]}"
        ),
    ),
    ("postal code, postcode, zip, zip code", lambda rng, _: str(rng.randint(10115, 98991))),
    (
        "venue, place, site",
        _about(
            "{city} town hall", "Harbour Hall, {city}", "{city} conference centre", "Old Mill, {city}", "{name} room"
        ),
    ),
    ("location", _about("{city} depot", "{city} office", "{city} hub", "{city} station", "{city} harbour")),
    ("room, room name", _about("{name} room", "{name} meeting room", "{name} corner", "Room {name} {n}")),
    ("building, office, branch office", _about("{city} office", "{city} north", "{city} old town", "{city} harbour")),
    ("floor", _one("ground floor", "first floor", "second floor", "third floor")),
    ("version, release", lambda rng, _: f"{rng.randint(1, 6)}.{rng.randint(0, 14)}.{rng.randint(0, 9)}"),
    ("directory, folder, folder path, dir", _about("/projects/{slug}", "/shared/{slug}/drafts", "/archive/{slug}")),
    ("path", _about("/projects/{slug}/notes.md", "/shared/{slug}/budget.xlsx", "/archive/{slug}/plan.pdf")),
    ("file, filename", _about("{slug}-budget.xlsx", "{slug}-plan.pdf", "{slug}-notes.md", "{slug}-figures.csv")),
    ("extension, file type, file format", _one("pdf", "csv", "xlsx", "md", "png")),
    ("mime type, content type, media type", _one("application/pdf", "text/csv", "image/png", "text/plain")),
    ("colour, color", _one("dark blue", "moss green", "signal red", "light grey", "white", "black", "ochre")),
    ("hex", _form("#%%%%%%")),
    ("unit, units, unit of measure, uom", _one("pcs", "kg", "m", "hours", "litres", "boxes", "pallets")),
    ("department", lambda _, about: about.post[0]),
    (
        "team, group, squad, crew",
        _one("Field service", "Billing", "Key accounts", "Platform", "Logistics", "Quality", "Payroll", "Web shop"),
    ),
    ("industry, sector, business type", lambda _, about: about.organisation("").industry),
    ("job, position, vacancy", lambda _, about: about.post[1]),
    ("job title, designation, occupation, profession", lambda _, about: about.person("").role),
    ("zone", _form("Zone ?")),
    ("aisle, shelf, rack, bin, slot, bay, locker", _form("?-0#-##")),
    ("desk, seat, table", _form("#?")),
    (
        "model, models",
        lambda rng, about: (
            f"{about.product.name.split()[-1]} {rng.choice(('Pro', 'Mini', 'XL', 'Duo', 'Air', 'Max'))} "
            f"{rng.randint(2, 9)}"
        ),
    ),
    ("brand, make", _about("{firm}")),
    ("material", _one("oak", "steel", "glass", "aluminium", "cotton", "birch")),
    ("size", _one("small", "medium", "large", "extra large")),
    ("dimensions", _one("120 x 60 x 75 cm", "40 x 30 x 20 cm", "60 x 40 x 40 cm", "80 x 60 x 15 cm")),
    ("serial, serial number, serial no", _form("S?##-#####")),
    ("tax id, vat id, vat number, tax number", _form("DE#########")),
    ("iban", _form("DE## #### #### #### ####")),
    ("bic, swift", _form("????DE##")),
    ("cost center, cost centre", _form("CC-####")),
    ("cve, cve id, cve code", lambda rng, _: f"CVE-2025-{rng.randint(10000, 49999)}"),
    ("project key, project code, project id", lambda _, about: about.project.code),
    ("issue key, issue code, ticket key", lambda rng, about: f"{about.project.code[:3]}-{rng.randint(11, 998)}"),
    ("coupon, coupon code, promo code, voucher code, discount code", _about("{name}-{n}", "WELCOME-{n}", "SPRING-{n}")),
    ("tracking, tracking number, tracking code", _form("TRK#########")),
    ("flight number", _form("?? ####")),
    ("application, app, service, service name, system, component, module, repository, repo, package", _one(*_SERVICES)),
    (
        "host, hostname, server, domain, domain name",
        _about("www.{domain}", "api.{domain}", "mail.{domain}", "shop.{domain}"),
    ),
    ("subdomain, slug", _about("{slug}-plan", "{slug}-review", "{slug}-launch", "{slug}-notes")),
    ("issuer, authority", _about("{firm} Trust", "{firm} Certification", "{firm} Root Authority")),
    ("ip, ip address", lambda rng, _: f"10.{rng.randint(0, 40)}.{rng.randint(0, 255)}.{rng.randint(2, 250)}"),
    ("commit, sha, commit hash", _form("%%%%%%%%")),
    ("hash, checksum, digest, fingerprint", _form("%" * 40)),
    ("uuid, guid", _form("%%%%%%%%-%%%%-4%%%-a%%%-%%%%%%%%%%%%")),
    ("git branch, branch, branch name, ref", _about("feature/{slug}-export", "fix/{slug}-login", "release/{slug}")),
    ("environment, env", _one("production", "staging", "test")),
    ("mailbox, inbox, queue", _one("billing", "sales", "support", "returns", "press", "jobs", "warranty", "orders")),
    ("channel", _about("{slug}-updates", "{slug}-help", "general", "announcements")),
    ("warehouse", _about("{city} warehouse", "{city} depot")),
    ("schedule, cron, cron expression", _one("0 6 * * 1", "30 7 * * *", "0 18 * * 5", "15 9 1 * *")),
    ("frequency, interval, recurrence", _one("daily", "weekly", "monthly", "quarterly")),
    ("quarter, period", _one("Q1 2026", "Q2 2026", "Q3 2026", "Q4 2025")),
    ("month", _one("January", "March", "April", "June", "September", "November")),
    ("weekday, day of week", _one("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")),
    ("duration", _one("30 minutes", "45 minutes", "2 hours", "half a day", "3 days")),
    ("weight", _one("2.4 kg", "11 kg", "0.8 kg", "35 kg")),
    ("terms, payment terms", _one("30 days net", "14 days, 2% discount", "60 days net", "prepaid")),
    ("priority", _one("low", "normal", "high", "urgent")),
    ("severity", _one("minor", "moderate", "major", "critical")),
    ("status, state", _one("open", "in progress", "done", "on hold")),
    ("category, type, kind, class", _one("hardware", "services", "travel", "training", "licences", "office supplies")),
    ("skill, skills", _one("negotiation", "welding", "spreadsheets", "first aid", "project planning", "French")),
    ("source, lead source", _one("trade fair", "web site", "recommendation", "newsletter", "cold call")),
    ("audience", _about("Customers in {city}", "{name} subscribers", "Partners in {city}", "Friends of {name}")),
    ("hotel", _about("Hotel {city} Central", "{name} Inn", "{city} Harbour Hotel", "Grand {city}")),
    ("choice, choices, option, options", _one("Yes", "No", "Not sure", "Every day", "Once a week", "Never")),
    ("first name", lambda _, about: about.person("").name.split()[0]),
    ("last name", lambda _, about: about.person("").name.split()[-1]),
    ("asset, device, equipment, machine, item, product, part", _about("{product}", "{product} {n}")),
    ("project", _about("Project {name}")),
    (
        "course",
        _one("Forklift safety", "Spreadsheet basics", "First aid", "Negotiation", "Fire drill", "Data protection"),
    ),
    ("event", _about("{name} launch", "{city} open day", "{name} breakfast", "Partner day {city}", "{name} demo day")),
    (
        "metric, kpi, indicator",
        _about("{name} revenue", "{name} returns", "Tickets {city}", "Visits {city}", "{name} delays"),
    ),
    ("dataset", _about("{slug}_orders", "{slug}_visits", "{slug}_invoices", "{slug}_stock", "{slug}_returns")),
    ("column", _one("customer_id", "amount", "country", "created_at", "quantity", "channel", "is_active")),
    ("flag, feature", _about("{slug}-checkout", "{slug}-search", "{slug}-dark-mode", "{slug}-export")),
    ("roster, rota", _about("{name} on-call", "{name} weekends", "{city} nights")),
    ("space, workspace", _about("{name} space", "{name} handbook", "{city} office")),
    ("reward", _about("Free delivery {city}", "{name} mug", "{name} voucher", "Extra day {city}")),
    ("answer", _one("Yes", "No", "Not sure", "Mostly", "Rarely")),
    ("reference, ref", _form("REF-#####")),
    ("number, code, key, identifier, id, no, isbn, barcode", _form("??-#####")),
)
_BY_WORDS: Final = {
    tuple(words.split()): draw for names, draw in _ENTRIES for words in map(str.strip, names.split(","))
}
_MATTERS: Final = (
    "pilot",
    "rollout",
    "handover",
    "upgrade",
    "catalogue",
    "workshop",
    "delivery",
    "relaunch",
    "survey",
    "inspection",
    "contract",
    "prototype",
    "expansion",
    "refit",
    "audit",
    "migration",
)
_NAMED: Final = frozenset(
    """
    room warehouse hotel audience mailbox channel team service domain asset device equipment machine product part course
    event metric kpi indicator dataset column flag feature roster rota space workspace reward position job vacancy
    project
""".split()
)
"""Things whose own name an entry gives; others are called by a subject."""
_CODES: Final = frozenset("number code reference ref key keys identifier id ids no".split())
_SAMPLES: Final = re.compile(r"(?:e\.?g\.?,?|for example,?|for instance,?|such as|examples?:)\s*([^.;)\n]{2,80})", re.I)
_QUOTED: Final = re.compile(r"['\"`‘“]([^'\"`’”]{1,40})['\"`’”]")


def plain_text(name: str, rng: random.Random, subjects: Subjects) -> str:
    """A short text that fits a field's name."""
    tokens = tokenise(name)
    draw = _entry(tokens)
    if tokens[-1:] and tokens[-1] in _CODES and len(tokens) > 1 and draw is _entry(tokens[-1:]):
        return code(tokens[:-1], rng)
    if draw is None:
        return f"{subjects.codename} {rng.choice(_MATTERS)}"
    return draw(rng, subjects)


def name_of(entity: str, rng: random.Random, subjects: Subjects) -> str | None:
    """What a thing is called, where things of its kind have names of their own sort."""
    tokens = tokenise(entity)
    last = tokens[-1].removesuffix("s") if tokens else ""
    return _BY_WORDS[(last,)](rng, subjects) if last in _NAMED else None


def code(words: Sequence[str], rng: random.Random) -> str:
    """A code for a thing: `ORD-48213` for an order, `PO-48213` for a purchase order."""
    words = [word for word in words if word.isascii() and word.isalpha()]
    initials = "".join(word[0] for word in words) if len(words) > 1 else "".join(words)[:3]
    return f"{initials.upper() or 'R'}-{rng.randint(10000, 99999)}"


def told_samples(description: str) -> list[str]:
    """Values that a description gives as examples."""
    return [text for match in _SAMPLES.finditer(description[:600]) for text in _QUOTED.findall(match[1])]


def _entry(tokens: Sequence[str]) -> Draw | None:
    """The entry for the longest ending of a name, `name` itself aside."""
    tokens = tuple(tokens)
    for words in (tokens, tokens[:-1] if tokens[-1:] in (("name",), ("names",), ("text",), ("list",)) else ()):
        for length in range(min(3, len(words)), 0, -1):
            found = _BY_WORDS.get(words[-length:]) or _BY_WORDS.get((*words[-length:-1], words[-1].removesuffix("s")))
            if found is not None:
                return found
    return None


# Numbers

_AMOUNTS: Final[tuple[tuple[str, int, int, str], ...]] = (
    ("hourly hour hours rate", 35, 160, "0.50"),
    ("night", 60, 280, "1.00"),
    ("salary wage income", 28_000, 115_000, "500.00"),
    ("diem meal meals allowance", 25, 95, "0.50"),
    ("fee shipping credit refund discount tip tax deposit", 5, 250, "0.10"),
    ("budget", 800, 18_000, "50.00"),
    ("declared insured", 20, 3_000, "0.50"),
    ("revenue value deal contract turnover", 2_000, 250_000, "50.00"),
    ("unit price cost", 8, 900, "0.05"),
)
_NUMBERS: Final[tuple[tuple[str, int, int, int], ...]] = (
    ("percent percentage pct progress completion rollout", 5, 95, 5),
    ("minutes minute mins", 15, 120, 15),
    ("seconds second secs", 5, 300, 5),
    ("budget", 20, 400, 10),
    ("hours", 1, 8, 1),
    ("days", 2, 60, 1),
    ("weeks", 1, 12, 1),
    ("months", 1, 36, 1),
    ("year years", 2019, 2026, 1),
    ("rating stars level priority", 1, 5, 1),
    ("score threshold", 20, 98, 1),
    ("points", 50, 2_000, 10),
    ("weight kg", 1, 40, 1),
    ("distance km", 5, 900, 5),
    ("width height px", 200, 2_400, 20),
    ("port", 3_000, 9_000, 1),
    ("temperature", 2, 30, 1),
    ("latitude lat", 37, 60, 1),
    ("longitude lng lon", -9, 25, 1),
    ("capacity seats attendees", 4, 40, 2),
    ("value amount price cost total", 20, 5_000, 5),
)
_TAXES: Final = (5, 7, 10, 19, 20, 21, 22, 25)


def amount(name: str, rng: random.Random) -> Decimal:
    """An amount of money of the size that a field's name suggests."""
    words = set(tokenise(name))
    for known, low, high, step in _AMOUNTS:
        if words & set(known.split()):
            size = Decimal(step)
            return low + size * rng.randint(0, int((high - low) / size))
    return Decimal(rng.randint(1_200, 480_000)) / 100


def percentage(name: str, rng: random.Random) -> int:
    """A percentage of the size that a field's name suggests."""
    if {"vat", "tax"} & set(tokenise(name)):
        return rng.choice(_TAXES)
    return rng.randint(1, 99)


def number(name: str, rng: random.Random) -> int:
    """A whole number of the size that a field's name suggests: mostly a small one."""
    words = tokenise(name)
    if {"vat", "tax"} & set(words):
        return rng.choice(_TAXES)
    for known, low, high, step in _NUMBERS:
        if set(words) & set(known.split()):
            return low + step * rng.randint(0, (high - low) // step)
    return rng.randint(1, 40)
