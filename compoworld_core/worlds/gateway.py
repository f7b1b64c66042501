"""The gateway: the four meta-tools, which are all that an agent has of a world.

Rubric, reference solution, plants and other tasks are not reachable from here: a gateway holds a world and a
transcript, and answers only these four names.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from compoworld_core.errors import InvalidArguments, NotFound, ToolError
from compoworld_core.services.envelope import Envelope, failure, success
from compoworld_core.services.facts import MONTHS
from compoworld_core.services.semantics import SEMANTIC_KEY
from compoworld_core.services.state import RowChange
from compoworld_core.specs.model import JsonObject
from compoworld_core.worlds.world import BoundTool, World

SHORT_DESCRIPTION = 160
"""Characters of a tool's description that `list_tools` shows."""


def _function(name: str, description: str, **parameters: JsonObject) -> JsonObject:
    schema: JsonObject = {"type": "object", "properties": parameters}
    if parameters:
        schema["required"] = [*parameters]
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


META_TOOLS: tuple[JsonObject, ...] = (
    _function("list_services", "List the names of all services that are available."),
    _function(
        "list_tools",
        "List a service's tools with a short description of each.",
        service={"type": "string", "description": "Name of a service, as list_services shows it."},
    ),
    _function(
        "describe_tool",
        "Show a tool's full description and the JSON Schema of its arguments.",
        tool={"type": "string", "description": "Name of a tool, as list_tools shows it."},
    ),
    _function(
        "call_tool",
        "Call a tool. The answer says whether the call succeeded and carries its data or the error.",
        tool_name={"type": "string", "description": "Name of a tool, as list_tools shows it."},
        arguments={"type": "object", "description": "Arguments that satisfy the tool's schema."},
    ),
)
"""The meta-tools in the function form of chat-completion endpoints, with no keyword that training libraries lack."""

_PARAMETERS = {
    item["function"]["name"]: {
        name: {"string": str, "object": dict}[schema["type"]]
        for name, schema in item["function"]["parameters"]["properties"].items()
    }
    for item in META_TOOLS
}


@dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """One meta-tool call: what was asked, what was answered, and the rows that the call changed.

    Attributes:
        service: For a `call_tool` that reached a tool, the tool's service; else empty.
        tool: The tool's own name in that service; else empty.
        reactions: Rows that the world changed in reaction.
        bug: Evidence, where the service failed in a way that is not an answer.
        world_model: Whether a world model was asked what to answer.
    """

    name: str
    arguments: Mapping[str, Any]
    envelope: Envelope
    service: str = ""
    tool: str = ""
    changes: tuple[RowChange, ...] = ()
    reactions: tuple[tuple[str, RowChange], ...] = ()
    bug: str | None = None
    world_model: bool = False


_PREDICTING: Final = ThreadPoolExecutor(256, "world-model")
"""Threads that wait for a world model. They are none of an event loop's own, which models need to be reached."""


class Gateway:
    """Answers the meta-tools on one world and keeps the transcript."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.transcript: list[TranscriptEntry] = []

    def call(self, name: str, arguments: Mapping[str, Any]) -> Envelope:
        """Answer one meta-tool call; a mistake of the agent is an error envelope."""
        try:
            self._check(name, arguments)
            entry = getattr(self, f"_{name}")(arguments)
        except ToolError as error:
            entry = TranscriptEntry(name, arguments, failure(error))
        self.transcript.append(entry)
        return entry.envelope  # type: ignore[no-any-return]

    async def reply(self, name: str, arguments: Mapping[str, Any]) -> Envelope:
        """Answer one meta-tool call as `call` does, and let others go on where the answer takes its time."""
        tool = self._tool(name, arguments)
        if tool is not None and tool.is_modelled:
            return await asyncio.get_running_loop().run_in_executor(_PREDICTING, self.call, name, arguments)
        if tool is not None and self.world.services[tool.service].package.origin != "library":
            return await asyncio.to_thread(self.call, name, arguments)
        return self.call(name, arguments)

    def _tool(self, name: str, arguments: Mapping[str, Any]) -> BoundTool | None:
        """The tool that a call would reach."""
        wanted = arguments.get("tool_name") if name == "call_tool" and isinstance(arguments, Mapping) else None
        return self.world.tools.get(wanted) if isinstance(wanted, str) else None

    @staticmethod
    def _check(name: str, arguments: Mapping[str, Any]) -> None:
        if not isinstance(name, str):
            raise NotFound(f"the name of a tool is text; there are {', '.join(_PARAMETERS)}")
        parameters = _PARAMETERS.get(name)
        if parameters is None:
            raise NotFound(
                f"no tool named {name[:80]!r}; there are {', '.join(_PARAMETERS)}; others go through call_tool"
            )
        if not isinstance(arguments, Mapping):
            raise InvalidArguments(f"{name} needs its arguments as an object")
        if unknown := set(arguments) - set(parameters):
            raise InvalidArguments(f"{name} takes no {', '.join(sorted(map(repr, unknown)))[:200]}")
        for parameter, kind in parameters.items():
            if not isinstance(arguments.get(parameter), kind):
                expected = "an object" if kind is dict else "text"
                raise InvalidArguments(f"{name} needs {parameter!r}: {expected}")

    def _list_services(self, arguments: Mapping[str, Any]) -> TranscriptEntry:
        return TranscriptEntry("list_services", arguments, success(list(self.world.services)))

    def _list_tools(self, arguments: Mapping[str, Any]) -> TranscriptEntry:
        service = arguments["service"]
        if service not in self.world.services:
            raise NotFound(f"no service named {service[:80]!r}; list_services shows their names")
        tools = [
            {"name": tool.name, "description": _shorten(tool.spec.description)}
            for tool in self.world.tools.values()
            if tool.service == service
        ]
        return TranscriptEntry("list_tools", arguments, success(tools))

    def _describe_tool(self, arguments: Mapping[str, Any]) -> TranscriptEntry:
        tool = self.world.tools.get(arguments["tool"])
        if tool is None:
            raise NotFound(f"no tool named {arguments['tool'][:80]!r}; list_tools shows a service's tools")
        described = {
            "name": tool.name,
            "service": tool.service,
            "description": tool.spec.description,
            "parameters": _public(tool.spec.parameters),
        }
        return TranscriptEntry("describe_tool", arguments, success(described))

    def _call_tool(self, arguments: Mapping[str, Any]) -> TranscriptEntry:
        name = arguments["tool_name"]
        before = len(self.world.log)
        result = self.world.call(name, arguments["arguments"])
        bound = self.world.tools.get(name)
        return TranscriptEntry(
            "call_tool",
            arguments,
            result.envelope,
            service=bound.service if bound else "",
            tool=bound.spec.name if bound else "",
            changes=result.changes,
            reactions=tuple(
                (entry.service, change)
                for entry in self.world.log[before:]
                if entry.cause == "reaction"
                for change in entry.changes
            ),
            bug=result.bug,
            world_model=result.world_model,
        )


def _shorten(description: str) -> str:
    first = description.strip().split("\n")[0]
    return first if len(first) <= SHORT_DESCRIPTION else f"{first[: SHORT_DESCRIPTION - 1].rstrip()}…"


def _public(schema: Any) -> Any:
    """The schema without the project's own keywords."""
    if isinstance(schema, dict):
        return {key: _public(value) for key, value in schema.items() if key != SEMANTIC_KEY}
    return [_public(item) for item in schema] if isinstance(schema, list) else schema


def system_prompt(world: World) -> str:
    """What an agent is told before its task: who it works for, the date, and how the interface works."""
    user = world.universe.user
    date = _written_out(world.recipe.start_time)
    return (
        f"You are an assistant who works for {user.name} ({user.email}), {user.role} at {world.universe.home.name}. "
        f"Today is {date}.\n"
        "You act only through services. list_services names them, list_tools shows what a service can do, "
        "describe_tool shows a tool's arguments, and call_tool calls a tool. Look before you act: ids and other "
        "details are to be found in the services, never guessed. Information may change while you work. Change "
        "nothing that the task does not ask for. When the work is done, answer in plain text, without a tool call."
    )


_DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()


def _written_out(moment: datetime) -> str:
    """The day in English, whatever the locale."""
    return f"{_DAYS[moment.weekday()]}, {moment.day} {MONTHS[moment.month - 1]} {moment.year}"
