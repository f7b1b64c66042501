"""Reading mail and keeping it in order.

Reading changes nothing: a message is marked as read by its own call. Deleting takes two steps, to the trash and then
for good.
"""

from __future__ import annotations

from collections.abc import Iterable

from compoworld_core.library.communication.mail_rows import (
    ARCHIVE,
    INBOX,
    MAX_LABELS,
    SENT,
    TRASH,
    Folder,
    FolderId,
    FolderSummary,
    MailState,
    Message,
    MessageId,
    MessageSummary,
    Thread,
    ThreadId,
    ThreadSummary,
    TrashEmptied,
    participants,
    root,
    same,
    shown,
    summary,
)
from compoworld_core.services.sdk import (
    AlreadyExists,
    Cursor,
    Day,
    Email,
    FailedPrecondition,
    Limit,
    LimitExceeded,
    Page,
    Query,
    Service,
    Tag,
    Title,
    paginate,
    tool,
)


class Mailbox(Service[MailState]):
    """What is done with messages that are there."""

    # Reading

    @tool(effect="read")
    def list_messages(
        self,
        folder_id: FolderId = INBOX,
        unread_only: bool = False,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[MessageSummary]:
        """List the messages of a folder, newest first.

        Args:
            folder_id: Folder to list; `inbox`, `sent`, `archive` and `trash` always exist.
            unread_only: Leave out messages that have been read.
            limit: Most messages to return.
            cursor: Where to continue, from the previous page.
        """
        self.state.folders.get(folder_id)
        rows = self.state.messages.where(lambda row: not (unread_only and row.is_read), folder_id=folder_id)
        return self._page(rows, limit, cursor)

    @tool(effect="read")
    def search_messages(
        self,
        query: Query = "",
        sender: Email | None = None,
        recipient: Email | None = None,
        folder_id: FolderId | None = None,
        label: Tag | None = None,
        after: Day | None = None,
        before: Day | None = None,
        unread_only: bool = False,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[MessageSummary]:
        """Search the messages of all folders, newest first. A message must satisfy every filter that is given.

        The trash is searched only where it is named as the folder.

        Args:
            query: Words that must all occur in the subject, the text or the sender's address, in any order and case.
            sender: Address that sent the message.
            recipient: Address that the message went to, also as a copy.
            folder_id: Search this folder only.
            label: Label that the message carries.
            after: Sent on this day or later.
            before: Sent earlier than this day.
            unread_only: Leave out messages that have been read.
            limit: Most messages to return.
            cursor: Where to continue, from the previous page.
        """
        if folder_id is not None:
            self.state.folders.get(folder_id)
        words = query.casefold().split()
        zone = self.now.tzinfo

        def matches(row: Message) -> bool:
            if folder_id is None and row.folder_id == TRASH:
                return False
            if unread_only and row.is_read:
                return False
            if sender is not None and not same(row.sender, sender):
                return False
            if recipient is not None and not any(same(item, recipient) for item in (*row.to, *row.cc, *row.bcc)):
                return False
            if label is not None and label not in row.labels:
                return False
            day = row.sent_at.astimezone(zone).date()
            if (after is not None and day < after) or (before is not None and day >= before):
                return False
            text = f"{row.subject}\n{row.body}\n{row.sender}".casefold()
            return all(word in text for word in words)

        messages = self.state.messages
        found = messages.where(matches) if folder_id is None else messages.where(matches, folder_id=folder_id)
        return self._page(found, limit, cursor)

    @tool(effect="read")
    def get_message(self, message_id: MessageId) -> Message:
        """Get a message with its full text. It stays unread until it is marked as read.

        Args:
            message_id: The message.
        """
        return shown(self.state.messages.get(message_id))

    @tool(effect="read")
    def list_threads(
        self,
        participant: Email | None = None,
        unread_only: bool = False,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[ThreadSummary]:
        """List conversations, the one with the newest message first. Messages in the trash do not count.

        Args:
            participant: Leave out conversations in which this address neither wrote nor was written to.
            unread_only: Leave out conversations without unread messages.
            limit: Most conversations to return.
            cursor: Where to continue, from the previous page.
        """
        threads: dict[str, list[Message]] = {}
        for row in self._newest_first(row for row in self.state.messages if row.folder_id != TRASH):
            threads.setdefault(root(row), []).append(row)
        summaries = [
            ThreadSummary(
                id=root,
                subject=rows[-1].subject,
                participants=participants(rows),
                messages=len(rows),
                unread=sum(not row.is_read for row in rows),
                last_sender=rows[0].sender,
                last_sent_at=rows[0].sent_at,
            )
            for root, rows in threads.items()
        ]
        kept = [
            item
            for item in summaries
            if (participant is None or any(same(participant, other) for other in item.participants))
            and (item.unread or not unread_only)
        ]
        return paginate(kept, limit, cursor)

    @tool(effect="read")
    def get_thread(self, thread_id: ThreadId) -> Thread:
        """Get a conversation with the full text of all its messages, oldest first, whatever folder they are in.

        Args:
            thread_id: The conversation, or any message in it.
        """
        messages = self.state.messages
        named = messages.find(thread_id)
        first = thread_id if named is None else root(named)
        rows = self._newest_first(messages.where(lambda row: root(row) == first))[::-1]
        if not rows:
            messages.get(thread_id)
        return Thread(
            id=first,
            subject=rows[0].subject,
            participants=participants(rows),
            messages=tuple(shown(row) for row in rows),
        )

    # Keeping order

    @tool(effect="write")
    def mark_message_read(self, message_id: MessageId) -> Message:
        """Mark a message as read.

        Args:
            message_id: The message.
        """
        return shown(self.state.messages.update(message_id, is_read=True))

    @tool(effect="write")
    def mark_message_unread(self, message_id: MessageId) -> Message:
        """Mark a received message as unread.

        Args:
            message_id: The message; one that the user sent is always read.
        """
        if same(self.state.messages.get(message_id).sender, self.user.email):
            raise FailedPrecondition(f"{message_id} was sent by the user, and so is always read")
        return shown(self.state.messages.update(message_id, is_read=False))

    @tool(effect="write")
    def label_message(self, message_id: MessageId, label: Tag) -> Message:
        """Put a label on a message; one that it has already changes nothing.

        Args:
            message_id: The message.
            label: The label.
        """
        labels = self.state.messages.get(message_id).labels
        if label not in labels and len(labels) >= MAX_LABELS:
            raise LimitExceeded(f"a message carries at most {MAX_LABELS} labels")
        return shown(self.state.messages.update(message_id, labels=tuple(dict.fromkeys((*labels, label)))))

    @tool(effect="write")
    def unlabel_message(self, message_id: MessageId, label: Tag) -> Message:
        """Take a label off a message.

        Args:
            message_id: The message.
            label: The label; the message must carry it.
        """
        labels = self.state.messages.get(message_id).labels
        if label not in labels:
            raise FailedPrecondition(f"{message_id} does not carry the label {label!r}")
        return shown(self.state.messages.update(message_id, labels=tuple(item for item in labels if item != label)))

    @tool(effect="write")
    def move_message(self, message_id: MessageId, folder_id: FolderId) -> Message:
        """Move a message to another folder.

        Args:
            message_id: The message; one in the trash must be restored first.
            folder_id: The folder. Only sent messages go to `sent`, only received ones to `inbox`.
        """
        self.state.folders.get(folder_id)
        return self._move(self.not_trashed(message_id), folder_id)

    @tool(effect="write")
    def archive_message(self, message_id: MessageId) -> Message:
        """Move a message to the archive.

        Args:
            message_id: The message; one in the trash must be restored first.
        """
        return self._move(self.not_trashed(message_id), ARCHIVE)

    @tool(effect="write")
    def delete_message(self, message_id: MessageId) -> Message:
        """Move a message to the trash, from where it can be restored.

        Args:
            message_id: The message.
        """
        return self._move(self.state.messages.get(message_id), TRASH)

    @tool(effect="write")
    def restore_message(self, message_id: MessageId) -> Message:
        """Take a message out of the trash: back to the inbox or, if the user wrote it, to the sent folder.

        Args:
            message_id: The message in the trash.
        """
        message = self._trashed(message_id)
        return self._move(message, SENT if same(message.sender, self.user.email) else INBOX)

    @tool(effect="write")
    def delete_message_permanently(self, message_id: MessageId) -> Message:
        """Delete a message that is in the trash for good. Answers to it stay.

        Args:
            message_id: The message in the trash.
        """
        return self._erase(self._trashed(message_id))

    @tool(effect="write")
    def empty_trash(self) -> TrashEmptied:
        """Delete all messages in the trash for good."""
        return TrashEmptied(deleted=len([self._erase(row) for row in self.state.messages.where(folder_id=TRASH)]))

    # Folders

    @tool(effect="read")
    def list_mail_folders(self, limit: Limit = 50, cursor: Cursor | None = None) -> Page[FolderSummary]:
        """List the folders with the number of messages in them, in the order of their creation.

        Args:
            limit: Most folders to return.
            cursor: Where to continue, from the previous page.
        """
        summaries = []
        for folder in self.state.folders:
            rows = self.state.messages.where(folder_id=folder.id)
            unread = sum(not row.is_read for row in rows)
            summaries.append(FolderSummary(**dict(folder), messages=len(rows), unread=unread))
        return paginate(summaries, limit, cursor)

    @tool(effect="write")
    def create_mail_folder(self, name: Title) -> Folder:
        """Create a folder for messages.

        Args:
            name: Name that no other folder has, whatever its case.
        """
        self._name_is_free(name)
        return self.state.folders.insert(name=name)

    @tool(effect="write")
    def rename_mail_folder(self, folder_id: FolderId, name: Title) -> Folder:
        """Give a folder another name.

        Args:
            folder_id: A folder that the user made.
            name: Name that no other folder has, whatever its case.
        """
        self._own_folder(folder_id)
        self._name_is_free(name, folder_id)
        return self.state.folders.update(folder_id, name=name)

    @tool(effect="write")
    def delete_mail_folder(self, folder_id: FolderId) -> Folder:
        """Delete an empty folder.

        Args:
            folder_id: A folder that the user made, without messages.
        """
        self._own_folder(folder_id)
        if rows := self.state.messages.where(folder_id=folder_id):
            raise FailedPrecondition(f"{folder_id} still holds {len(rows)} message(s); move or delete them first")
        return self.state.folders.delete(folder_id)

    # Inner workings

    def _page(self, rows: Iterable[Message], limit: int, cursor: str | None) -> Page[MessageSummary]:
        page = paginate(self._newest_first(rows), limit, cursor)
        summaries = tuple(summary(row) for row in page.items)
        return Page(items=summaries, total=page.total, next_cursor=page.next_cursor)

    def _newest_first(self, rows: Iterable[Message]) -> list[Message]:
        return sorted(rows, key=lambda row: row.sent_at)[::-1]

    def not_trashed(self, message_id: str) -> Message:
        """The message.

        Raises:
            FailedPrecondition: It is in the trash.
        """
        message = self.state.messages.get(message_id)
        if message.folder_id == TRASH:
            raise FailedPrecondition(f"{message_id} is in the trash; restore it first")
        return message

    def _trashed(self, message_id: str) -> Message:
        message = self.state.messages.get(message_id)
        if message.folder_id != TRASH:
            raise FailedPrecondition(f"{message_id} is not in the trash")
        return message

    def _move(self, message: Message, folder_id: str) -> Message:
        own = same(message.sender, self.user.email)
        if message.folder_id == folder_id:
            raise FailedPrecondition(f"{message.id} is in the folder {folder_id!r} already")
        if (folder_id == SENT and not own) or (folder_id == INBOX and own):
            kind = "sent" if own else "received"
            raise FailedPrecondition(f"{message.id} was {kind} by the user and does not belong in {folder_id!r}")
        return shown(self.state.messages.update(message.id, folder_id=folder_id))

    def _erase(self, message: Message) -> Message:
        for answer in self.state.messages.where(in_reply_to=message.id):
            self.state.messages.update(answer.id, in_reply_to=None)
        for draft in self.state.drafts.where(in_reply_to=message.id):
            self.state.drafts.update(draft.id, in_reply_to=None)
        return shown(self.state.messages.delete(message.id))

    def _own_folder(self, folder_id: str) -> Folder:
        folder = self.state.folders.get(folder_id)
        if folder.is_system:
            raise FailedPrecondition(f"{folder_id!r} belongs to every mailbox and can't be changed")
        return folder

    def _name_is_free(self, name: str, but_for: str | None = None) -> None:
        for folder in self.state.folders:
            if folder.id != but_for and folder.name.casefold() == name.casefold():
                raise AlreadyExists(f"there is already a folder named {folder.name!r}")
