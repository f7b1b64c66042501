"""What lies in a helpdesk at the start: tickets of the last weeks in every status, some late, some duplicates.

Topics stay clear of what tasks are usually about (refunds, discounts, approvals), so that a planted rule never competes
with one that happens to lie there already.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from compoworld_core.library.support.helpdesk_rows import (
    PRIORITIES,
    TEAM_OF,
    UNSOLVED,
    Category,
    HelpdeskState,
    Outcome,
    Team,
    TicketPriority,
    TicketStatus,
)

if TYPE_CHECKING:
    from compoworld_core.services.universe import Person, Universe

_TEAMS: Final[tuple[Team, ...]] = ("frontline", "technical", "billing")
_TEAM_OF_DEPARTMENT: Final[dict[str, Team]] = {
    "Engineering": "technical",
    "Operations": "technical",
    "Finance": "billing",
    "Procurement": "billing",
}
_HOURS: Final[dict[TicketPriority, tuple[int, int]]] = {
    "low": (24, 120),
    "normal": (8, 72),
    "high": (4, 24),
    "urgent": (1, 8),
}
_STATUSES: Final[tuple[TicketStatus, ...]] = (
    "open",
    "closed",
    "new",
    "solved",
    "pending",
    "open",
    "solved",
    "pending",
    "new",
    "open",
    "closed",
)
_TAGS: Final = ("hardware", "training", "renewal", "external", "urgent", "pilot")


@dataclass(frozen=True, slots=True)
class Topic:
    """A matter that somebody asks for help with, the question that we ask back, and how it ends."""

    category: Category
    subject: str
    description: str
    question: str
    resolution: str


_TOPICS: Final = (
    Topic(
        "hardware",
        "{product} does not switch on",
        "Since this morning the {product} shows no light at all. We have tried another socket.",
        "Could you press the reset button for ten seconds and tell us whether a light comes on?",
        "The fuse had blown; sent a new one and it works again.",
    ),
    Topic(
        "software",
        "{product} loses its settings overnight",
        "Every morning the {product} is back at factory settings, and we have to enter everything again.",
        "Which firmware version does the display show at start?",
        "Firmware updated; the settings have stayed for two nights now.",
    ),
    Topic(
        "delivery",
        "{product} has not arrived yet",
        "The {product} was announced for last week. The tracking page has not changed for four days.",
        "Is there another delivery address that the carrier may have used?",
        "The parcel lay at the neighbour's reception; it has been found.",
    ),
    Topic(
        "billing",
        "Two invoices for the same {product}",
        "We got two invoices with different numbers for the same {product}. Which of them counts?",
        "Could you send us the numbers of both invoices?",
        "The second one was a pro-forma copy; explained it to the bookkeeping.",
    ),
    Topic(
        "account",
        "Access for a new colleague",
        "A new colleague looks after the {product} from now on and needs access to the customer portal.",
        "Which rights is the colleague to have, reading only or ordering as well?",
        "Account created with the right to order; the invitation was accepted.",
    ),
    Topic(
        "how_to",
        "How do we clean the {product}?",
        "The manual of the {product} says nothing about cleaning agents. What may we use?",
        "Is yours the version with the metal housing or the one with the plastic housing?",
        "Sent the cleaning instructions; lukewarm water and a soft cloth are enough.",
    ),
    Topic(
        "hardware",
        "{product} makes a grinding noise",
        "When it warms up, the {product} makes a grinding noise that goes away after an hour.",
        "Could you record the noise and send it to us?",
        "A bearing was loose; a technician tightened it on site.",
    ),
    Topic(
        "software",
        "Export from the {product} stops halfway",
        "The export stops at about half of the records without any message.",
        "How many records are there, and which format do you export to?",
        "The export works in blocks of 5,000 records; set the option for them.",
    ),
)
_MACROS: Final[tuple[tuple[str, str, Outcome, tuple[str, ...]], ...]] = (
    (
        "Acknowledge receipt",
        "Hello {requester},\n\nthank you for your message. We look into it as {ticket}.\n\n{agent}",
        "unchanged",
        (),
    ),
    (
        "Ask for a photo",
        "Hello {requester},\n\ncould you send us a photo of the type plate and of any damage?\n\n{agent}",
        "pending",
        ("photo",),
    ),
    (
        "Ask for the serial number",
        "Hello {requester},\n\nplease send us the serial number; it is on the back of the device.\n\n{agent}",
        "pending",
        ("serial-number",),
    ),
    (
        "Where to find manuals",
        "Hello {requester},\n\nall manuals are in the customer portal under Downloads.\n\n{agent}",
        "solved",
        ("manual",),
    ),
    (
        "Technician will call",
        "Hello {requester},\n\none of our technicians will call you within two working days.\n\n{agent}",
        "unchanged",
        ("callback",),
    ),
)


def populate(state: HelpdeskState, universe: Universe, rng: random.Random, start: datetime) -> None:
    """All staff as agents in three teams with a lead each, and one to three tickets for each contact.

    About one contact in six has asked the same thing twice.
    """
    agents = _add_agents(state, universe)
    for priority in PRIORITIES:
        reply_hours, solve_hours = _HOURS[priority]
        state.sla_targets.insert(priority=priority, reply_hours=reply_hours, solve_hours=solve_hours)
    for title, body, outcome, tags in _MACROS:
        state.macros.insert(title=title, body=body, outcome=outcome, tags=tags)
    writer = _Writer(universe, rng, start, agents)
    drafts = sorted(writer.drafts(), key=lambda item: item[0]["created_at"])
    said = []
    for fields, messages in drafts:
        ticket = state.tickets.insert(**fields)
        said += [{"ticket_id": ticket.id, **message} for message in messages]
    for message in sorted(said, key=lambda item: item["written_at"]):
        state.replies.insert(**message)
    load = Counter(row.assignee_email for row in state.tickets if row.status in UNSOLVED)
    for agent in list(state.agents):
        room = rng.choice((0, 2, 3, 4, 5)) if agent.email != universe.user.email else 4
        state.agents.update(agent.id, capacity=max(3, load[agent.email] + room))


def _add_agents(state: HelpdeskState, universe: Universe) -> dict[Team, list[str]]:
    by_team: dict[Team, list[Person]] = {team: [] for team in _TEAMS}
    for person in universe.staff:
        by_team[_TEAM_OF_DEPARTMENT.get(person.department, "frontline")].append(person)
    for members in by_team.values():
        if not members:
            largest = max(by_team.values(), key=len)
            members.append(largest.pop())
    leads = {members[-1].email for members in by_team.values()}
    team_of = {person.email: team for team, members in by_team.items() for person in members}
    for person in universe.staff:
        state.agents.insert(
            name=person.name,
            email=person.email,
            team=team_of[person.email],
            is_lead=person.email in leads,
            capacity=8,
        )
    return {team: [person.email for person in members] for team, members in by_team.items()}


Draft = tuple[dict[str, Any], list[dict[str, Any]]]


class _Writer:
    """Writes believable tickets with what was said on them."""

    def __init__(self, universe: Universe, rng: random.Random, start: datetime, agents: dict[Team, list[str]]) -> None:
        self.universe, self.rng, self.start, self.agents = universe, rng, start, agents

    def drafts(self) -> Iterator[Draft]:
        """Tickets as field values, each with its messages."""
        number = 0
        for place, person in enumerate(self.universe.contacts):
            for _ in range(self.rng.randint(1, 3)):
                yield self._draft(person, _STATUSES[number % len(_STATUSES)], self.rng.choice(_TOPICS))
                number += 1
            if place % 6 == 2:
                yield from self._twice(person)

    def _twice(self, person: Person) -> Iterator[Draft]:
        first, messages = self._draft(person, "open", self.rng.choice(_TOPICS))
        yield first, messages
        again = {
            **first,
            "subject": f"Once more: {first['subject']}",
            "channel": "phone",
            "status": "new",
            "assignee_email": None,
            "is_escalated": False,
            "first_replied_at": None,
            "created_at": first["created_at"] + (self.start - first["created_at"]) / 2,
        }
        yield {**again, **self._due(again["priority"], again["created_at"])}, []

    def _draft(self, person: Person, status: TicketStatus, topic: Topic) -> Draft:
        rng = self.rng
        product = rng.choice(self.universe.products)
        priority: TicketPriority = rng.choice(("low", "normal", "normal", "normal", "high", "high", "urgent"))
        days = {"new": (0, 1), "open": (0, 7), "pending": (2, 12), "solved": (4, 40), "closed": (18, 70)}[status]
        created = self._minutes_before(self.start, 1440 * days[0] + 30, 1440 * days[1] + 600)
        team = TEAM_OF[topic.category]
        escalated = status == "open" and rng.random() < 0.2
        assignee: str | None = rng.choice(self.agents[team])
        if escalated:
            assignee = self.agents[team][-1]
        elif status == "new" or (status == "open" and rng.random() < 0.15):
            assignee = None
        fields: dict[str, Any] = {
            "subject": topic.subject.format(product=product.name),
            "description": topic.description.format(product=product.name),
            "requester_email": person.email,
            "requester_name": person.name,
            "organisation": person.organisation,
            "channel": rng.choice(("email", "email", "web", "phone", "chat")),
            "category": topic.category,
            "sku": product.sku,
            "priority": priority,
            "status": status,
            "team": team,
            "assignee_email": assignee,
            "is_escalated": escalated,
            "tags": tuple(rng.sample(_TAGS, rng.choice((0, 1, 1, 2)))),
            "created_at": created,
            **self._due(priority, created),
        }
        messages = self._messages(fields, topic, person, assignee)
        return fields, messages

    def _messages(
        self, fields: dict[str, Any], topic: Topic, person: Person, assignee: str | None
    ) -> list[dict[str, Any]]:
        rng, status, created = self.rng, fields["status"], fields["created_at"]
        if assignee is None or (status == "open" and rng.random() < 0.3):
            return []
        replied = self._between(created, min(created + timedelta(hours=12), self.start))
        fields["first_replied_at"] = replied
        messages = [_message("public_reply", assignee, topic.question, replied)]
        if status == "pending":
            fields["pending_since"] = replied
        if fields["is_escalated"]:
            reason = "Escalated: the customer has called twice and production stands still."
            messages.append(_message("internal_note", assignee, reason, self._between(replied, self.start)))
        if status in ("solved", "closed"):
            latest = self.start - timedelta(days=1 if status == "solved" else 8)
            solved = self._between(replied, max(latest, replied + timedelta(hours=2)))
            answered = self._between(replied, solved)
            fields |= {"solved_at": solved, "resolution": topic.resolution}
            messages.append(
                _message("requester_reply", person.email, "Thanks for asking, here is what we see.", answered)
            )
            messages.append(_message("public_reply", assignee, topic.resolution, solved))
            if rng.random() < 0.6:
                score = rng.choice((2, 3, 4, 4, 5, 5))
                fields["satisfaction"] = score
                fields["satisfaction_comment"] = "Quick and friendly." if score > 3 else "It took too long."
        return messages

    def _due(self, priority: TicketPriority, created: datetime) -> dict[str, Any]:
        reply_hours, solve_hours = _HOURS[priority]
        return {
            "sla_started_at": created,
            "reply_due_at": created + timedelta(hours=reply_hours),
            "due_at": created + timedelta(hours=solve_hours),
        }

    def _minutes_before(self, moment: datetime, least: int, most: int) -> datetime:
        return moment - timedelta(minutes=self.rng.randint(least, most))

    def _between(self, early: datetime, late: datetime) -> datetime:
        """A moment between two, to the minute."""
        return early + timedelta(minutes=self.rng.randint(0, max(0, int((late - early).total_seconds() // 60))))


def _message(kind: str, author: str, body: str, written_at: datetime) -> dict[str, Any]:
    return {"kind": kind, "author_email": author, "body": body, "written_at": written_at}
