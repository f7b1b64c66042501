"""The workbench: the tools of an author's session, and the answers to its calls.

Exploring happens in one world that keeps what the author does to it until `set_scene` begins anew, for an author wants
to see what a call leads to. Every probe and every submission plays in a world of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from pydantic import BaseModel, Field, ValidationError

from compoworld_core.data import Data
from compoworld_core.errors import FailedPrecondition, InvalidArguments, LimitExceeded, NotFound, ToolError
from compoworld_core.llm.messages import ToolCall, json_text
from compoworld_core.services.envelope import failure, success
from compoworld_core.services.record import Row
from compoworld_core.specs.model import JsonObject
from compoworld_core.storage import canonical_json
from compoworld_core.tasks.agent.advice import advice
from compoworld_core.tasks.agent.checks import draft_problems, scenery_problems
from compoworld_core.tasks.agent.forms import Problem
from compoworld_core.tasks.agent.submission import Draft, Scenery, Submission
from compoworld_core.tasks.agent.trial import Refused, Trial, TryingRoom
from compoworld_core.tasks.task import Task
from compoworld_core.worlds.gateway import META_TOOLS, Gateway
from compoworld_core.worlds.world import World

_SAMPLES: Final = 3
_MOST_PROBLEMS: Final = 12
_LONGEST_ARGUMENTS: Final = 100_000
_LONGEST_ANSWER: Final = 24_000

M = TypeVar("M", bound=BaseModel)


class ShowTables(Data):
    """Show what a service stores: fields with their meanings (x-semantic), keys, and some rows of each table."""

    service: str = Field(description="Name of a service, as list_services shows it.")


class SetScene(Scenery):
    """Begin exploring anew, in a world with these plants and reactions; without any, in the empty one."""


class Probe(Draft):
    """Try a solution in a fresh world: shows each step's evaluated arguments and answer, facts and changed rows."""


class Submit(Submission):
    """Hand in the complete task. All gates are run; the answer says whether it is accepted, or which gate failed."""


def _function(name: str, model: type[BaseModel]) -> JsonObject:
    schema = model.model_json_schema()
    description = schema.pop("description")
    return {"type": "function", "function": {"name": name, "description": description, "parameters": schema}}


AUTHOR_TOOLS: Final[tuple[JsonObject, ...]] = (
    *META_TOOLS,
    _function("show_tables", ShowTables),
    _function("set_scene", SetScene),
    _function("probe", Probe),
    _function("submit", Submit),
)
"""What an author may call: the meta-tools that agents have, and what it takes to design a task."""


class Workbench:
    """Answers the calls of one session.

    Attributes:
        submitted: The latest submission that all gates could be run on.
        accepted: The task, once a submission has passed.
        refused: Why each submission so far did not pass.
    """

    def __init__(self, room: TryingRoom, most_submissions: int) -> None:
        self.submitted: Submission | None = None
        self.accepted: Task | None = None
        self.refused: list[Refused] = []
        self._room = room
        self._empty = room.open()
        self._gateway = Gateway(self._empty.fork())
        self._most_submissions = most_submissions
        self._tools: Mapping[str, Callable[[JsonObject], JsonObject]] = {
            "show_tables": self._show_tables,
            "set_scene": self._set_scene,
            "probe": self._probe,
            "submit": self._submit,
        }

    @property
    def submissions_left(self) -> int:
        """How many more submissions are looked at."""
        return self._most_submissions - len(self.refused)

    def answer(self, call: ToolCall) -> str:
        """The answer to a call, as JSON text; a mistake of the author is an error that says what to do."""
        try:
            answer = self._answer(call)
        except ToolError as error:
            answer = dict(failure(error))
        text = json_text(answer)
        if len(text) > _LONGEST_ANSWER:
            text = json_text(
                {"success": answer["success"], "cut_after": _LONGEST_ANSWER, "text": text[:_LONGEST_ANSWER]}
            )
        return text

    @staticmethod
    def refuse(reason: str) -> str:
        """The answer to a call that is not looked at."""
        return json_text(failure(LimitExceeded(reason)))

    def _answer(self, call: ToolCall) -> JsonObject:
        if len(call.arguments) > _LONGEST_ARGUMENTS:
            raise LimitExceeded(f"the arguments have {len(call.arguments)} characters, more than {_LONGEST_ARGUMENTS}")
        arguments = call.parsed
        if arguments is None:
            raise InvalidArguments(f"the arguments of {call.name[:80]} are not one JSON object; send them as one")
        tool = self._tools.get(call.name)
        if tool is not None:
            return tool(arguments)
        if call.name in {item["function"]["name"] for item in META_TOOLS}:
            return dict(self._gateway.call(call.name, arguments))
        names = ", ".join(item["function"]["name"] for item in AUTHOR_TOOLS)
        raise NotFound(f"no tool named {call.name[:80]!r}; there are {names}")

    def _show_tables(self, arguments: JsonObject) -> JsonObject:
        service = _parsed(ShowTables, arguments).service
        if service not in self._empty.services:
            raise NotFound(f"no service named {service[:80]!r}; list_services shows their names")
        world = self._gateway.world
        return dict(success({name: _table(world, service, name) for name in world.services[service].state.tables}))

    def _set_scene(self, arguments: JsonObject) -> JsonObject:
        scene = _parsed(SetScene, arguments)
        _require_none(scenery_problems(scene, self._empty))
        try:
            self._gateway = Gateway(self._room.open(scene))
        except Refused as refused:
            return _refusal(refused)
        return dict(success({"plants": len(scene.plants), "reactions": len(scene.reactions)}))

    def _probe(self, arguments: JsonObject) -> JsonObject:
        draft = _parsed(Probe, arguments)
        _require_none(draft_problems(draft, self._empty, self._room.draw.core))
        try:
            return dict(success(_shown(self._room.play(draft))))
        except Refused as refused:
            return _refusal(refused)

    def _submit(self, arguments: JsonObject) -> JsonObject:
        if self.accepted is not None or self.submissions_left <= 0:
            raise LimitExceeded("the session is over: no further submission is looked at")
        try:
            submission = _parsed(Submit, arguments)
            _require_none(draft_problems(submission, self._empty, self._room.draw.core))
        except InvalidArguments as error:
            self.refused.append(Refused("invalid", error.message))
            raise
        try:
            self.accepted = self._room.judge(submission)
        except Refused as refused:
            self.refused.append(refused)
            return {**_refusal(refused), "submissions_left": self.submissions_left}
        self.submitted = submission
        return dict(success({"accepted": True, "information_edges": len(self.accepted.edges)}))


def _parsed(model: type[M], arguments: JsonObject) -> M:
    """The arguments as a model, keys in the order in which they are stored, so that both lead to the same task."""
    try:
        return model.model_validate_json(canonical_json(arguments), strict=True)
    except ValidationError as error:
        found = [Problem(".".join(map(str, item["loc"])) or "arguments", item["msg"]) for item in error.errors()]
    raise _invalid(found)


def _require_none(problems: Sequence[Problem]) -> None:
    if problems:
        raise _invalid(problems)


def _invalid(problems: Sequence[Problem]) -> InvalidArguments:
    lines = [f"- {item.path}: {item.reason}" for item in problems[:_MOST_PROBLEMS]]
    more = len(problems) - len(lines)
    return InvalidArguments("\n".join(["not in order:", *lines, *([f"and {more} more"] if more else [])]))


def _refusal(refused: Refused) -> JsonObject:
    envelope = dict(failure(FailedPrecondition(f"{refused.gate}: {refused.detail}")))
    return {**envelope, "gate": refused.gate, "advice": advice(refused.gate)}


def _table(world: World, service: str, name: str) -> JsonObject:
    schema = world.services[service].state.tables[name].schema
    rows = list(world.rows(service, name))
    return {
        "entity": schema.entity,
        "fields": schema.properties,
        "required": schema.row.get("required", []),
        "ids": f"{schema.id_prefix}_1001" if schema.id_prefix else "1001",
        "unique": [list(fields) for fields in schema.unique],
        "refers": {link.field: link.table for link in schema.foreign_keys},
        "rules": [rule.message for rule in schema.rules],
        "rows": len(rows),
        "samples": rows[:_SAMPLES],
    }


def _shown(trial: Trial) -> JsonObject:
    """What a played draft came to."""
    played = trial.played
    steps = [
        {
            "id": step.id,
            "service": step.service,
            "effect": step.effect,
            "arguments": played.arguments[step.id],
            "answer": played.envelopes.get(step.id) or {"not_made": played.unresolved.get(step.id)},
        }
        for step in trial.solution.steps
    ]
    facts = [
        {
            "label": fact.label,
            "value": value,
            **({"problem": played.unresolved.get(fact.label)} if value is None else {}),
        }
        for fact, value in zip(trial.solution.answer, played.facts, strict=True)
    ]
    changes = [
        {
            "service": entry.service,
            "table": change.table.name,
            "id": change.key,
            "cause": entry.cause,
            **_difference(change.before_row, change.after_row),
        }
        for entry in played.world.log
        for change in entry.changes
    ]
    return {"refused": list(played.refused), "changes": changes, "answer": facts, "steps": steps}


def _difference(before: Row | None, after: Row | None) -> JsonObject:
    if before is None:
        return {"created": after}
    if after is None:
        return {"deleted": True}
    return {"updated": {name: value for name, value in after.items() if before.get(name) != value}}
