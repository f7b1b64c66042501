"""Tables: constraints, order, ids, and forks that share what they do not change."""

from __future__ import annotations

from typing import Any

import pytest

from compoworld_core.errors import AlreadyExists, FailedPrecondition, InvalidArguments, NotFound, ToolError
from compoworld_core.services.conditions import Rule, Test
from compoworld_core.services.sdk import State
from compoworld_core.services.table import Base, Table
from tests.services.workshop import Workshop, WorkshopState, rows, shop

REFUSED_WRITES: dict[str, tuple[type[ToolError], str, dict[str, Any]]] = {
    "unknown field": (InvalidArguments, "insert", {"title": "A", "colour": "red"}),
    "missing field": (InvalidArguments, "insert", {"number": 9}),
    "illegal value": (InvalidArguments, "insert", {"title": "A", "status": "lost"}),
    "illegal change": (InvalidArguments, "job_1001", {"status": "lost"}),
    "unknown change": (InvalidArguments, "job_1001", {"colour": "red"}),
    "taken id": (AlreadyExists, "insert", {"id": "job_1001", "title": "A"}),
    "taken unique value": (AlreadyExists, "insert", {"title": "A", "number": 1}),
    "change to a taken unique value": (AlreadyExists, "job_1001", {"number": 1}),
    "taken pair": (AlreadyExists, "insert", {"title": "Job 1", "key": ""}),
    "half of a pair makes it taken": (AlreadyExists, "job_1001", {"title": "Job 1"}),
    "dangling reference": (NotFound, "insert", {"title": "A", "customer_id": "cus_9"}),
    "dangling reference in a list": (NotFound, "insert", {"title": "A", "helpers": ("cus_1001", "cus_9")}),
    "change to a dangling reference": (NotFound, "job_1001", {"customer_id": "cus_9"}),
    "no such row": (NotFound, "job_9", {"title": "A"}),
    "broken rule": (FailedPrecondition, "job_1001", {"status": "done"}),
    "new id": (FailedPrecondition, "job_1001", {"id": "job_5"}),
}


@pytest.mark.parametrize(("error", "target", "fields"), REFUSED_WRITES.values(), ids=REFUSED_WRITES)
def test_a_refused_write_changes_nothing(error: type[ToolError], target: str, fields: dict[str, Any]) -> None:
    state = shop()
    before = rows(state)

    with pytest.raises(error):
        state.jobs.insert(**fields) if target == "insert" else state.jobs.update(target, **fields)

    assert rows(state) == before
    assert not state.journal


def test_rows_that_are_referred_to_stay() -> None:
    state = shop()
    state.jobs.insert(title="Two hands", helpers=("cus_1002",))

    for key in ("cus_1001", "cus_1002"):
        with pytest.raises(FailedPrecondition, match="still referred to by jobs"):
            state.customers.delete(key)
    state.customers.delete("cus_1003")

    assert [row.id for row in state.customers] == ["cus_1001", "cus_1002"]


def test_a_unique_value_is_free_again_once_its_row_is_gone() -> None:
    state = shop()

    state.jobs.delete("job_1002")
    state.jobs.insert(title="Job 1", number=1)
    state.jobs.update("job_1001", number=None)

    assert state.jobs.insert(title="A", number=0).number == 0
    assert state.jobs.insert(title="B", number=None).number is None
    with pytest.raises(AlreadyExists):
        state.jobs.insert(title="C", number=1)


def test_fields_may_be_named_like_the_parameters_of_a_method() -> None:
    state = shop()

    assert state.jobs.update("job_1001", key="k").key == "k"
    assert [row.id for row in state.jobs.where(key="k")] == ["job_1001"]
    with pytest.raises(InvalidArguments):
        state.jobs.insert(title="A", self="x")
    with pytest.raises(InvalidArguments):
        state.jobs.update("job_1001", self="x")


def test_where_keeps_table_order_and_agrees_with_a_scan() -> None:
    state = shop()
    for number in range(10, 14):
        state.jobs.insert(title=f"Job {number}", customer_id="cus_1001")
    state.jobs.update("job_1002", due="2026-03-01")
    state.jobs.delete("job_1001")
    state.jobs.update("job_1005", customer_id="cus_1002")

    found = state.jobs.where(customer_id="cus_1001")

    assert found == tuple(row for row in state.jobs if row.customer_id == "cus_1001")
    assert [row.id for row in found] == ["job_1002", "job_1003", "job_1004", "job_1006", "job_1007"]
    assert state.jobs.where(lambda row: row.number is None, customer_id="cus_1001") == found[2:]
    assert state.jobs.first(customer_id="cus_1001") is found[0]
    assert state.jobs.first(customer_id="cus_9") is None


def test_a_loop_may_write_to_the_table_that_it_reads() -> None:
    for state in (shop(), shop().fork()):
        for job in state.jobs:
            state.jobs.insert(title=f"Copy of {job.title}")
            state.jobs.update(job.id, key="seen")
        for job in state.jobs:
            state.jobs.insert(title=f"{job.title} again", key=job.key)

        assert len(state.jobs) == 12
        assert [job.key for job in state.jobs][:6] == ["seen"] * 3 + [""] * 3


def test_ids_count_on_and_step_over_those_that_callers_chose() -> None:
    state = shop()
    state.jobs.insert(id="job_1004", title="Chosen")
    state.jobs.delete(state.jobs.insert(title="Short-lived").id)

    assert state.jobs.insert(title="A").id == "job_1006"
    assert state.jobs.insert(id=None, title="B").id == "job_1007"


def test_a_row_inserted_again_is_back_at_its_place() -> None:
    state = shop()
    gone = state.jobs.delete("job_1001")
    state.jobs.insert(**dict(gone))

    assert [row.id for row in state.jobs] == ["job_1001", "job_1002", "job_1003"]
    assert not list(state.jobs.changed())


def test_the_overlay_is_the_difference_from_the_sealed_rows() -> None:
    state = shop()
    state.jobs.update("job_1001", key="x")
    state.jobs.update("job_1001", key="")
    state.jobs.update("job_1002", key="y")
    state.jobs.delete("job_1003")
    state.jobs.insert(title="New")
    state.jobs.delete(state.jobs.insert(title="Gone").id)

    changed = {key: (before and before.key, after and after.key) for key, before, after in state.jobs.changed()}

    assert changed == {"job_1002": ("", "y"), "job_1003": ("", None), "job_1004": (None, "")}
    assert [row.id for row in state.jobs.base_rows()] == ["job_1001", "job_1002", "job_1003"]
    overlay = state.jobs.overlay_rows()
    assert overlay["job_1003"] is None
    assert overlay["job_1002"] == state.jobs.type.view(state.jobs.get("job_1002"))


def test_the_digest_of_the_base_follows_the_sealed_rows_only() -> None:
    state, same = shop(), shop()
    assert state.base_digests() == same.base_digests()

    state.jobs.update("job_1001", key="x")
    assert state.base_digests() == same.base_digests()

    state.seal()
    assert state.base_digests()["jobs"] != same.base_digests()["jobs"]
    assert state.base_digests()["customers"] == same.base_digests()["customers"]


class _Untouchable(dict[str, Any]):
    """Rows of a base that may be looked up, but neither walked nor copied."""

    def _refuse(self, *_: object) -> Any:
        raise AssertionError("a fork or a write touched the whole base")

    __iter__ = keys = values = items = copy = __len__ = _refuse


def test_forks_and_writes_share_the_base_and_never_walk_it() -> None:
    state = shop()
    state.jobs.insert(title="warm", number=9)  # computes the indexes, which is done once per base
    state.rollback()
    base: Base[Any] = state.jobs._base
    base.rows = _Untouchable(base.rows)

    twin = state.fork()
    twin.jobs.update("job_1001", key="x", number=20)
    twin.jobs.insert(title="New", number=21)
    twin.jobs.delete("job_1003")
    twin.commit()
    again = twin.fork()

    assert again.jobs._base is twin.jobs._base is state.jobs._base is base
    assert again.jobs.get("job_1002") is state.jobs.get("job_1002")
    assert again.jobs._overlay is twin.jobs._overlay
    assert state.jobs._overlay == {}


def test_a_fork_copies_the_overlay_once_and_only_when_it_writes() -> None:
    state = shop()
    state.jobs.update("job_1001", key="x")
    twin = state.fork()
    assert twin.jobs._overlay is state.jobs._overlay

    twin.jobs.update("job_1002", key="y")
    own = twin.jobs._overlay
    twin.jobs.update("job_1002", key="z")

    assert twin.jobs._overlay is own is not state.jobs._overlay
    assert state.jobs.get("job_1002").key == ""


@pytest.mark.parametrize("writer", ["original", "fork"])
def test_neither_side_of_a_fork_sees_the_other(writer: str) -> None:
    state = shop()
    state.jobs.update("job_1001", key="x", number=50)
    state.commit()
    twin = state.fork()
    writing, reading = (state, twin) if writer == "original" else (twin, state)
    before = rows(reading)

    writing.jobs.insert(title="New", number=51)
    writing.jobs.update("job_1001", number=None)
    writing.jobs.delete("job_1002")
    writing.customers.update("cus_1001", name="Someone else")
    writing.commit()

    assert rows(reading) == before
    assert reading.jobs.where(number=51) == ()
    assert reading.jobs.insert(title="Mine", number=51).id == "job_1004"


def test_forks_of_the_service_class_keep_their_class() -> None:
    twin = shop().fork()

    assert type(twin) is WorkshopState
    assert twin.jobs is twin.tables["jobs"]


def test_a_state_from_the_schema_keeps_the_same_promises() -> None:
    schema = Workshop.state_class.declaration()[0]
    model, plain = shop(), State.from_schema(schema)
    for name, table in model.tables.items():
        for record in table:
            plain.tables[name].insert(**table.type.view(record))
    plain.seal()

    assert [plain.tables["jobs"].type.view(row) for row in plain.tables["jobs"]] == rows(model)["jobs"]
    for name, (error, target, fields) in REFUSED_WRITES.items():
        jobs: Table[Any] = plain.tables["jobs"]
        with pytest.raises(error):
            jobs.insert(**_full(fields)) if target == "insert" else jobs.update(target, **fields)
        assert not plain.journal, name
    for value in ("12", "1.234", "abc", 12):
        with pytest.raises(InvalidArguments):
            plain.tables["jobs"].update("job_1001", price=value)
    for field, value in (("due", "2026-02-30"), ("opened", "soon")):
        with pytest.raises(InvalidArguments):
            plain.tables["jobs"].update("job_1001", **{field: value})


def _full(fields: dict[str, Any]) -> dict[str, Any]:
    if "title" not in fields:
        return fields
    empty = dict.fromkeys(("number", "customer_id", "price", "due", "opened"))
    return {**empty, "helpers": (), "status": "open", "key": "", **fields}


def test_a_rule_cannot_look_at_other_rows() -> None:
    with pytest.raises(ValueError, match="sees one row only"):
        Rule.model_validate(
            {
                "satisfies": [{"field": "a", "row": {"service": "s", "table": "t", "where": [], "field": "b"}}],
                "message": "",
            }
        )
    assert Rule(satisfies=(Test(field="a", other="b"),), message="").broken_by({"a": 1, "b": 2})
