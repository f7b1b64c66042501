"""Models: whatever answers a conversation. Rooms above know a model by this protocol only, never by its endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, Protocol

from compoworld_core.errors import CompoWorldError
from compoworld_core.llm.messages import AssistantMessage, Message, Usage
from compoworld_core.storage.digest import JsonObject

FailureKind = Literal["context", "refused", "filtered", "malformed", "empty"]


class ModelFailure(CompoWorldError):
    """A model gave no usable answer, and asking again would not help.

    Attributes:
        kind: `context`: the conversation is longer than the model takes. `refused`: the endpoint rejects the request.
            `filtered`: it does not let this question or its answer through, but others. `malformed`: what came back is
            no chat completion. `empty`: it has neither text nor a tool call.
        usage: What the useless answer took; None where there was none.
    """

    def __init__(self, kind: FailureKind, message: str, usage: Usage | None = None) -> None:
        super().__init__(message)
        self.kind: FailureKind = kind
        self.usage = usage


class ChatModel(Protocol):
    """A model, ready to be asked; it keeps nothing between answers, so one may serve many conversations."""

    @property
    def name(self) -> str:
        """What records call it."""
        ...

    async def respond(self, messages: Sequence[Message], tools: Sequence[JsonObject]) -> AssistantMessage:
        """Continue the conversation.

        Args:
            messages: From the system message to the latest tool answers.
            tools: Functions that may be called, in the form of chat-completion endpoints; may be empty.

        Raises:
            ModelFailure: There is no usable answer.
            BudgetExhausted: Nothing more may be spent.
            TransientError: There is no answer now, but there may be later.
        """
        ...
