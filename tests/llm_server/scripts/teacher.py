"""A teacher: knows the reference solutions of some tasks, and plays them call by call as the oracle does.

The task is found by its instruction. What was said before is replayed from the messages of the request, less calls that
could not work: those it makes again. Samples of one task are told apart by what the first message says; from there on a
conversation keeps its take, and its take decides whether it slips.
"""

from __future__ import annotations

import hashlib
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal

from compoworld_core.library.registry import installed_service
from compoworld_core.llm.messages import AssistantMessage, ToolCall, ToolMessage, UserMessage
from compoworld_core.rollouts.oracle import OraclePolicy
from compoworld_core.services.datasets import SERVICES
from compoworld_core.services.hosted import HostPool
from compoworld_core.services.world_model.prediction import NO_PREDICTIONS
from compoworld_core.storage import DatasetLocation, DatasetType, open_store, read_dataset
from compoworld_core.storage.digest import JsonObject
from compoworld_core.tasks.bindings import Facts, steps_read
from compoworld_core.tasks.datasets import TASKS
from compoworld_core.tasks.play import planted_facts
from compoworld_core.tasks.task import Solution, Task
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.world import open_world
from tests.llm_server.reply import Reply

Slip = Literal["skips_write", "answers_wrongly", "malformed", "wrong_tool"]
"""What a teacher does wrong: the last two cost a call and are made good, the others cost the task."""

Slips = Callable[[Task, int], Slip | None]
"""Decides by the task and the take, from 1."""

_TAKE: Final = "Let me see what there is. Take "
_THOUGHT: Final = "One step after the other: what do I know, and what is the next call?"


class Teacher:
    """Answers as a model that can solve the given tasks.

    Args:
        source: The tasks and what their worlds are opened with; asked again for a task that is not known yet.
        slips: What goes wrong; nothing if left out.
        thinks: Whether it writes down what it thinks.
    """

    def __init__(
        self, source: Callable[[], tuple[Iterable[Task], Catalogue]], slips: Slips | None = None, thinks: bool = False
    ) -> None:
        self._source = source
        self._slips = slips
        self._thinks = thinks
        self._tasks: dict[str, tuple[Task, Facts]] = {}
        self._takes: Counter[str] = Counter()
        self._loading = threading.Lock()

    async def __call__(self, request: JsonObject) -> Reply:
        messages = request["messages"]
        task, facts = self._task(next(message["content"] for message in messages if message["role"] == "user"))
        said = [message for message in messages if message["role"] == "assistant"]
        take = self._take(task, said)
        slip = self._slips(task, take) if self._slips is not None else None
        if slip == "skips_write":
            task = _without_last_write(task)
        answers, failed = _answers(messages, {tool["function"]["name"] for tool in request["tools"]})
        message = await _play(OraclePolicy(task, facts), answers)
        calls = [(call.name, call.arguments) for call in message.tool_calls]
        content = message.content
        if slip == "answers_wrongly" and not calls:
            content = "Done, as you asked."
        if slip == "malformed" and not failed and calls[0][0] == "call_tool":
            calls = [(name, arguments[:-1]) for name, arguments in calls]
        if slip == "wrong_tool" and not failed and calls[0][0] == "call_tool":
            calls = [("use_tool", arguments) for _, arguments in calls]
        return Reply(
            content=content if said else f"{_TAKE}{take}.",
            tool_calls=calls,
            reasoning_content=_THOUGHT if self._thinks else None,
        )

    def _task(self, instruction: str) -> tuple[Task, Facts]:
        with self._loading:
            if instruction not in self._tasks:
                tasks, catalogue = self._source()
                for task in tasks:
                    if task.instruction not in self._tasks:
                        self._tasks[task.instruction] = task, planted_facts(open_world(task.recipe, catalogue))
            return self._tasks[instruction]

    def _take(self, task: Task, said: list[JsonObject]) -> int:
        if said:
            return int(said[0]["content"].removeprefix(_TAKE).rstrip("."))
        self._takes[task.id] += 1
        return self._takes[task.id]


def drawn(shares: Mapping[Slip, float], seed: int = 0) -> Slips:
    """Slips in these shares of all takes; the same on every run."""

    def slips(task: Task, take: int) -> Slip | None:
        place = int.from_bytes(hashlib.sha256(f"{seed}/{task.id}/{take}".encode()).digest()[:7]) / 256**7
        for slip, share in shares.items():
            if place < share:
                return slip
            place -= share
        return None

    return slips


def of_tasks(tasks: Iterable[Task], catalogue: Catalogue, slips: Slips | None = None, thinks: bool = False) -> Teacher:
    """A teacher of given tasks."""
    known = tuple(tasks)
    return Teacher(lambda: (known, catalogue), slips, thinks)


def of_store(
    store: str, shares: Mapping[Slip, float] | None = None, seed: int = 0, thinks: bool = False, guests: int = 8
) -> Teacher:
    """A teacher of all tasks that a store holds, also of those that come to it later.

    Args:
        shares: Slips with their shares.
        guests: Most services of foreign code that it keeps open.
    """
    pool = HostPool(capacity=guests)

    def source() -> tuple[Iterable[Task], Catalogue]:
        packages = list(_rows(store, SERVICES))
        library = {item.name: installed_service(item) for item in packages if item.origin == "library"}
        return _rows(store, TASKS), Catalogue(packages, library, pool.backend, NO_PREDICTIONS)

    return Teacher(source, drawn(shares or {}, seed), thinks)


def _rows(uri: str, type: DatasetType[Any]) -> Iterable[Any]:
    store = open_store(uri)
    for name in store.names(type.name):
        dataset, key, *rest = name.split("/")
        if rest == ["_DATASET.json"]:
            yield from read_dataset(store, DatasetLocation(dataset=dataset, key=key), type)


def _answers(messages: list[JsonObject], tools: set[str]) -> tuple[list[str], bool]:
    """The answers to calls that could work, and whether there were others."""
    worked: dict[str, bool] = {}
    answers = []
    for message in messages:
        for call in message.get("tool_calls") or ():
            function = call["function"]
            parsed = ToolCall(id=call["id"], name=function["name"], arguments=function["arguments"]).parsed
            worked[call["id"]] = function["name"] in tools and parsed is not None
        if message["role"] == "tool" and worked[message["tool_call_id"]]:
            answers.append(message["content"])
    return answers, not all(worked.values())


async def _play(policy: OraclePolicy, answers: list[str]) -> AssistantMessage:
    message = await policy.respond([UserMessage(content="")], ())
    for answer in answers:
        message = await policy.respond([ToolMessage(tool_call_id="replayed", name="", content=answer)], ())
    return message


def _without_last_write(task: Task) -> Task:
    """The task with a solution that leaves out the last write that nothing else needs."""
    solution = task.solution
    needed = steps_read([step.arguments for step in solution.steps], solution.values) | steps_read(
        [fact.value for fact in solution.answer], solution.values
    )
    skipped = next(step.id for step in reversed(solution.steps) if step.effect == "write" and step.id not in needed)
    steps = tuple(step for step in solution.steps if step.id != skipped)
    fields = {name: getattr(task, name) for name in Task.model_fields}
    return Task(**{**fields, "solution": Solution(**{**dict(solution), "steps": steps})})
