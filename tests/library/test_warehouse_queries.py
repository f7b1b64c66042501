"""Queries of the warehouse: exact, refused where they make no sense, and kept for whoever may read."""

from __future__ import annotations

from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compoworld_core.library.data.warehouse_query import run_query
from compoworld_core.library.data.warehouse_reports import next_run
from compoworld_core.library.data.warehouse_rows import DatasetRow, QueryDefinition
from compoworld_core.services.running import RunningService
from tests.library.conformance import START, answer, fresh, plant, refusal, rows
from tests.library.warehouse import ME, append, colleague, dataset, new_dataset, rows_of


@pytest.fixture
def warehouse() -> RunningService:
    return fresh("warehouse")


def test_query_groups_sums_and_orders(warehouse: RunningService) -> None:
    name = "revenue_net_monthly"
    expected: dict[str, Decimal] = {}
    for row in rows_of(warehouse, name):
        expected[row["organisation_name"]] = expected.get(row["organisation_name"], Decimal(0)) + Decimal(row["amount"])
    best = sorted(expected.items(), key=lambda item: -item[1])[:3]

    table = answer(
        warehouse,
        "query_dataset",
        dataset_id=dataset(warehouse, name)["id"],
        group_by=["organisation_name"],
        aggregates=[{"function": "sum", "column": "amount"}],
        order_by=[{"by": "sum_amount", "direction": "desc"}],
        limit=3,
    )

    assert table["columns"] == ["organisation_name", "sum_amount"]
    assert table["rows"] == [[organisation, str(total)] for organisation, total in best]
    assert table["total_rows"] == len(expected)


@pytest.fixture
def figures(warehouse: RunningService) -> tuple[RunningService, str]:
    """Alpha 10.00 and 20.01 in two months, Beta nothing, Gamma -5.50."""
    dataset_id = new_dataset(warehouse)
    for organisation, month, amount in (
        ("Alpha", 1, "10.00"),
        ("Alpha", 2, "20.01"),
        ("Beta", 1, None),
        ("Gamma", 2, "-5.50"),
    ):
        plant(
            warehouse,
            "rows",
            dataset_id=dataset_id,
            period=f"2026-0{month}-01",
            organisation_name=organisation,
            amount=amount,
            loaded_at=START,
            loaded_by=ME,
        )
    return warehouse, dataset_id


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ([{"column": "amount", "op": "gt", "value": "10"}], ["20.01"]),
        ([{"column": "amount", "op": "ge", "value": "10"}], ["10.00", "20.01"]),
        ([{"column": "amount", "op": "ne", "value": "10.00"}], ["20.01", "-5.50"]),
        ([{"column": "amount", "op": "lt", "value": "0"}], ["-5.50"]),
        ([{"column": "amount", "op": "is_null"}], [None]),
        ([{"column": "amount", "op": "not_null"}], ["10.00", "20.01", "-5.50"]),
        ([{"column": "period", "op": "le", "value": "2026-01"}], ["10.00", None]),
        ([{"column": "organisation_name", "value": "alpha"}], []),
        ([{"column": "organisation_name", "op": "contains", "value": "ALP"}], ["10.00", "20.01"]),
        ([{"column": "organisation_name", "op": "in", "value": "Beta | Gamma"}], [None, "-5.50"]),
        ([{"column": "organisation_name", "value": "Alpha"}, {"column": "period", "value": "2026-02-01"}], ["20.01"]),
    ],
    ids=lambda value: str(value)[:60],
)
def test_filters(figures: tuple[RunningService, str], where: Any, expected: Any) -> None:
    running, dataset_id = figures

    table = answer(running, "query_dataset", dataset_id=dataset_id, columns=["amount"], where=where)

    assert table["rows"] == [[value] for value in expected]


@pytest.mark.parametrize(
    ("aggregate", "expected"),
    [
        ({"function": "count"}, 4),
        ({"function": "count", "column": "amount"}, 3),
        ({"function": "sum", "column": "amount"}, "24.51"),
        ({"function": "avg", "column": "amount"}, "8.17"),
        ({"function": "min", "column": "amount"}, "-5.50"),
        ({"function": "max", "column": "period"}, "2026-02-01"),
        ({"function": "max", "column": "organisation_name"}, "Gamma"),
    ],
    ids=lambda value: str(value),
)
def test_aggregates_leave_empty_values_out(figures: tuple[RunningService, str], aggregate: Any, expected: Any) -> None:
    running, dataset_id = figures

    assert answer(running, "query_dataset", dataset_id=dataset_id, aggregates=[aggregate])["rows"] == [[expected]]


def test_average_is_rounded_half_up_and_a_sum_of_nothing_is_empty(warehouse: RunningService) -> None:
    dataset_id = new_dataset(warehouse)
    nothing = {"function": "sum", "column": "amount"}
    assert answer(warehouse, "query_dataset", dataset_id=dataset_id, aggregates=[nothing])["rows"] == [[None]]
    append(warehouse, dataset_id, "Alpha", "0.01")
    append(warehouse, dataset_id, "Beta", "0.00")

    average = {"function": "avg", "column": "amount"}
    assert answer(warehouse, "query_dataset", dataset_id=dataset_id, aggregates=[average])["rows"] == [["0.01"]]


@pytest.mark.parametrize("direction", ["asc", "desc"])
def test_empty_values_come_last_in_either_direction(figures: tuple[RunningService, str], direction: str) -> None:
    running, dataset_id = figures

    table = answer(
        running,
        "query_dataset",
        dataset_id=dataset_id,
        columns=["amount"],
        order_by=[{"by": "amount", "direction": direction}],
    )

    amounts = ["-5.50", "10.00", "20.01"]
    assert [row[0] for row in table["rows"]] == [*(amounts if direction == "asc" else amounts[::-1]), None]


@pytest.mark.parametrize(
    "query",
    [
        {"columns": ["sku"]},
        {"group_by": ["country"], "columns": ["country"]},
        {"aggregates": [{"function": "sum"}]},
        {"aggregates": [{"function": "sum", "column": "country"}]},
        {"order_by": [{"by": "sum_amount"}]},
        {"group_by": ["country"], "order_by": [{"by": "amount"}]},
        {"where": [{"column": "amount", "value": "much"}]},
        {"where": [{"column": "amount"}]},
        {"where": [{"column": "period", "value": "2026-02-30"}]},
        {"where": [{"column": "amount", "op": "contains", "value": "1"}]},
        {"where": [{"column": "amount", "op": "is_null", "value": "1"}]},
    ],
    ids=lambda value: str(value)[:70],
)
def test_queries_without_sense_are_refused_and_not_saved(figures: tuple[RunningService, str], query: Any) -> None:
    running, dataset_id = figures

    assert refusal(running, "query_dataset", dataset_id=dataset_id, **query) == "invalid_arguments"
    assert refusal(running, "create_saved_query", name="q", dataset_id=dataset_id, **query) == "invalid_arguments"


_ROWS = st.lists(
    st.tuples(
        st.sampled_from(("Alpha", "Beta", "Gamma")),
        st.none() | st.decimals(-1000, 1000, places=2, allow_nan=False),
    ),
    max_size=12,
)


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(values=_ROWS, least=st.integers(-900, 900))
def test_groups_add_up_to_the_whole(values: list[tuple[str, Decimal | None]], least: int) -> None:
    facts = [
        DatasetRow(
            id=f"row_{place}",
            dataset_id="dset_1",
            period=date(2026, 1, 1),
            organisation_name=organisation,
            amount=amount,
            loaded_at=START,
            loaded_by=ME,
        )
        for place, (organisation, amount) in enumerate(values)
    ]
    where = [{"column": "amount", "op": "ge", "value": str(least)}]
    figures = [{"function": "sum", "column": "amount"}, {"function": "count"}]

    def ask(**more: Any) -> Any:
        return run_query(
            facts, "revenue", QueryDefinition.model_validate({"where": where, "aggregates": figures, **more})
        )

    kept = [amount for _, amount in values if amount is not None and amount >= least]
    whole, parts = ask(), ask(group_by=["organisation_name"])
    assert whole.rows == ((format(sum(kept), ".2f") if kept else None, len(kept)),)
    assert sum(Decimal(row[1]) for row in parts.rows) == sum(kept)
    assert sum(row[2] for row in parts.rows) == len(kept)


def test_run_keeps_what_it_found(warehouse: RunningService) -> None:
    dataset_id = new_dataset(warehouse)
    append(warehouse, dataset_id, "Alpha", "12.50")
    total = [{"function": "sum", "column": "amount"}]
    query = answer(warehouse, "create_saved_query", name="Total", dataset_id=dataset_id, aggregates=total)

    first = answer(warehouse, "run_saved_query", saved_query_id=query["id"])
    append(warehouse, dataset_id, "Beta", "1.00")
    second = answer(warehouse, "run_saved_query", saved_query_id=query["id"])

    assert (first["rows"], second["rows"]) == ([["12.50"]], [["13.50"]])
    assert answer(warehouse, "get_query_run", run_id=first["id"]) == first
    assert answer(warehouse, "list_query_runs", saved_query_id=query["id"])["items"] == [second, first]
    answer(warehouse, "delete_saved_query", saved_query_id=query["id"])
    assert refusal(warehouse, "get_query_run", run_id=first["id"]) == "not_found"


def test_recipients_must_be_allowed_to_read(warehouse: RunningService) -> None:
    dataset_id = new_dataset(warehouse)
    query = answer(warehouse, "create_saved_query", name="Total", dataset_id=dataset_id)
    person = colleague(warehouse)
    send = {"saved_query_id": query["id"], "schedule": "monthly", "recipient_emails": [person]}

    assert refusal(warehouse, "schedule_saved_query", **send) == "failed_precondition"
    answer(warehouse, "grant_dataset_access", dataset_id=dataset_id, grantee_email=person, level="read")
    planned = answer(warehouse, "schedule_saved_query", **send)
    assert (planned["recipient_emails"], planned["next_run_on"]) == ([person], "2026-03-01")


def test_queries_of_others_can_be_run_but_not_changed(warehouse: RunningService) -> None:
    foreign = next(row for row in rows(warehouse.state)["saved_queries"] if row["owner_email"] != ME)

    answer(warehouse, "run_saved_query", saved_query_id=foreign["id"])
    assert refusal(warehouse, "delete_saved_query", saved_query_id=foreign["id"]) == "permission_denied"


@pytest.mark.parametrize(
    ("after", "schedule", "expected"),
    [
        (date(2026, 2, 28), "daily", date(2026, 3, 1)),
        (date(2026, 12, 29), "weekly", date(2027, 1, 5)),
        (date(2026, 1, 31), "monthly", date(2026, 2, 1)),
        (date(2026, 12, 1), "monthly", date(2027, 1, 1)),
        (date(2026, 12, 1), "manual", None),
    ],
)
def test_next_run(after: date, schedule: Any, expected: date | None) -> None:
    assert next_run(after, schedule) == expected
