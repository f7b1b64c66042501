"""Messages: a conversation in the chat-completion shape, exactly as it was said.

The arguments of a tool call stay the text that the policy wrote. Key order and notation survive every store, and a call
that is not well formed needs no other shape: it has a text that does not read as an object.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from functools import cached_property
from typing import Annotated, Any, Literal

from pydantic import Field, model_validator

from compoworld_core.data import Data
from compoworld_core.errors import InputError
from compoworld_core.storage.digest import JsonObject

MAX_DEPTH = 64
"""Levels of nesting that arguments may have; readers of stored JSON give up at some depth, too."""


class Usage(Data):
    """What one or more answers of a policy took, in tokens; what that costs is a matter of prices, which change.

    Attributes:
        cached_tokens: Those of the prompt tokens that the endpoint had in a cache.
    """

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0

    @staticmethod
    def total(parts: Iterable[Usage]) -> Usage:
        """The sum."""
        parts = tuple(parts)
        return Usage(
            prompt_tokens=sum(part.prompt_tokens for part in parts),
            cached_tokens=sum(part.cached_tokens for part in parts),
            completion_tokens=sum(part.completion_tokens for part in parts),
        )

    @property
    def tokens(self) -> int:
        """Prompt and completion tokens together."""
        return self.prompt_tokens + self.completion_tokens


class ToolCall(Data):
    """A call that the policy asks for.

    Attributes:
        arguments: JSON text, as the policy wrote it.
    """

    id: str = Field(min_length=1)
    name: str
    arguments: str

    @classmethod
    def of(cls, id: str, name: str, arguments: JsonObject) -> ToolCall:
        """A call with arguments that are given as an object."""
        return cls(id=id, name=name, arguments=json_text(arguments))

    @cached_property
    def parsed(self) -> JsonObject | None:
        """The arguments as an object; None where the text is not exactly one JSON object."""
        return parse_object(self.arguments)


class SystemMessage(Data):
    """The rules of the interface."""

    role: Literal["system"] = "system"
    content: str


class UserMessage(Data):
    """The task."""

    role: Literal["user"] = "user"
    content: str


class AssistantMessage(Data):
    """A policy's answer: tool calls, or without any the final answer.

    Attributes:
        tool_calls: Any number; they run in this order and each is answered.
        reasoning_content: What the policy thought, where it tells.
    """

    role: Literal["assistant"] = "assistant"
    content: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    reasoning_content: str | None = None
    usage: Usage | None = None

    @model_validator(mode="after")
    def _ids_differ(self) -> AssistantMessage:
        if len({call.id for call in self.tool_calls}) < len(self.tool_calls):
            raise ValueError("the tool calls of one message need ids that differ")
        return self


class ToolMessage(Data):
    """The answer to a tool call: an envelope as JSON text."""

    role: Literal["tool"] = "tool"
    tool_call_id: str
    name: str
    content: str


Message = Annotated[SystemMessage | UserMessage | AssistantMessage | ToolMessage, Field(discriminator="role")]


def to_chat(message: Message, arguments: Literal["text", "object"] = "text") -> JsonObject:
    """The message as chat-completion endpoints (`text`) or training data (`object`) write it.

    Raises:
        InputError: `object` is asked for, and a call's arguments are not one.
    """
    if isinstance(message, SystemMessage | UserMessage):
        return {"role": message.role, "content": message.content}
    if isinstance(message, ToolMessage):
        return {
            "role": "tool",
            "tool_call_id": message.tool_call_id,
            "name": message.name,
            "content": message.content,
        }
    chat: JsonObject = {"role": "assistant", "content": message.content}
    if message.reasoning_content is not None:
        chat["reasoning_content"] = message.reasoning_content
    if message.tool_calls:
        chat["tool_calls"] = [
            {
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments if arguments == "text" else _object(call)},
            }
            for call in message.tool_calls
        ]
    return chat


_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


def json_text(value: object) -> str:
    """JSON with keys in the order they have: models learn to write a call in the order in which they read it.

    Raises:
        ValueError: The value holds something that JSON or UTF-8 cannot say.
    """
    text = _ENCODER.encode(value)
    text.encode()
    return text


def parse_object(text: str) -> JsonObject | None:
    """What a text says that is exactly one JSON object, which can be stored and said again; else None."""
    try:
        value = json.loads(text, object_pairs_hook=_distinct)
        if isinstance(value, dict) and not _is_deeper(value, MAX_DEPTH):
            json_text(value)
            return value
    except (ValueError, RecursionError):
        pass
    return None


def _object(call: ToolCall) -> JsonObject:
    if call.parsed is None:
        raise InputError(f"tool call {call.id!r}: its arguments are not a JSON object: {call.arguments[:80]!r}")
    return call.parsed


def _distinct(pairs: list[tuple[str, Any]]) -> JsonObject:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key occurs twice")
    return found


def _is_deeper(value: Any, levels: int) -> bool:
    if not isinstance(value, dict | list):
        return False
    items = value.values() if isinstance(value, dict) else value
    return levels == 0 or any(_is_deeper(item, levels - 1) for item in items)
