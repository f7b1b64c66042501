"""The environment of reinforcement learning: a world behind its four meta-tools, in the form that TRL asks for.

TRL makes a tool of every public method but `reset`, from its signature and docstring. Both are the gateway's own words,
so that a model reads the same tools while it is fine-tuned, while it explores and when it is served.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from compoworld_core.errors import InputError
from compoworld_core.llm.messages import json_text
from compoworld_core.rollouts.trajectory import EpisodeError, ErrorKind
from compoworld_core.storage.digest import JsonObject
from compoworld_core.tasks.rubric import Verdict, verify
from compoworld_core.tasks.task import Task
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.gateway import Gateway, system_prompt
from compoworld_core.worlds.world import open_world


class WorldEnvironment:
    """One rollout at a time; built once per place in a batch, and reset for every rollout.

    Args:
        tasks: By id.
        catalogue: What the tasks' worlds are opened with.
    """

    def __init__(self, tasks: Mapping[str, Task], catalogue: Catalogue) -> None:
        self._tasks = tasks
        self._catalogue = catalogue
        self._task: Task | None = None
        self._gateway: Gateway | None = None
        self._error: EpisodeError | None = None

    def reset(self, task_id: str, **row: Any) -> None:
        """Begin a rollout of a task. What keeps its world from opening fails this rollout, not the step."""
        self._task, self._gateway, self._error = self._tasks[task_id], None, None
        try:
            self._gateway = Gateway(open_world(self._task.recipe, self._catalogue))
        except Exception as error:
            self._error = _failure(error)

    def list_services(self) -> str:
        """List the names of all services that are available."""
        return self._call("list_services", {})

    def list_tools(self, service: str) -> str:
        """List a service's tools with a short description of each.

        Args:
            service: Name of a service, as list_services shows it.
        """
        return self._call("list_tools", {"service": service})

    def describe_tool(self, tool: str) -> str:
        """Show a tool's full description and the JSON Schema of its arguments.

        Args:
            tool: Name of a tool, as list_tools shows it.
        """
        return self._call("describe_tool", {"tool": tool})

    def call_tool(self, tool_name: str, arguments: dict) -> str:  # type: ignore[type-arg]  # a bare dict is `object`
        """Call a tool. The answer says whether the call succeeded and carries its data or the error.

        Args:
            tool_name: Name of a tool, as list_tools shows it.
            arguments: Arguments that satisfy the tool's schema.
        """
        return self._call("call_tool", {"tool_name": tool_name, "arguments": arguments})

    def _call(self, name: str, arguments: JsonObject) -> str:
        if self._gateway is None:
            return "{}"
        try:
            return json_text(self._gateway.call(name, arguments))
        except Exception as error:
            self._gateway, self._error = None, _failure(error)
            return "{}"

    def _verdict(self, answer: str | None) -> Verdict | EpisodeError:
        """The rubric's outcome on the world as the rollout left it, or why there is none."""
        if self._error is not None or self._gateway is None or self._task is None:
            return self._error or EpisodeError.saying("bug", "the rollout was never begun")
        try:
            return verify(self._task.rubric, self._gateway.world, answer)
        except Exception as error:
            return _failure(error)


def _failure(error: Exception) -> EpisodeError:
    kind: ErrorKind = "world" if isinstance(error, InputError) else "bug"
    return EpisodeError.of(kind, error)


for _method in (
    WorldEnvironment.list_services,
    WorldEnvironment.list_tools,
    WorldEnvironment.describe_tool,
    WorldEnvironment.call_tool,
):
    del _method.__annotations__["return"]  # would become a key of the tool that no server shows


def verdict_of(environment: WorldEnvironment, completion: list[JsonObject]) -> Verdict | EpisodeError:
    """Judge a rollout by the world that it left and by its last message, if that is an answer."""
    last = completion[-1] if completion else {}
    is_answer = last.get("role") == "assistant" and not last.get("tool_calls")
    return environment._verdict(str(last.get("content") or "") if is_answer else None)


def environments(tasks: Iterable[Task], catalogue: Catalogue) -> Callable[[], WorldEnvironment]:
    """A factory of environments over some tasks."""
    by_id = {task.id: task for task in tasks}
    return lambda: WorldEnvironment(by_id, catalogue)


def prompt_rows(tasks: Iterable[Task], catalogue: Catalogue) -> list[JsonObject]:
    """A row for each task: the conversation up to the first answer, and the task's id.

    Raises:
        InputError: A task's world cannot be opened with this catalogue.
    """
    return [
        {
            "prompt": [
                {"role": "system", "content": system_prompt(open_world(task.recipe, catalogue))},
                {"role": "user", "content": task.instruction},
            ],
            "task_id": task.id,
        }
        for task in tasks
    ]
