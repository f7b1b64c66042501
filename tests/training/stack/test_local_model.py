"""A model in this process: what it remembers of a conversation changes what a turn costs, never what it says."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from compoworld_core.llm.messages import AssistantMessage, Message, ToolCall, UserMessage
from compoworld_core.llm.model import ModelFailure
from compoworld_core.rollouts.trajectory import Trajectory
from compoworld_core.training.local_model import Conversation, LocalModel
from compoworld_core.worlds.gateway import META_TOOLS
from tests.rollouts.complaint import complaint_task, open_catalogue
from tests.training.stack.conftest import CONTEXT
from tests.training.stack.episodes import played

ANSWER = 12


@pytest.fixture(scope="module")
def episode() -> Trajectory:
    """A long conversation; no other test's tokenizer has seen its words."""
    (found,) = played([complaint_task(seed=77)], open_catalogue())
    return found


def turns(model: LocalModel, episode: Trajectory) -> list[tuple[Message, ...]]:
    """The conversation before each of the assistant's messages that the model has room for."""
    places = [place for place, item in enumerate(episode.messages) if isinstance(item, AssistantMessage)]
    found = [episode.messages[:place] for place in places]
    fitting = [messages for messages in found if len(model.prompt_ids(messages, META_TOOLS)) + ANSWER <= CONTEXT]
    assert len(fitting) > 4
    return fitting


def said(conversation: Conversation, messages: tuple[Message, ...]) -> AssistantMessage:
    return asyncio.run(conversation.respond(messages, META_TOOLS))


def computed(model: LocalModel) -> list[int]:
    """Tokens of each forward pass from now on."""
    passes: list[int] = []
    embedding: Any = model._model.get_input_embeddings()
    embedding.register_forward_pre_hook(lambda _, inputs: passes.append(inputs[0].shape[1]))
    return passes


@pytest.mark.parametrize("temperature", [0.0, 1.0])
def test_a_remembered_beginning_changes_no_answer(base: Path, episode: Trajectory, temperature: float) -> None:
    model = LocalModel(base, name="tiny", answer_tokens=ANSWER, temperature=temperature)
    one = model.conversation("seed")

    for messages in turns(model, episode):
        assert said(one, messages) == said(model.conversation("seed"), messages)


def test_only_what_is_new_is_computed(base: Path, episode: Trajectory) -> None:
    model = LocalModel(base, name="tiny", answer_tokens=ANSWER)
    conversation = model.conversation("")
    prompts = [model.prompt_ids(messages, META_TOOLS) for messages in turns(model, episode)]
    passes = computed(model)

    for messages in turns(model, episode):
        said(conversation, messages)

    assert passes[0] == len(prompts[0])
    assert sum(passes) < len(prompts[-1]) + len(prompts) * (ANSWER + 12), "once all of it, and a turn's own tokens"
    assert sum(map(len, prompts)) > 2 * len(prompts[-1]), "re-reading it would take several times as much"


def test_another_conversation_is_forgotten(base: Path, episode: Trajectory) -> None:
    model = LocalModel(base, name="tiny", answer_tokens=ANSWER)
    conversation = model.conversation("")
    said(conversation, episode.messages[:6])
    shorter = (episode.messages[0], UserMessage(content="What day is it?"))

    assert said(conversation, shorter) == said(model.conversation(""), shorter)


def test_draws_follow_from_the_seed(base: Path, episode: Trajectory) -> None:
    model = LocalModel(base, name="tiny", answer_tokens=ANSWER, temperature=1.0)
    messages = episode.messages[:2]

    first, again, other = (said(model.conversation(seed), messages) for seed in ("1", "1", "2"))

    assert first == again
    assert first != other


@pytest.mark.parametrize(("own", "kept"), [(None, 0), (20, 20)])
def test_draws_are_of_as_many_tokens_as_the_checkpoint_says(
    base: Path, own: int | None, kept: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = LocalModel(base, name="tiny", answer_tokens=1, temperature=1.0)
    model._model.generation_config.top_k = own
    given: dict[str, Any] = {}
    generate = model._model.generate

    def observed(*args: Any, **fields: Any) -> Any:
        given.update(fields)
        return generate(*args, **fields)

    monkeypatch.setattr(model._model, "generate", observed)

    said(model.conversation(""), (UserMessage(content="What day is it?"),))

    assert given["top_k"] == kept


def test_a_turn_that_nobody_waits_for_ends_before_the_next_begins(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = LocalModel(base, name="tiny", answer_tokens=1)
    generate, begun, may_end = model.generate, threading.Event(), threading.Event()
    ended: list[str] = []

    def observed(*args: Any) -> list[int]:
        is_first = not begun.is_set()
        begun.set()
        if is_first:
            may_end.wait(60)
        ids = generate(*args)
        ended.append("first" if is_first else "second")
        return ids

    monkeypatch.setattr(model, "generate", observed)

    async def turns() -> None:
        first, second = (
            asyncio.ensure_future(model.conversation("").respond((UserMessage(content="Hello."),), META_TOOLS))
            for _ in range(2)
        )
        await asyncio.to_thread(begun.wait)
        first.cancel()
        await asyncio.wait([second], timeout=1)
        may_end.set()
        await second

    asyncio.run(turns())

    assert ended == ["first", "second"]


def test_a_conversation_that_is_too_long_or_cannot_be_written_fails_alone(base: Path, episode: Trajectory) -> None:
    model = LocalModel(base, name="tiny")
    broken = AssistantMessage(tool_calls=(ToolCall(id="c", name="list_tools", arguments="{oops"),))

    with pytest.raises(ModelFailure, match="too many for it") as full:
        said(model.conversation(""), (*episode.messages, UserMessage(content="word " * 4000)))
    with pytest.raises(ModelFailure, match="not a JSON object") as malformed:
        said(model.conversation(""), (*episode.messages[:2], broken, UserMessage(content="?")))
    assert (full.value.kind, malformed.value.kind) == ("context", "malformed")
