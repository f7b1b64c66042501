"""Trajectories: what happened in one episode, as data that is the same on every run.

Seconds, attempts and money are not part of it: they belong in a dataset's sidecar. The tokens of answers are, because
a journaled answer always tells the same; only the content id leaves them out.
"""

from __future__ import annotations

from functools import cached_property
from typing import Literal

from compoworld_core.data import Data
from compoworld_core.llm.messages import AssistantMessage, Message, Usage
from compoworld_core.specs.model import JsonObject
from compoworld_core.storage.dataset import DatasetType
from compoworld_core.storage.digest import digest
from compoworld_core.tasks.rubric import Verdict
from compoworld_core.worlds.world import Cause

ErrorKind = Literal["policy", "limit", "world", "transient", "bug"]
FinishReason = Literal["stop", "limit", "error"]

MAX_ERROR = 2000
"""Characters of an error's message that are kept."""


class Change(Data):
    """A row that a call changed. `before` is None for a new row, `after` for a deleted one.

    Attributes:
        cause: `reaction`: the world answered the call with a move of its own.
    """

    service: str
    table: str
    key: str
    before: JsonObject | None
    after: JsonObject | None
    cause: Cause


class Call(Data):
    """One meta-tool call, in the order of the conversation's tool messages.

    Attributes:
        arguments: None where the policy did not write a JSON object; the message holds its text.
        service: For a `call_tool` that reached a tool, the tool's service; else empty.
        tool: The tool's own name in that service; else empty.
        bug: Evidence that the service did what no service may do.
        world_model: Whether a world model was asked what to answer.
    """

    index: int
    name: str
    arguments: JsonObject | None
    envelope: JsonObject
    service: str = ""
    tool: str = ""
    changes: tuple[Change, ...] = ()
    bug: str | None = None
    world_model: bool = False


class EpisodeError(Data):
    """Why an episode has no proper end.

    Attributes:
        kind: `policy`: the policy failed or gave no usable message. `limit`: the episode grew beyond its limits.
            `world`: the world or the rubric does not fit what is installed. `transient`: something outside failed,
            and the episode may succeed when it is run again. `bug`: a fault of ours.
    """

    kind: ErrorKind
    message: str

    @classmethod
    def of(cls, kind: ErrorKind, error: BaseException) -> EpisodeError:
        """The error that an exception becomes."""
        return cls.saying(kind, f"{type(error).__name__}: {error}")

    @classmethod
    def saying(cls, kind: ErrorKind, message: str) -> EpisodeError:
        """An error with a message that is fit to be stored, whatever it quotes."""
        return cls(kind=kind, message=message[:MAX_ERROR].encode(errors="replace").decode())


class Trajectory(Data):
    """One episode.

    Attributes:
        policy: The policy's name.
        domains: Domains of the task's core services, each once.
        answer: The final answer; None where the episode ended without one.
        verdict: The rubric's outcome on the world as the episode left it, also after an error; None where there is no
            world.
        n_tool_calls: Meta-tool calls.
        n_real_tool_calls: Those of `call_tool`.
        n_steps: Assistant messages.
    """

    task_id: str
    rollout_idx: int
    policy: str
    domains: tuple[str, ...] = ()
    messages: tuple[Message, ...] = ()
    calls: tuple[Call, ...] = ()
    answer: str | None = None
    verdict: Verdict | None = None
    error: EpisodeError | None = None
    finish_reason: FinishReason
    n_tool_calls: int = 0
    n_real_tool_calls: int = 0
    n_steps: int = 0

    @cached_property
    def id(self) -> str:
        """Content id: `traj_` and the start of the sha256 of everything but usage."""
        content = self.model_dump(mode="json", exclude={"messages": {"__all__": {"usage"}}})
        return f"traj_{digest(content)[:16]}"

    @property
    def succeeded(self) -> bool:
        """Whether the episode ended properly and every criterion holds."""
        return self.error is None and self.verdict is not None and self.verdict.success

    @property
    def score(self) -> float:
        """Share of criteria that hold; 0 where nothing was judged."""
        return self.verdict.score if self.verdict else 0.0

    @property
    def is_well_formed(self) -> bool:
        """Whether the arguments of every call are an object."""
        return all(call.arguments is not None for call in self.calls)

    @property
    def usage(self) -> Usage:
        """What all answers of the policy took."""
        return Usage.total(
            message.usage for message in self.messages if isinstance(message, AssistantMessage) and message.usage
        )


def touches_world_model(trajectory: Trajectory) -> bool:
    """Whether any of its calls was put to a world model."""
    return any(call.world_model for call in trajectory.calls)


TRAJECTORIES = DatasetType(name="trajectories", version=2, row=Trajectory)
