"""Calls: whether what a policy asks for could be asked at all, whatever comes of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from compoworld_core.llm.messages import AssistantMessage, ToolCall
from compoworld_core.rollouts.trajectory import Trajectory
from compoworld_core.specs.validation import validator
from compoworld_core.worlds.gateway import META_TOOLS
from compoworld_core.worlds.world import BoundTool

_META: Final = {item["function"]["name"]: validator(item["function"]["parameters"]) for item in META_TOOLS}


_MARKUP: Final = ("<tool_call>", "<function=")
"""How models write calls. What of it stands in an answer's text was too broken for anyone to read as a call."""


class CallCount(NamedTuple):
    """Tool calls of an episode.

    Attributes:
        made: All that the policy asked for, and one for a message that cannot be read: it was meant to be a call.
        valid: Those of a meta-tool with arguments that its schema allows; of `call_tool`, those whose tool exists and
            whose schema allows the inner arguments, too.
    """

    made: int
    valid: int


def count_calls(trajectory: Trajectory, tools: Mapping[str, BoundTool]) -> CallCount:
    """Count an episode's calls.

    Args:
        trajectory: The episode.
        tools: Those of its world, by the name that they have in it.
    """
    calls = [
        call for message in trajectory.messages if isinstance(message, AssistantMessage) for call in message.tool_calls
    ]
    is_broken = trajectory.error is not None and trajectory.error.kind == "policy"
    is_broken = is_broken or any(mark in (trajectory.answer or "") for mark in _MARKUP)
    return CallCount(len(calls) + is_broken, sum(_is_valid(call, tools) for call in calls))


def _is_valid(call: ToolCall, tools: Mapping[str, BoundTool]) -> bool:
    meta, arguments = _META.get(call.name), call.parsed
    if meta is None or arguments is None or not meta.is_valid(arguments):
        return False
    if call.name != "call_tool":
        return True
    tool = tools.get(arguments["tool_name"])
    return tool is not None and _allows(tool.spec.parameters, arguments["arguments"])


def _allows(schema: Mapping[str, Any], arguments: Any) -> bool:
    try:
        return validator(schema).is_valid(arguments)
    except ValueError:
        return False
