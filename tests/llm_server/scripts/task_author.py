"""A task author: explores the world of its assignment, designs a task, probes it and submits until it is accepted.

What it designs comes from the planner, which knows the services as well as a good author would. Its first submissions
are weak on purpose: one has no criterion on the answer, one gives an id away. Which world it is in follows from the
assignment, and how far it is from the messages that came before.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import Any, Final, Literal

from compoworld_core.library.registry import installed_service
from compoworld_core.pipeline.stage import Inputs
from compoworld_core.pipeline.work.sample_tasks import admitted
from compoworld_core.services.conditions import Unchanged
from compoworld_core.services.datasets import SERVICES
from compoworld_core.services.hosted import HostPool
from compoworld_core.services.world_model.prediction import NO_PREDICTIONS
from compoworld_core.storage import DatasetLocation, Store, open_store
from compoworld_core.storage.digest import JsonObject, to_plain
from compoworld_core.synthesis.datasets import VERIFICATIONS
from compoworld_core.tasks.affordances import Affordances, explore
from compoworld_core.tasks.agent.session import SessionLimits, opening
from compoworld_core.tasks.planner.planner import DeadEnd, Planned, plan_task
from compoworld_core.tasks.sampler import Draw, Draws, ServiceTools, TaskSettings, with_fields
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.world import World, open_world
from tests.llm_server.reply import Reply

Manner = Literal["diligent", "vacuous", "prose", "malformed"]
"""How it works: `vacuous` submits a rubric that says nothing, `prose` only talks, `malformed` writes broken JSON."""

Turn = list[tuple[str, JsonObject | str]]
"""The tool calls of one message."""

_GIVE_UP: Final = "There is no sensible piece of work to be made of these services."
_THOUGHTS: Final = (
    "First I look at what there is.",
    "Which tools does each of them have?",
    "What does a row that could matter look like?",
    "Now I set the scene.",
    "Would my solution work?",
    "I hand it in.",
)
_MOST_DRAWS: Final = 2000


class TaskAuthor:
    """Answers as a model that designs tasks.

    Args:
        source: The services and what their worlds are opened with; asked for once, when it is first needed.
        settings: With what tasks are drawn.
    """

    def __init__(
        self,
        source: Callable[[], tuple[Iterable[ServiceTools], Catalogue]],
        settings: TaskSettings,
        manner: Manner = "diligent",
    ) -> None:
        self._source = source
        self._settings = settings
        self._manner: Manner = manner
        self._designs: dict[str, _Design | None] = {}
        self._open: _Studio | None = None
        self._working = threading.Lock()

    def __call__(self, request: JsonObject) -> Reply:
        messages = request["messages"]
        said = [message for message in messages if message["role"] == "assistant"]
        if self._manner == "prose":
            return Reply(content="A good task would be about a refund, I think.")
        if self._manner == "malformed":
            return Reply(tool_calls=[("submit", '{"instruction": "Refund the latest order", "criteria": [')])
        with self._working:
            design = self._design(next(message["content"] for message in messages if message["role"] == "user"))
        if design is None:
            return Reply(content=_GIVE_UP)
        turns = design.turns(self._manner)
        if len(said) >= len(turns):
            return Reply(content=_GIVE_UP) if self._manner == "diligent" else Reply(tool_calls=turns[-1])
        thought = _THOUGHTS[min(len(said), len(_THOUGHTS) - 1)]
        return Reply(content=thought, tool_calls=turns[len(said)])

    def _design(self, assignment: str) -> _Design | None:
        if assignment not in self._designs:
            if self._open is None:
                services, catalogue = self._source()
                self._open = _Studio(Draws(self._settings, tuple(services)), catalogue)
            self._designs[assignment] = self._open.design(assignment)
        return self._designs[assignment]


class _Studio:
    """Finds the draw behind an assignment and plans a task in its world."""

    def __init__(self, draws: Draws, catalogue: Catalogue) -> None:
        self._draws = draws
        self._catalogue = catalogue
        self._affordances: dict[str, Affordances] = {}

    def design(self, assignment: str) -> _Design | None:
        draw, world = self._drawn(assignment)
        assert draw.recipe is not None
        bare = with_fields(draw.recipe, services=tuple(pin for pin in draw.recipe.services if pin.name in draw.core))
        affordances = {name: self._explored(name) for name in draw.core}
        try:
            planned = plan_task(open_world(bare, self._catalogue), affordances, draw.visits, draw.rng)
        except DeadEnd:
            return None
        return _Design(draw, world, planned)

    def _drawn(self, assignment: str) -> tuple[Draw, World]:
        for number in range(_MOST_DRAWS):
            draw = self._draws.draw(number)
            if draw.recipe is not None and " → ".join(draw.walk) in assignment:
                world = open_world(draw.recipe, self._catalogue)
                if opening(draw, world, SessionLimits())[1].content == assignment:
                    return draw, world
        raise LookupError("no draw of these settings and services has this assignment")

    def _explored(self, name: str) -> Affordances:
        if name not in self._affordances:
            item = self._draws.tools[name]
            self._affordances[name] = explore(item.package, self._catalogue.backend(item.package), item.tools)
        return self._affordances[name]


class _Design:
    """A planned task in the form in which it is submitted."""

    def __init__(self, draw: Draw, world: World, planned: Planned) -> None:
        self._draw = draw
        self._world = world
        self._names = {(tool.service, tool.spec.name): name for name, tool in world.tools.items()}
        solution = planned.candidate.solution
        self._scene: JsonObject = {
            "plants": to_plain(planned.plan.plants),
            "reactions": to_plain(planned.plan.reactions),
        }
        self._draft: JsonObject = {
            **self._scene,
            "solution": {
                "values": to_plain(solution.values),
                "steps": [
                    {
                        "id": step.id,
                        "tool": self._names[step.service, step.tool],
                        "arguments": to_plain(step.arguments),
                        "after": list(step.after),
                    }
                    for step in solution.steps
                ],
                "answer": to_plain(solution.answer),
                "temptations": [
                    {
                        "reason": item.reason,
                        "tool": self._names[item.step.service, item.step.tool],
                        "arguments": to_plain(item.step.arguments),
                        "after": item.after,
                        "replaces": item.replaces or None,
                    }
                    for item in solution.temptations
                ],
            },
        }
        self._instruction = planned.candidate.instruction
        self._criteria = [
            {"id": item.id.lower(), "description": item.description[:400], "condition": to_plain(item.condition)}
            for item in planned.candidate.rubric.criteria
            if item.id.split("_")[0] in ("write", "left", "untouched", "answer")
        ]

    def turns(self, manner: Manner) -> list[Turn]:
        """The calls of one message after the other."""
        core = sorted(self._draw.core)
        first = self._draft["solution"]["steps"][0]
        exploring: list[Turn] = [
            [("list_services", {}), ("show_tables", {"service": core[0]})],
            [("list_tools", {"service": name}) for name in core],
            [
                ("describe_tool", {"tool": first["tool"]}),
                ("call_tool", {"tool_name": first["tool"], "arguments": first["arguments"]}),
            ],
            [("set_scene", self._scene)],
            [("probe", self._draft)],
        ]
        if manner == "vacuous":
            return [*exploring, [("submit", self._submission(criteria=self._vacuous()))]]
        leaking = f"{self._instruction} You will need {self._some_id()}."
        return [
            *exploring,
            [("submit", self._submission(criteria=self._criteria[:-1]))],
            [("submit", self._submission(instruction=leaking))],
            [("submit", self._submission())],
        ]

    def _submission(self, **changed: Any) -> JsonObject:
        return {**self._draft, "instruction": self._instruction, "criteria": self._criteria, **changed}

    def _vacuous(self) -> list[JsonObject]:
        """A criterion that holds whatever an agent does that is not forbidden anyway."""
        service = sorted(self._draw.core)[0]
        *_, table = self._world.services[service].state.tables
        nothing = Unchanged(service=service, table=table, where=())
        return [{"id": "fine", "description": "all is well", "condition": to_plain(nothing)}]

    def _some_id(self) -> str:
        service = self._draft["solution"]["steps"][0]["tool"]
        place = self._world.tools[service].service
        tables = self._world.services[place].state.tables
        return str(next(row["id"] for name in tables for row in self._world.rows(place, name)))


def of_services(
    services: Iterable[ServiceTools], catalogue: Catalogue, settings: TaskSettings, manner: Manner = "diligent"
) -> TaskAuthor:
    """An author for worlds of given services."""
    known = tuple(services)
    return TaskAuthor(lambda: (known, catalogue), settings, manner)


def of_store(
    store: str, settings: JsonObject, manner: Manner = "diligent", has_world_model: bool = False, guests: int = 8
) -> TaskAuthor:
    """An author for worlds of the services that a store holds once it is first asked.

    Args:
        settings: The fields of `TaskSettings` with which the run draws its tasks.
        has_world_model: Whether the run has a world model.
        guests: Most services of foreign code that it keeps open.
    """
    pool = HostPool(capacity=guests)

    def source() -> tuple[Iterable[ServiceTools], Catalogue]:
        opened = open_store(store)
        places = {type.name: _latest(opened, type.name) for type in (SERVICES, VERIFICATIONS)}
        inputs = Inputs(opened, places)
        packages = list(inputs[SERVICES])
        library = {item.name: installed_service(item) for item in packages if item.origin == "library"}
        catalogue = Catalogue(packages, library, pool.backend, NO_PREDICTIONS)
        return admitted(inputs, packages, has_world_model=has_world_model), catalogue

    return TaskAuthor(source, TaskSettings.model_validate(settings), manner)


def _latest(store: Store, dataset: str) -> DatasetLocation:
    keys = [name.split("/")[1] for name in store.names(dataset) if name.split("/")[2:] == ["_DATASET.json"]]
    return DatasetLocation(dataset=dataset, key=keys[-1])
