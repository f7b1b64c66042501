"""The warehouse's own promises: one row per key, an audit trail, and rights that keep people out."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal
from typing import Any

import pytest

from compoworld_core.services.running import RunningService
from tests.library.conformance import START, UNIVERSE, answer, fresh, plant, refusal, rows
from tests.library.warehouse import ME, OTHERS, append, colleague, dataset, new_dataset, rows_of


@pytest.fixture
def warehouse() -> RunningService:
    return fresh("warehouse")


# Start state


def test_figures_are_about_the_universe_and_agree_with_each_other(warehouse: RunningService) -> None:
    net, gross = rows_of(warehouse, "revenue_net_monthly"), rows_of(warehouse, "revenue_gross_monthly")

    assert {row["organisation_name"] for row in net} == {item.name for item in UNIVERSE.organisations}
    by_key = {(row["organisation_name"], row["period"]): Decimal(row["amount"]) for row in net}
    for row in gross:
        if row["amount"] is not None and row["id"] not in {c["row_id"] for c in rows(warehouse.state)["changes"]}:
            expected = by_key[row["organisation_name"], row["period"]] * Decimal("1.2")
            assert Decimal(row["amount"]) == expected.quantize(Decimal("0.01"), ROUND_HALF_UP)
    assert {row["sku"] for row in rows_of(warehouse, "units_sold_monthly")} == {item.sku for item in UNIVERSE.products}
    hours = rows_of(warehouse, "project_hours_booked")
    assert {row["project_name"] for row in hours} == {item.name for item in UNIVERSE.projects}


# Rows


def test_appended_row_counts_at_once_and_its_key_is_taken(warehouse: RunningService) -> None:
    dataset_id = new_dataset(warehouse)
    row = append(warehouse, dataset_id, UNIVERSE.organisations[0].name, "12.50")

    assert row["period"] == "2026-01-01"
    assert row["country"] == UNIVERSE.organisations[0].country
    assert answer(warehouse, "list_dataset_rows", dataset_id=dataset_id)["items"] == [row]
    assert answer(warehouse, "get_dataset", dataset_id=dataset_id)["last_loaded_at"] == row["loaded_at"]
    again = {"dataset_id": dataset_id, "organisation_name": row["organisation_name"], "amount": "1.00"}
    assert refusal(warehouse, "append_revenue_row", period="2026-01-31", **again) == "already_exists"
    assert refusal(warehouse, "append_revenue_row", period="2026-03-01", **again) == "failed_precondition"


def test_rows_go_only_into_datasets_of_their_subject(warehouse: RunningService) -> None:
    sales = new_dataset(warehouse, "sales")
    product = UNIVERSE.products[0]

    arguments = {"dataset_id": sales, "period": "2026-01-01", "units": 3, "amount": "30.00"}
    assert answer(warehouse, "append_sales_row", sku=product.sku, **arguments)["product_name"] == product.name
    assert refusal(warehouse, "append_sales_row", sku="NEW-1", **arguments) == "invalid_arguments"
    wrong = {**arguments, "period": "2025-12-01", "product_name": "Other"}
    assert refusal(warehouse, "append_sales_row", sku=product.sku, **wrong) == "failed_precondition"
    revenue = {"dataset_id": sales, "period": "2026-01-01", "amount": "30.00", "organisation_name": "Alpha"}
    assert refusal(warehouse, "append_revenue_row", **revenue) == "failed_precondition"


def test_correction_keeps_the_old_figure_in_the_trail(warehouse: RunningService) -> None:
    row = append(warehouse, new_dataset(warehouse), "Alpha", "12.50")

    answer(warehouse, "correct_dataset_row", row_id=row["id"], amount="13.00", reason="Typing error")

    trail = answer(warehouse, "list_dataset_changes", dataset_id=row["dataset_id"], row_id=row["id"])["items"]
    assert [entry["action"] for entry in trail] == ["corrected", "appended"]
    assert (trail[0]["old_value"], trail[0]["new_value"], trail[0]["changed_by"]) == ("12.50", "13.00", ME)
    same = {"row_id": row["id"], "reason": "Again"}
    assert refusal(warehouse, "correct_dataset_row", amount="13.00", **same) == "failed_precondition"
    assert refusal(warehouse, "correct_dataset_row", units=3, **same) == "invalid_arguments"
    assert refusal(warehouse, "correct_dataset_row", **same) == "invalid_arguments"


def test_retracted_row_counts_nowhere_and_comes_back_only_to_a_free_place(warehouse: RunningService) -> None:
    dataset_id = new_dataset(warehouse)
    row = append(warehouse, dataset_id, "Alpha", "12.50")
    answer(warehouse, "retract_dataset_row", row_id=row["id"], reason="Wrong customer")

    assert answer(warehouse, "query_dataset", dataset_id=dataset_id)["total_rows"] == 0
    assert answer(warehouse, "list_dataset_rows", dataset_id=dataset_id, include_retracted=True)["total"] == 1
    assert (
        refusal(warehouse, "correct_dataset_row", row_id=row["id"], amount="1.00", reason="?") == "failed_precondition"
    )
    other = append(warehouse, dataset_id, "Alpha", "14.00")
    assert refusal(warehouse, "restore_dataset_row", row_id=row["id"], reason="Right") == "already_exists"
    answer(warehouse, "retract_dataset_row", row_id=other["id"], reason="The first was right")
    assert answer(warehouse, "restore_dataset_row", row_id=row["id"], reason="Right")["status"] == "current"


# Access


def test_restricted_dataset_keeps_its_rows_from_those_without_a_grant(warehouse: RunningService) -> None:
    margin = dataset(warehouse, "customer_margin")
    row = rows_of(warehouse, "customer_margin")[0]

    assert answer(warehouse, "get_dataset", dataset_id=margin["id"])["access"] == "restricted"
    for tool in ("list_dataset_rows", "query_dataset", "list_dataset_changes"):
        assert refusal(warehouse, tool, dataset_id=margin["id"]) == "permission_denied"
    assert refusal(warehouse, "get_dataset_row", row_id=row["id"]) == "permission_denied"
    assert refusal(warehouse, "create_saved_query", name="q", dataset_id=margin["id"]) == "permission_denied"

    grant = {"dataset_id": margin["id"], "granted_by": margin["owner_email"], "granted_at": START, "level": "read"}
    plant(warehouse, "grants", grantee_email=ME, expires_on="2026-02-11", **grant)
    assert refusal(warehouse, "get_dataset_row", row_id=row["id"]) == "permission_denied"
    plant(warehouse, "grants", role="analyst", expires_on="2026-02-12", **grant)
    assert answer(warehouse, "get_dataset_row", row_id=row["id"]) == row
    assert refusal(warehouse, "retract_dataset_row", row_id=row["id"], reason="?") == "permission_denied"


def test_open_dataset_is_read_by_all_and_written_by_few(warehouse: RunningService) -> None:
    returned = rows_of(warehouse, "units_returned_monthly")[0]

    assert answer(warehouse, "get_dataset_row", row_id=returned["id"]) == returned
    correction = {"row_id": returned["id"], "units": 99, "reason": "Counted again"}
    assert refusal(warehouse, "correct_dataset_row", **correction) == "permission_denied"


def test_only_the_owner_grants_and_the_strongest_right_counts(warehouse: RunningService) -> None:
    mine, other = new_dataset(warehouse), dataset(warehouse, "revenue_net_monthly")["id"]
    person = colleague(warehouse)
    role = next(row["role"] for row in rows(warehouse.state)["users"] if row["email"] == person)

    def level() -> str:
        return str(answer(warehouse, "check_dataset_access", dataset_id=mine, email=person.upper())["level"])

    assert level() == "none"
    answer(warehouse, "grant_role_dataset_access", dataset_id=mine, role=role, level="read")
    assert level() == "read"
    grant = answer(warehouse, "grant_dataset_access", dataset_id=mine, grantee_email=person, level="write")
    assert level() == "write"
    again = {"dataset_id": mine, "grantee_email": person, "level": "write"}
    assert refusal(warehouse, "grant_dataset_access", **again) == "already_exists"
    answer(warehouse, "revoke_dataset_access", grant_id=grant["id"])
    assert level() == "read"
    assert refusal(warehouse, "revoke_dataset_access", grant_id=grant["id"]) == "failed_precondition"
    assert refusal(warehouse, "grant_dataset_access", **{**again, "dataset_id": other}) == "permission_denied"
    past = {**again, "expires_on": "2026-02-11"}
    assert refusal(warehouse, "grant_dataset_access", **past) == "failed_precondition"


def test_request_waits_for_the_owner(warehouse: RunningService) -> None:
    margin = dataset(warehouse, "customer_margin")["id"]
    ask = {"dataset_id": margin, "level": "read", "justification": "Yearly review"}
    request = answer(warehouse, "request_dataset_access", **ask)

    assert request["requester_email"] == ME
    assert refusal(warehouse, "request_dataset_access", **ask) == "already_exists"
    assert refusal(warehouse, "approve_dataset_access_request", request_id=request["id"]) == "permission_denied"
    assert refusal(warehouse, "query_dataset", dataset_id=margin) == "permission_denied"
    already = {**ask, "dataset_id": dataset(warehouse, "units_returned_monthly")["id"]}
    assert refusal(warehouse, "request_dataset_access", **already) == "failed_precondition"


def test_approval_grants_what_was_asked_for_once(warehouse: RunningService) -> None:
    mine = new_dataset(warehouse)
    person = colleague(warehouse)
    pending = plant(
        warehouse,
        "access_requests",
        dataset_id=mine,
        requester_email=person,
        level="write",
        justification="I load it",
        requested_at=START,
    )

    decided = answer(warehouse, "approve_dataset_access_request", request_id=pending["id"])

    assert decided["grant_id"] in {row["id"] for row in rows(warehouse.state)["grants"]}
    assert answer(warehouse, "check_dataset_access", dataset_id=mine, email=person)["level"] == "write"
    assert refusal(warehouse, "decline_dataset_access_request", request_id=pending["id"]) == "failed_precondition"


# Catalogue


def test_deprecated_dataset_is_read_only_and_names_its_replacement(warehouse: RunningService) -> None:
    old, new = new_dataset(warehouse, name="old"), new_dataset(warehouse, name="new")
    hours = new_dataset(warehouse, "hours", name="hours")
    assert refusal(warehouse, "deprecate_dataset", dataset_id=old, replaced_by_id=hours) == "invalid_arguments"
    assert refusal(warehouse, "deprecate_dataset", dataset_id=old, replaced_by_id=old) == "invalid_arguments"

    answer(warehouse, "deprecate_dataset", dataset_id=old, replaced_by_id=new)

    row = {"dataset_id": old, "organisation_name": "Alpha", "period": "2026-01-01", "amount": "1.00"}
    assert refusal(warehouse, "append_revenue_row", **row) == "failed_precondition"
    assert answer(warehouse, "query_dataset", dataset_id=old)["total_rows"] == 0
    assert old not in {item["id"] for item in answer(warehouse, "list_datasets", limit=200)["items"]}


def test_dataset_in_use_cannot_be_deprecated(warehouse: RunningService) -> None:
    old, new = new_dataset(warehouse, name="old"), new_dataset(warehouse, name="new")
    link = answer(warehouse, "add_lineage_link", upstream_id=old, downstream_id=new)
    assert refusal(warehouse, "deprecate_dataset", dataset_id=old) == "failed_precondition"
    answer(warehouse, "remove_lineage_link", link_id=link["id"])
    query = answer(warehouse, "create_saved_query", name="Weekly", dataset_id=old)
    answer(warehouse, "schedule_saved_query", saved_query_id=query["id"], schedule="weekly")
    assert refusal(warehouse, "deprecate_dataset", dataset_id=old) == "failed_precondition"

    answer(warehouse, "schedule_saved_query", saved_query_id=query["id"], schedule="manual")
    answer(warehouse, "deprecate_dataset", dataset_id=old)


def test_lineage_forms_no_circle_and_shows_distances(warehouse: RunningService) -> None:
    a, b, c = (new_dataset(warehouse, name=name) for name in "abc")
    answer(warehouse, "add_lineage_link", upstream_id=a, downstream_id=b)
    answer(warehouse, "add_lineage_link", upstream_id=b, downstream_id=c)

    assert refusal(warehouse, "add_lineage_link", upstream_id=c, downstream_id=a) == "failed_precondition"
    assert refusal(warehouse, "add_lineage_link", upstream_id=a, downstream_id=a) == "failed_precondition"
    assert refusal(warehouse, "add_lineage_link", upstream_id=a, downstream_id=b) == "already_exists"
    upstream = answer(warehouse, "get_dataset_lineage", dataset_id=c)["upstream"]
    assert [(node["name"], node["distance"]) for node in upstream] == [("b", 1), ("a", 2)]


def test_refresh_needs_fresh_sources(warehouse: RunningService) -> None:
    source, derived = new_dataset(warehouse, name="source"), new_dataset(warehouse, name="derived")
    answer(warehouse, "add_lineage_link", upstream_id=source, downstream_id=derived)

    assert answer(warehouse, "get_dataset_freshness", dataset_id=derived)["stale_upstream_ids"] == [source]
    assert refusal(warehouse, "record_dataset_refresh", dataset_id=derived) == "failed_precondition"
    answer(warehouse, "record_dataset_refresh", dataset_id=source)
    answer(warehouse, "record_dataset_refresh", dataset_id=derived)

    found = answer(warehouse, "get_dataset_freshness", dataset_id=derived)
    assert (found["is_stale"], found["stale_upstream_ids"]) == (False, [])


# Quality


def test_check_counts_failing_rows_of_now(warehouse: RunningService) -> None:
    dataset_id = new_dataset(warehouse)
    row = append(warehouse, dataset_id, "Alpha", "-1.00")
    check = answer(
        warehouse, "create_quality_check", dataset_id=dataset_id, column="amount", kind="minimum", threshold="0.00"
    )

    failed = answer(warehouse, "run_quality_check", check_id=check["id"])
    answer(warehouse, "correct_dataset_row", row_id=row["id"], amount="0.00", reason="Credit note was booked twice")
    passed = answer(warehouse, "run_quality_check", check_id=check["id"])

    assert (failed["last_status"], failed["failing_rows"]) == ("failed", 1)
    assert (passed["last_status"], passed["failing_rows"]) == ("passed", 0)


@pytest.mark.parametrize(
    ("check", "code"),
    [
        ({"column": "sku", "kind": "not_null"}, "invalid_arguments"),
        ({"column": "country", "kind": "minimum", "threshold": "1.00"}, "invalid_arguments"),
        ({"column": "amount", "kind": "minimum"}, "invalid_arguments"),
        ({"column": "amount", "kind": "not_null", "threshold": "1.00"}, "invalid_arguments"),
    ],
    ids=["other_subject", "no_number", "no_threshold", "idle_threshold"],
)
def test_checks_without_sense_are_refused(warehouse: RunningService, check: Any, code: str) -> None:
    assert refusal(warehouse, "create_quality_check", dataset_id=new_dataset(warehouse), **check) == code


def test_flag_is_resolved_once_by_who_may(warehouse: RunningService) -> None:
    row = rows_of(warehouse, "units_returned_monthly")[0]
    flag = answer(warehouse, "flag_dataset_row", row_id=row["id"], issue="Too many")
    foreign = plant(
        warehouse,
        "flags",
        dataset_id=row["dataset_id"],
        row_id=row["id"],
        issue="Too few",
        raised_by=OTHERS[0],
        raised_at=START,
    )

    assert refusal(warehouse, "flag_dataset_row", row_id=row["id"], issue="Still") == "already_exists"
    assert answer(warehouse, "resolve_data_flag", flag_id=flag["id"], resolution="Counted")["resolved_by"] == ME
    again = {"flag_id": flag["id"], "resolution": "Counted"}
    assert refusal(warehouse, "resolve_data_flag", **again) == "failed_precondition"
    not_mine = {"flag_id": foreign["id"], "resolution": "Counted"}
    assert refusal(warehouse, "resolve_data_flag", **not_mine) == "permission_denied"
