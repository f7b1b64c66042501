"""A trained model behind a server: it answers with tool calls, and episodes go over HTTP to it as to any other.

`VLLM_PYTHON` names a Python with vLLM, in an environment of its own, made as docs/evaluation.md says.
"""

from __future__ import annotations

import asyncio
import json
import os
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.evaluation.serving import Serving, served
from compoworld_core.llm.config import Endpoint, ModelConfig
from compoworld_core.llm.journal import Journal
from compoworld_core.llm.pool import ModelPool
from compoworld_core.rollouts.distill import distill
from compoworld_core.rollouts.export import export_records
from compoworld_core.rollouts.trajectory import Trajectory
from compoworld_core.storage import open_store
from compoworld_core.storage.digest import JsonObject
from compoworld_core.tasks.sampler import TaskSettings, sample_tasks
from compoworld_core.tasks.task import Task
from compoworld_core.training.config import Layout, SftSettings, TinyModel
from compoworld_core.training.launch import launch
from compoworld_core.training.sft import SftJob
from tests.tasks.crafted import catalogue_of
from tests.training.stack.episodes import played

CATALOGUE, TOOLS = catalogue_of(1)
SETTINGS = SftSettings(context_tokens=8192, epochs=120, global_batch=1, learning_rate=5e-3)


@pytest.fixture(scope="module")
def lesson() -> tuple[Task, JsonObject]:
    """A task, and the shortest conversation that solves one."""
    attempts = sample_tasks(TaskSettings(profile="easy", count=8, seed=3, shares={"sft": 1}), TOOLS, CATALOGUE, 0, 1)
    tasks = [item.task for item in attempts if item.task is not None]
    records = list(export_records(played(tasks, CATALOGUE), tasks))
    shortest = min(records, key=lambda record: len(json.dumps(record["messages"])))
    return next(task for task in tasks if task.id == shortest["meta"]["task_id"]), shortest


@pytest.fixture(scope="module")
def model(lesson: tuple[Task, JsonObject], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of a model that knows one conversation by heart."""
    from compoworld_core.training.base import prepare
    from compoworld_core.training.conversations import write_rows

    folder = tmp_path_factory.mktemp("served")
    tiny = TinyModel(layers=2, hidden=128, heads=2, vocabulary=1024)
    base, fitting = prepare(None, tiny, SETTINGS, [lesson[1]], folder / "base")
    write_rows(fitting.rows, folder / "rows.jsonl")
    layout = Layout(device="cpu", gradient_checkpointing=False, save_every=10**6)
    job = SftJob(
        model=base,
        rows=str(folder / "rows.jsonl"),
        out=str(folder / "out"),
        store=str(folder / "store"),
        run="run",
        settings=SETTINGS,
        layout=layout,
    )
    (folder / "job.json").write_text(job.model_dump_json())
    launch(layout, "compoworld_core.training.sft", folder / "job.json")
    return folder / "out" / "model"


def test_a_served_model_calls_tools_and_solves_what_it_has_learnt(
    model: Path, lesson: tuple[Task, JsonObject], tmp_path: Path
) -> None:
    serving = Serving(folder=model, engine="transformers")

    with served(serving, tmp_path / "server.log") as url:
        assert_knows(lesson, url, serving.name, tmp_path / "store")


@pytest.mark.slow
def test_vllm_calls_tools_solves_what_was_learnt_and_reads_the_tokens_of_training(
    model: Path, lesson: tuple[Task, JsonObject], tmp_path: Path
) -> None:
    from transformers import AutoTokenizer

    from compoworld_core.training.conversations import token_ids

    python = os.environ.get("VLLM_PYTHON")
    if not python:
        pytest.skip("VLLM_PYTHON names no Python with vLLM")
    _, record = lesson
    messages, tools = record["messages"], record["tools"]
    trained = token_ids(messages, tools, AutoTokenizer.from_pretrained(model))
    answers = [place for place, message in enumerate(messages) if message["role"] == "assistant"]
    serving = Serving(folder=model, engine="vllm", python=Path(python), memory_share=0.2)

    with served(serving, tmp_path / "server.log") as url:
        assert_knows(lesson, url, serving.name, tmp_path / "store")
        whole = tokens(url, serving.name, messages, tools, is_to_answer=False)
        prompts = [tokens(url, serving.name, messages[:place], tools, is_to_answer=True) for place in answers]

    assert whole == trained
    for place, prompt in zip(answers, prompts, strict=True):
        assert trained[: len(prompt)] == prompt, f"message {place}"


def assert_knows(lesson: tuple[Task, JsonObject], url: str, name: str, store: Path) -> None:
    """A server's model answers as it was trained, and so solves its task."""
    task, record = lesson
    answer = asked(url, name, record)
    trajectory = rolled_out(url, name, task, store)

    first = next(message for message in record["messages"] if message["role"] == "assistant")
    (call,) = answer["tool_calls"]
    assert call["function"]["name"] == first["tool_calls"][0]["function"]["name"]
    assert json.loads(call["function"]["arguments"]) == first["tool_calls"][0]["function"]["arguments"]
    assert trajectory.error is None
    assert trajectory.succeeded, trajectory.verdict
    assert trajectory.policy == name


def asked(url: str, name: str, record: JsonObject) -> dict[str, Any]:
    """The first answer in a conversation."""
    body = {
        "model": name,
        "messages": record["messages"][:2],
        "tools": record["tools"],
        "max_tokens": 256,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    message: dict[str, Any] = post(f"{url}/chat/completions", body)["choices"][0]["message"]
    return message


def tokens(
    url: str, name: str, messages: list[JsonObject], tools: list[JsonObject], *, is_to_answer: bool
) -> list[int]:
    """What vLLM makes of a conversation; on the wire arguments of calls are text."""
    sent = [
        message | {"tool_calls": [in_text(call) for call in message["tool_calls"]]}
        if message.get("tool_calls")
        else message
        for message in messages
    ]
    body = {
        "model": name,
        "messages": sent,
        "tools": tools,
        "add_generation_prompt": is_to_answer,
        "chat_template_kwargs": {"enable_thinking": False},
    }
    ids: list[int] = post(f"{url.removesuffix('/v1')}/tokenize", body)["tokens"]
    return ids


def in_text(call: JsonObject) -> JsonObject:
    function = call["function"]
    return call | {"function": function | {"arguments": json.dumps(function["arguments"], ensure_ascii=False)}}


def post(url: str, body: JsonObject) -> Any:
    request = urllib.request.Request(url, json.dumps(body).encode(), {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=300) as response:
        return json.load(response)


def rolled_out(url: str, name: str, task: Task, store: Path) -> Trajectory:
    """An episode of the served model."""
    config = ModelConfig(
        model=name,
        max_tokens=512,
        extra={"chat_template_kwargs": {"enable_thinking": False}},
        endpoints=(Endpoint(base_url=url, concurrency=1),),
    )

    async def episode() -> Trajectory:
        async with ModelPool({name: config}, Journal(open_store(store))) as pool:
            (trajectory,) = [
                item
                async for item in distill(
                    [task], CATALOGUE, lambda task, rollout: pool.model(name, item=task.id, sample=rollout)
                )
            ]
        return trajectory

    return asyncio.run(episode())
