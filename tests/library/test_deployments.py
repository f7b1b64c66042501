"""The delivery platform's own promises: builds end once, nobody approves alone, nothing old or untested goes live."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compoworld_core.library.devops.deployments_builds import MAX_LOG, MAX_UNFINISHED
from compoworld_core.library.devops.deployments_desk import version_key
from compoworld_core.services.running import RunningService
from tests.library.conformance import START, UNIVERSE, answer, fresh, plant, refusal, rows

ME = UNIVERSE.user.email
OTHER, THIRD = [person.email for person in UNIVERSE.staff if person.email != ME][:2]
FINISHED = {"passed", "failed", "cancelled"}


@pytest.fixture
def platform() -> RunningService:
    return fresh("deployments")


def new_app(running: RunningService, name: str = "test-api", **fields: Any) -> str:
    made = answer(
        running,
        "register_app",
        name=name,
        project_name=UNIVERSE.projects[0].name,
        repository_url="https://git.example/test-api",
        **fields,
    )
    return str(made["id"])


def new_build(running: RunningService, app_id: str, outcome: str = "passed") -> str:
    build_id = str(answer(running, "trigger_build", app_id=app_id)["id"])
    answer(running, "start_build", build_id=build_id)
    reason = {"failure_reason": "A test failed"} if outcome == "failed" else {}
    answer(running, "finish_build", build_id=build_id, outcome=outcome, **reason)
    return build_id


def new_release(running: RunningService, app_id: str, bump: str = "minor") -> str:
    build_id = new_build(running, app_id)
    return str(answer(running, "create_release", build_id=build_id, notes="Faster search", bump=bump)["id"])


def environment(running: RunningService, app_id: str, tier: str, *approvers: str) -> str:
    made = answer(
        running,
        "create_environment",
        app_id=app_id,
        tier=tier,
        url="https://test.example",
        approver_emails=list(approvers),
    )
    return str(made["id"])


def deploy(running: RunningService, release_id: str, tier: str, outcome: str = "succeeded") -> Any:
    """Deploy to an environment that needs no approval."""
    deployment_id = answer(running, "request_deployment", release_id=release_id, tier=tier)["id"]
    answer(running, "start_deployment", deployment_id=deployment_id)
    return answer(running, "finish_deployment", deployment_id=deployment_id, outcome=outcome)


def approved(running: RunningService, deployment_id: str) -> None:
    """Let somebody else approve, as the world does."""
    running.state.tables["deployments"].update(deployment_id, status="approved", approved_by=OTHER)
    running.state.commit(counted=False)


def get(running: RunningService, environment_id: str) -> Any:
    return answer(running, "get_environment", environment_id=environment_id)


# Start state


def test_apps_belong_to_projects_and_staff(platform: RunningService) -> None:
    staff = {person.email for person in UNIVERSE.staff}

    apps = answer(platform, "list_apps", limit=200)["items"]

    assert {app["project_name"] for app in apps} == {project.name for project in UNIVERSE.projects}
    assert {app["owner_email"] for app in apps} <= staff
    for name in ("builds", "releases", "deployments"):
        assert {row["app_id"] for row in rows(platform.state)[name]} == {app["id"] for app in apps}


def test_history_is_consistent(platform: RunningService) -> None:
    state = rows(platform.state)
    builds = {row["id"]: row for row in state["builds"]}
    succeeded = {
        (row["environment_id"], row["release_id"]) for row in state["deployments"] if row["status"] == "succeeded"
    }

    for release in state["releases"]:
        assert builds[release["build_id"]]["status"] == "passed"
        assert builds[release["build_id"]]["finished_at"] < release["created_at"]
    for row in state["environments"]:
        if row["current_release_id"] is not None:
            assert (row["id"], row["current_release_id"]) in succeeded
    for row in state["deployments"]:
        assert row["approved_by"] != row["requested_by"]


# Apps


def test_only_the_owner_changes_or_archives_an_app(platform: RunningService) -> None:
    app_id = new_app(platform, owner_email=OTHER)

    assert refusal(platform, "update_app", app_id=app_id, description="?") == "permission_denied"
    assert refusal(platform, "archive_app", app_id=app_id) == "permission_denied"
    assert (
        refusal(platform, "register_app", name="test-api", project_name="P", repository_url="https://a.b")
        == "already_exists"
    )
    outsider = UNIVERSE.contacts[0].email
    mine = new_app(platform, "other-api")
    assert refusal(platform, "update_app", app_id=mine, owner_email=outsider) == "not_found"


def test_app_with_unfinished_work_is_not_archived(platform: RunningService) -> None:
    app_id = new_app(platform)
    build_id = answer(platform, "trigger_build", app_id=app_id)["id"]
    assert refusal(platform, "archive_app", app_id=app_id) == "failed_precondition"

    answer(platform, "cancel_build", build_id=build_id)
    answer(platform, "archive_app", app_id=app_id)

    assert refusal(platform, "trigger_build", app_id=app_id) == "failed_precondition"
    assert answer(platform, "list_apps", name="test-api")["total"] == 0


# Builds


def test_builds_are_numbered_per_app_and_limited(platform: RunningService) -> None:
    app_id = new_app(platform, default_branch="trunk")

    builds = [answer(platform, "trigger_build", app_id=app_id) for _ in range(MAX_UNFINISHED)]

    assert [build["number"] for build in builds] == list(range(1, MAX_UNFINISHED + 1))
    assert {build["branch"] for build in builds} == {"trunk"}
    assert refusal(platform, "trigger_build", app_id=app_id) == "limit_exceeded"


def test_retry_repeats_the_commit_of_a_build_that_did_not_pass(platform: RunningService) -> None:
    app_id = new_app(platform)
    failed, passed = new_build(platform, app_id, "failed"), new_build(platform, app_id)
    retry = answer(platform, "retry_build", build_id=failed)

    assert retry["commit"] == answer(platform, "get_build", build_id=failed)["commit"]
    assert retry["retry_of"] == failed
    assert refusal(platform, "retry_build", build_id=failed) == "failed_precondition"
    assert refusal(platform, "retry_build", build_id=passed) == "failed_precondition"


def test_log_tells_the_story_and_a_full_log_does_not_keep_a_build_from_ending(platform: RunningService) -> None:
    build_id = answer(platform, "trigger_build", app_id=new_app(platform))["id"]
    assert refusal(platform, "append_build_log", build_id=build_id, line="too early") == "failed_precondition"
    answer(platform, "start_build", build_id=build_id)
    for _ in range(9):
        answer(platform, "append_build_log", build_id=build_id, line="x" * 2000)
    while True:
        result = platform.call("append_build_log", {"build_id": build_id, "line": "y" * 500})
        if not result.succeeded:
            break

    assert result.envelope["error"]["code"] == "limit_exceeded"
    assert len(answer(platform, "get_build_log", build_id=build_id)["text"]) <= MAX_LOG
    answer(platform, "finish_build", build_id=build_id, outcome="failed", failure_reason="Out of memory")
    assert answer(platform, "get_build_log", build_id=build_id)["text"].endswith("Failed: Out of memory")


def test_builds_of_others_are_cancelled_by_the_owner_only(platform: RunningService) -> None:
    app_id = new_app(platform, owner_email=OTHER)
    commit = {"branch": "main", "commit": "0123abc", "queued_at": START, "number": 1, "triggered_by": THIRD}
    build = plant(platform, "builds", app_id=app_id, **commit)

    assert refusal(platform, "cancel_build", build_id=build["id"]) == "permission_denied"


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(steps=st.lists(st.sampled_from(("start", "pass", "fail", "cancel", "log")), max_size=8))
def test_finished_build_never_changes(steps: list[str]) -> None:
    running = fresh("deployments")
    build_id = answer(running, "trigger_build", app_id=new_app(running))["id"]
    calls = {
        "start": ("start_build", {}),
        "pass": ("finish_build", {"outcome": "passed"}),
        "fail": ("finish_build", {"outcome": "failed", "failure_reason": "A test failed"}),
        "cancel": ("cancel_build", {}),
        "log": ("append_build_log", {"line": "ok"}),
    }

    for step in steps:
        before = answer(running, "get_build", build_id=build_id)
        tool, arguments = calls[step]
        result = running.call(tool, {"build_id": build_id, **arguments})
        after = answer(running, "get_build", build_id=build_id)
        if before["status"] in FINISHED:
            assert not result.succeeded
            assert after == before
        assert (after["status"] in FINISHED) == (after["finished_at"] is not None)


# Releases


def test_only_passed_builds_newer_than_the_last_release_are_released(platform: RunningService) -> None:
    app_id = new_app(platform)
    older, failed, passed = (
        new_build(platform, app_id),
        new_build(platform, app_id, "failed"),
        new_build(platform, app_id),
    )

    assert refusal(platform, "create_release", build_id=failed, notes="New") == "failed_precondition"
    assert answer(platform, "create_release", build_id=passed, notes="New")["version"] == "0.1.0"
    assert refusal(platform, "create_release", build_id=passed, notes="New") == "failed_precondition"
    assert refusal(platform, "create_release", build_id=older, notes="New") == "failed_precondition"


def test_versions_count_up_by_number_not_by_text(platform: RunningService) -> None:
    app_id = new_app(platform)
    bumps = ["minor"] * 10 + ["patch", "major", "patch"]

    releases = [new_release(platform, app_id, bump) for bump in bumps]

    versions = [answer(platform, "get_release", release_id=key)["version"] for key in releases]
    assert versions[-4:] == ["0.10.0", "0.10.1", "1.0.0", "1.0.1"]
    assert versions == sorted(versions, key=version_key)


def test_release_that_runs_somewhere_is_not_withdrawn(platform: RunningService) -> None:
    app_id = new_app(platform)
    environment(platform, app_id, "staging")
    first, second = new_release(platform, app_id), new_release(platform, app_id)
    deploy(platform, first, "staging")

    assert refusal(platform, "withdraw_release", release_id=first, reason="Broken") == "failed_precondition"
    answer(platform, "withdraw_release", release_id=second, reason="Broken")
    assert refusal(platform, "request_deployment", release_id=second, tier="staging") == "failed_precondition"
    assert refusal(platform, "update_release_notes", release_id=second, notes="New") == "failed_precondition"


# Deployments


def test_success_makes_a_release_current_and_failure_does_not(platform: RunningService) -> None:
    app_id = new_app(platform)
    staging = environment(platform, app_id, "staging")
    first, second = new_release(platform, app_id), new_release(platform, app_id)

    deploy(platform, first, "staging")
    deploy(platform, second, "staging", outcome="failed")

    assert get(platform, staging)["current_release_id"] == first
    assert get(platform, staging)["current_version"] == "0.1.0"


def test_one_deployment_at_a_time_and_never_an_older_release(platform: RunningService) -> None:
    app_id = new_app(platform)
    environment(platform, app_id, "staging")
    first, second, third = (new_release(platform, app_id) for _ in range(3))
    deploy(platform, second, "staging")
    assert refusal(platform, "request_deployment", release_id=first, tier="staging") == "failed_precondition"
    assert refusal(platform, "request_deployment", release_id=second, tier="staging") == "failed_precondition"
    assert refusal(platform, "request_deployment", release_id=third, tier="testing") == "not_found"

    waiting = answer(platform, "request_deployment", release_id=third, tier="staging")["id"]

    assert refusal(platform, "request_deployment", release_id=third, tier="staging") == "failed_precondition"
    answer(platform, "cancel_deployment", deployment_id=waiting, reason="Not today")
    deploy(platform, third, "staging")


def test_production_takes_only_what_ran_in_staging(platform: RunningService) -> None:
    app_id = new_app(platform)
    environment(platform, app_id, "staging")
    environment(platform, app_id, "production", OTHER)
    release_id = new_release(platform, app_id)
    assert refusal(platform, "request_deployment", release_id=release_id, tier="production") == "failed_precondition"

    deploy(platform, release_id, "staging")

    made = answer(platform, "request_deployment", release_id=release_id, tier="production")
    assert made["status"] == "pending_approval"


def test_nobody_approves_their_own_request(platform: RunningService) -> None:
    app_id = new_app(platform)
    production = environment(platform, app_id, "production", ME, OTHER)
    made = answer(platform, "request_deployment", release_id=new_release(platform, app_id), tier="production")

    assert get(platform, production)["approver_emails"] == [ME, OTHER]
    assert refusal(platform, "approve_deployment", deployment_id=made["id"]) == "permission_denied"
    assert refusal(platform, "reject_deployment", deployment_id=made["id"], reason="No") == "permission_denied"
    assert refusal(platform, "start_deployment", deployment_id=made["id"]) == "failed_precondition"


@pytest.fixture
def requested(platform: RunningService) -> tuple[RunningService, str, str]:
    """A deployment to production that a colleague requested, and its environment."""
    app_id = new_app(platform)
    production = environment(platform, app_id, "production", ME)
    release_id = new_release(platform, app_id)
    deployment = plant(
        platform,
        "deployments",
        app_id=app_id,
        environment_id=production,
        release_id=release_id,
        tier="production",
        version="0.1.0",
        status="pending_approval",
        requested_by=OTHER,
        requested_at=START,
    )
    return platform, deployment["id"], production


def test_approval_is_recorded_and_final(requested: tuple[RunningService, str, str]) -> None:
    running, deployment_id, production = requested

    made = answer(running, "approve_deployment", deployment_id=deployment_id, comment="Fine")

    assert (made["status"], made["approved_by"]) == ("approved", ME)
    decisions = answer(running, "list_deployment_approvals", deployment_id=deployment_id)["items"]
    assert [(item["decision"], item["decided_by"], item["comment"]) for item in decisions] == [("approved", ME, "Fine")]
    assert refusal(running, "reject_deployment", deployment_id=deployment_id, reason="No") == "failed_precondition"
    answer(running, "start_deployment", deployment_id=deployment_id)
    answer(running, "finish_deployment", deployment_id=deployment_id, outcome="succeeded")
    assert get(running, production)["current_version"] == "0.1.0"


def test_rejected_deployment_never_starts(requested: tuple[RunningService, str, str]) -> None:
    running, deployment_id, _ = requested

    answer(running, "reject_deployment", deployment_id=deployment_id, reason="Not tested")

    assert refusal(running, "start_deployment", deployment_id=deployment_id) == "failed_precondition"
    assert refusal(running, "approve_deployment", deployment_id=deployment_id) == "failed_precondition"


def test_who_is_no_approver_decides_nothing(requested: tuple[RunningService, str, str]) -> None:
    running, deployment_id, production = requested
    answer(running, "set_environment_approvers", environment_id=production, approver_emails=[THIRD])

    assert refusal(running, "approve_deployment", deployment_id=deployment_id) == "permission_denied"
    none: dict[str, Any] = {"environment_id": production, "approver_emails": []}
    assert refusal(running, "set_environment_approvers", **none) == "invalid_arguments"


# Freeze windows and locks


def freeze(running: RunningService, hours_before: int, hours_after: int, **fields: Any) -> Any:
    return plant(
        running,
        "freezes",
        name="Closing",
        starts_at=START - timedelta(hours=hours_before),
        ends_at=START + timedelta(hours=hours_after),
        **{"created_by": ME, **fields},
    )


def test_nothing_starts_in_production_during_a_freeze(requested: tuple[RunningService, str, str]) -> None:
    running, deployment_id, _ = requested
    answer(running, "approve_deployment", deployment_id=deployment_id)
    window = freeze(running, 1, 1)
    freeze(running, 2, -1)
    freeze(running, -1, 2)

    found = answer(running, "check_deployment_readiness", deployment_id=deployment_id)
    assert not found["is_ready"]
    assert [window["id"] in blocker for blocker in found["blockers"]] == [True]
    assert refusal(running, "start_deployment", deployment_id=deployment_id) == "failed_precondition"

    answer(running, "lift_freeze_window", freeze_id=window["id"])
    assert answer(running, "check_deployment_readiness", deployment_id=deployment_id)["is_ready"]
    answer(running, "start_deployment", deployment_id=deployment_id)


def test_freeze_of_another_app_or_for_staging_does_not_matter(platform: RunningService) -> None:
    app_id = new_app(platform)
    environment(platform, app_id, "staging")
    environment(platform, app_id, "production", OTHER)
    freeze(platform, 1, 1, app_id=new_app(platform, "other-api"))
    release_id = new_release(platform, app_id)
    deploy(platform, release_id, "staging")
    deployment_id = answer(platform, "request_deployment", release_id=release_id, tier="production")["id"]
    approved(platform, deployment_id)

    answer(platform, "start_deployment", deployment_id=deployment_id)


@pytest.mark.parametrize(
    ("starts", "ends", "code"),
    [
        (1, 1, "invalid_arguments"),
        (2, 1, "invalid_arguments"),
        (-3, -1, "failed_precondition"),
        (0, 61, "invalid_arguments"),
    ],
    ids=["empty", "backwards", "past", "too_long"],
)
def test_impossible_freezes_are_refused(platform: RunningService, starts: int, ends: int, code: str) -> None:
    window = {
        "starts_at": (START + timedelta(days=starts)).isoformat(),
        "ends_at": (START + timedelta(days=ends)).isoformat(),
    }

    assert refusal(platform, "schedule_freeze_window", name="Closing", **window) == code


def test_only_its_creator_lifts_a_freeze(platform: RunningService) -> None:
    foreign, over = freeze(platform, 1, 1, created_by=OTHER), freeze(platform, 2, -1)

    assert refusal(platform, "lift_freeze_window", freeze_id=foreign["id"]) == "permission_denied"
    assert refusal(platform, "lift_freeze_window", freeze_id=over["id"]) == "failed_precondition"


def test_lock_stops_requests_and_starts_until_it_is_taken_off(platform: RunningService) -> None:
    app_id = new_app(platform)
    staging = environment(platform, app_id, "staging")
    release_id = new_release(platform, app_id)
    deployment_id = answer(platform, "request_deployment", release_id=release_id, tier="staging")["id"]
    answer(platform, "lock_environment", environment_id=staging, reason="Load test")

    assert refusal(platform, "lock_environment", environment_id=staging, reason="Again") == "failed_precondition"
    assert refusal(platform, "start_deployment", deployment_id=deployment_id) == "failed_precondition"
    answer(platform, "cancel_deployment", deployment_id=deployment_id, reason="Locked")
    assert refusal(platform, "request_deployment", release_id=release_id, tier="staging") == "failed_precondition"
    answer(platform, "unlock_environment", environment_id=staging)
    deploy(platform, release_id, "staging")


# Rollbacks


def test_rollback_goes_to_the_newest_earlier_success(platform: RunningService) -> None:
    app_id = new_app(platform)
    staging = environment(platform, app_id, "staging")
    first, second, third, fourth = (new_release(platform, app_id) for _ in range(4))
    for release_id, outcome in ((first, "succeeded"), (second, "succeeded"), (third, "failed"), (fourth, "succeeded")):
        deploy(platform, release_id, "staging", outcome)
    targets = answer(platform, "list_rollback_targets", environment_id=staging)["items"]
    assert [row["id"] for row in targets] == [second, first]
    call = {"environment_id": staging, "reason": "Errors"}
    assert refusal(platform, "rollback_environment", release_id=third, **call) == "failed_precondition"
    assert refusal(platform, "rollback_environment", release_id=fourth, **call) == "failed_precondition"

    made = answer(platform, "rollback_environment", **call)

    assert (made["kind"], made["release_id"], made["status"]) == ("rollback", second, "succeeded")
    assert get(platform, staging)["current_release_id"] == second
    undone = answer(platform, "list_deployments", release_id=fourth)["items"]
    assert [row["status"] for row in undone] == ["rolled_back"]
    answer(platform, "rollback_environment", **call)
    assert get(platform, staging)["current_release_id"] == first
    assert refusal(platform, "rollback_environment", **call) == "failed_precondition"


def test_withdrawn_release_is_no_rollback_target(platform: RunningService) -> None:
    app_id = new_app(platform)
    staging = environment(platform, app_id, "staging")
    first, second = new_release(platform, app_id), new_release(platform, app_id)
    deploy(platform, first, "staging")
    deploy(platform, second, "staging")
    answer(platform, "withdraw_release", release_id=first, reason="Loses data")

    assert answer(platform, "list_rollback_targets", environment_id=staging)["total"] == 0
    assert refusal(platform, "rollback_environment", environment_id=staging, reason="?") == "failed_precondition"


def test_rollback_works_during_a_freeze_but_not_for_outsiders(platform: RunningService) -> None:
    app_id = new_app(platform)
    production = environment(platform, app_id, "production", OTHER)
    for _ in range(2):
        release_id = new_release(platform, app_id)
        deployment_id = answer(platform, "request_deployment", release_id=release_id, tier="production")["id"]
        approved(platform, deployment_id)
        answer(platform, "start_deployment", deployment_id=deployment_id)
        answer(platform, "finish_deployment", deployment_id=deployment_id, outcome="succeeded")
    freeze(platform, 1, 24)
    guest = platform.fork()
    answer(guest, "update_app", app_id=app_id, owner_email=OTHER)

    assert refusal(guest, "rollback_environment", environment_id=production, reason="?") == "permission_denied"
    answer(platform, "rollback_environment", environment_id=production, reason="Errors")
    assert get(platform, production)["current_version"] == "0.1.0"
