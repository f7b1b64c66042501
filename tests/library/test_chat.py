"""Chat: who may read, post and change what, and what threads, mentions and unread messages mean."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compoworld_core.library.communication.chat_rows import MAX_PINS, channel_name, mentioned
from compoworld_core.services.record import Row
from compoworld_core.services.running import RunningService
from compoworld_core.services.sdk import InvalidArguments
from tests.library.conformance import START, UNIVERSE, answer, fresh, plant, refusal, rows

ME, ANN, BEN = UNIVERSE.staff[0], UNIVERSE.staff[1], UNIVERSE.staff[2]
CUSTOMER = UNIVERSE.contacts[0].email


@pytest.fixture
def chat() -> RunningService:
    return fresh("chat")


def channel(chat: RunningService, **fields: Any) -> str:
    """A channel that Ann created, with Ann alone in it."""
    row = plant(chat, "channels", **{"name": "quince", "creator_email": ANN.email, "created_at": START, **fields})
    plant(chat, "memberships", channel_id=row["id"], email=ANN.email, joined_at=START)
    return str(row["id"])


def own_channel(chat: RunningService, **fields: Any) -> str:
    return str(answer(chat, "create_channel", **{"name": "Plum Jam", **fields})["id"])


def said(chat: RunningService, channel_id: str, text: str = "Quince is ripe", **fields: Any) -> Row:
    """A message of Ann's."""
    row = {"channel_id": channel_id, "sender": ANN.email, "text": text, "sent_at": START}
    return plant(chat, "messages", **row | fields)


def found(chat: RunningService, **filters: Any) -> list[str]:
    return [item["id"] for item in answer(chat, "search_chat_messages", limit=200, **filters)["items"]]


def unread(chat: RunningService, channel_id: str) -> int:
    return int(answer(chat, "get_channel", channel_id=channel_id)["unread"])


# Private channels


def test_private_channel_is_closed_to_others(chat: RunningService) -> None:
    hidden = channel(chat, kind="private")
    message = said(chat, hidden)["id"]

    for tool, arguments in (
        ("get_channel", {"channel_id": hidden}),
        ("list_channel_messages", {"channel_id": hidden}),
        ("list_channel_members", {"channel_id": hidden}),
        ("search_chat_messages", {"channel_id": hidden}),
        ("post_channel_message", {"channel_id": hidden, "text": "Me too"}),
        ("join_channel", {"channel_id": hidden}),
        ("mark_channel_read", {"channel_id": hidden}),
        ("add_channel_member", {"channel_id": hidden, "email": ME.email}),
        ("get_chat_message", {"message_id": message}),
        ("get_chat_thread", {"message_id": message}),
        ("reply_in_chat_thread", {"message_id": message, "text": "Me too"}),
        ("add_reaction", {"message_id": message, "emoji": "tada"}),
        ("pin_chat_message", {"message_id": message}),
        ("mark_chat_message_unread", {"message_id": message}),
    ):
        assert refusal(chat, tool, **arguments) == "permission_denied", tool
    assert message not in found(chat)
    assert not answer(chat, "list_channels", query="quince")["items"]


def test_member_posts_in_a_private_channel(chat: RunningService) -> None:
    hidden = channel(chat, kind="private")
    plant(chat, "memberships", channel_id=hidden, email=ME.email, joined_at=START)

    message = answer(chat, "post_channel_message", channel_id=hidden, text="Here")
    assert message["channel_name"] == "quince"

    answer(chat, "leave_channel", channel_id=hidden)
    assert refusal(chat, "edit_chat_message", message_id=message["id"], text="Gone") == "permission_denied"


def test_public_channel_is_open_before_joining(chat: RunningService) -> None:
    open_one = channel(chat)

    assert answer(chat, "post_channel_message", channel_id=open_one, text="Hello")["sender"] == ME.email
    assert refusal(chat, "set_channel_topic", channel_id=open_one, topic="Jam") == "failed_precondition"
    answer(chat, "join_channel", channel_id=open_one)
    assert refusal(chat, "join_channel", channel_id=open_one) == "already_exists"
    assert answer(chat, "set_channel_topic", channel_id=open_one, topic="Jam")["members"] == 2


# Channels


def test_creator_is_in_the_channel_with_everybody_named_once(chat: RunningService) -> None:
    made = own_channel(chat, members=[ANN.email, ANN.email.upper(), ME.email])

    members = [row["email"] for row in answer(chat, "list_channel_members", channel_id=made)["items"]]
    assert sorted(members) == sorted([ANN.email, ME.email])
    assert refusal(chat, "create_channel", name="x", members=[CUSTOMER]) == "not_found"


def test_channel_names_are_normalised_and_unique(chat: RunningService) -> None:
    assert answer(chat, "get_channel", channel_id=own_channel(chat))["name"] == "plum-jam"
    channel(chat, kind="private")

    for taken in ("#plum  JAM", "Quince"):
        assert refusal(chat, "create_channel", name=taken) == "already_exists"
    for bad in ("#", "a/b", "--", "plum!"):
        assert refusal(chat, "create_channel", name=bad) == "invalid_arguments"


@given(st.text(max_size=100))
def test_a_channel_name_is_its_own_normal_form(text: str) -> None:
    try:
        name = channel_name(text)
    except InvalidArguments:
        return
    assert channel_name(name) == name


def test_archived_channel_can_be_read_and_nothing_else(chat: RunningService) -> None:
    made = own_channel(chat)
    own = answer(chat, "post_channel_message", channel_id=made, text="Last words")["id"]
    answer(chat, "archive_channel", channel_id=made)

    for tool, arguments in (
        ("post_channel_message", {"channel_id": made, "text": "More"}),
        ("reply_in_chat_thread", {"message_id": own, "text": "More"}),
        ("edit_chat_message", {"message_id": own, "text": "More"}),
        ("delete_chat_message", {"message_id": own}),
        ("add_reaction", {"message_id": own, "emoji": "wave"}),
        ("pin_chat_message", {"message_id": own}),
        ("set_channel_topic", {"channel_id": made, "topic": "Over"}),
        ("rename_channel", {"channel_id": made, "name": "over"}),
        ("add_channel_member", {"channel_id": made, "email": ANN.email}),
        ("leave_channel", {"channel_id": made}),
        ("archive_channel", {"channel_id": made}),
    ):
        assert refusal(chat, tool, **arguments) == "failed_precondition", tool
    assert found(chat, channel_id=made) == [own]
    assert made not in [row["id"] for row in answer(chat, "list_channels", limit=200)["items"]]

    answer(chat, "unarchive_channel", channel_id=made)
    assert answer(chat, "post_channel_message", channel_id=made, text="Back")["channel_id"] == made


def test_only_the_creator_renames_archives_and_removes(chat: RunningService) -> None:
    other = channel(chat)
    plant(chat, "memberships", channel_id=other, email=ME.email, joined_at=START)

    for tool, arguments in (
        ("rename_channel", {"name": "plum"}),
        ("archive_channel", {}),
        ("remove_channel_member", {"email": ANN.email}),
    ):
        assert refusal(chat, tool, channel_id=other, **arguments) == "permission_denied"


def test_removed_member_is_gone(chat: RunningService) -> None:
    made = own_channel(chat, kind="private", members=[ANN.email])

    assert refusal(chat, "remove_channel_member", channel_id=made, email=ME.email) == "failed_precondition"
    answer(chat, "remove_channel_member", channel_id=made, email=ANN.email)
    assert refusal(chat, "remove_channel_member", channel_id=made, email=ANN.email) == "not_found"
    assert answer(chat, "add_channel_member", channel_id=made, email=ANN.email)["email"] == ANN.email
    assert refusal(chat, "add_channel_member", channel_id=made, email=CUSTOMER) == "not_found"


def test_general_channel_keeps_everybody(chat: RunningService) -> None:
    general = next(row["id"] for row in rows(chat.state)["channels"] if row["is_general"])

    assert answer(chat, "get_channel", channel_id=general)["members"] == len(UNIVERSE.staff)
    assert refusal(chat, "leave_channel", channel_id=general) == "failed_precondition"


# Messages


def test_reply_to_a_reply_stays_in_the_thread(chat: RunningService) -> None:
    first = said(chat, channel(chat))["id"]
    reply = answer(chat, "reply_in_chat_thread", message_id=first, text="Yes")
    second = answer(chat, "reply_in_chat_thread", message_id=reply["id"], text="Very")

    assert reply["thread_id"] == second["thread_id"] == first
    thread = answer(chat, "get_chat_thread", message_id=second["id"])
    assert [row["id"] for row in thread["replies"]] == [reply["id"], second["id"]]
    assert (thread["message"]["replies"], thread["participants"]) == (2, [ANN.email, ME.email])
    listed = answer(chat, "list_channel_messages", channel_id=reply["channel_id"], leave_out_replies=True)["items"]
    assert [row["id"] for row in listed] == [first]


def test_only_own_messages_are_changed(chat: RunningService) -> None:
    other = said(chat, channel(chat))["id"]

    assert refusal(chat, "edit_chat_message", message_id=other, text="Plum") == "permission_denied"
    assert refusal(chat, "delete_chat_message", message_id=other) == "permission_denied"


def test_edit_shows_and_mentions_anew(chat: RunningService) -> None:
    message = answer(chat, "post_channel_message", channel_id=channel(chat), text=f"@{ANN.username} look")
    edited = answer(chat, "edit_chat_message", message_id=message["id"], text=f"@{BEN.username} look")

    assert (message["mentions"], message["edited_at"]) == ([ANN.email], None)
    assert (edited["mentions"], edited["sent_at"]) == ([BEN.email], message["sent_at"])
    assert edited["edited_at"] > edited["sent_at"]
    assert message["id"] in found(chat, mentions=BEN.email)
    assert message["id"] not in found(chat, mentions=ANN.email)


def test_message_with_replies_is_not_deleted(chat: RunningService) -> None:
    own = answer(chat, "post_channel_message", channel_id=channel(chat), text="Ripe?")["id"]
    reply = answer(chat, "reply_in_chat_thread", message_id=own, text="Yes")["id"]
    answer(chat, "add_reaction", message_id=own, emoji="eyes")
    assert refusal(chat, "delete_chat_message", message_id=own) == "failed_precondition"

    for message in (reply, own):
        answer(chat, "delete_chat_message", message_id=message)
    assert refusal(chat, "get_chat_message", message_id=own) == "not_found"
    assert not [row for row in rows(chat.state)["reactions"] if row["message_id"] == own]


def test_reactions_count_people(chat: RunningService) -> None:
    message = said(chat, channel(chat))["id"]
    plant(chat, "reactions", message_id=message, email=ANN.email, emoji="tada")

    shown = answer(chat, "add_reaction", message_id=message, emoji="tada")
    assert shown["reactions"] == [{"emoji": "tada", "people": [ANN.email, ME.email]}]
    assert refusal(chat, "add_reaction", message_id=message, emoji="tada") == "already_exists"
    assert answer(chat, "remove_reaction", message_id=message, emoji="tada")["reactions"][0]["people"] == [ANN.email]
    assert refusal(chat, "remove_reaction", message_id=message, emoji="tada") == "not_found"


def test_pins_need_membership_and_are_limited(chat: RunningService) -> None:
    place = channel(chat)
    message = said(chat, place)["id"]
    assert refusal(chat, "pin_chat_message", message_id=message) == "failed_precondition"

    answer(chat, "join_channel", channel_id=place)
    assert answer(chat, "pin_chat_message", message_id=message)["pinned_by"] == ME.email
    assert refusal(chat, "pin_chat_message", message_id=message) == "failed_precondition"
    pinned = answer(chat, "list_channel_messages", channel_id=place, pinned_only=True)["items"]
    assert [row["id"] for row in pinned] == [message]

    for _ in range(MAX_PINS - 1):
        said(chat, place, pinned_by=ANN.email)
    assert refusal(chat, "pin_chat_message", message_id=said(chat, place)["id"]) == "limit_exceeded"
    answer(chat, "unpin_chat_message", message_id=message)
    assert refusal(chat, "unpin_chat_message", message_id=message) == "failed_precondition"


@pytest.mark.parametrize(
    ("text", "people"),
    [
        ("@ann", ["ann"]),
        ("Hi @ANN, and @bo.lee.", ["ann", "bo"]),
        ("@ann @bo.lee @ann", ["ann", "bo"]),
        ("mail ann@ann or @@ann", []),
        ("@anna @an", []),
        ("(@ann)", ["ann"]),
    ],
    ids=str,
)
def test_mentions_are_whole_usernames(text: str, people: list[str]) -> None:
    assert list(mentioned(text, {"ann": "ann", "bo.lee": "bo"})) == people


@settings(max_examples=50)
@given(st.lists(st.sampled_from([person.username for person in UNIVERSE.staff]), unique=True, max_size=6))
def test_everybody_mentioned_is_found_in_order(names: list[str]) -> None:
    addresses = {person.username: person.email for person in UNIVERSE.staff}

    assert mentioned(", ".join(f"@{name}" for name in names), addresses) == tuple(addresses[name] for name in names)


@pytest.mark.parametrize(
    ("filters", "hit"),
    [
        ({"query": "RIPE quince"}, True),
        ({"query": "ripe plum"}, False),
        ({"sender": ANN.email.upper()}, True),
        ({"sender": BEN.email}, False),
        ({"after": "2026-02-12"}, True),
        ({"after": "2026-02-13"}, False),
        ({"before": "2026-02-12"}, False),
        ({"before": "2026-02-13"}, True),
    ],
    ids=str,
)
def test_search_applies_each_filter(chat: RunningService, filters: dict[str, Any], hit: bool) -> None:
    message = said(chat, channel(chat))["id"]

    assert (message in found(chat, **filters)) is hit


# Unread


def test_reading_leaves_messages_unread(chat: RunningService) -> None:
    place = channel(chat)
    message = said(chat, place)["id"]
    answer(chat, "post_channel_message", channel_id=place, text="Mine counts as read")

    for tool, key, value in (
        ("list_channel_messages", "channel_id", place),
        ("get_chat_message", "message_id", message),
        ("get_chat_thread", "message_id", message),
    ):
        answer(chat, tool, **{key: value})
    assert unread(chat, place) == 1

    assert answer(chat, "mark_channel_read", channel_id=place) == {"marked": 1}
    assert answer(chat, "mark_channel_read", channel_id=place) == {"marked": 0}
    answer(chat, "mark_chat_message_unread", message_id=message)
    unread_now = answer(chat, "list_channel_messages", channel_id=place, unread_only=True)["items"]
    assert [row["id"] for row in unread_now] == [message]


def test_own_messages_are_always_read(chat: RunningService) -> None:
    own = answer(chat, "post_channel_message", channel_id=channel(chat), text="Mine")["id"]

    assert refusal(chat, "mark_chat_message_unread", message_id=own) == "failed_precondition"


# Direct messages


def test_direct_message_goes_to_a_colleague(chat: RunningService) -> None:
    sent = answer(chat, "send_direct_message", recipient=ANN.email.upper(), text="Psst")

    assert (sent["sender"], sent["recipient"]) == (ME.email, ANN.email)
    assert answer(chat, "list_direct_conversations", limit=1)["items"][0]["last_text"] == "Psst"
    assert refusal(chat, "send_direct_message", recipient=CUSTOMER, text="Psst") == "not_found"
    assert refusal(chat, "send_direct_message", recipient=ME.email, text="Psst") == "invalid_arguments"
    assert refusal(chat, "send_direct_message", recipient=ANN.email, text=" \n") == "invalid_arguments"


def test_direct_messages_of_others_stay_between_them(chat: RunningService) -> None:
    row = {"sender": ANN.email, "recipient": BEN.email, "text": "About quince", "sent_at": START}
    secret = plant(chat, "direct_messages", **row)["id"]

    assert not answer(chat, "list_direct_messages", query="quince")["items"]
    assert refusal(chat, "edit_direct_message", message_id=secret, text="Plum") == "permission_denied"


def test_direct_messages_are_read_when_marked(chat: RunningService) -> None:
    answer(chat, "mark_direct_messages_read", person_email=ANN.email)
    row = {"sender": ANN.email, "recipient": ME.email, "text": "Quince?", "sent_at": START}
    received = plant(chat, "direct_messages", **row)["id"]

    unread_now = answer(chat, "list_direct_messages", person_email=ANN.email, unread_only=True)["items"]
    assert [item["id"] for item in unread_now] == [received]
    assert answer(chat, "mark_direct_messages_read", person_email=ANN.email) == {"marked": 1}
    assert not answer(chat, "list_direct_messages", person_email=ANN.email, unread_only=True)["items"]


def test_own_direct_message_is_edited_and_deleted(chat: RunningService) -> None:
    sent = answer(chat, "send_direct_message", recipient=ANN.email, text="Psst")["id"]

    assert answer(chat, "edit_direct_message", message_id=sent, text="Hello")["edited_at"]
    answer(chat, "delete_direct_message", message_id=sent)
    assert refusal(chat, "delete_direct_message", message_id=sent) == "not_found"


def test_status_is_the_users_own(chat: RunningService) -> None:
    answer(chat, "set_chat_status", status="Tasting jam")

    people = answer(chat, "list_chat_people", query=ME.email)["items"]
    assert [row["status"] for row in people] == ["Tasting jam"]
