"""Whoever asks, an answer is paid for once, kept, and counted."""

from __future__ import annotations

import asyncio
import threading
from decimal import Decimal
from pathlib import Path

import pytest

from compoworld_core.errors import BudgetExhausted, InputError, StorageError
from compoworld_core.llm.config import Budget
from compoworld_core.llm.journal import ROOT
from compoworld_core.llm.messages import AssistantMessage, Usage
from compoworld_core.llm.model import ModelFailure
from compoworld_core.llm.pool import ModelPool
from compoworld_core.storage.digest import JsonObject
from tests.llm.endpoints import MODEL, NAME, ask, echo, model, using
from tests.llm_server import LlmServer, Reply

TOLD = {"prompt_tokens": 100, "completion_tokens": 10, "prompt_tokens_details": {"cached_tokens": 40}}
COST = Decimal("0.00032")


def priced(request: JsonObject) -> Reply:
    return Reply(content="Yes.", usage=TOLD)


def entries(folder: Path) -> list[Path]:
    return sorted((folder / ROOT).rglob("*.json"))


def test_an_answer_carries_what_it_took(tmp_path: Path) -> None:
    with LlmServer({MODEL: priced}) as server:
        answer = using(model(server), tmp_path, ask)

    assert answer == AssistantMessage(
        content="Yes.", usage=Usage(prompt_tokens=100, cached_tokens=40, completion_tokens=10)
    )


def test_streamed_or_not_the_answer_is_the_same_and_found_again(tmp_path: Path) -> None:
    def script(request: JsonObject) -> Reply:
        return Reply("Ich sehe nach, é.", [("a", {"x": 1}), ("b", "{not json")], reasoning_content="Hm. " * 50)

    with LlmServer({MODEL: script}) as server:
        streamed = using(model(server), tmp_path / "1", ask)
        whole = using(model(server, stream=False), tmp_path / "2", ask)
        again = using(model(server, stream=False), tmp_path / "1", ask)
        requests = len(server.requests)

    assert streamed == whole == again
    assert [call.arguments for call in streamed.tool_calls] == ['{"x": 1}', "{not json"]
    assert requests == 2
    (first,), (second,) = entries(tmp_path / "1"), entries(tmp_path / "2")
    assert first.read_bytes() == second.read_bytes()
    assert first.relative_to(tmp_path / "1") == second.relative_to(tmp_path / "2")


def test_samples_and_questions_differ_and_equal_ones_are_asked_once(tmp_path: Path) -> None:
    async def work(pool: ModelPool) -> list[AssistantMessage]:
        return await asyncio.gather(
            *(ask(pool, "A", item=f"i{number}") for number in range(50)), ask(pool, "A", sample=1), ask(pool, "B")
        )

    with LlmServer({MODEL: echo}) as server:
        answers = using(model(server), tmp_path, work)
        requests = len(server.requests)

    assert [answer.content for answer in answers[-2:]] == ["You said: A", "You said: B"]
    assert requests == len(entries(tmp_path)) == 3


def test_what_another_process_journaled_first_is_adopted(tmp_path: Path) -> None:
    """Both ask at the same time, and are given different answers: one of them is the answer."""

    def unsteady(request: JsonObject) -> Reply:
        count[0] += 1
        return Reply(content=f"Answer {count[0]}")

    async def both(first: ModelPool) -> set[str]:
        def other() -> AssistantMessage:
            return using(model(server), tmp_path, ask)

        answers = await asyncio.gather(ask(first), asyncio.to_thread(other))
        return {answer.content for answer in answers}

    count = [0]
    with LlmServer({MODEL: unsteady}) as server:
        assert len(using(model(server), tmp_path, both)) == 1


def test_spend_is_told_by_item_and_journaled_answers_are_not_paid_but_counted(tmp_path: Path) -> None:
    async def work(pool: ModelPool) -> list[JsonObject]:
        await ask(pool, "A", item="task-b")
        await ask(pool, "B", item="task-b")
        await ask(pool, "C", item="task-a")
        await ask(pool, "C", item="task-a")
        return pool.spend()

    row = {"prompt_tokens": 100, "cached_tokens": 40, "completion_tokens": 10, "usd": str(COST)}
    double = {"prompt_tokens": 200, "cached_tokens": 80, "completion_tokens": 20, "usd": str(2 * COST)}
    with LlmServer({MODEL: priced}) as server:
        paid = using(model(server), tmp_path, work)
        replayed = using(model(server), tmp_path, work)
        requests = len(server.requests)

    assert requests == 3
    assert paid == [
        {"model": NAME, "item": "task-a", "requests": 2, "journaled": 1, **row},
        {"model": NAME, "item": "task-b", "requests": 2, "journaled": 0, **double},
    ]
    assert replayed == [paid[0] | {"journaled": 2}, paid[1] | {"journaled": 2}]


def test_what_is_kept_of_a_conversation_counts_like_its_answers_in_the_journal(tmp_path: Path) -> None:
    async def work(pool: ModelPool) -> list[JsonObject]:
        answers = [await ask(pool, text, item="task") for text in ("A", "B")]
        told.append(Usage.total(answer.usage for answer in answers if answer.usage))
        return pool.spend()

    async def repeated(pool: ModelPool) -> list[JsonObject]:
        pool.repeat(NAME, item="task", requests=2, usage=told[0])
        with pytest.raises(BudgetExhausted):
            await ask(pool, "C", item="task")
        return pool.spend()

    told: list[Usage] = []
    with LlmServer({MODEL: priced}) as server:
        paid = using(model(server), tmp_path, work)
        again = using(model(server), tmp_path, repeated, budget=Budget(usd=2 * COST))

    assert again == [paid[0] | {"journaled": 2}]


def test_empty_answers_that_were_thrown_away_stay_a_part_of_what_the_answer_took(tmp_path: Path) -> None:
    async def work(pool: ModelPool) -> list[JsonObject]:
        with pytest.raises(ModelFailure) as failed:
            await ask(pool)
        taken.append(failed.value.usage)
        return pool.spend()

    taken: list[Usage | None] = []
    with LlmServer({MODEL: lambda request: Reply(usage=TOLD)}) as server:
        paid, replayed = (using(model(server), tmp_path, work) for _ in range(2))
        requests = len(server.requests)

    assert requests == 3
    assert taken == [Usage(prompt_tokens=300, cached_tokens=120, completion_tokens=30)] * 2
    assert replayed == [paid[0] | {"journaled": 1}]
    assert paid[0]["usd"] == str(3 * COST)


def test_a_damaged_entry_is_named_and_not_believed(tmp_path: Path) -> None:
    with LlmServer({MODEL: echo}) as server:
        using(model(server), tmp_path, ask)
        (entry,) = entries(tmp_path)
        entry.write_bytes(entry.read_bytes()[:-9])

        with pytest.raises(StorageError, match=rf"{entry.name}: the stored answer is damaged; remove it"):
            using(model(server), tmp_path, ask)


def test_a_budget_stops_what_begins_and_a_larger_one_goes_on_without_paying_again(tmp_path: Path) -> None:
    async def work(pool: ModelPool) -> list[AssistantMessage | BaseException]:
        return await asyncio.gather(*(ask(pool, str(n)) for n in range(20)), return_exceptions=True)

    with LlmServer({MODEL: priced}) as server:
        stopped = using(model(server), tmp_path, work, budget=Budget(usd=10 * COST))
        paid = len(server.requests)
        replayed = using(model(server), tmp_path, work, budget=Budget(usd=10 * COST))
        again = len(server.requests)
        done = using(model(server), tmp_path, work, budget=Budget(usd=20 * COST))
        requests = len(server.requests)

    assert sum(isinstance(item, BudgetExhausted) for item in stopped) == 20 - paid
    assert 10 <= paid <= 12
    assert again == paid
    assert [isinstance(item, AssistantMessage) for item in replayed].count(True) == paid
    assert all(isinstance(item, AssistantMessage) for item in done)
    assert requests == 20


@pytest.mark.parametrize(
    ("longest", "most"), [(9_000, 10), (None, 25)], ids=["longest answer known", "longest answer not known"]
)
def test_a_budget_holds_for_answers_that_are_long(tmp_path: Path, longest: int | None, most: int) -> None:
    """Of a thousand at once that take 9,000 tokens each, where 90,000 may be used."""
    took = {"prompt_tokens": 10, "completion_tokens": 9_000}

    async def all_at_once(pool: ModelPool) -> int:
        asked = (ask(pool, f"question {number}") for number in range(1000))
        return sum(
            isinstance(answer, AssistantMessage) for answer in await asyncio.gather(*asked, return_exceptions=True)
        )

    with LlmServer({MODEL: lambda request: Reply(content="x", usage=took)}) as server:
        answered = using(model(server, max_tokens=longest), tmp_path, all_at_once, budget=Budget(tokens=90_000))

    assert answered <= most
    assert len(server.requests) == answered


def test_what_was_sent_is_kept_although_nobody_waits_for_it(tmp_path: Path) -> None:
    async def late(request: JsonObject) -> Reply:
        await asyncio.to_thread(all_left.wait)
        return echo(request)

    async def work(pool: ModelPool) -> None:
        asking = [asyncio.create_task(ask(pool, str(number))) for number in range(8)]
        while len(server.requests) < 3:
            await asyncio.sleep(0)
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)
        all_left.set()

    all_left = threading.Event()
    with LlmServer({MODEL: late}) as server:
        using(model(server, e_concurrency=3), tmp_path, work)

    assert server.counts == {"answered": 3}
    assert len(entries(tmp_path)) == 3


def test_a_raw_request_is_answered_by_a_raw_completion_that_is_kept_too(tmp_path: Path) -> None:
    body = {"model": "anything", "messages": [{"role": "user", "content": "Hi"}], "stream": True, "store": True}

    async def work(pool: ModelPool) -> JsonObject:
        return (await pool.complete(NAME, body, item="session"))[0]

    with LlmServer({MODEL: echo}) as server:
        first = using(model(server), tmp_path, work)
        second = using(model(server), tmp_path, work)
        (request,) = server.requests

    assert request.model == MODEL
    assert first == second
    assert first["choices"] == [
        {"index": 0, "message": {"role": "assistant", "content": "You said: Hi"}, "finish_reason": "stop"}
    ]
    assert not {"id", "created"} & first.keys()


def test_unknown_models_and_models_that_are_served_nowhere_are_named(tmp_path: Path) -> None:
    with LlmServer({MODEL: echo}) as server, pytest.raises(InputError, match="no model 'critic'; there is teacher"):
        using(model(server), tmp_path, lambda pool: pool.complete("critic", {}, item="i"))
    with pytest.raises(InputError, match=r"llm\.models\.teacher: has no endpoints"):
        using(model(), tmp_path, ask)
