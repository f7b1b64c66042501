"""Of a state, a predictor sees what matters to the call, and never more than fits."""

from __future__ import annotations

import json
from typing import Any

import pytest

from compoworld_core.services.world_model.excerpt import FIRST_ROWS, MAX_CHARS, MAX_TEXT, Excerpt
from tests.services.workshop import WorkshopState
from tests.services.workshop import shop as plain_shop


def crowded(jobs: int = 200, title: str = "Thing") -> WorkshopState:
    state = plain_shop()
    for number in range(jobs):
        state.jobs.insert(title=f"{title} {number}", key=f"hook {number}", customer_id="cus_1002")
    state.seal()
    return state


def keys(excerpt: Excerpt, table: str) -> list[str]:
    return [row["id"] for row in excerpt.rows[table]]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        pytest.param({"job_id": "job_1150"}, "job_1150", id="id"),
        pytest.param({"note": "please look at (job_1150), soon"}, "job_1150", id="id within a text"),
        pytest.param({"filter": {"hooks": ["HOOK 77"]}}, "job_1081", id="value, nested, in other case"),
        pytest.param({"number": 2}, "job_1003", id="first rows"),
    ],
)
def test_rows_that_the_arguments_lead_to_are_shown(arguments: dict[str, Any], expected: str) -> None:
    excerpt = Excerpt.of(crowded(), arguments)

    assert expected in keys(excerpt, "jobs")
    assert len(excerpt.rows["jobs"]) <= FIRST_ROWS + 1


def test_rows_linked_to_those_are_shown_both_ways() -> None:
    state = crowded()
    state.customers.insert(name="Somebody Else", email="else@shop.example")
    state.customers.insert(name="Bo Lind", email="bo@shop.example")
    state.jobs.insert(title="Lamp", customer_id="cus_1005")

    forth = Excerpt.of(state, {"job_id": "job_1204"})
    back = Excerpt.of(state, {"email": "bo@shop.example"})

    assert keys(forth, "customers") == ["cus_1001", "cus_1002", "cus_1003", "cus_1005"]
    assert "job_1204" in keys(back, "jobs")


def test_what_is_not_shown_is_counted() -> None:
    excerpt = Excerpt.of(crowded(), {})

    assert keys(excerpt, "jobs") == ["job_1001", "job_1002", "job_1003"]
    assert excerpt.left_out == {"customers": 0, "jobs": 200}


@pytest.mark.parametrize("arguments", [{"customer_id": "cus_1002"}, {"all": [f"job_{n}" for n in range(1001, 1204)]}])
def test_it_never_grows_beyond_its_size(arguments: dict[str, Any]) -> None:
    excerpt = Excerpt.of(crowded(title="x" * 190), arguments)

    assert MAX_CHARS / 2 < len(json.dumps(excerpt.rows, separators=(",", ":"))) <= MAX_CHARS + 100
    assert excerpt.left_out["jobs"] == 203 - len(excerpt.rows["jobs"])


def test_long_texts_are_cut_and_say_so() -> None:
    state = plain_shop()
    state.jobs.update("job_1001", key="k" * (MAX_TEXT + 5))

    row = Excerpt.of(state, {"job_id": "job_1001"}).rows["jobs"][0]

    assert row["key"] == "k" * MAX_TEXT + "… (5 more characters)"
    assert state.jobs.get("job_1001").key == "k" * (MAX_TEXT + 5)
