"""A stored success is rendered in the pieces in which a rollout comes about."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from compoworld_core.errors import InputError
from compoworld_core.storage.digest import JsonObject
from compoworld_core.training.replay import Success
from compoworld_core.training.successes import StoredSuccess, Successes, read_successes, write_successes

END = ord(".")
PROMPT: list[JsonObject] = [{"role": "user", "content": "do"}]
STORED = StoredSuccess(
    task_id="task",
    success=Success(trajectory="traj", passed=(True,)),
    messages=(
        *PROMPT,
        {"role": "assistant", "content": "look"},
        {"role": "tool", "content": "this"},
        {"role": "tool", "content": "that"},
        {"role": "assistant", "content": "done"},
    ),
)


def render(messages: Sequence[JsonObject], begins_next_turn: bool) -> list[int]:
    """A letter for the role, the content, a full stop and a space for each message."""
    text = "".join(f"{message['role'][0]}{message['content']}. " for message in messages)
    return [ord(letter) for letter in text + ("a" if begins_next_turn else "")]


def successes(longest: int = 100, stored: StoredSuccess = STORED) -> Successes:
    return Successes([stored], {"task": PROMPT}, render, end_of_turn=END, longest=longest)


def test_turns_are_trained_on_and_what_lies_between_them_is_not() -> None:
    stored = successes()
    ids, mask, messages = stored.rollout(stored.of("task")[0])

    assert "".join(map(chr, ids)) == "look. tthis. tthat. adone."
    assert "".join(chr(token) if mine else "_" for token, mine in zip(ids, mask, strict=True)) == (
        "look." + "_" * len(" tthis. tthat. a") + "done."
    )
    assert messages == list(STORED.messages[1:])


def test_what_is_written_is_read_whatever_characters_it_has(tmp_path: Path) -> None:
    odd = "one\u2028two\u2029three\u0085four\r\nfive\x0bsix"
    messages = (*PROMPT, {"role": "assistant", "content": odd})
    stored = StoredSuccess(task_id="task", success=STORED.success, messages=messages)

    write_successes([stored, STORED], tmp_path / "successes.jsonl")

    assert read_successes(tmp_path / "successes.jsonl") == [stored, STORED]


def test_what_is_longer_than_rollouts_may_be_is_of_no_use() -> None:
    length = len("look. tthis. tthat. adone.")

    assert successes(longest=length).of("task") == [STORED.success]
    assert successes(longest=length - 1).of("task") == []
    assert successes().of("another") == []


def test_another_prompt_is_refused_at_once() -> None:
    other = StoredSuccess(task_id="task", success=STORED.success, messages=({**PROMPT[0], "content": "else"},))

    with pytest.raises(InputError, match="trajectory traj: begins otherwise than rollouts of task do"):
        successes(stored=other)


def test_a_template_that_rewrites_what_was_said_is_refused() -> None:
    def forgetful(messages: Sequence[JsonObject], begins_next_turn: bool) -> list[int]:
        last = len(messages) - 1
        kept = [{**item, "content": item["content"] if place == last else ""} for place, item in enumerate(messages)]
        return render(kept, begins_next_turn)

    found = Successes([STORED], {"task": PROMPT}, forgetful, end_of_turn=END, longest=100)

    with pytest.raises(InputError, match="renders earlier messages otherwise"):
        found.of("task")
