"""A transaction's outcome: net changes on commit, nothing at all on rollback."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone
from typing import Annotated, Any

import pytest

from compoworld_core.services.record import SchemaRecords
from compoworld_core.services.schema import ServiceSchema
from compoworld_core.services.sdk import Entity, Id, State, Table, Timestamp, table
from compoworld_core.services.state import RowChange
from compoworld_core.storage.digest import canonical_json
from tests.services.workshop import START, WorkshopState, rows, shop


def _shown(changes: tuple[RowChange, ...]) -> list[tuple[str, str, Any, Any]]:
    return [
        (change.table.name, change.key, before and before["key"], after and after["key"])
        for change in changes
        for before, after in [(change.before_row, change.after_row)]
    ]


def test_several_writes_to_a_row_are_one_change() -> None:
    state = shop()
    state.jobs.update("job_1002", key="x")
    state.jobs.update("job_1001", key="y")
    state.jobs.update("job_1002", key="z")
    state.jobs.insert(title="New", key="a")
    state.jobs.update("job_1004", key="b")

    assert _shown(state.commit()) == [
        ("jobs", "job_1002", "", "z"),
        ("jobs", "job_1001", "", "y"),
        ("jobs", "job_1004", None, "b"),
    ]
    assert state.writes == 1
    assert state.commit() == ()


@pytest.mark.parametrize("padding", [0, 1])
def test_what_cancels_out_is_no_change(padding: int) -> None:
    state = shop()
    state.jobs.delete(state.jobs.insert(title="Short-lived").id)
    state.jobs.update("job_1001", key="x")
    state.jobs.update("job_1001", key="")
    gone = state.jobs.delete("job_1002")
    state.jobs.insert(**dict(gone))
    if padding:
        state.jobs.update("job_1003", key="x")

    assert len(state.commit()) == padding
    assert state.writes == padding


def test_an_update_to_equal_values_is_no_change_and_no_write() -> None:
    state = shop()
    state.jobs.update("job_1001", title="Job 0", number=0)

    assert state.commit() == ()
    assert state.writes == 0
    assert not list(state.jobs.changed())


def test_a_time_in_another_offset_is_another_row() -> None:
    state = shop()
    state.jobs.update("job_1001", opened=START.astimezone(timezone(timedelta(hours=2))))

    (change,) = state.commit()

    assert change.before == change.after
    assert change.before_row != change.after_row


def test_plain_rows_are_the_same_only_as_json() -> None:
    type_ = SchemaRecords("row", {"type": "object"})

    def same(left: Any, right: Any) -> bool:
        return type_.same(type_.build(left), type_.build(right))

    assert same({"a": 1, "b": [{"c": None}]}, {"b": [{"c": None}], "a": 1})
    assert not same({"a": 1}, {"a": True})
    assert not same({"a": [1]}, {"a": [1.0]})
    assert not same({"a": {"b": 0}}, {"a": {"b": False}})


def test_the_worlds_own_changes_do_not_move_the_clock() -> None:
    state = shop()
    state.jobs.update("job_1001", key="x")

    assert len(state.commit(counted=False)) == 1
    assert state.writes == 0


def test_a_rollback_leaves_no_trace() -> None:
    state = shop()
    state.jobs.update("job_1001", key="x")
    state.commit()
    before = rows(state)
    state.jobs.insert(title="New")
    state.jobs.insert(title="Newer")
    state.jobs.delete("job_1004")
    state.jobs.insert(id="job_1004", title="Back")
    state.jobs.update("job_1001", key="y", number=77)
    state.jobs.delete("job_1001")
    state.customers.insert(name="N", email="n@a.example")

    state.rollback()

    assert rows(state) == before
    assert not state.journal
    assert state.jobs.where(number=77) == ()
    assert [row.id for row in state.jobs.where(number=0)] == ["job_1001"]
    assert state.jobs.insert(title="New").id == "job_1004"


def test_rows_survive_json() -> None:
    state = shop()

    for item in state.tables.values():
        for record in item:
            assert item.type.build(item.type.view(record)) == record
            canonical_json(item.type.view(record))


def test_the_declaration_says_keys_references_and_rules_as_data() -> None:
    schema = WorkshopState.declaration()[0]
    jobs = schema.tables["jobs"]

    assert (jobs.entity, jobs.id_prefix) == ("job", "job")
    assert jobs.unique == (("number",), ("title", "key"))
    assert {(key.field, key.table) for key in jobs.foreign_keys} == {
        ("customer_id", "customers"),
        ("helpers", "customers"),
    }
    assert jobs.semantics == {
        "id": "id:job",
        "title": "title",
        "customer_id": "id:customer",
        "helpers": "id:customer",
        "price": "money",
        "due": "date",
        "opened": "timestamp",
    }
    assert jobs.choices == {"status"}
    assert ServiceSchema.model_validate_json(schema.model_dump_json()) == schema


def test_declarations_that_make_no_sense_are_refused() -> None:
    class Keyless(Entity):
        id: str

    class KeylessState(State):
        rows: Table[Keyless]

    class Row(Entity):
        id: Annotated[str, Id("row")]
        at: Timestamp = datetime(2026, 1, 1, tzinfo=UTC)

    class WrongState(State):
        rows: Table[Row] = table(unique=("nothing",))

    KeylessState.__annotations__["rows"] = Table[Keyless]
    WrongState.__annotations__["rows"] = Table[Row]
    with pytest.raises(TypeError, match="needs a field `id`"):
        KeylessState.declaration()
    with pytest.raises(TypeError, match="'nothing' is not a field"):
        WrongState.declaration()
