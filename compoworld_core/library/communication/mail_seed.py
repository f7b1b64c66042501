"""What lies in a mailbox at the start: ordinary business mail of the last weeks.

Topics stay clear of what tasks are usually about (refunds, discounts, approvals), so that a planted rule never competes
with one that happens to lie there already.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, Literal

from compoworld_core.library.communication.mail_rows import ARCHIVE, INBOX, SENT, TRASH, MailState, Message, root

if TYPE_CHECKING:
    from compoworld_core.services.universe import Person, Universe

FOLDERS: Final = ("Customers", "Projects")
_WEEKS = 7
_CLOSINGS = ("Best regards", "Kind regards", "Thanks", "All the best", "Many thanks")

Writer = Literal["me", "them", "third"]


@dataclass(frozen=True, slots=True)
class Script:
    """A conversation to be filled in: who writes what, one message after the other.

    Attributes:
        other: Whom the user talks to; `third` is another colleague, who gets a copy of everything.
        folder: Where received messages end up once they are old.
    """

    other: Literal["customer", "colleague"]
    subject: str
    turns: tuple[tuple[Writer, str], ...]
    folder: str = ARCHIVE
    labels: tuple[str, ...] = ()
    copied: bool = False


SCRIPTS: Final = (
    Script(
        "customer",
        "Delivery window for the {product}",
        (
            (
                "them",
                "our loading bay is closed on {weekday} mornings until further notice. Could the "
                "{product} come in the afternoon instead, between 13:00 and 16:00?",
            ),
            (
                "me",
                "thank you for letting us know. I have asked the carrier for an afternoon slot and will "
                "confirm as soon as they answer.",
            ),
            (
                "them",
                "much appreciated. Please have the driver ring the bell at gate {small}; the main "
                "entrance is being repaved.",
            ),
        ),
        folder="Customers",
        labels=("logistics",),
    ),
    Script(
        "colleague",
        "{project}: notes from the kick-off",
        (
            (
                "them",
                "here is what we agreed today. Scope is frozen on {date}; {third} keeps the list of "
                "risks; we meet every {weekday} at 09:30. Please correct me where I misheard.",
            ),
            (
                "third",
                "one addition: the test environment is only ours for the first {small} weeks.",
            ),
            (
                "me",
                "looks right to me. I will put the weekly meeting into everybody's calendar.",
            ),
        ),
        folder="Projects",
        labels=("project",),
        copied=True,
    ),
    Script(
        "customer",
        "Manual for the {product}",
        (
            (
                "them",
                "we have mislaid the printed manual of the {product} that you delivered last year. Is "
                "there a PDF, and does it cover the cleaning of the filter?",
            ),
            (
                "me",
                "the PDF is on its way to you by post as well as by link. Cleaning is described in chapter {small}.",
            ),
        ),
        folder="Customers",
    ),
    Script(
        "colleague",
        "Who covers the phones on {weekday}?",
        (
            (
                "them",
                "I am at the dentist on {weekday} from 10:00 to 12:00. Could you take the hotline for me? "
                "It has been quiet all week.",
            ),
            (
                "me",
                "no problem, just forward the line to my desk before you leave.",
            ),
        ),
    ),
    Script(
        "customer",
        "Visit of our technicians in {city}",
        (
            (
                "me",
                "we would like to service your {product} while our technicians are in {city} in the week "
                "of {date}. Which day suits you best?",
            ),
            (
                "them",
                "any day but {weekday}. They need to sign in at reception and bring safety shoes.",
            ),
        ),
        folder="Customers",
        labels=("service",),
    ),
    Script(
        "colleague",
        "Stock count in the {city} warehouse",
        (
            (
                "them",
                "the count of the {product} gave {quantity} pieces, {small} fewer than the system says. I "
                "have asked for a second count before we correct anything.",
            ),
            (
                "me",
                "good call. Please copy {third} on the result, the auditors will ask.",
            ),
            (
                "them",
                "second count done: the missing {small} were in the returns cage. Nothing to correct.",
            ),
        ),
        labels=("internal",),
        copied=True,
    ),
    Script(
        "customer",
        "New contact in our purchasing team",
        (
            (
                "them",
                "from {date} on I look after purchasing at {org}. Please send order confirmations to me; "
                "my predecessor has moved to the plant in {city}.",
            ),
        ),
        folder="Customers",
    ),
    Script(
        "colleague",
        "{project}: demo moved",
        (
            (
                "them",
                "the customer asked us to move the demo of {project} to {weekday}, 14:00. The room is "
                "booked, and {third} brings the {product}.",
            ),
        ),
        folder="Projects",
        labels=("project",),
        copied=True,
    ),
    Script(
        "customer",
        "Scratched housing on one {product}",
        (
            (
                "them",
                "one of the {small} {product} units that arrived on {weekday} has a scratch along the "
                "left side. It works, and we will keep it, but you should know for your quality records.",
            ),
            (
                "me",
                "thank you for being so fair about it. I have passed your photo on to our quality team.",
            ),
        ),
        folder="Customers",
        labels=("quality",),
    ),
    Script(
        "colleague",
        "Meter readings for the office in {city}",
        (
            (
                "them",
                "the landlord wants the readings by {date}. Electricity is {quantity}, I could not get at "
                "the water meter. Do you have the key to the cellar?",
            ),
            (
                "me",
                "the key hangs in the kitchen, behind the first-aid box.",
            ),
        ),
    ),
    Script(
        "customer",
        "Question about spare parts for the {product}",
        (
            (
                "them",
                "how long will you stock spare parts for the {product}? Our maintenance plan runs for ten "
                "years, and the seals wear out first.",
            ),
            (
                "me",
                "parts stay available for ten years after the last unit is sold. Seals we keep on the "
                "shelf; {quantity} sets as of today.",
            ),
            (
                "them",
                "that settles it for us. We will list the seals as our own spare parts, {small} sets.",
            ),
        ),
        folder="Customers",
        labels=("service",),
    ),
    Script(
        "colleague",
        "Draft agenda for the quarterly meeting",
        (
            (
                "them",
                "I have put your update on {project} second, right after the welcome. Fifteen minutes "
                "with questions. Is that enough?",
            ),
            (
                "me",
                "ten will do. Give the rest to {third}, who always runs over.",
            ),
        ),
        copied=True,
    ),
    Script(
        "colleague",
        "Canteen closed on {weekday}",
        (
            (
                "them",
                "the canteen is closed on {weekday} for the yearly deep clean. Sandwiches are in the lobby from noon.",
            ),
        ),
        folder=TRASH,
    ),
    Script(
        "customer",
        "Floor plan of the showroom",
        (
            (
                "them",
                "attached is nothing, as our scanner gave up; I will send the plan of the showroom by "
                "courier. The spot for the {product} is {small} metres wide.",
            ),
        ),
        folder="Customers",
    ),
    Script(
        "colleague",
        "{project}: two open points",
        (
            (
                "me",
                "before we close the phase we still need the label texts and a name for the {product} in "
                "the catalogue. Could you take the first one?",
            ),
            (
                "them",
                "label texts are done, see the shared folder. For the name I would ask {third}.",
            ),
            (
                "me",
                "asked. Until we hear back it stays as it is.",
            ),
        ),
        folder="Projects",
        labels=("project",),
        copied=True,
    ),
    Script(
        "colleague",
        "Lost umbrella",
        (
            (
                "them",
                "somebody left a black umbrella in meeting room {small}. It is at reception until {weekday}.",
            ),
        ),
        folder=TRASH,
    ),
    Script(
        "customer",
        "Trade fair in {city}",
        (
            (
                "them",
                "shall we share the stand at the fair in {city} again? Last year the {product} drew more "
                "people than our coffee, which is saying something.",
            ),
            (
                "me",
                "gladly. I will ask marketing about the budget and come back to you after {date}.",
            ),
        ),
        folder="Customers",
        labels=("marketing",),
    ),
    Script(
        "colleague",
        "Handover before my leave",
        (
            (
                "them",
                "I am away from {date} for {small} working days. {third} has my open tickets; {project} "
                "can wait. The passwords are where they always are.",
            ),
            (
                "me",
                "enjoy it. I will not call unless the building is on fire.",
            ),
        ),
        labels=("internal",),
        copied=True,
    ),
)


@dataclass(slots=True)
class _Turn:
    sent_at: datetime
    conversation: int
    script: Script
    sender: Person
    to: Person
    cc: tuple[Person, ...]
    subject: str
    body: str


def populate(state: MailState, universe: Universe, rng: random.Random, start: datetime) -> None:
    """Fill an empty mailbox."""
    for folder_id in (INBOX, SENT, ARCHIVE, TRASH):
        state.folders.insert(id=folder_id, name=folder_id.capitalize(), is_system=True)
    folders = {name: state.folders.insert(name=name).id for name in FOLDERS}
    turns = _turns(universe, rng, start)
    last: dict[int, Message] = {}
    for turn in sorted(turns, key=lambda item: (item.sent_at, item.conversation)):
        before = last.get(turn.conversation)
        own = turn.sender == universe.user
        age = start - turn.sent_at
        folder = SENT if own else turn.script.folder
        if not own and folder != TRASH and age < timedelta(days=14):
            folder = INBOX
        last[turn.conversation] = state.messages.insert(
            thread_id=None if before is None else root(before),
            in_reply_to=None if before is None else before.id,
            folder_id=folders.get(folder, folder),
            sender=turn.sender.email,
            to=(turn.to.email,),
            cc=tuple(person.email for person in turn.cc),
            subject=turn.subject if before is None else f"Re: {turn.subject}",
            body=turn.body,
            sent_at=turn.sent_at,
            is_read=own or age > timedelta(days=4) or rng.random() < 0.3,
            labels=() if own else turn.script.labels,
        )
    _drafts(state, universe, rng, start, list(last.values()))
    met = {address for row in state.messages for address in (row.sender, *row.to)}
    known = (met | {person.email for person in universe.staff}) - {universe.user.email}
    for person in universe.people:
        if person.email in known:
            state.address_book.insert(
                name=person.name, email=person.email, organisation=person.organisation, phone=person.phone
            )


def _turns(universe: Universe, rng: random.Random, start: datetime) -> list[_Turn]:
    scripts: list[Script] = []
    count = min(13 + (len(universe.organisations) - 12) // 2, 160)
    while len(scripts) < count:
        scripts += rng.sample(SCRIPTS, len(SCRIPTS))
    turns: list[_Turn] = []
    colleagues = universe.staff[1:]
    for number, script in enumerate(scripts[:count]):
        them = rng.choice(universe.contacts if script.other == "customer" else colleagues)
        third = rng.choice([person for person in colleagues if person != them])
        people = {"me": universe.user, "them": them, "third": third}
        words = _words(universe, rng, start, third)
        day = rng.randint(len(script.turns), _WEEKS * 7) if number % 3 else len(script.turns) + number // 3 % 5
        for place, (writer, text) in enumerate(script.turns):
            sender = people[writer]
            to = them if writer == "me" else universe.user
            cc = [third] if script.copied and writer != "third" else [them] if writer == "third" else []
            moment = (start - timedelta(days=day - place)).replace(hour=rng.randint(7, 17), minute=rng.randint(0, 59))
            turns.append(
                _Turn(
                    sent_at=moment.replace(second=rng.randint(0, 59), microsecond=0),
                    conversation=number,
                    script=script,
                    sender=sender,
                    to=to,
                    cc=tuple(cc),
                    subject=script.subject.format(**words),
                    body=_letter(rng, to, sender, text.format(**words, org=them.organisation)),
                )
            )
    return turns


def _words(universe: Universe, rng: random.Random, start: datetime, third: Person) -> dict[str, str]:
    return {
        "product": rng.choice(universe.products).name,
        "project": rng.choice(universe.projects).name,
        "city": rng.choice(universe.organisations).city,
        "weekday": rng.choice(("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")),
        "date": f"{start + timedelta(days=rng.randint(3, 30)):%-d %B}",
        "small": str(rng.randint(2, 9)),
        "quantity": str(rng.randint(20, 480)),
        "third": third.name.split()[0],
    }


def _letter(rng: random.Random, to: Person, sender: Person, text: str) -> str:
    greeting = rng.choice(("Hello", "Dear", "Hi"))
    closing = rng.choice(_CLOSINGS)
    signature = f"{sender.name}\n{sender.role}, {sender.organisation}\n{sender.phone}"
    return f"{greeting} {to.name.split()[0]},\n\n{text}\n\n{closing}\n{signature}"


def _drafts(state: MailState, universe: Universe, rng: random.Random, start: datetime, last: list[Message]) -> None:
    me = universe.user
    received = [row for row in last if row.sender != me.email and row.folder_id == INBOX]
    if received:
        original = rng.choice(received)
        state.drafts.insert(
            to=(original.sender,),
            subject=f"Re: {original.subject.removeprefix('Re: ')}",
            body=f"Hello,\n\nthank you for your message. I need to look this up and\n\n{me.name}",
            in_reply_to=original.id,
            updated_at=start - timedelta(hours=rng.randint(2, 20)),
        )
    state.drafts.insert(
        body=f"Ideas for the next issue of the newsletter: {rng.choice(universe.projects).name}, the fair, new faces.",
        subject="Newsletter ideas",
        updated_at=start - timedelta(days=rng.randint(2, 9)),
    )
