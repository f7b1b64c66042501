"""The drive: who may do what, and what a change replaces."""

from __future__ import annotations

from typing import Any

import pytest

from compoworld_core.services.record import Row
from compoworld_core.services.running import RunningService
from tests.library.conformance import START, UNIVERSE, answer, fresh, plant, refusal

ME = UNIVERSE.user.email
OWNER = UNIVERSE.staff[1].email
OTHER = UNIVERSE.staff[2].email

Step = tuple[str, dict[str, Any]]

READ: Step = ("get_document", {})
COMMENT: Step = ("add_document_comment", {"text": "Nice."})
EDIT: Step = ("update_document", {"text": "New."})
TRASH: Step = ("trash_document", {})


@pytest.fixture
def drive() -> RunningService:
    return fresh("drive")


@pytest.fixture
def mine(drive: RunningService) -> Row:
    return plant(drive, "documents", title="Quince jam", text="Boil for an hour.", owner=ME, updated_at=START)


def theirs(drive: RunningService, **fields: Any) -> str:
    given = {"title": "Quince jelly", "text": "Boil.", "owner": OWNER, "updated_at": START, **fields}
    return str(plant(drive, "documents", **given)["id"])


# Permission


@pytest.mark.parametrize(
    ("fields", "allowed"),
    [
        ({"general_access": "restricted"}, []),
        ({}, [READ]),
        ({"general_access": "commenter"}, [READ, COMMENT]),
        ({"general_access": "editor"}, [READ, COMMENT, EDIT]),
        ({"general_access": "restricted", "shared_with": [{"email": ME, "role": "viewer"}]}, [READ]),
        ({"shared_with": [{"email": ME.upper(), "role": "editor"}]}, [READ, COMMENT, EDIT]),
        ({"general_access": "restricted", "shared_with": [{"email": OTHER, "role": "editor"}]}, []),
        ({"general_access": "commenter", "shared_with": [{"email": ME, "role": "viewer"}]}, [READ, COMMENT]),
        ({"owner": ME, "general_access": "restricted"}, [READ, COMMENT, EDIT, TRASH]),
    ],
    ids=str,
)
def test_role_decides_what_is_allowed(drive: RunningService, fields: dict[str, Any], allowed: list[Step]) -> None:
    document = theirs(drive, **fields)

    for step in (READ, COMMENT, EDIT, TRASH):
        tool, arguments = step
        if step in allowed:
            answer(drive, tool, document_id=document, **arguments)
        else:
            assert refusal(drive, tool, document_id=document, **arguments) == "permission_denied"


def test_restricted_documents_appear_in_no_list(drive: RunningService) -> None:
    hidden = theirs(drive, general_access="restricted")
    shown = theirs(drive)

    for tool, arguments in (("search_documents", {"query": "quince"}), ("list_documents", {"folder_id": "root"})):
        listed = [item["id"] for item in answer(drive, tool, **arguments)["items"]]
        assert shown in listed
        assert hidden not in listed


def test_sharing_again_changes_the_role(drive: RunningService, mine: Row) -> None:
    document = mine["id"]
    answer(drive, "share_document", document_id=document, email=OTHER, role="viewer")
    assert refusal(drive, "share_document", document_id=document, email=OTHER, role="viewer") == "already_exists"

    shared = answer(drive, "share_document", document_id=document, email=OTHER, role="editor")
    assert shared["shared_with"] == [{"email": OTHER, "role": "editor"}]

    answer(drive, "unshare_document", document_id=document, email=OTHER)
    assert refusal(drive, "unshare_document", document_id=document, email=OTHER) == "failed_precondition"
    assert refusal(drive, "share_document", document_id=document, email=ME, role="viewer") == "failed_precondition"


def test_ownership_goes_to_an_editor_and_leaves_an_editor(drive: RunningService, mine: Row) -> None:
    document = mine["id"]
    assert refusal(drive, "transfer_document", document_id=document, new_owner=OTHER) == "failed_precondition"

    answer(drive, "share_document", document_id=document, email=OTHER, role="editor")
    moved = answer(drive, "transfer_document", document_id=document, new_owner=OTHER)

    assert (moved["owner"], moved["shared_with"]) == (OTHER, [{"email": ME, "role": "editor"}])
    assert refusal(drive, "trash_document", document_id=document) == "permission_denied"
    answer(drive, "append_to_document", document_id=document, text="Stir.")


# Revisions


def test_every_edit_keeps_what_it_replaces(drive: RunningService, mine: Row) -> None:
    document = mine["id"]
    answer(drive, "append_to_document", document_id=document, text="Stir.")
    answer(drive, "rename_document", document_id=document, title="Quince jam, improved")

    now = answer(drive, "get_document", document_id=document)
    assert (now["revision"], now["text"]) == (3, "Boil for an hour.\n\nStir.")
    past = answer(drive, "list_document_revisions", document_id=document)["items"]
    assert [(item["number"], item["title"]) for item in past] == [(2, "Quince jam"), (1, "Quince jam")]

    back = answer(drive, "restore_document_revision", revision_id=past[-1]["id"])
    assert (back["revision"], back["title"], back["text"]) == (4, "Quince jam", "Boil for an hour.")


def test_edit_of_a_stale_revision_is_refused(drive: RunningService, mine: Row) -> None:
    document = mine["id"]
    answer(drive, "update_document", document_id=document, text="Boil for two hours.", if_revision=1)

    for tool in ("update_document", "append_to_document"):
        assert refusal(drive, tool, document_id=document, text="No.", if_revision=1) == "failed_precondition"


def test_edit_without_effect_is_refused(drive: RunningService, mine: Row) -> None:
    assert refusal(drive, "update_document", document_id=mine["id"], text=mine["text"]) == "failed_precondition"
    assert refusal(drive, "rename_document", document_id=mine["id"], title=mine["title"]) == "failed_precondition"


def test_edit_names_its_author(drive: RunningService) -> None:
    document = theirs(drive, general_access="editor")

    assert answer(drive, "update_document", document_id=document, text="Simmer.")["updated_by"] == ME
    past = answer(drive, "list_document_revisions", document_id=document)["items"]
    assert [item["author"] for item in past] == [OWNER]


def test_too_long_a_document_is_refused(drive: RunningService) -> None:
    document = theirs(drive, text="x" * 99_990, general_access="editor")

    assert refusal(drive, "append_to_document", document_id=document, text="y" * 20) == "limit_exceeded"


# Finding


@pytest.mark.parametrize(
    ("filters", "hit"),
    [
        ({"query": "HOUR quince"}, True),
        ({"query": "quince plum"}, False),
        ({"owner": ME}, True),
        ({"owner": OWNER}, False),
        ({"kind": "document"}, True),
        ({"kind": "policy"}, False),
        ({"tag": "jam"}, False),
        ({"folder_id": "root"}, True),
        ({"folder_id": "fol_1001"}, False),
        ({"updated_after": "2026-02-12"}, True),
        ({"updated_before": "2026-02-12"}, False),
    ],
    ids=str,
)
def test_search_applies_each_filter(drive: RunningService, mine: Row, filters: dict[str, Any], hit: bool) -> None:
    found = answer(drive, "search_documents", limit=200, **filters)["items"]

    assert (mine["id"] in [item["id"] for item in found]) is hit


def test_search_in_a_folder_reaches_the_folders_below(drive: RunningService, mine: Row) -> None:
    outer = answer(drive, "create_folder", name="Recipes")["id"]
    inner = answer(drive, "create_folder", name="Sweet", parent_id=outer)["id"]
    answer(drive, "move_document", document_id=mine["id"], folder_id=inner)

    assert answer(drive, "search_documents", folder_id=outer)["total"] == 1
    assert answer(drive, "list_documents", folder_id=outer)["total"] == 0
    assert answer(drive, "get_folder", folder_id=inner)["path"] == "Company drive / Recipes / Sweet"


def test_last_updated_document_comes_first(drive: RunningService) -> None:
    times = [item["updated_at"] for item in answer(drive, "search_documents", limit=200)["items"]]

    assert times == sorted(times, reverse=True)


# Folders and trash


def test_folder_is_never_moved_below_itself(drive: RunningService) -> None:
    outer = answer(drive, "create_folder", name="Recipes")["id"]
    inner = answer(drive, "create_folder", name="Sweet", parent_id=outer)["id"]

    for target in (outer, inner):
        assert refusal(drive, "move_folder", folder_id=outer, parent_id=target) == "failed_precondition"
    assert answer(drive, "move_folder", folder_id=inner, parent_id="root")["parent_id"] == "root"


def test_folder_must_be_empty_to_go(drive: RunningService, mine: Row) -> None:
    folder = answer(drive, "create_folder", name="Recipes")["id"]
    answer(drive, "move_document", document_id=mine["id"], folder_id=folder)
    assert refusal(drive, "delete_folder", folder_id=folder) == "failed_precondition"

    answer(drive, "trash_document", document_id=mine["id"])
    assert refusal(drive, "delete_folder", folder_id=folder) == "failed_precondition"

    answer(drive, "delete_document_permanently", document_id=mine["id"])
    answer(drive, "delete_folder", folder_id=folder)


def test_folder_names_are_distinct_in_one_place(drive: RunningService) -> None:
    recipes = answer(drive, "create_folder", name="Recipes")["id"]

    assert refusal(drive, "create_folder", name="recipes") == "already_exists"
    inner = answer(drive, "create_folder", name="Recipes", parent_id=recipes)["id"]
    assert refusal(drive, "move_folder", folder_id=inner, parent_id="root") == "already_exists"


def test_folders_of_others_and_the_top_stay(drive: RunningService) -> None:
    folder = plant(drive, "folders", name="Theirs", owner=OWNER)["id"]

    assert refusal(drive, "rename_folder", folder_id=folder, name="Mine") == "permission_denied"
    assert refusal(drive, "delete_folder", folder_id=folder) == "permission_denied"
    assert refusal(drive, "rename_folder", folder_id="root", name="Mine") == "failed_precondition"


def test_trashed_document_can_only_be_restored_or_deleted(drive: RunningService, mine: Row) -> None:
    document = mine["id"]
    answer(drive, "append_to_document", document_id=document, text="Stir.")
    answer(drive, "add_document_comment", document_id=document, text="Which pot?")
    assert refusal(drive, "delete_document_permanently", document_id=document) == "failed_precondition"

    answer(drive, "trash_document", document_id=document)
    assert refusal(drive, "get_document", document_id=document) == "failed_precondition"
    assert refusal(drive, "update_document", document_id=document, text="No.") == "failed_precondition"
    assert document in [item["id"] for item in answer(drive, "list_trashed_documents")["items"]]

    answer(drive, "restore_document", document_id=document)
    assert refusal(drive, "restore_document", document_id=document) == "failed_precondition"

    answer(drive, "trash_document", document_id=document)
    answer(drive, "delete_document_permanently", document_id=document)
    assert refusal(drive, "get_document", document_id=document) == "not_found"


def test_copy_belongs_to_the_user_and_is_shared_with_nobody(drive: RunningService) -> None:
    copy = answer(drive, "copy_document", document_id=theirs(drive, tags=["jam"]))

    assert (copy["owner"], copy["shared_with"], copy["general_access"]) == (ME, [], "restricted")
    assert (copy["title"], copy["tags"], copy["revision"]) == ("Copy of Quince jelly", ["jam"], 1)


# Comments


def test_comment_is_settled_once(drive: RunningService, mine: Row) -> None:
    comment = answer(drive, "add_document_comment", document_id=mine["id"], text="Which pot?")["id"]
    assert answer(drive, "resolve_document_comment", comment_id=comment)["resolved_by"] == ME

    assert refusal(drive, "resolve_document_comment", comment_id=comment) == "failed_precondition"
    assert answer(drive, "list_document_comments", document_id=mine["id"])["total"] == 0
    assert answer(drive, "list_document_comments", document_id=mine["id"], include_resolved=True)["total"] == 1


def test_empty_comment_is_refused(drive: RunningService, mine: Row) -> None:
    assert refusal(drive, "add_document_comment", document_id=mine["id"], text="  ") == "failed_precondition"
