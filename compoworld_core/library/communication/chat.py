"""Chat: what is said in channels and between two people.

Everybody edits and deletes their own words only. Reading changes nothing: messages are marked as read by calls of
their own.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from compoworld_core.library.communication import chat_seed
from compoworld_core.library.communication.chat_channels import Channels
from compoworld_core.library.communication.chat_rows import (
    MAX_PINS,
    ChannelId,
    ChannelMessage,
    ChatMessage,
    ChatMessageId,
    ChatState,
    ChatText,
    ChatThread,
    DirectConversation,
    DirectMessage,
    DirectMessageId,
    Emoji,
    MarkedRead,
    has_words,
    mentioned,
)
from compoworld_core.services.sdk import (
    AlreadyExists,
    Cursor,
    Day,
    Email,
    FailedPrecondition,
    InvalidArguments,
    Limit,
    LimitExceeded,
    NotFound,
    Page,
    PermissionDenied,
    Query,
    paginate,
    tool,
)

if TYPE_CHECKING:
    from compoworld_core.services.universe import Universe


class Chat(Channels):
    """Team chat: public and private channels, threads, reactions, pins, mentions and direct messages."""

    domain = "communication"

    # Reading channels

    @tool(effect="read")
    def list_channel_messages(
        self,
        channel_id: ChannelId,
        unread_only: bool = False,
        pinned_only: bool = False,
        leave_out_replies: bool = False,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[ChatMessage]:
        """List the messages of a channel, newest first. A reply names the message that it answers in `thread_id`.

        Args:
            channel_id: The channel.
            unread_only: Whether to leave out messages that the user has read.
            pinned_only: Whether to leave out messages that are not pinned.
            leave_out_replies: Whether to leave out replies, which are in the threads of other messages.
            limit: Most messages to return.
            cursor: `next_cursor` of the previous page.
        """
        self.visible(channel_id)
        rows = self.state.messages.where(
            lambda row: (
                (self._is_unread(row) or not unread_only)
                and (row.pinned_by is not None or not pinned_only)
                and (row.thread_id is None or not leave_out_replies)
            ),
            channel_id=channel_id,
        )
        return self._page(rows, limit, cursor)

    @tool(effect="read")
    def search_chat_messages(
        self,
        query: Query = "",
        channel_id: ChannelId | None = None,
        sender: Email | None = None,
        mentions: Email | None = None,
        after: Day | None = None,
        before: Day | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[ChatMessage]:
        """Search the messages and replies of all channels that the user may read, newest first.

        A message must satisfy every filter that is given. Direct messages are not searched.

        Args:
            query: Words that must all occur in the text, in any order and case; empty for all.
            channel_id: Only messages in this channel.
            sender: Only messages that this person sent.
            mentions: Only messages that mention this person.
            after: Only messages that were sent on this day or later.
            before: Only messages that were sent earlier than this day.
            limit: Most messages to return.
            cursor: `next_cursor` of the previous page.
        """
        if channel_id is not None:
            self.visible(channel_id)
        mine = self._channels_of(self.me)
        readable = {row.id for row in self.state.channels if row.kind == "public" or row.id in mine}
        zone = self.now.tzinfo

        def matches(row: ChannelMessage) -> bool:
            if row.channel_id not in readable or (channel_id is not None and row.channel_id != channel_id):
                return False
            if sender is not None and row.sender != sender.lower():
                return False
            if mentions is not None and mentions.lower() not in row.mentions:
                return False
            day = row.sent_at.astimezone(zone).date()
            if (after is not None and day < after) or (before is not None and day >= before):
                return False
            return has_words(query, row.text)

        return self._page(self.state.messages.where(matches), limit, cursor)

    @tool(effect="read")
    def get_chat_message(self, message_id: ChatMessageId) -> ChatMessage:
        """Get a message of a channel. It stays unread until it is marked as read.

        Args:
            message_id: The message.
        """
        return self.shown(self._visible_message(message_id))

    @tool(effect="read")
    def get_chat_thread(self, message_id: ChatMessageId) -> ChatThread:
        """Get a message with all replies to it, oldest first.

        Args:
            message_id: The message, or any reply in its thread.
        """
        message = self._visible_message(message_id)
        first = message if message.thread_id is None else self.state.messages.get(message.thread_id)
        replies = sorted(self.state.messages.where(thread_id=first.id), key=lambda row: row.sent_at)
        return ChatThread(
            message=self.shown(first),
            replies=tuple(self.shown(row) for row in replies),
            participants=tuple(dict.fromkeys(row.sender for row in (first, *replies))),
        )

    # Writing in channels

    @tool(effect="write")
    def post_channel_message(self, channel_id: ChannelId, text: ChatText) -> ChatMessage:
        """Post a message in a channel. `@username` mentions a colleague.

        Args:
            channel_id: A public channel, or a private one that the user is in; not archived.
            text: What to say.
        """
        self.open(channel_id)
        return self._post(channel_id, text)

    @tool(effect="write")
    def reply_in_chat_thread(self, message_id: ChatMessageId, text: ChatText) -> ChatMessage:
        """Reply to a message in its thread. `@username` mentions a colleague.

        Args:
            message_id: The message, or any reply in its thread.
            text: What to say.
        """
        message = self._open_message(message_id)
        return self._post(message.channel_id, text, thread_id=message.thread_id or message.id)

    @tool(effect="write")
    def edit_chat_message(self, message_id: ChatMessageId, text: ChatText) -> ChatMessage:
        """Change the text of a message that the user sent in a channel.

        Args:
            message_id: The message.
            text: New text, in place of the old one.
        """
        self._own_message(message_id)
        return self.shown(
            self.state.messages.update(message_id, text=text, mentions=self._mentioned(text), edited_at=self.now)
        )

    @tool(effect="write")
    def delete_chat_message(self, message_id: ChatMessageId) -> ChatMessage:
        """Delete a message that the user sent in a channel, with the reactions to it.

        Args:
            message_id: The message, which nobody has replied to.
        """
        message = self._own_message(message_id)
        if replies := self.state.messages.where(thread_id=message_id):
            raise FailedPrecondition(f"{message_id} has {len(replies)} replies and can't be deleted")
        shown = self.shown(message)
        for reaction in self.state.reactions.where(message_id=message_id):
            self.state.reactions.delete(reaction.id)
        self.state.messages.delete(message_id)
        return shown

    @tool(effect="write")
    def add_reaction(self, message_id: ChatMessageId, emoji: Emoji) -> ChatMessage:
        """React to a message in a channel.

        Args:
            message_id: The message.
            emoji: An emoji that the user has not put on the message yet.
        """
        message = self._open_message(message_id)
        if self.state.reactions.first(message_id=message_id, email=self.me, emoji=emoji) is not None:
            raise AlreadyExists(f"you reacted to {message_id} with {emoji} already")
        self.state.reactions.insert(message_id=message_id, email=self.me, emoji=emoji)
        return self.shown(message)

    @tool(effect="write")
    def remove_reaction(self, message_id: ChatMessageId, emoji: Emoji) -> ChatMessage:
        """Take a reaction of the user off a message.

        Args:
            message_id: The message.
            emoji: The emoji that the user put on it.
        """
        message = self._open_message(message_id)
        reaction = self.state.reactions.first(message_id=message_id, email=self.me, emoji=emoji)
        if reaction is None:
            raise NotFound(f"you did not react to {message_id} with {emoji}")
        self.state.reactions.delete(reaction.id)
        return self.shown(message)

    @tool(effect="write")
    def pin_chat_message(self, message_id: ChatMessageId) -> ChatMessage:
        """Pin a message in a channel that the user is in, for everybody to find.

        Args:
            message_id: The message, not pinned yet.
        """
        message = self._open_message(message_id)
        self.joined(message.channel_id)
        if message.pinned_by is not None:
            raise FailedPrecondition(f"{message_id} has been pinned already, by {message.pinned_by}")
        pinned = self.state.messages.where(lambda row: row.pinned_by is not None, channel_id=message.channel_id)
        if len(pinned) >= MAX_PINS:
            raise LimitExceeded(f"a channel has at most {MAX_PINS} pinned messages")
        return self.shown(self.state.messages.update(message_id, pinned_by=self.me))

    @tool(effect="write")
    def unpin_chat_message(self, message_id: ChatMessageId) -> ChatMessage:
        """Unpin a message in a channel that the user is in, whoever pinned it.

        Args:
            message_id: The pinned message.
        """
        message = self._open_message(message_id)
        self.joined(message.channel_id)
        if message.pinned_by is None:
            raise FailedPrecondition(f"{message_id} is not pinned")
        return self.shown(self.state.messages.update(message_id, pinned_by=None))

    @tool(effect="write")
    def mark_chat_message_unread(self, message_id: ChatMessageId) -> ChatMessage:
        """Mark a message that somebody else sent in a channel as unread by the user.

        Args:
            message_id: The message.
        """
        message = self._visible_message(message_id)
        if message.sender == self.me:
            raise FailedPrecondition(f"{message_id} was sent by you, and so is always read")
        return self.shown(self.state.messages.update(message_id, is_read=False))

    # Direct messages

    @tool(effect="read")
    def list_direct_conversations(
        self, unread_only: bool = False, limit: Limit = 20, cursor: Cursor | None = None
    ) -> Page[DirectConversation]:
        """List the people with whom the user has exchanged direct messages, the latest exchange first.

        Args:
            unread_only: Whether to leave out people from whom nothing is unread.
            limit: Most people to return.
            cursor: `next_cursor` of the previous page.
        """
        talks: dict[str, list[DirectMessage]] = {}
        for row in self._direct_messages():
            talks.setdefault(row.recipient if row.sender == self.me else row.sender, []).append(row)
        names = {person.email: person.name for person in self.state.people}
        conversations = [
            DirectConversation(
                email=email,
                name=names.get(email),
                messages=len(rows),
                unread=sum(self._is_unread(row) for row in rows),
                last_sender=rows[0].sender,
                last_text=rows[0].text,
                last_sent_at=rows[0].sent_at,
            )
            for email, rows in talks.items()
        ]
        return paginate([row for row in conversations if row.unread or not unread_only], limit, cursor)

    @tool(effect="read")
    def list_direct_messages(
        self,
        person_email: Email | None = None,
        query: Query = "",
        unread_only: bool = False,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[DirectMessage]:
        """List direct messages from and to the user, newest first. They stay unread until they are marked as read.

        Args:
            person_email: Only messages exchanged with this colleague.
            query: Words that must all occur in the text, in any order and case; empty for all.
            unread_only: Whether to leave out messages that the user has read.
            limit: Most messages to return.
            cursor: `next_cursor` of the previous page.
        """
        other = None if person_email is None else self.person(person_email).email
        found = [
            row
            for row in self._direct_messages()
            if (other is None or other in (row.sender, row.recipient))
            and (self._is_unread(row) or not unread_only)
            and has_words(query, row.text)
        ]
        return paginate(found, limit, cursor)

    @tool(effect="write")
    def send_direct_message(self, recipient: Email, text: ChatText) -> DirectMessage:
        """Send a message to one colleague, which nobody else can read. People outside the company can't be reached.

        Args:
            recipient: Address of the colleague.
            text: What to say.
        """
        email = self.person(recipient).email
        if email == self.me:
            raise InvalidArguments("recipient: a direct message goes to somebody else")
        return self.state.direct_messages.insert(
            sender=self.me, recipient=email, text=text, sent_at=self.now, is_read=True
        )

    @tool(effect="write")
    def edit_direct_message(self, message_id: DirectMessageId, text: ChatText) -> DirectMessage:
        """Change the text of a direct message that the user sent.

        Args:
            message_id: The direct message.
            text: New text, in place of the old one.
        """
        self._own_direct_message(message_id)
        return self.state.direct_messages.update(message_id, text=text, edited_at=self.now)

    @tool(effect="write")
    def delete_direct_message(self, message_id: DirectMessageId) -> DirectMessage:
        """Delete a direct message that the user sent.

        Args:
            message_id: The direct message.
        """
        self._own_direct_message(message_id)
        return self.state.direct_messages.delete(message_id)

    @tool(effect="write")
    def mark_direct_messages_read(self, person_email: Email) -> MarkedRead:
        """Mark all direct messages from a colleague as read.

        Args:
            person_email: Address of the colleague.
        """
        email = self.person(person_email).email
        rows = [row for row in self._direct_messages() if row.sender == email and not row.is_read]
        for row in rows:
            self.state.direct_messages.update(row.id, is_read=True)
        return MarkedRead(marked=len(rows))

    # Inner workings

    def _page(self, rows: Iterable[ChannelMessage], limit: int, cursor: str | None) -> Page[ChatMessage]:
        page = paginate(sorted(rows, key=lambda row: row.sent_at)[::-1], limit, cursor)
        items = tuple(self.shown(row) for row in page.items)
        return Page(items=items, total=page.total, next_cursor=page.next_cursor)

    def _visible_message(self, message_id: str) -> ChannelMessage:
        message = self.state.messages.get(message_id)
        self.visible(message.channel_id)
        return message

    def _open_message(self, message_id: str) -> ChannelMessage:
        message = self._visible_message(message_id)
        self.open(message.channel_id)
        return message

    def _own_message(self, message_id: str) -> ChannelMessage:
        message = self._open_message(message_id)
        if message.sender != self.me:
            raise PermissionDenied(f"{message_id} was sent by {message.sender}, and only they can change it")
        return message

    def _post(self, channel_id: str, text: str, thread_id: str | None = None) -> ChatMessage:
        message = self.state.messages.insert(
            channel_id=channel_id,
            thread_id=thread_id,
            sender=self.me,
            text=text,
            mentions=self._mentioned(text),
            sent_at=self.now,
            is_read=True,
        )
        return self.shown(message)

    def _mentioned(self, text: str) -> tuple[str, ...]:
        return mentioned(text, {person.username.lower(): person.email for person in self.state.people})

    def _is_unread(self, row: ChannelMessage | DirectMessage) -> bool:
        return not row.is_read and row.sender != self.me

    def _direct_messages(self) -> list[DirectMessage]:
        """Direct messages from and to the user, newest first."""
        rows = self.state.direct_messages.where(lambda row: self.me in (row.sender, row.recipient))
        return sorted(rows, key=lambda row: row.sent_at)[::-1]

    def _own_direct_message(self, message_id: str) -> DirectMessage:
        message = self.state.direct_messages.get(message_id)
        if message.sender != self.me:
            raise PermissionDenied("only who sent a direct message can change it")
        return message

    @classmethod
    def populate(cls, state: ChatState, universe: Universe, rng: random.Random, start: datetime) -> None:
        """A chat in use: channels for teams, projects and everybody, and what was said there in the last weeks."""
        chat_seed.populate(state, universe, rng, start)
