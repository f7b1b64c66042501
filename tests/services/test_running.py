"""A call is a transaction, and only a correct success is kept."""

from __future__ import annotations

from typing import Any

import pytest

from compoworld_core.services.paging import paginate
from compoworld_core.services.running import RunningService
from compoworld_core.services.sdk import InvalidArguments
from tests.services.workshop import START, Interrupted, rows, start

JOB = {"job_id": "job_1001"}

FAILING: dict[str, tuple[str, dict[str, Any], str, str | None]] = {
    "refusal after writes": ("refuse", JOB, "failed_precondition", None),
    "no such row": ("set_price", {"job_id": "job_9", "price": "1.00"}, "not_found", None),
    "rule": ("finish_job", JOB, "failed_precondition", None),
    "taken": ("add_job", {"title": "Job 1"}, "already_exists", None),
    "invalid": ("set_price", JOB, "invalid_arguments", None),
    "no such tool": ("explode", {}, "not_found", None),
    "private": ("_tools", {}, "not_found", None),
    "exception": ("crash", JOB, "unavailable", "ZeroDivisionError"),
    "reader that writes": ("glance", JOB, "unavailable", "declared read-only"),
}


@pytest.mark.parametrize(("tool", "arguments", "code", "bug"), FAILING.values(), ids=FAILING)
def test_a_failed_call_leaves_the_state_untouched(
    tool: str, arguments: dict[str, Any], code: str, bug: str | None
) -> None:
    running = start()
    running.call("set_key", {**JOB, "key": "x"})
    before = rows(running.state)

    result = running.call(tool, arguments)

    assert rows(running.state) == before
    assert result.changes == ()
    assert not result.succeeded
    assert set(result.envelope) == {"success", "error"}
    assert result.envelope["error"]["code"] == code
    assert (result.bug is None) if bug is None else bug in str(result.bug)
    assert bug is None or bug not in result.envelope["error"]["message"]


def test_what_is_no_error_of_the_service_rolls_back_and_goes_on_up() -> None:
    running = start()
    before = rows(running.state)

    with pytest.raises(Interrupted):
        running.call("interrupt", JOB)

    assert rows(running.state) == before
    assert running.call("set_key", {**JOB, "key": "x"}).succeeded


def test_a_success_carries_data_and_its_row_changes() -> None:
    result = start().call("set_price", {**JOB, "price": "12.5"})

    assert result.succeeded
    assert set(result.envelope) == {"success", "data"}
    assert result.envelope["data"]["price"] == "12.50"
    (change,) = result.changes
    assert (change.key, change.before_row["price"], change.after_row["price"]) == ("job_1001", None, "12.50")  # type: ignore[index]


def test_a_write_that_changes_nothing_moves_no_clock() -> None:
    running = start()

    result = running.call("set_key", {**JOB, "key": ""})

    assert result.succeeded
    assert result.changes == ()
    assert running.state.writes == 0


def test_the_clock_and_the_lots_follow_the_services_own_writes() -> None:
    running = start()
    opened = [running.call("add_job", {"title": f"New {n}"}).envelope["data"]["opened"] for n in range(3)]
    lots = [running.call("draw_lot", JOB).envelope["data"]["number"] for _ in range(3)]

    assert opened == ["2026-02-12T08:30:00Z", "2026-02-12T08:30:01Z", "2026-02-12T08:30:02Z"]
    assert len(set(lots)) == 3
    assert running.context.now(6) == START.replace(second=6)


def test_reads_and_failures_do_not_touch_the_clock_or_the_lots() -> None:
    quiet, busy = start(), start()
    for _ in range(5):
        busy.call("search", {})
        busy.call("refuse", JOB)
        busy.call("crash", JOB)

    assert quiet.call("draw_lot", JOB).envelope == busy.call("draw_lot", JOB).envelope
    assert quiet.call("add_job", {"title": "A"}).envelope == busy.call("add_job", {"title": "A"}).envelope


def test_lots_differ_by_seed_and_agree_between_forks() -> None:
    def lot(running: RunningService) -> Any:
        return running.call("draw_lot", JOB).envelope["data"]["number"]

    one = start(seed=1)
    assert lot(one.fork()) == lot(one.fork()) == lot(start(seed=1))
    assert lot(one) != lot(start(seed=2))


def test_forks_are_services_of_their_own() -> None:
    running = start()
    twin = running.fork()
    before = rows(running.state)

    twin.call("add_job", {"title": "New"})
    twin.call("drop_job", JOB)

    assert rows(running.state) == before
    assert twin.package is running.package
    assert twin.backend is running.backend


def test_pages_cover_the_list_once() -> None:
    running = start()
    for number in range(20):
        running.call("add_job", {"title": f"New {number}"})

    for limit in (1, 4, 23, 200):
        found: list[str] = []
        cursor = None
        while True:
            page = running.call("search", {"limit": limit, "cursor": cursor}).envelope["data"]
            assert page["total"] == 23
            assert len(page["items"]) <= limit
            found += [row["id"] for row in page["items"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break
        assert found == [row.id for row in running.state.tables["jobs"]]


@pytest.mark.parametrize("cursor", ["x", "-1", "1.5", "²", "99", ""])
def test_a_cursor_that_no_page_gave_is_refused(cursor: str) -> None:
    with pytest.raises(InvalidArguments):
        paginate(range(5), 2, cursor)


@pytest.mark.parametrize("limit", [0, -1])
def test_a_page_has_room_for_a_row(limit: int) -> None:
    with pytest.raises(InvalidArguments):
        paginate(range(5), limit)
