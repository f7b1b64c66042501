"""Channels: who sees them, who is in them, and what may be done in them.

A private channel does not exist for people who are not in it. An archived one can be read and nothing else.
"""

from __future__ import annotations

from compoworld_core.library.communication.chat_rows import (
    Channel,
    ChannelId,
    ChannelInfo,
    ChannelKind,
    ChannelMember,
    ChannelMessage,
    ChannelName,
    ChatMessage,
    ChatPerson,
    ChatState,
    Emoji,
    MarkedRead,
    Membership,
    ReactionCount,
    Status,
    Topic,
    channel_name,
    has_words,
)
from compoworld_core.services.sdk import (
    AlreadyExists,
    Cursor,
    Email,
    FailedPrecondition,
    Limit,
    NotFound,
    Page,
    PermissionDenied,
    ProjectName,
    Query,
    Service,
    paginate,
    tool,
)


class Channels(Service[ChatState]):
    """Tools on channels and their members."""

    # People

    @tool(effect="read")
    def list_chat_people(self, query: Query = "", limit: Limit = 20, cursor: Cursor | None = None) -> Page[ChatPerson]:
        """List the colleagues who can be reached in the chat, in alphabetical order of their names.

        Args:
            query: Words that must all occur in name, address, username or role, in any order and case; empty for all.
            limit: Most people to return.
            cursor: `next_cursor` of the previous page.
        """
        rows = self.state.people.where(
            lambda row: has_words(query, f"{row.name}\n{row.email}\n{row.username}\n{row.role}")
        )
        return paginate(sorted(rows, key=lambda row: row.name.casefold()), limit, cursor)

    @tool(effect="write")
    def set_chat_status(self, status: Status) -> ChatPerson:
        """Set the line that colleagues see beside the user's name.

        Args:
            status: The line, e.g. "At a customer until 15:00"; empty to remove it.
        """
        return self.state.people.update(self.person(self.me).id, status=status)

    # Channels

    @tool(effect="read")
    def list_channels(
        self,
        query: Query = "",
        kind: ChannelKind | None = None,
        project: ProjectName | None = None,
        member_email: Email | None = None,
        unread_only: bool = False,
        include_archived: bool = False,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[ChannelInfo]:
        """List channels that satisfy all given filters, by name. Private ones are listed where the user is in them.

        Args:
            query: Words that must all occur in the name or the topic, in any order and case; empty for all.
            kind: Only public or only private channels.
            project: Only channels for this project, by its exact name.
            member_email: Only channels that this colleague is in.
            unread_only: Whether to leave out channels without unread messages.
            include_archived: Whether to return archived channels too.
            limit: Most channels to return.
            cursor: `next_cursor` of the previous page.
        """
        inside = None if member_email is None else self._channels_of(member_email.lower())
        mine = self._channels_of(self.me)
        rows = self.state.channels.where(
            lambda row: (
                (row.kind == "public" or row.id in mine)
                and (include_archived or not row.is_archived)
                and (kind is None or row.kind == kind)
                and (project is None or row.project == project)
                and (inside is None or row.id in inside)
                and has_words(query, f"{row.name}\n{row.topic}")
            )
        )
        infos = [self.info(row) for row in sorted(rows, key=lambda row: row.name)]
        return paginate([row for row in infos if row.unread or not unread_only], limit, cursor)

    @tool(effect="read")
    def get_channel(self, channel_id: ChannelId) -> ChannelInfo:
        """Get a channel with the numbers of its members and of messages that the user has not read.

        Args:
            channel_id: The channel.
        """
        return self.info(self.visible(channel_id))

    @tool(effect="write")
    def create_channel(
        self,
        name: ChannelName,
        kind: ChannelKind = "public",
        topic: Topic = "",
        project: ProjectName | None = None,
        members: tuple[Email, ...] = (),
    ) -> ChannelInfo:
        """Create a channel; the user is in it from the start.

        Args:
            name: Name that no channel has, not even an archived one. Spaces become hyphens, capitals small letters.
            kind: Whether everybody can find, read and join it, or only those who are added.
            topic: What it is for.
            project: Name of the project that it is for.
            members: Addresses of colleagues to add.
        """
        name = channel_name(name)
        if self.state.channels.first(name=name) is not None:
            raise AlreadyExists(f"there is already a channel named {name!r}; it may be private or archived")
        channel = self.state.channels.insert(
            name=name, kind=kind, topic=topic, project=project, creator_email=self.me, created_at=self.now
        )
        for email in dict.fromkeys([self.me, *(self.person(member).email for member in members)]):
            self.state.memberships.insert(channel_id=channel.id, email=email, joined_at=self.now)
        return self.info(channel)

    @tool(effect="write")
    def set_channel_topic(self, channel_id: ChannelId, topic: Topic) -> ChannelInfo:
        """Set what a channel that the user is in is for.

        Args:
            channel_id: The channel, not archived.
            topic: New topic, in place of the old one.
        """
        self.joined(channel_id)
        return self.info(self.state.channels.update(channel_id, topic=topic))

    @tool(effect="write")
    def rename_channel(self, channel_id: ChannelId, name: ChannelName) -> ChannelInfo:
        """Give a channel that the user created another name.

        Args:
            channel_id: The channel, not archived.
            name: Name that no other channel has. Spaces become hyphens, capitals small letters.
        """
        self.own(channel_id)
        return self.info(self.state.channels.update(channel_id, name=channel_name(name)))

    @tool(effect="write")
    def archive_channel(self, channel_id: ChannelId) -> ChannelInfo:
        """Archive a channel that the user created. It can still be read, but nobody can post or react in it.

        Args:
            channel_id: The channel, not archived yet.
        """
        self.own(channel_id)
        return self.info(self.state.channels.update(channel_id, is_archived=True))

    @tool(effect="write")
    def unarchive_channel(self, channel_id: ChannelId) -> ChannelInfo:
        """Open an archived channel that the user created again.

        Args:
            channel_id: The archived channel.
        """
        channel = self.created(channel_id)
        if not channel.is_archived:
            raise FailedPrecondition(f"{channel_id} is not archived")
        return self.info(self.state.channels.update(channel_id, is_archived=False))

    @tool(effect="write")
    def mark_channel_read(self, channel_id: ChannelId) -> MarkedRead:
        """Mark all messages of a channel as read by the user, replies too.

        Args:
            channel_id: The channel.
        """
        self.visible(channel_id)
        rows = self.state.messages.where(lambda row: not row.is_read, channel_id=channel_id)
        for row in rows:
            self.state.messages.update(row.id, is_read=True)
        return MarkedRead(marked=sum(row.sender != self.me for row in rows))

    # Members

    @tool(effect="read")
    def list_channel_members(
        self, channel_id: ChannelId, limit: Limit = 50, cursor: Cursor | None = None
    ) -> Page[ChannelMember]:
        """List who is in a channel, in alphabetical order of their names.

        Args:
            channel_id: The channel.
            limit: Most members to return.
            cursor: `next_cursor` of the previous page.
        """
        self.visible(channel_id)
        people = {person.email: person for person in self.state.people}
        members = [
            ChannelMember(
                email=row.email,
                name=person.name if (person := people.get(row.email)) else None,
                username=person.username if person else None,
                role=person.role if person else None,
                joined_at=row.joined_at,
            )
            for row in self.state.memberships.where(channel_id=channel_id)
        ]
        return paginate(sorted(members, key=lambda row: (row.name or row.email).casefold()), limit, cursor)

    @tool(effect="write")
    def join_channel(self, channel_id: ChannelId) -> Membership:
        """Join a public channel. Private ones can't be joined; a member has to add the user.

        Args:
            channel_id: The channel, not archived.
        """
        self.open(channel_id)
        return self._add(channel_id, self.me)

    @tool(effect="write")
    def leave_channel(self, channel_id: ChannelId) -> Membership:
        """Leave a channel. The general channel can't be left.

        Args:
            channel_id: A channel that the user is in, not archived.
        """
        return self._remove(self.joined(channel_id), self.me)

    @tool(effect="write")
    def add_channel_member(self, channel_id: ChannelId, email: Email) -> Membership:
        """Add a colleague to a channel that the user is in.

        Args:
            channel_id: The channel, not archived.
            email: Address of the colleague.
        """
        self.joined(channel_id)
        return self._add(channel_id, self.person(email).email)

    @tool(effect="write")
    def remove_channel_member(self, channel_id: ChannelId, email: Email) -> Membership:
        """Remove a colleague from a channel that the user created.

        Args:
            channel_id: The channel, not archived.
            email: Address of the colleague; the user leaves with `leave_channel` instead.
        """
        channel = self.own(channel_id)
        if email.lower() == self.me:
            raise FailedPrecondition("you can't remove yourself; leave the channel instead")
        return self._remove(channel, email.lower())

    # What other tools build on

    @property
    def me(self) -> str:
        """The user's address, as rows have it."""
        return self.user.email.lower()

    def person(self, email: str) -> ChatPerson:
        """The colleague with an address."""
        person = self.state.people.first(email=email.lower())
        if person is None:
            raise NotFound(f"nobody in the chat has the address {email!r}")
        return person

    def is_member(self, channel_id: str) -> bool:
        """Whether the user is in a channel."""
        return self.state.memberships.first(channel_id=channel_id, email=self.me) is not None

    def visible(self, channel_id: str) -> Channel:
        """A channel that the user may read."""
        channel = self.state.channels.get(channel_id)
        if channel.kind == "private" and not self.is_member(channel_id):
            raise PermissionDenied(f"{channel_id} is private, and you are not in it")
        return channel

    def open(self, channel_id: str) -> Channel:
        """A channel that the user may read and that is not archived."""
        channel = self.visible(channel_id)
        if channel.is_archived:
            raise FailedPrecondition(f"{channel_id} ({channel.name}) is archived")
        return channel

    def joined(self, channel_id: str) -> Channel:
        """An open channel that the user is in."""
        channel = self.open(channel_id)
        if not self.is_member(channel_id):
            raise FailedPrecondition(f"you are not in {channel_id} ({channel.name}); join it first")
        return channel

    def created(self, channel_id: str) -> Channel:
        """A channel that the user created."""
        channel = self.visible(channel_id)
        if channel.creator_email != self.me:
            raise PermissionDenied(f"only {channel.creator_email}, who created {channel_id}, can do that")
        return channel

    def own(self, channel_id: str) -> Channel:
        """An open channel that the user created, and not the general one."""
        channel = self.created(channel_id)
        if channel.is_general:
            raise FailedPrecondition(f"{channel_id} is the general channel, which stays as it is")
        return self.open(channel_id)

    def info(self, channel: Channel) -> ChannelInfo:
        """The channel as the user sees it."""
        members = self.state.memberships.where(channel_id=channel.id)
        messages = self.state.messages.where(channel_id=channel.id)
        return ChannelInfo(
            **dict(channel),
            is_member=any(row.email == self.me for row in members),
            members=len(members),
            unread=sum(not row.is_read and row.sender != self.me for row in messages),
            last_message_at=max((row.sent_at for row in messages), default=None),
        )

    def shown(self, message: ChannelMessage) -> ChatMessage:
        """The message as the user sees it."""
        people: dict[Emoji, list[str]] = {}
        for reaction in self.state.reactions.where(message_id=message.id):
            people.setdefault(reaction.emoji, []).append(reaction.email)
        return ChatMessage(
            **{**dict(message), "is_read": message.is_read or message.sender == self.me},
            channel_name=self.state.channels.get(message.channel_id).name,
            replies=len(self.state.messages.where(thread_id=message.id)),
            reactions=tuple(ReactionCount(emoji=emoji, people=tuple(emails)) for emoji, emails in people.items()),
        )

    # Inner workings

    def _channels_of(self, email: str) -> set[str]:
        return {row.channel_id for row in self.state.memberships.where(email=email)}

    def _add(self, channel_id: str, email: str) -> Membership:
        if self.state.memberships.first(channel_id=channel_id, email=email) is not None:
            raise AlreadyExists(f"{email} is in {channel_id} already")
        return self.state.memberships.insert(channel_id=channel_id, email=email, joined_at=self.now)

    def _remove(self, channel: Channel, email: str) -> Membership:
        if channel.is_general:
            raise FailedPrecondition(f"{channel.id} is the general channel, which everybody is in")
        row = self.state.memberships.first(channel_id=channel.id, email=email)
        if row is None:
            raise NotFound(f"{email} is not in {channel.id}")
        return self.state.memberships.delete(row.id)
