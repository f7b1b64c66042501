"""Mail: what is written, what is sent, and who can be written to.

Sent mail is final: it can be filed and deleted, never changed.
"""

from __future__ import annotations

import random
from datetime import datetime
from typing import TYPE_CHECKING, Annotated

from compoworld_core.library.communication import mail_seed
from compoworld_core.library.communication.mail_rows import (
    MAX_BODY,
    MAX_RECIPIENTS,
    SENT,
    AddressBookEntry,
    Draft,
    DraftId,
    MailState,
    Message,
    MessageId,
    prefixed,
    recipients,
    root,
    same,
    shown,
)
from compoworld_core.library.communication.mailbox import Mailbox
from compoworld_core.services.sdk import (
    AlreadyExists,
    Cursor,
    Email,
    FailedPrecondition,
    Field,
    InvalidArguments,
    Limit,
    LimitExceeded,
    OrganisationName,
    Page,
    PersonName,
    Phone,
    Query,
    Text,
    Title,
    paginate,
    tool,
)

if TYPE_CHECKING:
    from compoworld_core.services.universe import Universe

Recipients = Annotated[tuple[Email, ...], Field(min_length=1, max_length=MAX_RECIPIENTS)]


class Mail(Mailbox):
    """The user's mailbox: messages, conversations, folders, drafts and address book."""

    domain = "communication"

    # Writing messages

    @tool(effect="write")
    def send_message(
        self,
        to: Recipients,
        subject: Title,
        body: Text,
        cc: tuple[Email, ...] = (),
        bcc: tuple[Email, ...] = (),
    ) -> Message:
        """Send a new message, which starts a conversation of its own. It can't be changed or called back.

        Args:
            to: Addresses of the recipients, at least one.
            subject: Subject line.
            body: Text of the message.
            cc: Addresses that get a copy, seen by everybody.
            bcc: Addresses that get a copy unseen by the others.
        """
        return self._send(to, cc, bcc, subject, body)

    @tool(effect="write")
    def reply_to_message(
        self, message_id: MessageId, body: Text, reply_all: bool = False, cc: tuple[Email, ...] = ()
    ) -> Message:
        """Answer a message in its conversation.

        The answer goes to the sender; where the user wrote the message, to those whom it went to.

        Args:
            message_id: The message to answer.
            body: Text of the answer.
            reply_all: Also send copies to everybody else who got the message.
            cc: Further addresses that get a copy.
        """
        original = self.not_trashed(message_id)
        own = same(original.sender, self.user.email)
        to = original.to if own else (original.sender,)
        others = (*original.to, *original.cc) if reply_all else ()
        copies = (*(item for item in others if not same(item, self.user.email)), *cc)
        return self._send(to, copies, (), prefixed("Re: ", original.subject), body, original)

    @tool(effect="write")
    def forward_message(
        self, message_id: MessageId, to: Recipients, comment: Text = "", cc: tuple[Email, ...] = ()
    ) -> Message:
        """Send the text of a message on to other people, in the same conversation.

        Args:
            message_id: The message to forward.
            to: Addresses of the recipients, at least one.
            comment: Text to put above the forwarded message.
            cc: Addresses that get a copy.
        """
        original = self.not_trashed(message_id)
        head = (
            f"---------- Forwarded message ----------\nFrom: {original.sender}\n"
            f"Date: {original.sent_at:%Y-%m-%d %H:%M}\nSubject: {original.subject}\nTo: {', '.join(original.to)}"
        )
        body = "\n\n".join(part for part in (comment, head, original.body) if part)
        if len(body) > MAX_BODY:
            raise LimitExceeded(f"the forwarded message would have {len(body)} characters, more than {MAX_BODY}")
        return self._send(to, cc, (), prefixed("Fwd: ", original.subject), body, original)

    # Drafts

    @tool(effect="read")
    def list_drafts(self, limit: Limit = 20, cursor: Cursor | None = None) -> Page[Draft]:
        """List the drafts, the last changed first.

        Args:
            limit: Most drafts to return.
            cursor: Where to continue, from the previous page.
        """
        return paginate(sorted(self.state.drafts, key=lambda draft: draft.updated_at)[::-1], limit, cursor)

    @tool(effect="read")
    def get_draft(self, draft_id: DraftId) -> Draft:
        """Get a draft.

        Args:
            draft_id: The draft.
        """
        return self.state.drafts.get(draft_id)

    @tool(effect="write")
    def create_draft(
        self,
        body: Text,
        to: tuple[Email, ...] = (),
        subject: Title | None = None,
        cc: tuple[Email, ...] = (),
        bcc: tuple[Email, ...] = (),
        in_reply_to: MessageId | None = None,
    ) -> Draft:
        """Save a message without sending it.

        Args:
            body: Text of the message.
            to: Addresses of the recipients; may be left empty until the draft is sent.
            subject: Subject line; may be left out until the draft is sent.
            cc: Addresses that get a copy, seen by everybody.
            bcc: Addresses that get a copy unseen by the others.
            in_reply_to: Message that the draft answers; gives recipient and subject where those are left out.
        """
        if in_reply_to is not None:
            original = self.not_trashed(in_reply_to)
            to = to or (original.to if same(original.sender, self.user.email) else (original.sender,))
            subject = subject or prefixed("Re: ", original.subject)
        to, cc, bcc = recipients(to, cc, bcc)
        return self.state.drafts.insert(
            to=to, cc=cc, bcc=bcc, subject=subject, body=body, in_reply_to=in_reply_to, updated_at=self.now
        )

    @tool(effect="write")
    def update_draft(
        self,
        draft_id: DraftId,
        to: tuple[Email, ...] | None = None,
        subject: Title | None = None,
        body: Text | None = None,
        cc: tuple[Email, ...] | None = None,
        bcc: tuple[Email, ...] | None = None,
    ) -> Draft:
        """Change parts of a draft; what is left out stays as it is.

        Args:
            draft_id: The draft.
            to: New recipients, in place of the old ones.
            subject: New subject line.
            body: New text, in place of the old one.
            cc: New addresses that get a copy, in place of the old ones.
            bcc: New addresses that get a blind copy, in place of the old ones.
        """
        draft = self.state.drafts.get(draft_id)
        if to is None and subject is None and body is None and cc is None and bcc is None:
            raise InvalidArguments("give at least one of to, subject, body, cc and bcc")
        to, cc, bcc = recipients(
            draft.to if to is None else to, draft.cc if cc is None else cc, draft.bcc if bcc is None else bcc
        )
        return self.state.drafts.update(
            draft_id,
            to=to,
            cc=cc,
            bcc=bcc,
            subject=draft.subject if subject is None else subject,
            body=draft.body if body is None else body,
            updated_at=self.now,
        )

    @tool(effect="write")
    def send_draft(self, draft_id: DraftId) -> Message:
        """Send a draft. It becomes a message in the sent folder and is no longer a draft.

        Args:
            draft_id: The draft; it needs a recipient and a subject.
        """
        draft = self.state.drafts.get(draft_id)
        if not draft.to:
            raise FailedPrecondition("the draft has no recipient yet")
        if draft.subject is None:
            raise FailedPrecondition("the draft has no subject yet")
        original = None if draft.in_reply_to is None else self.state.messages.get(draft.in_reply_to)
        self.state.drafts.delete(draft_id)
        return self._send(draft.to, draft.cc, draft.bcc, draft.subject, draft.body, original)

    @tool(effect="write")
    def delete_draft(self, draft_id: DraftId) -> Draft:
        """Throw a draft away for good.

        Args:
            draft_id: The draft.
        """
        return self.state.drafts.delete(draft_id)

    # Address book

    @tool(effect="read")
    def search_address_book(
        self, query: Query = "", limit: Limit = 20, cursor: Cursor | None = None
    ) -> Page[AddressBookEntry]:
        """Find saved addresses, ordered by name.

        Args:
            query: Words that must all occur in name, address or organisation, in any order and case; empty for all.
            limit: Most entries to return.
            cursor: Where to continue, from the previous page.
        """
        words = query.casefold().split()

        def matches(row: AddressBookEntry) -> bool:
            text = f"{row.name}\n{row.email}\n{row.organisation or ''}".casefold()
            return all(word in text for word in words)

        found = sorted(self.state.address_book.where(matches), key=lambda row: (row.name.casefold(), row.id))
        return paginate(found, limit, cursor)

    @tool(effect="write")
    def save_address(
        self,
        name: PersonName,
        email: Email,
        organisation: OrganisationName | None = None,
        phone: Phone | None = None,
    ) -> AddressBookEntry:
        """Save somebody's address in the address book.

        Args:
            name: The person's name.
            email: The person's address, not yet in the address book.
            organisation: Where the person works.
            phone: The person's phone number.
        """
        for row in self.state.address_book:
            if same(row.email, email):
                raise AlreadyExists(f"{row.email} is in the address book already, as {row.name}")
        return self.state.address_book.insert(name=name, email=email, organisation=organisation, phone=phone)

    # Inner workings

    def _send(
        self,
        to: tuple[str, ...],
        cc: tuple[str, ...],
        bcc: tuple[str, ...],
        subject: str,
        body: str,
        original: Message | None = None,
    ) -> Message:
        to, cc, bcc = recipients(to, cc, bcc)
        if not to:
            raise InvalidArguments("to: name at least one recipient")
        sent = self.state.messages.insert(
            thread_id=None if original is None else root(original),
            in_reply_to=None if original is None else original.id,
            folder_id=SENT,
            sender=self.user.email,
            to=to,
            cc=cc,
            bcc=bcc,
            subject=subject,
            body=body,
            sent_at=self.now,
            is_read=True,
        )
        return shown(sent)

    @classmethod
    def populate(cls, state: MailState, universe: Universe, rng: random.Random, start: datetime) -> None:
        """A mailbox in use: conversations of the last weeks with colleagues and customers."""
        mail_seed.populate(state, universe, rng, start)
