"""Finding documents and keeping folders in order.

Folders form a tree without cycles, and only empty ones can go. What the user may not see appears in no list.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from compoworld_core.library.documents.drive_rows import (
    ROOT,
    Access,
    Document,
    DocumentId,
    DocumentSummary,
    DriveState,
    Folder,
    FolderDetails,
    FolderId,
    Kind,
    access,
    same,
    suffices,
    summary,
)
from compoworld_core.services.sdk import (
    AlreadyExists,
    Cursor,
    Day,
    Email,
    FailedPrecondition,
    Limit,
    Page,
    PermissionDenied,
    Query,
    Service,
    Tag,
    Title,
    paginate,
    tool,
)


class Filing(Service[DriveState]):
    """What is done with folders, and with documents as wholes."""

    # Finding

    @tool(effect="read")
    def search_documents(
        self,
        query: Query = "",
        owner: Email | None = None,
        kind: Kind | None = None,
        tag: Tag | None = None,
        folder_id: FolderId | None = None,
        updated_after: Day | None = None,
        updated_before: Day | None = None,
        limit: Limit = 20,
        cursor: Cursor | None = None,
    ) -> Page[DocumentSummary]:
        """Search the documents that the user may read, the last updated first. All given filters must be satisfied.

        The trash is not searched.

        Args:
            query: Words that must all occur in title, text or tags, in any order and case.
            owner: Address of the owner.
            kind: Kind of document.
            tag: Tag that the document carries.
            folder_id: Search this folder and all folders below it.
            updated_after: Last updated on this day or later.
            updated_before: Last updated earlier than this day.
            limit: Most documents to return.
            cursor: Where to continue, from the previous page.
        """
        words = query.casefold().split()
        zone = self.now.tzinfo
        folders = None if folder_id is None else set(self._below(folder_id))

        def matches(row: Document) -> bool:
            if row.trashed_at is not None or (folders is not None and row.folder_id not in folders):
                return False
            if owner is not None and not same(row.owner, owner):
                return False
            if (kind is not None and row.kind != kind) or (tag is not None and tag not in row.tags):
                return False
            day = row.updated_at.astimezone(zone).date()
            if (updated_after is not None and day < updated_after) or (
                updated_before is not None and day >= updated_before
            ):
                return False
            text = "\n".join((row.title, row.text, *row.tags)).casefold()
            return all(word in text for word in words) and self._sees(row)

        return self._page(self.state.documents.where(matches), limit, cursor)

    @tool(effect="read")
    def list_documents(
        self, folder_id: FolderId = ROOT, limit: Limit = 20, cursor: Cursor | None = None
    ) -> Page[DocumentSummary]:
        """List the documents that lie directly in a folder and that the user may read, the last updated first.

        Args:
            folder_id: The folder; `root` is the top of the drive.
            limit: Most documents to return.
            cursor: Where to continue, from the previous page.
        """
        self.state.folders.get(folder_id)
        rows = self.state.documents.where(lambda row: row.trashed_at is None and self._sees(row), folder_id=folder_id)
        return self._page(rows, limit, cursor)

    @tool(effect="read")
    def list_trashed_documents(self, limit: Limit = 20, cursor: Cursor | None = None) -> Page[DocumentSummary]:
        """List the user's own documents that are in the trash, the last updated first.

        Args:
            limit: Most documents to return.
            cursor: Where to continue, from the previous page.
        """
        rows = self.state.documents.where(lambda row: row.trashed_at is not None and same(row.owner, self.user.email))
        return self._page(rows, limit, cursor)

    # Folders

    @tool(effect="read")
    def list_folders(self, parent_id: FolderId = ROOT, limit: Limit = 50, cursor: Cursor | None = None) -> Page[Folder]:
        """List the folders directly in a folder, ordered by name.

        Args:
            parent_id: The folder to look into; `root` is the top of the drive.
            limit: Most folders to return.
            cursor: Where to continue, from the previous page.
        """
        self.state.folders.get(parent_id)
        rows = sorted(self.state.folders.where(parent_id=parent_id), key=lambda row: (row.name.casefold(), row.id))
        return paginate(rows, limit, cursor)

    @tool(effect="read")
    def get_folder(self, folder_id: FolderId) -> FolderDetails:
        """Get a folder with its path and the number of folders and of readable documents in it.

        Args:
            folder_id: The folder.
        """
        folder = self.state.folders.get(folder_id)
        names = [item.name for item in self._upwards(folder)]
        documents = self.state.documents.where(
            lambda row: row.trashed_at is None and self._sees(row), folder_id=folder_id
        )
        return FolderDetails(
            **dict(folder),
            path=" / ".join(reversed(names)),
            subfolders=len(self.state.folders.where(parent_id=folder_id)),
            documents=len(documents),
        )

    @tool(effect="write")
    def create_folder(self, name: Title, parent_id: FolderId = ROOT) -> Folder:
        """Create a folder, owned by the user.

        Args:
            name: Name that no other folder in the same place has, whatever its case.
            parent_id: Folder to put it into; `root` is the top of the drive.
        """
        self.state.folders.get(parent_id)
        self._name_is_free(name, parent_id)
        return self.state.folders.insert(name=name, parent_id=parent_id, owner=self.user.email)

    @tool(effect="write")
    def rename_folder(self, folder_id: FolderId, name: Title) -> Folder:
        """Give one of the user's folders another name.

        Args:
            folder_id: The folder.
            name: Name that no other folder in the same place has, whatever its case.
        """
        folder = self._own_folder(folder_id)
        self._name_is_free(name, folder.parent_id, folder_id)
        return self.state.folders.update(folder_id, name=name)

    @tool(effect="write")
    def move_folder(self, folder_id: FolderId, parent_id: FolderId) -> Folder:
        """Move one of the user's folders, with all that is in it.

        Args:
            folder_id: The folder to move.
            parent_id: Folder to put it into; neither the folder itself nor one below it.
        """
        folder = self._own_folder(folder_id)
        target = self.state.folders.get(parent_id)
        if folder.parent_id == parent_id:
            raise FailedPrecondition(f"{folder_id} is in {parent_id} already")
        if any(item.id == folder_id for item in self._upwards(target)):
            raise FailedPrecondition(f"{folder_id} can't be moved into itself or a folder below it")
        self._name_is_free(folder.name, parent_id)
        return self.state.folders.update(folder_id, parent_id=parent_id)

    @tool(effect="write")
    def delete_folder(self, folder_id: FolderId) -> Folder:
        """Delete one of the user's folders. It must be empty; documents in the trash count too.

        Args:
            folder_id: The folder.
        """
        folder = self._own_folder(folder_id)
        subfolders = len(self.state.folders.where(parent_id=folder_id))
        documents = self.state.documents.where(folder_id=folder_id)
        trashed = sum(row.trashed_at is not None for row in documents)
        if subfolders or documents:
            raise FailedPrecondition(
                f"{folder_id} is not empty: {subfolders} folder(s), {len(documents) - trashed} document(s), "
                f"{trashed} document(s) in the trash"
            )
        self.state.folders.delete(folder_id)
        return folder

    # Documents as wholes

    @tool(effect="write")
    def move_document(self, document_id: DocumentId, folder_id: FolderId) -> Document:
        """Move a document to another folder.

        Args:
            document_id: The document; the user needs to be an editor.
            folder_id: Folder to put it into.
        """
        document = self.permitted(document_id, "editor")
        self.state.folders.get(folder_id)
        if document.folder_id == folder_id:
            raise FailedPrecondition(f"{document_id} is in {folder_id} already")
        return self.state.documents.update(document_id, folder_id=folder_id)

    @tool(effect="write")
    def trash_document(self, document_id: DocumentId) -> Document:
        """Move one of the user's own documents to the trash, where nobody can read or change it.

        Args:
            document_id: The document.
        """
        self.permitted(document_id, "owner")
        return self.state.documents.update(document_id, trashed_at=self.now)

    @tool(effect="write")
    def restore_document(self, document_id: DocumentId) -> Document:
        """Take one of the user's own documents out of the trash, back to its folder.

        Args:
            document_id: The document in the trash.
        """
        self._trashed(document_id)
        return self.state.documents.update(document_id, trashed_at=None)

    @tool(effect="write")
    def delete_document_permanently(self, document_id: DocumentId) -> Document:
        """Delete one of the user's own documents for good, with its revisions and comments.

        Args:
            document_id: The document; it must be in the trash.
        """
        self._trashed(document_id)
        for comment in self.state.comments.where(document_id=document_id):
            self.state.comments.delete(comment.id)
        for revision in self.state.revisions.where(document_id=document_id):
            self.state.revisions.delete(revision.id)
        return self.state.documents.delete(document_id)

    # For the other tools

    def permitted(self, document_id: str, needs: Access) -> Document:
        """A document that is not in the trash and that the user may use in the given way.

        Raises:
            NotFound: There is no such document.
            PermissionDenied: The user may not.
            FailedPrecondition: It is in the trash.
        """
        document = self.state.documents.get(document_id)
        self._require(document, needs)
        if document.trashed_at is not None:
            raise FailedPrecondition(f"{document_id} is in the trash of {document.owner}")
        return document

    # Inner workings

    def _require(self, document: Document, needs: Access) -> None:
        has = access(document, self.user.email)
        if not suffices(has, needs):
            known = "has no access to" if has == "restricted" else f"is only {has} of"
            raise PermissionDenied(
                f"the user {known} {document.id}; this needs the role {needs}. Its owner is {document.owner}"
            )

    def _trashed(self, document_id: str) -> Document:
        document = self.state.documents.get(document_id)
        self._require(document, "owner")
        if document.trashed_at is None:
            raise FailedPrecondition(f"{document_id} is not in the trash")
        return document

    def _sees(self, document: Document) -> bool:
        return suffices(access(document, self.user.email), "viewer")

    def _page(self, rows: Iterable[Document], limit: int, cursor: str | None) -> Page[DocumentSummary]:
        page = paginate(sorted(rows, key=lambda row: row.updated_at)[::-1], limit, cursor)
        return Page(items=tuple(summary(row) for row in page.items), total=page.total, next_cursor=page.next_cursor)

    def _upwards(self, folder: Folder) -> Iterator[Folder]:
        """The folder and those above it, up to the root."""
        yield folder
        while folder.parent_id is not None:
            folder = self.state.folders.get(folder.parent_id)
            yield folder

    def _below(self, folder_id: str) -> Iterator[str]:
        """Ids of the folder and of all below it."""
        waiting = [self.state.folders.get(folder_id).id]
        while waiting:
            found = waiting.pop()
            yield found
            waiting += [row.id for row in self.state.folders.where(parent_id=found)]

    def _own_folder(self, folder_id: str) -> Folder:
        folder = self.state.folders.get(folder_id)
        if folder.parent_id is None:
            raise FailedPrecondition("the top of the drive can't be changed")
        if not same(folder.owner, self.user.email):
            raise PermissionDenied(f"{folder_id} belongs to {folder.owner}, who alone can change it")
        return folder

    def _name_is_free(self, name: str, parent_id: str | None, but_for: str | None = None) -> None:
        for folder in self.state.folders.where(parent_id=parent_id):
            if folder.id != but_for and folder.name.casefold() == name.casefold():
                raise AlreadyExists(f"{parent_id} already has a folder named {folder.name!r}, {folder.id}")
