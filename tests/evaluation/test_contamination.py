"""Contamination: a task that stands in training data is found, and one that does not is not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.errors import InputError
from compoworld_core.evaluation.contamination import (
    BenchmarkTask,
    Contamination,
    check,
    read_records,
    read_tasks,
)
from compoworld_core.rollouts.export import write_parquet

ORDER = (
    "Look up the overdue work order of the north plant in the warehouse, read the manual to see which rule applies, "
    "and then mail the manager and the customer"
)
OTHER = "Book a table for six people near the harbour on Friday evening and tell everybody where and when to meet"


def task(*texts: str, name: str = "t", benchmark: str = "bench") -> BenchmarkTask:
    return BenchmarkTask(benchmark, name, texts)


def only(tasks: list[BenchmarkTask], **records: str) -> Contamination:
    (found,) = check(tasks, [(name, (text,)) for name, text in records.items()])
    return found


def record(said: str, task_id: str = "task-1", **message: Any) -> dict[str, Any]:
    return {
        "tools": [], "messages": [{"role": "user", "content": said, **message}],
        "meta": {"task_id": task_id, "rollout_idx": 2}, "source": "compoworld",
    }  # fmt: skip


def test_a_task_in_training_data_is_found_whatever_surrounds_it() -> None:
    found = only(
        [task(ORDER), task(OTHER, name="u")], a="Hello!", b=f"Please: {ORDER.upper().replace(',', ' –')} Thanks."
    )

    assert (found.tasks, found.testable, found.overlapped, found.share, found.records) == (2, 2, 1, 0.5, 1)
    (pair,) = found.overlaps
    assert (pair.task, pair.record, pair.likeness) == ("t", "b", 1.0)
    assert pair.common is not None
    assert pair.common in ORDER.lower().replace(",", "")


def test_twelve_words_in_a_row_are_no_overlap_and_thirteen_are() -> None:
    said = ORDER.replace(",", "").split()

    assert only([task(ORDER)], a=" ".join(said[:12])).overlapped == 0
    assert only([task(ORDER)], a=" ".join(said[:13])).overlapped == 1


def test_a_short_task_counts_as_a_whole_and_a_phrase_cannot_tell() -> None:
    short, phrase = " ".join(OTHER.split()[:9]), "Send the report"

    found = only([task(short), task(phrase, name="p")], a=f"{OTHER}. {phrase}.")

    assert (found.tasks, found.testable, found.overlapped) == (2, 1, 1)


def test_the_nearest_pair_shows_a_rewording_that_no_run_of_words_shows() -> None:
    reworded = (
        ORDER.replace("overdue", "late").replace("rule", "clause").replace("mail", "write to").replace("read", "open")
    )

    found = only([task(ORDER)], a=OTHER, b=reworded)

    assert found.overlapped == 0
    (pair,) = found.nearest
    assert pair.record == "b"
    assert 0.2 < pair.likeness < 0.9


def test_runs_do_not_reach_from_one_text_into_the_next() -> None:
    said = ORDER.replace(",", "").split()

    (found,) = check([task(ORDER)], [("a", (" ".join(said[:10]), " ".join(said[10:20])))])

    assert found.overlapped == 0


def test_benchmarks_are_counted_apart() -> None:
    tasks = [task(ORDER, benchmark="one"), task(OTHER, benchmark="two")]

    one, two = check(tasks, [("a", (ORDER,)), ("b", (ORDER,))])

    assert (one.benchmark, one.overlapped, one.records) == ("one", 1, 2)
    assert (two.benchmark, two.overlapped, two.records) == ("two", 0, 0)


@pytest.mark.parametrize("start", range(len(ORDER.split()) - 12))
def test_any_thirteen_words_of_a_task_are_found(start: int) -> None:
    part = " ".join(ORDER.split()[start : start + 13])

    assert only([task(ORDER)], a=f"and {part} again").overlapped == 1


def test_tasks_are_read_from_every_form_and_named(tmp_path: Path) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one/tasks.json").write_text(json.dumps([{"id": "q1", "query": ORDER}, {"query": OTHER}]))
    (tmp_path / "one/more.json").write_text(json.dumps({"tasks": [{"task_id": 7, "prompt": ORDER}]}))
    (tmp_path / "two").mkdir()
    (tmp_path / "two/lines.jsonl").write_text(f"{json.dumps({'name': 'a', 'q': ORDER})}\n\n{json.dumps([OTHER])}\n")
    (tmp_path / "two/text.md").write_text(ORDER)

    found = [(item.benchmark, item.name) for item in read_tasks(tmp_path)]

    assert found == [
        ("one", "one/more.json:7"), ("one", "one/tasks.json:q1"), ("one", "one/tasks.json:1"),
        ("two", "two/lines.jsonl:a"), ("two", "two/lines.jsonl:1"), ("two", "two/text.md"),
    ]  # fmt: skip


def test_a_folder_without_folders_is_one_benchmark(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(ORDER)

    assert [item.benchmark for item in read_tasks(tmp_path)] == [tmp_path.name]


@pytest.mark.parametrize("ending", ["jsonl", "parquet"])
def test_exported_records_are_read_with_what_tools_were_given(tmp_path: Path, ending: str) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "send", "arguments": {"body": ORDER}}}
    records = [record(OTHER), record("Hi.", "task-2", tool_calls=[call])]
    file = tmp_path / f"sft.{ending}"
    if ending == "jsonl":
        file.write_text("".join(f"{json.dumps(item)}\n" for item in records))
    else:
        write_parquet(records, file)

    (found,) = check([task(ORDER)], read_records(file))

    assert [pair.record for pair in found.overlaps] == ["task-2/2"]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"messages": 1}\n', "sft.jsonl:1: is no training record"),
        ('{"messages": ["hello"]}\n', "sft.jsonl:1: is no training record"),
        ("{\n", "sft.jsonl:1: is not JSON"),
    ],
)
def test_what_is_no_record_is_refused_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    (tmp_path / "sft.jsonl").write_text(text)

    with pytest.raises(InputError, match=told):
        list(read_records(tmp_path / "sft.jsonl"))


def test_a_file_that_is_no_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "sft.parquet").write_text("no")

    with pytest.raises(InputError, match="is no Parquet file of training records"):
        list(read_records(tmp_path / "sft.parquet"))


def test_an_empty_folder_of_tasks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="so there is no task to look for"):
        read_tasks(tmp_path)


def test_no_record_at_all_is_no_clean_record(tmp_path: Path) -> None:
    (tmp_path / "sft.jsonl").write_text("")

    with pytest.raises(InputError, match="there is no training record to look for tasks in"):
        check([task(ORDER)], read_records(tmp_path / "sft.jsonl"))
