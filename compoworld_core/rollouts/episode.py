"""Episodes: a policy works on a task in a world of its own, and the rubric judges what it leaves.

Whatever goes wrong becomes a trajectory with a typed error, so that episodes that run side by side never take each
other down. Two things pass through: cancellation, and a budget that is spent, which says nothing about the task.
"""

from __future__ import annotations

import asyncio
from typing import NoReturn

from pydantic import Field

from compoworld_core.data import Data
from compoworld_core.errors import CompoWorldError, InputError, InvalidArguments, StorageError, TransientError
from compoworld_core.llm.messages import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolCall,
    ToolMessage,
    UserMessage,
    json_text,
    to_chat,
)
from compoworld_core.llm.model import ModelFailure
from compoworld_core.rollouts.policy import Policy
from compoworld_core.rollouts.trajectory import Call, Change, EpisodeError, ErrorKind, Trajectory
from compoworld_core.services.envelope import failure
from compoworld_core.services.state import RowChange
from compoworld_core.tasks.rubric import Verdict, verify
from compoworld_core.tasks.task import Task
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.gateway import META_TOOLS, Gateway, TranscriptEntry, system_prompt
from compoworld_core.worlds.world import Cause, World, open_world


class EpisodeLimits(Data):
    """How far an episode may go.

    Attributes:
        max_steps: Assistant messages.
        max_tool_calls: Meta-tool calls, in all messages together.
        max_chars: Size of the conversation as JSON text.
        turn_timeout_s: Seconds that the policy may take for one message, all waits included. None is right for models
            of a pool: their own time-outs begin when a request is sent, however long it had to wait for a free place.
    """

    max_steps: int = Field(default=100, ge=1)
    max_tool_calls: int = Field(default=200, ge=0)
    max_chars: int = Field(default=2_000_000, ge=1)
    turn_timeout_s: float | None = Field(default=None, gt=0)


async def run_episode(
    task: Task,
    catalogue: Catalogue,
    policy: Policy,
    *,
    limits: EpisodeLimits | None = None,
    rollout_idx: int = 0,
) -> Trajectory:
    """Let a policy work on a task, and judge what it did.

    Raises:
        InputError: What the policy or the world needs is not right (a key, a spent budget), which no row can mend.
        StorageError: What was paid for cannot be kept.
    """
    try:
        world = open_world(task.recipe, catalogue)
    except Exception as fault:
        return failed_episode(task, policy.name, rollout_idx, EpisodeError.of(_kind(fault, "bug"), fault))
    episode = _Episode(task, world, limits or EpisodeLimits())
    error = await episode.play(policy)
    verdict: Verdict | None = None
    try:
        verdict = verify(task.rubric, world, episode.answer)
    except KeyError as missing:
        error = error or EpisodeError.saying("world", f"the rubric names {missing}, which this world does not have")
    except Exception as fault:
        error = error or EpisodeError.of("bug", fault)
    return Trajectory(
        task_id=task.id,
        rollout_idx=rollout_idx,
        policy=policy.name,
        domains=tuple(dict.fromkeys(world.services[name].package.spec.domain for name in task.core)),
        messages=tuple(episode.messages),
        calls=tuple(episode.calls),
        answer=episode.answer,
        verdict=verdict,
        error=error,
        finish_reason="stop" if error is None else "limit" if error.kind == "limit" else "error",
        n_tool_calls=len(episode.calls),
        n_real_tool_calls=sum(call.name == "call_tool" for call in episode.calls),
        n_steps=sum(isinstance(message, AssistantMessage) for message in episode.messages),
    )


def failed_episode(task: Task, policy: str, rollout_idx: int, error: EpisodeError) -> Trajectory:
    """The trajectory of an episode that could not begin."""
    return Trajectory(task_id=task.id, rollout_idx=rollout_idx, policy=policy, error=error, finish_reason="error")


class _Ended(Exception):
    """Ends the episode early."""

    def __init__(self, error: EpisodeError) -> None:
        self.error = error


def _end(kind: ErrorKind, message: str) -> NoReturn:
    raise _Ended(EpisodeError.saying(kind, message))


def _kind(error: Exception, otherwise: ErrorKind) -> ErrorKind:
    if isinstance(error, TransientError):
        return "transient"
    return "world" if isinstance(error, InputError) else otherwise


class _Episode:
    """An episode in progress."""

    def __init__(self, task: Task, world: World, limits: EpisodeLimits) -> None:
        self.answer: str | None = None
        self.messages: list[Message] = [
            SystemMessage(content=system_prompt(world)),
            UserMessage(content=task.instruction),
        ]
        self.calls: list[Call] = []
        self._gateway = Gateway(world)
        self._limits = limits
        self._chars = 0

    async def play(self, policy: Policy) -> EpisodeError | None:
        """Go on until the policy answers without a tool call; returns why it did not come to that."""
        try:
            for _ in range(self._limits.max_steps):
                message = await self._ask(policy)
                self._add(message, "policy")
                if not message.tool_calls:
                    self.answer = message.content
                    return None
                for call in message.tool_calls:
                    if len(self.calls) == self._limits.max_tool_calls:
                        _end("limit", f"more than {self._limits.max_tool_calls} tool calls")
                    await self._run(call)
            return EpisodeError.saying("limit", f"no answer after {self._limits.max_steps} messages")
        except _Ended as ended:
            return ended.error
        except (InputError, StorageError):
            raise
        except Exception as error:
            return EpisodeError.of(_kind(error, "bug"), error)

    async def _ask(self, policy: Policy) -> AssistantMessage:
        try:
            async with asyncio.timeout(self._limits.turn_timeout_s) as clock:
                message = await policy.respond(tuple(self.messages), META_TOOLS)
        except asyncio.CancelledError:
            current = asyncio.current_task()
            if current is None or current.cancelling():
                raise
            _end("policy", "the policy cancelled its own answer")
        except (InputError, StorageError):
            raise
        except TransientError as error:
            raise _Ended(EpisodeError.of("transient", error)) from error
        except ModelFailure as error:
            raise _Ended(EpisodeError.of("limit" if error.kind == "context" else "policy", error)) from error
        except CompoWorldError as error:
            raise _Ended(EpisodeError.saying("policy", str(error))) from error
        except Exception as error:
            if clock.expired():
                _end("policy", f"no message within {self._limits.turn_timeout_s:g} s")
            raise _Ended(EpisodeError.of("policy", error)) from error
        if not isinstance(message, AssistantMessage):
            _end("policy", f"the policy answered with a {type(message).__name__}, not with an AssistantMessage")
        return message

    async def _run(self, call: ToolCall) -> None:
        """Answer one tool call of the policy."""
        arguments = call.parsed
        if arguments is None:
            refusal = InvalidArguments(f"the arguments of {call.name[:80]} are not one JSON object; send them as one")
            entry = TranscriptEntry(call.name, {}, failure(refusal))
        else:
            await self._gateway.reply(call.name, arguments)
            entry = self._gateway.transcript[-1]
        record = Call(
            index=len(self.calls),
            name=call.name,
            arguments=arguments,
            envelope=entry.envelope,
            service=entry.service,
            tool=entry.tool,
            changes=(
                *(_change(entry.service, change, "agent") for change in entry.changes),
                *(_change(service, change, "reaction") for service, change in entry.reactions),
            ),
            bug=entry.bug,
            world_model=entry.world_model,
        )
        _json_text([record.envelope, *((change.before, change.after) for change in record.changes)], "bug")
        self.calls.append(record)
        self._add(ToolMessage(tool_call_id=call.id, name=call.name, content=_json_text(entry.envelope, "bug")), "bug")

    def _add(self, message: Message, culprit: ErrorKind) -> None:
        self._chars += len(_json_text(to_chat(message), culprit))
        if self._chars > self._limits.max_chars:
            _end("limit", f"the conversation is longer than {self._limits.max_chars} characters")
        self.messages.append(message)


def _json_text(value: object, culprit: ErrorKind) -> str:
    """The JSON text; a part that has none would make the whole trajectory one that cannot be stored."""
    try:
        return json_text(value)
    except (ValueError, TypeError) as error:
        _end(culprit, f"not to be stored as JSON: {error}")


def _change(service: str, change: RowChange, cause: Cause) -> Change:
    return Change(
        service=service,
        table=change.table.name,
        key=change.key,
        before=change.before_row,
        after=change.after_row,
        cause=cause,
    )
