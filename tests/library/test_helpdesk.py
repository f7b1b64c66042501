"""The helpdesk's own promises: a status machine, due times that follow priorities and pauses, ratings at the end."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compoworld_core.services.running import RunningService
from tests.library.conformance import START, UNIVERSE, answer, fresh, refusal, rows

ME = UNIVERSE.user.email
BUYER, OTHER = UNIVERSE.contacts[0], UNIVERSE.contacts[-1]
HOURS = {"low": (24, 120), "normal": (8, 72), "high": (4, 24), "urgent": (1, 8)}


@pytest.fixture
def desk() -> RunningService:
    return fresh("helpdesk")


def new_ticket(running: RunningService, **fields: Any) -> str:
    given_fields = {
        "requester_email": BUYER.email,
        "requester_name": BUYER.name,
        "organisation": BUYER.organisation,
        "subject": "Lamp flickers",
        "category": "hardware",
        **fields,
    }
    ticket_id: str = answer(running, "create_ticket", **given_fields)["id"]
    return ticket_id


def free_agent(running: RunningService, *, team: str | None = None) -> str:
    agents = answer(running, "list_helpdesk_agents", limit=200, team=team)["items"]
    email: str = next(row["email"] for row in agents if row["unsolved_tickets"] + 2 < row["capacity"])
    return email


def open_ticket(running: RunningService, **fields: Any) -> str:
    return new_ticket(running, assignee_email=free_agent(running), **fields)


def pending_ticket(running: RunningService) -> str:
    ticket_id = open_ticket(running)
    answer(running, "reply_to_ticket", ticket_id=ticket_id, body="Which colour?")
    answer(running, "set_ticket_pending", ticket_id=ticket_id)
    return ticket_id


def solved_ticket(running: RunningService) -> str:
    ticket_id = open_ticket(running)
    answer(running, "solve_ticket", ticket_id=ticket_id, resolution="New bulb")
    return ticket_id


def closed_ticket(running: RunningService) -> str:
    ticket_id = solved_ticket(running)
    answer(running, "close_ticket", ticket_id=ticket_id)
    return ticket_id


MAKERS = {
    "new": new_ticket,
    "open": open_ticket,
    "pending": pending_ticket,
    "solved": solved_ticket,
    "closed": closed_ticket,
}


def ticket(running: RunningService, ticket_id: str) -> dict[str, Any]:
    row: dict[str, Any] = answer(running, "get_ticket", ticket_id=ticket_id)
    return row


def age(running: RunningService, ticket_id: str, **fields: Any) -> None:
    """Put times of a ticket into the past, as a planted row has them."""
    running.state.tables["tickets"].update(ticket_id, **fields)
    running.state.commit(counted=False)


def moment(text: str) -> datetime:
    return datetime.fromisoformat(text)


# Start state


def test_all_staff_are_agents_and_every_team_has_a_lead(desk: RunningService) -> None:
    agents = answer(desk, "list_helpdesk_agents", limit=200)["items"]

    assert {row["email"] for row in agents} == {person.email for person in UNIVERSE.staff}
    assert sorted(row["team"] for row in agents if row["is_lead"]) == ["billing", "frontline", "technical"]
    assert all(row["unsolved_tickets"] <= row["capacity"] for row in agents)


def test_start_state_has_tickets_in_every_status_some_late_and_some_twice(desk: RunningService) -> None:
    tickets = rows(desk.state)["tickets"]

    assert {row["status"] for row in tickets} == set(MAKERS)
    assert answer(desk, "list_overdue_tickets")["items"]
    assert any(row["subject"].startswith("Once more: ") for row in tickets)
    assert any(row["is_escalated"] for row in tickets)


def test_due_times_of_the_start_state_follow_the_targets(desk: RunningService) -> None:
    for row in rows(desk.state)["tickets"]:
        reply, solve = HOURS[row["priority"]]
        assert moment(row["reply_due_at"]) - moment(row["created_at"]) == timedelta(hours=reply)
        assert moment(row["due_at"]) - moment(row["created_at"]) == timedelta(hours=solve)


# Status machine

ACTIONS: dict[str, dict[str, Any]] = {
    "reply_to_ticket": {"body": "Hello"},
    "add_ticket_note": {"body": "Hm"},
    "log_requester_reply": {"body": "Blue"},
    "set_ticket_pending": {},
    "resume_ticket": {},
    "solve_ticket": {"resolution": "Done"},
    "reopen_ticket": {"reason": "Again"},
    "close_ticket": {},
    "rate_ticket": {"score": 4},
}
AFTERWARDS = {
    ("new", "reply_to_ticket"): "open",
    ("new", "add_ticket_note"): "new",
    ("new", "log_requester_reply"): "new",
    ("open", "reply_to_ticket"): "open",
    ("open", "add_ticket_note"): "open",
    ("open", "log_requester_reply"): "open",
    ("open", "solve_ticket"): "solved",
    ("pending", "reply_to_ticket"): "pending",
    ("pending", "add_ticket_note"): "pending",
    ("pending", "log_requester_reply"): "open",
    ("pending", "resume_ticket"): "open",
    ("pending", "solve_ticket"): "solved",
    ("solved", "reply_to_ticket"): "solved",
    ("solved", "add_ticket_note"): "solved",
    ("solved", "log_requester_reply"): "open",
    ("solved", "reopen_ticket"): "open",
    ("solved", "close_ticket"): "closed",
    ("solved", "rate_ticket"): "solved",
}


@pytest.mark.parametrize("status", MAKERS)
@pytest.mark.parametrize("action", ACTIONS)
def test_each_action_moves_a_ticket_as_its_status_allows(desk: RunningService, status: str, action: str) -> None:
    ticket_id = MAKERS[status](desk)

    if (expected := AFTERWARDS.get((status, action))) is None:
        assert refusal(desk, action, ticket_id=ticket_id, **ACTIONS[action]) == "failed_precondition"
    else:
        answer(desk, action, ticket_id=ticket_id, **ACTIONS[action])
        assert ticket(desk, ticket_id)["status"] == expected


def test_only_an_answered_ticket_waits_for_its_requester(desk: RunningService) -> None:
    ticket_id = open_ticket(desk)

    assert refusal(desk, "set_ticket_pending", ticket_id=ticket_id) == "failed_precondition"
    answer(desk, "add_ticket_note", ticket_id=ticket_id, body="Ask them")
    assert refusal(desk, "set_ticket_pending", ticket_id=ticket_id) == "failed_precondition"
    answer(desk, "reply_to_ticket", ticket_id=ticket_id, body="Which colour?")
    answer(desk, "set_ticket_pending", ticket_id=ticket_id)


@pytest.mark.parametrize(("days", "allowed"), [(14, True), (15, False)])
@pytest.mark.parametrize("tool", ["reopen_ticket", "log_requester_reply"])
def test_solved_ticket_is_reopened_within_two_weeks(desk: RunningService, days: int, allowed: bool, tool: str) -> None:
    ticket_id = solved_ticket(desk)
    age(desk, ticket_id, solved_at=START - timedelta(days=days) + timedelta(hours=1))

    if allowed:
        answer(desk, tool, ticket_id=ticket_id, **ACTIONS[tool])
        assert ticket(desk, ticket_id)["resolution"] is None
    else:
        assert refusal(desk, tool, ticket_id=ticket_id, **ACTIONS[tool]) == "failed_precondition"


def test_reopening_keeps_the_earlier_resolution_in_a_note_and_drops_the_rating(desk: RunningService) -> None:
    ticket_id = solved_ticket(desk)
    answer(desk, "rate_ticket", ticket_id=ticket_id, score=5, comment="Quick")

    answer(desk, "reopen_ticket", ticket_id=ticket_id, reason="Flickers again")

    note = answer(desk, "list_ticket_replies", ticket_id=ticket_id)["items"][-1]
    assert note["kind"] == "internal_note"
    assert "Flickers again" in note["body"]
    assert "New bulb" in note["body"]
    row = ticket(desk, ticket_id)
    assert (row["satisfaction"], row["satisfaction_comment"], row["solved_at"]) == (None, None, None)


def test_closed_ticket_is_followed_up_by_a_new_one(desk: RunningService) -> None:
    ticket_id = solved_ticket(desk)
    assert refusal(desk, "create_follow_up_ticket", ticket_id=ticket_id, description="Again") == "failed_precondition"
    answer(desk, "close_ticket", ticket_id=ticket_id)

    row = answer(desk, "create_follow_up_ticket", ticket_id=ticket_id, description="Again", priority="high")

    assert (row["follow_up_of"], row["status"], row["priority"]) == (ticket_id, "new", "high")
    assert row["requester_email"] == BUYER.email


def test_nobodys_ticket_cannot_be_solved(desk: RunningService) -> None:
    ticket_id = new_ticket(desk)

    assert refusal(desk, "solve_ticket", ticket_id=ticket_id, resolution="Done") == "failed_precondition"


# Opening


def test_known_requester_needs_no_name(desk: RunningService) -> None:
    stranger = {"requester_email": "new.person@elsewhere.example", "subject": "Hello", "category": "account"}
    assert refusal(desk, "create_ticket", **stranger) == "invalid_arguments"
    answer(desk, "create_ticket", **stranger, requester_name="New Person", organisation="Elsewhere BV")

    again = answer(desk, "create_ticket", **{**stranger, "requester_email": "New.Person@Elsewhere.example"})

    assert (again["requester_name"], again["organisation"]) == ("New Person", "Elsewhere BV")
    profile = answer(desk, "get_requester_profile", requester_email=stranger["requester_email"])
    assert (profile["tickets"], profile["unsolved_tickets"], profile["last_ticket_id"]) == (2, 2, again["id"])


@pytest.mark.parametrize(
    ("category", "team"), [("hardware", "technical"), ("billing", "billing"), ("how_to", "frontline")]
)
def test_category_decides_the_team(desk: RunningService, category: str, team: str) -> None:
    row = ticket(desk, new_ticket(desk, category=category))

    assert (row["team"], row["status"], row["assignee_email"]) == (team, "new", None)


# Due times


@pytest.mark.parametrize("priority", HOURS)
def test_priority_decides_the_due_times(desk: RunningService, priority: str) -> None:
    row = ticket(desk, new_ticket(desk, priority=priority))

    reply, solve = HOURS[priority]
    assert moment(row["reply_due_at"]) - moment(row["created_at"]) == timedelta(hours=reply)
    assert moment(row["due_at"]) - moment(row["created_at"]) == timedelta(hours=solve)


def test_time_spent_pending_does_not_count(desk: RunningService) -> None:
    ticket_id = pending_ticket(desk)
    due = moment(ticket(desk, ticket_id)["due_at"])
    age(desk, ticket_id, pending_since=START - timedelta(days=4))
    asked = desk.context.now(desk.state.writes)

    row = answer(desk, "resume_ticket", ticket_id=ticket_id)

    pause = asked - (START - timedelta(days=4))
    assert row["paused_seconds"] == pause.total_seconds()
    assert moment(row["due_at"]) == due + pause
    changed = answer(desk, "set_ticket_priority", ticket_id=ticket_id, priority="urgent")
    assert moment(changed["due_at"]) == moment(row["created_at"]) + timedelta(hours=8) + pause


def test_only_what_waits_for_us_is_overdue(desk: RunningService) -> None:
    for status, make in MAKERS.items():
        ticket_id = make(desk)
        age(desk, ticket_id, due_at=START - timedelta(days=1))

        late = {row["id"] for row in answer(desk, "list_overdue_tickets", limit=200)["items"]}

        assert (ticket_id in late) == (status in ("new", "open"))
        assert answer(desk, "get_ticket_sla", ticket_id=ticket_id)["is_overdue"] == (ticket_id in late)


@settings(max_examples=50, deadline=None, derandomize=True, database=None)
@given(
    steps=st.lists(
        st.sampled_from(
            ["pause", "resume", "reply", "low", "normal", "high", "urgent", "solve", "reopen", "escalate", "requester"]
        ),
        max_size=20,
    )
)
def test_due_time_is_always_targets_hours_after_the_start_plus_pauses(steps: list[str]) -> None:
    desk = fresh("helpdesk")
    ticket_id = open_ticket(desk)
    calls: dict[str, tuple[str, dict[str, Any]]] = {
        "pause": ("set_ticket_pending", {}),
        "resume": ("resume_ticket", {}),
        "reply": ("reply_to_ticket", {"body": "Hello"}),
        "solve": ("solve_ticket", {"resolution": "Done"}),
        "reopen": ("reopen_ticket", {"reason": "Again"}),
        "escalate": ("escalate_ticket", {"reason": "Stuck"}),
        "requester": ("log_requester_reply", {"body": "Blue"}),
        **{priority: ("set_ticket_priority", {"priority": priority}) for priority in HOURS},
    }

    for step in steps:
        tool, arguments = calls[step]
        desk.call(tool, {"ticket_id": ticket_id, **arguments})

        row = ticket(desk, ticket_id)
        expected = timedelta(hours=HOURS[row["priority"]][1], seconds=row["paused_seconds"])
        assert moment(row["due_at"]) == moment(row["sla_started_at"]) + expected
        assert (row["pending_since"] is not None) == (row["status"] == "pending")


# Who works on it


def test_assigning_opens_a_ticket_and_brings_it_to_the_agents_team(desk: RunningService) -> None:
    ticket_id = new_ticket(desk, category="billing")
    agent = free_agent(desk, team="technical")

    row = answer(desk, "assign_ticket", ticket_id=ticket_id, assignee_email=agent.upper())

    assert (row["status"], row["team"], row["assignee_email"]) == ("open", "technical", agent)
    assert refusal(desk, "assign_ticket", ticket_id=ticket_id, assignee_email=agent) == "failed_precondition"


def test_only_colleagues_with_room_are_assigned(desk: RunningService) -> None:
    agent = free_agent(desk)
    while True:
        result = desk.call("assign_ticket", {"ticket_id": new_ticket(desk), "assignee_email": agent})
        if not result.succeeded:
            break

    assert result.envelope["error"]["code"] == "limit_exceeded"
    (row,) = [row for row in answer(desk, "list_helpdesk_agents", limit=200)["items"] if row["email"] == agent]
    assert row["unsolved_tickets"] == row["capacity"]
    outsider = {"ticket_id": new_ticket(desk), "assignee_email": BUYER.email}
    assert refusal(desk, "assign_ticket", **outsider) == "not_found"


def test_escalation_raises_the_priority_and_gives_the_ticket_to_the_lead(desk: RunningService) -> None:
    ticket_id = new_ticket(desk)
    (lead,) = answer(desk, "list_helpdesk_agents", team="technical", leads_only=True)["items"]

    row = answer(desk, "escalate_ticket", ticket_id=ticket_id, reason="Production stands still")

    assert (row["is_escalated"], row["priority"], row["assignee_email"]) == (True, "high", lead["email"])
    assert moment(row["due_at"]) - moment(row["created_at"]) == timedelta(hours=24)
    assert "stands still" in answer(desk, "list_ticket_replies", ticket_id=ticket_id)["items"][-1]["body"]
    assert refusal(desk, "escalate_ticket", ticket_id=ticket_id, reason="Again") == "failed_precondition"
    assert refusal(desk, "unassign_ticket", ticket_id=ticket_id) == "failed_precondition"
    away = {"ticket_id": ticket_id, "team": "billing", "note": "Yours"}
    assert refusal(desk, "transfer_ticket", **away) == "failed_precondition"
    answer(desk, "end_ticket_escalation", ticket_id=ticket_id, note="Calm again")
    assert answer(desk, "transfer_ticket", **away)["assignee_email"] is None


def test_queue_is_in_the_order_of_work(desk: RunningService) -> None:
    order = ("urgent", "high", "normal", "low")

    queue = answer(desk, "list_ticket_queue", limit=200)["items"]

    assert [order.index(row["priority"]) for row in queue] == sorted(order.index(row["priority"]) for row in queue)
    assert {row["status"] for row in queue} == {"new", "open", "pending"}
    unassigned = answer(desk, "list_ticket_queue", limit=200, unassigned_only=True)["items"]
    assert [row for row in queue if row["assignee_email"] is None] == unassigned


# Merging


def test_duplicate_goes_into_the_other_ticket(desk: RunningService) -> None:
    kept = new_ticket(desk, tags=["Lamp"])
    duplicate = new_ticket(desk, subject="Lamp still flickers", priority="urgent", tags=["again"])

    row = answer(desk, "merge_tickets", ticket_id=duplicate, into_ticket_id=kept)

    assert (row["id"], row["priority"], row["tags"]) == (kept, "urgent", ["lamp", "again"])
    gone = ticket(desk, duplicate)
    assert (gone["status"], gone["merged_into"]) == ("closed", kept)
    assert "Lamp still flickers" in answer(desk, "list_ticket_replies", ticket_id=kept)["items"][-1]["body"]
    assert refusal(desk, "merge_tickets", ticket_id=duplicate, into_ticket_id=kept) == "failed_precondition"
    follow_up = {"ticket_id": duplicate, "description": "Again"}
    assert refusal(desk, "create_follow_up_ticket", **follow_up) == "failed_precondition"


def test_tickets_of_strangers_or_solved_ones_are_not_merged(desk: RunningService) -> None:
    own = new_ticket(desk)
    foreign = new_ticket(desk, requester_email=OTHER.email, requester_name=OTHER.name, organisation=OTHER.organisation)

    assert refusal(desk, "merge_tickets", ticket_id=foreign, into_ticket_id=own) == "failed_precondition"
    assert refusal(desk, "merge_tickets", ticket_id=own, into_ticket_id=own) == "invalid_arguments"
    assert refusal(desk, "merge_tickets", ticket_id=own, into_ticket_id=solved_ticket(desk)) == "failed_precondition"


# Replies, macros, tags


def test_internal_notes_can_be_left_out_and_do_not_count_as_an_answer(desk: RunningService) -> None:
    ticket_id = new_ticket(desk)
    answer(desk, "add_ticket_note", ticket_id=ticket_id, body="Careful with this one")
    assert ticket(desk, ticket_id)["first_replied_at"] is None
    answer(desk, "reply_to_ticket", ticket_id=ticket_id, body="We look into it")
    answer(desk, "log_requester_reply", ticket_id=ticket_id, body="Thank you")

    outside = answer(desk, "list_ticket_replies", ticket_id=ticket_id, include_internal=False)["items"]

    assert [(row["kind"], row["author_email"]) for row in outside] == [
        ("public_reply", ME),
        ("requester_reply", BUYER.email),
    ]
    assert ticket(desk, ticket_id)["first_replied_at"] is not None


def test_macro_fills_in_names_and_does_what_it_says(desk: RunningService) -> None:
    text = "Dear {requester}, about {ticket}: {colour}. {agent}"
    macro = answer(desk, "create_macro", title="Done", body=text, outcome="solved", tags=["Macro"])["id"]
    ticket_id = new_ticket(desk)
    assert refusal(desk, "apply_macro", ticket_id=ticket_id, macro_id=macro) == "failed_precondition"
    answer(desk, "assign_ticket", ticket_id=ticket_id, assignee_email=free_agent(desk))

    done = answer(desk, "apply_macro", ticket_id=ticket_id, macro_id=macro)

    assert done["reply"]["body"] == f"Dear {BUYER.name}, about {ticket_id}: {{colour}}. {UNIVERSE.user.name}"
    assert (done["ticket"]["status"], done["ticket"]["tags"]) == ("solved", ["macro"])
    assert done["ticket"]["first_replied_at"] is not None
    assert refusal(desk, "create_macro", title="Done", body="x") == "already_exists"


def test_tags_are_limited_and_case_blind(desk: RunningService) -> None:
    ticket_id = new_ticket(desk, tags=[f"T{number}" for number in range(10)])

    assert refusal(desk, "tag_ticket", ticket_id=ticket_id, tag="one more") == "limit_exceeded"
    assert refusal(desk, "tag_ticket", ticket_id=ticket_id, tag="T3") == "failed_precondition"
    assert "t3" not in answer(desk, "untag_ticket", ticket_id=ticket_id, tag="T3")["tags"]


@pytest.mark.parametrize("score", [0, 6])
def test_score_goes_from_one_to_five(desk: RunningService, score: int) -> None:
    assert refusal(desk, "rate_ticket", ticket_id=solved_ticket(desk), score=score) == "invalid_arguments"


def test_statistics_count_what_the_rows_say(desk: RunningService) -> None:
    tickets = [row for row in rows(desk.state)["tickets"] if row["team"] == "technical"]
    late = answer(desk, "list_overdue_tickets", team="technical", limit=200)["total"]

    numbers = answer(desk, "get_queue_statistics", team="technical")

    for status in ("new", "open", "pending"):
        assert numbers[status] == sum(row["status"] == status for row in tickets)
    assert numbers["overdue"] == late
