"""Subjects: whom and what one row is about, so that its fields agree.

The name, the e-mail address and the phone number of one role are those of one person; the company, its website and its
city are one organisation's. A field without a role of its own speaks of the row's main person or organisation.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Final

from compoworld_core.services.universe import Organisation, Person, Product, Project, Universe
from compoworld_core.specs.verbs import tokenise


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_OF_PEOPLE: Final = _words(
    "by e email emails mail name names full first last given family middle display real address phone telephone mobile"
    " number cell fax id username user login handle"
)
"""Words for what is a person's; the others in a field's name say whose."""
_OF_ORGANISATIONS: Final = _words("name names title website site homepage url link domain")
_OF_PLACES: Final = _words("city town country nation code name state region iso")
_STAFF: Final = _words(
    "owner assignee approver manager author creator reviewer agent employee organizer organiser lead host recruiter"
    " instructor trainer technician responder submitter user handler commander holder interviewer substitute escalation"
    " reader reporter requester colleague traveller traveler person notify"
)
_OUTSIDE: Final = _words(
    "customer client contact vendor supplier candidate applicant visitor guest subscriber buyer seller"
    " patient company partner counterparty"
)


class Subjects:
    """The people, organisations, places and things of one row, drawn when they are first spoken of."""

    def __init__(self, universe: Universe, rng: random.Random, fields: Mapping[str, str] | None = None) -> None:
        """A row about nobody yet.

        Args:
            fields: Meanings of the row's fields, as far as they are known.
        """
        self._universe = universe
        self._rng = rng
        fields = fields or {}
        self._employers = list(
            dict.fromkeys(
                _role(name, _OF_ORGANISATIONS) for name, word in fields.items() if word == "organisation_name"
            )
        )
        self._main = _main_role(fields, is_colleague=not self._employers)
        self._people: dict[str, Person] = {}
        self._organisations: dict[str, Organisation] = {}
        self._places: dict[str, tuple[str, str]] = {}
        self._post: tuple[str, str] | None = None
        self._product: Product | None = None
        self._project: Project | None = None

    def person(self, name: str) -> Person:
        """The person of a field's role: one for `owner_email` and `owner_name`."""
        role = _role(name, _OF_PEOPLE) or self._main or ""
        if role not in self._people:
            pool = self._colleagues_or_others(role, is_by="by" in tokenise(name))
            known = {person.email for person in self._people.values()}
            self._people[role] = self._rng.choice([person for person in pool if person.email not in known] or pool)
        return self._people[role]

    def _colleagues_or_others(self, role: str, *, is_by: bool) -> Sequence[Person]:
        if is_by or _is_on_staff(role):
            return self._universe.staff
        if self._employers:
            return self._universe.contacts_of(self.organisation(role).name)
        return self._universe.contacts if set(role.split("_")) & _OUTSIDE else self._universe.people

    def organisation(self, name: str) -> Organisation:
        """The organisation of a field's role, the row's main one where it has none of its own."""
        role = _role(name, _OF_ORGANISATIONS)
        if role not in self._employers:
            role = self._employers[0] if self._employers else ""
        if role not in self._organisations:
            others = self._universe.organisations
            taken = {item.name for item in self._organisations.values()}
            employers = {person.organisation for person in self._people.values()}
            known = [item for item in others if item.name in employers - taken]
            free = [item for item in others if item.name not in taken]
            self._organisations[role] = known[0] if known else self._rng.choice(free or others)
        return self._organisations[role]

    def place(self, name: str) -> tuple[str, str]:
        """City and country of a field's role: `from_city` is another than `to_city`."""
        role = _role(name, _OF_PLACES)
        if role not in self._places:
            self._places[role] = self._place(role)
        return self._places[role]

    def _place(self, role: str) -> tuple[str, str]:
        if not role and (self._employers or self._organisations):
            home = self.organisation("")
            return home.city, home.country
        if not role and self._main is not None:
            person = self.person("")
            organisations = (self._universe.home, *self._universe.organisations)
            return next((item.city, item.country) for item in organisations if item.name == person.organisation)
        places = sorted({(item.city, item.country) for item in self._universe.organisations})
        return self._rng.choice([item for item in places if item not in self._places.values()] or places)

    def phone(self, name: str) -> str:
        """A number: the organisation's in a row that names one and nobody."""
        if self._main is None and self._employers and not _role(name, _OF_PEOPLE):
            return self.organisation(name).phone
        return self.person(name).phone

    @property
    def post(self) -> tuple[str, str]:
        """A department and a job in it: those of the row's main person, where that is a colleague."""
        if self._post is None:
            known = self._people.get(self._main or "")
            colleague = known if known is not None and known.department else self._rng.choice(self._universe.staff)
            self._post = colleague.department, colleague.role
        return self._post

    @property
    def product(self) -> Product:
        """The row's product."""
        self._product = self._product or self._rng.choice(self._universe.products)
        return self._product

    @property
    def project(self) -> Project:
        """The row's project."""
        self._project = self._project or self._rng.choice(self._universe.projects)
        return self._project

    @property
    def codename(self) -> str:
        """What the row's project is called for short."""
        return self.project.name.split()[-1]


def _role(name: str, dropped: frozenset[str]) -> str:
    return "_".join(token for token in tokenise(name) if token not in dropped)


def _main_role(fields: Mapping[str, str], *, is_colleague: bool) -> str | None:
    """The role of whom a row's `email` or `phone` is: the one that has a name; None where the row has no people.

    Args:
        is_colleague: Whether it may be somebody on the staff, as in a row that names no organisation.
    """
    for word in ("person_name", "email", "username"):
        roles = [_role(name, _OF_PEOPLE) for name, found in fields.items() if found == word]
        roles = [role for role in roles if is_colleague or not _is_on_staff(role)]
        if roles:
            return "" if "" in roles else roles[0]
    return None


def _is_on_staff(role: str) -> bool:
    words = set(role.split("_"))
    return bool(words & _STAFF) and not words & _OUTSIDE
