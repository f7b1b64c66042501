from __future__ import annotations

from pathlib import Path

import pytest

from compoworld_core.errors import StorageError
from compoworld_core.llm.messages import Usage
from compoworld_core.llm.sessions import Session, find, keep
from compoworld_core.storage import open_store
from compoworld_core.storage.digest import digest
from tests.tasks.crafted import changed

KEY = digest("a session")
SESSION = Session(
    kind="task_author",
    item="task/0/standard/3",
    model="author",
    prompts=("task-author.v1.0123456789ab",),
    transcript=({"role": "user", "content": "Grüße"},),
    requests=3,
    usage=Usage(prompt_tokens=30, cached_tokens=20, completion_tokens=6),
    outcome="accepted",
    result={"turns": 3},
)


def test_a_kept_session_is_found_as_it_was(tmp_path: Path) -> None:
    store = open_store(tmp_path)

    assert find(store, KEY) is None
    assert keep(store, KEY, SESSION) == SESSION
    assert find(store, KEY) == SESSION


def test_who_comes_second_adopts_the_session_that_is_there(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    keep(store, KEY, SESSION)

    adopted = keep(store, KEY, changed(SESSION, outcome="budget"))

    assert adopted == SESSION
    assert find(store, KEY) == SESSION


def test_a_damaged_session_is_named(tmp_path: Path) -> None:
    store = open_store(tmp_path)
    store.create(f"sessions/{KEY}.json", b'{"kind": 3}')

    with pytest.raises(StorageError, match=KEY):
        find(store, KEY)
