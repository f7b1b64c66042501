"""The rows of a mailbox, and what can be said of them without their tables.

Conversations are not stored. Every message that is not the first of its conversation names the first one, so a message
that arrives on its own needs no other row, and a conversation outlives the loss of any of its messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Literal

from compoworld_core.services.sdk import (
    Email,
    Entity,
    Id,
    LimitExceeded,
    OrganisationName,
    PersonName,
    Phone,
    Quantity,
    Semantic,
    State,
    Table,
    Tag,
    Text,
    Timestamp,
    Title,
    table,
)

INBOX, SENT, ARCHIVE, TRASH = "inbox", "sent", "archive", "trash"
MAX_RECIPIENTS = 50
MAX_LABELS = 20
MAX_BODY = 100_000
SNIPPET = 120

MessageId = Annotated[str, Id("mail_message", prefix="msg")]
ThreadId = Annotated[str, Semantic("id:mail_message")]
"""The id of a conversation's first message. No foreign key: that message may have been deleted."""
FolderId = Annotated[str, Id("mail_folder", prefix="fld")]
DraftId = Annotated[str, Id("mail_draft", prefix="dft")]
AddressId = Annotated[str, Id("address_book_entry", prefix="adr")]


class Folder(Entity):
    """A folder; the four that every mailbox has are known by fixed ids."""

    id: FolderId
    name: Title
    is_system: bool = False


class FolderSummary(Entity):
    """A folder and how much lies in it."""

    id: FolderId
    name: Title
    is_system: bool
    messages: Quantity
    unread: Quantity


class Message(Entity):
    """A message that was received or sent. The stored row of a conversation's first message names no conversation."""

    id: MessageId
    thread_id: ThreadId | None = None
    in_reply_to: MessageId | None = None
    folder_id: FolderId = INBOX
    sender: Email
    to: tuple[Email, ...]
    cc: tuple[Email, ...] = ()
    bcc: tuple[Email, ...] = ()
    subject: Title
    body: Text
    sent_at: Timestamp
    is_read: bool = False
    labels: tuple[Tag, ...] = ()


class MessageSummary(Entity):
    """A message as lists show it: with the beginning of its text."""

    id: MessageId
    thread_id: ThreadId
    folder_id: FolderId
    sender: Email
    to: tuple[Email, ...]
    subject: Title
    snippet: Text
    sent_at: Timestamp
    is_read: bool
    labels: tuple[Tag, ...]


class ThreadSummary(Entity):
    """A conversation as lists show it."""

    id: ThreadId
    subject: Title
    participants: tuple[Email, ...]
    messages: Quantity
    unread: Quantity
    last_sender: Email
    last_sent_at: Timestamp


class Thread(Entity):
    """A conversation in full, oldest message first."""

    id: ThreadId
    subject: Title
    participants: tuple[Email, ...]
    messages: tuple[Message, ...]


class Draft(Entity):
    """A message that is not sent yet."""

    id: DraftId
    in_reply_to: MessageId | None = None
    to: tuple[Email, ...] = ()
    cc: tuple[Email, ...] = ()
    bcc: tuple[Email, ...] = ()
    subject: Title | None = None
    body: Text = ""
    updated_at: Timestamp


class AddressBookEntry(Entity):
    """Somebody whose address is saved."""

    id: AddressId
    name: PersonName
    email: Email
    organisation: OrganisationName | None = None
    phone: Phone | None = None


class TrashEmptied(Entity):
    """How many messages are gone for good."""

    deleted: Quantity


class MailState(State):
    """The mailbox of the acting user."""

    folders: Table[Folder] = table(unique=("name",))
    messages: Table[Message]
    drafts: Table[Draft]
    address_book: Table[AddressBookEntry] = table(unique=("email",))


def same(one: str, other: str) -> bool:
    """Whether two addresses are the same mailbox."""
    return one.casefold() == other.casefold()


def root(message: Message) -> str:
    """The id of a message's conversation."""
    return message.thread_id or message.id


def shown(message: Message) -> Message:
    """The message as agents see it: always with its conversation."""
    return message if message.thread_id else Message(**{**dict(message), "thread_id": message.id})


def summary(message: Message) -> MessageSummary:
    """The message as lists show it."""
    text = " ".join(message.body.split())
    return MessageSummary(
        id=message.id,
        thread_id=root(message),
        folder_id=message.folder_id,
        sender=message.sender,
        to=message.to,
        subject=message.subject,
        snippet=text if len(text) <= SNIPPET else f"{text[: SNIPPET - 1]}…",
        sent_at=message.sent_at,
        is_read=message.is_read,
        labels=message.labels,
    )


def participants(messages: Iterable[Message]) -> tuple[str, ...]:
    """Addresses of a conversation, in alphabetical order."""
    return tuple(sorted({address for row in messages for address in (row.sender, *row.to, *row.cc)}))


def prefixed(prefix: Literal["Re: ", "Fwd: "], subject: str) -> str:
    """The subject of an answer or a forwarded message; a second answer gets no second prefix."""
    return subject if subject.casefold().startswith(prefix.casefold()) else f"{prefix}{subject}"[:300]


def recipients(
    to: Iterable[str], cc: Iterable[str], bcc: Iterable[str]
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """The lists with every address once, where it comes first.

    Raises:
        LimitExceeded: There are more addresses than a message can have.
    """
    seen: set[str] = set()
    lists: list[tuple[str, ...]] = []
    for addresses in (to, cc, bcc):
        fresh = []
        for address in addresses:
            if address.casefold() not in seen:
                seen.add(address.casefold())
                fresh.append(address)
        lists.append(tuple(fresh))
    if len(seen) > MAX_RECIPIENTS:
        raise LimitExceeded(f"a message goes to at most {MAX_RECIPIENTS} addresses, not {len(seen)}")
    return lists[0], lists[1], lists[2]
