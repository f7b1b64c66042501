"""The tracker's own promises: an ordered workflow, blockers that hold, one active sprint, keys that never repeat."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compoworld_core.library.devops.tracker_rows import TRANSITIONS
from compoworld_core.services.running import RunningService
from tests.library.conformance import UNIVERSE, answer, fresh, refusal, rows

ME = UNIVERSE.user.email
COLLEAGUE = UNIVERSE.staff[1].email
OUTSIDER = UNIVERSE.contacts[0].email
TODAY = "2026-02-12"


@pytest.fixture
def tracker() -> RunningService:
    return fresh("tracker")


def some_project(running: RunningService) -> dict[str, Any]:
    project: dict[str, Any] = rows(running.state)["projects"][0]
    return project


def new_issue(running: RunningService, project_id: str | None = None, **fields: Any) -> str:
    project_id = project_id or some_project(running)["id"]
    issue_id: str = answer(running, "create_issue", project_id=project_id, title="Broken hinge", **fields)["id"]
    return issue_id


def finish(running: RunningService, issue_id: str) -> None:
    for status in ("in_progress", "in_review", "done"):
        answer(running, "transition_issue", issue_id=issue_id, status=status)


def link(running: RunningService, source_id: str, target_id: str, kind: str = "blocks") -> str:
    link_id: str = answer(running, "link_issues", source_id=source_id, kind=kind, target_id=target_id)["id"]
    return link_id


# Start state


def test_projects_are_those_of_the_universe(tracker: RunningService) -> None:
    found = answer(tracker, "list_tracker_projects", limit=200)["items"]

    assert {(row["name"], row["code"], row["lead_email"]) for row in found} == {
        (project.name, project.code, project.owner) for project in UNIVERSE.projects
    }


def test_start_state_keeps_the_trackers_own_rules(tracker: RunningService) -> None:
    state = rows(tracker.state)
    projects = {row["id"]: row for row in state["projects"]}
    sprints = {row["id"]: row for row in state["sprints"]}

    for issue in state["issues"]:
        assert issue["key"].startswith(f"{projects[issue['project_id']]['code']}-")
        assert issue["sprint_id"] is None or sprints[issue["sprint_id"]]["project_id"] == issue["project_id"]
    for project_id in projects:
        active = [row for row in sprints.values() if row["project_id"] == project_id and row["status"] == "active"]
        assert len(active) <= 1


def test_some_issues_are_blocked_overdue_and_the_users_own(tracker: RunningService) -> None:
    assert answer(tracker, "list_blocked_issues")["items"]
    assert answer(tracker, "list_overdue_issues")["items"]
    assert answer(tracker, "search_issues", assignee_email=ME)["items"]


# Issues


def test_keys_count_up_within_a_project(tracker: RunningService) -> None:
    project = some_project(tracker)
    known = answer(tracker, "search_issues", project_id=project["id"], limit=200)["total"]

    first, second = (new_issue(tracker) for _ in range(2))

    assert answer(tracker, "get_issue", issue_id=first)["key"] == f"{project['code']}-{known + 1}"
    assert answer(tracker, "get_issue", issue_id=second)["key"] == f"{project['code']}-{known + 2}"


def test_issue_is_found_by_its_key_in_any_case(tracker: RunningService) -> None:
    key = answer(tracker, "get_issue", issue_id=new_issue(tracker))["key"]

    found = answer(tracker, "search_issues", key=key.lower())["items"]

    assert [issue["key"] for issue in found] == [key]


def test_component_gives_the_assignee_and_must_be_of_the_project(tracker: RunningService) -> None:
    component, *_ = rows(tracker.state)["components"]
    elsewhere = next(row["id"] for row in rows(tracker.state)["projects"] if row["id"] != component["project_id"])

    issue = answer(
        tracker, "create_issue", project_id=component["project_id"], title="Slow list", component_id=component["id"]
    )

    assert issue["assignee_email"] == component["owner_email"]
    wrong = {"project_id": elsewhere, "title": "Slow list", "component_id": component["id"]}
    assert refusal(tracker, "create_issue", **wrong) == "failed_precondition"
    call = {"issue_id": new_issue(tracker, elsewhere), "component_id": component["id"]}
    assert refusal(tracker, "set_issue_component", **call) == "failed_precondition"


@pytest.mark.parametrize("due_on", ["2026-02-11", "0001-01-01"])
def test_due_day_is_never_past(tracker: RunningService, due_on: str) -> None:
    project_id = some_project(tracker)["id"]

    assert refusal(tracker, "create_issue", project_id=project_id, title="x", due_on=due_on) == "failed_precondition"
    assert new_issue(tracker, due_on=TODAY)


def test_only_colleagues_are_assigned(tracker: RunningService) -> None:
    issue_id = new_issue(tracker)

    assert refusal(tracker, "assign_issue", issue_id=issue_id, assignee_email=OUTSIDER) == "not_found"
    assert answer(tracker, "assign_issue", issue_id=issue_id, assignee_email=ME.upper())["assignee_email"] == ME


# Workflow


@pytest.mark.parametrize("here", TRANSITIONS)
@pytest.mark.parametrize("there", TRANSITIONS)
def test_workflow_allows_its_steps_and_no_others(tracker: RunningService, here: str, there: str) -> None:
    issue_id = new_issue(tracker, assignee_email=ME)
    for status in {"todo": (), "in_progress": ("in_progress",)}.get(here, ("in_progress", "in_review")):
        answer(tracker, "transition_issue", issue_id=issue_id, status=status)
    if here == "done":
        answer(tracker, "transition_issue", issue_id=issue_id, status="done")

    if there in TRANSITIONS[here]:  # type: ignore[index]
        assert answer(tracker, "transition_issue", issue_id=issue_id, status=there)["status"] == there
    else:
        assert refusal(tracker, "transition_issue", issue_id=issue_id, status=there) == "failed_precondition"


def test_issue_needs_an_assignee_while_it_is_worked_on(tracker: RunningService) -> None:
    issue_id = new_issue(tracker)

    assert refusal(tracker, "transition_issue", issue_id=issue_id, status="in_progress") == "failed_precondition"
    answer(tracker, "assign_issue", issue_id=issue_id, assignee_email=ME)
    answer(tracker, "transition_issue", issue_id=issue_id, status="in_progress")
    assert refusal(tracker, "unassign_issue", issue_id=issue_id) == "failed_precondition"


def test_issue_with_an_open_blocker_cannot_be_done(tracker: RunningService) -> None:
    blocker, blocked = (new_issue(tracker, assignee_email=ME) for _ in range(2))
    link(tracker, blocker, blocked)
    for status in ("in_progress", "in_review"):
        answer(tracker, "transition_issue", issue_id=blocked, status=status)

    assert refusal(tracker, "transition_issue", issue_id=blocked, status="done") == "failed_precondition"
    finish(tracker, blocker)

    assert answer(tracker, "transition_issue", issue_id=blocked, status="done")["resolution"] == "completed"


@pytest.mark.parametrize("release", ["reject", "unlink"])
def test_rejecting_or_unlinking_a_blocker_frees_what_it_blocked(tracker: RunningService, release: str) -> None:
    blocker, blocked = (new_issue(tracker, assignee_email=ME) for _ in range(2))
    link_id = link(tracker, blocker, blocked)

    if release == "reject":
        answer(tracker, "reject_issue", issue_id=blocker, reason="Not worth it")
    else:
        answer(tracker, "unlink_issues", link_id=link_id)

    finish(tracker, blocked)


def test_blockers_never_form_a_circle(tracker: RunningService) -> None:
    first, second, third = (new_issue(tracker) for _ in range(3))
    link(tracker, first, second)
    link(tracker, second, third)

    circle = {"source_id": third, "kind": "blocks", "target_id": first}
    assert refusal(tracker, "link_issues", **circle) == "failed_precondition"
    assert refusal(tracker, "link_issues", source_id=first, kind="blocks", target_id=second) == "already_exists"
    itself = {"source_id": first, "kind": "blocks", "target_id": first}
    assert refusal(tracker, "link_issues", **itself) == "invalid_arguments"


def test_links_are_seen_from_both_ends(tracker: RunningService) -> None:
    first, second = (new_issue(tracker) for _ in range(2))
    link(tracker, first, second)

    assert [row["relation"] for row in answer(tracker, "list_issue_links", issue_id=first)["items"]] == ["blocks"]
    seen = answer(tracker, "list_issue_links", issue_id=second)["items"]
    assert [(row["relation"], row["issue_id"]) for row in seen] == [("is_blocked_by", first)]


def test_relation_is_the_same_from_either_side(tracker: RunningService) -> None:
    first, second = (new_issue(tracker) for _ in range(2))
    link(tracker, first, second, "relates_to")

    again = {"source_id": second, "kind": "relates_to", "target_id": first}
    assert refusal(tracker, "link_issues", **again) == "already_exists"


def test_duplicate_hands_over_its_watchers_until_it_is_reopened(tracker: RunningService) -> None:
    original, duplicate = (new_issue(tracker) for _ in range(2))
    answer(tracker, "watch_issue", issue_id=duplicate, watcher_email=COLLEAGUE)

    closed = answer(tracker, "mark_issue_duplicate", issue_id=duplicate, original_id=original)

    assert (closed["status"], closed["resolution"]) == ("done", "duplicate")
    assert COLLEAGUE in answer(tracker, "get_issue", issue_id=original)["watchers"]
    third = {"issue_id": new_issue(tracker), "original_id": duplicate}
    assert refusal(tracker, "mark_issue_duplicate", **third) == "failed_precondition"
    named = answer(tracker, "list_issue_links", issue_id=duplicate)["items"][0]
    assert refusal(tracker, "unlink_issues", link_id=named["id"]) == "failed_precondition"
    answer(tracker, "reopen_issue", issue_id=duplicate, reason="It is another one")
    assert not answer(tracker, "list_issue_links", issue_id=duplicate)["items"]


def test_reopened_issue_leaves_a_closed_sprint_and_says_why(tracker: RunningService) -> None:
    closed = {row["id"] for row in rows(tracker.state)["sprints"] if row["status"] == "closed"}
    issue = next(row for row in rows(tracker.state)["issues"] if row["sprint_id"] in closed)

    reopened = answer(tracker, "reopen_issue", issue_id=issue["id"], reason="It came back")

    assert (reopened["status"], reopened["sprint_id"], reopened["resolution"]) == ("todo", None, None)
    assert answer(tracker, "list_issue_comments", issue_id=issue["id"])["items"][-1]["body"] == "It came back"
    assert refusal(tracker, "reopen_issue", issue_id=issue["id"], reason="Again") == "failed_precondition"


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(
    steps=st.lists(
        st.tuples(
            st.sampled_from(["transition", "link", "reject", "reopen"]),
            st.integers(0, 3),
            st.integers(0, 3),
            st.sampled_from(list(TRANSITIONS)),
        ),
        max_size=25,
    )
)
def test_completed_issue_never_had_an_open_blocker_when_it_was_completed(steps: list[Any]) -> None:
    tracker = fresh("tracker")
    ids = [new_issue(tracker, assignee_email=ME) for _ in range(4)]

    for action, one, other, status in steps:
        before = {row["id"]: row["status"] for row in rows(tracker.state)["issues"]}
        blockers = [row["source_id"] for row in rows(tracker.state)["links"] if row["target_id"] == ids[one]]
        if action == "transition":
            result = tracker.call("transition_issue", {"issue_id": ids[one], "status": status})
            if result.succeeded and status == "done":
                assert all(before[key] == "done" for key in blockers)
        elif action == "link":
            tracker.call("link_issues", {"source_id": ids[one], "kind": "blocks", "target_id": ids[other]})
        else:
            tracker.call(f"{action}_issue", {"issue_id": ids[one], "reason": "Because"})
        for row in rows(tracker.state)["issues"]:
            assert (row["status"] == "done") == (row["resolution"] is not None) == (row["resolved_at"] is not None)


# Sprints


def new_sprint(running: RunningService, project_id: str, name: str = "Sprint X") -> str:
    sprint_id: str = answer(
        running, "create_sprint", project_id=project_id, name=name, starts_on="2026-02-16", ends_on="2026-02-27"
    )["id"]
    return sprint_id


def active_sprint(running: RunningService) -> dict[str, Any]:
    return next(row for row in rows(running.state)["sprints"] if row["status"] == "active")


def test_project_has_one_active_sprint_at_most(tracker: RunningService) -> None:
    active = active_sprint(tracker)
    following = new_sprint(tracker, active["project_id"])
    answer(tracker, "add_issue_to_sprint", issue_id=new_issue(tracker, active["project_id"]), sprint_id=following)

    assert refusal(tracker, "start_sprint", sprint_id=following) == "failed_precondition"
    answer(tracker, "close_sprint", sprint_id=active["id"])
    started = answer(tracker, "start_sprint", sprint_id=following)

    assert (started["status"], started["starts_on"]) == ("active", TODAY)


def test_empty_sprint_does_not_start(tracker: RunningService) -> None:
    active = active_sprint(tracker)
    empty = new_sprint(tracker, active["project_id"])
    answer(tracker, "close_sprint", sprint_id=active["id"])

    assert refusal(tracker, "start_sprint", sprint_id=empty) == "failed_precondition"


@pytest.mark.parametrize("moves", [True, False], ids=["to the next sprint", "to none"])
def test_closing_a_sprint_moves_what_is_unfinished(tracker: RunningService, moves: bool) -> None:
    active = active_sprint(tracker)
    following = new_sprint(tracker, active["project_id"]) if moves else None
    inside = answer(tracker, "search_issues", sprint_id=active["id"], limit=200)["items"]

    closed = answer(tracker, "close_sprint", sprint_id=active["id"], move_to_sprint_id=following)

    assert (closed["sprint"]["status"], closed["sprint"]["closed_on"]) == ("closed", TODAY)
    assert set(closed["moved"]) == {row["id"] for row in inside if row["status"] != "done"}
    for before in inside:
        after = answer(tracker, "get_issue", issue_id=before["id"])
        assert after["sprint_id"] == (active["id"] if before["status"] == "done" else following)


def test_unfinished_issues_move_to_a_planned_sprint_of_the_same_project_only(tracker: RunningService) -> None:
    active = active_sprint(tracker)
    others = [row for row in rows(tracker.state)["sprints"] if row["project_id"] != active["project_id"]]

    for other in (active, *others[:3]):
        wrong = {"sprint_id": active["id"], "move_to_sprint_id": other["id"]}
        assert refusal(tracker, "close_sprint", **wrong) == "failed_precondition"


def test_issue_enters_only_open_sprints_of_its_project(tracker: RunningService) -> None:
    active = active_sprint(tracker)
    issue_id = new_issue(tracker, active["project_id"])
    for row in rows(tracker.state)["sprints"]:
        if row["project_id"] != active["project_id"] or row["status"] == "closed":
            call = {"issue_id": issue_id, "sprint_id": row["id"]}
            assert refusal(tracker, "add_issue_to_sprint", **call) == "failed_precondition"

    assert answer(tracker, "add_issue_to_sprint", issue_id=issue_id, sprint_id=active["id"])["sprint_id"]


def test_sprint_does_not_end_before_it_starts_or_in_the_past(tracker: RunningService) -> None:
    base = {"project_id": some_project(tracker)["id"], "name": "Odd"}

    backwards = {**base, "starts_on": "2026-03-10", "ends_on": "2026-03-09"}
    past = {**base, "starts_on": "2026-01-01", "ends_on": "2026-01-10"}
    assert refusal(tracker, "create_sprint", **backwards) == "invalid_arguments"
    assert refusal(tracker, "create_sprint", **past) == "failed_precondition"


# Comments, watchers, work


def test_only_the_author_edits_a_comment(tracker: RunningService) -> None:
    theirs = next(row for row in rows(tracker.state)["comments"] if row["author_email"] != ME)
    mine = answer(tracker, "comment_on_issue", issue_id=new_issue(tracker), body="Seen it")

    assert refusal(tracker, "edit_issue_comment", comment_id=theirs["id"], body="No") == "permission_denied"
    assert answer(tracker, "edit_issue_comment", comment_id=mine["id"], body="Seen it twice")["edited_at"]


def test_comment_is_deleted_by_its_author_or_the_projects_lead(tracker: RunningService) -> None:
    state = rows(tracker.state)
    project_of = {row["id"]: row["project_id"] for row in state["issues"]}
    lead_of = {row["id"]: row["lead_email"] for row in state["projects"]}
    theirs = [row for row in state["comments"] if row["author_email"] != ME]
    foreign = next(row for row in theirs if lead_of[project_of[row["issue_id"]]] != ME)
    project_id = project_of[foreign["issue_id"]]

    assert refusal(tracker, "delete_issue_comment", comment_id=foreign["id"]) == "permission_denied"
    answer(tracker, "set_project_lead", project_id=project_id, lead_email=ME)
    answer(tracker, "delete_issue_comment", comment_id=foreign["id"])


def test_watching_twice_is_refused(tracker: RunningService) -> None:
    issue_id = new_issue(tracker)

    assert refusal(tracker, "watch_issue", issue_id=issue_id) == "failed_precondition"
    assert answer(tracker, "unwatch_issue", issue_id=issue_id)["watchers"] == []
    assert refusal(tracker, "unwatch_issue", issue_id=issue_id) == "failed_precondition"


def test_effort_adds_up_logged_work(tracker: RunningService) -> None:
    issue_id = new_issue(tracker, estimate_hours=2)
    for minutes in (50, 85):
        answer(tracker, "log_work", issue_id=issue_id, minutes=minutes)

    effort = answer(tracker, "get_issue_effort", issue_id=issue_id)

    assert (effort["spent_minutes"], effort["remaining_minutes"], effort["is_over_estimate"]) == (135, 0, True)
    assert effort["people"] == [ME]


def test_a_day_has_24_hours_and_none_of_them_lie_ahead(tracker: RunningService) -> None:
    issue_id = new_issue(tracker)
    answer(tracker, "log_work", issue_id=issue_id, minutes=1440, worked_on="2025-12-24")

    full = {"issue_id": issue_id, "minutes": 1, "worked_on": "2025-12-24"}
    assert refusal(tracker, "log_work", **full) == "limit_exceeded"
    ahead = {"issue_id": issue_id, "minutes": 1, "worked_on": "2026-02-13"}
    assert refusal(tracker, "log_work", **ahead) == "failed_precondition"


def test_work_of_others_cannot_be_deleted(tracker: RunningService) -> None:
    theirs = next(row for row in rows(tracker.state)["work"] if row["author_email"] != ME)

    assert refusal(tracker, "delete_work_entry", entry_id=theirs["id"]) == "permission_denied"


def test_labels_are_limited_and_case_blind(tracker: RunningService) -> None:
    issue_id = new_issue(tracker, labels=["Alpha", "ALPHA", *(f"l{number}" for number in range(9))])

    assert answer(tracker, "get_issue", issue_id=issue_id)["labels"][0] == "alpha"
    assert refusal(tracker, "label_issue", issue_id=issue_id, label="L3") == "failed_precondition"
    assert refusal(tracker, "label_issue", issue_id=issue_id, label="one more") == "limit_exceeded"
    answer(tracker, "unlabel_issue", issue_id=issue_id, label="L3")
    assert refusal(tracker, "unlabel_issue", issue_id=issue_id, label="l3") == "failed_precondition"


def test_done_issue_is_changed_only_once_reopened(tracker: RunningService) -> None:
    issue_id = new_issue(tracker, assignee_email=ME)
    finish(tracker, issue_id)

    assert refusal(tracker, "update_issue", issue_id=issue_id, title="New") == "failed_precondition"
    assert refusal(tracker, "assign_issue", issue_id=issue_id, assignee_email=COLLEAGUE) == "failed_precondition"
    answer(tracker, "reopen_issue", issue_id=issue_id, reason="Not yet")
    assert answer(tracker, "update_issue", issue_id=issue_id, title="New")["title"] == "New"
