"""The universe: one cast of people, organisations, products and projects that all services of a world talk about.

Services that draw from the same cast can be joined: the owner of a CRM account is an employee who has a mailbox. The
word lists live here, not in a fake-data library, because a recipe promises that (seed, scale) always gives this cast.
"""

from __future__ import annotations

import random
from decimal import Decimal
from functools import lru_cache
from typing import Final, Literal

from compoworld_core.data import Data

Scale = Literal["small", "medium", "large"]

_SIZES: Final[dict[Scale, dict[str, int]]] = {
    "small": {"staff": 14, "organisations": 12, "products": 14, "projects": 8},
    "medium": {"staff": 60, "organisations": 80, "products": 90, "projects": 30},
    "large": {"staff": 400, "organisations": 900, "products": 800, "projects": 200},
}

_FIRST = """
    Aisha Ben Carla Dmitri Elena Farid Grace Hiro Ines Jonas Kavya Liam Mona Nadia Oskar Priya Quentin Rosa
    Samir Tove Umar Vera Wendell Ximena Yusuf Zoe Anders Bettina Cyril Daphne Emil Freya Gustav Helga Ivan
    Judith Karim Leila Marek Noor Ottilie Pavel Ramona Stellan Tamsin Ulrike Viktor Wanda Yara Zdenka
""".split()
_LAST = """
    Abara Bergstrom Castellan Dvorak Eriksen Falkner Greaves Haddad Iversen Jansson Kowalski Lindqvist Marchetti
    Nyberg Okafor Petrov Quist Rasmussen Sandoval Takeda Ulvaeus Vasquez Weber Xanthos Yamada Zeller Adeyemi
    Brandt Corrigan Delacroix Engstrom Fontaine Grimaldi Holloway Ishikawa Jurado Kessler Laurent Mbeki Novak
    Ostrowski Pellegrini Rinaldi Soderberg Thibault Urbina Voss Whitlock Yilmaz Zimmer
""".split()
_STEMS = """
    Nordlys Halden Brightwater Castell Meridian Orchard Pinecrest Quarry Ridgeway Silverton Tideway Umbra
    Vantage Westfell Yarrow Zephyr Alder Beacon Copperfield Dunmore Eastmark Fairholm Glenrock Harborview
    Ironbridge Juniper Kestrel Larkspur Millbrook Northgate Oakhurst Pellworm Redcliff Saltmarsh Thornbury
    Upland Verdant Willowbank
""".split()
_TRADES = (
    ("Optics", "optics"),
    ("Logistics", "logistics"),
    ("Foods", "food"),
    ("Instruments", "instruments"),
    ("Textiles", "textiles"),
    ("Energy", "energy"),
    ("Printing", "printing"),
    ("Furniture", "furniture"),
    ("Pharma", "pharmaceuticals"),
    ("Robotics", "robotics"),
)
_FORMS = ("Ltd", "GmbH", "AB", "SA", "Inc", "BV")
_PLACES = (
    ("Aarhus", "Denmark"),
    ("Bergen", "Norway"),
    ("Cork", "Ireland"),
    ("Delft", "Netherlands"),
    ("Essen", "Germany"),
    ("Ghent", "Belgium"),
    ("Lyon", "France"),
    ("Malmo", "Sweden"),
    ("Porto", "Portugal"),
    ("Tampere", "Finland"),
    ("Toledo", "Spain"),
    ("Verona", "Italy"),
)
COUNTRY_CODES: Final = {
    "Denmark": "DK",
    "Norway": "NO",
    "Ireland": "IE",
    "Netherlands": "NL",
    "Germany": "DE",
    "Belgium": "BE",
    "France": "FR",
    "Sweden": "SE",
    "Portugal": "PT",
    "Finland": "FI",
    "Spain": "ES",
    "Italy": "IT",
}
"""ISO 3166 codes of the places' countries."""
_DEPARTMENTS = (
    ("Sales", "Account Manager"),
    ("Finance", "Financial Controller"),
    ("Operations", "Operations Lead"),
    ("Support", "Support Specialist"),
    ("Engineering", "Software Engineer"),
    ("People", "HR Partner"),
    ("Marketing", "Campaign Manager"),
    ("Procurement", "Buyer"),
)
_ROLES = ("Purchasing Manager", "Managing Director", "Office Manager", "Head of Accounts", "Plant Manager")
_MATERIALS = [
    "Amber",
    "Basalt",
    "Cedar",
    "Cobalt",
    "Ember",
    "Flint",
    "Granite",
    "Ivory",
    "Jade",
    "Linen",
    "Maple",
    "Onyx",
    "Pearl",
    "Slate",
    "Topaz",
    "Walnut",
]
_GOODS = (
    ("Lamp", "LMP"),
    ("Scanner", "SCN"),
    ("Desk", "DSK"),
    ("Router", "RTR"),
    ("Sensor", "SNS"),
    ("Valve", "VLV"),
    ("Display", "DSP"),
    ("Cart", "CRT"),
    ("Filter", "FLT"),
    ("Printer", "PRT"),
)
_CODENAMES = """
    Aurora Borealis Cascade Delta Evergreen Falcon Glacier Horizon Indigo Javelin Keystone Lighthouse Monsoon
    Nimbus Orion Prism Quasar Rainier Solstice Tundra Vortex Wildfire Zenith Compass Harvest Lantern Mosaic
    Pioneer Summit Tempo
""".split()


class Organisation(Data):
    """A company that the home company deals with, or the home company itself."""

    name: str
    domain: str
    industry: str
    city: str
    country: str
    phone: str


class Person(Data):
    """Somebody at an organisation. Staff of the home company have a department and a username."""

    name: str
    email: str
    organisation: str
    role: str
    phone: str
    city: str
    username: str
    department: str = ""


class Product(Data):
    """Something that the home company sells."""

    name: str
    sku: str
    price: Decimal


class Project(Data):
    """A piece of work with a name, a code and an owner on the staff."""

    name: str
    code: str
    owner: str


class Universe(Data):
    """Everybody and everything that a world's services may mention.

    Attributes:
        user: The member of staff for whom the agent works.
        contacts: People at other organisations; each organisation has at least one.
    """

    home: Organisation
    user: Person
    staff: tuple[Person, ...]
    organisations: tuple[Organisation, ...]
    contacts: tuple[Person, ...]
    products: tuple[Product, ...]
    projects: tuple[Project, ...]

    @property
    def people(self) -> tuple[Person, ...]:
        """Staff and contacts."""
        return self.staff + self.contacts

    def contacts_of(self, organisation: str) -> tuple[Person, ...]:
        """The people at an organisation."""
        return tuple(person for person in self.contacts if person.organisation == organisation)

    @staticmethod
    def generate(seed: int, scale: Scale = "small") -> Universe:
        """The cast that belongs to a seed and a scale."""
        return _generate(seed, scale)


@lru_cache(maxsize=64)
def _generate(seed: int, scale: Scale) -> Universe:
    rng = random.Random(f"universe/{seed}/{scale}")
    sizes = _SIZES[scale]
    names = _distinct(rng, [f"{first} {last}" for first in _FIRST for last in _LAST], 3 * sizes["organisations"] + 500)
    stems = _distinct(rng, _all_names(), sizes["organisations"] + 1)
    if scale == "small":  # small casts also keep stems apart, so that near-duplicates are planted, never accidental
        one_per_stem = {name.split()[0]: name for name in _distinct(rng, stems + _all_names(), 380)}
        stems = list(one_per_stem.values())[: sizes["organisations"] + 1]
    if (missing := sizes["organisations"] + 1 - len(stems)) > 0:
        stems += _distinct(rng, _double_names(), missing)
    home, *others = (_organisation(rng, name) for name in stems)
    usernames: set[str] = set()
    staff = [_employee(rng, names.pop(), home, usernames) for _ in range(sizes["staff"])]
    contacts = [
        _contact(rng, names.pop(), organisation) for organisation in others for _ in range(rng.choice((1, 1, 2)))
    ]
    return Universe(
        home=home,
        user=staff[0],
        staff=tuple(staff),
        organisations=tuple(others),
        contacts=tuple(contacts),
        products=tuple(_products(rng, sizes["products"])),
        projects=tuple(_projects(rng, sizes["projects"], staff)),
    )


def _all_names() -> list[str]:
    return [f"{stem} {trade}" for stem in _STEMS for trade, _ in _TRADES]


def _double_names() -> list[str]:
    """Names for casts that are larger than the single stems allow."""
    return [f"{one} {other} {trade}" for one in _STEMS for other in _STEMS if one != other for trade, _ in _TRADES]


def _distinct(rng: random.Random, pool: list[str], count: int) -> list[str]:
    return rng.sample(pool, min(count, len(pool)))


def _organisation(rng: random.Random, name: str) -> Organisation:
    city, country = rng.choice(_PLACES)
    industry = dict(_TRADES)[name.split()[-1]]
    return Organisation(
        name=f"{name} {rng.choice(_FORMS)}",
        domain=f"{name.lower().replace(' ', '-')}.example",
        industry=industry,
        city=city,
        country=country,
        phone=_phone(rng),
    )


def _phone(rng: random.Random) -> str:
    return f"+{rng.randint(31, 49)} {rng.randint(20, 99)} {rng.randint(1000000, 9999999)}"


def _address(name: str, domain: str) -> str:
    return f"{name.lower().replace(' ', '.')}@{domain}"


def _employee(rng: random.Random, name: str, home: Organisation, taken: set[str]) -> Person:
    department, role = rng.choice(_DEPARTMENTS)
    first, last = name.lower().split()
    username = next(short for length in range(1, len(first) + 1) if (short := first[:length] + last) not in taken)
    taken.add(username)
    return Person(
        name=name,
        email=_address(name, home.domain),
        organisation=home.name,
        role=role,
        phone=_phone(rng),
        city=rng.choice(_PLACES)[0],
        username=username,
        department=department,
    )


def _contact(rng: random.Random, name: str, organisation: Organisation) -> Person:
    first, last = name.split()
    return Person(
        name=name,
        email=_address(name, organisation.domain),
        organisation=organisation.name,
        role=rng.choice(_ROLES),
        phone=_phone(rng),
        city=organisation.city,
        username=f"{first}.{last}".lower(),
    )


def _products(rng: random.Random, count: int) -> list[Product]:
    pool = [(material, good, code) for material in _MATERIALS for good, code in _GOODS]
    chosen = rng.sample(pool, min(count, len(pool)))
    while len(chosen) < count:  # further series of the same goods
        chosen += rng.sample(pool, min(count - len(chosen), len(pool)))
    products = []
    for number, (material, good, code) in enumerate(chosen):
        series = f" {number // len(pool) + 1}" if number >= len(pool) else ""
        price = Decimal(rng.randint(1900, 249900)) / 100
        products.append(Product(name=f"{material} {good}{series}", sku=f"{code}-{100 + number}", price=price))
    return products


def _projects(rng: random.Random, count: int, staff: list[Person]) -> list[Project]:
    names = [*_CODENAMES, *(f"{name} {number}" for number in range(2, 12) for name in _CODENAMES)][:count]
    projects: dict[str, Project] = {}
    for name in rng.sample(names, count):
        while (code := f"{name[:3].upper()}-{rng.randint(10, 99)}") in projects:
            pass
        projects[code] = Project(name=f"Project {name}", code=code, owner=rng.choice(staff).email)
    return list(projects.values())
