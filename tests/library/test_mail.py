"""Mail: what sending, answering, filing and deleting mean."""

from __future__ import annotations

from typing import Any

import pytest

from compoworld_core.services.record import Row
from compoworld_core.services.running import RunningService
from tests.library.conformance import START, UNIVERSE, answer, fresh, plant, refusal, rows

ME = UNIVERSE.user.email
BUYER = UNIVERSE.contacts[0].email
COLLEAGUE = UNIVERSE.staff[1].email
OTHER = UNIVERSE.staff[2].email


@pytest.fixture
def mail() -> RunningService:
    return fresh("mail")


@pytest.fixture
def received(mail: RunningService) -> Row:
    """A message from the buyer to the user and a colleague, which arrived just now."""
    return plant(
        mail,
        "messages",
        sender=BUYER,
        to=(ME, COLLEAGUE),
        cc=(OTHER,),
        subject="Crate of Quince Jam",
        body="Where is our crate of quince jam?",
        sent_at=START,
    )


def found(mail: RunningService, **filters: Any) -> list[str]:
    return [item["id"] for item in answer(mail, "search_messages", limit=200, **filters)["items"]]


# Reading


def test_reading_leaves_a_message_unread(mail: RunningService, received: Row) -> None:
    answer(mail, "get_message", message_id=received["id"])
    assert answer(mail, "list_messages", unread_only=True)["items"][0]["id"] == received["id"]

    answer(mail, "mark_message_read", message_id=received["id"])
    assert answer(mail, "get_message", message_id=received["id"])["is_read"]


def test_messages_are_listed_newest_first(mail: RunningService) -> None:
    times = [item["sent_at"] for item in answer(mail, "list_messages", limit=200)["items"]]

    assert times == sorted(times, reverse=True)


@pytest.mark.parametrize(
    ("filters", "hit"),
    [
        ({"query": "QUINCE crate"}, True),
        ({"query": "quince marmalade"}, False),
        ({"query": BUYER.split("@")[0]}, True),
        ({"sender": BUYER.upper()}, True),
        ({"sender": COLLEAGUE}, False),
        ({"recipient": OTHER}, True),
        ({"recipient": BUYER}, False),
        ({"folder_id": "inbox"}, True),
        ({"folder_id": "archive"}, False),
        ({"label": "jam"}, False),
        ({"after": "2026-02-12"}, True),
        ({"after": "2026-02-13"}, False),
        ({"before": "2026-02-12"}, False),
        ({"before": "2026-02-13"}, True),
        ({"unread_only": True}, True),
    ],
    ids=str,
)
def test_search_applies_each_filter(mail: RunningService, received: Row, filters: dict[str, Any], hit: bool) -> None:
    assert (received["id"] in found(mail, **filters)) is hit


def test_search_skips_the_trash_unless_it_is_named(mail: RunningService, received: Row) -> None:
    answer(mail, "delete_message", message_id=received["id"])

    assert not found(mail, query="quince")
    assert found(mail, query="quince", folder_id="trash") == [received["id"]]


# Conversations


def test_message_without_conversation_starts_its_own(mail: RunningService, received: Row) -> None:
    assert received["thread_id"] is None
    assert answer(mail, "get_message", message_id=received["id"])["thread_id"] == received["id"]
    assert answer(mail, "list_threads", limit=1)["items"][0]["id"] == received["id"]


def test_reply_goes_to_the_sender_and_joins_the_conversation(mail: RunningService, received: Row) -> None:
    reply = answer(mail, "reply_to_message", message_id=received["id"], body="On its way.")

    assert (reply["to"], reply["cc"]) == ([BUYER], [])
    assert (reply["sender"], reply["folder_id"]) == (ME, "sent")
    assert (reply["subject"], reply["in_reply_to"]) == ("Re: Crate of Quince Jam", received["id"])
    thread = answer(mail, "get_thread", thread_id=reply["id"])
    assert [item["id"] for item in thread["messages"]] == [received["id"], reply["id"]]
    assert thread["id"] == reply["thread_id"] == received["id"]


def test_reply_to_all_copies_everybody_but_the_user(mail: RunningService, received: Row) -> None:
    reply = answer(mail, "reply_to_message", message_id=received["id"], body="Soon.", reply_all=True, cc=[BUYER])

    assert reply["to"] == [BUYER]
    assert reply["cc"] == [COLLEAGUE, OTHER]


def test_reply_to_an_own_message_goes_to_its_recipients_again(mail: RunningService, received: Row) -> None:
    first = answer(mail, "reply_to_message", message_id=received["id"], body="Soon.")
    second = answer(mail, "reply_to_message", message_id=first["id"], body="Still soon.")

    assert second["to"] == [BUYER]
    assert second["subject"] == first["subject"]


def test_forwarded_message_carries_the_original(mail: RunningService, received: Row) -> None:
    sent = answer(mail, "forward_message", message_id=received["id"], to=[COLLEAGUE], comment="Can you look?")

    assert sent["subject"] == "Fwd: Crate of Quince Jam"
    assert sent["body"].startswith("Can you look?")
    assert sent["body"].endswith(received["body"])
    assert f"From: {BUYER}" in sent["body"]


def test_conversation_outlives_its_first_message(mail: RunningService, received: Row) -> None:
    reply = answer(mail, "reply_to_message", message_id=received["id"], body="Soon.")
    answer(mail, "delete_message", message_id=received["id"])
    answer(mail, "delete_message_permanently", message_id=received["id"])

    thread = answer(mail, "get_thread", thread_id=received["id"])
    assert [item["id"] for item in thread["messages"]] == [reply["id"]]
    assert thread["messages"][0]["in_reply_to"] is None


# Sending


def test_every_recipient_gets_one_copy(mail: RunningService) -> None:
    sent = answer(
        mail, "send_message", to=[BUYER, BUYER.upper()], cc=[OTHER, BUYER], bcc=[OTHER], subject="Jam", body="Sent."
    )

    assert (sent["to"], sent["cc"], sent["bcc"]) == ([BUYER], [OTHER], [])


def test_message_needs_a_recipient(mail: RunningService) -> None:
    assert refusal(mail, "send_message", to=[], subject="Jam", body="") == "invalid_arguments"


def test_too_many_recipients_are_refused(mail: RunningService) -> None:
    crowd = [f"person{number}@example.com" for number in range(40)]

    assert refusal(mail, "send_message", to=crowd, cc=[f"x{item}" for item in crowd], subject="J", body="") == (
        "limit_exceeded"
    )


def test_sent_messages_are_stamped_by_the_clock(mail: RunningService) -> None:
    times = [
        answer(mail, "send_message", to=[BUYER], subject="Jam", body=str(number))["sent_at"] for number in range(2)
    ]

    assert times == ["2026-02-12T08:30:00Z", "2026-02-12T08:30:01Z"]


# Drafts


def test_draft_is_sent_once(mail: RunningService) -> None:
    draft = answer(mail, "create_draft", to=[BUYER], subject="Jam", body="Almost done.")
    sent = answer(mail, "send_draft", draft_id=draft["id"])

    assert (sent["to"], sent["body"]) == ([BUYER], "Almost done.")
    assert refusal(mail, "send_draft", draft_id=draft["id"]) == "not_found"
    assert refusal(mail, "update_draft", draft_id=draft["id"], body="No, wait") == "not_found"


def test_draft_without_recipient_or_subject_is_not_sent(mail: RunningService) -> None:
    draft = answer(mail, "create_draft", body="Hm.")["id"]
    assert refusal(mail, "send_draft", draft_id=draft) == "failed_precondition"

    answer(mail, "update_draft", draft_id=draft, to=[BUYER])
    assert refusal(mail, "send_draft", draft_id=draft) == "failed_precondition"

    answer(mail, "update_draft", draft_id=draft, subject="Hm")
    assert answer(mail, "send_draft", draft_id=draft)["body"] == "Hm."


def test_draft_of_an_answer_takes_recipient_and_conversation(mail: RunningService, received: Row) -> None:
    draft = answer(mail, "create_draft", body="Soon.", in_reply_to=received["id"])
    assert (draft["to"], draft["subject"]) == ([BUYER], "Re: Crate of Quince Jam")

    assert answer(mail, "send_draft", draft_id=draft["id"])["thread_id"] == received["id"]


def test_draft_update_needs_something_to_change(mail: RunningService) -> None:
    draft = answer(mail, "create_draft", body="Hm.")["id"]

    assert refusal(mail, "update_draft", draft_id=draft) == "invalid_arguments"


# Filing


def test_deleting_takes_two_steps(mail: RunningService, received: Row) -> None:
    message = received["id"]
    assert refusal(mail, "delete_message_permanently", message_id=message) == "failed_precondition"

    assert answer(mail, "delete_message", message_id=message)["folder_id"] == "trash"
    assert refusal(mail, "delete_message", message_id=message) == "failed_precondition"
    assert refusal(mail, "move_message", message_id=message, folder_id="inbox") == "failed_precondition"

    answer(mail, "delete_message_permanently", message_id=message)
    assert refusal(mail, "get_message", message_id=message) == "not_found"


def test_restored_message_goes_where_it_belongs(mail: RunningService, received: Row) -> None:
    sent = answer(mail, "send_message", to=[BUYER], subject="Jam", body="")
    for message in (received, sent):
        answer(mail, "archive_message", message_id=message["id"])
        answer(mail, "delete_message", message_id=message["id"])

    folders = [answer(mail, "restore_message", message_id=item["id"])["folder_id"] for item in (received, sent)]
    assert folders == ["inbox", "sent"]


def test_empty_trash_clears_the_trash_only(mail: RunningService, received: Row) -> None:
    answer(mail, "delete_message", message_id=received["id"])
    kept = [row for row in rows(mail.state)["messages"] if row["folder_id"] != "trash"]
    trashed = answer(mail, "list_messages", folder_id="trash")["total"]

    assert answer(mail, "empty_trash") == {"deleted": trashed}
    assert [row["id"] for row in rows(mail.state)["messages"]] == [row["id"] for row in kept]


def test_sent_and_received_mail_keep_apart(mail: RunningService, received: Row) -> None:
    sent = answer(mail, "send_message", to=[BUYER], subject="Jam", body="")["id"]

    assert refusal(mail, "move_message", message_id=sent, folder_id="inbox") == "failed_precondition"
    assert refusal(mail, "move_message", message_id=received["id"], folder_id="sent") == "failed_precondition"
    assert refusal(mail, "mark_message_unread", message_id=sent) == "failed_precondition"


def test_labels_are_put_on_once(mail: RunningService, received: Row) -> None:
    message = received["id"]
    for _ in range(2):
        labels = answer(mail, "label_message", message_id=message, label="jam")["labels"]
    assert labels == ["jam"]

    answer(mail, "unlabel_message", message_id=message, label="jam")
    assert refusal(mail, "unlabel_message", message_id=message, label="jam") == "failed_precondition"


def test_folders_have_distinct_names_and_must_be_empty_to_go(mail: RunningService, received: Row) -> None:
    folder = answer(mail, "create_mail_folder", name="Jam")["id"]
    assert refusal(mail, "create_mail_folder", name="JAM") == "already_exists"
    assert refusal(mail, "create_mail_folder", name="inbox") == "already_exists"

    answer(mail, "move_message", message_id=received["id"], folder_id=folder)
    assert refusal(mail, "delete_mail_folder", folder_id=folder) == "failed_precondition"

    answer(mail, "move_message", message_id=received["id"], folder_id="inbox")
    answer(mail, "delete_mail_folder", folder_id=folder)
    assert refusal(mail, "list_messages", folder_id=folder) == "not_found"


def test_system_folders_stay(mail: RunningService) -> None:
    assert refusal(mail, "delete_mail_folder", folder_id="archive") == "failed_precondition"
    assert refusal(mail, "rename_mail_folder", folder_id="inbox", name="Mine") == "failed_precondition"


def test_address_is_saved_once(mail: RunningService) -> None:
    assert refusal(mail, "save_address", name="Somebody", email=COLLEAGUE.upper()) == "already_exists"

    answer(mail, "save_address", name="Zadie Quill", email="zadie@quill.example")
    hits = answer(mail, "search_address_book", query="quill zadie")["items"]
    assert [item["email"] for item in hits] == ["zadie@quill.example"]
