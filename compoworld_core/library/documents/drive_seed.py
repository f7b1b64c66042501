"""What lies in the drive at the start: house rules, notes, minutes and reports.

The rules stay clear of what tasks plant (refunds, discounts, approvals, credit), so that a planted policy never
competes with one that happens to lie there already.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from compoworld_core.library.documents.drive_rows import ROOT, Document, DriveState, Kind

if TYPE_CHECKING:
    from compoworld_core.services.universe import Universe

FOLDERS: Final = (("Policies", ROOT), ("Projects", ROOT), ("Reports", ROOT), ("Team notes", ROOT), ("Old", "Projects"))


@dataclass(frozen=True, slots=True)
class Sheet:
    """A document to be filled in.

    Attributes:
        earlier: Text of the revision before, where the document has been changed.
        comment: An open remark by a colleague.
        owner: Whose it is: the user's or a colleague's.
        access: What all colleagues may do.
    """

    folder: str
    kind: Kind
    title: str
    text: str
    tags: tuple[str, ...] = ()
    earlier: str | None = None
    comment: str | None = None
    owner: Literal["me", "colleague"] = "colleague"
    access: Literal["restricted", "viewer", "commenter", "editor"] = "viewer"
    trashed: bool = False


SHEETS: Final = (
    Sheet(
        ROOT,
        "note",
        "Where things are",
        "Policies holds what applies to everybody, Projects what belongs to one project, Reports what is finished. "
        "Ask {colleague} for a new top folder.",
    ),
    Sheet(
        "Policies",
        "policy",
        "Business travel",
        "Trains before planes wherever the ride takes less than six hours.\n\nBook at least {small} days ahead. A "
        "hotel may cost up to EUR {night} a night, breakfast included. Receipts go to {colleague} within two "
        "weeks of the return.",
        tags=("travel",),
        earlier="Trains before planes wherever the ride takes less than five hours.\n\nReceipts go to {colleague}.",
    ),
    Sheet(
        "Policies",
        "policy",
        "Working from home",
        "Up to {small} days a week, after a word with the team. {weekday} is office day for everybody. Confidential "
        "papers stay in the office.",
        tags=("people",),
        comment="Does this also hold for apprentices?",
    ),
    Sheet(
        "Policies",
        "policy",
        "Visitors and badges",
        "Every visitor signs in at reception, wears a badge and is met by the host. The warehouse in {city} also "
        "asks for safety shoes. Badges are handed back on leaving.",
        tags=("safety",),
    ),
    Sheet(
        "Policies",
        "policy",
        "Clear desks",
        "Papers are locked away at the end of the day, screens locked whenever one leaves the desk. What stands on the "
        "floor on {weekday} evening, the cleaners take for waste.",
    ),
    Sheet(
        "Projects",
        "minutes",
        "Minutes: {project}, steering group",
        "Present: {colleague}, {user}.\n\n1. The pilot with {org} runs; {quantity} units of the {product} are in use.\n"
        "2. Open: label texts, spare parts list.\n3. Next meeting on {weekday}, 10:00.",
        tags=("minutes",),
        owner="me",
        comment="Item 2: the spare parts list is done.",
    ),
    Sheet(
        "Projects",
        "document",
        "Plan for {project}",
        "Phase 1 ends in week {small}. Phase 2 starts once {org} has signed the test report. {colleague} keeps "
        "the list of risks.",
        tags=("plan",),
        earlier="Phase 1 ends in week {small}. Phase 2 is open.",
        access="editor",
    ),
    Sheet(
        "Projects",
        "note",
        "{project}: what we learned",
        "Start the translation of the manual early. Measure the doors before shipping a {product}. Ask "
        "{colleague} about customs papers.",
        owner="me",
        access="commenter",
    ),
    Sheet(
        "Reports",
        "report",
        "Stock count, {city}",
        "Counted: {quantity} {product}, all shelves. Difference to the books: {small} pieces, found in the cage "
        "next to gate {small}. Counted by {colleague}.",
        tags=("warehouse",),
    ),
    Sheet(
        "Reports",
        "report",
        "Customer survey, summary",
        "{quantity} answers. Delivery times were praised, the manual of the {product} was not. {org} would like one "
        "contact for all questions.",
        tags=("customers",),
        earlier="First look, {small} answers are missing: delivery times were praised.",
        comment="Can we quote the numbers at the fair?",
    ),
    Sheet(
        "Reports",
        "report",
        "Service visits of the last quarter",
        "{quantity} visits, {small} of them second visits. The {product} had the most calls, nearly all about the "
        "filter.",
        tags=("service",),
    ),
    Sheet(
        "Team notes",
        "checklist",
        "New colleague: the first week",
        "- key and badge from reception\n- laptop from {colleague}\n- lunch with the team on {weekday}\n- tour of the "
        "warehouse in {city}",
        tags=("people", "checklist"),
        owner="me",
        access="viewer",
    ),
    Sheet(
        "Team notes",
        "note",
        "Ideas for the fair in {city}",
        "Bring two {product}, one of them open. A quiet corner for talks with {org}. Less paper than last year.",
        tags=("fair",),
        owner="me",
        access="restricted",
    ),
    Sheet(
        "Team notes",
        "note",
        "Salary bands, draft",
        "Not to be passed on before the works council has seen it.",
        access="restricted",
    ),
    Sheet(
        "Team notes",
        "checklist",
        "Before the long weekend",
        "- heating down\n- windows in {city} closed\n- hotline on voicemail\n- {colleague} has the keys",
        tags=("checklist",),
    ),
    Sheet(
        "Old",
        "note",
        "{project}: first sketches",
        "Superseded by the plan. Kept for the drawings of the {product}.",
        owner="me",
        trashed=True,
    ),
)


def populate(state: DriveState, universe: Universe, rng: random.Random, start: datetime) -> None:
    """Fill an empty drive."""
    me = universe.user.email
    state.folders.insert(id=ROOT, name="Company drive", parent_id=None, owner=universe.staff[-1].email)
    folders = {ROOT: ROOT}
    for name, parent in FOLDERS:
        owner = me if name in ("Team notes", "Old") else universe.staff[-1].email
        folders[name] = state.folders.insert(name=name, parent_id=folders[parent], owner=owner).id
    rounds = min(1 + len(universe.projects) // 15, 10)
    for number in range(rounds):
        for sheet in SHEETS if number == 0 else [item for item in SHEETS if item.kind != "policy"]:
            _write(state, sheet, folders[sheet.folder], universe, rng, start)


def _write(
    state: DriveState, sheet: Sheet, folder_id: str, universe: Universe, rng: random.Random, start: datetime
) -> Document:
    me = universe.user
    colleague, reader, guest = rng.sample(universe.staff[1:], 3)
    owner, other = (me, colleague) if sheet.owner == "me" else (colleague, me)
    words: dict[str, Any] = {
        "colleague": colleague.name,
        "user": me.name,
        "project": rng.choice(universe.projects).name,
        "product": rng.choice(universe.products).name,
        "org": rng.choice(universe.organisations).name,
        "city": rng.choice(universe.organisations).city,
        "weekday": rng.choice(("Monday", "Tuesday", "Wednesday", "Thursday", "Friday")),
        "small": rng.randint(2, 9),
        "quantity": rng.randint(20, 480),
        "night": 10 * rng.randint(9, 16),
    }
    updated_at = (start - timedelta(days=rng.randint(3, 200))).replace(
        hour=rng.randint(8, 17), minute=rng.randint(0, 59), second=0, microsecond=0
    )
    shares = [{"email": reader.email, "role": rng.choice(("viewer", "commenter"))}]
    if owner == me or rng.random() < 0.5:
        shares.append({"email": other.email, "role": "editor"} if owner == me else _share(me.email, rng))
    if sheet.access == "restricted" and owner != me:
        shares = shares[:1]
    document = state.documents.insert(
        title=sheet.title.format(**words),
        kind=sheet.kind,
        text=sheet.text.format(**words),
        folder_id=folder_id,
        owner=owner.email,
        updated_at=updated_at,
        updated_by=reader.email if sheet.earlier and sheet.access == "editor" else None,
        revision=2 if sheet.earlier else 1,
        tags=sheet.tags,
        shared_with=tuple(shares),
        general_access=sheet.access,
        trashed_at=start - timedelta(days=2) if sheet.trashed else None,
    )
    if sheet.earlier:
        state.revisions.insert(
            document_id=document.id,
            number=1,
            title=document.title,
            text=sheet.earlier.format(**words),
            author=owner.email,
            saved_at=updated_at - timedelta(days=rng.randint(10, 90)),
        )
    if sheet.comment:
        state.comments.insert(
            document_id=document.id,
            author=guest.email,
            text=sheet.comment,
            created_at=updated_at + timedelta(hours=rng.randint(1, 40)),
        )
        state.comments.insert(
            document_id=document.id,
            author=reader.email,
            text="There was a typo in the first line.",
            created_at=updated_at - timedelta(hours=rng.randint(1, 9)),
            resolved_by=owner.email,
            resolved_at=updated_at,
        )
    return document


def _share(email: str, rng: random.Random) -> dict[str, str]:
    return {"email": email, "role": rng.choice(("commenter", "editor"))}
