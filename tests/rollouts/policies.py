"""Policies that misbehave in one way each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from compoworld_core.llm.messages import AssistantMessage, Message, ToolCall
from compoworld_core.specs.model import JsonObject


class Scripted:
    """Says the given things, one after the other; a function is called for what to say, a class of errors is raised."""

    def __init__(self, *says: Any, name: str = "scripted") -> None:
        self.name = name
        self._says = says

    async def respond(self, messages: Sequence[Message], tools: Sequence[JsonObject]) -> AssistantMessage:
        turn = sum(isinstance(message, AssistantMessage) for message in messages)
        said = self._says[min(turn, len(self._says) - 1)]
        if isinstance(said, type) and issubclass(said, BaseException):
            raise said("by design")
        return said() if callable(said) else said  # type: ignore[no-any-return]


class Silent:
    """Never answers."""

    name = "silent"

    async def respond(self, messages: Sequence[Message], tools: Sequence[JsonObject]) -> AssistantMessage:
        return await asyncio.get_running_loop().create_future()  # type: ignore[no-any-return]


def calls(*named: tuple[str, JsonObject | str]) -> AssistantMessage:
    """A message with these calls; arguments that are text are taken as they are."""
    return AssistantMessage(
        tool_calls=tuple(
            ToolCall(id=f"c{index}", name=name, arguments=arguments)
            if isinstance(arguments, str)
            else ToolCall.of(f"c{index}", name, arguments)
            for index, (name, arguments) in enumerate(named)
        )
    )


def looping() -> Callable[[], AssistantMessage]:
    """Lists the services for ever."""
    return lambda: calls(("list_services", {}))


DONE = AssistantMessage(content="Done.")
