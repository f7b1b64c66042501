"""An author's session: one conversation in which a model explores, designs, probes and submits.

Messages are only ever appended, and the first of them is the same for every session, so an endpoint that caches the
beginnings of prompts can keep most of each. The session ends with an accepted task, or with the reason why not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from compoworld_core.data import Data
from compoworld_core.errors import BudgetExhausted, TransientError
from compoworld_core.llm.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolMessage,
    Usage,
    UserMessage,
    json_text,
    to_chat,
)
from compoworld_core.llm.model import ChatModel, ModelFailure
from compoworld_core.llm.prompts import Prompt, load_prompt
from compoworld_core.tasks.agent.workbench import AUTHOR_TOOLS, Workbench
from compoworld_core.tasks.sampler import ACCEPTED, PROFILES, Draw
from compoworld_core.worlds.gateway import system_prompt
from compoworld_core.worlds.world import World

GAVE_UP: Final = "author_gave_up"
SPENT: Final = "budget"
MODEL_FAILURE: Final = "model_failure"

_MOST_CALLS: Final = 16
"""Tool calls of one message that are answered."""
_MOST_UNREADABLE: Final = 4
"""Messages in a row that a model may send without one call that can be read."""
_NUDGE: Final = "Go on with a tool call: the task counts only once submit has accepted it."


class SessionLimits(Data):
    """How far an author's session may go."""

    turns: int = Field(default=80, ge=1, description="Messages of the model.")
    submissions: int = Field(default=10, ge=1, description="Submissions that are looked at.")
    characters: int = Field(default=600_000, ge=1000, description="Size of the conversation as JSON text.")


class Rules(BaseModel):
    """What the first message says to every author."""

    model_config = ConfigDict(frozen=True)

    turns: int
    submissions: int


class Assignment(BaseModel):
    """What the second message says about one task."""

    model_config = ConfigDict(frozen=True)

    persona: str
    core: tuple[str, ...]
    others: tuple[str, ...]
    walk: tuple[str, ...]
    fewest_visits: int
    most_visits: int
    edges: int
    profile: str


RULES: Final = ("task-author", 1)
ASSIGNMENT: Final = ("task-assignment", 1)


def prompts() -> tuple[Prompt, Prompt]:
    """The prompts that a session begins with."""
    package = "compoworld_core.tasks.agent"
    return load_prompt(package, *RULES), load_prompt(package, *ASSIGNMENT)


def opening(draw: Draw, world: World, limits: SessionLimits) -> tuple[Message, ...]:
    """The messages that a session begins with."""
    rules, assignment = prompts()
    profile = PROFILES[draw.profile]
    core = tuple(sorted(draw.core))
    about = Assignment(
        persona=system_prompt(world),
        core=tuple(_described(world, name) for name in core),
        others=tuple(_described(world, name) for name in world.services if name not in core),
        walk=draw.walk,
        fewest_visits=profile.visits[0],
        most_visits=profile.visits[1],
        edges=profile.edges,
        profile=draw.profile,
    )
    said = Rules(turns=limits.turns, submissions=limits.submissions)
    return SystemMessage(content=rules.render(said)), UserMessage(content=assignment.render(about))


def _described(world: World, name: str) -> str:
    spec = world.services[name].package.spec
    title = f" ({spec.title})" if spec.title and spec.title != name else ""
    return f"{name}{title}, {spec.domain}"


@dataclass
class Held:
    """A session that was held.

    Attributes:
        outcome: `accepted`, the gate that refused the last submission, or why the session ended without one.
        is_transient: Whether it ended because there was no answer that there may be later.
        wasted: What a last, useless answer took; None where there was none.
    """

    messages: list[Message]
    outcome: str = ""
    detail: str = ""
    is_transient: bool = False
    wasted: Usage | None = None
    characters: int = field(default=0, repr=False)
    unreadable: int = field(default=0, repr=False)

    @property
    def turns(self) -> int:
        """Messages of the model."""
        return sum(isinstance(message, AssistantMessage) for message in self.messages)

    @property
    def requests(self) -> int:
        """Answers of the model, useful or not."""
        return self.turns + (self.wasted is not None)

    @property
    def usage(self) -> Usage:
        """What those took."""
        told = [message.usage for message in self.messages if isinstance(message, AssistantMessage)]
        return Usage.total(usage for usage in (*told, self.wasted) if usage is not None)

    def end(self, outcome: str, detail: str) -> None:
        """Note how it ended."""
        self.outcome, self.detail = outcome, detail

    def add(self, message: Message) -> None:
        """Append a message."""
        self.messages.append(message)
        self.characters += len(json_text(to_chat(message)))


async def hold_session(model: ChatModel, bench: Workbench, begin: tuple[Message, ...], limits: SessionLimits) -> Held:
    """Let a model work at the bench until a task is accepted or a limit is reached.

    Raises:
        BudgetExhausted: Nothing more may be spent; what was answered is journaled, so the session can be held again.
    """
    held = Held(messages=[])
    for message in begin:
        held.add(message)
    while not held.outcome:
        if held.turns == limits.turns:
            held.end(SPENT, _last(bench, f"{limits.turns} messages"))
        elif held.characters > limits.characters:
            held.end(SPENT, _last(bench, f"more than {limits.characters} characters"))
        else:
            await _turn(model, bench, held)
    return held


async def _turn(model: ChatModel, bench: Workbench, held: Held) -> None:
    try:
        message = await model.respond(tuple(held.messages), AUTHOR_TOOLS)
        held.add(message)
    except BudgetExhausted:
        raise
    except (ModelFailure, TransientError) as error:
        held.is_transient = isinstance(error, TransientError)
        held.wasted = error.usage if isinstance(error, ModelFailure) else None
        held.end(MODEL_FAILURE, str(error))
        return
    except ValueError as error:
        held.end(MODEL_FAILURE, f"a message that cannot be stored: {error}")
        return
    if not message.tool_calls:
        if held.messages[-2] == UserMessage(content=_NUDGE):
            held.end(GAVE_UP, _last(bench, "no tool call, even after being asked for one"))
        else:
            held.add(UserMessage(content=_NUDGE))
        return
    for place, call in enumerate(message.tool_calls):
        content = bench.answer(call) if place < _MOST_CALLS else bench.refuse(f"more than {_MOST_CALLS} calls at once")
        held.add(ToolMessage(tool_call_id=call.id, name=call.name, content=content))
    held.unreadable = held.unreadable + 1 if all(call.parsed is None for call in message.tool_calls) else 0
    if bench.accepted is not None:
        held.end(ACCEPTED, "")
    elif held.unreadable == _MOST_UNREADABLE:
        held.end(GAVE_UP, _last(bench, f"{_MOST_UNREADABLE} messages in a row without a call that can be read"))
    elif bench.submissions_left == 0:
        held.end(bench.refused[-1].gate, bench.refused[-1].detail)


def _last(bench: Workbench, reason: str) -> str:
    refused = bench.refused[-1] if bench.refused else None
    return f"{reason}; last refused by {refused.gate}: {refused.detail}" if refused else f"{reason}, nothing submitted"
