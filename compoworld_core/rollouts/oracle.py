"""The oracle: a policy that knows the reference solution and nothing else.

It works as a model has to: it lists services and tools, reads a tool's description before the first use, and takes
every argument from answers that stand in the conversation. Where it succeeds, the task can be solved through the
meta-tools alone.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from typing import Any

from compoworld_core.llm.messages import AssistantMessage, Message, ToolCall, ToolMessage
from compoworld_core.rollouts.policy import PolicyFactory, PolicyFailure
from compoworld_core.services.envelope import Envelope
from compoworld_core.specs.model import JsonObject
from compoworld_core.tasks.bindings import Answers, Facts, Unresolved
from compoworld_core.tasks.play import planted_facts
from compoworld_core.tasks.task import Step, Task
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.world import open_world

_Script = Generator[tuple[str, JsonObject], Envelope, str]
"""Yields a meta-tool call, is sent its answer, and returns the final answer."""


class OraclePolicy:
    """Replays a task's reference solution, one conversation at a time.

    Args:
        facts: What a reader takes from the planted texts (`tasks.play.planted_facts`).
    """

    name = "oracle"

    def __init__(self, task: Task, facts: Facts) -> None:
        self._task = task
        self._facts = facts
        self._script: _Script | None = None

    async def respond(self, messages: Sequence[Message], tools: Sequence[JsonObject]) -> AssistantMessage:
        """Make the next call of the reference solution, or state its facts.

        Raises:
            PolicyFailure: A step is refused, or something that it needs is not in the conversation.
        """
        latest = messages[-1]
        try:
            if self._script is None or not isinstance(latest, ToolMessage):
                self._script = self._solve()
                name, arguments = next(self._script)
            else:
                name, arguments = self._script.send(json.loads(latest.content))
        except StopIteration as done:
            self._script = None
            return AssistantMessage(content=done.value)
        turn = sum(isinstance(message, AssistantMessage) for message in messages)
        return AssistantMessage(tool_calls=(ToolCall.of(f"call_{turn + 1}", name, arguments),))

    def _solve(self) -> _Script:
        answers = Answers(self._facts, self._task.solution.values)
        listed: dict[str, set[str]] = {}
        described: set[str] = set()
        yield "list_services", {}
        for step in self._task.solution.steps:
            if step.service not in listed:
                tools = yield "list_tools", {"service": step.service}
                listed[step.service] = {tool["name"] for tool in _data(tools, f"list_tools of {step.service}")}
            tool = _tool_name(step, listed[step.service])
            if tool not in described:
                _data((yield "describe_tool", {"tool": tool}), f"describe_tool of {tool}")
                described.add(tool)
            arguments = _evaluate(answers, step.arguments, f"step {step.id}")
            envelope = yield "call_tool", {"tool_name": tool, "arguments": arguments}
            _data(envelope, f"step {step.id} ({step.service}.{step.tool})")
            answers.add(step.id, step.service, envelope)
        facts = [
            f"{fact.label}: {_said(_evaluate(answers, fact.value, f'answer {fact.label!r}'))}"
            for fact in self._task.solution.answer
        ]
        return "\n- ".join(["Done. The details:", *facts]) if facts else "Done."


def _data(envelope: Envelope, what: str) -> Any:
    if envelope["success"] is not True:
        error = envelope["error"]
        raise PolicyFailure(f"{what} was refused: {error['code']}: {error['message']}")
    return envelope["data"]


def _tool_name(step: Step, names: set[str]) -> str:
    """The step's tool as it is called in this world: where names clash, the service's name stands before it."""
    found = next((name for name in (step.tool, f"{step.service}__{step.tool}") if name in names), None)
    if found is None:
        raise PolicyFailure(f"step {step.id}: service {step.service!r} lists no tool {step.tool!r}")
    return found


def _evaluate(answers: Answers, value: Any, what: str) -> Any:
    try:
        return answers.evaluate(value)
    except Unresolved as error:
        raise PolicyFailure(f"{what}: {error}") from error


def _said(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def oracles(catalogue: Catalogue) -> PolicyFactory:
    """A factory that gives every task its own oracle."""
    return lambda task, _: OraclePolicy(task, planted_facts(open_world(task.recipe, catalogue)))
