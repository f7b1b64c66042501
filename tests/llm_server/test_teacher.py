"""The scripted teacher solves what it is asked, slips as it is told, and keeps nothing between requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence

import openai
import pytest

from compoworld_core.llm.messages import AssistantMessage, Message, ToolCall, to_chat
from compoworld_core.rollouts.distill import distill
from compoworld_core.rollouts.trajectory import Trajectory
from compoworld_core.storage.digest import JsonObject
from tests.llm_server import LlmServer
from tests.llm_server.scripts.teacher import Slip, drawn, of_tasks
from tests.rollouts.complaint import complaint_task, open_catalogue

CATALOGUE = open_catalogue()
TASKS = [complaint_task(seed=seed) for seed in (1, 2)]


class Bare:
    """The official client as a policy, without anything around it."""

    name = "bare"

    def __init__(self, ai: openai.AsyncOpenAI) -> None:
        self._ai = ai

    async def respond(self, messages: Sequence[Message], tools: Sequence[JsonObject]) -> AssistantMessage:
        answer = await self._ai.chat.completions.create(
            model="teacher",
            messages=[to_chat(message) for message in messages],  # type: ignore[misc]
            tools=list(tools),  # type: ignore[arg-type]
        )
        said = answer.choices[0].message
        calls = [json.loads(call.to_json()) for call in said.tool_calls or ()]
        return AssistantMessage(
            content=said.content or "",
            tool_calls=tuple(ToolCall(id=call["id"], **call["function"]) for call in calls),
        )


def roll(slip: Slip | None, samples: int = 1) -> list[Trajectory]:
    async def run(server: LlmServer) -> list[Trajectory]:
        async with openai.AsyncOpenAI(base_url=server.base_url, api_key="none", max_retries=0) as ai:
            return [row async for row in distill(TASKS, CATALOGUE, lambda *_: Bare(ai), samples=samples)]

    slips = drawn({slip: 1.0}) if slip else None
    with LlmServer({"teacher": of_tasks(TASKS, CATALOGUE, slips)}) as server:
        return asyncio.run(run(server))


def test_it_solves_tasks_and_tells_samples_apart() -> None:
    rows = roll(None, samples=3)

    assert all(row.succeeded for row in rows)
    assert len({row.id for row in rows}) == 6


@pytest.mark.parametrize("slip", ["skips_write", "answers_wrongly"])
def test_it_fails_where_it_is_told_to(slip: Slip) -> None:
    rows = roll(slip)

    assert [(row.error, row.succeeded) for row in rows] == [(None, False)] * 2
    assert all(row.score > 0 for row in rows)


@pytest.mark.parametrize("slip", ["malformed", "wrong_tool"])
def test_it_makes_good_a_call_that_could_not_work(slip: Slip) -> None:
    rows = roll(slip)

    assert all(row.succeeded for row in rows)
    assert [sum(not call.envelope["success"] for call in row.calls) for row in rows] == [1, 1]
    assert all(row.is_well_formed == (slip == "wrong_tool") for row in rows)


def test_it_slips_in_the_shares_that_it_is_told() -> None:
    slips = drawn({"skips_write": 0.3, "malformed": 0.2}, seed=4)

    found = [slips(TASKS[0], take) for take in range(1000)]

    assert 250 < found.count("skips_write") < 350
    assert 150 < found.count("malformed") < 250
