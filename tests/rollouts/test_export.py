"""Training data has the released shape, byte for byte the same, and never holds what it must not hold."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from compoworld_core.errors import CompoWorldError, InputError, StorageError
from compoworld_core.rollouts.episode import run_episode
from compoworld_core.rollouts.export import export_records, write_jsonl, write_parquet
from compoworld_core.rollouts.oracle import oracles
from compoworld_core.rollouts.policy import Policy
from compoworld_core.rollouts.trajectory import TRAJECTORIES, Trajectory
from compoworld_core.specs.model import JsonObject
from compoworld_core.storage import DatasetLocation, merge, open_store, read_dataset, write_shard
from compoworld_core.tasks.task import Split, Task
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.gateway import META_TOOLS
from tests.rollouts.complaint import complaint_task
from tests.rollouts.policies import DONE, Scripted, calls


def rollout(task: Task, catalogue: Catalogue, policy: Policy | None = None) -> Trajectory:
    return asyncio.run(run_episode(task, catalogue, policy or oracles(catalogue)(task, 0)))


@pytest.fixture(scope="module")
def success(task: Task, catalogue: Catalogue) -> Trajectory:
    return rollout(task, catalogue)


def test_record_has_exactly_the_released_shape(task: Task, success: Trajectory) -> None:
    (record,) = export_records([success], [task])

    assert list(record) == ["tools", "messages", "meta", "source"]
    assert record["tools"] == list(META_TOOLS)
    assert record["source"] == "compoworld"
    assert record["meta"] == {
        "task_id": task.id,
        "rollout_idx": 0,
        "rubric_score": 1.0,
        "n_tool_calls": 18,
        "n_real_tool_calls": 7,
        "n_steps": 19,
        "finish_reason": "stop",
        "services": ["mail", "crm", "drive"],
        "domain": "communication",
        "domains": ["communication", "crm", "documents"],
        "capabilities": ["join", "policy_branch", "stale_reread"],
        "difficulty": "easy",
        "split": "sft",
        "walk": ["mail", "crm", "drive", "crm", "mail"],
        "policy": "oracle",
    }
    roles = [message["role"] for message in record["messages"]]
    assert roles == ["system", "user", *["assistant", "tool"] * 18, "assistant"]
    calls_made = [call for message in record["messages"] for call in message.get("tool_calls", ())]
    assert all(isinstance(call["function"]["arguments"], dict) for call in calls_made)


def test_call_names_the_tool_before_its_arguments_also_after_storage(
    task: Task, success: Trajectory, tmp_path: Path
) -> None:
    store, location = open_store(tmp_path), DatasetLocation(dataset="trajectories", key="k")
    write_shard(store, location, TRAJECTORIES, 0, [success], deterministic=True)
    merge(store, location, TRAJECTORIES, 1)
    stored = list(read_dataset(store, location, TRAJECTORIES))

    fresh, again = (json.dumps(list(export_records(rows, [task]))) for rows in ([success], stored))

    assert fresh == again
    assert '"arguments": {"tool_name": "search_messages", "arguments": {' in fresh


@pytest.mark.parametrize("split", ["eval_task", "eval_combo", "eval_service"])
def test_evaluation_is_never_exported_whoever_selected_it(split: Split, catalogue: Catalogue) -> None:
    task = complaint_task(split=split)
    trajectory = rollout(task, catalogue)

    assert trajectory.succeeded
    with pytest.raises(CompoWorldError, match=f"of split {split}"):
        list(export_records([trajectory], [task]))


def test_conversation_with_a_malformed_call_is_never_exported(task: Task, catalogue: Catalogue) -> None:
    malformed = rollout(task, catalogue, Scripted(calls(("list_tools", "crm")), DONE))

    with pytest.raises(InputError, match="not a JSON object"):
        list(export_records([malformed], [task]))


@pytest.mark.parametrize(("write", "name"), [(write_jsonl, "a.jsonl"), (write_parquet, "a.parquet")], ids=["l", "p"])
def test_file_appears_whole_or_not_at_all(write, name: str, task: Task, success: Trajectory, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    def breaking() -> Iterator[JsonObject]:
        yield from export_records([success], [task])
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError, match="killed"):
        write(breaking(), tmp_path / name)
    assert list(tmp_path.iterdir()) == []

    assert write(export_records([success], [task]), tmp_path / name) == 1
    assert [path.name for path in tmp_path.iterdir()] == [name]
    with pytest.raises(StorageError, match="exists already"):
        write([], tmp_path / name)


def test_jsonl_and_parquet_hold_the_same_records_in_the_same_bytes(
    task: Task, success: Trajectory, tmp_path: Path
) -> None:
    def records() -> Iterator[JsonObject]:
        return export_records([success], [task])

    for run in ("one", "two"):
        write_jsonl(records(), tmp_path / f"{run}.jsonl")
        write_parquet(records(), (tmp_path / f"{run}.parquet").as_uri())

    for kind in ("jsonl", "parquet"):
        assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"two.{kind}").read_bytes()
    expected = list(records())
    assert [json.loads(line) for line in (tmp_path / "one.jsonl").read_text().splitlines()] == expected
    (row,) = pq.read_table(tmp_path / "one.parquet").to_pylist()
    parts = {key: json.loads(row[key]) for key in ("tools", "messages", "meta")}
    assert [{**parts, "source": row["source"]}] == expected
