"""The rows of a shared drive, and who may do what with a document.

A document holds its current text; `revisions` holds the texts that were replaced. So a document that comes into being
without any past needs one row only.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from compoworld_core.services.sdk import (
    Email,
    Entity,
    Field,
    Id,
    Quantity,
    State,
    Table,
    Tag,
    Text,
    Timestamp,
    Title,
    table,
)

ROOT: Final = "root"
MAX_TEXT: Final = 100_000
MAX_TAGS: Final = 20
MAX_SHARES: Final = 100

FolderId = Annotated[str, Id("drive_folder", prefix="fol")]
DocumentId = Annotated[str, Id("document", prefix="doc")]
RevisionId = Annotated[str, Id("document_revision", prefix="rev")]
CommentId = Annotated[str, Id("document_comment", prefix="cmt")]

Kind = Literal["document", "note", "policy", "report", "minutes", "checklist"]
Role = Literal["viewer", "commenter", "editor"]
GeneralAccess = Literal["restricted", "viewer", "commenter", "editor"]
Access = Literal["restricted", "viewer", "commenter", "editor", "owner"]
RevisionNumber = Annotated[int, Field(ge=1)]

_RISING: Final[tuple[Access, ...]] = ("restricted", "viewer", "commenter", "editor", "owner")


class Folder(Entity):
    """A folder; only the root has no parent."""

    id: FolderId
    name: Title
    parent_id: FolderId | None = ROOT
    owner: Email


class FolderDetails(Entity):
    """A folder, where it lies and how much lies in it."""

    id: FolderId
    name: Title
    parent_id: FolderId | None
    owner: Email
    path: Text
    subfolders: Quantity
    documents: Quantity


class Share(Entity):
    """A person who was let in, and how far."""

    email: Email
    role: Role


class Document(Entity):
    """A document. `updated_by` is None where its owner saved the current revision."""

    id: DocumentId
    title: Title
    kind: Kind = "document"
    text: Text
    folder_id: FolderId = ROOT
    owner: Email
    updated_at: Timestamp
    updated_by: Email | None = None
    revision: RevisionNumber = 1
    tags: tuple[Tag, ...] = ()
    shared_with: tuple[Share, ...] = ()
    general_access: GeneralAccess = "viewer"
    trashed_at: Timestamp | None = None


class DocumentSummary(Entity):
    """A document as lists show it, without its text."""

    id: DocumentId
    title: Title
    kind: Kind
    folder_id: FolderId
    owner: Email
    updated_at: Timestamp
    revision: RevisionNumber
    tags: tuple[Tag, ...]
    trashed_at: Timestamp | None


class Revision(Entity):
    """A title and text that a later revision has replaced."""

    id: RevisionId
    document_id: DocumentId
    number: RevisionNumber
    title: Title
    text: Text
    author: Email
    saved_at: Timestamp


class RevisionSummary(Entity):
    """A replaced revision as lists show it, without its text."""

    id: RevisionId
    document_id: DocumentId
    number: RevisionNumber
    title: Title
    author: Email
    saved_at: Timestamp


class Comment(Entity):
    """A remark on a document."""

    id: CommentId
    document_id: DocumentId
    author: Email
    text: Text
    created_at: Timestamp
    resolved_by: Email | None = None
    resolved_at: Timestamp | None = None


class DriveState(State):
    """The drive of the acting user's company."""

    folders: Table[Folder] = table(unique=(("parent_id", "name"),))
    documents: Table[Document]
    revisions: Table[Revision] = table(unique=(("document_id", "number"),))
    comments: Table[Comment]


def same(one: str, other: str) -> bool:
    """Whether two addresses are the same person's."""
    return one.casefold() == other.casefold()


def access(document: Document, email: str) -> Access:
    """What a colleague may do with a document: the most that ownership, a share or general access allows."""
    if same(document.owner, email):
        return "owner"
    shares = [share.role for share in document.shared_with if same(share.email, email)]
    return max((document.general_access, *shares), key=_RISING.index)


def suffices(has: Access, needs: Access) -> bool:
    """Whether one access includes another."""
    return _RISING.index(has) >= _RISING.index(needs)


def summary(document: Document) -> DocumentSummary:
    """The document as lists show it."""
    return DocumentSummary(
        id=document.id,
        title=document.title,
        kind=document.kind,
        folder_id=document.folder_id,
        owner=document.owner,
        updated_at=document.updated_at,
        revision=document.revision,
        tags=document.tags,
        trashed_at=document.trashed_at,
    )
