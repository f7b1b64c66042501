"""The calendar: its tools together, and the weeks around the start that a new world's calendar holds."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import TYPE_CHECKING, Final, Literal

from compoworld_core.library.calendar.events import Events
from compoworld_core.library.calendar.records import CalendarState, Feature, Room
from compoworld_core.library.calendar.rooms import Rooms

if TYPE_CHECKING:
    from compoworld_core.services.universe import Person, Universe

_ROOMS: Final[tuple[tuple[str, int, tuple[Feature, ...]], ...]] = (
    ("Birch", 4, ("whiteboard",)),
    ("Heron", 6, ("video", "phone")),
    ("Lagoon", 8, ("projector", "whiteboard")),
    ("Quarry", 10, ("projector", "video", "phone")),
    ("Orchard", 16, ("projector", "video", "whiteboard")),
    ("Cabin", 2, ("phone",)),
    ("Gallery", 30, ("projector", "video", "phone", "whiteboard")),
)
_OFFSETS: Final = {"Porto": "+00:00", "Cork": "+00:00", "Tampere": "+02:00"}
"""Winter offsets of the cities that do not keep Central European Time."""
_CENTRAL: Final = "+01:00"
_ANSWERS: Final = ("accepted",) * 6 + ("tentative", "needs_action", "needs_action")
_MY_ANSWERS: Final = ("accepted", "needs_action", "needs_action")
_HOURS: Final = ((8, 16), (9, 17), (9, 17), (9, 18), (10, 18))


@dataclass(frozen=True, slots=True)
class _Kind:
    """A kind of meeting: what it is called, who comes and for how long."""

    title: str
    description: str
    guests: Literal["none", "one", "some", "customer"]
    minutes: tuple[int, ...]
    about: Literal["project", "product", "organisation", "nothing"] = "nothing"
    is_private: bool = False


_KINDS: Final = (
    _Kind("{about}: weekly sync", "Progress, risks, next steps. Notes go into the shared folder.", "some", (30, 45)),
    _Kind("{about}: design review", "Please read the draft beforehand; we only discuss open points.", "some", (60, 90)),
    _Kind("{about}: retrospective", "What went well, what did not, what we change.", "some", (60,)),
    _Kind("{about}: label texts", "Go through the texts one by one and sign them off.", "one", (30, 45), "product"),
    _Kind("Demo of the {about}", "Show it in use, then questions.", "customer", (45, 60), "product"),
    _Kind("Call with {about}", "Delivery dates and open questions.", "customer", (30,), "organisation"),
    _Kind("Visit of {about}", "Pick them up at reception; lunch is ordered.", "customer", (90, 120), "organisation"),
    _Kind("One-on-one", "No agenda; bring what is on your mind.", "one", (30,)),
    _Kind("Interview: candidate for the team", "Questions are split as in the plan.", "some", (60,)),
    _Kind("Quarterly planning", "Each team brings three goals.", "some", (90,)),
    _Kind("Focus time", "", "none", (60, 90, 120)),
)
_PRIVATE: Final = (
    _Kind("Dentist", "", "none", (60,), is_private=True),
    _Kind("Salary review", "Confidential.", "one", (45,), is_private=True),
)


class Calendar(Events, Rooms):
    """The company's calendar: events, invitations and answers, meeting rooms, working hours and free times."""

    domain = "calendar"

    @classmethod
    def populate(cls, state: CalendarState, universe: Universe, rng: random.Random, start: datetime) -> None:
        """All staff, some rooms, and events from ten days before the start to three weeks after it.

        Most of the events have to do with the user. Nobody and no room is booked twice for the same time.
        """
        for person in universe.staff:
            first, last = rng.choice(_HOURS)
            state.people.insert(
                name=person.name,
                email=person.email,
                city=person.city,
                utc_offset=_OFFSETS.get(person.city, _CENTRAL),
                start_hour=first,
                end_hour=last,
            )
        cities = list(dict.fromkeys([universe.home.city, *(person.city for person in universe.staff)]))
        floors = 1 + min(len(universe.staff) // 40, 5)
        rooms = [
            state.rooms.insert(
                name=name if floor == 0 else f"{name} {floor + 1}",
                city=universe.home.city if number < 5 else cities[(number + floor) % len(cities)],
                capacity=capacity,
                features=features,
                is_in_service=name != "Cabin",
            )
            for floor in range(floors)
            for number, (name, capacity, features) in enumerate(_ROOMS)
        ]
        seed = _Seed(state, universe, rng, start, rooms)
        count = min(36 + len(universe.staff), 300)
        for number in range(count):
            seed.add_event(number, _KINDS)
        for number in range(count, count + count // 8):
            seed.add_event(number, _PRIVATE)


class _Seed:
    """Adds believable events, none of which gets in the way of another."""

    def __init__(
        self, state: CalendarState, universe: Universe, rng: random.Random, start: datetime, rooms: list[Room]
    ) -> None:
        self.state, self.universe, self.rng, self.start = state, universe, rng, start
        self.rooms = [room for room in rooms if room.is_in_service]
        self.days = [day for day in (start.date() + timedelta(days=n) for n in range(-10, 22)) if day.weekday() < 5]
        self.kinds: list[_Kind] = []
        self.taken: dict[tuple[str, date], list[tuple[datetime, datetime]]] = {}

    def add_event(self, number: int, kinds: tuple[_Kind, ...]) -> None:
        """Add an event of one of some kinds, each in turn, unless no time for it is found in some tries."""
        rng, universe = self.rng, self.universe
        if not set(self.kinds) & set(kinds):
            self.kinds = rng.sample(kinds, len(kinds))
        kind = self.kinds.pop()
        me = universe.user
        organiser = me if number % 5 in (0, 2) else rng.choice(universe.staff[1:])
        guests = self._guests(kind, organiser, with_me=number % 5 == 1)
        minutes = rng.choice(kind.minutes)
        is_cancelled = number % 13 == 12
        time_found = self._free_time((organiser, *guests), minutes, takes_time=not is_cancelled)
        if time_found is None:
            return
        begin = time_found
        project = rng.choice(universe.projects).name if "{about}" in kind.title and kind.about == "nothing" else None
        about = {
            "project": project,
            "nothing": project,
            "product": rng.choice(universe.products).name,
            "organisation": guests[0].organisation if guests else universe.home.name,
        }[kind.about]
        room = None
        if guests and not is_cancelled and rng.random() < 0.7:
            room = self._free_room(1 + len(guests), begin, minutes)
        answers: dict[str, list[str]] = {"accepted": [], "tentative": [], "declined": [], "needs_action": []}
        for guest in guests:
            odds = _MY_ANSWERS if guest == me else _ANSWERS
            answers[rng.choice(odds) if begin > self.start else "accepted"].append(guest.email)
        self.state.events.insert(
            title=kind.title.format(about=about),
            description=kind.description,
            organiser_email=organiser.email,
            attendees=tuple(guest.email for guest in guests),
            accepted=tuple(answers["accepted"]),
            tentative=tuple(answers["tentative"]),
            start=begin,
            minutes=minutes,
            room_id=room,
            project=project,
            is_private=kind.is_private,
            status="cancelled" if is_cancelled else "confirmed",
            cancel_reason="Too many of us are away that day." if is_cancelled else None,
        )

    def _guests(self, kind: _Kind, organiser: Person, *, with_me: bool) -> list[Person]:
        rng, universe = self.rng, self.universe
        colleagues = [person for person in universe.staff[1:] if person != organiser]
        guests = [universe.user] if with_me and kind.guests != "none" and not kind.is_private else []
        if kind.guests == "customer":
            return [rng.choice(universe.contacts), *guests]
        if kind.guests == "some":
            guests += rng.sample(colleagues, rng.randint(2, 4))
        elif kind.guests == "one" and not guests:
            guests = [rng.choice(colleagues)]
        return guests

    def _free_time(self, people: tuple[Person, ...], minutes: int, *, takes_time: bool) -> datetime | None:
        """A time in the middle of the day, when all of Europe works and all of the people are free."""
        rng = self.rng
        for _ in range(12):
            day = rng.choice(self.days)
            begin = datetime.combine(day, time(rng.randint(9, 13), rng.choice((0, 0, 15, 30))), self.start.tzinfo)
            keys = [(person.email, day) for person in people]
            if self._is_free(keys, begin, minutes):
                if takes_time:
                    self._take(keys, begin, minutes)
                return begin
        return None

    def _free_room(self, people: int, begin: datetime, minutes: int) -> str | None:
        for room in self.rng.sample(self.rooms, len(self.rooms)):
            key = [(room.id, begin.date())]
            if room.capacity >= people and self._is_free(key, begin, minutes):
                self._take(key, begin, minutes)
                return room.id
        return None

    def _is_free(self, keys: list[tuple[str, date]], begin: datetime, minutes: int) -> bool:
        end = begin + timedelta(minutes=minutes)
        return not any(begin < last and first < end for key in keys for first, last in self.taken.get(key, ()))

    def _take(self, keys: list[tuple[str, date]], begin: datetime, minutes: int) -> None:
        for key in keys:
            self.taken.setdefault(key, []).append((begin, begin + timedelta(minutes=minutes)))
