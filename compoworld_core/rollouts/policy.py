"""Policies: anything that answers a conversation.

An endpoint, the oracle and a model in this process look alike: they see the messages so far and the tools, and
answer with one assistant message. They see nothing else of the episode. Every `ChatModel` is a policy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol

from compoworld_core.errors import CompoWorldError
from compoworld_core.llm.messages import AssistantMessage, Message
from compoworld_core.specs.model import JsonObject
from compoworld_core.tasks.task import Task


class PolicyFailure(CompoWorldError):
    """A policy cannot go on; the episode ends with this as its error."""


class Policy(Protocol):
    """Answers one conversation at a time; a policy that keeps nothing between answers may serve many."""

    @property
    def name(self) -> str:
        """What trajectories call it, such as the model's name."""
        ...

    async def respond(self, messages: Sequence[Message], tools: Sequence[JsonObject]) -> AssistantMessage:
        """Continue the conversation.

        Args:
            messages: From the system message to the latest tool answers.
            tools: Functions that may be called, in the form of chat-completion endpoints.

        Raises:
            PolicyFailure: There is no way to go on.
            ModelFailure: A model gave no usable answer.
            InputError: It cannot be asked as things are: a key is wrong, a budget is spent. This ends all episodes.
            TransientError: There is no answer now, but there may be later.
        """
        ...


PolicyFactory = Callable[[Task, int], Policy]
"""Makes the policy of one episode, from the task and the rollout's index."""
