"""A data warehouse under test: short words for its datasets, their rows and the people around them."""

from __future__ import annotations

from typing import Any

from compoworld_core.services.running import RunningService
from tests.library.conformance import UNIVERSE, answer, rows

ME = UNIVERSE.user.email
OTHERS = [person.email for person in UNIVERSE.staff if person.email != ME]


def dataset(running: RunningService, name: str) -> Any:
    return next(row for row in rows(running.state)["datasets"] if row["name"] == name)


def rows_of(running: RunningService, name: str) -> list[Any]:
    wanted = dataset(running, name)["id"]
    return [row for row in rows(running.state)["rows"] if row["dataset_id"] == wanted and row["status"] == "current"]


def new_dataset(running: RunningService, subject: str = "revenue", name: str = "test_figures", **fields: Any) -> str:
    made = answer(running, "create_dataset", name=name, subject=subject, description="Figures.", **fields)
    return str(made["id"])


def append(running: RunningService, dataset_id: str, organisation: str, amount: str, period: str = "2026-01-15") -> Any:
    return answer(
        running,
        "append_revenue_row",
        dataset_id=dataset_id,
        organisation_name=organisation,
        period=period,
        amount=amount,
    )


def colleague(running: RunningService) -> str:
    """Somebody with another role than the user."""
    found: str = next(
        row["email"] for row in rows(running.state)["users"] if row["email"] != ME and row["role"] != "analyst"
    )
    return found
