"""What has been said in a chat at the start: short, everyday exchanges of the last weeks.

Topics stay clear of what tasks are usually about (refunds, discounts, approvals), so that a planted rule never competes
with one that happens to lie there already.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal, get_args

from compoworld_core.library.communication.chat_rows import (
    Channel,
    ChannelKind,
    ChatState,
    Emoji,
    channel_name,
    mentioned,
)

if TYPE_CHECKING:
    from compoworld_core.services.universe import Person, Universe

_WEEKS: Final = 5
_MOST_CHANNELS: Final = 40

Speaker = Literal["a", "b", "c"]


@dataclass(frozen=True, slots=True)
class _Talk:
    """A thread to be filled in: its first message and the replies, each with who says it."""

    about: Literal["project", "team", "everybody"]
    turns: tuple[tuple[Speaker, str], ...]
    is_pinned: bool = False


_TALKS: Final = (
    _Talk(
        "project",
        (("a", "Notes of today's call for {project} are in the shared folder."), ("b", "Thanks, reading them now.")),
    ),
    _Talk(
        "project",
        (
            ("a", "@{b} can you take over the test plan for {project} from {weekday}? I am travelling."),
            ("b", "Yes, gladly. Anything that can't wait until you are back?"),
            ("a", "Only the samples of the {product}; {org} wants to see them."),
        ),
    ),
    _Talk(
        "project",
        (("a", "Ground rules for {project}: decisions go into this channel, files into the shared folder."),),
        is_pinned=True,
    ),
    _Talk(
        "project",
        (
            ("a", "The {product} for the demo arrived, {small} of the {quantity} units are in my office."),
            ("c", "I can bring the rest on {weekday}."),
        ),
    ),
    _Talk("project", (("a", "Demo of {project} went well. {org} asked for a second one in {small} weeks."),)),
    _Talk(
        "team",
        (
            ("a", "Who covers the hotline on {weekday}?"),
            ("b", "I can, until 15:00."),
            ("c", "Then I take the rest."),
        ),
    ),
    _Talk("team", (("a", "{org} moved; the new address is in their last mail. Please use it for deliveries."),)),
    _Talk(
        "team",
        (
            ("a", "Has anybody seen the label printer? @{b} you had it last."),
            ("b", "It is in the {city} office, next to the {product}."),
        ),
    ),
    _Talk("team", (("a", "Stand-up moves to 09:{quarter} from {weekday} on."), ("b", "Works for me."))),
    _Talk("team", (("a", "Counted the {product} again: {quantity} pieces, as the list says."),)),
    _Talk("team", (("a", "How we hand over: write down what is open, name who takes it, tell them."),), is_pinned=True),
    _Talk("everybody", (("a", "Cake in the kitchen. Our {city} office turns {small} today."), ("b", "On my way."))),
    _Talk("everybody", (("a", "The car park is closed on {weekday}; please come by train or bicycle."),)),
    _Talk(
        "everybody",
        (
            ("a", "Welcome @{b}, who joins us this week! Say hello when you meet."),
            ("b", "Thank you! I sit on the {small}th floor."),
        ),
    ),
    _Talk("everybody", (("a", "Photos of the summer party are on the shared drive."), ("c", "Who is in the canoe?"))),
    _Talk(
        "everybody", (("a", "House rules: quiet zone on the second floor, phone booths by the lift."),), is_pinned=True
    ),
    _Talk("everybody", (("a", "The heating is serviced on {weekday} morning, dress warmly."),)),
)
_DIRECT: Final = (
    (("them", "Do you have {small} minutes for {project} today?"), ("me", "After 14:00, yes.")),
    (("them", "I left the keys of the {city} office on your desk."),),
    (("me", "Could you send me the dimensions of the {product}?"), ("them", "Just did, by mail.")),
    (("them", "Who at {org} looks after deliveries now?"), ("me", "I will find out."), ("them", "Great, no hurry.")),
    (("me", "Running {small} minutes late, please start without me."),),
    (("them", "Lunch on {weekday}?"),),
)


def populate(state: ChatState, universe: Universe, rng: random.Random, start: datetime) -> None:
    """Fill an empty chat."""
    for person in universe.staff:
        state.people.insert(
            name=person.name,
            email=person.email,
            username=person.username,
            role=person.role,
            status=rng.choice(("", "", "", "Working from home", "Back on Monday", "In meetings until noon")),
        )
    seed = _Seed(state, universe, rng, start)
    seed.add_channels()
    seed.add_talks()
    seed.add_direct_messages()


@dataclass(slots=True)
class _Turn:
    sent_at: datetime
    talk: int
    place: int
    channel: Channel
    sender: Person
    text: str
    is_pinned: bool


class _Seed:
    """Adds believable channels and what was said in them."""

    def __init__(self, state: ChatState, universe: Universe, rng: random.Random, start: datetime) -> None:
        self.state, self.universe, self.rng, self.start = state, universe, rng, start
        self.me, self.staff = universe.user, list(universe.staff)
        self.members: dict[str, list[Person]] = {}

    def add_channels(self) -> None:
        """The general channel, one for each department and project, and some others; the user is in most of them."""
        rng, me, universe = self.rng, self.me, self.universe
        boss = rng.choice(self.staff[1:])
        self._add("general", "public", boss, self.staff, topic="News for everybody", is_general=True)
        self._add("coffee-corner", "public", me, self._crowd(0.6), topic="Everything but work")
        departments: dict[str, list[Person]] = {}
        for person in self.staff:
            departments.setdefault(person.department, []).append(person)
        for department, people in sorted(departments.items()):
            guests = [me] if rng.random() < 0.3 else []
            self._add(f"team-{department}", "public", people[0], [*people, *guests], topic=f"{department} among us")
        for number, project in enumerate(universe.projects[:_MOST_CHANNELS]):
            owner = next(person for person in self.staff if person.email == project.owner)
            creator = me if number % 3 == 0 else owner
            guests = [me] if number % 4 else []
            crowd = rng.sample(self.staff[1:], min(len(self.staff) - 1, rng.randint(3, 7)))
            self._add(
                project.name,
                "private" if number % 5 == 4 else "public",
                creator,
                [creator, owner, *guests, *crowd],
                topic=f"All about {project.name} ({project.code})",
                project=project.name,
            )
        self._add("hiring", "private", boss, [boss, *rng.sample(self.staff[1:], 3)], topic="Interviews and plans")
        self._add("office-moves", "private", me, [me, *rng.sample(self.staff[1:], 4)], topic="Who sits where")
        self._add("trade-fair", "public", me, self._crowd(0.4), topic="Stand, people, posters", is_archived=True)
        self._add("old-website", "public", boss, [boss, *self._crowd(0.3)], topic="Replaced", is_archived=True)

    def add_talks(self) -> None:
        """Threads in all channels, in the order in which they were written."""
        rng = self.rng
        turns: list[_Turn] = []
        number = 0
        for channel in list(self.state.channels):
            people = self.members[channel.id]
            about = "project" if channel.project else "team" if channel.name.startswith("team-") else "everybody"
            talks = [talk for talk in _TALKS if talk.about == about]
            for talk in rng.sample(talks, min(len(talks), rng.randint(3, 5))):
                turns += self._turns(number, talk, channel, people)
                number += 1
        first: dict[int, str] = {}
        usernames = {person.username: person.email for person in self.staff}
        for turn in sorted(turns, key=lambda item: (item.sent_at, item.talk, item.place)):
            age = self.start - turn.sent_at
            people = self.members[turn.channel.id]
            message = self.state.messages.insert(
                channel_id=turn.channel.id,
                thread_id=first.get(turn.talk),
                sender=turn.sender.email,
                text=turn.text,
                mentions=mentioned(turn.text, usernames),
                sent_at=turn.sent_at,
                pinned_by=turn.channel.creator_email if turn.is_pinned else None,
                is_read=self.me not in people
                or self.me == turn.sender
                or age > timedelta(days=6)
                or rng.random() < 0.4,
            )
            first.setdefault(turn.talk, message.id)
            if rng.random() < 0.5:
                for person in rng.sample(people, min(len(people), rng.randint(1, 3))):
                    self._react(message.id, person)
                if self.me in people:
                    self._react(message.id, self.me)

    def add_direct_messages(self) -> None:
        """Direct messages between the user and colleagues."""
        rng = self.rng
        found = []
        for number, other in enumerate(rng.sample(self.staff[1:], min(len(self.staff) - 1, 10))):
            words = self._words(other, other, other)
            at = self._moment(rng.randint(0, 2) if number % 2 else rng.randint(3, 7 * _WEEKS))
            for place, (speaker, text) in enumerate(_DIRECT[number % len(_DIRECT)]):
                sender, recipient = (self.me, other) if speaker == "me" else (other, self.me)
                sent_at = at + timedelta(minutes=7 * place)
                found.append((sent_at, sender, recipient, text.format(**words)))
        for sent_at, sender, recipient, text in sorted(found, key=lambda item: item[0]):
            self.state.direct_messages.insert(
                sender=sender.email,
                recipient=recipient.email,
                text=text,
                sent_at=sent_at,
                is_read=sender == self.me or self.start - sent_at > timedelta(days=3) or rng.random() < 0.3,
            )

    def _add(
        self,
        name: str,
        kind: ChannelKind,
        creator: Person,
        people: list[Person],
        *,
        topic: str,
        project: str | None = None,
        is_general: bool = False,
        is_archived: bool = False,
    ) -> None:
        created = self.start - timedelta(days=self.rng.randint(60, 900), minutes=self.rng.randint(0, 400))
        channel = self.state.channels.insert(
            name=channel_name(name),
            kind=kind,
            topic=topic,
            project=project,
            creator_email=creator.email,
            created_at=created.replace(microsecond=0),
            is_general=is_general,
            is_archived=is_archived,
        )
        unique = {person.email: person for person in (creator, *people)}
        self.members[channel.id] = list(unique.values())
        for email in unique:
            self.state.memberships.insert(channel_id=channel.id, email=email, joined_at=channel.created_at)

    def _crowd(self, share: float) -> list[Person]:
        return [person for person in self.staff[:80] if self.rng.random() < share]

    def _turns(self, number: int, talk: _Talk, channel: Channel, people: list[Person]) -> list[_Turn]:
        rng = self.rng
        cast = dict(zip("abc", (rng.sample(people, min(len(people), 3)) * 3)[:3], strict=True))
        if self.me in people and rng.random() < 0.3:
            cast["a"] = self.me
            cast["b"] = next((person for person in cast.values() if person != self.me), self.me)
        words = self._words(cast["a"], cast["b"], cast["c"])
        if channel.project:
            words["project"] = channel.project
        at = self._moment(rng.randint(1, 5) if number % 3 == 0 and not channel.is_archived else rng.randint(6, 35))
        return [
            _Turn(
                sent_at=at + timedelta(minutes=11 * place, seconds=rng.randint(0, 59)),
                talk=number,
                place=place,
                channel=channel,
                sender=cast[speaker],
                text=text.format(**words),
                is_pinned=talk.is_pinned and place == 0,
            )
            for place, (speaker, text) in enumerate(talk.turns)
        ]

    def _words(self, a: Person, b: Person, c: Person) -> dict[str, str]:
        rng, universe = self.rng, self.universe
        return {
            "a": a.username,
            "b": b.username,
            "c": c.username,
            "project": rng.choice(universe.projects).name,
            "product": rng.choice(universe.products).name,
            "org": rng.choice(universe.organisations).name,
            "city": rng.choice(self.staff).city,
            "weekday": rng.choice(("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")),
            "small": str(rng.randint(4, 9)),
            "quantity": str(rng.randint(20, 480)),
            "quarter": rng.choice(("15", "30", "45")),
        }

    def _moment(self, days: int) -> datetime:
        """A working hour some days ago; an hour or two ago for none."""
        if days == 0:
            return self.start - timedelta(minutes=self.rng.randint(60, 120))
        moment = self.start - timedelta(days=days)
        return moment.replace(hour=self.rng.randint(7, 16), minute=self.rng.randint(0, 59), second=0, microsecond=0)

    def _react(self, message_id: str, person: Person) -> None:
        emoji: Emoji = self.rng.choice(get_args(Emoji)[:5])
        if self.state.reactions.first(message_id=message_id, email=person.email, emoji=emoji) is None:
            self.state.reactions.insert(message_id=message_id, email=person.email, emoji=emoji)
