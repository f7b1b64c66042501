"""Rows come back equal, equal rows make equal bytes, and changed models are noticed."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Any

import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from compoworld_core.errors import InputError, StorageError
from compoworld_core.storage import DatasetType, canonical_json, parts
from compoworld_core.storage.parts import PartWriter, read_part
from tests.storage.rows import EVERYTHING, NOTES, Everything, Frozen, Level, Note, Step, notes
from tests.storage.test_digest import json_values, text

steps = st.builds(
    Step,
    tool=text,
    arguments=st.dictionaries(text, json_values, max_size=3),
    before=st.lists(st.integers()).map(tuple),
)
finite = st.floats(allow_nan=False, allow_infinity=False)
int64 = st.integers(-(2**63), 2**63 - 1)
everything = st.fixed_dictionaries(
    {
        "name": text,
        "count": int64,
        "share": finite,
        "done": st.booleans(),
        "level": st.sampled_from(Level),
        "split": st.sampled_from(["sft", "rl"]),
        "price": st.decimals(allow_nan=False, allow_infinity=False),
        "at": st.datetimes(timezones=st.none() | st.just(UTC)),
        "tags": st.lists(text).map(tuple),
        "steps": st.lists(steps, max_size=3).map(tuple),
        "data": json_values,
        "maybe": st.none() | text,
        "maybe_count": st.none() | int64,
        "maybe_step": st.none() | steps,
        "either": st.integers() | text,
        "from": text,
    }
).map(Everything.model_validate)


def written(type: DatasetType[Any], rows: Iterable[BaseModel]) -> bytes:
    file = io.BytesIO()
    writer = PartWriter(file, type)
    for row in rows:
        writer.add(type.plain(row), 1)
    writer.close()
    return file.getvalue()


def reread(type: DatasetType[Any], data: bytes) -> list[Any]:
    return list(read_part(io.BytesIO(data), type, "part"))


def test_reading_starts_no_thread() -> None:
    """A thread that still lets go of the file while the interpreter ends aborts the process."""
    script = (
        "import os\n"
        "from tests.storage.rows import NOTES, notes\n"
        "from tests.storage.test_dataset import reread, written\n"
        "data = written(NOTES, notes(3))\n"
        "before = os.listdir('/proc/self/task')\n"
        "assert reread(NOTES, data) == notes(3)\n"
        "assert os.listdir('/proc/self/task') == before\n"
    )

    subprocess.run([sys.executable, "-c", script], check=True)


@settings(deadline=None, max_examples=60)
@given(st.lists(everything, max_size=4))
def test_rows_come_back_equal(rows: list[Everything]) -> None:
    found = reread(EVERYTHING, written(EVERYTHING, rows))

    assert found == rows
    assert canonical_json(found) == canonical_json(rows), "Python takes 1 for True and 0.0 for -0.0; the text does not"


def test_nested_objects_get_no_invented_nulls() -> None:
    class Call(Frozen):
        arguments: dict[str, Any]

    calls = DatasetType("calls", 1, Call)
    rows = [Call(arguments={"a": None, "b": {"x": 1}}), Call(arguments={}), Call(arguments={"b": {"y": [None]}})]

    assert [row.arguments for row in reread(calls, written(calls, rows))] == [row.arguments for row in rows]


def test_columns_follow_the_one_rule() -> None:
    shown = {field.name: f"{field.type}{'?' if field.nullable else ''}" for field in EVERYTHING.arrow_schema}

    assert shown == {
        "name": "string",
        "count": "int64",
        "share": "double",
        "done": "bool",
        "level": "string",
        "split": "string",
        "price": "string",
        "at": "string",
        "tags": "list<item: string>",
        "steps": "string",
        "data": "string",
        "maybe": "string?",
        "maybe_count": "int64?",
        "maybe_step": "string?",
        "either": "string",
        "from": "string",
    }


def test_equal_rows_make_equal_bytes() -> None:
    assert written(NOTES, notes(500)) == written(NOTES, notes(500))


def test_part_says_what_it_holds_and_nothing_about_pandas() -> None:
    metadata = pq.ParquetFile(io.BytesIO(written(NOTES, notes(1)))).schema_arrow.metadata

    assert metadata == {b"compoworld.type": b"notes", b"compoworld.version": b"1"}


@pytest.mark.parametrize(("limit", "value"), [("ROW_GROUP_ROWS", 10), ("ROW_GROUP_BYTES", 10)])
def test_row_groups_are_bounded(monkeypatch: pytest.MonkeyPatch, limit: str, value: int) -> None:
    monkeypatch.setattr(parts, limit, value)

    data = written(NOTES, notes(25))

    groups = pq.ParquetFile(io.BytesIO(data)).metadata
    assert [groups.row_group(index).num_rows for index in range(groups.num_row_groups)] == [10, 10, 5]
    assert reread(NOTES, data) == notes(25)


def test_value_outside_its_column_is_refused_by_name() -> None:
    row = Everything.model_validate(
        {
            "name": "x", "count": 2**63, "share": 0.0, "done": True, "level": Level.LOW, "split": "rl", "price": 1,
            "at": datetime(2026, 1, 1), "tags": (), "steps": (), "data": None, "maybe": None, "maybe_count": None,
            "maybe_step": None, "either": 1, "from": "",
        },
        strict=False,
    )  # fmt: skip

    with pytest.raises(InputError, match=r"everything: \$\.count: 9223372036854775808 does not fit"):
        written(EVERYTHING, [row])


def test_nan_is_refused_by_name() -> None:
    class Score(Frozen):
        score: float

    with pytest.raises(InputError, match=r"scores: \$\.score: nan has no JSON form"):
        written(DatasetType("scores", 1, Score), [Score(score=float("nan"))])


def test_changed_columns_without_a_new_version_are_noticed() -> None:
    class Wider(Frozen):
        id: str
        body: str
        author: str | None

    data = written(NOTES, notes(1))

    with pytest.raises(StorageError, match=r"stored: id: string, body: string\nexpected: .*author: string\?"):
        reread(DatasetType("notes", 1, Wider), data)


def test_changed_values_without_a_new_version_are_noticed() -> None:
    class Numbered(Note):
        id: str

        def model_post_init(self, context: Any) -> None:
            raise ValueError("ids are numbers now")

    with pytest.raises(StorageError, match="a changed model needs a new version"):
        reread(DatasetType("notes", 1, Numbered), written(NOTES, notes(1)))


def test_part_that_is_no_parquet_is_reported() -> None:
    with pytest.raises(StorageError, match="part: not a Parquet file"):
        reread(NOTES, b"not parquet at all")


def test_row_of_a_subclass_is_refused_because_it_would_lose_fields() -> None:
    class Signed(Note):
        by: str

    with pytest.raises(InputError, match="a row is a Note, not a Signed"):
        written(NOTES, [Signed(id="1", by="x")])


def test_field_that_is_left_out_of_a_dump_has_no_column() -> None:
    class Marked(Note):
        mark: str = Field(default="", exclude=True)

    marked = DatasetType("marked", 1, Marked)

    assert "mark" not in marked.arrow_schema.names
    assert reread(marked, written(marked, [Marked(id="1", mark="x")])) == [Marked(id="1")]


def test_row_model_must_be_frozen_and_closed() -> None:
    class Loose(BaseModel):
        id: str

    with pytest.raises(InputError, match=r"Loose needs model_config = ConfigDict\(frozen=True"):
        DatasetType("loose", 1, Loose)


def test_order_needs_a_column_that_can_be_ordered() -> None:
    with pytest.raises(InputError, match="ordered_by='data'"):
        DatasetType("everything", 1, Everything, ordered_by="data")
