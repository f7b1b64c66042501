"""Sampling tasks: draw services and a walk, plan along it, gate the candidate.

What passes is kept, and what does not is counted with its reason. What is drawn does not depend on who writes the task:
the planner here, or an agent (`agent/`).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import Any, NamedTuple

from pydantic import Field

from compoworld_core.data import Data
from compoworld_core.errors import InputError
from compoworld_core.services.package import ServicePackage
from compoworld_core.tasks.affordances import Affordances, explore
from compoworld_core.tasks.dependencies import dependency_graph, exchange_of, step_weights
from compoworld_core.tasks.gates import Candidate, run_gates
from compoworld_core.tasks.planner.criteria import undisturbed
from compoworld_core.tasks.planner.planner import DeadEnd, Planned, plan_task
from compoworld_core.tasks.rubric import Criterion, Rubric
from compoworld_core.tasks.splits import is_held_out, is_held_out_combination
from compoworld_core.tasks.task import Difficulty, Solution, Split, Task
from compoworld_core.tasks.walk import sample_walk
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.recipe import ServicePin, UniverseSeed, WorldRecipe
from compoworld_core.worlds.world import open_world

ACCEPTED = "accepted"
DEAD_END = "dead_end"
_DRAWS = 200
_CONTROLS = 0.5
_MOST_OPENINGS = 5


def _default_shares() -> dict[Split, float]:
    return {"sft": 0.6, "rl": 0.2, "eval_combo": 0.1, "eval_service": 0.1}


class TaskSettings(Data):
    """What tasks to make.

    Attributes:
        count: Tasks wanted, over all shards.
        seed: Every draw follows from it.
        profile: How large a task is; see `PROFILES`.
        control: Another profile, which about half the tasks of split sft have: what is learned from them can be
            compared with what is learned from the others. All other tasks have `profile`.
        held_out_services: Share of services that only `eval_service` tasks use.
        held_out_combinations: Share of combinations that only `eval_combo` tasks have: of core services, or of the
            tools that a task calls where its profile has one core service.
        shares: How many tasks of each split are wanted, relative to each other.
        services: Names of the services that tasks are made of; all that have admitted tools if left out.
        weighted_walks: Prefer walks along which values can flow to uniformly drawn ones.
        attempts_per_task: Attempts after which a shard gives up, per task that it should make.
    """

    count: int = Field(default=60, ge=1)
    seed: int = 0
    profile: Difficulty = "standard"
    control: Difficulty | None = None
    held_out_services: float = Field(default=0.15, ge=0, lt=1)
    held_out_combinations: float = Field(default=0.15, ge=0, lt=1)
    shares: dict[Split, float] = Field(default_factory=_default_shares)
    services: tuple[str, ...] = ()
    weighted_walks: bool = False
    attempts_per_task: int = Field(default=24, ge=1)

    def wanted(self, shard: int, shards: int) -> int:
        """How many tasks a shard is to make."""
        return self.count // shards + (shard < self.count % shards)


@dataclass(frozen=True)
class Profile:
    """Sizes of a task: core services, distractors, visits, and the fewest information edges."""

    core: int
    distractors: int
    visits: tuple[int, int]
    edges: int


PROFILES: Mapping[Difficulty, Profile] = {
    "standard": Profile(core=5, distractors=5, visits=(7, 12), edges=4),
    "easy": Profile(core=1, distractors=0, visits=(2, 3), edges=1),
    "pair": Profile(core=2, distractors=0, visits=(2, 3), edges=1),
    "single": Profile(core=1, distractors=0, visits=(7, 12), edges=4),
}


class ServiceTools(NamedTuple):
    """A service and the tools of it that agents may see.

    Attributes:
        tools: Those that were admitted; tasks are made of them.
        modelled: Those that a world model answers; tasks have them beside.
    """

    package: ServicePackage
    tools: tuple[str, ...]
    modelled: tuple[str, ...] = ()


class Authoring(Data):
    """The session in which an agent worked on a task.

    Attributes:
        session: Digest under which its transcript is kept.
        prompts: Labels of the prompts that it began with.
        turns: Messages of the model.
        refused: Why each submission but the accepted one was refused, in order.
    """

    session: str
    model: str
    prompts: tuple[str, ...]
    turns: int
    refused: tuple[str, ...]
    prompt_tokens: int
    completion_tokens: int


class Attempt(Data):
    """One try at a task.

    Attributes:
        walk: The accepted task's walk, or else the one that was drawn.
        outcome: `accepted`; `dead_end`, where the planner cannot go on; the gate that failed; or why an agent's
            session ended without a task: `author_gave_up`, `budget` or `model_failure`.
        detail: Why, for people.
        authoring: What an agent's session took; None for the planner, which needs none.
        task: The task, if accepted; stored apart from the attempt.
    """

    number: int
    profile: Difficulty
    split: Split
    core: tuple[str, ...]
    walk: tuple[str, ...]
    outcome: str
    detail: str = ""
    authoring: Authoring | None = None
    task: Task | None = Field(default=None, exclude=True)


@dataclass(frozen=True)
class Draw:
    """What a try at a task begins with; everything in it follows from the seed and its number.

    Attributes:
        core: The services that the task is to be about, in the order drawn; empty where none fit the split.
        visits: A core service per visit of the walk.
        recipe: The core services and distractors, with nothing planted yet.
        rng: For what is still to be drawn.
        held_out_tools: Share of combinations of tools that only `eval_combo` tasks have; None where tools decide
            nothing about the split.
    """

    number: int
    profile: Difficulty
    split: Split
    core: tuple[str, ...]
    visits: tuple[str, ...]
    recipe: WorldRecipe | None
    rng: random.Random
    held_out_tools: float | None = None

    @property
    def walk(self) -> tuple[str, ...]:
        """The services in the order of the visits, repeats collapsed."""
        return tuple(name for name, _ in groupby(self.visits))

    def misplaced(self, solution: Solution) -> str:
        """Why a task with this solution would belong to another split; empty if it would not."""
        if self.held_out_tools is None:
            return ""
        is_held_out = is_held_out_combination(solution.tools, self.held_out_tools)
        if is_held_out == (self.split == "eval_combo"):
            return ""
        return "its tools together are kept for eval_combo" if is_held_out else "its tools together are for training"

    def attempt(self, outcome: str, detail: str = "", **fields: Any) -> Attempt:
        """The record of what became of it."""
        about = {"number": self.number, "profile": self.profile, "split": self.split}
        places = {"core": tuple(sorted(self.core)), "walk": self.walk}
        return Attempt(**{**about, **places, **fields}, outcome=outcome, detail=detail)


def sample_tasks(
    settings: TaskSettings, services: Sequence[ServiceTools], catalogue: Catalogue, shard: int, shards: int
) -> Iterator[Attempt]:
    """The planner's attempts of one shard, in order, until it has its part of the tasks or has tried often enough.

    Raises:
        InputError: There are too few services for the profile.
    """
    draws = Draws(settings, services)
    planner = _Planner(draws.tools, catalogue)
    wanted = settings.wanted(shard, shards)
    made = 0
    for place in range(wanted * settings.attempts_per_task):
        if made == wanted:
            return
        attempt = planner.attempt(draws.draw(place * shards + shard))
        made += attempt.task is not None
        yield attempt


class Draws:
    """Draws services, a walk and an empty world for one try after the other.

    Raises:
        InputError: There are too few services for the profile.
    """

    def __init__(self, settings: TaskSettings, services: Sequence[ServiceTools]) -> None:
        self.tools = _chosen({item.package.name: item for item in services if item.tools}, settings.services)
        self._settings = settings
        self._exchanges = {name: exchange_of(item.package, item.tools) for name, item in self.tools.items()}
        names = sorted(self.tools)
        self._held_out = [name for name in names if is_held_out(name, settings.held_out_services)]
        self._open = [name for name in names if name not in self._held_out]
        for profile in (settings.profile, settings.control or settings.profile):
            needed = PROFILES[profile].core + PROFILES[profile].distractors
            if len(self._open) < needed:
                raise InputError(
                    f"profile {profile!r} needs {needed} services with admitted tools that are not held out, but there "
                    f"are {len(self._open)}; add sources, or lower tasks.held_out_services "
                    f"({settings.held_out_services})"
                )

    def draw(self, number: int) -> Draw:
        """What a try begins with."""
        settings = self._settings
        rng = random.Random(f"task/{settings.seed}/{settings.profile}/{number}")
        split = self._split(rng)
        name = settings.profile
        if settings.control is not None and split == "sft" and rng.random() < _CONTROLS:
            name = settings.control
        profile = PROFILES[name]
        services = self._services(rng, split, profile)
        if services is None:
            return Draw(number, name, split, (), (), None, rng)
        core, others = services
        visits = self._visits(rng, core, profile)
        recipe = self._recipe(rng, [*core, *others])
        by_tools = profile.core == 1 and split != "eval_service"
        return Draw(number, name, split, tuple(core), visits, recipe, rng, self._share(profile) if by_tools else None)

    def _split(self, rng: random.Random) -> Split:
        shares = dict(self._settings.shares)
        if not self._held_out:
            shares.pop("eval_service", None)
        return rng.choices(list(shares), weights=list(shares.values()))[0]

    def _services(self, rng: random.Random, split: Split, profile: Profile) -> tuple[list[str], list[str]] | None:
        """Core services and distractors; None where no core that may be used for the split was found."""
        share = self._share(profile)
        if split == "eval_combo" and not share:
            return None
        for _ in range(_DRAWS):
            core = self._linked_core(rng, self._held_out if split == "eval_service" else self._open, profile.core)
            if core is None:
                continue
            is_free = split == "eval_service" or profile.core == 1
            if is_free or is_held_out_combination(core, share) == (split == "eval_combo"):
                rest = [name for name in self._open if name not in core]
                return core, rng.sample(rest, profile.distractors)
        return None

    def _share(self, profile: Profile) -> float:
        """Of combinations that only `eval_combo` tasks have; tasks of another size than those have none of them."""
        return self._settings.held_out_combinations if profile.core == PROFILES[self._settings.profile].core else 0

    def _linked_core(self, rng: random.Random, firsts: Sequence[str], size: int) -> list[str] | None:
        """A first service and others, so many in all, each of which can use values of those before it.

        Services that offer a plan more are drawn more often, up to a limit, so that rich ones do not take over.
        """
        core: list[str] = []
        offers: frozenset[str] = frozenset()
        while len(core) < size:
            pool = firsts if not core else self._open
            fitting = [
                name
                for name in pool
                if name not in core
                and self._exchanges[name].openings
                and (not core or self._exchanges[name].accepts(offers))
            ]
            if not fitting:
                return None
            weights = [min(self._exchanges[name].openings, _MOST_OPENINGS) ** 2 for name in fitting]
            core.append(rng.choices(fitting, weights)[0])
            offers |= self._exchanges[core[-1]].offers
        return core if any(self._exchanges[name].is_start for name in core) else None

    def _visits(self, rng: random.Random, core: Sequence[str], profile: Profile) -> tuple[str, ...]:
        length = rng.randint(*profile.visits)
        if len(core) == 1:
            return tuple(core) * length
        exchanges = [self._exchanges[name] for name in core]
        starts = {item.name for item in exchanges if item.is_start}
        weights = step_weights(dependency_graph(exchanges), core) if self._settings.weighted_walks else None
        return sample_walk(core, length, rng, weights, starts)

    def _recipe(self, rng: random.Random, names: Sequence[str]) -> WorldRecipe:
        day = datetime(2026, 1, 5, 8, tzinfo=UTC) + timedelta(weeks=rng.randrange(44), days=rng.randrange(5))
        return WorldRecipe(
            services=tuple(
                ServicePin(name=name, package=item.package.digest, tools=(*item.tools, *item.modelled))
                for name in sorted(names)
                if (item := self.tools[name])
            ),
            universe=UniverseSeed(seed=rng.randrange(1_000_000)),
            start_time=day + timedelta(minutes=15 * rng.randrange(9)),
        )


def _chosen(tools: dict[str, ServiceTools], names: Sequence[str]) -> dict[str, ServiceTools]:
    unknown = [name for name in names if name not in tools]
    if unknown:
        raise InputError(
            f"tasks.services: {', '.join(unknown)}: no such service has admitted tools; there are "
            f"{', '.join(sorted(tools))}"
        )
    return {name: tools[name] for name in names} if names else tools


class _Planner:
    """Makes each try by planning along the drawn walk."""

    def __init__(self, tools: Mapping[str, ServiceTools], catalogue: Catalogue) -> None:
        self._tools = tools
        self._catalogue = catalogue

    def attempt(self, draw: Draw) -> Attempt:
        """Plan along the walk, and gate what comes of it."""
        if draw.recipe is None:
            return nothing_fits(draw)
        affordances = {name: self._explored(name) for name in draw.core}
        bare = with_fields(draw.recipe, services=tuple(pin for pin in draw.recipe.services if pin.name in draw.core))
        try:
            planned = plan_task(open_world(bare, self._catalogue), affordances, draw.visits, draw.rng)
        except DeadEnd as end:
            return draw.attempt(DEAD_END, end.reason)
        if misplaced := draw.misplaced(planned.candidate.solution):
            return draw.attempt(DEAD_END, misplaced)
        complete = with_fields(draw.recipe, plants=tuple(planned.plan.plants), reactions=tuple(planned.plan.reactions))
        try:
            world = open_world(complete, self._catalogue)
        except InputError as collision:  # a plant that came late in the plan needs what an earlier step changed
            return draw.attempt(DEAD_END, str(collision))
        candidate = _guarded(planned.candidate, undisturbed(world, draw.core))
        report = run_gates(candidate, world, least_edges=PROFILES[draw.profile].edges, seed=draw.number)
        if not report.passed:
            return draw.attempt(report.failed, report.detail)
        task = Task(
            instruction=candidate.instruction,
            recipe=complete,
            rubric=report.rubric,
            solution=candidate.solution,
            walk=draw.walk,
            core=tuple(sorted(draw.core)),
            edges=report.edges,
            capabilities=_capabilities(planned),
            difficulty=draw.profile,
            split=draw.split,
            shape=planned.shape,
            author="planner",
        )
        return draw.attempt(ACCEPTED, task=task)

    def _explored(self, name: str) -> Affordances:
        item = self._tools[name]
        key = (item.package.digest, item.tools)
        if key not in _explored:
            _explored[key] = explore(item.package, self._catalogue.backend(item.package), item.tools)
        return _explored[key]


_explored: dict[tuple[str, tuple[str, ...]], Affordances] = {}
"""What was found out in this process; a package never changes under its digest."""


def nothing_fits(draw: Draw) -> Attempt:
    """The attempt of a draw that found no core services."""
    detail = f"no {PROFILES[draw.profile].core} services for {draw.split} can pass values on to each other"
    return draw.attempt(DEAD_END, detail)


def with_fields(recipe: WorldRecipe, **fields: Any) -> WorldRecipe:
    """The recipe with some fields replaced."""
    return WorldRecipe(**{**{name: getattr(recipe, name) for name in WorldRecipe.model_fields}, **fields})


def _guarded(candidate: Candidate, criterion: Criterion | None) -> Candidate:
    """The candidate with a further criterion before that of the answer."""
    if criterion is None:
        return candidate
    *others, last = candidate.rubric.criteria
    return replace(candidate, rubric=Rubric(criteria=(*others, criterion, last)))


def _capabilities(planned: Planned) -> tuple[str, ...]:
    return tuple(sorted(planned.plan.capabilities))
