"""Worlds: several services with one universe, one log and the reactions that make the world move.

A world owns all state and is the only one that commits. It can be forked in microseconds, so that every rollout, mutant
and gate starts from the same snapshot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from compoworld_core.errors import InputError, NotFound, ToolError
from compoworld_core.services.conditions import holds, watched_tables
from compoworld_core.services.context import Context, User
from compoworld_core.services.envelope import failure
from compoworld_core.services.package import ServicePackage
from compoworld_core.services.record import Row
from compoworld_core.services.running import CallResult, RunningService
from compoworld_core.services.state import RowChange
from compoworld_core.services.universe import Universe
from compoworld_core.specs.model import ToolSpec
from compoworld_core.worlds.catalogue import Catalogue
from compoworld_core.worlds.recipe import Insert, Reaction, RowOperation, ServicePin, Update, WorldRecipe

Cause = Literal["agent", "reaction"]


class LogEntry(NamedTuple):
    """One committed call or reaction, and the rows that it changed."""

    service: str
    cause: Cause
    tool: str
    changes: tuple[RowChange, ...]


@dataclass(frozen=True, slots=True)
class RowEvent:
    """One row change of the log, as conditions see it."""

    service: str
    change: RowChange

    @property
    def table(self) -> str:
        """The row's table."""
        return self.change.table.name

    @property
    def before(self) -> Row | None:
        """JSON view before the change."""
        return self.change.before_row

    @property
    def after(self) -> Row | None:
        """JSON view after the change."""
        return self.change.after_row


@dataclass(frozen=True, slots=True)
class BoundTool:
    """A tool under the name that it has in this world.

    Attributes:
        is_modelled: Whether a world model answers it, not code.
    """

    name: str
    service: str
    spec: ToolSpec
    is_modelled: bool = False


class World:
    """Services that an agent can act on through `call`."""

    __slots__ = ("_pending", "_watched", "facts", "log", "recipe", "services", "tools", "universe")

    def __init__(
        self,
        recipe: WorldRecipe,
        universe: Universe,
        services: dict[str, RunningService],
        tools: Mapping[str, BoundTool],
        facts: Mapping[tuple[str, str, str], Mapping[str, str]],
        pending: tuple[Reaction, ...],
    ) -> None:
        self.recipe = recipe
        self.universe = universe
        self.services = services
        self.tools = tools
        self.facts = facts
        self.log: list[LogEntry] = []
        self._pending = pending
        self._watched = frozenset().union(*(watched_tables(item.when) for item in pending))

    def call(self, tool: str, arguments: Mapping[str, Any]) -> CallResult:
        """Run a tool by its name in this world, and the reactions that its changes set off."""
        bound = self.tools.get(tool)
        if bound is None:
            return CallResult(failure(NotFound(f"no tool named {tool[:80]!r}; list_tools shows a service's tools")))
        result = self.services[bound.service].call(bound.spec.name, arguments)
        if result.changes:
            self.log.append(LogEntry(bound.service, "agent", bound.spec.name, result.changes))
            if self._watched:
                self._react(bound.service, result.changes)
        return result

    def fork(self) -> World:
        """A world in the same state, whose later calls and reactions are its own."""
        twin = object.__new__(World)
        twin.recipe, twin.universe, twin.tools, twin.facts = self.recipe, self.universe, self.tools, self.facts
        twin.services = {name: service.fork() for name, service in self.services.items()}
        twin.log = list(self.log)
        twin._pending, twin._watched = self._pending, self._watched
        return twin

    def apply(self, operation: RowOperation) -> RowChange:
        """Change a row from outside the agent's tools, with all the checks of a table operation.

        Raises:
            ToolError: The table refuses the row.
            KeyError: No such service or table.
        """
        state = self.services[operation.service].state
        table = state.tables[operation.table]
        try:
            if isinstance(operation, Insert):
                table.insert(**operation.values)
            elif isinstance(operation, Update):
                table.update(operation.key, **operation.values)
            else:
                table.delete(operation.key)
        except BaseException:
            state.rollback()
            raise
        entry = state.journal[-1]
        changes = state.commit(counted=False)
        return changes[0] if changes else RowChange(entry.table, entry.key, entry.before, entry.after)

    def _react(self, service: str, changes: Iterable[RowChange]) -> None:
        touched = {(service, change.table.name) for change in changes}
        while touched & self._watched:
            fired = next(
                (item for item in self._pending if watched_tables(item.when) & touched and holds(item.when, self)), None
            )
            if fired is None:
                return
            self._pending = tuple(item for item in self._pending if item is not fired)
            self._watched = frozenset().union(*(watched_tables(item.when) for item in self._pending))
            for operation in fired.apply:
                try:
                    change = self.apply(operation)
                except ToolError:
                    continue  # the agent removed what the reaction was about to change
                if change.is_real:
                    self.log.append(LogEntry(operation.service, "reaction", "", (change,)))
                    touched.add((operation.service, operation.table))

    # Evidence, for conditions

    def rows(self, service: str, table: str) -> Iterator[Row]:
        """JSON views of a table's rows as they are now."""
        found = self.services[service].state.tables[table]
        return (found.type.view(record) for record in found)

    def initial_rows(self, service: str, table: str) -> Iterator[Row]:
        """JSON views of a table's rows as they were at the start."""
        found = self.services[service].state.tables[table]
        return (found.type.view(record) for record in found.base_rows())

    def changed_rows(self, service: str, table: str) -> Iterator[tuple[Row | None, Row | None]]:
        """(at the start, now) of a table's rows that differ."""
        found = self.services[service].state.tables[table]
        for _, before, after in found.changed():
            yield (
                None if before is None else found.type.view(before),
                None if after is None else found.type.view(after),
            )

    def events(self) -> Iterator[RowEvent]:
        """Every row change of the log, in order."""
        return (RowEvent(entry.service, change) for entry in self.log for change in entry.changes)

    @property
    def answer(self) -> str | None:
        """Worlds have no answer; an episode's evidence adds it."""
        return None


def open_world(recipe: WorldRecipe, catalogue: Catalogue) -> World:
    """Build a recipe's world: services from the universe, then the plants, then the snapshot.

    Raises:
        InputError: A pinned package or tool is not in the catalogue, a tool needs a world model and there is none, a
            plant is refused, a reaction is about a table that no service has, or two tools cannot be told apart.
    """
    return _snapshot(_Key(recipe, catalogue)).fork()


class _Key:
    """A recipe and a catalogue, compared by recipe digest and catalogue identity."""

    __slots__ = ("catalogue", "recipe")

    def __init__(self, recipe: WorldRecipe, catalogue: Catalogue) -> None:
        self.recipe = recipe
        self.catalogue = catalogue

    def __hash__(self) -> int:
        return hash(self.recipe.digest)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, _Key) and self.catalogue is other.catalogue and self.recipe.digest == other.recipe.digest
        )


@lru_cache(maxsize=32)
def _snapshot(key: _Key) -> World:
    """The world at its start. Worlds that differ in plants and reactions alone share the rows below the plants."""
    recipe = key.recipe
    plain = WorldRecipe(services=recipe.services, universe=recipe.universe, start_time=recipe.start_time)
    if recipe.digest == plain.digest:
        return _populated(recipe, key.catalogue)
    world = _snapshot(_Key(plain, key.catalogue)).fork()
    facts: dict[tuple[str, str, str], Mapping[str, str]] = {}
    for plant in recipe.plants:
        try:
            change = world.apply(plant.do)
        except (ToolError, KeyError) as error:
            raise InputError(f"a plant in {plant.do.service}.{plant.do.table} is refused: {error}") from error
        if plant.facts:
            facts[plant.do.service, plant.do.table, change.key] = plant.facts
    for reaction in recipe.reactions:
        _require_tables(reaction, world.services)
    for service in world.services.values():
        service.state.seal()
    return World(recipe, world.universe, world.services, world.tools, facts, recipe.reactions)


def _populated(recipe: WorldRecipe, catalogue: Catalogue) -> World:
    """A world as its services fill it from the universe."""
    universe = Universe.generate(recipe.universe.seed, recipe.universe.scale)
    user = User(universe.user.name, universe.user.email)
    services: dict[str, RunningService] = {}
    for pin in recipe.services:
        if pin.name in services:
            raise InputError(f"the recipe lists service {pin.name!r} twice")
        package = catalogue.package(pin.name, pin.package)
        context = Context(pin.name, recipe.universe.seed, recipe.start_time, user)
        if catalogue.predictor is None:
            _require_code(pin, package)
        services[pin.name] = RunningService.start(package, catalogue.backend(package), context, universe)
    for service in services.values():
        service.state.seal()
    return World(recipe, universe, services, _bind_tools(recipe, services), {}, ())


def _require_tables(reaction: Reaction, services: Mapping[str, RunningService]) -> None:
    applied = {(operation.service, operation.table) for operation in reaction.apply}
    for service, table in sorted(watched_tables(reaction.when) | applied):
        if service not in services or table not in services[service].state.tables:
            raise InputError(f"a reaction is about {service}.{table}, which this world does not have")


def _require_code(pin: ServicePin, package: ServicePackage) -> None:
    modelled = [tool for tool in pin.tools if tool in package.modelled_names]
    if modelled:
        raise InputError(
            f"service {pin.name!r} has tools that only a world model can answer ({', '.join(modelled)}), and none is "
            "enabled here; name one of llm.models in the section world_model of the configuration"
        )


def _bind_tools(recipe: WorldRecipe, services: Mapping[str, RunningService]) -> dict[str, BoundTool]:
    """Tools by their name in this world: on a clash, every clashing tool carries its service's name."""
    specs: dict[tuple[str, str], ToolSpec] = {}
    for pin in recipe.services:
        for tool in pin.tools:
            try:
                specs[pin.name, tool] = services[pin.name].package.tool(tool)
            except KeyError:
                raise InputError(f"the recipe lists tool {tool!r}, which package {pin.name!r} does not have") from None
    names = {place: place[1] for place in specs}
    while clashing := _clashing(names):
        prefixed = {place: "__".join(place) for place in clashing}
        if all(names[place] == name for place, name in prefixed.items()):
            places = " and ".join(f"{tool!r} of {service!r}" for service, tool in prefixed)
            raise InputError(f"tools {places} would have the same name; rename one of the services")
        names |= prefixed
    return {
        names[place]: BoundTool(names[place], place[0], spec, place[1] in services[place[0]].package.modelled_names)
        for place, spec in specs.items()
    }


def _clashing(names: Mapping[tuple[str, str], str]) -> list[tuple[str, str]]:
    """Tools whose names are not theirs alone: a prefixed name may be the plain name of another tool."""
    counts = Counter(names.values())
    return [place for place, name in names.items() if counts[name] > 1]
