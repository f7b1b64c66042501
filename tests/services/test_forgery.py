"""A guest that says whatever it likes: nothing that it claims reaches the state unless the tables accept it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from compoworld_core.services.hosted import HostPool
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.running import CallResult, RunningService
from compoworld_core.services.universe import Universe
from compoworld_core.specs.model import ToolSpec
from tests.services.desk import DESK, changed, held, packaged, start

HERE = "tests.services.test_forgery"

# A guest that replies whatever the call's argument holds. This module is loaded as the handlers of such guests.


def _obey(request: dict[str, Any]) -> dict[str, Any]:
    match request["arguments"]:
        case {"reply": dict(reply)}:
            text = json.dumps(reply).replace('"DEEP"', "[" * 300 + "]" * 300)
            return json.loads(text)  # type: ignore[no-any-return]
        case {"open": str(path)}:
            os.open(path, os.O_RDONLY)
        case {"connect": int(port)}:
            socket.create_connection(("127.0.0.1", port))
    raise ValueError("nothing asked")


handlers = {"load": lambda request: {}, "rewrite": lambda request: {}, "call": _obey}


@pytest.fixture(scope="module")
def desk() -> Iterator[ServicePackage]:
    with HostPool() as pool:
        yield packaged(DESK, pool)


@pytest.fixture(scope="module")
def universe() -> Universe:
    return Universe.generate(7)


@pytest.fixture(scope="module")
def forger(desk: ServicePackage, universe: Universe) -> Iterator[RunningService]:
    """A service whose guest says what it is told to."""
    with HostPool(handlers=HERE, call_s=20.0) as pool:
        pay = ToolSpec(name="pay", description="Obey.", parameters={"type": "object"}, effect="write")
        package = changed(desk, spec={**dict(desk.spec), "tools": (pay,)})
        yield start(package, pool.backend(package), universe)


def forge(forger: RunningService, **reply: Any) -> CallResult:
    return forger.call("pay", {"reply": {"envelope": {"success": True, "data": 1}, "bug": None, "writes": [], **reply}})


def write(table: Any, key: Any, row: Any, issued: Any = False) -> dict[str, Any]:
    return {"table": table, "key": key, "row": row, "issued": issued}


NEW: dict[str, Any] = {
    "id": "1011",
    "subject": "New",
    "place": None,
    "agent_id": None,
    "price": "5.00",
    "paid": "0.00",
    "watchers": [],
    "status": "open",
    "opened": None,
}
FORGERIES: dict[str, dict[str, Any]] = {
    "no_envelope": {"envelope": None},
    "neither_success_nor_failure": {"envelope": {"success": "yes", "data": 1}},
    "both": {"envelope": {"success": True, "data": 1, "error": {"code": "not_found", "message": ""}}},
    "unknown_code": {"envelope": {"success": False, "error": {"code": "teapot", "message": ""}}},
    "unavailable_by_itself": {"envelope": {"success": False, "error": {"code": "unavailable", "message": ""}}},
    "endless_message": {"envelope": {"success": False, "error": {"code": "not_found", "message": "x" * 50_000}}},
    "deep_data": {"envelope": {"success": True, "data": "DEEP"}},
    "extra_member": {"more": 1},
    "asks_for_unknown_rows": {"unknown_base": ["nowhere"]},
    "asks_for_nonsense": {"unknown_base": 5},
    "asks_again_and_again": {"unknown_base": ["tickets"]},
    "has_no_code_again_and_again": {"unknown_package": True},
    "error_of_nonsense": {"error": [1]},
    "writes_of_nonsense": {"writes": [5]},
    "unknown_table": {"writes": [write("secrets", "1011", NEW)]},
    "key_of_another_row": {"writes": [write("tickets", "1012", NEW)]},
    "no_id": {"writes": [write("tickets", "1011", {k: v for k, v in NEW.items() if k != "id"}, True)]},
    "future_id": {"writes": [write("tickets", "2000", {**NEW, "id": "2000"}, True)]},
    "past_id": {"writes": [write("tickets", "900", {**NEW, "id": "900"}, True)]},
    "id_of_a_list": {"writes": [write("tickets", ["1011"], {**NEW, "id": ["1011"]})]},
    "delete_nothing": {"writes": [write("tickets", "9999", None)]},
    "unknown_field": {"writes": [write("tickets", "1011", {**NEW, "admin": True})]},
    "field_named_self": {"writes": [write("tickets", "1011", {**NEW, "self": True})]},
    "missing_field": {"writes": [write("tickets", "1011", {"id": "1011"})]},
    "lost_field": {"writes": [write("tickets", "1001", {"id": "1001"})]},
    "illegal_value": {"writes": [write("tickets", "1011", {**NEW, "status": "lost"})]},
    "deep_value": {"writes": [write("tickets", "1011", {**NEW, "watchers": "DEEP"})]},
    "unhashable_unique": {"writes": [write("tickets", "1011", {**NEW, "place": {"a": 1}})]},
    "dangling_key": {"writes": [write("tickets", "1011", {**NEW, "agent_id": "agt_9"})]},
    "broken_rule": {"writes": [write("tickets", "1011", {**NEW, "status": "solved"})]},
    "taken_unique": {
        "writes": [
            write("tickets", "1011", {**NEW, "place": 77}, True),
            write("tickets", "x", {**NEW, "id": "x", "place": 77}),
        ]
    },
    "half_right": {"writes": [write("tickets", "1011", NEW, True), write("tickets", "1013", NEW, True)]},
}


@pytest.mark.parametrize("reply", FORGERIES.values(), ids=FORGERIES)
def test_forged_replies_are_bugs_and_change_nothing(forger: RunningService, reply: dict[str, Any]) -> None:
    untouched = held(forger)

    result = forge(forger, **reply)

    assert result.envelope["error"]["code"] == "unavailable"
    assert result.bug
    assert held(forger) == untouched


def test_honest_replies_of_the_same_guest_are_kept(forger: RunningService) -> None:
    result = forge(forger.fork(), writes=[write("tickets", "1011", NEW, True)])

    assert result.bug is None
    assert [change.after_row for change in result.changes] == [NEW]


def test_a_failure_keeps_no_writes(forger: RunningService) -> None:
    untouched = held(forger)
    refusal = {"success": False, "error": {"code": "not_found", "message": "no"}}

    result = forge(forger, envelope=refusal, writes=[write("tickets", "1011", NEW, True)])

    assert (result.envelope, result.bug) == (refusal, None)
    assert held(forger) == untouched


@pytest.mark.parametrize("attempt", [{"open": "/etc/passwd"}, {"connect": 80}], ids=["file", "network"])
def test_neither_files_nor_network_are_within_reach(forger: RunningService, attempt: dict[str, Any]) -> None:
    bug = forger.call("pay", attempt).bug

    assert bug is not None
    assert "PermissionError" in bug
