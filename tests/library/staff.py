"""An HR directory under test: short words for who is who and for changes behind the tools' back."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from compoworld_core.services.running import RunningService
from tests.library.conformance import START, UNIVERSE, answer, rows

TODAY = START.date()
USER = UNIVERSE.user.email


def day(offset: int) -> str:
    return (TODAY + timedelta(days=offset)).isoformat()


def by_email(running: RunningService, email: str) -> Any:
    return answer(running, "find_employee_by_email", email=email)


def team(running: RunningService, status: str = "active") -> list[Any]:
    found = answer(running, "search_employees", manager_email=USER, status=status)["items"]
    return list(found)


def clear_leave(running: RunningService) -> None:
    for row in rows(running.state)["leave_requests"]:
        running.state.tables["leave_requests"].delete(row["id"])
    running.state.commit(counted=False)


def clear_job_changes(running: RunningService) -> None:
    for row in rows(running.state)["job_changes"]:
        running.state.tables["job_changes"].delete(row["id"])
    running.state.commit(counted=False)


def alter(running: RunningService, table: str, key: str, **fields: Any) -> None:
    """Change a row behind the tools' back, as the world's own row changes do."""
    running.state.tables[table].update(key, **fields)
    running.state.commit(counted=False)


def chain_of(running: RunningService, employee_id: str) -> list[str]:
    line = answer(running, "get_reporting_line", employee_id=employee_id)
    return [manager["id"] for manager in line["managers"]]


def hire(running: RunningService, **changes: Any) -> Any:
    department = next(
        row
        for row in answer(running, "list_departments", with_vacancies=True)["items"]
        if row["head_email"] is not None
    )
    arguments = {
        "name": "Lena Ahrens",
        "email": "lena.ahrens@nordwind.example",
        "username": "lahrens",
        "department_id": department["id"],
        "job_title": "Buyer",
        "office": "Essen",
        "starts_on": day(0),
    }
    return answer(running, "hire_employee", **{**arguments, **changes})
