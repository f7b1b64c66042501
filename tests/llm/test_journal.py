"""Of answers to one question, one is kept, and everyone goes on with that one."""

from __future__ import annotations

import asyncio

import pytest

from compoworld_core.errors import StorageError
from compoworld_core.llm.completion import normal_completion
from compoworld_core.llm.journal import Journal
from compoworld_core.storage import open_store
from compoworld_core.storage.digest import JsonObject, digest

KEY = digest("a question")


def completion(text: str) -> JsonObject:
    calls = [{"id": "c", "function": {"name": "a", "arguments": '{"b": 1, "a": 2}'}}]
    return normal_completion(
        {"choices": [{"message": {"content": text, "tool_calls": calls}, "finish_reason": "stop"}]}
    )


def test_of_many_answers_one_wins_and_all_get_it(store_uri: str) -> None:
    async def main() -> list[JsonObject | None]:
        writers = [Journal(open_store(store_uri)) for _ in range(12)]
        kept = await asyncio.gather(
            *(journal.keep("m", KEY, 0, completion(f"Grüße {n}")) for n, journal in enumerate(writers))
        )
        return [*kept, await Journal(open_store(store_uri)).find("m", KEY, 0)]

    answers = asyncio.run(main())

    assert answers[0] in [completion(f"Grüße {number}") for number in range(12)]
    assert all(answer == answers[0] for answer in answers)


def test_an_answer_is_found_by_what_was_asked_only(store_uri: str) -> None:
    async def main() -> list[JsonObject | None]:
        journal = Journal(open_store(store_uri))
        await journal.keep("Org/Model-7B", KEY, 1, completion("Yes."))
        return [
            await journal.find("Org/Model-7B", KEY, 1),
            await journal.find("Org/Model-7B", KEY, 0),
            await journal.find("Org/Model-7B", digest("another"), 1),
            await journal.find("Other", KEY, 1),
        ]

    assert asyncio.run(main()) == [completion("Yes."), None, None, None]
    assert list(open_store(store_uri).names()) == [f"journal/org-model-7b/{KEY[:2]}/{KEY}-1.json"]


@pytest.mark.parametrize(
    "damage", [b"", b"{", b"null", b"\xff", b'{"choices": []}', b'{"object": "chat.completion", "choices": [{}]}']
)
def test_what_is_damaged_is_named_and_not_used(store_uri: str, damage: bytes) -> None:
    store = open_store(store_uri)
    name = f"journal/m/{KEY[:2]}/{KEY}-0.json"
    store.create(name, damage)

    with pytest.raises(StorageError, match=rf"{KEY}-0\.json: the stored answer is damaged; remove it and run again"):
        asyncio.run(Journal(store).find("m", KEY, 0))
    with pytest.raises(StorageError, match="damaged"):
        asyncio.run(Journal(store).keep("m", KEY, 0, completion("New.")))
