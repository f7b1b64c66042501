"""A prediction changes what the tables accept, answers what the tool promises, or leaves no trace."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from compoworld_core.services.world_model.backend import MAX_CHANGES
from compoworld_core.services.world_model.prediction import Check, Prediction, Predictor, Rejected, RowEdit
from compoworld_core.services.world_model.question import Question
from tests.services.workshop import rows
from tests.services.world_model.shop import Fixed, faults, shop

NEW_JOB = {"op": "insert", "table": "jobs", "key": "job_1004", "values": {"title": "Wait for a gasket"}}
FORECAST = {"day": "2026-02-13"}
TOLD = {"day": "2026-02-13", "things": 4}


def test_a_prediction_becomes_rows_and_an_answer() -> None:
    update = {"op": "update", "table": "jobs", "key": "job_1001", "values": {"key": "shelf 3"}}
    running = shop(Fixed({"changes": [NEW_JOB, update], "observation": {"order": "job_1004"}}))

    result = running.call("order_part", {"part": "gasket"})

    assert result.envelope == {"success": True, "data": {"order": "job_1004"}}
    assert result.world_model
    assert [(change.key, change.before is None) for change in result.changes] == [
        ("job_1004", True),
        ("job_1001", False),
    ]
    assert running.state.tables["jobs"].get("job_1001").key == "shelf 3"
    assert running.state.writes == 1


def test_a_predicted_refusal_is_an_answer() -> None:
    running = shop(Fixed({"error": {"code": "not_found", "message": "no such part"}}))

    result = running.call("order_part", {"part": "gasket"})

    assert result.envelope == {"success": False, "error": {"code": "not_found", "message": "no such part"}}
    assert (result.world_model, result.bug) == (True, None)


def test_tools_with_code_run_it() -> None:
    predictor = Fixed({"observation": "never said"})
    running = shop(predictor)

    result = running.call("add_job", {"title": "Clock"})

    assert result.envelope["data"]["title"] == "Clock"
    assert not result.world_model
    assert not predictor.asked


@pytest.mark.parametrize(
    "arguments", [{}, {"day": 3}, {"day": "x", "more": 1}, {"day": float("nan")}, {"day": "\ud800"}], ids=str
)
def test_arguments_that_break_the_schema_are_never_predicted(arguments: dict[str, Any]) -> None:
    predictor = Fixed({"observation": TOLD})

    result = shop(predictor).call("forecast", arguments)

    assert result.envelope["error"]["code"] == "invalid_arguments"
    assert not result.world_model
    assert not predictor.asked


def _with(**fields: Any) -> dict[str, Any]:
    return {"changes": [{**NEW_JOB, **fields}]}


UNACCEPTABLE: dict[str, tuple[str, dict[str, Any], str]] = {
    "writes though read-only": ("forecast", {"changes": [NEW_JOB], "observation": TOLD}, "read-only"),
    "breaks the output schema": ("forecast", {"observation": {"day": "2026-02-13", "things": -1}}, "things"),
    "no observation": ("forecast", {}, "breaks the schema at its top"),
    "no such table": ("order_part", _with(table="parts"), "changes[0]: there is no table 'parts'"),
    "no such field": ("order_part", _with(values={"title": "x", "colour": "red"}), "colour"),
    "wrong type": ("order_part", _with(values={"title": 7}), "changes[0]: invalid_arguments: Job: title"),
    "missing field": ("order_part", _with(values={}), "title"),
    "another id": ("order_part", _with(key="job_2000"), "the next id of jobs is 'job_1004'"),
    "an id among the values": ("order_part", _with(values={"id": "x", "title": "x"}), "the next id of jobs"),
    "dangling reference": ("order_part", _with(values={"title": "x", "customer_id": "cus_9"}), "cus_9"),
    "taken value": ("order_part", _with(values={"title": "x", "number": 0}), "already_exists"),
    "broken rule": ("order_part", _with(values={"title": "x", "status": "done"}), "a job that is done has a price"),
    "no such row": ("order_part", _with(op="update", key="job_9", values={"key": "x"}), "no job with id 'job_9'"),
    "no key": ("order_part", _with(op="delete", key=None), "there is no key"),
    "values of a delete": ("order_part", _with(op="delete", key="job_1001"), "a delete has no values"),
    "still referred to": (
        "order_part",
        {"changes": [{"op": "delete", "table": "customers", "key": "cus_1001"}]},
        "jobs",
    ),
    "second of two": ("order_part", {"changes": [NEW_JOB, NEW_JOB]}, "changes[1]: the next id of jobs is 'job_1005'"),
    "too many": ("order_part", {"changes": [{**NEW_JOB, "key": None}] * (MAX_CHANGES + 1)}, "at most 50"),
    "too large": ("order_part", {"observation": "x" * 100_000}, "100"),
    "a row that is not there": ("order_part", {"observation": {"see": ["job_1004"]}}, "job_1004"),
}


@pytest.mark.parametrize(("tool", "prediction", "reason"), UNACCEPTABLE.values(), ids=UNACCEPTABLE)
def test_what_is_not_acceptable_leaves_no_trace(tool: str, prediction: dict[str, Any], reason: str) -> None:
    running = shop(Fixed(prediction))
    untouched = rows(running.state)

    result = running.call(tool, {"part": "gasket"} if tool == "order_part" else FORECAST)

    assert result.envelope["error"]["code"] == "unavailable"
    assert reason in result.envelope["error"]["message"]
    assert (result.changes, result.world_model, result.bug) == ((), True, None)
    assert rows(running.state) == untouched


def test_a_check_tells_the_reason_and_leaves_no_trace() -> None:
    seen: list[Any] = []

    class Careful(Predictor):
        def predict(self, question: Question, check: Check) -> Prediction:
            with pytest.raises(Rejected, match="the next id of jobs is 'job_1004'"):
                check(Prediction(changes=(RowEdit(op="insert", table="jobs", key="job_7", values={"title": "x"}),)))
            accepted = Prediction.model_validate({"changes": [NEW_JOB], "observation": "ordered"})
            check(accepted)
            seen.append(rows(running.state))
            return accepted

    running = shop(Careful())
    untouched = rows(running.state)

    assert running.call("order_part", {"part": "gasket"}).succeeded
    assert seen == [untouched]


def test_a_deleted_row_may_be_told() -> None:
    running = shop(
        Fixed({"changes": [{"op": "delete", "table": "jobs", "key": "job_1002"}], "observation": "job_1002"})
    )

    assert running.call("order_part", {"part": "gasket"}).envelope["data"] == "job_1002"


leaves = st.none() | st.booleans() | st.integers(-3, 10**18) | st.floats() | st.text(max_size=6)
values = st.recursive(leaves, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner))
keys = st.sampled_from(["job_1001", "job_1002", "job_1004", "cus_1001", "cus_1003", "cus_1004", "", "nobody"])
fields = {
    "title": st.sampled_from(["Clock", "Job 1", ""]),
    "number": st.integers(0, 4) | st.none(),
    "customer_id": keys | st.none(),
    "helpers": st.lists(keys, max_size=2),
    "price": st.sampled_from(["1.00", "0", "x"]) | st.none(),
    "status": st.sampled_from(["open", "done", "lost"]),
    "key": st.text(max_size=3),
    "name": st.just("Ada Voss"),
    "email": st.sampled_from(["ada@shop.example", "no address"]),
}
row_values = st.fixed_dictionaries({}, optional=fields) | st.dictionaries(
    st.text(max_size=5) | st.sampled_from(["id"]), values
)
edits = st.builds(
    RowEdit,
    op=st.sampled_from(["insert", "update", "delete"]),
    table=st.sampled_from(["jobs", "customers", "parts"]),
    key=keys | st.none(),
    values=row_values,
)
predictions = st.builds(Prediction, changes=st.lists(edits, max_size=4).map(tuple), observation=values)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(steps=st.lists(st.tuples(st.sampled_from(["forecast", "order_part"]), predictions), min_size=1, max_size=4))
def test_whatever_is_predicted_the_state_stays_valid(steps: list[tuple[str, Prediction]]) -> None:
    predictor = Fixed({})
    running = shop(predictor)
    for tool, prediction in steps:
        predictor.prediction = prediction
        before = rows(running.state)

        result = running.call(tool, {"part": "gasket"} if tool == "order_part" else FORECAST)

        assert result.bug is None
        assert faults(running.state) == []
        if not result.succeeded or tool == "forecast":
            assert rows(running.state) == before
