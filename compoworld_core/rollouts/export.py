"""Training data: trajectories as `{tools, messages, meta, source}`, the shape that released trajectories have.

Evaluation tasks never become training data, and neither does a conversation with a call that is not well formed.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final

from compoworld_core.data import Data
from compoworld_core.errors import CompoWorldError
from compoworld_core.llm.messages import json_text, to_chat
from compoworld_core.rollouts.selection import TRAINING_SPLITS
from compoworld_core.rollouts.trajectory import Trajectory
from compoworld_core.specs.model import JsonObject
from compoworld_core.storage.dataset import DatasetType
from compoworld_core.storage.parts import PartWriter
from compoworld_core.storage.store import Store, open_store
from compoworld_core.tasks.task import Task
from compoworld_core.worlds.gateway import META_TOOLS

SOURCE: Final = "compoworld"


def export_records(trajectories: Iterable[Trajectory], tasks: Iterable[Task]) -> Iterator[JsonObject]:
    """The records of selected trajectories, in their order.

    Raises:
        CompoWorldError: A trajectory's task is for evaluation or not known, whoever selected it.
        InputError: A call is not well formed.
    """
    known = {task.id: task for task in tasks}
    for trajectory in trajectories:
        task = known.get(trajectory.task_id)
        if task is None or task.split not in TRAINING_SPLITS:
            about = f"of split {task.split}" if task else "not known"
            raise CompoWorldError(f"trajectory {trajectory.id} is no training data: its task is {about}")
        yield _record(trajectory, task)


def _record(trajectory: Trajectory, task: Task) -> JsonObject:
    return {
        "tools": list(META_TOOLS),
        "messages": [to_chat(message, arguments="object") for message in trajectory.messages],
        "meta": {
            "task_id": task.id,
            "rollout_idx": trajectory.rollout_idx,
            "rubric_score": trajectory.score,
            "n_tool_calls": trajectory.n_tool_calls,
            "n_real_tool_calls": trajectory.n_real_tool_calls,
            "n_steps": trajectory.n_steps,
            "finish_reason": trajectory.finish_reason,
            "services": list(task.core),
            "domain": trajectory.domains[0] if trajectory.domains else "",
            "domains": list(trajectory.domains),
            "capabilities": list(task.capabilities),
            "difficulty": task.difficulty,
            "split": task.split,
            "walk": list(task.walk),
            "policy": trajectory.policy,
        },
        "source": SOURCE,
    }


def write_jsonl(records: Iterable[JsonObject], target: str | Path) -> int:
    """Write records as lines of JSON; the file (or S3 object) appears once it is whole. Returns how many.

    Raises:
        StorageError: A file of that name is there already.
    """
    store, name = _place(target)
    count = 0
    with store.write(name) as file:
        for record in records:
            file.write(json_text(record).encode() + b"\n")
            count += 1
    return count


class _TextRecord(Data):
    """A record with its parts as JSON text: Parquet structs would invent nulls for absent keys."""

    tools: str
    messages: str
    meta: str
    source: str


_TEXT_RECORDS = DatasetType(name="training_records", version=1, row=_TextRecord)


def write_parquet(records: Iterable[JsonObject], target: str | Path) -> int:
    """Write records as Parquet, with `tools`, `messages` and `meta` as JSON text. Returns how many.

    Raises:
        StorageError: A file of that name is there already.
    """
    store, name = _place(target)
    with store.write(name) as file, closing(PartWriter(file, _TEXT_RECORDS)) as writer:
        for record in records:
            texts = {key: json_text(record[key]) for key in ("tools", "messages", "meta")}
            row = {**texts, "source": record["source"]}
            writer.add(row, sum(map(len, row.values())))
    return writer.rows


def _place(target: str | Path) -> tuple[Store, str]:
    directory, name = os.path.split(str(target))
    return open_store(directory or "."), name
