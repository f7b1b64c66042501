"""The CRM's own promises: ordered pipeline, cases with resolutions, accounts that can't vanish under open work."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compoworld_core.library.crm.desk import PIPELINE
from compoworld_core.services.running import RunningService
from tests.library.conformance import UNIVERSE, fresh, rows

STAGES = ("qualification", "proposal", "negotiation", "won", "lost")


@pytest.fixture
def crm() -> RunningService:
    return fresh("crm")


def ask(running: RunningService, tool: str, **arguments: Any) -> Any:
    result = running.call(tool, arguments)
    assert result.succeeded, result.envelope
    return result.envelope["data"]


def refusal(running: RunningService, tool: str, **arguments: Any) -> str:
    before = rows(running.state)
    result = running.call(tool, arguments)
    assert not result.succeeded
    assert result.bug is None
    assert rows(running.state) == before
    code: str = result.envelope["error"]["code"]
    return code


def plant(running: RunningService, table: str, key: str, **fields: Any) -> None:
    """Change a row behind the tools' back, as the world's own row changes do."""
    running.state.tables[table].update(key, **fields)
    running.state.commit()


def new_account(running: RunningService, name: str = "Nordwind Optik GmbH") -> str:
    account_id: str = ask(running, "create_account", name=name, industry="optics", city="Essen", country="Germany")[
        "id"
    ]
    return account_id


def new_deal(running: RunningService, account_id: str) -> str:
    deal_id: str = ask(
        running, "create_deal", account_id=account_id, name="Lamps", amount="1200.00", close_date="2026-03-01"
    )["id"]
    return deal_id


def new_case(running: RunningService, account_id: str) -> str:
    case_id: str = ask(running, "create_case", account_id=account_id, kind="refund", summary="Money back")["id"]
    return case_id


# Start state


def test_every_organisation_is_an_account_owned_by_staff_with_its_people_as_contacts(crm: RunningService) -> None:
    staff = {person.email for person in UNIVERSE.staff}

    accounts = ask(crm, "search_accounts", limit=200)["items"]

    assert {account["name"] for account in accounts} == {item.name for item in UNIVERSE.organisations}
    assert {account["owner_email"] for account in accounts} <= staff
    for person in UNIVERSE.contacts:
        contact = ask(crm, "find_contact_by_email", email=person.email.upper())
        assert ask(crm, "get_account", account_id=contact["account_id"])["name"] == person.organisation


def test_each_account_has_exactly_one_primary_contact(crm: RunningService) -> None:
    primaries = [row["account_id"] for row in rows(crm.state)["contacts"] if row["is_primary"]]

    assert sorted(primaries) == sorted(row["id"] for row in rows(crm.state)["accounts"])


# Accounts


def test_account_names_and_billing_ids_are_unique(crm: RunningService) -> None:
    taken = ask(crm, "search_accounts", limit=1)["items"][0]
    account_id = new_account(crm)

    place = {"industry": "optics", "city": "Essen", "country": "Germany"}
    assert refusal(crm, "create_account", name=taken["name"], **place) == "already_exists"
    assert refusal(crm, "update_account", account_id=account_id, billing_id=taken["billing_id"]) == "already_exists"


def test_prospects_may_all_lack_a_billing_id(crm: RunningService) -> None:
    new_account(crm, "Nordwind Optik GmbH")

    assert ask(crm, "get_account", account_id=new_account(crm, "Nordwind Optics Ltd"))["billing_id"] is None


def test_owner_must_be_a_colleague(crm: RunningService) -> None:
    account_id = new_account(crm)

    outsider = UNIVERSE.contacts[0].email
    assert refusal(crm, "assign_account_owner", account_id=account_id, owner_email=outsider) == "not_found"


def test_new_owner_takes_open_work_along_only_if_asked(crm: RunningService) -> None:
    account_id = new_account(crm)
    kept, moved = new_deal(crm, account_id), new_deal(crm, account_id)
    ask(crm, "close_deal", deal_id=kept, outcome="lost", reason="Too expensive")
    case_id = new_case(crm, account_id)
    first, second = UNIVERSE.staff[1].email, UNIVERSE.staff[2].email

    ask(crm, "assign_account_owner", account_id=account_id, owner_email=first)
    assert ask(crm, "get_deal", deal_id=moved)["owner_email"] == UNIVERSE.user.email
    ask(crm, "assign_account_owner", account_id=account_id, owner_email=second, include_open_work=True)

    assert ask(crm, "get_deal", deal_id=moved)["owner_email"] == second
    assert ask(crm, "get_case", case_id=case_id)["owner_email"] == second
    assert ask(crm, "get_deal", deal_id=kept)["owner_email"] == UNIVERSE.user.email


@pytest.mark.parametrize("open_work", [new_deal, new_case], ids=["deal", "case"])
def test_account_with_open_work_cannot_be_archived(crm: RunningService, open_work: Any) -> None:
    account_id = new_account(crm)
    open_work(crm, account_id)

    assert refusal(crm, "archive_account", account_id=account_id) == "failed_precondition"


def test_archived_account_takes_nothing_until_it_is_restored(crm: RunningService) -> None:
    account_id = new_account(crm)
    ask(crm, "archive_account", account_id=account_id)

    assert refusal(crm, "create_case", account_id=account_id, kind="question", summary="?") == "failed_precondition"
    assert refusal(crm, "update_account", account_id=account_id, tier="gold") == "failed_precondition"
    assert refusal(crm, "archive_account", account_id=account_id) == "failed_precondition"
    assert ask(crm, "search_accounts", name="nordwind optik")["total"] == 0
    assert ask(crm, "search_accounts", name="nordwind optik", include_archived=True)["total"] == 1
    ask(crm, "restore_account", account_id=account_id)
    new_case(crm, account_id)


def test_search_combines_all_filters(crm: RunningService) -> None:
    accounts = ask(crm, "search_accounts", limit=200)["items"]
    wanted = accounts[3]

    found = ask(
        crm, "search_accounts", name=wanted["name"][2:8].upper(), tier=wanted["tier"], country=wanted["country"]
    )

    assert wanted in found["items"]
    assert all((row["tier"], row["country"]) == (wanted["tier"], wanted["country"]) for row in found["items"])
    assert accounts == sorted(accounts, key=lambda row: row["name"].casefold())


def test_overview_sums_open_and_won_deals(crm: RunningService) -> None:
    account_id = new_account(crm)
    won, lost, _ = (new_deal(crm, account_id) for _ in range(3))
    for stage in ("proposal", "negotiation"):
        ask(crm, "move_deal_stage", deal_id=won, stage=stage)
    ask(crm, "close_deal", deal_id=won, outcome="won")
    ask(crm, "close_deal", deal_id=lost, outcome="lost", reason="Too expensive")
    ask(crm, "update_deal", deal_id=new_deal(crm, account_id), amount="0.99")

    overview = ask(crm, "get_account_overview", account_id=account_id)

    assert (overview["open_deals"], overview["open_deal_amount"]) == (2, "1200.99")
    assert overview["won_amount"] == "1200.00"


def test_update_without_any_field_is_refused(crm: RunningService) -> None:
    assert refusal(crm, "update_account", account_id=new_account(crm)) == "invalid_arguments"


# Contacts


def test_contact_address_is_unique_whatever_its_case(crm: RunningService) -> None:
    account_id = new_account(crm)
    taken = UNIVERSE.contacts[0].email.title()

    assert refusal(crm, "create_contact", account_id=account_id, name="Someone", email=taken) == "already_exists"


def test_first_contact_is_primary_and_another_can_take_over(crm: RunningService) -> None:
    account_id = new_account(crm)
    first, second = (
        ask(crm, "create_contact", account_id=account_id, name=name, email=f"{name}@nordwind-optik.example")
        for name in ("ada", "bob")
    )
    assert (first["is_primary"], second["is_primary"]) == (True, False)
    assert refusal(crm, "delete_contact", contact_id=first["id"]) == "failed_precondition"

    ask(crm, "set_primary_contact", contact_id=second["id"])

    assert [row["id"] for row in ask(crm, "list_contacts", account_id=account_id, primary_only=True)["items"]] == [
        second["id"]
    ]
    ask(crm, "delete_contact", contact_id=first["id"])
    assert refusal(crm, "get_contact", contact_id=first["id"]) == "not_found"


def test_contact_who_is_mentioned_in_a_case_stays(crm: RunningService) -> None:
    account_id = new_account(crm)
    contact_id = ask(crm, "create_contact", account_id=account_id, name="Ada", email="ada@nordwind.example")["id"]
    ask(crm, "create_case", account_id=account_id, kind="question", summary="?", contact_id=contact_id)

    assert refusal(crm, "delete_contact", contact_id=contact_id) == "failed_precondition"


@pytest.mark.parametrize("tool", ["create_case", "log_activity"])
def test_contact_must_belong_to_the_account(crm: RunningService, tool: str) -> None:
    stranger = rows(crm.state)["contacts"][0]["id"]
    about = (
        {"kind": "question", "summary": "?"}
        if tool == "create_case"
        else {"kind": "call", "subject": "About the offer"}
    )

    assert refusal(crm, tool, account_id=new_account(crm), contact_id=stranger, **about) == "failed_precondition"


# Deals


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(moves=st.lists(st.sampled_from((*STAGES, "reopen")), max_size=12))
def test_deal_only_moves_along_the_pipeline(moves: list[str]) -> None:
    crm = fresh("crm")
    deal_id = new_deal(crm, new_account(crm))
    stage = "qualification"

    for move in moves:
        is_open = stage in PIPELINE
        if move == "reopen":
            allowed, tool, arguments = stage == "lost", "reopen_deal", {"close_date": "2026-04-01"}
        elif move in PIPELINE:
            step = STAGES.index(move) - STAGES.index(stage)
            allowed, tool, arguments = is_open and step != 0 and step <= 1, "move_deal_stage", {"stage": move}
        else:
            allowed = is_open and (move == "lost" or stage == "negotiation")
            reason = {"reason": "Too expensive"} if move == "lost" else {}
            tool, arguments = "close_deal", {"outcome": move, **reason}
        assert crm.call(tool, {"deal_id": deal_id, **arguments}).succeeded == allowed
        if allowed:
            stage = "qualification" if move == "reopen" else move
        deal = ask(crm, "get_deal", deal_id=deal_id)
        assert deal["stage"] == stage
        assert (deal["closed_on"] is not None) == (stage in ("won", "lost"))
        assert (deal["lost_reason"] is not None) == (stage == "lost")


def test_closed_deal_is_frozen(crm: RunningService) -> None:
    deal_id = new_deal(crm, new_account(crm))
    ask(crm, "close_deal", deal_id=deal_id, outcome="lost", reason="Too expensive")

    assert refusal(crm, "update_deal", deal_id=deal_id, amount="5.00") == "failed_precondition"


def test_lost_deal_needs_a_reason_and_a_won_one_an_amount(crm: RunningService) -> None:
    deal_id = new_deal(crm, new_account(crm))
    assert refusal(crm, "close_deal", deal_id=deal_id, outcome="lost") == "invalid_arguments"
    assert refusal(crm, "close_deal", deal_id=deal_id, outcome="lost", reason=" \n") == "invalid_arguments"
    ask(crm, "update_deal", deal_id=deal_id, amount="0")
    for stage in ("proposal", "negotiation"):
        ask(crm, "move_deal_stage", deal_id=deal_id, stage=stage)

    assert refusal(crm, "close_deal", deal_id=deal_id, outcome="won") == "failed_precondition"


@pytest.mark.parametrize(("closed_on", "succeeds"), [("2025-11-14", True), ("2025-11-13", False)], ids=["90", "91"])
def test_deal_lost_long_ago_stays_lost(crm: RunningService, closed_on: str, succeeds: bool) -> None:
    deal_id = new_deal(crm, new_account(crm))
    plant(crm, "deals", deal_id, stage="lost", closed_on=closed_on, lost_reason="No budget")

    assert crm.call("reopen_deal", {"deal_id": deal_id, "close_date": "2026-05-01"}).succeeded == succeeds


def test_expected_closing_day_is_never_past(crm: RunningService) -> None:
    deal_id = new_deal(crm, new_account(crm))

    assert refusal(crm, "update_deal", deal_id=deal_id, close_date="2026-02-11") == "failed_precondition"
    ask(crm, "update_deal", deal_id=deal_id, close_date="2026-02-12")


# Cases and activities


def test_case_is_closed_with_a_resolution_and_frozen(crm: RunningService) -> None:
    case_id = new_case(crm, new_account(crm))
    assert refusal(crm, "close_case", case_id=case_id, resolution="") == "invalid_arguments"

    case = ask(crm, "close_case", case_id=case_id, resolution="Refunded 12.00.")

    assert (case["status"], case["resolution"]) == ("closed", "Refunded 12.00.")
    assert case["closed_at"] > case["opened_at"]
    assert refusal(crm, "close_case", case_id=case_id, resolution="Again") == "failed_precondition"
    assert refusal(crm, "update_case", case_id=case_id, priority="urgent") == "failed_precondition"


def test_reopened_case_keeps_its_history(crm: RunningService) -> None:
    case_id = new_case(crm, new_account(crm))
    assert refusal(crm, "reopen_case", case_id=case_id, reason="Not done") == "failed_precondition"
    ask(crm, "close_case", case_id=case_id, resolution="Refunded 12.00.")

    case = ask(crm, "reopen_case", case_id=case_id, reason="The refund never arrived.")

    assert (case["status"], case["resolution"], case["closed_at"]) == ("in_progress", None, None)
    assert "Refunded 12.00." in case["description"]
    assert "never arrived" in case["description"]


def test_cases_come_most_urgent_first(crm: RunningService) -> None:
    order = ("urgent", "high", "normal", "low")

    cases = ask(crm, "list_cases", limit=200)["items"]

    keys = [(order.index(case["priority"]), case["opened_at"]) for case in cases]
    assert keys == sorted(keys)


def test_activity_is_of_the_past_and_by_the_user(crm: RunningService) -> None:
    account_id = new_account(crm)
    call = {"account_id": account_id, "kind": "call", "subject": "About the offer"}

    assert refusal(crm, "log_activity", **call, occurred_at="2026-02-13T00:00:00Z") == "failed_precondition"
    activity = ask(crm, "log_activity", **call, occurred_at="2026-02-12T09:00:00+02:00")

    assert activity["author_email"] == UNIVERSE.user.email
    assert ask(crm, "list_activities", account_id=account_id)["items"] == [activity]
