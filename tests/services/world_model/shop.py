"""The repair shop with tools that no code executes, and what tests see of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from compoworld_core.llm.messages import AssistantMessage, Message, Usage, to_chat
from compoworld_core.services.backend import InProcessBackend
from compoworld_core.services.context import Context
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.running import RunningService
from compoworld_core.services.state import State
from compoworld_core.services.universe import Universe
from compoworld_core.services.world_model.backend import ModelledBackend
from compoworld_core.services.world_model.prediction import Check, Prediction, Predictor
from compoworld_core.services.world_model.question import Question
from compoworld_core.specs.model import ToolSpec
from tests.llm_server import Reply
from tests.services.workshop import START, USER, Workshop, package_of

FORECAST = ToolSpec(
    name="forecast",
    description="Tell how many things will come in on a day.",
    effect="read",
    parameters={
        "type": "object",
        "properties": {"day": {"type": "string"}, "job_id": {"type": "string"}},
        "required": ["day"],
        "additionalProperties": False,
    },
    returns={
        "type": "object",
        "properties": {"day": {"type": "string"}, "things": {"type": "integer", "minimum": 0}},
        "required": ["day", "things"],
        "additionalProperties": False,
    },
)
ORDER_PART = ToolSpec(
    name="order_part",
    description="Order a part from a supplier far away, and note it on the job.",
    effect="unknown",
    parameters={
        "type": "object",
        "properties": {"job_id": {"type": "string"}, "part": {"type": "string"}},
        "required": ["part"],
    },
)


def modelled(service: type[Any] = Workshop, *tools: ToolSpec) -> ServicePackage:
    package = package_of(service)
    fields = {name: getattr(package, name) for name in ServicePackage.model_fields}
    return ServicePackage.model_validate({**fields, "modelled": tools or (FORECAST, ORDER_PART)})


SHOP = modelled()


class Fixed(Predictor):
    """Predicts the same whatever is asked, checked or not."""

    def __init__(self, prediction: Prediction | dict[str, Any]) -> None:
        self.prediction = Prediction.model_validate(prediction)
        self.asked: list[Question] = []

    def predict(self, question: Question, check: Check) -> Prediction:
        self.asked.append(question)
        return self.prediction


def shop(predictor: Predictor, package: ServicePackage = SHOP, seed: int = 7) -> RunningService:
    """A running shop, sealed."""
    context = Context(package.name, seed, START, USER)
    backend = ModelledBackend(package, InProcessBackend(Workshop), predictor)
    running = RunningService.start(package, backend, context, Universe.generate(seed))
    running.state.seal()
    return running


class Scripted:
    """An `Ask` that lets a script answer without a server in between; each answer takes ten tokens.

    Attributes:
        repeated: What was counted without being asked.
    """

    def __init__(self, script: Callable[[dict[str, Any]], Any], said: list[list[Message]] | None = None) -> None:
        self.repeated: list[tuple[str, int, Usage]] = []
        self._script = script
        self._said = said

    def __call__(self, messages: Sequence[Message], *, item: str, sample: int) -> AssistantMessage:
        if self._said is not None:
            self._said.append(list(messages))
        reply: Reply = self._script({"messages": [to_chat(message) for message in messages]})
        return AssistantMessage(content=reply.content, usage=Usage(completion_tokens=10))

    def repeat(self, *, item: str, requests: int, usage: Usage) -> None:
        self.repeated.append((item, requests, usage))


def text(value: Any) -> Reply:
    return Reply(value if isinstance(value, str) else json.dumps(value))


def faults(state: State) -> list[str]:
    """What a state has that its schema forbids."""
    found = []
    for name, table in state.tables.items():
        rows = [table.type.view(record) for record in table]
        for row in rows:
            table.type.build(row)
            found += [f"{name}: {rule.message}" for rule in table.schema.rules if rule.broken_by(row)]
            for foreign in table.schema.foreign_keys:
                keys = row.get(foreign.field)
                for key in keys if isinstance(keys, list) else [keys]:
                    if key is not None and key not in state.tables[foreign.table]:
                        found.append(f"{name}.{foreign.field}: {key}")
        for fields in (("id",), *table.schema.unique):
            values = [tuple(row[field] for field in fields) for row in rows]
            values = [value for value in values if value != (None,)]
            if len(set(values)) < len(values):
                found.append(f"{name}: {fields} twice")
    return found
