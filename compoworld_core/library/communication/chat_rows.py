"""The rows of a team chat, and what can be said of them without their tables.

A thread is not stored: each reply names the message that the thread hangs on, which is never itself a reply.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal

from compoworld_core.services.sdk import (
    Email,
    Entity,
    Field,
    Id,
    InvalidArguments,
    PersonName,
    ProjectName,
    Quantity,
    Rule,
    Semantic,
    State,
    Table,
    Test,
    Text,
    Timestamp,
    Title,
    Username,
    table,
)

MAX_PINS: Final = 20

ChatPersonId = Annotated[str, Id("chat_person", prefix="chp")]
ChannelId = Annotated[str, Id("chat_channel", prefix="chn")]
MembershipId = Annotated[str, Id("chat_membership", prefix="chm")]
ChatMessageId = Annotated[str, Id("chat_message", prefix="cmsg")]
ReactionId = Annotated[str, Id("chat_reaction", prefix="rct")]
DirectMessageId = Annotated[str, Id("direct_message", prefix="dm")]

ChannelName = Annotated[str, Field(min_length=1, max_length=80), Semantic("channel_name")]
ChatText = Annotated[str, Field(pattern=r"\S", max_length=4000), Semantic("text")]
"""A text that says something."""
Topic = Annotated[Text, Field(max_length=250)]
Status = Annotated[Text, Field(max_length=100)]
ChannelKind = Literal["public", "private"]
Emoji = Literal["thumbsup", "heart", "tada", "eyes", "white_check_mark", "joy", "pray", "rocket", "wave", "thinking"]


class ChatPerson(Entity):
    """A colleague in the chat; `@username` in a message mentions them."""

    id: ChatPersonId
    name: PersonName
    email: Email
    username: Username
    role: Title
    status: Status = ""


class Channel(Entity):
    """A channel. Everybody is in the general one."""

    id: ChannelId
    name: ChannelName
    kind: ChannelKind = "public"
    topic: Topic = ""
    project: ProjectName | None = None
    creator_email: Email
    created_at: Timestamp
    is_general: bool = False
    is_archived: bool = False


class ChannelInfo(Entity):
    """A channel as the user sees it."""

    id: ChannelId
    name: ChannelName
    kind: ChannelKind
    topic: Topic
    project: ProjectName | None
    creator_email: Email
    created_at: Timestamp
    is_general: bool
    is_archived: bool
    is_member: bool
    members: Quantity
    unread: Quantity
    last_message_at: Timestamp | None


class Membership(Entity):
    """Somebody's place in a channel."""

    id: MembershipId
    channel_id: ChannelId
    email: Email
    joined_at: Timestamp


class ChannelMember(Entity):
    """Somebody in a channel; only the address is left of people who are gone from the chat."""

    email: Email
    name: PersonName | None
    username: Username | None
    role: Title | None
    joined_at: Timestamp


class ChannelMessage(Entity):
    """A message in a channel as it is stored. `is_read` is about the user."""

    id: ChatMessageId
    channel_id: ChannelId
    thread_id: ChatMessageId | None = None
    sender: Email
    text: ChatText
    mentions: tuple[Email, ...] = ()
    sent_at: Timestamp
    edited_at: Timestamp | None = None
    pinned_by: Email | None = None
    is_read: bool = False


class Reaction(Entity):
    """Somebody's reaction to a message."""

    id: ReactionId
    message_id: ChatMessageId
    email: Email
    emoji: Emoji


class ReactionCount(Entity):
    """Who reacted to a message with an emoji."""

    emoji: Emoji
    people: tuple[Email, ...]


class ChatMessage(Entity):
    """A message in a channel as the user sees it. `replies` is the number of answers in its thread."""

    id: ChatMessageId
    channel_id: ChannelId
    channel_name: ChannelName
    thread_id: ChatMessageId | None
    sender: Email
    text: ChatText
    mentions: tuple[Email, ...]
    sent_at: Timestamp
    edited_at: Timestamp | None
    pinned_by: Email | None
    is_read: bool
    replies: Quantity
    reactions: tuple[ReactionCount, ...]


class ChatThread(Entity):
    """A message with the replies to it, oldest first."""

    message: ChatMessage
    replies: tuple[ChatMessage, ...]
    participants: tuple[Email, ...]


class DirectMessage(Entity):
    """A message from one person to another. One that the user sent is always read."""

    id: DirectMessageId
    sender: Email
    recipient: Email
    text: ChatText
    sent_at: Timestamp
    edited_at: Timestamp | None = None
    is_read: bool = False


class DirectConversation(Entity):
    """The user's direct messages with one person, at a glance."""

    email: Email
    name: PersonName | None
    messages: Quantity
    unread: Quantity
    last_sender: Email
    last_text: ChatText
    last_sent_at: Timestamp


class MarkedRead(Entity):
    """How many messages were unread until now."""

    marked: Quantity


class ChatState(State):
    """Everything in the chat that the user may come across."""

    people: Table[ChatPerson] = table(unique=("email", "username"))
    channels: Table[Channel] = table(
        unique=("name",),
        rules=(
            Rule(
                where=(Test(field="is_general", value=True),),
                satisfies=(Test(field="kind", value="public"), Test(field="is_archived", value=False)),
                message="the general channel is open to everybody and never archived",
            ),
        ),
    )
    memberships: Table[Membership] = table(unique=(("channel_id", "email"),))
    messages: Table[ChannelMessage]
    reactions: Table[Reaction] = table(unique=(("message_id", "email", "emoji"),))
    direct_messages: Table[DirectMessage] = table(
        rules=(
            Rule(
                satisfies=(Test(field="sender", op="ne", other="recipient"),),
                message="a direct message goes to somebody else",
            ),
        )
    )


def channel_name(text: str) -> str:
    """The name that a channel gets: in lower case, with hyphens for spaces and without the leading `#`.

    Raises:
        InvalidArguments: Nothing is left of it, or it has a sign that is neither letter, digit, hyphen nor underscore.
    """
    name = re.sub(r"\s+", "-", text.strip().removeprefix("#").strip().lower())
    if not re.fullmatch(r"[\w-]{1,80}", name) or not re.search(r"\w", name):
        raise InvalidArguments(f"name: {text[:80]!r} must consist of letters, digits, hyphens and underscores")
    return name


def mentioned(text: str, addresses: Mapping[str, str]) -> tuple[str, ...]:
    """Addresses of the people whom a text mentions as `@username`, in the order of their first mention."""
    words = (word.rstrip("._-").lower() for word in re.findall(r"(?<![\w.@])@([\w.-]+)", text))
    return tuple(dict.fromkeys(addresses[word] for word in words if word in addresses))


def has_words(query: str, text: str) -> bool:
    """Whether all words of a query occur in a text, in any order and case."""
    return all(word in text.casefold() for word in query.casefold().split())
