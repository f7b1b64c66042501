"""A shared drive: documents with owners, shares, revisions and comments.

Every change of title or text keeps what it replaces, and can be made conditional on the revision that was read.
"""

from __future__ import annotations

import random
from datetime import datetime
from typing import TYPE_CHECKING

from compoworld_core.library.documents import drive_seed
from compoworld_core.library.documents.drive_filing import Filing
from compoworld_core.library.documents.drive_rows import (
    MAX_SHARES,
    MAX_TAGS,
    MAX_TEXT,
    ROOT,
    Comment,
    CommentId,
    Document,
    DocumentId,
    DriveState,
    FolderId,
    GeneralAccess,
    Kind,
    Revision,
    RevisionId,
    RevisionNumber,
    RevisionSummary,
    Role,
    Share,
    same,
)
from compoworld_core.services.sdk import (
    AlreadyExists,
    Cursor,
    Email,
    FailedPrecondition,
    Limit,
    LimitExceeded,
    Page,
    Tag,
    Text,
    Title,
    paginate,
    tool,
)

if TYPE_CHECKING:
    from compoworld_core.services.universe import Universe


class Drive(Filing):
    """The company's shared drive: folders and text documents with shares, revisions and comments."""

    domain = "documents"

    # Reading and writing

    @tool(effect="read")
    def get_document(self, document_id: DocumentId) -> Document:
        """Read a document: its full text, who may use it, and its revision.

        Args:
            document_id: The document.
        """
        return self.permitted(document_id, "viewer")

    @tool(effect="write")
    def create_document(
        self,
        title: Title,
        text: Text,
        folder_id: FolderId = ROOT,
        kind: Kind = "document",
        tags: tuple[Tag, ...] = (),
        general_access: GeneralAccess = "restricted",
    ) -> Document:
        """Create a document, owned by the user.

        Args:
            title: Title; others may have the same.
            text: Full text.
            folder_id: Folder to put it into; `root` is the top of the drive.
            kind: Kind of document.
            tags: Tags, each once.
            general_access: What all colleagues may do; `restricted` lets in only those with whom it is shared.
        """
        return self.state.documents.insert(
            title=title,
            text=text,
            kind=kind,
            folder_id=folder_id,
            owner=self.user.email,
            updated_at=self.now,
            tags=_tags(tags),
            general_access=general_access,
        )

    @tool(effect="write")
    def update_document(
        self, document_id: DocumentId, text: Text, if_revision: RevisionNumber | None = None
    ) -> Document:
        """Replace the text of a document. The old text stays as a revision.

        Args:
            document_id: The document; the user needs to be an editor.
            text: New full text.
            if_revision: Do so only while this is the document's revision, so that nobody's change gets lost.
        """
        document = self._editable(document_id, if_revision)
        if document.text == text:
            raise FailedPrecondition(f"{document_id} has this text already")
        return self._save(document, document.title, text)

    @tool(effect="write")
    def append_to_document(
        self, document_id: DocumentId, text: Text, if_revision: RevisionNumber | None = None
    ) -> Document:
        """Add a paragraph to the end of a document. The old text stays as a revision.

        Args:
            document_id: The document; the user needs to be an editor.
            text: Paragraph to add.
            if_revision: Do so only while this is the document's revision.
        """
        document = self._editable(document_id, if_revision)
        if not text:
            raise FailedPrecondition("there is nothing to add")
        longer = f"{document.text}\n\n{text}" if document.text else text
        if len(longer) > MAX_TEXT:
            raise LimitExceeded(f"the document would have {len(longer)} characters, more than {MAX_TEXT}")
        return self._save(document, document.title, longer)

    @tool(effect="write")
    def rename_document(self, document_id: DocumentId, title: Title) -> Document:
        """Give a document another title. The old title stays as a revision.

        Args:
            document_id: The document; the user needs to be an editor.
            title: New title.
        """
        document = self._editable(document_id, None)
        if document.title == title:
            raise FailedPrecondition(f"{document_id} has this title already")
        return self._save(document, title, document.text)

    @tool(effect="write")
    def copy_document(
        self, document_id: DocumentId, title: Title | None = None, folder_id: FolderId | None = None
    ) -> Document:
        """Copy the current text of a document into a new one, owned by the user and shared with nobody.

        Args:
            document_id: The document to copy; the user needs to be a viewer.
            title: Title of the copy; `Copy of` and the old title if left out.
            folder_id: Folder of the copy; that of the original if left out.
        """
        document = self.permitted(document_id, "viewer")
        return self.state.documents.insert(
            title=title or f"Copy of {document.title}"[:300],
            text=document.text,
            kind=document.kind,
            folder_id=document.folder_id if folder_id is None else folder_id,
            owner=self.user.email,
            updated_at=self.now,
            tags=document.tags,
            general_access="restricted",
        )

    @tool(effect="write")
    def tag_document(self, document_id: DocumentId, tag: Tag) -> Document:
        """Put a tag on a document; one that it has already changes nothing.

        Args:
            document_id: The document; the user needs to be an editor.
            tag: The tag.
        """
        document = self.permitted(document_id, "editor")
        return self.state.documents.update(document_id, tags=_tags((*document.tags, tag)))

    @tool(effect="write")
    def untag_document(self, document_id: DocumentId, tag: Tag) -> Document:
        """Take a tag off a document.

        Args:
            document_id: The document; the user needs to be an editor.
            tag: The tag; the document must carry it.
        """
        document = self.permitted(document_id, "editor")
        if tag not in document.tags:
            raise FailedPrecondition(f"{document_id} does not carry the tag {tag!r}")
        return self.state.documents.update(document_id, tags=tuple(item for item in document.tags if item != tag))

    # Sharing

    @tool(effect="write")
    def share_document(self, document_id: DocumentId, email: Email, role: Role) -> Document:
        """Let a person use a document, or change how far.

        Args:
            document_id: The document; the user needs to be an editor.
            email: Address of the person; not the owner.
            role: Viewers read, commenters also comment, editors also change and share.
        """
        document = self.permitted(document_id, "editor")
        if same(document.owner, email):
            raise FailedPrecondition(f"{email} owns {document_id}")
        others = tuple(share for share in document.shared_with if not same(share.email, email))
        if Share(email=email, role=role) in document.shared_with:
            raise AlreadyExists(f"{email} is {role} of {document_id} already")
        if len(others) >= MAX_SHARES:
            raise LimitExceeded(f"a document is shared with at most {MAX_SHARES} people")
        return self.state.documents.update(document_id, shared_with=(*others, Share(email=email, role=role)))

    @tool(effect="write")
    def unshare_document(self, document_id: DocumentId, email: Email) -> Document:
        """Stop sharing a document with a person. General access stays as it is.

        Args:
            document_id: The document; the user needs to be an editor.
            email: Address of a person with whom it is shared.
        """
        document = self.permitted(document_id, "editor")
        others = tuple(share for share in document.shared_with if not same(share.email, email))
        if len(others) == len(document.shared_with):
            raise FailedPrecondition(f"{document_id} is not shared with {email}")
        return self.state.documents.update(document_id, shared_with=others)

    @tool(effect="write")
    def set_general_access(self, document_id: DocumentId, general_access: GeneralAccess) -> Document:
        """Set what all colleagues may do with one of the user's own documents.

        Args:
            document_id: The document.
            general_access: `restricted` lets in only those with whom it is shared.
        """
        self.permitted(document_id, "owner")
        return self.state.documents.update(document_id, general_access=general_access)

    @tool(effect="write")
    def transfer_document(self, document_id: DocumentId, new_owner: Email) -> Document:
        """Make an editor the owner of one of the user's own documents. The user stays an editor.

        Args:
            document_id: The document.
            new_owner: Address of a person with whom it is shared as editor.
        """
        document = self.permitted(document_id, "owner")
        if not any(same(share.email, new_owner) and share.role == "editor" for share in document.shared_with):
            raise FailedPrecondition(f"share {document_id} with {new_owner} as editor first")
        others = tuple(share for share in document.shared_with if not same(share.email, new_owner))
        return self.state.documents.update(
            document_id,
            owner=new_owner,
            updated_by=document.updated_by or document.owner,
            shared_with=(*others, Share(email=document.owner, role="editor")),
        )

    # Revisions

    @tool(effect="read")
    def list_document_revisions(
        self, document_id: DocumentId, limit: Limit = 20, cursor: Cursor | None = None
    ) -> Page[RevisionSummary]:
        """List the revisions of a document that a later one has replaced, newest first.

        Args:
            document_id: The document; the user needs to be a viewer.
            limit: Most revisions to return.
            cursor: Where to continue, from the previous page.
        """
        self.permitted(document_id, "viewer")
        rows = sorted(self.state.revisions.where(document_id=document_id), key=lambda row: -row.number)
        summaries = [
            RevisionSummary(
                id=row.id,
                document_id=row.document_id,
                number=row.number,
                title=row.title,
                author=row.author,
                saved_at=row.saved_at,
            )
            for row in rows
        ]
        return paginate(summaries, limit, cursor)

    @tool(effect="read")
    def get_document_revision(self, revision_id: RevisionId) -> Revision:
        """Read a title and text that a later revision has replaced.

        Args:
            revision_id: The revision; the user needs to be a viewer of its document.
        """
        revision = self.state.revisions.get(revision_id)
        self.permitted(revision.document_id, "viewer")
        return revision

    @tool(effect="write")
    def restore_document_revision(self, revision_id: RevisionId) -> Document:
        """Bring back title and text of an earlier revision of a document, as a new revision.

        Args:
            revision_id: The earlier revision; the user needs to be an editor of its document.
        """
        revision = self.state.revisions.get(revision_id)
        document = self._editable(revision.document_id, None)
        if (document.title, document.text) == (revision.title, revision.text):
            raise FailedPrecondition(f"{document.id} already reads as it did in {revision_id}")
        return self._save(document, revision.title, revision.text)

    # Comments

    @tool(effect="read")
    def list_document_comments(
        self,
        document_id: DocumentId,
        include_resolved: bool = False,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[Comment]:
        """List the comments on a document, oldest first.

        Args:
            document_id: The document; the user needs to be a viewer.
            include_resolved: Also list comments that are settled.
            limit: Most comments to return.
            cursor: Where to continue, from the previous page.
        """
        self.permitted(document_id, "viewer")
        rows = self.state.comments.where(
            lambda row: include_resolved or row.resolved_at is None, document_id=document_id
        )
        return paginate(sorted(rows, key=lambda row: row.created_at), limit, cursor)

    @tool(effect="write")
    def add_document_comment(self, document_id: DocumentId, text: Text) -> Comment:
        """Comment on a document.

        Args:
            document_id: The document; the user needs to be a commenter.
            text: The comment.
        """
        self.permitted(document_id, "commenter")
        if not text.strip():
            raise FailedPrecondition("the comment is empty")
        return self.state.comments.insert(
            document_id=document_id, author=self.user.email, text=text, created_at=self.now
        )

    @tool(effect="write")
    def resolve_document_comment(self, comment_id: CommentId) -> Comment:
        """Mark a comment as settled.

        Args:
            comment_id: An open comment on a document of which the user is a commenter.
        """
        comment = self.state.comments.get(comment_id)
        self.permitted(comment.document_id, "commenter")
        if comment.resolved_at is not None:
            raise FailedPrecondition(f"{comment_id} was settled by {comment.resolved_by} already")
        return self.state.comments.update(comment_id, resolved_by=self.user.email, resolved_at=self.now)

    # Inner workings

    def _editable(self, document_id: str, if_revision: int | None) -> Document:
        document = self.permitted(document_id, "editor")
        if if_revision is not None and document.revision != if_revision:
            raise FailedPrecondition(f"{document_id} is at revision {document.revision} by now, not {if_revision}")
        return document

    def _save(self, document: Document, title: str, text: str) -> Document:
        """Keep the current revision and write the next."""
        self.state.revisions.insert(
            document_id=document.id,
            number=document.revision,
            title=document.title,
            text=document.text,
            author=document.updated_by or document.owner,
            saved_at=document.updated_at,
        )
        return self.state.documents.update(
            document.id,
            title=title,
            text=text,
            revision=document.revision + 1,
            updated_at=self.now,
            updated_by=None if same(document.owner, self.user.email) else self.user.email,
        )

    @classmethod
    def populate(cls, state: DriveState, universe: Universe, rng: random.Random, start: datetime) -> None:
        """A drive in use: house rules, notes, minutes and reports of the company's staff."""
        drive_seed.populate(state, universe, rng, start)


def _tags(tags: tuple[str, ...]) -> tuple[str, ...]:
    """The tags, each once.

    Raises:
        LimitExceeded: There are more than a document can have.
    """
    distinct = tuple(dict.fromkeys(tags))
    if len(distinct) > MAX_TAGS:
        raise LimitExceeded(f"a document carries at most {MAX_TAGS} tags")
    return distinct
